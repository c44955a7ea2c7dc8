"""A model of how the resident warps of a multiprocessor overlap; not validated by measurements.

The warps of the first resident CTAs run through the program individually. They follow the compiler's control
codes, take turns on their scheduler, wait for scoreboards, copies, matrix products and barriers, and queue at
the shared units. Costs and latencies are those of a ranking (`costs`, `walking`): those of an average CTA,
divided equally among its warps.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from heapq import heapify, heappop, heappush

from artifact_inspector.analysis.resources.taken import find_resources
from artifact_inspector.errors import UsageError
from artifact_inspector.execution.loading import load_kernel
from artifact_inspector.execution.naming import fit_launch
from artifact_inspector.execution.timing.contestants import Contestant
from artifact_inspector.execution.timing.controls import Control, read_controls
from artifact_inspector.execution.timing.costs import find_costs
from artifact_inspector.execution.timing.ranking import barrier_of, blocks_of, chip_of, launch_of
from artifact_inspector.execution.timing.sampling import sample_launch
from artifact_inspector.execution.timing.walking import Cost, Does, Front
from artifact_inspector.facts.modules import Disassemble
from artifact_inspector.files.binaries import read_code, read_cubin
from artifact_inspector.hardware.targets import parse_target

MOST_STEPS = 40_000
"""Instructions of all warps together that are simulated: some loop iterations, still distinguishable when
drawn."""
SLOTS = 200
"""Time slots of the diagram."""
OFF_WAY = 0.05
"""Share of a unit's work off the recorded trace from which a note reports it."""


class Activity(Enum):
    """What a warp does, or waits for."""

    LOADS = "global memory: issuing loads, copies, stores"
    MATRIX = "matrix products: issuing, waiting for results"
    ARITHMETIC = "arithmetic: issuing, waiting for results"
    SHARED = "shared memory, L1, shuffles: issuing, waiting"
    ISSUE = "other: issuing, waiting to issue"
    MEMORY = "waiting for global memory"
    BARRIER = "waiting at a barrier"


WORKS = frozenset((Activity.LOADS, Activity.MATRIX, Activity.ARITHMETIC, Activity.SHARED, Activity.ISSUE))
"""Activities other than waiting for memory or for other warps."""


@dataclass(frozen=True, slots=True)
class Span:
    """A time span of a warp."""

    start: float
    """Cycles from the start of the first CTA."""
    end: float
    activity: Activity
    """The one that takes most of each time slot."""


@dataclass(frozen=True, slots=True)
class WarpLane:
    """The timeline of one warp."""

    cta: int
    """CTA number on the multiprocessor, from 0."""
    warp: int
    """Warp number in the CTA, from 0."""
    spans: tuple[Span, ...]
    cycles: Mapping[Activity, float]
    """Total cycles of each activity, not rounded to slots."""


@dataclass(frozen=True, slots=True)
class Residency:
    """The modelled warps of a multiprocessor, from the start of its first CTAs to their end."""

    kernel: str
    gpu: str
    ctas: int
    """Resident CTAs."""
    warps: int
    """Warps of a CTA."""
    cycles: float
    lanes: tuple[WarpLane, ...]
    busy: Mapping[str, tuple[float, ...]]
    """Unit → busy share of each time slot."""
    hidden: float | None
    """Share of the cycles in which a warp waits for global memory while another computes or uses shared
    memory; None if no warp waits."""
    followed: int
    """Instructions of each warp that were simulated."""
    instructions: int
    """Instructions that each warp executes."""
    notes: tuple[str, ...] = ()


class _Warp(Front):
    """A warp during execution, and the units that it shares with others."""

    def __init__(self, number: tuple[int, int], start: float, units: _Units) -> None:
        super().__init__(units.free)
        self.number, self.units = number, units
        self.now = self.told = start
        self.place = 0
        self.boards = [Activity.ISSUE] * 8
        self.spans: list[Span] = []

    def take(self, unit: str, start: float, cycles: float) -> float:
        """Queue at a unit."""
        end = super().take(unit, start, cycles)
        self.units.note(unit, end - cycles, end)
        return end

    def tell(self, activity: Activity) -> None:
        """Attribute the time since the last call to an activity."""
        if self.now <= self.told:
            return
        if self.spans and self.spans[-1].activity is activity:
            self.spans[-1] = Span(self.spans[-1].start, self.now, activity)
        else:
            self.spans.append(Span(self.told, self.now, activity))
        self.told = self.now

    def held_up(self, control: Control, cost: Cost) -> tuple[float, Activity]:
        """The earliest issue time of an instruction, and what it waits for."""
        until, activity = self.now, Activity.ISSUE
        for board in control.waits:
            if self.ready[board] > until:
                until, activity = self.ready[board], self.boards[board]
        groups, left, whose = {
            Does.AWAITS_COPIES: (self.copies, cost.left, Activity.MEMORY),
            Does.AWAITS_PRODUCTS: (self.products, cost.left, Activity.MATRIX),
            Does.AWAITS_BULK: (self.bulk, max(len(self.bulk) - 1, 0), Activity.MEMORY),
        }.get(cost.does, ([], 0, activity))
        if len(groups) > left and groups[-1 - left] > until:
            until, activity = groups[-1 - left], whose
        return until, activity

    def go(self, control: Control, cost: Cost) -> None:
        """Execute an instruction; waits for its scoreboards count as waits for its activity."""
        does = _activity(cost)
        for board in (control.result, control.operands):
            if board is not None:
                self.boards[board] = Activity.MEMORY if does is Activity.LOADS else does
        self.execute(control, cost, 1, 0)
        self.tell(does)
        self.place += 1


