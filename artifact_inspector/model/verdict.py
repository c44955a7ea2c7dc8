"""How a region's loads and computes are ordered, and the basis of that verdict."""

from __future__ import annotations

from artifact_inspector.model.word import Word


class Verdict(Word):
    """How the loads and computes of a region are ordered; docs/verdicts.md defines each verdict."""

    INTERLEAVED = "interleaved"
    CLUSTERED = "clustered"
    STAGGERED = "staggered"
    """Straight-line code whose loads run some rounds ahead."""
    GROUPED = "grouped"
    MIXED = "mixed"
    SINGLE = "single"
    SERIAL = "serial"
    PIPELINED = "pipelined"
    PARTLY_PIPELINED = "partly pipelined"
    UNROLLED = "unrolled"
    GONE = "gone"
    WARP_SPECIALISED = "warp-specialised"
    NO_LOADS = "no-loads"
    NO_COMPUTE = "no-compute"
    UNKNOWN = "unknown"

    @property
    def is_of_order(self) -> bool:
        """True for a verdict about the order of rounds.

        Only a change between two of these is a change of order.
        """
        return self in _OF_ORDER

    @property
    def runs_ahead(self) -> bool:
        """True if loads serve a later iteration, or other warps."""
        return self in _RUNS_AHEAD


_OF_ORDER = frozenset(
    {Verdict.INTERLEAVED, Verdict.CLUSTERED, Verdict.STAGGERED, Verdict.GROUPED, Verdict.MIXED}
)
_RUNS_AHEAD = frozenset({Verdict.PIPELINED, Verdict.PARTLY_PIPELINED, Verdict.WARP_SPECIALISED})


class PairOrder(Word):
    """Order of the loads of a round and the computes of the previous round."""

    INTERLEAVED = "I"
    """All loads after the computes."""
    CLUSTERED = "C"
    """All loads before the computes."""
    MIXED = "M"


class Basis(Word):
    """How the rounds of a region were matched at a stage."""

    SOURCE = "source"
    """By the source lines of loads and computes."""
    DATAFLOW = "dataflow"


class Standing(Word):
    """Position of the copies of a pipelined loop relative to its direct computes."""

    BEFORE = "before"
    AFTER = "after"
    BETWEEN = "between"
