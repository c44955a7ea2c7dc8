"""Mutually exclusive parts of a function, which no path executes one after the other: branch arms."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from artifact_inspector.analysis.flow.control_flow import ControlFlow
from artifact_inspector.model import Function

MAX_PARTS = 512
"""Maximum number of parts compared. Further ones exclude nothing. A written `switch` has a few arms."""


def find_exclusive(
    function: Function, flow: ControlFlow, loop: int | None, block_sets: Sequence[Collection[int]]
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
    reached = _reached(function, flow, loop, bit)
    judged = [block_set if reached.keys() >= set(block_set) else () for block_set in block_sets[:MAX_PARTS]]
    masks = [sum(bit[block] for block in set(block_set)) for block_set in judged]
    ahead = []
    for block_set in judged:
        mask = 0
        for block in block_set:
            mask |= reached[block] | bit[block]
        ahead.append(mask)
    return [
        (first, second)
        for first in range(len(masks))
        for second in range(first + 1, len(masks))
        if masks[first] and masks[second] and not (ahead[first] & masks[second] or ahead[second] & masks[first])
    ]


def _reached(function: Function, flow: ControlFlow, loop: int | None, bit: dict[int, int]) -> dict[int, int]:
    """For each block of a loop or function, the bits of the blocks reachable from it."""
    header = None if loop is None else flow.loops[loop].header
    inside = set(flow.order) if loop is None else flow.loops[loop].blocks
    order = [block for block in reversed(flow.order) if block in inside]
    reached = dict.fromkeys(order, 0)
    changed = True
    while changed:  # repeated for each nested loop
        changed = False
        for block in order:
            mask = 0
            for successor in function.blocks[block].successors:
                if successor in inside and successor != header:
                    mask |= reached[successor] | bit.get(successor, 0)
            if mask != reached[block]:
                reached[block] = mask
                changed = True
    return reached
