"""The causes of a launch's predicted time."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import Enum


class CauseKind(Enum):
    """A cause, by the name that reports and JSON use."""

    SMALL_LAUNCH = "small-launch"
    REPEATED_WORK = "repeated-work"
    """Warp-specialised partitions that compute the same tile."""
    IDLE_MULTIPROCESSORS = "idle-sms"
    TAIL_WAVE = "tail-wave"
    CTA_LAUNCHES = "cta-launches"
    EXCESS_THREADS = "more-threads"
    OCCUPANCY = "occupancy"
    SPILLS = "spills"
    BANK_CONFLICTS = "bank-conflicts"
    UNCOALESCED = "uncoalesced"
    NARROW_ACCESS = "narrow-access"
    REDUNDANT_LOAD = "redundant-load"
    INVARIANT_LOAD = "invariant-load"
    FP32_DOT = "fp32-dot"
    WIDE_DOT = "wide-dot"
    SMALL_TILE = "small-tile"
    MASKS = "masks"
    REDUCTION_PER_TRIP = "reduction-per-trip"
    BARRIER_PER_TRIP = "barrier-per-trip"
    DIVISION = "division"
    UNUSED_RANDOM = "unused-random"
    INT64 = "int64"
    TYPE_CONVERSION = "type-conversion"
    LAYOUT_CONVERSION = "layout-conversion"
    ATOMIC_CONTENTION = "atomic-contention"
    COMPARE_AND_SWAP = "compare-and-swap"
    REFETCHED = "refetched"
    """Data that device memory delivers more than once, since CTAs that share it run at different times."""
    DEPENDENT_LOADS = "dependent-loads"
    DRAINED_PIPELINE = "drained-pipeline"
    SERIAL_LOOP = "serial-loop"
    FEW_BYTES = "few-bytes"
    """Too few bytes in flight outside of loops."""
    BOUND = "bound"
    """No defect: the unit that bounds the launch."""

    @property
    def priority(self) -> int:
        """The order of causes whose time is not predicted: 0 first."""
        return _PRIORITY.index(self)

    @property
    def is_generic(self) -> bool:
        """Whether a specific cause with somewhat less time comes first: its repair often removes this one too."""
        return self in _GENERIC


_GENERIC = {
    CauseKind.OCCUPANCY, CauseKind.NARROW_ACCESS, CauseKind.TAIL_WAVE, CauseKind.CTA_LAUNCHES, CauseKind.FEW_BYTES,
    CauseKind.BOUND,
}  # fmt: skip
_PRIORITY = (
    CauseKind.SMALL_LAUNCH, CauseKind.REPEATED_WORK, CauseKind.FP32_DOT, CauseKind.WIDE_DOT, CauseKind.COMPARE_AND_SWAP,
    CauseKind.ATOMIC_CONTENTION, CauseKind.SPILLS, CauseKind.EXCESS_THREADS, CauseKind.DEPENDENT_LOADS,
    CauseKind.INVARIANT_LOAD, CauseKind.REDUNDANT_LOAD, CauseKind.INT64, CauseKind.DIVISION, CauseKind.UNUSED_RANDOM,
    CauseKind.REDUCTION_PER_TRIP, CauseKind.LAYOUT_CONVERSION, CauseKind.SMALL_TILE, CauseKind.UNCOALESCED,
    CauseKind.BANK_CONFLICTS,
    CauseKind.IDLE_MULTIPROCESSORS, CauseKind.BARRIER_PER_TRIP, CauseKind.DRAINED_PIPELINE, CauseKind.SERIAL_LOOP,
    CauseKind.NARROW_ACCESS, CauseKind.TYPE_CONVERSION, CauseKind.TAIL_WAVE, CauseKind.CTA_LAUNCHES,
    CauseKind.OCCUPANCY, CauseKind.MASKS, CauseKind.REFETCHED, CauseKind.FEW_BYTES, CauseKind.BOUND,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Cause:
    """One cause."""

    kind: CauseKind
    line: str | None
    """`file.py:line`; None if it concerns the launch."""
    share: float | None
    """Share of the predicted time that the launch would save without it; None if times are not predicted."""
    text: str
    """One sentence: line, share, reason."""
    more_lines: tuple[str, ...] = ()
    """Further lines with the same cause, whose share is included."""
    note: str = ""
    """The end of the sentence: why the cause is not the first one, or which other one is as large."""

    def with_note(self, note: str) -> Cause:
        """The cause with another end of its sentence."""
        return replace(self, text=f"{self.text.removesuffix(f'{self.note}.')}{note}.", note=note)


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """The causes of one launch, the most important first."""

    kernel: str
    hash: str
    target: str
    gpu: str | None
    """The product that is modelled; None if times are not predicted."""
    grid: tuple[int, int, int]
    microseconds: float | None
    """Predicted time."""
    roofline_microseconds: float | None
    """The time if only device memory, or only the matrix pipe at its peak, limited the launch."""
    causes: tuple[Cause, ...]
    """Empty if nothing stands out."""
    summary: str
    """The first sentence of a report: the first cause, or that nothing stands out."""
    notes: tuple[str, ...] = field(default=())
    bound: str = ""
    """What limits the launch: `L2`; empty if times are not predicted."""
    sampled_microseconds: float | None = None
    """The time by a sample of CTAs, if `microseconds` is that of all: two samples may be compared."""
