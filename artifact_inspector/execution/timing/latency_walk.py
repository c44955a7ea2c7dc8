"""The latency of a single CTA: its warps go through the program in lockstep, by its control codes.

A warp stalls as encoded by the compiler, and waits for scoreboards, groups of copies and products, and
barriers. The warps of the CTA queue at each unit. A load completes when the caches or device memory have
moved its bytes and its latency has passed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from artifact_inspector.execution.timing.control_codes import ControlCode

IN_ORDER_UNITS = frozenset(("alu", "fma", "xu", "double"))
"""Units that block the warp until they accept the instruction; the others have queues."""


class SchedulingEffect(Enum):
    """The effect of an instruction on waits other than scoreboards."""

    NOTHING = "nothing"
    STARTS_COPY = "copies"
    """Starts an asynchronous copy."""
    CLOSES_COPY_GROUP = "closes copies"
    STARTS_GROUP = "load group"
    """A load or store that is a group by itself, as AMD's."""
    WAITS_FOR_COPIES = "awaits copies"
    CLOSES_PRODUCT_GROUP = "closes products"
    """The last matrix product of a warpgroup's group."""
    WAITS_FOR_PRODUCTS = "awaits products"
    CTA_BARRIER = "meets"
    """A barrier of the CTA."""
    STARTS_BULK_COPY = "copies bulk"
    WAITS_FOR_BULK = "awaits bulk"


_NOTHING = SchedulingEffect.NOTHING


class StepCost(NamedTuple):
    """The cost of an instruction that all warps of a CTA execute once."""

    unit: str | None
    """The unit that it occupies."""
    busy_cycles: float
    """Cycles for which it occupies the unit."""
    latency_cycles: float
    """Further cycles until its result is available."""
    l2_cycles: float = 0.0
    """Cycles for which it occupies the path to L2."""
    dram_cycles: float = 0.0
    """Cycles for which it occupies this multiprocessor's share of device memory."""
    effect: SchedulingEffect = SchedulingEffect.NOTHING
    groups_left: int = 0
    """Groups that a wait leaves in flight."""
    shared_read_cycles: float = 0.0
    """Cycles for which a matrix product occupies shared memory to read its operands."""
    is_global: bool = False
    """Whether it accesses global or local memory."""

    def scaled_by(self, count: float) -> StepCost:
        """The cost for several CTAs, or a fraction of one."""
        return self._replace(
            busy_cycles=self.busy_cycles * count,
            l2_cycles=self.l2_cycles * count,
            dram_cycles=self.dram_cycles * count,
            shared_read_cycles=self.shared_read_cycles * count,
        )


@dataclass(frozen=True, slots=True)
class CtaWalk:
    """The result of a walk by one CTA."""

    cycles: float
    """From its first instruction to its last byte."""
    busy_cycles: Mapping[str, float]
    """Unit → busy cycles."""


class WarpState:
    """The state of warps that run in lockstep, and what they have in flight.

    Args:
        free: unit → time when its queue is empty; shared by all that queue there.
        busy: unit → busy cycles.
    """

    in_order_units = IN_ORDER_UNITS

    def __init__(self, free: dict[str, float] | None = None, busy: dict[str, float] | None = None) -> None:
        self.time = 0.0
        self.scoreboard_ready = [0.0] * 8
        self.unit_free_at = {} if free is None else free
        self.unit_busy = {} if busy is None else busy
        self.last_copy_done = 0.0
        self.copy_groups: list[float] = []
        self.product_groups: list[float] = []
        self.bulk_copies: list[float] = []

    def occupy(self, unit: str, start: float, cycles: float) -> float:
        """Queue at a unit; returns when it is done."""
        free_at = self.unit_free_at.get(unit, 0.0)
        end = (start if start > free_at else free_at) + cycles
        self.unit_free_at[unit] = end
        self.unit_busy[unit] = self.unit_busy.get(unit, 0.0) + cycles
        return end

    def wait_for_groups(self, groups: list[float], groups_left: int) -> None:
        """Wait until at most `groups_left` of the groups in flight, oldest first, remain."""
        if len(groups) > groups_left:
            self.time = max(self.time, groups[-1 - groups_left])
            del groups[: len(groups) - groups_left]

    def execute(self, control: ControlCode, cost: StepCost, issue: float, barrier: int) -> None:
        """Execute an instruction whose scoreboards are free.

        Comparisons instead of `max`, and values read once: a walk takes two thirds as long.
        """
        unit, busy, latency, l2, dram, effect, _, shared_read, _ = cost
        done = self.time
        if unit is not None:
            done = self.occupy(unit, self.time, busy)
            if unit in self.in_order_units:
                self.time = done - busy
            if shared_read:
                done = max(done, self.occupy("lsu", self.time, shared_read))
        operands_read = done
        if l2:
            at_l2 = self.occupy("l2", done, l2)
            done = max(at_l2, self.occupy("dram", at_l2 - l2, dram)) if dram else at_l2
        done += latency
        if effect is not _NOTHING:
            _apply_effect(self, cost, done, barrier)
        result, operands = control.result_scoreboard, control.operand_scoreboard
        if result is not None and done > self.scoreboard_ready[result]:
            self.scoreboard_ready[result] = done
        if operands is not None and operands_read > self.scoreboard_ready[operands]:
            self.scoreboard_ready[operands] = operands_read
        stall = control.stall_cycles
        self.time += stall if stall > issue else issue


