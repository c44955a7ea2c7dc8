"""The waits of a function, and the numbers that are read off them: each told here, and nowhere else."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from artifact_inspector.analysis.flow.code import Code
from artifact_inspector.model import EventKind, Instruction, Language, Module, Queue, WaitPurpose


class Wait(NamedTuple):
    """One wait instruction."""

    line: int
    op: str
    """As people write it: `cp.async.wait_group`, `s_waitcnt vmcnt`."""
    depth: int | None
    """How many younger loads, or groups of copies, it leaves in flight; None where a barrier phase tells."""
    queue: Queue
    region: str = ""
    """The id of the region that it stands in."""
    spelt: str = "{op} {depth}"
    """How the language writes the opcode with its depth."""

    @property
    def purpose(self) -> WaitPurpose:
        """What it is there for."""
        return self.queue.purpose

    @property
    def is_for_loads(self) -> bool:
        """True for a wait that counts loads or copies; a barrier phase counts nothing."""
        return self.purpose is WaitPurpose.LOADS

    def written(self, depth: object) -> str:
        """The wait with a depth, as its language writes it.

        Example:
            >>> Wait(7, "s_waitcnt vmcnt", 4, Queue.LOADS, spelt="{op}({depth})").written("4…0")
            's_waitcnt vmcnt(4…0)'
        """
        return self.spelt.format(op=self.op, depth=depth)


@dataclass(frozen=True, slots=True)
class WaitEffect:
    """What a wait finds in flight in its queue, and what it leaves."""

    wait: Wait
    before: int
    """Loads of its queue in flight in front of it; of a wait for matrix operations, those."""
    after: int
    """The same, behind it."""
    groups: int | None
    """Groups, or phases of its barriers, that it leaves; None where the queue counts single operations."""
    iterations: float | None
    """Iterations of the source whose copies it may leave in flight; None where its queue has no groups."""
    drains: bool
    """True inside a loop, where loads that the loop issues are in flight in front of it, and none of
    them behind it, in any queue. What was loaded in front of the loop to be used behind it is none of
    the loop's."""
    always: bool = True
    """False inside a loop of which not every iteration comes by it: it stands under a condition."""

    @property
    def line(self) -> int:
        """Of the wait."""
        return self.wait.line

    @property
    def op(self) -> str:
        """Of the wait."""
        return self.wait.op

    @property
    def depth(self) -> int | None:
        """Of the wait."""
        return self.wait.depth

    @property
    def queue(self) -> Queue:
        """Of the wait."""
        return self.wait.queue


def find_wait(instruction: Instruction, module: Module, language: Language, region: str = "") -> Wait | None:
    """The wait that an instruction is; None for one that says nothing of what it waits for."""
    found = language.wait(instruction, module)
    if found is None:
        return None
    return Wait(instruction.line, found.op, found.depth, found.queue, region, found.spelt)


def find_waits(
    code: Code, module: Module, language: Language, region_of: Mapping[int, str]
) -> tuple[Wait, ...]:
    """The waits of a function, in text order.

    Args:
        region_of: the id of the region of every block.
    """
    instructions, block_of = code.function.instructions, code.flow.block_of
    found = (
        find_wait(instructions[index], module, language, region_of[block_of[index]])
        for index in code.of_kind.get(EventKind.WAIT, ())
    )
    return tuple(wait for wait in found if wait is not None)


def iterations_left(depth: int | None, per_iteration: float | None) -> int | float | None:
    """Iterations of the source whose copies a wait may leave in flight.

    Args:
        depth: of the wait: members of its queue that may stay in flight.
        per_iteration: members of its queue that one iteration of the source adds.

    Example:
        >>> iterations_left(4, 2), iterations_left(1, 2), iterations_left(0, None)
        (2, 0.5, None)
    """
    if depth is None or not per_iteration:
        return None
    return two_places(depth / per_iteration)


def two_places(value: float) -> int | float:
    """A number of iterations to two places, as an int where it is whole."""
    return int(value) if value == int(value) else round(value, 2)


def depths_for_loads(waits: Iterable[Wait]) -> tuple[int, ...]:
    """Depths of those that count loads or copies, in their order."""
    return tuple(wait.depth for wait in waits if wait.is_for_loads and wait.depth is not None)


def least_depth(waits: Iterable[Wait]) -> int | None:
    """The depth of the strictest wait: the fewest members of its queue that one leaves; None without any."""
    return min((wait.depth for wait in waits if wait.depth is not None), default=None)
