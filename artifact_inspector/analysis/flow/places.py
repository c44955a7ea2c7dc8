"""Places in the source, as stages can be compared by them."""

from __future__ import annotations

from artifact_inspector.model import Location, SourceLine
from artifact_inspector.model.location import base_name

Chain = tuple[tuple[str, int, int], ...]
"""An inline chain as (file name without directories, line, column), innermost first."""


def chain_of(location: Location | None) -> Chain | None:
    """A location with bare file names, comparable between stages."""
    if location is None:
        return None
    return tuple([(base_name(file), line, column) for file, line, column in location])


def without_column(chain: Chain) -> Chain:
    """A place by its line alone, as a pass leaves it that joined two places of one line; none stays none."""
    return (*((file, line, 0) for file, line, _ in chain[:1]), *chain[1:])


def source_of(location: Location | None) -> SourceLine | None:
    """The innermost line of the user's code, with the calls that it was inlined through."""
    return SourceLine.of(location) if location else None
