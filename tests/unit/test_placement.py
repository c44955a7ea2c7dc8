"""What a placement tells of its rounds, held against values made by hand."""

from __future__ import annotations

from dataclasses import replace

from artifact_inspector.analysis.order.placement import LocatedRound, LocatedStatement, sources_of
from artifact_inspector.analysis.order.reference_regions import LoadStatement
from artifact_inspector.model import SourceLine

A = LoadStatement(3, None, SourceLine(("k.py:7",)), "a", 0, False, False, None)
B = LoadStatement(5, None, SourceLine(("k.py:8",)), "", 0, False, False, None)
NAMELESS = replace(B, source=None)


def test_a_round_has_the_loads_of_all_its_statements_once_and_in_text_order() -> None:
    found = LocatedRound([LocatedStatement(A, [9, 4]), LocatedStatement(B, [4, 2])])
    assert found.loads == [2, 4, 9]
    assert found.has_loads
    assert not LocatedRound([LocatedStatement(A)]).has_loads


def test_its_lines_are_those_that_are_known() -> None:
    found = LocatedRound([LocatedStatement(A), LocatedStatement(NAMELESS), LocatedStatement(B)])
    assert found.sources == ["k.py:7", "k.py:8"]


def test_it_is_hoisted_where_a_load_stands_in_front() -> None:
    assert not LocatedRound([LocatedStatement(A, [1])]).is_hoisted
    assert LocatedRound([LocatedStatement(A, [1]), LocatedStatement(B, [], [0])]).is_hoisted


def test_it_is_told_by_the_statements_with_loads_and_by_its_computes() -> None:
    found = LocatedRound([LocatedStatement(A, [1]), LocatedStatement(B)], identified_computes=frozenset({11}))
    assert found.identity == (frozenset({3}), frozenset({11}), False)


def test_a_guess_tells_nothing() -> None:
    known = frozenset({11})
    assert LocatedRound([LocatedStatement(A, [1])]).identity is None
    assert LocatedRound([LocatedStatement(A, [1], is_merged=True)], identified_computes=known).identity is None
    assert LocatedRound([LocatedStatement(A, [1], is_uncertain=True)], identified_computes=known).identity is None
    # what was not found is no guess
    assert LocatedRound([LocatedStatement(A, [], is_uncertain=True)], identified_computes=known).identity == (
        frozenset(),
        known,
        False,
    )


def test_statements_are_named_by_line_else_by_name_else_not_at_all() -> None:
    assert sources_of([A, replace(A, source=None), NAMELESS]) == ["k.py:7", "a", "?"]


def test_a_label_has_the_name_and_the_line_as_far_as_they_are_known() -> None:
    assert [s.label for s in (A, B, replace(A, source=None), NAMELESS)] == [
        "a (k.py:7)", "k.py:8", "a", "a load",
    ]  # fmt: skip
