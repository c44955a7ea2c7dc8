"""Control flow of a function: natural loops and the execution order of its blocks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from artifact_inspector.analysis.flow.dominators import Dominators
from artifact_inspector.model import Function

MAX_LOOP_DEPTH = 64
"""Maximum loop depth. Deeper loops count as part of the innermost allowed one; real code has up to a dozen."""


class Loop(NamedTuple):
    """A natural loop: all blocks that reach its latches without passing through the header."""

    header: int
    blocks: frozenset[int]
    latches: tuple[int, ...]
    parent: int | None
    """Index of the enclosing loop."""
    depth: int
    """1 for an outermost loop."""


class ControlFlow(NamedTuple):
    """Loops and execution order of one function."""

    order: tuple[int, ...]
    """Block indices in execution order: reverse postorder with the blocks of a loop kept together. Unreachable blocks
    are last.
    """
    position: tuple[int, ...]
    """Position in execution order of every instruction, by its index."""
    loops: tuple[Loop, ...]
    """In execution order of their headers, so an outer loop is before its inner ones."""
    loop_of: tuple[int | None, ...]
    """Innermost loop of every block."""
    block_of: tuple[int, ...]
    """Block of every instruction."""

    def loop_at(self, instruction: int) -> int | None:
        """Innermost loop that contains an instruction, by its index."""
        return self.loop_of[self.block_of[instruction]]

    def enclosing(self, loop: int | None) -> Iterator[int]:
        """A loop and the loops around it, innermost first; nothing for None."""
        while loop is not None:
            yield loop
            loop = self.loops[loop].parent

    def encloses(self, outer: int | None, inner: int | None) -> bool:
        """True if `inner` is `outer` or inside it. None represents the whole function."""
        return outer is None or outer in self.enclosing(inner)


def find_control_flow(function: Function) -> ControlFlow:
    """Natural loops (back edges to a dominator, Aho et al. §9.6) and execution order."""
    count = len(function.blocks)
    flat = _reverse_postorder(function)
    loops: tuple[Loop, ...] = ()
    if any(target <= block.index for block in function.blocks for target in block.successors):
        loops = _find_loops(function, flat)
    loop_of: list[int | None] = [None] * count
    for index, loop in enumerate(loops):  # outer before inner: the innermost is written last
        for block in loop.blocks:
            loop_of[block] = index
    order = _keep_loops_together(flat, loops, loop_of) if loops else flat
    if len(order) < count:
        reached = set(order)
        order += [block for block in range(count) if block not in reached]
    position = [0] * len(function.instructions)
    block_of = [0] * len(function.instructions)
    next_position = 0
    for index in order:
        start, stop = function.blocks[index].start, function.blocks[index].stop
        position[start:stop] = range(next_position, next_position + stop - start)
        block_of[start:stop] = [index] * (stop - start)
        next_position += stop - start
    return ControlFlow(tuple(order), tuple(position), loops, tuple(loop_of), tuple(block_of))


def _find_loops(function: Function, flat: list[int]) -> tuple[Loop, ...]:
    """The loops in execution order of their headers."""
    dominators = Dominators([block.successors for block in function.blocks])
    predecessors: list[list[int]] = [[] for _ in function.blocks]
    latches: dict[int, list[int]] = {}
    for block in function.blocks:
        if block.index in dominators:
            for target in block.successors:
                predecessors[target].append(block.index)
                if dominators.dominates(target, block.index):
                    latches.setdefault(target, []).append(block.index)
    headers = [block for block in flat if block in latches]
    header_of = _innermost_headers(headers, latches, predecessors)
    depth: dict[int, int] = {}
    representative: dict[int, int] = {}
    """Header → the header of the loop that represents it: its own, or an enclosing one."""
    blocks: dict[int, set[int]] = {}
    for header in headers:
        depth[header] = depth[header_of[header]] + 1 if header in header_of else 1
        if depth[header] <= MAX_LOOP_DEPTH:
            representative[header], blocks[header] = header, {header}
        else:
            representative[header] = representative[header_of[header]]
    for inner, header in header_of.items():
        above: int | None = representative[header]
        while above is not None:
            blocks[above].add(inner)
            above = header_of.get(above)
    index = {header: loop_number for loop_number, header in enumerate(blocks)}
    return tuple(
        Loop(
            header,
            frozenset(inside),
            tuple(latches[header]),
            index[header_of[header]] if header in header_of else None,
            depth[header],
        )
        for header, inside in blocks.items()
    )


def _innermost_headers(
    headers: list[int], latches: dict[int, list[int]], predecessors: list[list[int]]
) -> dict[int, int]:
    """For every block in a loop, the header of the innermost loop around it; for a header, of the next one.

    Inner loops are processed first, and each then represents all its blocks, so every edge is visited once.
    """
    header_of: dict[int, int] = {}
    outermost: dict[int, int] = {}
    """Link towards the header of the outermost known loop of a block."""

    def representative(block: int) -> int:
        path = []
        while block in outermost:
            path.append(block)
            block = outermost[block]
        for passed in path:
            outermost[passed] = block
        return block

    for header in reversed(headers):
        pending = [latch for latch in latches[header] if latch != header]
        while pending:
            block = representative(pending.pop())
            if block != header:
                header_of[block] = outermost[block] = header
                pending += predecessors[block]
    return header_of


def _reverse_postorder(function: Function) -> list[int]:
    """Blocks from the entry. Where control flow allows several orders, text order is used."""
    finished: list[int] = []
    visited = {0}
    stack = [(0, iter(sorted(function.blocks[0].successors, reverse=True)))]
    while stack:
        block, pending = stack[-1]
        for successor in pending:
            if successor not in visited:
                visited.add(successor)
                # The successor explored first finishes first and so is last in the order.
                stack.append((successor, iter(sorted(function.blocks[successor].successors, reverse=True))))
                break
        else:
            finished.append(block)
            stack.pop()
    return finished[::-1]


def _keep_loops_together(flat: list[int], loops: tuple[Loop, ...], loop_of: list[int | None]) -> list[int]:
    """Move every block of a loop after the loop's header, keeping their relative order."""
    children: dict[int | None, list[int | tuple[int, ...]]] = {}
    placed: set[int] = set()
    for block in flat:
        inner = loop_of[block]
        chain = []
        while inner is not None:
            chain.append(inner)
            inner = loops[inner].parent
        level: int | None = None
        for loop in reversed(chain):
            if loop not in placed:
                placed.add(loop)
                children.setdefault(level, []).append((loop,))
            level = loop
        children.setdefault(level, []).append(block)
    ordered: list[int] = []
    pending: list[int | tuple[int, ...]] = list(reversed(children.get(None, [])))
    while pending:
        item = pending.pop()
        if isinstance(item, tuple):
            pending += reversed(children[item[0]])
        else:
            ordered.append(item)
    return ordered
