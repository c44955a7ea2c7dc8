"""Dominance, held against its definition."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from artifact_inspector.analysis.flow.dominators import Dominators

graphs = st.integers(1, 9).flatmap(
    lambda count: st.lists(st.lists(st.integers(0, count - 1), max_size=3), min_size=count, max_size=count)
)


def reached(successors: list[list[int]], without: int | None = None) -> set[int]:
    pending, found = [0], {0} - {without}
    while pending:
        block = pending.pop()
        fresh = [] if block == without else [b for b in successors[block] if b not in found and b != without]
        found.update(fresh)
        pending += fresh
    return found


@settings(max_examples=300, deadline=None)
@given(successors=graphs)
def test_a_block_dominates_what_cannot_be_reached_without_it(successors: list[list[int]]) -> None:
    dominators = Dominators(successors)
    all_of_them = reached(successors)
    for upper in range(len(successors)):
        assert (upper in dominators) == (upper in all_of_them)
        rest = reached(successors, without=upper)
        for lower in range(len(successors)):
            wanted = upper in all_of_them and lower in all_of_them and (upper == lower or lower not in rest)
            assert dominators.dominates(upper, lower) == wanted


def test_a_block_that_two_arms_meet_in_is_dominated_by_neither() -> None:
    dominators = Dominators([(1, 2), (3,), (3,), ()])
    assert dominators.dominates(0, 3)
    assert not dominators.dominates(1, 3)
    assert not dominators.dominates(3, 1)


def test_arms_of_unequal_length_that_meet_do_not_dominate_where_they_do() -> None:
    dominators = Dominators([(1, 3), (2,), (), (4,), (2,)])
    assert not dominators.dominates(1, 2)
    assert not dominators.dominates(3, 2)
    assert dominators.dominates(3, 4)


def test_ways_that_leave_a_long_chain_for_one_end_are_followed_without_recursion() -> None:
    count = 20_000
    dominators = Dominators([*((i + 1, count) for i in range(count)), ()])
    assert dominators.dominates(0, count)
    assert not dominators.dominates(1, count)
    assert dominators.dominates(1, count - 1)
