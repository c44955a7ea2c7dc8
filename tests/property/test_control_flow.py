"""Control flow of arbitrary graphs, held against networkx and the definitions."""

from __future__ import annotations

import networkx as nx
from hypothesis import given, settings
from hypothesis import strategies as st

from artifact_inspector.analysis.flow.control_flow import find_control_flow
from artifact_inspector.model import BasicBlock, EventKind, Function, Instruction, Operands

NO_OPERANDS = Operands((), ())


def function_of(edges: list[list[int]]) -> Function:
    instruction = Instruction(1, "x", EventKind.OTHER, None, None, "", lambda _: NO_OPERANDS)
    blocks = tuple(
        BasicBlock(index, f"b{index}", 2 * index, 2 * index + 2, tuple(dict.fromkeys(targets)))
        for index, targets in enumerate(edges)
    )
    return Function("f", 1, None, (), (instruction,) * (2 * len(edges)), blocks)


graphs = st.integers(1, 9).flatmap(
    lambda count: st.lists(st.lists(st.integers(0, count - 1), max_size=3), min_size=count, max_size=count)
)


@settings(max_examples=150, deadline=None)
@given(edges=graphs)
def test_execution_order_holds_every_block_once_and_starts_at_the_entry(edges: list[list[int]]) -> None:
    flow = find_control_flow(function_of(edges))
    assert sorted(flow.order) == list(range(len(edges)))
    assert flow.order[0] == 0
    assert sorted(flow.position) == list(range(2 * len(edges)))


@settings(max_examples=150, deadline=None)
@given(edges=graphs)
def test_the_blocks_of_a_loop_stand_together_behind_its_header(edges: list[list[int]]) -> None:
    flow = find_control_flow(function_of(edges))
    for loop in flow.loops:
        places = sorted(flow.order.index(block) for block in loop.blocks)
        # Loops that overlap without nesting share no header and need not be contiguous.
        nested = all(
            not (loop.blocks & other.blocks) or loop.blocks <= other.blocks or other.blocks <= loop.blocks
            for other in flow.loops
        )
        if nested:
            assert places == list(range(places[0], places[0] + len(places)))
            assert flow.order[places[0]] == loop.header


@settings(max_examples=150, deadline=None)
@given(edges=graphs)
def test_a_loop_is_what_its_back_edges_say(edges: list[list[int]]) -> None:
    function = function_of(edges)
    flow = find_control_flow(function)
    graph = nx.DiGraph([(block.index, target) for block in function.blocks for target in block.successors])
    graph.add_node(0)
    reachable = {0} | nx.descendants(graph, 0)

    def dominates(upper: int, lower: int) -> bool:
        rest = graph.subgraph(set(graph) - {upper})
        return upper == lower or upper == 0 or lower not in ({0} | nx.descendants(rest, 0))

    back = {(a, b) for a, b in graph.edges if a in reachable and dominates(b, a)}
    assert {loop.header for loop in flow.loops} == {b for _, b in back}
    for loop in flow.loops:
        assert {(latch, loop.header) for latch in loop.latches} == {edge for edge in back if edge[1] == loop.header}
        rest = graph.subgraph(reachable - {loop.header})
        body = {loop.header}
        for latch in set(loop.latches) - {loop.header}:
            body |= {latch} | nx.ancestors(rest, latch)
        assert loop.blocks == body
        assert loop.depth == 1 if loop.parent is None else loop.depth == flow.loops[loop.parent].depth + 1
