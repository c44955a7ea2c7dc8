"""The role of an instruction in the order of loads and computes."""

from __future__ import annotations

from enum import Enum


class EventKind(Enum):
    """The role of an instruction in the order of loads and computes.

    Each member is (letter in a signature, name in the counts). Kinds that do not appear in a signature have no letter.
    """

    letter: str
    count_name: str
    """Name of the kind in counts: `global_load`, `float` …"""

    GLOBAL_LOAD = ("L", "global_load")
    ASYNC_COPY = ("A", "async_copy")
    COMMIT = ("K", "commit")
    WAIT = ("W", "wait")
    SHARED_LOAD = ("s", "shared_load")
    SHARED_STORE = ("t", "shared_store")
    MATRIX = ("M", "matrix")
    FLOAT = ("F", "float")
    BARRIER = ("B", "barrier")
    LAYOUT_CONVERSION = ("X", "layout_conversion")
    SCHEDULE_HINT = ("h", "schedule_hint")
    GLOBAL_STORE = ("S", "global_store")
    ATOMIC = ("R", "atomic")
    LOCAL_LOAD = ("", "local_load")
    """A load from a thread's own memory (scratch, a spill reload)."""
    LOCAL_STORE = ("", "local_store")
    SCALAR_LOAD = ("", "scalar_load")
    """A load through the scalar cache: kernel arguments, or data that is uniform across threads."""
    SHUFFLE = ("", "shuffle")
    BRANCH = ("", "branch")
    """Control flow: branches, calls, returns, structured control-flow operations."""
    INTEGER = ("", "integer")
    """Address and integer arithmetic, integer comparisons, predicates, logic."""
    MOVE = ("", "move")
    """Moves, conversions, selections, layout-free reshapes: the value is unchanged."""
    OTHER = ("", "other")
    """Known opcodes that do not matter here (fences, annotations, argument loads …)."""
    UNKNOWN = ("?", "unknown")

    def __init__(self, letter: str, count_name: str) -> None:
        self.letter, self.count_name = letter, count_name

    # Members are singletons. Enum's own hash is a Python call, and kinds are looked up per instruction.
    __hash__ = object.__hash__


LOADS = frozenset({EventKind.GLOBAL_LOAD, EventKind.ASYNC_COPY})
COMPUTES = frozenset({EventKind.MATRIX, EventKind.FLOAT})
SINKS = frozenset({EventKind.GLOBAL_STORE, EventKind.ATOMIC})
