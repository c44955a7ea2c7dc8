"""The waits of a function, and the numbers derived from them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from artifact_inspector.analysis.flow.function_code import FunctionCode
from artifact_inspector.model import EventKind, Instruction, Queue, WaitPurpose


class WaitFacts(NamedTuple):
    """One wait instruction."""

    line: int
    op: str
    """In its usual spelling: `cp.async.wait_group`, `s_waitcnt vmcnt`."""
    depth: int | None
    """Number of younger loads, or groups of copies, left in flight; None for a barrier phase."""
    queue: Queue
    region: str = ""
    """The id of the region that contains it."""
    template: str = "{op} {depth}"
    """How the language writes the opcode with its depth."""

    @property
    def purpose(self) -> WaitPurpose:
        """What it waits for."""
        return self.queue.purpose

    @property
    def is_for_loads(self) -> bool:
        """True for a wait that counts loads or copies. A barrier phase has no count."""
        return self.purpose is WaitPurpose.LOADS

    def format_with_depth(self, depth: object) -> str:
        """The wait with a depth, as its language writes it.

        Example:
            >>> WaitFacts(7, "s_waitcnt vmcnt", 4, Queue.LOADS, template="{op}({depth})").format_with_depth("4…0")
            's_waitcnt vmcnt(4…0)'
        """
        return self.template.format(op=self.op, depth=depth)


@dataclass(frozen=True, slots=True)
class WaitEffect:
    """The number of operations in a wait's queue before and after it."""

    wait: WaitFacts
    in_flight_before: int
    """Loads (or matrix operations) of its queue in flight before it."""
    in_flight_after: int
    """The same after it."""
    groups: int | None
    """Groups, or phases of its barriers, that it leaves; None if the queue counts single operations."""
    iterations: float | None
    """Source iterations whose copies it may leave in flight; None if its queue has no groups."""
    drains: bool
    """True inside a loop if loads that the loop issues are in flight before the wait and none after it, in any queue.
    Loads issued before the loop for use after it do not count.
    """
    is_unconditional: bool = True
    """False inside a loop if the wait is conditional: not every iteration executes it."""

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


def find_wait(instruction: Instruction, code: FunctionCode, region: str = "") -> WaitFacts | None:
    """The wait that an instruction performs; None if the instruction does not say what it waits for."""
    parsed = code.language.wait(instruction, code.module)
    if parsed is None:
        return None
    return WaitFacts(instruction.line, parsed.op, parsed.depth, parsed.queue, region, parsed.template)


def find_waits(code: FunctionCode, region_of: Mapping[int, str]) -> tuple[WaitFacts, ...]:
    """The waits of a function, in text order.

    Args:
        region_of: the id of the region of every block.
    """
    instructions, block_of = code.instructions, code.flow.block_of
    indices = code.of_kind.get(EventKind.WAIT, ())
    waits = (find_wait(instructions[index], code, region_of[block_of[index]]) for index in indices)
    return tuple(wait for wait in waits if wait is not None)


def iterations_left(depth: int | None, per_iteration: float | None) -> int | float | None:
    """Iterations of the source whose copies a wait may leave in flight.

    Args:
        depth: of the wait: members of its queue that may stay in flight.
        per_iteration: members of its queue that one iteration of the source adds.

    Example:
        >>> iterations_left(4, 2), iterations_left(1, 2), iterations_left(0, None)
        (2, 0.5, None)
    """
    return None if depth is None or not per_iteration else round_iterations(depth / per_iteration)


def round_iterations(value: float) -> int | float:
    """A number of iterations to two decimal places, as an int if it is whole."""
    return int(value) if value == int(value) else round(value, 2)


def depths_for_loads(waits: Iterable[WaitFacts]) -> tuple[int, ...]:
    """Depths of the waits that count loads or copies, in order."""
    return tuple(wait.depth for wait in waits if wait.is_for_loads and wait.depth is not None)


def least_depth(waits: Iterable[WaitFacts]) -> int | None:
    """Depth of the strictest wait: the fewest members of its queue left in flight; None if there is none."""
    return min((wait.depth for wait in waits if wait.depth is not None), default=None)
