"""The exported graph of a function: its blocks, and the dataflow from loads through computes to stores.

Tensor-level IR is followed by its values. At lower levels, registers are followed in execution order, and shared memory
is one location: an edge there means that data may come from a load, through any buffer.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from artifact_inspector.analysis.flow.data_graph import CONDITION_EDGE, DataGraph
from artifact_inspector.analysis.flow.function_code import FunctionCode
from artifact_inspector.analysis.flow.taint import find_first_computes
from artifact_inspector.analysis.flow.traversal import group_by_key, reachable, set_bit_indices
from artifact_inspector.model import COMPUTES, LOADS, SINKS
from artifact_inspector.model.location import SourceLine

_EVENTS = LOADS | COMPUTES | SINKS
_CONSUMERS = LOADS | SINKS


@dataclass(frozen=True, slots=True)
class GraphNode:
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
class GraphEdge:
    """A directed edge between two nodes."""

    source: str
    target: str
    kind: str
    """`control` between blocks, `holds` from a block to its instructions, `data` into computes and stores, `address`
    into loads.
    """
    is_loop_carried: bool
    """True for a back edge, and for data that arrives only an iteration later. Not set for data through a buffer in
    tensor-level IR.
    """


@dataclass(frozen=True, slots=True)
class FunctionGraph:
    """The nodes in text order, blocks first, and the edges between them."""

    nodes: tuple[GraphNode, ...]
    edges: tuple[GraphEdge, ...]


def find_graph(code: FunctionCode, indices: Sequence[int], prefix: str = "") -> FunctionGraph:
    """The graph of a part of a function.

    Args:
        indices: the instructions of the part, in execution order.
        prefix: of every id.
    """
    selected, flow = frozenset(indices), code.flow
    inside = {flow.block_of[index] for index in indices}
    blocks = sorted(inside)
    events = [index for index in sorted(selected) if code.instructions[index].kind in _EVENTS]
    nodes = [_block(code, block, prefix) for block in blocks]
    nodes += [_event(code, index, prefix) for index in events]
    back_edges = {(latch, loop.header) for loop in flow.loops for latch in loop.latches}
    edges = [
        GraphEdge(f"{prefix}b{block}", f"{prefix}b{successor}", "control", (block, successor) in back_edges)
        for block in blocks
        for successor in dict.fromkeys(code.blocks[block].successors)
        if successor in inside
    ]
    edges += [
        GraphEdge(f"{prefix}b{flow.block_of[index]}", f"{prefix}i{index}", "holds", is_loop_carried=False)
        for index in events
    ]
    follow = _by_registers if code.language.access_operands is None else _by_values
    for producer, consumer, is_loop_carried in follow(code, indices, events):
        kind = "address" if code.instructions[consumer].kind in LOADS else "data"
        edges.append(GraphEdge(f"{prefix}i{producer}", f"{prefix}i{consumer}", kind, is_loop_carried))
    return FunctionGraph(tuple(nodes), tuple(edges))


def _block(code: FunctionCode, block: int, prefix: str) -> GraphNode:
    basic_block = code.blocks[block]
    lines = [instruction.line for instruction in code.instructions[basic_block.start : basic_block.stop]]
    return GraphNode(f"{prefix}b{block}", "block", basic_block.label, min(lines, default=code.function.line), None)


def _event(code: FunctionCode, index: int, prefix: str) -> GraphNode:
    instruction = code.instructions[index]
    source = SourceLine.from_location(instruction.location).innermost if instruction.location else None
    return GraphNode(f"{prefix}i{index}", instruction.kind.count_name, instruction.opcode, instruction.line, source)


def _by_registers(code: FunctionCode, indices: Sequence[int], events: Sequence[int]) -> Iterator[tuple[int, int, bool]]:
    """Producer, consumer, and whether the data crosses a back edge, for each pair."""
    groups = {index: number for number, index in enumerate(events)}
    producers = tuple(groups)
    at_once = find_first_computes(code, indices, groups, 1, also=_CONSUMERS)
    later = find_first_computes(code, indices, groups, 2, also=_CONSUMERS) if code.flow.loops else at_once
    for consumer in sorted(later):
        for number in set_bit_indices(later[consumer]):
            yield producers[number], consumer, not at_once.get(consumer, 0) >> number & 1


def _by_values(code: FunctionCode, indices: Sequence[int], events: Sequence[int]) -> Iterator[tuple[int, int, bool]]:
    """The same for a language that distinguishes addresses from values."""
    graph = code.compute_once(DataGraph)
    consumers_by_node = group_by_key(
        (node, consumer) for consumer in events for node in graph.operands.get(consumer, ())
    )

    def successors(node: int, *, across: bool = False) -> Iterator[int]:
        return (to for to, kind in graph.successors[node] if kind != CONDITION_EDGE and (across or kind < 0))

    for producer in events:
        at_once = reachable(graph.results.get(producer, ()), successors)
        carried_by_consumer = {consumer: False for node in at_once for consumer in consumers_by_node.get(node, ())}
        for node in reachable(at_once, partial(successors, across=True)):
            for consumer in consumers_by_node.get(node, ()):
                carried_by_consumer.setdefault(consumer, True)
        yield from ((producer, *entry) for entry in sorted(carried_by_consumer.items()))
