"""How the rounds of one pass through a region follow each other: each round against the next."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from artifact_inspector.analysis.flow.code import Code
from artifact_inspector.analysis.order.facts import Pair
from artifact_inspector.analysis.order.placement import LocatedRound, LocatedStatement
from artifact_inspector.model import PairOrder, Verdict

__all__ = ["Sequence", "compare_rounds"]


@dataclass(frozen=True, slots=True)
class Sequence:
    """What comparing neighbouring rounds yields."""

    verdict: Verdict = Verdict.UNKNOWN
    pairs: tuple[Pair, ...] = ()
    groups: str = ""
    """For `grouped`: which rounds were loaded together, as `{1 2}{3}`."""


def compare_rounds(code: Code, rounds: list[LocatedRound], unrolled_by: int) -> Sequence:
    """The verdict on two or more rounds, each with a load and a compute.

    Args:
        unrolled_by: equal copies of the body; the first is judged.
    """
    rounds = [_first_copy(item, unrolled_by) for item in rounds]
    pairs = tuple(_pair(code.flow.position, a, b) for a, b in pairwise(rounds))
    letters = {pair.letter for pair in pairs}
    if letters == {PairOrder.INTERLEAVED}:
        return Sequence(Verdict.INTERLEAVED, pairs)
    if letters == {PairOrder.CLUSTERED}:
        return Sequence(Verdict.CLUSTERED, pairs)
    if PairOrder.MIXED in letters:
        return Sequence(Verdict.MIXED, pairs)
    text = "{1"
    for number, pair in enumerate(pairs, 2):
        text += f" {number}" if pair.letter is PairOrder.CLUSTERED else f"}}{{{number}"
    return Sequence(Verdict.GROUPED, pairs, text + "}")


def _first_copy(item: LocatedRound, times: int) -> LocatedRound:
    """The first of the equal copies of an unrolled body."""
    if times == 1:
        return item
    statements = [
        LocatedStatement(s.statement, s.loads[: max(1, len(s.loads) // times)])
        for s in item.statements
        if s.loads
    ]
    return LocatedRound(statements, item.computes[: max(1, len(item.computes) // times)])


def _pair(position: tuple[int, ...], earlier: LocatedRound, later: LocatedRound) -> Pair:
    first = min(position[i] for i in earlier.computes)
    last = max(position[i] for i in earlier.computes)
    before = after = 0.0
    statements = [found for found in later.statements if found.loads]
    for statement in statements:
        places = [position[i] for i in statement.loads]
        before += sum(place < first for place in places) / len(places)
        after += sum(place > last for place in places) / len(places)
    return Pair(before / len(statements), after / len(statements))
