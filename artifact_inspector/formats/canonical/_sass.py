"""Canonical SASS: without addresses, labels and locations.

Registers stay: operands span them without naming them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from artifact_inspector.formats.canonical._numbering import NameNumbering

_SASS = re.compile(r"\.L_\w+")
_ADDRESS = re.compile(r"/\*[0-9a-f]+\*/")


def canonical_lines(text: str) -> Iterator[str]:
    names = NameNumbering()
    in_debug_section = False
    for raw in text.splitlines():
        line = " ".join(_ADDRESS.sub("", raw).split())
        if not line or line.startswith("//"):
            continue
        if line.startswith(".section"):
            in_debug_section = "debug" in line
        if not in_debug_section:
            yield _SASS.sub(lambda match: names[match[0]], line)
