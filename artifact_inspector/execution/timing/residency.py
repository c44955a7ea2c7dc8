"""A model of how the resident warps of a multiprocessor overlap; not validated by measurements.

The warps of the first resident CTAs run through the program individually. They follow the compiler's control
codes, take turns on their scheduler, wait for scoreboards, copies, matrix products and barriers, and queue at
the shared units. Costs and latencies are those of a ranking (`costs`, `walking`): those of an average CTA,
divided equally among its warps.
"""

from __future__ import annotations

import sys
from collections import defaultdict, deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from heapq import heapify, heappop, heappush

from artifact_inspector.errors import UsageError
from artifact_inspector.execution.argument_matching import match_launch
from artifact_inspector.execution.kernel_loader import load_kernel
from artifact_inspector.execution.timing.candidates import RankingCandidate
from artifact_inspector.execution.timing.control_codes import ControlCode
from artifact_inspector.execution.timing.costs import CtaCosts, GpuModel
from artifact_inspector.execution.timing.latency_walk import IN_ORDER_UNITS, SchedulingEffect, StepCost, WarpState
from artifact_inspector.execution.timing.ranking import (
    barrier_cycles,
    cost_model_of,
    gpu_model_of,
    launch_cycles,
    read_resources,
    read_schedule,
    resident_ctas_of,
)
from artifact_inspector.execution.timing.sampling import LaunchSample, sample_launch
from artifact_inspector.facts.modules import Disassemble
from artifact_inspector.hardware.targets import parse_target

MOST_MODELLED_INSTRUCTIONS = 40_000
"""Instructions of all warps together that are simulated: some iterations, few enough to tell apart."""
QUEUE_ENTRIES = 8
"""Accesses of one scheduler that a queue of the load/store unit holds. No source states it (docs/lab/time.md)."""
SLOTS = 200
"""Time slots of the diagram."""
OFF_TRACE_SHARE = 0.05
"""Share of a unit's work off the recorded trace from which a note reports it."""


class StallReason(Enum):
    """Why a warp does not issue its next instruction, in Nsight Compute's terms."""

    __hash__ = object.__hash__  # a key of hot dictionaries: that of Enum is Python code

    LONG_SCOREBOARD = "long scoreboard"
    """Waits for global or local memory, or for an asynchronous copy."""
    SHORT_SCOREBOARD = "short scoreboard"
    """Waits for shared memory, a shuffle, a special function or a special register."""
    BARRIER = "barrier"
    """Waits for the other warps of its CTA, or for matrix products of a warpgroup, as Nsight Compute counts them."""
    MATH_THROTTLE = "math pipe throttle"
    """Waits for an arithmetic unit that still executes the instruction before."""
    LG_THROTTLE = "lg throttle"
    """Waits until the queue for accesses to global memory has a free slot."""
    MIO_THROTTLE = "mio throttle"
    """The same for shared memory and special functions."""
    WAIT = "wait"
    """Waits for the fixed latency of the instruction before it."""
    NOT_SELECTED = "not selected"
    """Another warp issues."""


class Activity(Enum):
    """What a warp does, or waits for."""

    __hash__ = object.__hash__  # a key of hot dictionaries: that of Enum is Python code

    LOADS = "global memory: issuing loads, copies, stores"
    MATRIX = "matrix products: issuing, waiting for results"
    ARITHMETIC = "arithmetic: issuing, waiting for results"
    SHARED = "shared memory, L1, shuffles: issuing, waiting"
    ISSUE = "other: issuing, waiting to issue"
    MEMORY = "waiting for global memory"
    BARRIER = "waiting at a barrier"


WORKING_ACTIVITIES = frozenset((Activity.LOADS, Activity.MATRIX, Activity.ARITHMETIC, Activity.SHARED, Activity.ISSUE))
"""Activities other than waiting for memory or for other warps."""


@dataclass(frozen=True, slots=True)
class ActivitySpan:
    """A time span of a warp."""

    start: float
    """Cycles from the start of the first CTA."""
    end: float
    activity: Activity
    """The one that takes most of each time slot."""


@dataclass(frozen=True, slots=True)
class WarpTimeline:
    """The timeline of one warp."""

    cta: int
    """CTA number on the multiprocessor, from 0."""
    warp: int
    """Warp number in the CTA, from 0."""
    spans: tuple[ActivitySpan, ...]
    cycles: Mapping[Activity, float]
    """Total cycles of each activity, not rounded to slots."""


