"""Searches and groupings, compared with networkx and with counting by hand."""

from __future__ import annotations

import networkx
from hypothesis import given
from hypothesis import strategies as st

from artifact_inspector.analysis.flow.traversal import group_by_key, reachable, set_bit_indices

GRAPHS = st.dictionaries(st.integers(0, 9), st.lists(st.integers(0, 9), max_size=4), max_size=10)


@given(GRAPHS, st.lists(st.integers(0, 9), max_size=3))
def test_reachable_nodes_are_those_of_networkx(edges: dict[int, list[int]], start: list[int]) -> None:
    graph = networkx.DiGraph(edges)
    graph.add_nodes_from(start)
    expected = set(start).union(*(networkx.descendants(graph, node) for node in start))
    found = list(reachable(start, lambda node: edges.get(node, ())))
    assert set(found) == expected
    assert len(found) == len(expected)


def test_a_search_goes_deep_first_from_the_last_neighbour() -> None:
    assert list(reachable("a", {"a": "bc", "b": "", "c": "d", "d": "a"}.__getitem__)) == ["a", "c", "d", "b"]


@given(st.lists(st.tuples(st.integers(0, 3), st.integers())))
def test_groups_keep_every_pair_in_order(pairs: list[tuple[int, int]]) -> None:
    groups = group_by_key(pairs)
    assert list(groups) == list(dict.fromkeys(key for key, _ in pairs))
    for key, values in groups.items():
        assert values == [value for other, value in pairs if other == key]


@given(st.sets(st.integers(0, 200)))
def test_bits_are_listed_lowest_first(bits: set[int]) -> None:
    assert list(set_bit_indices(sum(1 << bit for bit in bits))) == sorted(bits)
