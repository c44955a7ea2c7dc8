"""How rounds follow each other, on lines of loads and computes written by hand."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from artifact_inspector.analysis.order.placement import LocatedRound, LocatedStatement
from artifact_inspector.analysis.order.reference_regions import LoadStatement
from artifact_inspector.analysis.order.round_sequence import RoundSequence, compare_rounds
from artifact_inspector.model import OrderVerdict


def judged(line: str, *exclusive: tuple[int, int]) -> RoundSequence | None:
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
        ("L1 F1 L2 F2", OrderVerdict.INTERLEAVED, None, ""),
        ("L2 F2 L1 F1", OrderVerdict.INTERLEAVED, None, ""),
        ("L1 L2 F1 F2", OrderVerdict.CLUSTERED, None, ""),
        ("L1 L2 F1 L3 F2 F3", OrderVerdict.STAGGERED, 1, ""),
        ("L1 L2 L3 F1 L4 F2 L5 F3 F4 F5", OrderVerdict.STAGGERED, 2, ""),
        ("L1 L2 F1 L1 F1 F2", OrderVerdict.STAGGERED, 1, ""),
        ("L1 L2 F1 F2 L3 F3", OrderVerdict.GROUPED, None, "{1 2}{3}"),
        ("L1 L2 F1 L3 F2 F3 L4 F4", OrderVerdict.GROUPED, None, "{1 2}{3}{4}"),
        ("L1 L2 L4 L3 F1 F2 L5 F5 F4 F3", OrderVerdict.GROUPED, None, "{1 2 4 3}{5}"),
        ("L3 L1 F1 L2 F2 F3", OrderVerdict.GROUPED, None, "{1 3}{2}"),
        ("L1 F1 L3 F1 L2 F2 F3", OrderVerdict.GROUPED, None, "{1}{3}{2}"),
        ("L1 F1 L2 F1 F2", OrderVerdict.MIXED, None, ""),
    ],
)
def test_a_verdict_says_what_its_line_shows(
    line: str, verdict: OrderVerdict, distance: int | None, groups: str
) -> None:
    found = judged(line)
    assert found is not None
    assert (found.verdict, found.distance, found.groups) == (verdict, distance, groups)


def test_rounds_of_exclusive_branches_have_no_order() -> None:
    assert judged("L1 L2 F2 F1", (1, 2)) is None


def test_the_round_behind_two_arms_is_compared_with_both_of_them() -> None:
    found = judged("L1 F1 L2 F2 L3 F3", (1, 2))
    assert found is not None
    assert (found.verdict, len(found.pairs)) == (OrderVerdict.INTERLEAVED, 2)
    late = judged("L1 L3 F1 L2 F2 F3", (1, 2))
    assert late is not None
    assert late.verdict is OrderVerdict.CLUSTERED


def test_a_round_that_no_path_has_in_front_is_none_that_another_runs_ahead_of() -> None:
    # rounds 1 and 2 are arms of an if: one of them runs, and round 3 is loaded a round ahead of either
    found = judged("L1 L2 L3 F1 F2 L4 F3 F4", (1, 2))
    assert found is not None
    assert (found.verdict, found.distance) == (OrderVerdict.STAGGERED, 1)


def test_a_round_that_has_all_others_of_its_path_behind_it_tells_no_distance() -> None:
    # 2 and 3 are arms of an if; both are loaded in front of all, and round 4 two rounds ahead
    found = judged("L1 L2 L3 F1 L4 F2 F3 F4", (2, 3))
    assert found is not None
    assert (found.verdict, found.distance) == (OrderVerdict.STAGGERED, 2)


# -- any line, against the table of verdicts read a second time -----------------------------------


def positions(words: list[str], letter: str, number: int) -> list[int]:
    return [place for place, word in enumerate(words) if word[0] == letter and int(word[1]) == number]


def read_again(words: list[str]) -> tuple[OrderVerdict, list[tuple[Fraction, Fraction]], object, str]:
    """The verdict, the shares of each pair, the distance and the groups of a line of rounds without arms."""
    first = {number: positions(words, "F", number)[0] for number in {int(word[1]) for word in words}}
    order = sorted(first, key=first.__getitem__)
    shares = []
    for earlier, later in pairwise(order):
        end = positions(words, "F", earlier)[-1]
        names = sorted({word for word in words if word[0] == "L" and int(word[1]) == later})
        places = [[at for at, word in enumerate(words) if word == name] for name in names]
        ahead = [Fraction(sum(at < first[earlier] for at in own), len(own)) for own in places]
        behind = [Fraction(sum(at > end for at in own), len(own)) for own in places]
        shares.append((sum(ahead) / len(names), sum(behind) / len(names)))
    pure = ["I" if g == 1 else "C" if f == 1 else "M" for f, g in shares]
    last = {number: positions(words, "L", number)[-1] for number in order}
    if "M" in pure:
        return OrderVerdict.MIXED, shares, None, ""
    if set(pure) == {"I"}:
        return OrderVerdict.INTERLEAVED, shares, None, ""
    if set(pure) == {"I", "C"}:
        groups: list[list[int]] = []
        for number in sorted(order, key=lambda number: positions(words, "L", number)[0]):
            together = [at for own in (*groups[-1:], [number]) for one in own for at in positions(words, "L", one)]
            if groups and all(word[0] == "L" for word in words[min(together) : max(together)]):
                groups[-1] = sorted([*groups[-1], number], key=order.index)
            else:
                groups.append([number])
        return OrderVerdict.GROUPED, shares, None, "".join(f"{{{' '.join(map(str, own))}}}" for own in groups)
    if max(last.values()) < first[order[0]]:
        return OrderVerdict.CLUSTERED, shares, None, ""
    counts = [sum(first[other] > last[own] for other in order[:place]) for place, own in enumerate(order)]
    told = {count for place, count in enumerate(counts) if 0 < count < place} or {max(1, *counts)}
    return OrderVerdict.STAGGERED, shares, min(told) if len(told) == 1 else (min(told), max(told)), ""


@st.composite
def lines(draw: st.DrawFn) -> list[str]:
    """Two to five rounds of one or two load statements each, every load in front of a compute of its round."""
    words: list[str] = []
    for number in range(1, draw(st.integers(2, 5)) + 1):
        names = ["a", "b"][: draw(st.integers(1, 2))]
        loads = [f"L{number}{draw(st.sampled_from(names))}" for _ in range(draw(st.integers(0, 2)))]
        own = [*(f"L{number}{name}" for name in names), *loads]
        at = draw(st.integers(0, len(words)))
        behind = draw(st.integers(at, len(words)))
        computes = [f"F{number}"] * draw(st.integers(1, 2))
        words = [*words[:at], *own, *words[at:behind], *computes, *words[behind:]]
        if draw(st.booleans()):
            words.insert(draw(st.integers(0, len(words))), f"L{number}a")
    return words


@settings(max_examples=150, deadline=None)
@given(words=lines(), copies=st.integers(1, 3))
def test_any_line_is_judged_as_the_table_of_verdicts_says(words: list[str], copies: int) -> None:
    body = words * copies  # of an unrolled body, the first copy is judged
    rounds = {}
    for number in sorted({int(word[1]) for word in words}):
        names = sorted({word for word in words if word.startswith(f"L{number}")})
        statement = LoadStatement(0, None, None, "", 0, False, False, None)
        found = [LocatedStatement(statement, [at for at, word in enumerate(body) if word == name]) for name in names]
        rounds[number - 1] = LocatedRound(found, positions(body, "F", number))
    told = compare_rounds(tuple(range(len(body))), rounds, (), copies)
    assert told is not None
    verdict, shares, distance, groups = read_again(words)
    assert (told.verdict, told.distance, told.groups) == (verdict, distance, groups)
    given_shares = [share for pair in told.pairs for share in (pair.issued_before, pair.issued_after)]
    assert given_shares == pytest.approx([float(share) for pair in shares for share in pair])
