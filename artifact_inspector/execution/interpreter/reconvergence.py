"""Reconvergence points: where CTAs that diverged wait for each other and continue as one machine.

A machine whose CTAs diverge is split. If a loop splits it again in every iteration, there would soon be as
many machines as CTAs. So, like the lanes of a warp, CTAs reconverge at the immediate post-dominator of the
branch. A machine that arrives there waits until all others have arrived or ended; then they are merged.

**Source** W. Fung et al., "Dynamic Warp Formation and Scheduling for Efficient GPU Control Flow" (2007), for
lanes of a warp.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from artifact_inspector.analysis.flow.dominators import immediate_dominators
from artifact_inspector.model import Function


class BlockRange(NamedTuple):
    """Consecutive steps (a basic block)."""

    start: int
    stop: int
    successors: Sequence[int]
    """Successors, as indices in the list of blocks."""
    may_exit: bool = False
    """Whether some lanes may exit after it."""


def reconvergence_steps(
    functions: Sequence[Function], exit_opcodes: tuple[str, ...], step_of: Callable[[int], int] = int
) -> dict[int, int]:
    """Branch → the step where all paths from it reconverge, within its function.

    Args:
        functions: in program order.
        exit_opcodes: opcode prefixes after which lanes may exit.
        step_of: maps the index of an instruction to its step.
    """
    reconvergence: dict[int, int] = {}
    first = 0
    for function in functions:
        reconvergence |= find_reconvergence(block_ranges(function, exit_opcodes, step_of, first))
        first += len(function.instructions)
    return reconvergence


def block_ranges(
    function: Function, exit_opcodes: tuple[str, ...], step_of: Callable[[int], int] = int, first: int = 0
) -> tuple[BlockRange, ...]:
    """The blocks of a function as steps; arguments as of `reconvergence_steps`, `first` is its first instruction."""
    opcodes = [instruction.opcode for instruction in function.instructions]
    return tuple(
        BlockRange(
            step_of(first + block.start),
            step_of(first + block.stop),
            block.successors,
            block.stop > block.start and opcodes[block.stop - 1].startswith(exit_opcodes),
        )
        for block in function.blocks
    )


def reachable_steps(blocks: Sequence[BlockRange], starts: Iterable[int]) -> frozenset[int]:
    """Steps that may run if execution continues at any of some steps, which are among them.

    Example:
        >>> sorted(reachable_steps([BlockRange(0, 3, (0, 1)), BlockRange(3, 6, ())], [4]))
        [4, 5]
        >>> sorted(reachable_steps([BlockRange(0, 3, (0, 1)), BlockRange(3, 6, ())], [2]))
        [0, 1, 2, 3, 4, 5]
    """
    reached: set[int] = set()
    pending: list[int] = []
    for start in starts:
        for block in blocks:
            if block.start <= start < block.stop:
                reached.update(range(start, block.stop))
                pending += block.successors
    entered: set[int] = set()
    while pending:
        at = pending.pop()
        if at not in entered:
            entered.add(at)
            reached.update(range(blocks[at].start, blocks[at].stop))
            pending += blocks[at].successors
    return frozenset(reached)


def find_reconvergence(blocks: Sequence[BlockRange]) -> dict[int, int]:
    """Branch → the step where all paths from it reconverge, if there is one.

    Example:
        >>> find_reconvergence([BlockRange(0, 3, (1, 2)), BlockRange(3, 5, (2,)), BlockRange(5, 6, ())])
        {2: 5}
    """
    end = len(blocks)
    predecessors: list[list[int]] = [[] for _ in range(end + 1)]
    for position, block in enumerate(blocks):
        for block_index in (*block.successors, end) if block.may_exit or not block.successors else block.successors:
            predecessors[block_index].append(position)
    # post-dominators are dominators of the reversed graph, whose entry is number 0
    reversed_predecessors = [
        [end - block_index for block_index in predecessors[end - position]] for position in range(end + 1)
    ]
    post_dominators = immediate_dominators(reversed_predecessors)
    reconvergence = {}
    for position, block in enumerate(blocks):
        block_index = end - post_dominators.get(end - position, 0)
        if len(set(block.successors)) > 1 and block_index < end and block.stop > block.start:
            reconvergence[block.stop - 1] = blocks[block_index].start
    return reconvergence
