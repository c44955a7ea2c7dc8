"""Control flow of a function: natural loops and the order in which its blocks run."""

from __future__ import annotations

from dataclasses import dataclass

import networkx as nx

from artifact_inspector.model import Function

__all__ = ["ControlFlow", "Loop", "control_flow", "find_control_flow"]


@dataclass(frozen=True, slots=True)
class Loop:
    """A natural loop: everything that reaches its latches without leaving through the header."""

    header: int
    blocks: frozenset[int]
    latches: tuple[int, ...]
    parent: int | None
    """Index of the enclosing loop."""
    depth: int
    """1 for a loop that no other encloses."""


@dataclass(frozen=True, slots=True)
class ControlFlow:
    """Loops and execution order of one function."""

    order: tuple[int, ...]
    """Block indices in execution order: reverse postorder with the blocks of a loop together;
    unreachable blocks stand last."""
    position: tuple[int, ...]
    """Place in execution order of every instruction, by its index."""
    loops: tuple[Loop, ...]
    """In execution order of their headers, so an outer loop stands before its inner ones."""
    loop_of: tuple[int | None, ...]
    """Innermost loop of every block."""
    block_of: tuple[int, ...]
    """Block of every instruction."""

    def loop_at(self, instruction: int) -> int | None:
        """Innermost loop that holds an instruction, by its index."""
        return self.loop_of[self.block_of[instruction]]

    def encloses(self, outer: int | None, inner: int | None) -> bool:
        """True when `inner` is `outer` or lies in it; None stands for the whole function."""
        while inner is not None and inner != outer:
            inner = self.loops[inner].parent
        return inner == outer


def control_flow(function: Function) -> nx.DiGraph[int]:
    """The graph over block indices; made anew at each call."""
    graph: nx.DiGraph[int] = nx.DiGraph()
    graph.add_nodes_from(range(len(function.blocks)))
    graph.add_edges_from(
        (block.index, successor) for block in function.blocks for successor in block.successors
    )
    return graph


def find_control_flow(function: Function) -> ControlFlow:
    """Natural loops (back edges to a dominator, Aho et al. §9.6) and execution order."""
    count = len(function.blocks)
    loops = _find_loops(function) if any(s <= b.index for b in function.blocks for s in b.successors) else ()
    loop_of: list[int | None] = [None] * count
    for index, loop in enumerate(loops):  # outer before inner: the innermost is written last
        for block in loop.blocks:
            loop_of[block] = index
    order = _order(function, loops, loop_of)
    position = [0] * len(function.instructions)
    block_of = [0] * len(function.instructions)
    place = 0
    for index in order:
        start, stop = function.blocks[index].start, function.blocks[index].stop
        position[start:stop] = range(place, place + stop - start)
        block_of[start:stop] = [index] * (stop - start)
        place += stop - start
    return ControlFlow(tuple(order), tuple(position), loops, tuple(loop_of), tuple(block_of))


def _find_loops(function: Function) -> tuple[Loop, ...]:
    graph = control_flow(function)
    dominator = {b: d for b, d in nx.immediate_dominators(graph, 0).items() if d is not None and d != b}
    reachable = {0, *dominator}
    depth = {0: 0}
    for start in reachable:
        chain, upper = [], start
        while upper not in depth:
            chain.append(upper)
            upper = dominator[upper]
        for below in reversed(chain):
            depth[below] = depth[upper] + 1
            upper = below
    latches: dict[int, list[int]] = {}
    for block in function.blocks:
        for target in block.successors:
            if block.index in reachable and _dominates(dominator, depth, target, block.index):
                latches.setdefault(target, []).append(block.index)
    bodies = {header: _body(graph, header, ends, reachable) for header, ends in latches.items()}
    headers = sorted(bodies, key=lambda header: (-len(bodies[header]), header))
    chosen: list[tuple[int, frozenset[int], int | None, int]] = []
    for header in headers:  # larger first, so a parent is there before its children
        parent = None
        for index, (other, blocks, _, level) in enumerate(chosen):
            if header in blocks and other != header and (parent is None or level > chosen[parent][3]):
                parent = index
        level = 1 if parent is None else chosen[parent][3] + 1
        chosen.append((header, bodies[header], parent, level))
    ranks = _reverse_postorder(function)
    rank = {block: place for place, block in enumerate(ranks)}
    by_place = sorted(range(len(chosen)), key=lambda index: (rank[chosen[index][0]], chosen[index][3]))
    renamed = {old: new for new, old in enumerate(by_place)}
    return tuple(
        Loop(header, blocks, tuple(latches[header]), None if parent is None else renamed[parent], level)
        for header, blocks, parent, level in (chosen[index] for index in by_place)
    )


def _dominates(dominator: dict[int, int], depth: dict[int, int], upper: int, lower: int) -> bool:
    if upper not in depth or lower not in depth:
        return False
    while depth[lower] > depth[upper]:
        lower = dominator[lower]
    return lower == upper


def _body(graph: nx.DiGraph[int], header: int, latches: list[int], reachable: set[int]) -> frozenset[int]:
    body = {header}
    pending = [latch for latch in latches if latch != header]
    while pending:
        block = pending.pop()
        if block not in body:
            body.add(block)
            pending += [b for b in graph.pred[block] if b in reachable]
    return frozenset(body)


def _reverse_postorder(function: Function) -> list[int]:
    """Blocks from the entry; where control flow leaves the order open, it is that of the text."""
    finished: list[int] = []
    seen = {0}
    stack = [(0, iter(sorted(function.blocks[0].successors, reverse=True)))]
    while stack:
        block, pending = stack[-1]
        for successor in pending:
            if successor not in seen:
                seen.add(successor)
                # What is explored first finishes first and so runs last.
                stack.append((successor, iter(sorted(function.blocks[successor].successors, reverse=True))))
                break
        else:
            finished.append(block)
            stack.pop()
    return finished[::-1]


def _order(function: Function, loops: tuple[Loop, ...], loop_of: list[int | None]) -> list[int]:
    count = len(function.blocks)
    if count == 1:
        return [0]
    flat = _reverse_postorder(function)
    if loops:
        flat = _keep_loops_together(flat, loops, loop_of)
    reached = set(flat)
    return flat + [block for block in range(count) if block not in reached]


def _keep_loops_together(flat: list[int], loops: tuple[Loop, ...], loop_of: list[int | None]) -> list[int]:
    """Move every block of a loop behind the loop's header, keeping the order within."""
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
