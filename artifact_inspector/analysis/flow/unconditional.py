"""The blocks of a loop that every iteration executes."""

from __future__ import annotations

from artifact_inspector.analysis.flow.control_flow import ControlFlow
from artifact_inspector.analysis.flow.dominators import strict_dominators
from artifact_inspector.model import Function


def find_unconditional_blocks(function: Function, flow: ControlFlow, loop: int) -> frozenset[int]:
    """The blocks of a loop on every path from its header to the next iteration.

    Conditional blocks are excluded, and so is an inner loop that may run no iteration.
    """
    natural_loop = flow.loops[loop]
    inside = [natural_loop.header, *(natural_loop.blocks - {natural_loop.header})]
    number = {block: block_number for block_number, block in enumerate(inside)}
    next_iteration = len(inside)  # represents the start of the next iteration
    successor_numbers = [
        [
            next_iteration if successor == natural_loop.header else number[successor]
            for successor in function.blocks[block].successors
            if successor in number
        ]
        for block in inside
    ]
    return frozenset(
        inside[block_number] for block_number in strict_dominators([*successor_numbers, []], next_iteration)
    )
