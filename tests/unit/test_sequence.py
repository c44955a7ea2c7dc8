"""How rounds follow each other, on lines of loads and computes written by hand."""

from __future__ import annotations

import pytest

from artifact_inspector.analysis.order.placement import LocatedRound, LocatedStatement
from artifact_inspector.analysis.order.reference import LoadStatement
from artifact_inspector.analysis.order.sequence import Sequence, compare_rounds
from artifact_inspector.model import Verdict


def judged(line: str, *exclusive: tuple[int, int]) -> Sequence | None:
    """`L1 F1 L2 F2`: the loads and computes of rounds in execution order."""
    words = line.split()
    rounds: dict[int, LocatedRound] = {}
    for number in sorted({int(word[1:]) for word in words}):
        loads = [place for place, word in enumerate(words) if word == f"L{number}"]
        computes = [place for place, word in enumerate(words) if word == f"F{number}"]
        statement = LoadStatement(loads[0], None, None, "", 0, False, False, None)
        rounds[number - 1] = LocatedRound([LocatedStatement(statement, loads)], computes)
    pairs = [(one - 1, other - 1) for one, other in exclusive]
    return compare_rounds(tuple(range(len(words))), rounds, pairs, 1)


@pytest.mark.parametrize(
    ("line", "verdict", "distance", "groups"),
    [
        ("L1 F1 L2 F2", Verdict.INTERLEAVED, None, ""),
        ("L2 F2 L1 F1", Verdict.INTERLEAVED, None, ""),
        ("L1 L2 F1 F2", Verdict.CLUSTERED, None, ""),
        ("L1 L2 F1 L3 F2 F3", Verdict.STAGGERED, 1, ""),
        ("L1 L2 L3 F1 L4 F2 L5 F3 F4 F5", Verdict.STAGGERED, 2, ""),
        ("L1 L2 F1 L1 F1 F2", Verdict.STAGGERED, 1, ""),
        ("L1 L2 F1 F2 L3 F3", Verdict.GROUPED, None, "{1 2}{3}"),
        ("L1 L2 F1 L3 F2 F3 L4 F4", Verdict.GROUPED, None, "{1 2}{3}{4}"),
        ("L1 L2 L4 L3 F1 F2 L5 F5 F4 F3", Verdict.GROUPED, None, "{1 2 4 3}{5}"),
        ("L3 L1 F1 L2 F2 F3", Verdict.GROUPED, None, "{1 3}{2}"),
        ("L1 F1 L3 F1 L2 F2 F3", Verdict.GROUPED, None, "{1}{3}{2}"),
        ("L1 F1 L2 F1 F2", Verdict.MIXED, None, ""),
    ],
)
def test_a_verdict_says_what_its_line_shows(
    line: str, verdict: Verdict, distance: int | None, groups: str
) -> None:
    found = judged(line)
    assert found is not None
    assert (found.verdict, found.distance, found.groups) == (verdict, distance, groups)


def test_rounds_of_exclusive_branches_have_no_order() -> None:
    assert judged("L1 L2 F2 F1", (1, 2)) is None


def test_the_round_behind_two_arms_is_compared_with_both_of_them() -> None:
    found = judged("L1 F1 L2 F2 L3 F3", (1, 2))
    assert found is not None
    assert (found.verdict, len(found.pairs)) == (Verdict.INTERLEAVED, 2)
    late = judged("L1 L3 F1 L2 F2 F3", (1, 2))
    assert late is not None
    assert late.verdict is Verdict.CLUSTERED


def test_a_round_that_no_path_has_in_front_is_none_that_another_runs_ahead_of() -> None:
    # rounds 1 and 2 are arms of an if: one of them runs, and round 3 is loaded a round ahead of either
    found = judged("L1 L2 L3 F1 F2 L4 F3 F4", (1, 2))
    assert found is not None
    assert (found.verdict, found.distance) == (Verdict.STAGGERED, 1)


def test_a_round_that_has_all_others_of_its_path_behind_it_tells_no_distance() -> None:
    # 2 and 3 are arms of an if; both are loaded in front of all, and round 4 two rounds ahead
    found = judged("L1 L2 L3 F1 L4 F2 F3 F4", (2, 3))
    assert found is not None
    assert (found.verdict, found.distance) == (Verdict.STAGGERED, 2)