@dataclass(frozen=True, slots=True)
class Residency:
    """The modelled warps of a multiprocessor, from the start of its first CTAs to their end."""

    kernel: str
    gpu: str
    resident_ctas: int
    """Resident CTAs."""
    warps_per_cta: int
    """Warps of a CTA."""
    cycles: float
    timelines: tuple[WarpTimeline, ...]
    unit_utilization: Mapping[str, tuple[float, ...]]
    """Unit → busy share of each time slot."""
    hidden_wait_share: float | None
    """Share of the cycles in which a warp waits for global memory while another computes or uses shared
    memory; None if no warp waits."""
    modelled_instructions: int
    """Instructions of each warp that were simulated."""
    warp_instructions: int
    """Instructions that each warp executes."""
    notes: tuple[str, ...] = ()


class _ResidentWarp(WarpState):
    """A warp during execution, and the units that it shares with others."""

    in_order_units = IN_ORDER_UNITS - {"xu"}

    def __init__(
        self, number: tuple[int, int], start: float, units: _SharedUnits, scheduler: int = 0, position: int = 0
    ) -> None:
        super().__init__(units.free_at)
        self.number, self.units, self.scheduler = number, units, scheduler
        self.time = self.attributed_until = start
        self.trace_position = position
        self.scoreboard_activities = [Activity.ISSUE] * 8
        self.scoreboard_reasons = [StallReason.WAIT] * 8
        self.spans: list[ActivitySpan] = []
        self.throttled_cycles = 0.0
        """Cycles for which the last instruction waited for its unit."""

    def occupy(self, unit: str, start: float, cycles: float) -> float:
        """Queue at a unit."""
        end = super().occupy(unit, start, cycles)
        self.units.record_busy(unit, end - cycles, end)
        return end

    def attribute_time(self, activity: Activity) -> None:
        """Attribute the time since the last call to an activity."""
        if self.time <= self.attributed_until:
            return
        if self.spans and self.spans[-1].activity is activity:
            self.spans[-1] = ActivitySpan(self.spans[-1].start, self.time, activity)
        else:
            self.spans.append(ActivitySpan(self.attributed_until, self.time, activity))
        self.attributed_until = self.time

    def next_issue(self, control: ControlCode, cost: StepCost) -> tuple[float, Activity, StallReason]:
        """The earliest issue time of an instruction, and what it waits for."""
        until, activity, reason = self.time, Activity.ISSUE, StallReason.WAIT
        for scoreboard in control.awaited_scoreboards:
            if self.scoreboard_ready[scoreboard] > until:
                until, activity = self.scoreboard_ready[scoreboard], self.scoreboard_activities[scoreboard]
                reason = self.scoreboard_reasons[scoreboard]
        groups, groups_left, wait = self.copy_groups, sys.maxsize, (Activity.MEMORY, StallReason.LONG_SCOREBOARD)
        if cost.effect is SchedulingEffect.WAITS_FOR_COPIES:
            groups_left = cost.groups_left
        elif cost.effect is SchedulingEffect.WAITS_FOR_PRODUCTS:
            groups, groups_left, wait = self.product_groups, cost.groups_left, (Activity.MATRIX, StallReason.BARRIER)
        elif cost.effect is SchedulingEffect.WAITS_FOR_BULK:
            groups, groups_left = self.bulk_copies, max(len(self.bulk_copies) - 1, 0)
        if len(groups) > groups_left and groups[-1 - groups_left] > until:
            until, (activity, reason) = groups[-1 - groups_left], wait
        queue = self.units.queue_of(self.scheduler, cost)
        if queue is not None and len(queue) == queue.maxlen and queue[0] > until:
            until, activity = queue[0], _activity_of(cost)
            reason = StallReason.LG_THROTTLE if cost.is_global else StallReason.MIO_THROTTLE
        return until, activity, reason

    def issue(self, control: ControlCode, cost: StepCost) -> None:
        """Execute an instruction; waits for its scoreboards count as waits for its activity."""
        activity = _activity_of(cost)
        for scoreboard in (control.result_scoreboard, control.operand_scoreboard):
            if scoreboard is not None:
                self.scoreboard_activities[scoreboard] = Activity.MEMORY if activity is Activity.LOADS else activity
                self.scoreboard_reasons[scoreboard] = (
                    StallReason.LONG_SCOREBOARD if cost.is_global else StallReason.SHORT_SCOREBOARD
                )
        accepted = self.time
        self.execute(control, cost, 1, 0)
        queue = self.units.queue_of(self.scheduler, cost)
        if queue is not None:
            queue.append(self.units.free_at[cost.unit or ""] - cost.busy_cycles)
        self.throttled_cycles = max(self.time - accepted - max(control.stall_cycles, 1), 0.0)
        self.attribute_time(activity)
        self.trace_position += 1


