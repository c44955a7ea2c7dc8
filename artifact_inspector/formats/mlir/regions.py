"""The regions of MLIR's operations while they are open: loops, branches, partitions, bodies of reductions."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum, auto


class Form(Enum):
    """What an open `{` belongs to."""

    FUNCTION = auto()
    FOR = auto()
    WHILE = auto()
    DO = auto()
    IF = auto()
    BODY = auto()
    """Says how two elements combine."""
    INLINE = auto()
    SPECIALIZE = auto()
    PARTITION = auto()

    __hash__ = object.__hash__


LOOPS = (Form.FOR, Form.DO)
YIELDING = (Form.FOR, Form.IF, Form.INLINE)


@dataclass
class Region:
    """An open `{`: which operation it belongs to and where its blocks began."""

    form: Form
    operation: int
    entry: int
    """Block that the region was entered from."""
    header: int = -1
    results: tuple[str, ...] = ()
    arguments: tuple[str, ...] = ()
    ends: list[int] = field(default_factory=list)
    """Last blocks of the alternatives that are already closed."""
    alternatives: int = 0
    behind: list[str] = field(default_factory=list)
    """What stands behind the operation's own line: warps of partitions, types of what they are handed."""
