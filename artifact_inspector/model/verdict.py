"""The words for how a region's loads and computes are laid out, and for what that is read from."""

from __future__ import annotations

from artifact_inspector.model.word import Word


class Verdict(Word):
    """How the loads and computes of a region are laid out; docs/verdicts.md defines each."""

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
        """True for one that speaks of the order of rounds.

        Only a change between two of these is a change of order.
        """
        return self in _OF_ORDER

    @property
    def runs_ahead(self) -> bool:
        """True where loads serve a later iteration, or other warps."""
        return self in _RUNS_AHEAD


_OF_ORDER = frozenset(
    {Verdict.INTERLEAVED, Verdict.CLUSTERED, Verdict.STAGGERED, Verdict.GROUPED, Verdict.MIXED}
)
_RUNS_AHEAD = frozenset({Verdict.PIPELINED, Verdict.PARTLY_PIPELINED, Verdict.WARP_SPECIALISED})


class PairOrder(Word):
    """How the loads of a round stand to the computes of the round before."""

    INTERLEAVED = "I"
    """All behind them."""
    CLUSTERED = "C"
    """All in front of them."""
    MIXED = "M"


class Basis(Word):
    """By what the rounds of a region were found at a stage."""

    SOURCE = "source"
    """By the source lines of their loads and computes."""
    DATAFLOW = "dataflow"


class Standing(Word):
    """Where the copies of a pipelined loop stand to its direct computes."""

    BEFORE = "before"
    AFTER = "after"
    BETWEEN = "between"