class _SharedUnits:
    """The units that all warps share, and when each was busy."""

    def __init__(self) -> None:
        self.free_at: dict[str, float] = {}
        self.busy_spans: defaultdict[str, list[tuple[float, float]]] = defaultdict(list)
        self.queues: defaultdict[tuple[int, bool], deque[float]] = defaultdict(lambda: deque(maxlen=QUEUE_ENTRIES))

    def queue_of(self, scheduler: int, cost: StepCost) -> deque[float] | None:
        """When the instructions start that a scheduler put last into the queue for such an instruction."""
        if not cost.busy_cycles or cost.unit not in ("lsu", "xu"):
            return None
        return self.queues[scheduler, cost.is_global]

    def record_busy(self, unit: str, start: float, end: float) -> None:
        unit_spans = self.busy_spans[unit]
        if unit_spans and start <= unit_spans[-1][1]:
            unit_spans[-1] = (unit_spans[-1][0], max(end, unit_spans[-1][1]))
        elif end > start:
            unit_spans.append((start, end))


def _activity_of(cost: StepCost) -> Activity:
    if cost.l2_cycles or cost.effect in (SchedulingEffect.STARTS_COPY, SchedulingEffect.STARTS_BULK_COPY):
        return Activity.LOADS
    if cost.unit is None:
        return Activity.ISSUE
    return {"tensor": Activity.MATRIX, "lsu": Activity.SHARED}.get(cost.unit, Activity.ARITHMETIC)


def overlap_warps(
    trace: Sequence[int],
    controls: Sequence[ControlCode],
    costs: Mapping[int, StepCost],
    starts: Sequence[float],
    warps: int,
    *,
    schedulers: int = 4,
    barrier: int = 20,
    stalls: dict[tuple[int, StallReason], float] | None = None,
    offsets: Sequence[int] | None = None,
    steps: int | None = None,
) -> tuple[tuple[WarpTimeline, ...], Mapping[str, tuple[float, ...]], float, float | None]:
    """Timelines of the warps of CTAs with given start times, busy shares, cycles, and the hidden share.

    Args:
        trace: steps in the order in which each warp executes them.
        costs: of each step of the trace, for all warps of a CTA together.
        starts: of the CTAs, in cycles.
        schedulers: each issues one instruction per cycle.
        barrier: cycles of a barrier that all other warps have reached.
        stalls: receives the cycles of all warps by the step that could not issue, and why.
        offsets: where each CTA begins in the trace; it goes on at the start when it has reached the end.
        steps: that each warp executes; None for the whole trace.
    """
    units = _SharedUnits()
    stalls = {} if stalls is None else stalls

    def record_stall(position: int, reason: StallReason, cycles: float) -> None:
        if cycles > 0:
            key = trace[position % len(trace)], reason
            stalls[key] = stalls.get(key, 0.0) + cycles

    warp_costs = {warp_number: cost.scaled_by(1 / warps) for warp_number, cost in costs.items()}
    warp_states = [
        _ResidentWarp((cta, warp), start, units, (cta * warps + warp) % schedulers, offsets[cta] if offsets else 0)
        for cta, start in enumerate(starts)
        for warp in range(warps)
    ]
    ends = [warp_state.trace_position + (steps or len(trace)) for warp_state in warp_states]
    queue = [(warp_state.time, warp_number) for warp_number, warp_state in enumerate(warp_states)]
    heapify(queue)
    next_issue_cycle = [0.0] * schedulers
    waiting_by_cta: defaultdict[int, list[int]] = defaultdict(list)
    while queue:
        warp_number = heappop(queue)[1]
        warp_state = warp_states[warp_number]
        position = warp_state.trace_position
        if position == ends[warp_number]:
            continue
        control, cost = controls[trace[position % len(trace)]], warp_costs[trace[position % len(trace)]]
        until, activity, reason = warp_state.next_issue(control, cost)
        if until > warp_state.time:
            record_stall(position, reason, until - warp_state.time)
            warp_state.time = until
            warp_state.attribute_time(activity)
        elif next_issue_cycle[warp_number % schedulers] > warp_state.time:
            record_stall(
                position, StallReason.NOT_SELECTED, next_issue_cycle[warp_number % schedulers] - warp_state.time
            )
            warp_state.time = next_issue_cycle[warp_number % schedulers]
            warp_state.attribute_time(Activity.ISSUE)
        else:
            next_issue_cycle[warp_number % schedulers] = warp_state.time + 1
            warp_state.issue(control, cost)
            selected_share = min(1.0, 1 / (cost.busy_cycles * schedulers)) if cost.busy_cycles else 0.0
            record_stall(position, StallReason.MATH_THROTTLE, warp_state.throttled_cycles * (1 - selected_share))
            record_stall(position, StallReason.NOT_SELECTED, warp_state.throttled_cycles * selected_share)
            record_stall(position + 1, StallReason.WAIT, control.stall_cycles - 1)
            if cost.effect is SchedulingEffect.CTA_BARRIER:
                waiting = waiting_by_cta[warp_state.number[0]]
                waiting.append(warp_number)
                if len(waiting) == warps:
                    release_cycle = max(warp_states[warp_index].time for warp_index in waiting) + barrier
                    for warp_index in waiting:
                        record_stall(position + 1, StallReason.BARRIER, release_cycle - warp_states[warp_index].time)
                        warp_states[warp_index].time = release_cycle
                        warp_states[warp_index].attribute_time(Activity.BARRIER)
                        heappush(queue, (release_cycle, warp_index))
                    waiting.clear()
                continue
        heappush(queue, (warp_state.time, warp_number))
    cycles = max(0.0, *(warp_state.time for warp_state in warp_states), *units.free_at.values())
    lanes = tuple(_warp_timeline(warp_state, cycles) for warp_state in warp_states)
    busy = {unit: _busy_shares(spans, cycles) for unit, spans in units.busy_spans.items()}
    return lanes, busy, cycles, _hidden_share(warp_states)


