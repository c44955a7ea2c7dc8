"""Where the source files that a cache names lie in this working tree, and what stands in their lines."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from artifact_inspector.errors import CacheError
from artifact_inspector.files.reading import read_content
from artifact_inspector.model import Frame
from artifact_inspector.model.location import base_name

Quote = Callable[[str], str | None]
"""`file.py:40` → the text of that line; None where it is not known to be the one that was compiled."""
MOST_SOURCE = 4 << 20
"""Bytes of a file of somebody's code."""
NEAR = 12
"""Lines below the place of a kernel, that of its first decorator, in which its `def` stands."""


def quoting(place: Frame | None, kernel: str, root: Path) -> Quote:
    """Reads lines of the file that a kernel was compiled from, as it lies in a working tree now.

    A file is the one that was compiled only where the kernel's `def` still stands at the line that the
    kernel's files name; of any other nothing is quoted.

    Args:
        place: where the kernel stands in its source.
    """
    lines = [] if place is None else _lines(place, kernel, root)
    name = "" if place is None else base_name(place.file)

    def quote(where: str) -> str | None:
        file, _, number = where.partition(" ")[0].rpartition(":")
        at = int(number) if number.isdecimal() and len(number) < 9 else 0
        text = lines[at - 1].strip() if file == name and 0 < at <= len(lines) else ""
        return text or None

    return quote


def _lines(place: Frame, kernel: str, root: Path) -> list[str]:
    text = read_python(place.file, root) or ""
    return text.splitlines() if is_as_compiled(text, place, kernel) else []


def is_as_compiled(text: str, place: Frame, kernel: str) -> bool:
    """Whether the `def` of a kernel stands in a file where the kernel's own files say that it did."""
    near = text.splitlines()[max(0, place.line - 1) : place.line + NEAR]
    return any(line.lstrip().startswith(f"def {kernel}(") for line in near)


def find_source(file: str, root: Path) -> str | None:
    """The path of a source file from the root, with `/`; None for one that is not there.

    A cache names files as they lay where it was compiled: what is looked for is the longest end of that
    path that is a file here.
    """
    parts = [part for part in file.replace("\\", "/").split("/") if part not in ("", ".")]
    if ".." in parts:
        return None
    for start in range(len(parts)):
        inside = "/".join(parts[start:])
        try:
            if (root / inside).is_file():
                return inside
        except OSError:
            return None
    return None


def read_python(file: str, root: Path) -> str | None:
    """The text of a source file that a cache names; None for one that is not there.

    A cache names what it likes: what is no Python is not read.
    """
    inside = find_source(file, root) if file.endswith(".py") else None
    try:
        return None if inside is None else read_content(root / inside, MOST_SOURCE).decode(errors="replace")
    except (OSError, CacheError):
        return None
