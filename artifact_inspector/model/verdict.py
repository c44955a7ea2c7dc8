"""How a region's loads and computes are ordered, and the basis of that verdict."""

from __future__ import annotations

from artifact_inspector.model.string_enum import StringEnum


class OrderVerdict(StringEnum):
    """How the loads and computes of a region are ordered; docs/verdicts.md defines each verdict."""

    INTERLEAVED = "interleaved"
    CLUSTERED = "clustered"
    STAGGERED = "staggered"
    """Straight-line code whose loads run some rounds ahead."""
    GROUPED = "grouped"
    MIXED = "mixed"
    SINGLE = "single"
    SERIAL = "serial"
    OVERLAPPED = "overlapped"
    """A loop whose loads serve their own iteration, while the matrix operations of the last one still run."""
    PIPELINED = "pipelined"
    PARTLY_PIPELINED = "partly pipelined"
    UNROLLED = "unrolled"
    GONE = "gone"
    WARP_SPECIALISED = "warp-specialised"
    NO_LOADS = "no-loads"
    NO_COMPUTE = "no-compute"
    UNKNOWN = "unknown"

    @property
    def is_order_verdict(self) -> bool:
        """True for a verdict about the order of rounds.

        Only a change between two of these is a change of order.
        """
        return self in _ORDER_VERDICTS

    @property
    def runs_ahead(self) -> bool:
        """True if loads serve a later iteration, or other warps."""
        return self in _RUNS_AHEAD


_ORDER_VERDICTS = frozenset(
    {OrderVerdict.INTERLEAVED, OrderVerdict.CLUSTERED, OrderVerdict.STAGGERED, OrderVerdict.GROUPED, OrderVerdict.MIXED}
)
_RUNS_AHEAD = frozenset({OrderVerdict.PIPELINED, OrderVerdict.PARTLY_PIPELINED, OrderVerdict.WARP_SPECIALISED})


class PairOrder(StringEnum):
    """Order of the loads of a round and the computes of the previous round."""

    INTERLEAVED = "I"
    """All loads after the computes."""
    CLUSTERED = "C"
    """All loads before the computes."""
    MIXED = "M"


class Basis(StringEnum):
    """How the rounds of a region were matched at a stage."""

    SOURCE = "source"
    """By the source lines of loads and computes."""
    DATAFLOW = "dataflow"


class CopyPosition(StringEnum):
    """Position of the copies of a pipelined loop relative to its direct computes."""

    BEFORE = "before"
    AFTER = "after"
    BETWEEN = "between"
