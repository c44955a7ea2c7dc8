"""How long one CTA takes alone: its warps go side by side through the program, by its control codes.

A warp stalls as the compiler wrote, waits for scoreboards, groups of copies and products, and barriers. What
the CTA's warps ask of a unit queues there; loads come back when the caches or device memory have moved
their bytes, and their latency is over.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from artifact_inspector.execution.timing.controls import Control

IN_ORDER = frozenset(("alu", "fma", "xu", "double"))
"""Units whose instructions hold up the warp until they are taken; the others have queues."""


class Does(Enum):
    """What an instruction does to a warp's waiting besides its scoreboards."""

    NOTHING = "nothing"
    COPIES = "copies"
    """Starts an asynchronous copy."""
    CLOSES_COPIES = "closes copies"
    AWAITS_COPIES = "awaits copies"
    CLOSES_PRODUCTS = "closes products"
    """The last of a group of a warpgroup's products."""
    AWAITS_PRODUCTS = "awaits products"
    MEETS = "meets"
    """A barrier of the CTA."""
    COPIES_BULK = "copies bulk"
    AWAITS_BULK = "awaits bulk"


class Cost(NamedTuple):
    """What an instruction asks of a multiprocessor when all of a CTA's warps execute it."""

    unit: str | None
    """That it keeps busy."""
    busy: float
    """Cycles."""
    delay: float
    """Cycles beyond these until its result is there."""
    l2: float = 0.0
    """Cycles for which it keeps the way to the second-level cache busy."""
    dram: float = 0.0
    """Cycles for which it keeps this multiprocessor's share of device memory busy."""
    does: Does = Does.NOTHING
    left: int = 0
    """Groups that a wait leaves outstanding."""
    reads: float = 0.0
    """Cycles for which a product keeps shared memory busy, whose operands it reads itself."""

    def times(self, count: float) -> Cost:
        """What so many CTAs, or a part of one, ask for at a time."""
        return self._replace(
            busy=self.busy * count, l2=self.l2 * count, dram=self.dram * count, reads=self.reads * count
        )


@dataclass(frozen=True, slots=True)
class Walk:
    """A CTA on its own."""

    cycles: float
    """From its first instruction to its last byte."""
    busy: Mapping[str, float]
    """Unit → cycles for which it was busy."""


class Front:
    """Where warps that go side by side stand, and what they have under way.

    Args:
        free: unit → when it has done what it was asked so far; shared by all that queue there.
        busy: unit → cycles for which it was busy.
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
        """Queue at a unit; when it is done with that."""
        end = max(start, self.free.get(unit, 0.0)) + cycles
        self.free[unit] = end
        self.busy[unit] = self.busy.get(unit, 0.0) + cycles
        return end

    def wait(self, held: list[float], left: int) -> None:
        """Wait until no more than some of what is under way, oldest first, is left."""
        if len(held) > left:
            self.now = max(self.now, held[-1 - left])
            del held[: len(held) - left]

    def execute(self, control: Control, cost: Cost, issue: float, barrier: int) -> None:
        """Go past an instruction whose scoreboards are free."""
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
    """How long a CTA takes.

    Args:
        way: steps in the order in which its warps execute them.
        controls: of each step.
        costs: of each step on the way.
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
