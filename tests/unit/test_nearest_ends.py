"""The nearest ends of data, by iterations and then by execution order; counted by hand."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from artifact_inspector.analysis.flow.data_graph import CONDITION_EDGE, NO_LOOP, PLAIN_EDGE
from artifact_inspector.analysis.order.nearest_ends import MAX_DISTANCE, MAX_ENDS, NearestEnds


class Graph:
    """Nodes by number, with edges as (from, to, kind)."""

    def __init__(self, count: int, *edges: tuple[int, int, int], home: dict[int, int | None] | None = None) -> None:
        self.successors: list[list[tuple[int, int]]] = [[] for _ in range(count)]
        self.predecessors: list[list[tuple[int, int]]] = [[] for _ in range(count)]
        for source, target, kind in edges:
            self.successors[source].append((target, kind))
            self.predecessors[target].append((source, kind))
        self.loop_of_node = [(home or {}).get(node) for node in range(count)]
        self.operands: dict[int, list[int]] = {}
        self.results: dict[int, list[int]] = {}
        self.users: dict[int, list[int]] = {}
        self.producer: dict[int, int] = {}

    def compute(self, index: int, taken: int, given: int) -> None:
        self.operands[index], self.results[index] = [taken], [given]
        self.users.setdefault(taken, []).append(index)
        self.producer[given] = index


FLOW: Any = SimpleNamespace(position=list(range(100)), encloses=lambda outer, inner: outer == inner)


def nearest(graph: Graph, ends: dict[int, list[int]], **options: Any) -> NearestEnds:
    given: dict[str, Any] = {"stops": (), "loaded": {}, "is_bound": False, **options}
    return NearestEnds(graph, FLOW, ends, **given)  # type: ignore[arg-type]


def test_an_end_that_takes_a_node_is_reached_from_all_in_front_of_it() -> None:
    found = nearest(Graph(3, (0, 1, PLAIN_EDGE), (1, 2, PLAIN_EDGE)), {50: [2]})
    assert [found.reached_from([node], None) for node in range(3)] == [[(0, 50)]] * 3


def test_ends_stand_in_execution_order_and_each_once() -> None:
    graph = Graph(4, (0, 1, PLAIN_EDGE), (0, 2, PLAIN_EDGE), (1, 3, PLAIN_EDGE), (2, 3, PLAIN_EDGE))
    found = nearest(graph, {60: [3], 50: [2], 55: [1]})
    assert found.reached_from([0], None) == [(0, 50), (0, 55), (0, 60)]
    assert found.reached_from([1, 2], None) == [(0, 50), (0, 55), (0, 60)]


def test_only_the_nearest_few_are_told() -> None:
    ends = {50 + n: [0] for n in range(MAX_ENDS + 3)}
    assert nearest(Graph(1), ends).reached_from([0], None) == [(0, 50 + n) for n in range(MAX_ENDS)]


def test_data_goes_through_a_compute_that_is_no_end() -> None:
    graph = Graph(2)
    graph.compute(10, 0, 1)
    assert nearest(graph, {50: [1]}).reached_from([0], None) == [(0, 50)]
    assert nearest(graph, {50: [1]}, stops={10}).reached_from([0], None) == []


def test_a_bound_leads_on_unless_only_data_is_followed() -> None:
    graph = Graph(2, (0, 1, CONDITION_EDGE))
    assert nearest(graph, {50: [1]}).reached_from([0], None) == [(0, 50)]
    assert nearest(graph, {50: [1]}, is_bound=True).reached_from([0], None) == []


def test_no_data_comes_to_a_node_that_is_cut_off() -> None:
    graph = Graph(3, (0, 1, PLAIN_EDGE), (1, 2, PLAIN_EDGE))
    found = nearest(graph, {50: [2]}, cut=frozenset({1}))
    assert found.reached_from([0], None) == []
    assert found.reached_from([1], None) == [(0, 50)]


def test_iterations_are_counted_across_the_back_edge_of_the_loop_alone() -> None:
    # loaded node 0 → 1 by the back edge of loop 0 → 2 by that of loop 7; the end takes 2
    graph = Graph(3, (0, 1, 0), (1, 2, 7), home={0: 0, 1: 0, 2: 0})
    found = nearest(graph, {50: [2], 40: [1]}, loaded={0: [0]})
    assert found.reached_from([0], 0) == [(1, 40), (1, 50)]
    assert found.reached_from([0], None) == [(0, 40), (0, 50)]


def test_an_end_in_this_iteration_is_nearer_than_an_earlier_one_in_the_next() -> None:
    graph = Graph(3, (0, 1, 0), (0, 2, PLAIN_EDGE), home={0: 0, 1: 0, 2: 0})
    assert nearest(graph, {40: [1], 60: [2]}, loaded={0: [0]}).reached_from([0], 0) == [(0, 60), (1, 40)]


def test_data_is_followed_through_so_many_iterations() -> None:
    chain = [(node, node + 1, 0) for node in range(MAX_DISTANCE - 1)]
    graph = Graph(MAX_DISTANCE, *chain, home=dict.fromkeys(range(MAX_DISTANCE), 0))
    assert nearest(graph, {50: [MAX_DISTANCE - 1]}, loaded={0: [0]}).reached_from([0], 0) == [(MAX_DISTANCE - 1, 50)]


def test_what_is_farther_is_not_told_as_near() -> None:
    chain = [(node, node + 1, 0) for node in range(MAX_DISTANCE)]
    graph = Graph(MAX_DISTANCE + 1, *chain, home=dict.fromkeys(range(MAX_DISTANCE + 1), 0))
    assert nearest(graph, {50: [MAX_DISTANCE]}, loaded={0: [0]}).reached_from([0], 0) == []


def test_what_leaves_the_loop_crosses_its_back_edge_no_more() -> None:
    graph = Graph(3, (0, 1, PLAIN_EDGE), (1, 2, PLAIN_EDGE), home={0: 0, 1: None, 2: None})
    assert nearest(graph, {50: [2]}, loaded={0: [0]}).reached_from([0], 0) == [(0, 50)]


def test_a_buffer_lives_in_every_loop() -> None:
    graph = Graph(3, (0, 1, PLAIN_EDGE), (1, 2, 0), home={0: 0, 1: NO_LOOP, 2: 0})
    assert nearest(graph, {50: [2]}, loaded={0: [0]}).reached_from([0], 0) == [(1, 50)]


def test_of_several_nodes_the_least_distance_counts() -> None:
    graph = Graph(3, (0, 1, 0), home={0: 0, 1: 0, 2: 0})
    assert nearest(graph, {50: [1, 2]}, loaded={0: [0, 2]}).reached_from([0, 2], 0) == [(0, 50)]
