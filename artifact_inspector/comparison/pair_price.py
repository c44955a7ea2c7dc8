"""The predicted times of one launch of two kernels, as one figure for the pair."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import log10
from typing import NamedTuple

from artifact_inspector.hardware.timing import BOUNDS
from artifact_inspector.model import StringEnum
from artifact_inspector.vocabulary.fact import Sign

SAME_WITHIN = 0.02
"""Ratios this close to 1 count as equal: the model ranks launches, it does not predict times."""
MAX_LINES = 3
"""Most lines with bank conflicts in the sentence, and most amounts of work."""


class WorkKind(StringEnum):
    """What a launch does; the name of a tensor follows that of sectors."""

    DEVICE_READS = "bytes read from device memory"
    LOADS = "sectors loaded from"
    STORES = "sectors stored to"
    WAVEFRONTS = "wavefronts of shared memory"
    INSTRUCTIONS = "warp instructions"


SECTORS = (WorkKind.LOADS, WorkKind.STORES)
_WORK_OF_UNIT = {
    "dram": (WorkKind.DEVICE_READS,), "l2": SECTORS, "fabric": SECTORS, "lsu": (WorkKind.WAVEFRONTS, *SECTORS),
    **dict.fromkeys(("issue", "alu", "fma", "xu", "double"), (WorkKind.INSTRUCTIONS,)),
}  # fmt: skip
"""Unit → what keeps it busy; a latency has no such amount."""


class LineConflicts(NamedTuple):
    """Bank conflicts of one execution of a source line by a warp: wavefronts beyond the fewest possible ones."""

    source: str
    left: float
    right: float

    def __str__(self) -> str:
        """`bank conflicts per warp and trip 0 → 4, at matmul.py:82`."""
        return f"bank conflicts per warp and trip {self.left:g} → {self.right:g}, at {self.source}"


class LaunchWork(NamedTuple):
    """What a launch of each kernel does, scaled from the sampled CTAs to the grid."""

    kind: WorkKind
    amount: str
    """`warp instructions`, `sectors loaded from x_ptr`."""
    left: float
    right: float

    @property
    def ratio(self) -> float:
        """That of the right kernel ÷ that of the left."""
        return max(1.0, self.right) / max(1.0, self.left)

    def __str__(self) -> str:
        """`warp instructions 74.6M → 54.7M`."""
        return f"{self.amount} {_shorten(self.left)} → {_shorten(self.right)}"


def _shorten(count: float) -> str:
    power = int(log10(max(count, 1.0)) // 3)
    return f"{count / 1000**power:.3g}{' kMGTP'[power].strip()}"


@dataclass(frozen=True, slots=True)
class PairPrice:
    """One launch of both kernels, by the cost model that `rank` uses."""

    ratio: float | None
    """Predicted time of the right kernel ÷ that of the left (cycles if a clock is unknown); None if one is unknown."""
    left_cycles: float | None
    """Estimated cycles of a multiprocessor."""
    right_cycles: float | None
    left_bottleneck: str | None
    """The largest term of the cost."""
    right_bottleneck: str | None
    launch: str
    """The grid and the numbers among the arguments."""
    gpu: str
    problem: str = ""
    """Why a cost is unknown; empty if both are known."""
    facts: Mapping[str, float] = field(default_factory=dict)
    """Key of a fact → its price; facts of unknown price are absent."""
    bank_conflicts: tuple[LineConflicts, ...] = ()
    """Lines whose bank conflicts differ, the worst first."""
    work: tuple[LaunchWork, ...] = ()
    """What a launch of one does more than a launch of the other, the largest factor first."""
    left_overlap: float | None = None
    """Share of the cycles in which others work while a warp waits for global memory, as `predict` models it."""
    right_overlap: float | None = None
    left_microseconds: float | None = None
    """The predicted time, as `predict` prints it; of a sample, reads that CTAs share are not merged."""
    right_microseconds: float | None = None
    left_roofline: float | None = None
    """Share of the speed that the roofline of its GPU allows; null on one GPU."""
    right_roofline: float | None = None
    is_sampled: bool = True
    """Whether the times are those of some CTAs: all would take too long, or the GPU is AMD's."""
    is_validated: bool = True
    """False if the model of a GPU was never compared with one: AMD."""
    same_within: float = SAME_WITHIN
    """Ratios this close to 1 count as equal."""

    @property
    def direction(self) -> Sign | None:
        """Whether the right kernel takes longer; None if a time is unknown."""
        if self.ratio is None:
            return None
        if abs(self.ratio - 1) <= self.same_within:
            return Sign.NEUTRAL
        return Sign.WORSE if self.ratio > 1 else Sign.BETTER

    @property
    def standing(self) -> str:
        """`, at 80 → 25 % of each GPU's roofline`: with higher peaks, worse code is faster. Empty on one GPU."""
        shares = [f"{share * 100:.0f}" for share in (self.left_roofline, self.right_roofline) if share is not None]
        return f", at {' → '.join(shares)} % of each GPU's roofline" if len(shares) == 2 else ""

    @property
    def decisive_conflicts(self) -> LineConflicts | None:
        """The line whose bank conflicts changed most, if they are in the unit that bounds the slower kernel."""
        bottleneck = self.right_bottleneck if self.direction is Sign.WORSE else self.left_bottleneck
        return self._changed_conflicts if bottleneck == "lsu" else None

    @property
    def _changed_conflicts(self) -> LineConflicts | None:
        """The line whose bank conflicts changed most, if those of all lines change in the direction of the time."""
        is_worse = self.direction is Sign.WORSE
        lines = [line for line in self.bank_conflicts if (line.right > line.left) is is_worse]
        agrees = (sum(line.right - line.left for line in self.bank_conflicts) > 0) is is_worse
        is_clear = agrees and self.direction not in (None, Sign.NEUTRAL)
        return max(lines, key=lambda line: abs(line.right - line.left)) if lines and is_clear else None

    @property
    def cause(self) -> tuple[str, float] | None:
        """What changed in the simulation in the direction of the time, with its factor.

        The work of the unit that bounds the slower kernel; else bank conflicts, with the factor of all wavefronts.
        """
        work, line = self.decisive_work, self._changed_conflicts
        wavefronts = [one.ratio for one in self.work if one.kind is WorkKind.WAVEFRONTS]
        if work is None and line is not None and wavefronts:
            return str(line), wavefronts[0]
        return None if work is None else (str(work), work.ratio)

    @property
    def new_limit(self) -> str:
        """That the slower kernel is limited by fp64, and the other is not, which no fact of its code says; or empty."""
        sides = [self.left_bottleneck, self.right_bottleneck][:: -1 if self.direction is Sign.BETTER else 1]
        is_new = self.direction in (Sign.WORSE, Sign.BETTER) and sides[1] == "double" != sides[0]
        return f"{BOUNDS['double']} limits {'it' if self.direction is Sign.WORSE else 'the old one only'}" * is_new

    @property
    def decisive_work(self) -> LaunchWork | None:
        """What the unit that bounds the slower kernel does less, or more; None if that does not explain the time."""
        is_worse = self.direction is Sign.WORSE
        kinds = _WORK_OF_UNIT.get((self.right_bottleneck if is_worse else self.left_bottleneck) or "", ())
        fitting = (one for one in self.work if one.kind in kinds and (one.right > one.left) is is_worse)
        return None if self.direction in (None, Sign.NEUTRAL) else next(fitting, None)

    @property
    def sentence(self) -> str:
        """The ratio with its launch, or why it is unknown; then the work and the bank conflicts that differ."""
        return f"{'. '.join(self.phrases)}."

    @property
    def phrases(self) -> tuple[str, ...]:
        """Those of the sentence."""
        if self.ratio is None:
            return (f"Predicted time: unknown ({self.problem})",)
        sides = (self.left_microseconds, self.right_microseconds)
        times = [f"{time:,.0f}" if time >= 100 else f"{time:.3g}" for time in sides if time is not None]
        both = f"{' → '.join(times)} µs" if len(times) == 2 else ""
        relation = f"{self.ratio:.2f}× the old one{both and f' ({both})'}"
        if self.direction is Sign.NEUTRAL:
            unsure = self.same_within > SAME_WITHIN and abs(self.ratio - 1) > SAME_WITHIN
            equal = f"within the error of {self.same_within:.0%}" if unsure else "equal"
            relation = f"{equal} ({self.ratio:.2f}×{f': {both}' if both else ''})"
        terms = [BOUNDS.get(term, term) for term in (self.left_bottleneck, self.right_bottleneck) if term]
        bound = f", largest cost: {' → '.join(dict.fromkeys(terms))}" if terms else ""
        doubt = "" if self.is_validated else "; times of AMD GPUs were not compared with hardware"
        sampled = ", a sample of its CTAs" if self.is_sampled else ""
        where = f"{self.launch}, {self.gpu}{sampled}{doubt}"
        shares = [share for share in (self.left_overlap, self.right_overlap) if share is not None]
        change = " → ".join(dict.fromkeys(f"{share * 100:.0f}" for share in shares))
        sentence = f"While a warp waits for global memory, others work in {change} % of the cycles"
        overlap = (sentence,) * (len(shares) == 2)
        lines = [f"{one.source} {one.left:g} → {one.right:g}" for one in self.bank_conflicts[:MAX_LINES]]
        conflicts = (f"Bank conflicts per warp and trip: {', '.join(lines)}",) if lines else ()
        work = (f"Per launch: {', '.join(map(str, self.work[:MAX_LINES]))}",) if self.work else ()
        return (f"Predicted time: {relation}{self.standing}{bound} ({where})", *work, *overlap, *conflicts)
