"""Facts about a region at one stage: its verdict, and the location of its rounds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import groupby
from typing import NamedTuple

from artifact_inspector.model import (
    Basis,
    EventKind,
    Instruction,
    PairOrder,
    RegionKind,
    SourceLine,
    Standing,
    Verdict,
)
from artifact_inspector.model.region import RegionId

QUIET = frozenset({Verdict.NO_LOADS, Verdict.NO_COMPUTE})
"""Verdicts of regions that lack loads or computes: they have no order."""


@dataclass(frozen=True, slots=True)
class Pair:
    """Two neighbouring rounds."""

    f: float
    """Share of the later round's load statements issued before the earlier round's first direct compute."""
    g: float
    """Share issued after the earlier round's last direct compute."""

    @property
    def letter(self) -> PairOrder:
        """Order of the later round's loads relative to the earlier round's computes."""
        if self.g == 1.0:
            return PairOrder.INTERLEAVED
        return PairOrder.CLUSTERED if self.f == 1.0 else PairOrder.MIXED


@dataclass(frozen=True, slots=True)
class PlacedRound:
    """Location of one round at one stage. Lines are those of the stage's file."""

    loads: int
    """Load instructions."""
    first_load: int | None
    last_load: int | None
    first_compute: int | None
    last_compute: int | None


@dataclass(frozen=True, slots=True)
class RoundFacts(PlacedRound):
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
    def placed(self) -> PlacedRound:
        """The location only."""
        return PlacedRound(self.loads, self.first_load, self.last_load, self.first_compute, self.last_compute)


class Note(NamedTuple):
    """A remark about how the facts of a region were determined."""

    said: str
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
    readable: str
    """The signature with the names of what is loaded, where the IR tells."""
    verdict: Verdict
    distance: int | tuple[int, int] | None
    """Source iterations, or of `staggered` rounds, that the loads run ahead; a range where they differ."""
    basis: Basis
    """By what its rounds were found: source places, else the flow of data."""
    pairs: tuple[Pair, ...]
    """Neighbouring rounds, in the order in which the stage computes them first."""
    exclusive: tuple[tuple[int, int], ...]
    """Rounds, by number from 1 on, that no path runs one after the other: they have no order."""
    rounds: tuple[RoundFacts, ...]
    other: tuple[str, ...]
    """Places of loads and computes that belong to no round."""
    matrix: int
    """Matrix instructions."""
    fused: int
    """Fused multiply-adds: what a dot becomes where no matrix operation does it."""
    unrolled_by: int
    groups: str
    """For `grouped`: which rounds were loaded together, as `{1 2}{3}`."""
    changed: bool | None
    """Whether the order of rounds is another than at the last stage that had one; null where that cannot be
    told, because not the same loads and computes were found."""
    copies_stand: Standing | None
    """In a pipelined loop: copies stand `before`, `after` or `between` the direct computes."""
    noted: tuple[Note, ...]
    in_program: bool
    """False for a loop that only the compiler made."""
    counts: Mapping[str, int] = field(default_factory=dict, hash=False)
    """Kind → instructions of that kind directly in the region; kinds without any are absent."""

    @property
    def notes(self) -> tuple[str, ...]:
        """What could not be told, and of which round."""
        return tuple(x.said if x.round is None else f"round {x.round}: {x.said}" for x in self.noted)

    @property
    def is_left_over(self) -> bool:
        """True for what is left of a loop that is none at this stage: it counts in another region."""
        return self.kind is RegionKind.STRAIGHT and RegionId.parse(self.id).is_loop

    @property
    def phrase(self) -> str:
        """The verdict as it is printed, with its distance, groups or shares."""
        return self.layout + (f" ×{self.unrolled_by}" if self.unrolled_by > 1 else "")

    @property
    def layout(self) -> str:
        """The verdict with its distance, groups or shares, whatever the compiler unrolled."""
        text = str(self.verdict)
        if self.distance is not None:
            low, high = self.distance if isinstance(self.distance, tuple) else (self.distance, self.distance)
            text += f"({low})" if low == high else f"({low}–{high})"
        if self.groups:
            text += f" {self.groups}"
        if self.verdict is Verdict.MIXED:
            worst = next(pair for pair in self.pairs if pair.letter is PairOrder.MIXED)
            text += f" (f={worst.f:.2g} g={worst.g:.2g})"
        return text

    def count(self, kind: EventKind) -> int:
        """Instructions of a kind directly in the region."""
        return self.counts.get(kind.count_name, 0)


def signature_of(instructions: Iterable[Instruction]) -> str:
    """Run-length string of event letters, e.g. `W1 B1 s8 M16`."""
    letters = filter(None, [instruction.kind.letter for instruction in instructions])
    return " ".join(f"{letter}{len(list(run))}" for letter, run in groupby(letters))
