"""The blocks of a loop that every iteration executes."""

from __future__ import annotations

from artifact_inspector.analysis.flow.dominators import strict_dominators
from artifact_inspector.analysis.flow.function_code import FunctionCode


def find_unconditional_blocks(code: FunctionCode, loop: int) -> frozenset[int]:
    """The blocks of a loop on every path from its header to the next iteration.

    Conditional blocks are excluded, and so is an inner loop that may run no iteration.
    """
    flow, blocks = code.flow, code.blocks
    header = flow.loops[loop].header
    inside = [header, *(flow.loops[loop].blocks - {header})]
    number = {block: block_number for block_number, block in enumerate(inside)}
    targets = {**number, header: len(inside)}  # the start of the next iteration
    successors = [[targets[to] for to in blocks[block].successors if to in targets] for block in inside]
    return frozenset(inside[block_number] for block_number in strict_dominators([*successors, []], len(inside)))
