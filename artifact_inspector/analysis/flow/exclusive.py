"""Mutually exclusive parts of a function, which no path executes one after the other: branch arms."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from artifact_inspector.analysis.flow.cfg import ControlFlow
from artifact_inspector.model import Function

MOST_PARTS = 512
"""Maximum number of parts compared. Further ones exclude nothing. A written `switch` has a few arms."""


def find_exclusive(
    function: Function, flow: ControlFlow, loop: int | None, parts: Sequence[Collection[int]]
) -> list[tuple[int, int]]:
    """Pairs of parts, by index, that no path executes one after the other.

    A part that is wholly or partly outside the loop excludes nothing.

    Args:
        loop: the loop whose iterations are analysed individually: its own back edge is not a path.
        parts: the blocks of each part.
    """
    blocks = sorted({block for part in parts[:MOST_PARTS] for block in part})
    if len(blocks) < 2:
        return []
    bit = {block: 1 << number for number, block in enumerate(blocks)}
    reached = _reached(function, flow, loop, bit)
    judged = [part if reached.keys() >= set(part) else () for part in parts[:MOST_PARTS]]
    masks = [sum(bit[block] for block in set(part)) for part in judged]
    ahead = []
    for part in judged:
        mask = 0
        for block in part:
            mask |= reached[block] | bit[block]
        ahead.append(mask)
    return [
        (one, other)
        for one in range(len(masks))
        for other in range(one + 1, len(masks))
        if masks[one] and masks[other] and not (ahead[one] & masks[other] or ahead[other] & masks[one])
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
            for after in function.blocks[block].successors:
                if after in inside and after != header:
                    mask |= reached[after] | bit.get(after, 0)
            if mask != reached[block]:
                reached[block] = mask
                changed = True
    return reached
