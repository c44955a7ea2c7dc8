"""The whole files that mutants are made of: the saved kernels under fixtures/, the smaller the likelier."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from artifact_inspector.model import Stage

__all__ = ["kernels", "texts"]

FIXTURES = Path(__file__).parents[2] / "fixtures"
_HEAD, _BODY, _TAIL = 1_200, 600, 300
"""Characters of the parts that a longer file is shortened to: one of 2,000 is read in a third of a millisecond."""
_EACH = 6
"""Shortened files that a long one gives, each with another part of its body."""
_LARGEST = 100_000
"""Bytes of all texts of a kernel that is damaged whole."""


@cache
def kernels() -> Mapping[Path, float]:
    """Directories of kernels, in the manifest's order, each with how likely it is to be taken."""
    rows = json.loads((FIXTURES / "manifest.json").read_text(encoding="utf-8"))
    found = {}
    for row in rows:
        for path in sorted((FIXTURES / row["path"]).glob("*/")) if row.get("files") else ():
            texts = [file for file in path.iterdir() if file.suffix[1:] in {stage.value for stage in Stage}]
            size = sum(file.stat().st_size for file in texts)
            if len(texts) > 1 and size < _LARGEST:
                found[path] = (_LARGEST / size) ** 2
    return found


@cache
def texts() -> dict[Stage, tuple[str, ...]]:
    """Texts of every stage."""
    found = defaultdict(list)
    for stage in Stage:
        for path in sorted(FIXTURES.rglob(f"*.{stage.value}")):
            found[stage] += _shortened(path.read_text(encoding="utf-8"))
    return {stage: tuple(some) for stage, some in found.items()}


def _shortened(text: str) -> list[str]:
    """The text, or some that keep its beginning, some part of its body and its end, in whole lines."""
    if len(text) <= _HEAD + _BODY + _TAIL:
        return [text]
    head, tail = text.rfind("\n", 0, _HEAD) + 1, text.rfind("\n", 0, len(text) - _TAIL) + 1
    step = max(1, (tail - head - _BODY) // _EACH)
    parts = []
    for start in range(head, head + _EACH * step, step):
        first = text.rfind("\n", 0, start) + 1
        parts.append(text[:head] + text[first : text.find("\n", first + _BODY) + 1] + text[tail:])
    return parts
