"""Reconvergence points: where CTAs that diverged wait for each other and continue as one machine.

A machine whose CTAs diverge is split. If a loop splits it again in every iteration, there would soon be as
many machines as CTAs. So, like the lanes of a warp, CTAs reconverge at the immediate post-dominator of the
branch. A machine that arrives there waits until all others have arrived or ended; then they are merged.

**Source** W. Fung et al., "Dynamic Warp Formation and Scheduling for Efficient GPU Control Flow" (2007), for
lanes of a warp.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from artifact_inspector.analysis.flow.dominators import immediate_dominators
from artifact_inspector.model import Function


class Meeting:
    """A step at which machines wait for each other.

    Args:
        place: the step.
        outer: the enclosing reconvergence point, where the merged machine waits next.
    """

    def __init__(self, place: int, outer: Meeting | None) -> None:
        self.place, self.outer = place, outer
        self.awaited = 1
        """Machines that have not arrived yet."""
        self.here: list[Any] = []
        """Machines that have arrived."""


class Stretch(NamedTuple):
    """Consecutive steps (a basic block)."""

    start: int
    stop: int
    next: Sequence[int]
    """Successors, as indices in the list of blocks."""
    ends: bool = False
    """Whether some lanes may exit after it."""


def meetings_in(
    functions: Sequence[Function], ends: tuple[str, ...], step: Callable[[int], int] = int
) -> dict[int, int]:
    """Branch → the step where all paths from it reconverge, within its function.

    Args:
        functions: in program order.
        ends: opcode prefixes after which lanes may exit.
        step: maps the index of an instruction to its step.
    """
    found: dict[int, int] = {}
    first = 0
    for function in functions:
        opcodes = [instruction.opcode for instruction in function.instructions]
        found |= find_meetings(
            [
                Stretch(
                    step(first + block.start),
                    step(first + block.stop),
                    block.successors,
                    block.stop > block.start and opcodes[block.stop - 1].startswith(ends),
                )
                for block in function.blocks
            ]
        )
        first += len(opcodes)
    return found


def find_meetings(stretches: Sequence[Stretch]) -> dict[int, int]:
    """Branch → the step where all paths from it reconverge, if there is one.

    Example:
        >>> find_meetings([Stretch(0, 3, (1, 2)), Stretch(3, 5, (2,)), Stretch(5, 6, ())])
        {2: 5}
    """
    end = len(stretches)
    before: list[list[int]] = [[] for _ in range(end + 1)]
    for at, stretch in enumerate(stretches):
        for place in (*stretch.next, end) if stretch.ends or not stretch.next else stretch.next:
            before[place].append(at)
    # post-dominators are dominators of the reversed graph, whose entry is number 0
    turned = [[end - place for place in before[end - at]] for at in range(end + 1)]
    behind = immediate_dominators(turned)
    found = {}
    for at, stretch in enumerate(stretches):
        place = end - behind.get(end - at, 0)
        if len(set(stretch.next)) > 1 and place < end and stretch.stop > stretch.start:
            found[stretch.stop - 1] = stretches[place].start
    return found
