"""The exported graph of a function: its blocks, and the dataflow from loads through computes to stores.

Tensor-level IR is followed by its values. At lower levels, registers are followed in execution order, and
shared memory is one location: an edge there means that data may come from a load, through any buffer.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from artifact_inspector.analysis.flow.code import Code
from artifact_inspector.analysis.flow.datagraph import BOUND, DataGraph
from artifact_inspector.analysis.flow.taint import find_first_computes
from artifact_inspector.model import COMPUTES, LOADS, SINKS
from artifact_inspector.model.location import SourceLine

_EVENTS = LOADS | COMPUTES | SINKS
_TAKERS = LOADS | SINKS


@dataclass(frozen=True, slots=True)
class Node:
    """A basic block, or a load, compute or store in one."""

    id: str
    """`b3`, `i42`: index in the function, prefixed with the function name if there are several."""
    kind: str
    """`block`, or the kind of the instruction as in counts: `global_load`, `matrix` …"""
    label: str
    """Opcode, or label of the block."""
    line: int
    """In the stage's file, 1-based."""
    source: str | None
    """`matmul.py:81`; None for a block, or if the file does not say."""


@dataclass(frozen=True, slots=True)
class Edge:
    """A directed edge between two nodes."""

    source: str
    target: str
    kind: str
    """`control` between blocks, `holds` from a block to its instructions, `data` into computes and
    stores, `address` into loads.
    """
    carried: bool
    """True for a back edge, and for data that arrives only an iteration later. Not set for data through a
    buffer in tensor-level IR.
    """


@dataclass(frozen=True, slots=True)
class Graph:
    """The nodes in text order, blocks first, and the edges between them."""

    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]


def find_graph(code: Code, indices: Sequence[int], prefix: str = "") -> Graph:
    """The graph of a part of a function.

    Args:
        indices: the instructions of the part, in execution order.
        prefix: of every id.
    """
    part, flow = frozenset(indices), code.flow
    inside = {flow.block_of[index] for index in indices}
    blocks = sorted(inside)
    events = [index for index in sorted(part) if code.function.instructions[index].kind in _EVENTS]
    nodes = [_block(code, block, prefix) for block in blocks]
    nodes += [_event(code, index, prefix) for index in events]
    edges = [
        Edge(f"{prefix}b{block}", f"{prefix}b{after}", "control", _is_back(code, block, after))
        for block in blocks
        for after in dict.fromkeys(code.function.blocks[block].successors)
        if after in inside
    ]
    edges += [
        Edge(f"{prefix}b{flow.block_of[index]}", f"{prefix}i{index}", "holds", carried=False)
        for index in events
    ]
    follow = _by_registers if code.language.access is None else _by_values
    for giver, taker, carried in follow(code, indices, events):
        kind = "address" if code.function.instructions[taker].kind in LOADS else "data"
        edges.append(Edge(f"{prefix}i{giver}", f"{prefix}i{taker}", kind, carried))
    return Graph(tuple(nodes), tuple(edges))


def _block(code: Code, block: int, prefix: str) -> Node:
    found = code.function.blocks[block]
    lines = [one.line for one in code.function.instructions[found.start : found.stop]]
    return Node(f"{prefix}b{block}", "block", found.label, min(lines, default=code.function.line), None)


def _event(code: Code, index: int, prefix: str) -> Node:
    instruction = code.function.instructions[index]
    source = SourceLine.of(instruction.location).innermost if instruction.location else None
    return Node(
        f"{prefix}i{index}", instruction.kind.count_name, instruction.opcode, instruction.line, source
    )


def _is_back(code: Code, block: int, after: int) -> bool:
    return any(loop.header == after and block in loop.latches for loop in code.flow.loops)


def _by_registers(
    code: Code, indices: Sequence[int], events: Sequence[int]
) -> Iterator[tuple[int, int, bool]]:
    """Producer, consumer, and whether the data crosses a back edge, for each pair."""
    groups = {index: number for number, index in enumerate(events)}
    givers = tuple(groups)
    at_once = find_first_computes(code, indices, groups, 1, also=_TAKERS)
    later = find_first_computes(code, indices, groups, 2, also=_TAKERS) if code.flow.loops else at_once
    for taker in sorted(later):
        now = at_once.get(taker, 0)
        left = later[taker]
        while left:
            number = (left & -left).bit_length() - 1
            left &= left - 1
            yield givers[number], taker, not now >> number & 1


def _by_values(code: Code, indices: Sequence[int], events: Sequence[int]) -> Iterator[tuple[int, int, bool]]:
    """The same for a language that distinguishes addresses from values."""
    graph = code.once(DataGraph)
    takers: dict[int, list[int]] = {}
    for taker in events:
        for node in graph.taken.get(taker, ()):
            takers.setdefault(node, []).append(taker)
    for giver in events:
        at_once = _reach(graph, graph.given.get(giver, ()), across=False)
        found = {taker: False for node in at_once for taker in takers.get(node, ())}
        for node in _reach(graph, at_once, across=True):
            for taker in takers.get(node, ()):
                found.setdefault(taker, True)
        yield from ((giver, taker, carried) for taker, carried in sorted(found.items()))


def _reach(graph: DataGraph, start: Iterable[int], *, across: bool) -> dict[int, None]:
    """Nodes that the data of some nodes reaches, with or without crossing back edges."""
    found = dict.fromkeys(start)
    pending = list(found)
    while pending:
        for node, kind in graph.after[pending.pop()]:
            if kind != BOUND and (across or kind < 0) and node not in found:
                found[node] = None
                pending.append(node)
    return found
