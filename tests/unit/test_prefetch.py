"""How far loads run ahead of their computes, worked by hand from letters and from what the stage before knew."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from handwritten import made

from artifact_inspector.analysis.flow.function_code import FunctionCode
from artifact_inspector.analysis.order.placement import LocatedRound, LocatedStatement, PreviousStage
from artifact_inspector.analysis.order.prefetch import LoopPrefetch, measure_prefetch
from artifact_inspector.analysis.order.reference_regions import LoadStatement
from artifact_inspector.analysis.order.region_facts import RegionNote
from artifact_inspector.model import CopyPosition, SourceLine

A = LoadStatement(0, None, SourceLine(("k.py:7",)), "a", 0, False, False, None)
B = replace(A, index=1, name="b")


def located(
    loads: list[int], computes: list[int], front: list[int] | None = None, front_computes: int = 0, **changes: Any
) -> LocatedRound:
    """A round of one statement."""
    statement = LocatedStatement(replace(A, **changes), loads, front or [])
    return LocatedRound([statement], computes, list(range(front_computes)))


def memory(
    *, distances: dict[int, int] | None = None, loads: dict[int, int] | None = None, unrolled: int = 1
) -> PreviousStage:
    return PreviousStage(loads or {}, {}, distances or {}, unrolled)


CODE = made("A A A A", "A F A F A F A F", to={1: (1,)})


def measured(*rounds: LocatedRound, before: PreviousStage | None = None, code: FunctionCode = CODE) -> LoopPrefetch:
    return measure_prefetch(code, list(rounds), before)


def test_a_load_that_serves_its_own_iteration_runs_not_ahead() -> None:
    found = measured(located([4], [5]))
    assert (found.distance, found.ahead_statements, found.unroll_factor) == (None, [], 1)
    assert [s.program.index for s in found.same_iteration_statements] == [0]
    assert found.load_position is None


def test_data_that_the_program_hands_on_counts() -> None:
    found = measured(located([6], [5], distance=2))
    assert found.distances == {0: 2}
    assert found.distance == 2
    assert found.load_position is CopyPosition.AFTER


def test_copies_in_front_of_the_loop_count_unless_they_are_consumed_there() -> None:
    assert measured(located([4], [5], [0, 1])).distance == 2
    assert measured(located([4], [5], [0, 1], front_computes=1)).distance == 1
    assert measured(located([4], [5], [0, 1], front_computes=3)).distance is None


def test_distances_that_differ_are_a_range() -> None:
    other = LocatedRound([LocatedStatement(B, [6], [1, 2, 3])], [7])
    assert measured(located([4], [5], [0]), other).distance == (1, 3)


def test_an_index_is_neither_ahead_nor_late() -> None:
    found = measured(located([4], [5], [0], is_index=True))
    assert found.distances == {0: 1}
    assert found.ahead_statements == found.same_iteration_statements == []
    assert found.distance is None


def test_a_load_that_was_hoisted_is_told_and_has_no_distance() -> None:
    found = measured(located([], [5], [0]))
    assert found.distances == {}
    assert found.notes == [RegionNote("the load of a (k.py:7) was hoisted out of the loop")]
    assert measured(located([], [5])).notes == []


def test_copies_of_no_whole_number_of_iterations_are_uncertain_unless_it_was_known() -> None:
    odd = located([4, 6], [7], [0, 1, 2])
    found = measured(odd)
    assert found.is_uncertain
    assert "3 loads of a (k.py:7) before the loop, 2 inside" in found.notes[0].message
    assert found.notes[0].message.endswith("its distance is unknown")
    told = measured(odd, before=memory(distances={0: 2}, loads={0: 2}))
    assert (told.is_uncertain, told.distances) == (False, {0: 2})
    assert told.notes[0].message.endswith("the distance of the previous stage is used")


def test_copies_that_lost_their_line_leave_the_distance_of_the_stage_before() -> None:
    found = measured(located([4], [5]), before=memory(distances={0: 2}))
    assert found.distances == {0: 2}
    assert "before the loop have no line" in found.notes[0].message
    kept = measured(located([4], [5], [0]), before=memory(distances={0: 2}))
    assert kept.distances == {0: 2}
    assert kept.notes[0].message.startswith("1 copies of a (k.py:7) before the loop")


def test_a_peeled_iteration_takes_one_off_where_the_stage_before_says_so() -> None:
    # the computes of the first round are blurred in front of the loop, the second shows that one was peeled
    blurred, plain = located([4], [5], [0, 1, 2]), LocatedRound([LocatedStatement(B, [6], [3])], [7], [0])
    assert measured(blurred, plain).distances[0] == 3
    assert measured(blurred, plain, before=memory(distances={0: 2})).distances[0] == 2
    # no back end moves loads to other iterations: the third copy is of another loop, or of a peeled iteration
    assert measured(blurred, plain, before=memory(distances={0: 1})).distances[0] == 1
    # more of them than of one iteration seem to stand there: the second shows that it is one
    twice = LocatedRound([LocatedStatement(A, [4], [0, 1, 2])], [5], [0, 1])
    assert measured(twice, plain).distances[0] == 1
    assert measured(twice, plain, before=memory(distances={0: 2})).distances[0] == 2


@pytest.mark.parametrize(
    ("loads", "computes", "stand"),
    [([0], [1, 2], CopyPosition.BEFORE), ([3], [1, 2], CopyPosition.AFTER), ([2], [1, 3], CopyPosition.BETWEEN)],
)
def test_loads_stand_before_between_or_after_the_computes(
    loads: list[int], computes: list[int], stand: CopyPosition
) -> None:
    code = made("A A A A", to={0: (0,)})
    assert measured(located(loads, computes, distance=1), code=code).load_position is stand


def test_without_computes_nothing_stands_to_them() -> None:
    assert measured(located([4], [], distance=1)).load_position is None


# -- copies of the body ----------------------------------------------------------------


def unrolled(letters: str, *, before: PreviousStage | None = None) -> int:
    """Copies of the body in a loop of the loads `a`, `b` and of the computes of both rounds, `x` and `y`."""
    words = letters.split()
    places = {name: [n for n, word in enumerate(words) if word == name] for name in "abxy"}
    rounds = [
        LocatedRound([LocatedStatement(A, places["a"])], places["x"]),
        LocatedRound([LocatedStatement(B, places["b"])], places["y"]),
    ]
    kept = [item for item in rounds if item.statements[0].loads or item.computes]
    code = made(" ".join("L" if word in "ab" else "F" for word in words), to={0: (0,)})
    return measure_prefetch(code, kept, before).unroll_factor


@pytest.mark.parametrize(
    ("letters", "copies"),
    [
        ("a x", 1),
        ("a x a x", 2),
        ("a a x x a a x x a a x x", 3),  # a run of equal events is one
        ("a b x y a b x y", 2),
        ("a b x y b a y x", 2),  # what stands together has no order
        ("a b x y b x a y", 1),
        ("a x b y", 1),
        ("a x b y a x", 1),  # no whole number of copies
        ("a x a x b y", 1),
        ("a b a b", 2),
        ("a", 1),
        ("", 1),
    ],
)
def test_a_body_that_repeats_as_a_whole_was_unrolled(letters: str, copies: int) -> None:
    assert unrolled(letters) == copies


def test_as_many_loads_as_before_are_as_many_copies_as_before() -> None:
    assert unrolled("a a x x", before=memory(loads={0: 2}, unrolled=2)) == 2
    assert unrolled("a x a x", before=memory(loads={0: 1}, unrolled=1)) == 2
