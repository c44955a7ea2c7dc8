"""Where CTAs that part ways meet again, to go on together.

A machine whose CTAs part becomes several, and where a loop has them part again in every trip these would be
as many as there are CTAs. As a warp's lanes do, they meet where all ways from the branch lead: its immediate
post-dominator. Who comes there is held until all have come or ended, and they are joined.

**Source** W. Fung et al., "Dynamic Warp Formation and Scheduling for Efficient GPU Control Flow" (2007), for
lanes of a warp.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from artifact_inspector.analysis.flow.dominators import immediate_dominators
from artifact_inspector.model import Function


class Meeting:
    """A place at which machines wait for each other.

    Args:
        place: the step.
        outer: where they go on to meet others, once they are joined.
    """

    def __init__(self, place: int, outer: Meeting | None) -> None:
        self.place, self.outer = place, outer
        self.awaited = 1
        """Machines that are on their way."""
        self.here: list[Any] = []
        """Machines that have come."""


class Stretch(NamedTuple):
    """Steps that run one after the other."""

    start: int
    stop: int
    next: Sequence[int]
    """Places, in the list of all stretches, of those that may follow."""
    ends: bool = False
    """Some lanes may end behind it."""


def meetings_in(
    functions: Sequence[Function], ends: tuple[str, ...], step: Callable[[int], int] = int
) -> dict[int, int]:
    """Branch → the step to which all ways from it lead, within its function.

    Args:
        functions: one behind the other.
        ends: with what opcodes begin behind which lanes may end.
        step: of an instruction, by its place.
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
    """Branch → the step to which all ways from it lead, where there is one.

    Example:
        >>> find_meetings([Stretch(0, 3, (1, 2)), Stretch(3, 5, (2,)), Stretch(5, 6, ())])
        {2: 5}
    """
    end = len(stretches)
    before: list[list[int]] = [[] for _ in range(end + 1)]
    for at, stretch in enumerate(stretches):
        for place in (*stretch.next, end) if stretch.ends or not stretch.next else stretch.next:
            before[place].append(at)
    # the walk is from the end backwards, and begins at number 0
    turned = [[end - place for place in before[end - at]] for at in range(end + 1)]
    behind = immediate_dominators(turned)
    found = {}
    for at, stretch in enumerate(stretches):
        place = end - behind.get(end - at, 0)
        if len(set(stretch.next)) > 1 and place < end and stretch.stop > stretch.start:
            found[stretch.stop - 1] = stretches[place].start
    return found
