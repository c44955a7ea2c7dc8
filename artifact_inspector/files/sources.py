"""Finds the source files named by a cache in the working tree, and reads their lines."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from artifact_inspector.errors import CacheError
from artifact_inspector.files.reader import read_content
from artifact_inspector.model import Frame
from artifact_inspector.model.location import base_name

SourceLineReader = Callable[[str], str | None]
"""`file.py:40` → the text of that line; None if it may differ from the compiled source."""
MAX_SOURCE_BYTES = 4 << 20
"""Maximum bytes of a source file."""
MAX_DECORATOR_LINES = 12
"""Lines after a kernel's location, that of its first decorator, in which its `def` must be."""


def source_line_reader(location: Frame | None, kernel: str, root: Path) -> SourceLineReader:
    """A reader for lines of the kernel's source file as it is in the working tree now.

    Lines are returned only if the kernel's `def` is still at the line that the kernel's files name.
    """
    text = "" if location is None else read_python_source(location.file, root) or ""
    lines = text.splitlines() if location is not None and is_unchanged(text, location, kernel) else []
    name = "" if location is None else base_name(location.file)

    def read_line(source_line: str) -> str | None:
        file, _, number = source_line.partition(" ")[0].rpartition(":")
        at = int(number) if number.isdecimal() and len(number) < 9 else 0
        text = lines[at - 1].strip() if file == name and 0 < at <= len(lines) else ""
        return text or None

    return read_line


def is_unchanged(text: str, location: Frame, kernel: str) -> bool:
    """Whether the `def` of a kernel is still at the line that the kernel's files name."""
    nearby_lines = text.splitlines()[max(0, location.line - 1) : location.line + MAX_DECORATOR_LINES]
    return any(line.lstrip().startswith(f"def {kernel}(") for line in nearby_lines)


def find_source(file: str, root: Path) -> str | None:
    """The path of a source file relative to the root, with `/`; None if it does not exist.

    A cache names files by their paths at compile time. The longest suffix of that path that is a file here is used.
    """
    components = [component for component in file.replace("\\", "/").split("/") if component not in ("", ".")]
    if ".." in components:
        return None
    for start in range(len(components)):
        relative_path = "/".join(components[start:])
        try:
            if (root / relative_path).is_file():
                return relative_path
        except OSError:
            return None
    return None


def read_python_source(file: str, root: Path) -> str | None:
    """The text of a source file named by a cache; None if it does not exist.

    A cache is untrusted: files that are not Python are not read.
    """
    relative_path = find_source(file, root) if file.endswith(".py") else None
    if relative_path is None:
        return None
    try:
        return read_content(root / relative_path, MAX_SOURCE_BYTES).decode(errors="replace")
    except (OSError, CacheError):
        return None
