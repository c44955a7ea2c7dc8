"""Parts of a function that no path executes one after the other (branch arms), and those that every path executes."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import reduce
from itertools import combinations
from operator import or_

from artifact_inspector.analysis.flow.dominators import strict_dominators
from artifact_inspector.analysis.flow.function_code import FunctionCode

MAX_PARTS = 512
"""Maximum number of parts compared. Further ones exclude nothing. A written `switch` has a few arms."""


def find_exclusive(
    code: FunctionCode, loop: int | None, block_sets: Sequence[Collection[int]]
) -> list[tuple[int, int]]:
    """Pairs of parts, by index, that no path executes one after the other.

    A part that is wholly or partly outside the loop excludes nothing.

    Args:
        loop: the loop whose iterations are analysed individually: its own back edge is not a path.
        block_sets: the blocks of each part.
    """
    blocks = sorted({block for block_set in block_sets[:MAX_PARTS] for block in block_set})
    if len(blocks) < 2:
        return []
    bit = {block: 1 << number for number, block in enumerate(blocks)}
    reached = _reached(code, loop, bit)
    judged = [block_set if reached.keys() >= set(block_set) else () for block_set in block_sets[:MAX_PARTS]]
    masks = [reduce(or_, (bit[block] for block in block_set), 0) for block_set in judged]
    ahead = [reduce(or_, (reached[block] | bit[block] for block in block_set), 0) for block_set in judged]
    return [
        (a, b)
        for a, b in combinations(range(len(masks)), 2)
        if masks[a] and masks[b] and not (ahead[a] & masks[b] or ahead[b] & masks[a])
    ]


def _reached(code: FunctionCode, loop: int | None, bit: dict[int, int]) -> dict[int, int]:
    """For each block of a loop or function, the bits of the blocks reachable from it."""
    flow = code.flow
    header = None if loop is None else flow.loops[loop].header
    inside = set(flow.order) if loop is None else flow.loops[loop].blocks
    order = [block for block in reversed(flow.order) if block in inside]
    reached = dict.fromkeys(order, 0)
    changed = True
    while changed:  # repeated for each nested loop
        changed = False
        for block in order:
            successors = [to for to in code.blocks[block].successors if to in inside and to != header]
            mask = reduce(or_, (reached[to] | bit.get(to, 0) for to in successors), 0)
            changed = changed or mask != reached[block]
            reached[block] = mask
    return reached


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
