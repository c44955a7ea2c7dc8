"""Canonical PTX: without the numbers of virtual registers, labels and locations."""

from __future__ import annotations

import re
from collections.abc import Iterator

from artifact_inspector.formats.canonical._names import Names

_PTX = re.compile(r"%(?:r[dshq]?|f[dl]?|p|hh?|b|q|rq)\d+\b|\$L_\w+")
_COUNT = re.compile(r"\.reg \.\w+ %\w+<\d+>;")
"""Declarations of virtual registers; a declaration of a named register stays."""
_MARK = re.compile(r"\$L__(?:tmp|func_)\w*:|\.(?:loc|file)\b")


def lines(text: str) -> Iterator[str]:
    names = Names()
    is_debugging = False
    for raw in text.splitlines():
        line = " ".join(raw.partition("//")[0].split())
        if not line:
            continue
        if is_debugging or line.startswith(".section .debug"):
            is_debugging = line[-1] != "}"
            continue
        if _MARK.match(line) or _COUNT.fullmatch(line):
            continue
        if ".entry " in line or ".func " in line:
            names = Names()
        yield _PTX.sub(lambda found, names=names: names[found[0]], line)  # type: ignore[misc]
