"""Instructions whose results decide nothing: they reach no address, no guard and no branch.

A simulation counts what is executed and accessed. Most instructions of a kernel compute data, which is only stored.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from artifact_inspector.execution.interpreter.reconvergence import BlockRange


class StepUse(NamedTuple):
    """What one instruction defines and reads."""

    results: tuple[str, ...] = ()
    reads: tuple[str, ...] = ()
    """What its results depend on."""
    always_reads: tuple[str, ...] = ()
    """What decides whether it executes and what it accesses."""
    overwrites: bool = True
    """Whether every lane that executes gets new results."""
    is_optional: bool = True
    """Whether it does nothing but write its results."""


def find_unneeded_results(blocks: Sequence[BlockRange], uses: Sequence[StepUse]) -> frozenset[int]:
    """The optional instructions whose results decide nothing: live variables, backwards over the blocks.

    Example:
        >>> copy, load = StepUse(("R2",), ("R1",)), StepUse(("R3",), (), ("R2",))
        >>> add = StepUse(("R4",), ("R3", "R2"))
        >>> sorted(find_unneeded_results([BlockRange(0, 3, ())], [copy, load, add]))
        [1, 2]
    """
    needed_at: list[set[str]] = [set() for _ in blocks]
    predecessors: list[list[int]] = [[] for _ in blocks]
    for number, block in enumerate(blocks):
        for successor in block.successors:
            predecessors[successor].append(number)
    unneeded: list[set[int]] = [set() for _ in blocks]
    pending = list(range(len(blocks)))
    while pending:
        number = pending.pop()
        block = blocks[number]
        needed = set().union(*(needed_at[successor] for successor in block.successors))
        unneeded[number].clear()
        for at in range(block.stop - 1, block.start - 1, -1):
            use = uses[at]
            if use.is_optional and needed.isdisjoint(use.results):
                unneeded[number].add(at)
            else:
                if use.overwrites:
                    needed.difference_update(use.results)
                needed.update(use.reads)
            needed.update(use.always_reads)
        if needed != needed_at[number]:
            needed_at[number] = needed
            pending += predecessors[number]
    return frozenset().union(*unneeded)
