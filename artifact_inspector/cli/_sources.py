"""Where the source files that a cache names lie in this working tree."""

from __future__ import annotations

from pathlib import Path

from artifact_inspector.files.reading import read_content

__all__ = ["find_source", "read_python"]

MOST_BYTES = 4 << 20
"""Of a source file; a longer one is not shown."""


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
        return None if inside is None else read_content(root / inside, MOST_BYTES).decode(errors="replace")
    except OSError:
        return None
