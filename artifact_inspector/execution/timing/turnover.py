"""The CTAs of a multiprocessor, warp by warp, from the start of a launch to its end.

Each CTA that ends is replaced. Warps follow the control codes, wait for scoreboards and barriers, take turns on their
schedulers and queue at the shared units; of those that wait for an entry of the load/store unit's queue, the oldest
issues first. So it matters when a CTA loads and when it computes: a queueing network only knows how much of each.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from heapq import heappop, heappush
from typing import NamedTuple

from artifact_inspector.execution.timing.control_codes import ControlCode
from artifact_inspector.execution.timing.latency_walk import SchedulingEffect, StepCost, WarpState
from artifact_inspector.hardware.timing import LSU_QUEUE_CYCLES

MOST_INSTRUCTIONS = 60_000
"""Instructions of all warps that are simulated: 0.2 s. The CTAs beyond them end at the rate of those before."""


class _Instruction(NamedTuple):
    control: ControlCode
    cost: StepCost
    uses_lsu: bool
    is_barrier: bool


class _Warp(NamedTuple):
    time: float
    number: int
    """Older CTAs have lower numbers."""
    position: int
    """In the program."""
    state: WarpState


class Turnover:
    """The residents of one multiprocessor.

    Args:
        trace: steps in the order in which each warp executes them.
        costs: of each step of the trace, for all warps of a CTA together.
        interval: fewest cycles between the starts of two CTAs.
        barrier: cycles of a barrier that all other warps have reached.
        schedulers: each issues one instruction per cycle.
    """

    def __init__(
        self,
        trace: Sequence[int],
        controls: Sequence[ControlCode],
        costs: Mapping[int, StepCost],
        warps: int,
        *,
        interval: float,
        barrier: int,
        schedulers: int = 4,
    ) -> None:
        scaled = {at: costs[at].scaled_by(1 / warps) for at in dict.fromkeys(trace)}
        instructions = {
            at: _Instruction(controls[at], cost, cost.unit == "lsu", cost.effect is SchedulingEffect.CTA_BARRIER)
            for at, cost in scaled.items()
        }
        self.program = [instructions[at] for at in trace]
        self.warps, self.interval, self.barrier = warps, interval, barrier
        self.free_at: dict[str, float] = {}
        self.next_issue = [0.0] * schedulers
        self.queue: list[_Warp] = []
        self.lsu_waiters: list[tuple[int, _Warp]] = []
        self.wakes = False
        """Whether the queue has an entry that wakes the oldest of them."""
        self.warps_left: list[int] = []
        self.at_barrier: defaultdict[int, list[_Warp]] = defaultdict(list)
        self.last_start = -interval
        self.ends: list[float] = []
        """When each CTA ended."""

    def estimate(self, ctas: int, resident: int) -> float | None:
        """The same as `run`, with a limit on the simulated instructions; None if two waves of CTAs exceed it."""
        if resident == 1 or not self.program:
            return None
        affordable = MOST_INSTRUCTIONS // max(1, self.warps * len(self.program))
        simulated = min(ctas, affordable)
        if simulated < min(ctas, 2 * resident):
            return None
        cycles = self.run(simulated, resident)
        if simulated < ctas:
            cycles += (ctas - simulated) * (self.ends[-1] - self.ends[resident - 1]) / (simulated - resident)
        return cycles

    def run(self, ctas: int, resident: int) -> float:
        """Cycles until the last of `ctas` CTAs ends, if up to `resident` share the multiprocessor."""
        for _ in range(min(ctas, resident)):
            self._start_cta(0.0)
        while self.queue:
            warp = heappop(self.queue)
            if is_wake := warp.number < 0:
                self.wakes = False
                warp, time = heappop(self.lsu_waiters)[1], warp.time
                warp.state.time = time
            if self._advance(warp) and len(self.warps_left) < ctas:
                self._start_cta(warp.state.time)
            if is_wake and self.lsu_waiters:
                self._wake_lsu_waiter(time)
        return max([*self.ends, *self.free_at.values()])

    def _start_cta(self, time: float) -> None:
        self.last_start = max(self.last_start + self.interval, time)
        cta = len(self.warps_left)
        self.warps_left.append(self.warps)
        for warp in range(self.warps):
            state = WarpState(self.free_at)
            state.time = self.last_start
            heappush(self.queue, _Warp(self.last_start, cta * self.warps + warp, 0, state))

    def _wake_lsu_waiter(self, time: float) -> None:
        if self.wakes:
            return
        self.wakes = True
        room_at = max(self.free_at.get("lsu", 0.0) - LSU_QUEUE_CYCLES, time)
        heappush(self.queue, _Warp(room_at, -1, 0, WarpState()))

    def _advance(self, warp: _Warp) -> bool:
        """Let a warp issue until another one is earlier; returns whether its CTA ended."""
        _, number, position, state = warp
        scheduler, next_issue = number % len(self.next_issue), self.next_issue
        while position < len(self.program):
            control, cost, uses_lsu, is_barrier = self.program[position]
            ready = state.time
            for scoreboard in control.awaited_scoreboards:
                if state.scoreboard_ready[scoreboard] > ready:
                    ready = state.scoreboard_ready[scoreboard]
            if ready > state.time or (self.queue and state.time > self.queue[0].time):
                state.time = ready
                heappush(self.queue, _Warp(ready, number, position, state))
                return False
            if uses_lsu and self.free_at.get("lsu", 0.0) - LSU_QUEUE_CYCLES > state.time:
                heappush(self.lsu_waiters, (number, _Warp(state.time, number, position, state)))
                self._wake_lsu_waiter(state.time)
                return False
            state.time = max(state.time, next_issue[scheduler])
            next_issue[scheduler] = state.time + 1
            state.execute(control, cost, 1, 0)
            position += 1
            if is_barrier:
                self._meet(_Warp(state.time, number, position, state))
                return False
        cta = number // self.warps
        self.warps_left[cta] -= 1
        if self.warps_left[cta]:
            return False
        self.ends.append(state.time)
        return True

    def _meet(self, warp: _Warp) -> None:
        """Wait at a barrier; the last warp releases all."""
        waiting = self.at_barrier[warp.number // self.warps]
        waiting.append(warp)
        if len(waiting) == self.warps:
            time = max(other.time for other in waiting) + self.barrier
            for other in waiting:
                other.state.time = time
                heappush(self.queue, other._replace(time=time))
            waiting.clear()
