"""Canonical PTX: without the numbers of virtual registers, labels and locations."""

from __future__ import annotations

import re
from collections.abc import Iterator

from artifact_inspector.formats.canonical._numbering import NameNumbering

_PTX = re.compile(r"%(?:r[dshq]?|f[dl]?|p|hh?|b|q|rq)\d+\b|\$L_\w+")
_COUNT = re.compile(r"\.reg \.\w+ %\w+<\d+>;")
"""Declarations of virtual registers; a declaration of a named register stays."""
_MARK = re.compile(r"\$L__(?:tmp|func_)\w*:|\.(?:loc|file)\b")


def canonical_lines(text: str) -> Iterator[str]:
    names = NameNumbering()
    in_debug_section = False
    for raw in text.splitlines():
        line = " ".join(raw.partition("//")[0].split())
        if not line:
            continue
        if in_debug_section or line.startswith(".section .debug"):
            in_debug_section = line[-1] != "}"
            continue
        if _MARK.match(line) or _COUNT.fullmatch(line):
            continue
        if ".entry " in line or ".func " in line:
            names = NameNumbering()
        yield _PTX.sub(lambda match, names=names: names[match[0]], line)  # type: ignore[misc]
