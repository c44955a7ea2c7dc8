"""Open regions of MLIR's operations during parsing: loops, branches, partitions, reduction bodies."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum, auto


class OpenRegionKind(Enum):
    """What an open `{` belongs to."""

    FUNCTION = auto()
    FOR = auto()
    WHILE = auto()
    DO = auto()
    IF = auto()
    BODY = auto()
    """Defines how two elements combine."""
    INLINE = auto()
    SPECIALIZE = auto()
    PARTITION = auto()

    __hash__ = object.__hash__


LOOPS = (OpenRegionKind.FOR, OpenRegionKind.DO)
YIELDING = (OpenRegionKind.FOR, OpenRegionKind.IF, OpenRegionKind.INLINE)


@dataclass
class OpenRegion:
    """An open `{`: its operation and its first blocks."""

    kind: OpenRegionKind
    operation: int
    entry: int
    """The block before the region."""
    header: int = -1
    results: tuple[str, ...] = ()
    arguments: tuple[str, ...] = ()
    exits: list[int] = field(default_factory=list)
    """Last blocks of the alternatives that are already closed."""
    alternatives: int = 0
    trailing_text: list[str] = field(default_factory=list)
    """Text after the operation's own line: warps of partitions, types of their captured values."""
