"""Where the source files that a cache names lie in this working tree."""

from __future__ import annotations

from pathlib import Path

__all__ = ["find_source"]


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
