"""The latency of one CTA that runs alone: its warps go through the program in lockstep, by its control codes.

A warp stalls as encoded by the compiler, and waits for scoreboards, groups of copies and products, and
barriers. The warps of the CTA queue at each unit. A load completes when the caches or device memory have
moved its bytes and its latency has passed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from artifact_inspector.execution.timing.controls import Control

IN_ORDER = frozenset(("alu", "fma", "xu", "double"))
"""Units that block the warp until they accept the instruction; the others have queues."""


class Does(Enum):
    """The effect of an instruction on waits other than scoreboards."""

    NOTHING = "nothing"
    COPIES = "copies"
    """Starts an asynchronous copy."""
    CLOSES_COPIES = "closes copies"
    AWAITS_COPIES = "awaits copies"
    CLOSES_PRODUCTS = "closes products"
    """The last matrix product of a warpgroup's group."""
    AWAITS_PRODUCTS = "awaits products"
    MEETS = "meets"
    """A barrier of the CTA."""
    COPIES_BULK = "copies bulk"
    AWAITS_BULK = "awaits bulk"


class Cost(NamedTuple):
    """The cost of an instruction that all warps of a CTA execute once."""

    unit: str | None
    """The unit that it occupies."""
    busy: float
    """Cycles for which it occupies the unit."""
    delay: float
    """Further cycles until its result is available."""
    l2: float = 0.0
    """Cycles for which it occupies the path to L2."""
    dram: float = 0.0
    """Cycles for which it occupies this multiprocessor's share of device memory."""
    does: Does = Does.NOTHING
    left: int = 0
    """Groups that a wait leaves in flight."""
    reads: float = 0.0
    """Cycles for which a matrix product occupies shared memory to read its operands."""

    def times(self, count: float) -> Cost:
        """The cost for several CTAs, or a fraction of one."""
        return self._replace(
            busy=self.busy * count, l2=self.l2 * count, dram=self.dram * count, reads=self.reads * count
        )


@dataclass(frozen=True, slots=True)
class Walk:
    """The result of a walk by one CTA."""

    cycles: float
    """From its first instruction to its last byte."""
    busy: Mapping[str, float]
    """Unit → busy cycles."""


class Front:
    """The state of warps that run in lockstep, and what they have in flight.

    Args:
        free: unit → time when its queue is empty; shared by all that queue there.
        busy: unit → busy cycles.
    """

    def __init__(self, free: dict[str, float] | None = None, busy: dict[str, float] | None = None) -> None:
        self.now = 0.0
        self.ready = [0.0] * 8
        self.free = {} if free is None else free
        self.busy = {} if busy is None else busy
        self.copied = 0.0
        self.copies: list[float] = []
        self.products: list[float] = []
        self.bulk: list[float] = []

    def take(self, unit: str, start: float, cycles: float) -> float:
        """Queue at a unit; returns when it is done."""
        end = max(start, self.free.get(unit, 0.0)) + cycles
        self.free[unit] = end
        self.busy[unit] = self.busy.get(unit, 0.0) + cycles
        return end

    def wait(self, held: list[float], left: int) -> None:
        """Wait until at most `left` of the groups in flight, oldest first, remain."""
        if len(held) > left:
            self.now = max(self.now, held[-1 - left])
            del held[: len(held) - left]

    def execute(self, control: Control, cost: Cost, issue: float, barrier: int) -> None:
        """Execute an instruction whose scoreboards are free."""
        done = self.now
        if cost.unit is not None:
            done = self.take(cost.unit, self.now, cost.busy)
            if cost.unit in IN_ORDER:
                self.now = done - cost.busy
            if cost.reads:
                done = max(done, self.take("lsu", self.now, cost.reads))
        read = done
        if cost.l2:
            at_l2 = self.take("l2", done, cost.l2)
            done = max(at_l2, self.take("dram", at_l2 - cost.l2, cost.dram)) if cost.dram else at_l2
        done += cost.delay
        if cost.does is not Does.NOTHING:
            _act(self, cost, done, barrier)
        if control.result is not None:
            self.ready[control.result] = max(self.ready[control.result], done)
        if control.operands is not None:
            self.ready[control.operands] = max(self.ready[control.operands], read)
        self.now += max(control.stall, issue)


def walk(
    way: Sequence[int], controls: Sequence[Control], costs: Mapping[int, Cost], issue: float, barrier: int
) -> Walk:
    """The latency of a CTA.

    Args:
        way: steps in the order in which its warps execute them.
        controls: of each step.
        costs: of each step of the trace.
        issue: cycles in which all its warps issue one instruction.
        barrier: cycles of a barrier that all other warps have reached.
    """
    front = Front()
    for index in way:
        control = controls[index]
        for board in control.waits:
            front.now = max(front.now, front.ready[board])
        front.execute(control, costs[index], issue, barrier)
    return Walk(max(front.now, *front.free.values(), 0.0), front.busy)


def _act(front: Front, cost: Cost, done: float, barrier: int) -> None:
    match cost.does:
        case Does.COPIES:
            front.copied = max(front.copied, done)
        case Does.CLOSES_COPIES:
            front.copies.append(front.copied)
        case Does.AWAITS_COPIES:
            front.wait(front.copies, cost.left)
        case Does.CLOSES_PRODUCTS:
            front.products.append(done)
        case Does.AWAITS_PRODUCTS:
            front.wait(front.products, cost.left)
        case Does.MEETS:
            front.now += barrier
        case Does.COPIES_BULK:
            front.bulk.append(done)
        case Does.AWAITS_BULK if front.bulk:
            front.now = max(front.now, front.bulk.pop(0))
