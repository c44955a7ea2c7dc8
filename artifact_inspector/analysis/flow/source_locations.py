"""Source locations that can be compared between stages."""

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
    """A location without the column of its innermost frame; no location stays none.

    Passes that merge two locations of one line leave it in this form.
    """
    return (*((file, line, 0) for file, line, _ in chain[:1]), *chain[1:])


def source_of(location: Location | None) -> SourceLine | None:
    """The innermost line of the user's code, with the chain of inlined calls."""
    return SourceLine.from_location(location) if location else None
