"""The blocks of a loop that every iteration executes."""

from __future__ import annotations

from artifact_inspector.analysis.flow.cfg import ControlFlow
from artifact_inspector.analysis.flow.dominators import passed_on_the_way
from artifact_inspector.model import Function


def find_always(function: Function, flow: ControlFlow, loop: int) -> frozenset[int]:
    """The blocks of a loop on every path from its header to the next iteration.

    Conditional blocks are excluded, and so is an inner loop that may run no iteration.
    """
    found = flow.loops[loop]
    inside = [found.header, *(found.blocks - {found.header})]
    number = {block: place for place, block in enumerate(inside)}
    behind = len(inside)  # represents the start of the next iteration
    ways = [
        [
            behind if after == found.header else number[after]
            for after in function.blocks[block].successors
            if after in number
        ]
        for block in inside
    ]
    return frozenset(inside[place] for place in passed_on_the_way([*ways, []], behind))