def walk_cta(
    trace: Sequence[int], controls: Sequence[ControlCode], costs: Mapping[int, StepCost], issue: float, barrier: int
) -> CtaWalk:
    """The latency of a CTA.

    Args:
        trace: steps in the order in which its warps execute them; `~step` only waits for what the step awaits.
        costs: of each step of the trace.
        issue: cycles in which all its warps issue one instruction.
        barrier: cycles of a barrier that all other warps have reached.
    """
    state = WarpState()
    ready, free, busy_cycles = state.scoreboard_ready, state.unit_free_at, state.unit_busy
    plan: dict[int, tuple[Sequence[int], tuple[str, float, bool, float] | None]] = {}
    for index in {*trace}:
        control, cost = controls[index if index >= 0 else ~index], costs.get(index)
        plan[index] = control.awaited_scoreboards, None
        if cost is None or cost.unit is None or cost.l2_cycles or cost.shared_read_cycles:
            continue
        if cost.effect is _NOTHING and control.result_scoreboard is control.operand_scoreboard is None:
            short = cost.unit, cost.busy_cycles, cost.unit in IN_ORDER_UNITS, max(control.stall_cycles, issue)
            plan[index] = control.awaited_scoreboards, short
    for index in trace:
        awaited_scoreboards, short_step = plan[index]
        for scoreboard in awaited_scoreboards:
            if ready[scoreboard] > state.time:
                state.time = ready[scoreboard]
        if short_step is not None:  # as `execute`, without its calls
            unit, busy, blocks, stall = short_step
            free_at, time = free.get(unit, 0.0), state.time
            free[unit] = end = (time if time > free_at else free_at) + busy
            busy_cycles[unit] = busy_cycles.get(unit, 0.0) + busy
            state.time = (end - busy if blocks else time) + stall
        elif index >= 0:
            state.execute(controls[index], costs[index], issue, barrier)
    return CtaWalk(max(state.time, *state.unit_free_at.values(), 0.0), state.unit_busy)


def count_memory_waits(trace: Sequence[int], controls: Sequence[ControlCode], costs: Mapping[int, StepCost]) -> int:
    """How often a warp waits for global memory: for loads that it issued since it last did, or for copies."""
    pending: set[int] = set()
    waits, has_issued = 0, False
    for index in trace:
        control = controls[index if index >= 0 else ~index]
        if pending and not pending.isdisjoint(control.awaited_scoreboards):
            waits, has_issued = waits + has_issued, False
            pending.difference_update(control.awaited_scoreboards)
        if index >= 0:
            cost = costs[index]
            waits += cost.effect in (SchedulingEffect.WAITS_FOR_COPIES, SchedulingEffect.WAITS_FOR_BULK)
            if cost.is_global and control.result_scoreboard is not None:
                pending.add(control.result_scoreboard)
                has_issued = True
    return waits


def _apply_effect(state: WarpState, cost: StepCost, done: float, barrier: int) -> None:
    match cost.effect:
        case SchedulingEffect.STARTS_COPY:
            state.last_copy_done = max(state.last_copy_done, done)
        case SchedulingEffect.CLOSES_COPY_GROUP:
            state.copy_groups.append(state.last_copy_done)
        case SchedulingEffect.STARTS_GROUP:
            state.copy_groups.append(done)
        case SchedulingEffect.WAITS_FOR_COPIES:
            state.wait_for_groups(state.copy_groups, cost.groups_left)
        case SchedulingEffect.CLOSES_PRODUCT_GROUP:
            state.product_groups.append(done)
        case SchedulingEffect.WAITS_FOR_PRODUCTS:
            state.wait_for_groups(state.product_groups, cost.groups_left)
        case SchedulingEffect.CTA_BARRIER:
            state.time += barrier
        case SchedulingEffect.STARTS_BULK_COPY:
            state.bulk_copies.append(done)
        case SchedulingEffect.WAITS_FOR_BULK if state.bulk_copies:
            state.time = max(state.time, state.bulk_copies.pop(0))
