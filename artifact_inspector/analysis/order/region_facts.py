"""Facts about a region at one stage: its verdict, and the location of its rounds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import groupby
from typing import NamedTuple

from artifact_inspector.analysis.order.loop_schedules import LoopSchedule
from artifact_inspector.model import EventKind, Instruction, RegionKind, SourceLine
from artifact_inspector.model.region import RegionId
from artifact_inspector.model.verdict import Basis, CopyPosition, OrderVerdict, PairOrder

QUIET = frozenset({OrderVerdict.NO_LOADS, OrderVerdict.NO_COMPUTE})
"""Verdicts of regions that lack loads or computes: they have no order."""


@dataclass(frozen=True, slots=True)
class RoundPair:
    """Two neighbouring rounds."""

    issued_before: float
    """Share of the later round's load statements issued before the earlier round's first direct compute."""
    issued_after: float
    """Share issued after the earlier round's last direct compute."""

    @property
    def order(self) -> PairOrder:
        """Order of the later round's loads relative to the earlier round's computes."""
        if self.issued_after == 1.0:
            return PairOrder.INTERLEAVED
        return PairOrder.CLUSTERED if self.issued_before == 1.0 else PairOrder.MIXED


@dataclass(frozen=True, slots=True)
class RoundPlacement:
    """Location of one round at one stage. Lines are those of the stage's file."""

    loads: int
    """Load instructions."""
    first_load: int | None
    last_load: int | None
    first_compute: int | None
    last_compute: int | None


@dataclass(frozen=True, slots=True)
class RoundFacts(RoundPlacement):
    """The loads of one anchor, and the computes that use them."""

    sources: tuple[SourceLine, ...]
    """Lines of its load statements in the user's code, `file.py:line`."""
    names: tuple[str, ...]
    """Names of the loaded values in the IR."""
    shared: tuple[str, ...]
    """Statements whose data later rounds use too."""
    distances: tuple[int, ...]
    """Iterations that each statement runs ahead."""

    @property
    def called_from(self) -> tuple[tuple[str, ...], ...]:
        """For each source line, the chain of inlined calls that leads to it; () if there is none."""
        calls = tuple(source.called_from for source in self.sources)
        return calls if any(calls) else ()

    @property
    def placement(self) -> RoundPlacement:
        """The location only."""
        return RoundPlacement(self.loads, self.first_load, self.last_load, self.first_compute, self.last_compute)


class RegionNote(NamedTuple):
    """A remark about how the facts of a region were determined."""

    message: str
    round: int | None = None
    """Number of the round that the note is about; None for the region."""


@dataclass(frozen=True, slots=True)
class RegionFacts:
    """A region at one stage: a loop, a partition or the straight-line code."""

    id: str
    """`loop@98`, `straight`, `partition0` …: the same at every stage."""
    kind: RegionKind
    depth: int
    """Loops around it, itself included."""
    parent: str | None
    lines: tuple[int, int]
    signature: str
    """Its events in text order, as letters with their number: `W1 B1 s8 M16`."""
    named_signature: str
    """The signature with the names of what is loaded, if the IR has names."""
    verdict: OrderVerdict
    distance: int | tuple[int, int] | None
    """Source iterations, or of `staggered` rounds, that the loads run ahead; a range if they differ."""
    basis: Basis
    """How its rounds were located: source lines, else data flow."""
    pairs: tuple[RoundPair, ...]
    """Neighbouring rounds, in the order in which the stage computes them first."""
    exclusive: tuple[tuple[int, int], ...]
    """Pairs of rounds, numbered from 1, that no path executes both of: they have no order."""
    rounds: tuple[RoundFacts, ...]
    unassigned: tuple[str, ...]
    """Lines of loads and computes that belong to no round."""
    matrix: int
    """Matrix instructions."""
    fused_multiply_adds: int
    """Fused multiply-adds: a dot becomes these without a matrix operation."""
    unroll_factor: int
    groups: str
    """For `grouped`: which rounds were loaded together, as `{1 2}{3}`."""
    order_changed: bool | None
    """Whether the order of rounds differs from the last stage that had one; null if the loads and computes of the two
    stages do not match."""
    copy_position: CopyPosition | None
    """In a pipelined loop: copies are `before`, `after` or `between` the direct computes."""
    region_notes: tuple[RegionNote, ...]
    is_in_program: bool
    """False for a loop that only the compiler made."""
    counts: Mapping[str, int] = field(default_factory=dict, hash=False)
    """Kind → instructions of that kind directly in the region; kinds without any are absent."""
    schedule: LoopSchedule | None = None
    """The order of copies that the program itself gives a loop: `num_stages` has no effect."""

    @property
    def matrix_in_flight(self) -> int | None:
        """Most matrix operations in flight while a loop waits for its copies; null if the program does not say it."""
        return None if self.schedule is None else self.schedule.matrix_in_flight

    @property
    def notes(self) -> tuple[str, ...]:
        """What is unknown, and for which round."""
        return tuple(x.message if x.round is None else f"round {x.round}: {x.message}" for x in self.region_notes)

    @property
    def is_dissolved_loop(self) -> bool:
        """True for the remainder of a loop that is not a loop at this stage: it counts in another region."""
        return self.kind is RegionKind.STRAIGHT and RegionId.parse(self.id).is_loop

    @property
    def phrase(self) -> str:
        """The verdict as it is printed, with its distance, groups or shares."""
        return self.verdict_text + (f" ×{self.unroll_factor}" if self.unroll_factor > 1 else "")

    @property
    def verdict_text(self) -> str:
        """The verdict with its distance, groups or shares, whatever the compiler unrolled."""
        text = str(self.verdict)
        if self.distance is not None:
            low, high = self.distance if isinstance(self.distance, tuple) else (self.distance, self.distance)
            text += f"({low})" if low == high else f"({low}–{high})"
        if self.groups:
            text += f" {self.groups}"
        if self.verdict is OrderVerdict.MIXED:
            worst = next(pair for pair in self.pairs if pair.order is PairOrder.MIXED)
            text += f" (f={worst.issued_before:.2g} g={worst.issued_after:.2g})"
        return text

    def count(self, kind: EventKind) -> int:
        """Instructions of a kind directly in the region."""
        return self.counts.get(kind.count_name, 0)


def signature_of(instructions: Iterable[Instruction]) -> str:
    """Run-length string of event letters, e.g. `W1 B1 s8 M16`."""
    letters = filter(None, [instruction.kind.letter for instruction in instructions])
    return " ".join(f"{letter}{len(list(run))}" for letter, run in groupby(letters))
