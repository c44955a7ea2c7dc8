"""Which blocks of a loop every iteration runs, to its end."""

from __future__ import annotations

from artifact_inspector.analysis.flow.cfg import ControlFlow
from artifact_inspector.model import Function


def find_always(function: Function, flow: ControlFlow, loop: int) -> frozenset[int]:
    """The blocks of a loop that stand on every path from its header to the next iteration.

    What stands under a condition is none of them, nor a loop inside that may run no iteration.
    """
    found = flow.loops[loop]
    inside = [block for block in flow.order if block in found.blocks]
    before: dict[int, list[int]] = {block: [] for block in inside}
    for block in inside:
        for after in function.blocks[block].successors:
            if after in before and after != found.header:
                before[after].append(block)
    passed: dict[int, frozenset[int]] = {}
    for block in inside:
        # A block whose paths are not known yet closes a loop inside: it is entered through this one.
        known = [passed[one] for one in before[block] if one in passed]
        passed[block] = frozenset.intersection(*known) | {block} if known else frozenset((block,))
    ends = [passed[latch] for latch in found.latches if latch in passed]
    return frozenset.intersection(*ends) if ends else frozenset()