def _warp_timeline(warp_state: _ResidentWarp, cycles: float) -> WarpTimeline:
    """A warp's timeline in slots, each with its dominant activity."""
    total: defaultdict[Activity, float] = defaultdict(float)
    slots: list[defaultdict[Activity, float]] = [defaultdict(float) for _ in range(SLOTS)]
    slot_length = cycles / SLOTS or 1.0
    for span in warp_state.spans:
        total[span.activity] += span.end - span.start
        for slot, cycles_in_slot in _split_into_slots(span.start, span.end, slot_length):
            slots[slot][span.activity] += cycles_in_slot
    spans: list[ActivitySpan] = []
    for slot, slot_cycles in enumerate(slots):
        if not slot_cycles:
            continue
        activity = max(slot_cycles, key=lambda candidate: slot_cycles[candidate])
        if spans and spans[-1].activity is activity and spans[-1].end == slot * slot_length:
            spans[-1] = ActivitySpan(spans[-1].start, (slot + 1) * slot_length, activity)
        else:
            spans.append(ActivitySpan(slot * slot_length, (slot + 1) * slot_length, activity))
    return WarpTimeline(*warp_state.number, tuple(spans), dict(total))


def _split_into_slots(start: float, end: float, size: float) -> Iterable[tuple[int, float]]:
    """The parts of a time span in each slot."""
    for slot in range(int(start / size), min(int(end / size), SLOTS - 1) + 1):
        cycles_in_slot = min(end, (slot + 1) * size) - max(start, slot * size)
        if cycles_in_slot > 0:
            yield slot, cycles_in_slot


def _busy_shares(spans: Iterable[tuple[float, float]], cycles: float) -> tuple[float, ...]:
    size = cycles / SLOTS or 1.0
    shares = [0.0] * SLOTS
    for start, end in spans:
        for slot, cycles_in_slot in _split_into_slots(start, end, size):
            shares[slot] += cycles_in_slot / size
    return tuple(min(1.0, share) for share in shares)


def _hidden_share(fronts: Iterable[_ResidentWarp]) -> float | None:
    """Share of the cycles in which a warp waits for global memory while another does not wait."""
    edges: list[tuple[float, int, int]] = []
    for front in fronts:
        for span in front.spans:
            waits, works = int(span.activity is Activity.MEMORY), int(span.activity in WORKING_ACTIVITIES)
            if waits or works:
                edges += [(span.start, waits, works), (span.end, -waits, -works)]
    edges.sort()
    waiting = working = 0
    last_edge = hidden_cycles = exposed_cycles = 0.0
    for time, waits, works in edges:
        if waiting and working:
            hidden_cycles += time - last_edge
        elif waiting:
            exposed_cycles += time - last_edge
        last_edge, waiting, working = time, waiting + waits, working + works
    return hidden_cycles / (hidden_cycles + exposed_cycles) if hidden_cycles + exposed_cycles else None


