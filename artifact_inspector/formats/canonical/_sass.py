"""Canonical SASS: without addresses, labels and locations.

Registers stay: operands span them without naming them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from artifact_inspector.formats.canonical._names import Names

_SASS = re.compile(r"\.L_\w+")
_ADDRESS = re.compile(r"/\*[0-9a-f]+\*/")


def lines(text: str) -> Iterator[str]:
    names = Names()
    is_debugging = False
    for raw in text.splitlines():
        line = " ".join(_ADDRESS.sub("", raw).split())
        if not line or line.startswith("//"):
            continue
        if line.startswith(".section"):
            is_debugging = "debug" in line
        if not is_debugging:
            yield _SASS.sub(lambda found: names[found[0]], line)