class _Units:
    """The units that all warps share, and when each was busy."""

    def __init__(self) -> None:
        self.free: dict[str, float] = {}
        self.spans: defaultdict[str, list[tuple[float, float]]] = defaultdict(list)

    def note(self, unit: str, start: float, end: float) -> None:
        held = self.spans[unit]
        if held and start <= held[-1][1]:
            held[-1] = (held[-1][0], max(end, held[-1][1]))
        elif end > start:
            held.append((start, end))


def _activity(cost: Cost) -> Activity:
    if cost.l2 or cost.does in (Does.COPIES, Does.COPIES_BULK):
        return Activity.LOADS
    if cost.unit is None:
        return Activity.ISSUE
    return {"tensor": Activity.MATRIX, "lsu": Activity.SHARED}.get(cost.unit, Activity.ARITHMETIC)


def overlap_warps(
    way: Sequence[int],
    controls: Sequence[Control],
    costs: Mapping[int, Cost],
    starts: Sequence[float],
    warps: int,
    *,
    schedulers: int = 4,
    barrier: int = 20,
) -> tuple[tuple[WarpLane, ...], Mapping[str, tuple[float, ...]], float, float | None]:
    """Timelines of the warps of CTAs with given start times, busy shares, cycles, and the hidden share.

    Args:
        way: steps in the order in which each warp executes them.
        controls: of each step.
        costs: of each step of the trace, for all warps of a CTA together.
        starts: of the CTAs, in cycles.
        warps: of each CTA.
        schedulers: each issues one instruction per cycle.
        barrier: cycles of a barrier that all other warps have reached.
    """
    units = _Units()
    each = {at: cost.times(1 / warps) for at, cost in costs.items()}
    fronts = [_Warp((cta, warp), start, units) for cta, start in enumerate(starts) for warp in range(warps)]
    queue = [(front.now, at) for at, front in enumerate(fronts)]
    heapify(queue)
    turn = [0.0] * schedulers
    met: defaultdict[int, list[int]] = defaultdict(list)
    while queue:
        at = heappop(queue)[1]
        front = fronts[at]
        if front.place == len(way):
            continue
        control, cost = controls[way[front.place]], each[way[front.place]]
        until, activity = front.held_up(control, cost)
        if until > front.now:
            front.now = until
            front.tell(activity)
        elif turn[at % schedulers] > front.now:
            front.now = turn[at % schedulers]
            front.tell(Activity.ISSUE)
        else:
            turn[at % schedulers] = front.now + 1
            front.go(control, cost)
            if cost.does is Does.MEETS:
                waiting = met[front.number[0]]
                waiting.append(at)
                if len(waiting) == warps:
                    last = max(fronts[one].now for one in waiting) + barrier
                    for one in waiting:
                        fronts[one].now = last
                        fronts[one].tell(Activity.BARRIER)
                        heappush(queue, (last, one))
                    waiting.clear()
                continue
        heappush(queue, (front.now, at))
    cycles = max(0.0, *(front.now for front in fronts), *units.free.values())
    lanes = tuple(_lane(front, cycles) for front in fronts)
    busy = {unit: _shares(spans, cycles) for unit, spans in units.spans.items()}
    return lanes, busy, cycles, _hidden(fronts)


def _lane(front: _Warp, cycles: float) -> WarpLane:
    """A warp's timeline in slots, each with its dominant activity."""
    total: defaultdict[Activity, float] = defaultdict(float)
    pieces: list[defaultdict[Activity, float]] = [defaultdict(float) for _ in range(SLOTS)]
    size = cycles / SLOTS or 1.0
    for span in front.spans:
        total[span.activity] += span.end - span.start
        for slot, part in _split(span.start, span.end, size):
            pieces[slot][span.activity] += part
    spans: list[Span] = []
    for slot, held in enumerate(pieces):
        if not held:
            continue
        activity = max(held, key=lambda one: held[one])
        if spans and spans[-1].activity is activity and spans[-1].end == slot * size:
            spans[-1] = Span(spans[-1].start, (slot + 1) * size, activity)
        else:
            spans.append(Span(slot * size, (slot + 1) * size, activity))
    return WarpLane(*front.number, tuple(spans), dict(total))


