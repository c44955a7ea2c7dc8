"""Places in the source, as stages can be compared by them."""

from __future__ import annotations

from artifact_inspector.model import Location

__all__ = ["Chain", "chain_of", "source_of"]

Chain = tuple[tuple[str, int, int], ...]
"""An inline chain as (file name without directories, line, column), innermost first."""


def chain_of(location: Location | None) -> Chain | None:
    """A location with bare file names, comparable between stages."""
    if location is None:
        return None
    return tuple((_base_name(frame.file), frame.line, frame.column) for frame in location)


def source_of(location: Location | None) -> str | None:
    """`file.py:line` of the outermost frame: the line in the user's kernel."""
    if location is None:
        return None
    return f"{_base_name(location[-1].file)}:{location[-1].line}"


def _base_name(path: str) -> str:
    return path.replace("\\", "/").rpartition("/")[2]