def overlap_sample(
    sample: LaunchSample,
    costs: CtaCosts,
    controls: Sequence[ControlCode],
    gpu_model: GpuModel,
    resident_ctas: int,
    *,
    stalls: dict[tuple[int, StallReason], float] | None = None,
    in_step: bool = True,
) -> tuple[Sequence[int], tuple[tuple[WarpTimeline, ...], Mapping[str, tuple[float, ...]], float, float | None]]:
    """The steps of a sampled launch that are modelled, and the result of `overlap_warps` for its first CTAs.

    Args:
        stalls: as of `overlap_warps`.
        in_step: whether CTAs start at their beginning, as the first of a launch; otherwise each is at another place
            of its way, as in the middle of a launch.
    """
    warps = -(-sample.loaded.threads // gpu_model.warp_size)
    steps = min(len(sample.trace), max(1, MOST_MODELLED_INSTRUCTIONS // (resident_ctas * warps)))
    interval = launch_cycles(gpu_model.timing, warps, resident_ctas)
    return sample.trace[:steps], overlap_warps(
        sample.trace,
        controls,
        costs.step_costs,
        [float(interval * cta) if in_step else 0.0 for cta in range(resident_ctas)],
        warps,
        schedulers=gpu_model.rates.issue,
        barrier=barrier_cycles(gpu_model.timing, warps),
        stalls=stalls,
        offsets=[0 if in_step else len(sample.trace) * cta // resident_ctas for cta in range(resident_ctas)],
        steps=steps,
    )


def find_residency(
    candidate: RankingCandidate, disassemble: Disassemble | None, *, gpu: str | None = None, limit: int = 50_000_000
) -> Residency:
    """The modelled overlap of the first resident warps of a multiprocessor.

    Arguments as of `ranking.rank_launches`.

    Raises:
        UsageError: its cubin, resources or the rates of the GPU are not known; or its path depends on a missing input.
    """
    loaded = load_kernel(candidate.artifact, disassemble)
    name = candidate.artifact.display_name
    controls = read_schedule(loaded)
    if controls is None:
        raise UsageError(f"Cannot model how warps of {name} overlap: it has no cubin with control codes.")
    own_target = candidate.artifact.target or parse_target(loaded.program.target)
    gpu_model, target = gpu_model_of(own_target, gpu), own_target if gpu is None else parse_target(gpu)
    cubin, resources = read_resources(loaded)
    occupancy_ctas = resident_ctas_of(target, resources)
    if not occupancy_ctas:
        raise UsageError(f"A multiprocessor holds no CTA of {name}, or an unknown number.")
    sample = sample_launch(*match_launch(loaded, candidate.request, candidate.constants), limit=limit)
    if sample.unfinished:
        raise UsageError(
            f"The path of {name} depends on missing inputs: {', '.join(sample.unfinished[0].reasons[:3])}."
        )
    resident_ctas = min(occupancy_ctas, -(-sample.launch.ctas // gpu_model.multiprocessors))
    frame_bytes = 0 if cubin is None else cubin.frame_bytes or 0
    costs = cost_model_of(loaded)(
        sample, gpu_model, occupancy_ctas, frame_bytes, int(resources.shared.value or 0)
    ).find()
    if costs.unknown_rates:
        raise UsageError(f"Cannot model {name} on {gpu_model.name}: {costs.unknown_rates[0]} is unknown.")
    modelled_trace, (lanes, busy, cycles, hidden) = overlap_sample(sample, costs, controls, gpu_model, resident_ctas)
    return Residency(
        kernel=name,
        gpu=gpu_model.name,
        resident_ctas=resident_ctas,
        warps_per_cta=-(-loaded.threads // gpu_model.warp_size),
        cycles=cycles,
        timelines=lanes,
        unit_utilization=busy,
        hidden_wait_share=hidden,
        modelled_instructions=len(modelled_trace),
        warp_instructions=len(sample.trace),
        notes=_off_trace_notes(sample.trace, costs.step_costs, costs.off_trace_cycles),
    )


def _off_trace_notes(
    trace: Sequence[int], steps: Mapping[int, StepCost], off_trace_cycles: Mapping[str, float]
) -> tuple[str, ...]:
    """A note on units with much work off the recorded trace, by warps that diverge from the others."""
    trace_cycles: defaultdict[str, float] = defaultdict(float)
    for index in trace:
        cost = steps[index]
        if cost.unit is not None:
            for unit, cycles in ((cost.unit, cost.busy_cycles), ("l2", cost.l2_cycles), ("dram", cost.dram_cycles)):
                trace_cycles[unit] += cycles
    off_trace_units = [
        unit
        for unit, cycles in sorted(off_trace_cycles.items())
        if cycles > OFF_TRACE_SHARE * (cycles + trace_cycles[unit])
    ]
    return (f"not drawn: work of divergent warps on {', '.join(off_trace_units)}",) if off_trace_units else ()