def _split(start: float, end: float, size: float) -> Iterable[tuple[int, float]]:
    """The parts of a time span in each slot."""
    for slot in range(int(start / size), min(int(end / size), SLOTS - 1) + 1):
        part = min(end, (slot + 1) * size) - max(start, slot * size)
        if part > 0:
            yield slot, part


def _shares(spans: Iterable[tuple[float, float]], cycles: float) -> tuple[float, ...]:
    size = cycles / SLOTS or 1.0
    found = [0.0] * SLOTS
    for start, end in spans:
        for slot, part in _split(start, end, size):
            found[slot] += part / size
    return tuple(min(1.0, share) for share in found)


def _hidden(fronts: Iterable[_Warp]) -> float | None:
    """Share of the cycles in which a warp waits for global memory while another does not wait."""
    edges: list[tuple[float, int, int]] = []
    for front in fronts:
        for span in front.spans:
            waits, works = int(span.activity is Activity.MEMORY), int(span.activity in WORKS)
            if waits or works:
                edges += [(span.start, waits, works), (span.end, -waits, -works)]
    edges.sort()
    waiting = working = 0
    before = both = alone = 0.0
    for time, waits, works in edges:
        if waiting and working:
            both += time - before
        elif waiting:
            alone += time - before
        before, waiting, working = time, waiting + waits, working + works
    return both / (both + alone) if both + alone else None


def find_residency(
    contestant: Contestant,
    disassemble: Disassemble | None,
    *,
    gpu: str | None = None,
    limit: int = 50_000_000,
) -> Residency:
    """The modelled overlap of the first resident warps of a multiprocessor.

    Args:
        contestant: the launch.
        disassemble: converts cubins to SASS.
        gpu: product name; None selects the default product of the kernel's target.
        limit: steps after which the launch counts as endless.

    Raises:
        UsageError: it is for another vendor; its cubin, resources or the rates of the GPU are not known; or
            its path
            depends on a missing input.
    """
    loaded = load_kernel(contestant.artifact, disassemble)
    name = contestant.artifact.display_name
    if loaded.beginning is not None or loaded.cubin is None:
        raise UsageError(f"Cannot model how warps of {name} overlap: it has no cubin with control codes.")
    own = contestant.artifact.target or parse_target(f"sm_{loaded.program.arch}")
    chip, target = chip_of(own, gpu), own if gpu is None else parse_target(gpu)
    cubin = read_cubin(loaded.cubin, loaded.program.name)
    taken = find_resources(contestant.artifact.target, contestant.artifact.metadata, binary=cubin)
    blocks = blocks_of(target, taken)
    if not blocks:
        raise UsageError(f"A multiprocessor holds no CTA of {name}, or an unknown number.")
    sample = sample_launch(*fit_launch(loaded, contestant.request, contestant.constants), limit=limit)
    if sample.ended:
        raise UsageError(
            f"The path of {name} depends on missing inputs: {', '.join(sample.ended[0].reasons[:3])}."
        )
    held = min(blocks, -(-sample.launch.ctas // chip.multiprocessors))
    costs = find_costs(sample, chip, blocks, cubin.frame_bytes or 0, int(taken.shared.value or 0))
    warps = -(-loaded.threads // 32)
    apart = launch_of(chip.timing, warps, held)
    followed = sample.way[: MOST_STEPS // (held * warps)]
    lanes, busy, cycles, hidden = overlap_warps(
        followed,
        read_controls(read_code(loaded.cubin, loaded.program.name)),
        costs.steps,
        [float(apart * cta) for cta in range(held)],
        warps,
        schedulers=chip.rates.issue,
        barrier=barrier_of(chip.timing, warps),
    )
    return Residency(
        kernel=name,
        gpu=chip.name,
        ctas=held,
        warps=warps,
        cycles=cycles,
        lanes=lanes,
        busy=busy,
        hidden=hidden,
        followed=len(followed),
        instructions=len(sample.way),
        notes=_notes(sample.way, costs.steps, costs.others),
    )


def _notes(way: Sequence[int], steps: Mapping[int, Cost], others: Mapping[str, float]) -> tuple[str, ...]:
    """A note on units with much work off the recorded trace, by warps that diverge from the others."""
    along: defaultdict[str, float] = defaultdict(float)
    for index in way:
        cost = steps[index]
        if cost.unit is not None:
            for unit, cycles in ((cost.unit, cost.busy), ("l2", cost.l2), ("dram", cost.dram)):
                along[unit] += cycles
    off = [unit for unit, cycles in sorted(others.items()) if cycles > OFF_WAY * (cycles + along[unit])]
    return (f"not drawn: work of divergent warps on {', '.join(off)}",) if off else ()
