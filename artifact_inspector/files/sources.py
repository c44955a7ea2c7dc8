"""Finds the source files named by a cache in the working tree, and reads their lines."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from artifact_inspector.errors import CacheError
from artifact_inspector.files.reading import read_content
from artifact_inspector.model import Frame
from artifact_inspector.model.location import base_name

Quote = Callable[[str], str | None]
"""`file.py:40` → the text of that line; None if it may differ from the compiled source."""
MOST_SOURCE = 4 << 20
"""Maximum bytes of a source file."""
NEAR = 12
"""Lines after a kernel's location, that of its first decorator, in which its `def` must be."""


def quoting(place: Frame | None, kernel: str, root: Path) -> Quote:
    """A reader for lines of the kernel's source file as it is in the working tree now.

    Lines are returned only if the kernel's `def` is still at the line that the kernel's files name.

    Args:
        place: source location of the kernel.
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
    """Whether the `def` of a kernel is still at the line that the kernel's files name."""
    near = text.splitlines()[max(0, place.line - 1) : place.line + NEAR]
    return any(line.lstrip().startswith(f"def {kernel}(") for line in near)


def find_source(file: str, root: Path) -> str | None:
    """The path of a source file relative to the root, with `/`; None if it does not exist.

    A cache names files by their paths at compile time. The longest suffix of that path that is a file here is
    used.
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
    """The text of a source file named by a cache; None if it does not exist.

    A cache is untrusted: files that are not Python are not read.
    """
    inside = find_source(file, root) if file.endswith(".py") else None
    try:
        return None if inside is None else read_content(root / inside, MOST_SOURCE).decode(errors="replace")
    except (OSError, CacheError):
        return None
