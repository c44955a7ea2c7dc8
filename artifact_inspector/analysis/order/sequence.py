"""The order of the rounds in one pass through a region: each round compared with the following ones.

Rounds are sorted by their first compute at the stage. Rounds that no path executes one after the other
have no order.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from artifact_inspector.analysis.order.facts import Pair
from artifact_inspector.analysis.order.placement import LocatedRound, LocatedStatement
from artifact_inspector.model import PairOrder, Verdict


@dataclass(frozen=True, slots=True)
class Sequence:
    """The result of comparing neighbouring rounds."""

    verdict: Verdict = Verdict.UNKNOWN
    pairs: tuple[Pair, ...] = ()
    groups: str = ""
    """For `grouped`: which rounds were loaded together, as `{1 2}{3}`."""
    distance: int | tuple[int, int] | None = None
    """For `staggered`: rounds that the loads run ahead; a range where they differ."""


class _Span:
    """The position of a round in execution order."""

    def __init__(self, position: tuple[int, ...], number: int, item: LocatedRound) -> None:
        self.number = number
        self.loads = [[position[i] for i in found.loads] for found in item.statements if found.loads]
        self.first_load = min(place for places in self.loads for place in places)
        self.last_load = max(place for places in self.loads for place in places)
        self.computes = [position[i] for i in item.computes]
        self.first, self.last = min(self.computes), max(self.computes)


_Partners = Mapping[int, Collection[int]]
"""Round → the rounds that no path executes before or after it, by index."""


def compare_rounds(
    position: tuple[int, ...],
    rounds: Mapping[int, LocatedRound],
    exclusive: Iterable[tuple[int, int]],
    unrolled_by: int,
) -> Sequence | None:
    """The verdict on rounds that have a load and a compute each; None if no two of them have an order.

    Args:
        position: of every instruction in execution order.
        rounds: by their number in the program.
        exclusive: pairs that no path executes one after the other.
        unrolled_by: equal copies of the body. Only the first is judged.
    """
    spans = [_Span(position, number, _first_copy(item, unrolled_by)) for number, item in rounds.items()]
    spans.sort(key=lambda span: (span.first, span.number))
    partners: dict[int, set[int]] = {}
    for one, other in exclusive:
        partners.setdefault(one, set()).add(other)
        partners.setdefault(other, set()).add(one)
    neighbours = _neighbours(spans, partners)
    if not neighbours:
        return None
    pairs = tuple(_pair(earlier, later) for earlier, later in neighbours)
    letters = {pair.letter for pair in pairs}
    if PairOrder.MIXED in letters:
        return Sequence(Verdict.MIXED, pairs)
    if letters == {PairOrder.INTERLEAVED}:
        return Sequence(Verdict.INTERLEAVED, pairs)
    if letters == {PairOrder.INTERLEAVED, PairOrder.CLUSTERED}:
        return Sequence(Verdict.GROUPED, pairs, _groups(spans, partners))
    if all(span.last_load < _first_compute(spans, span, partners) for span in spans):
        return Sequence(Verdict.CLUSTERED, pairs)
    return Sequence(Verdict.STAGGERED, pairs, distance=_rounds_ahead(spans, partners))


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


def _neighbours(spans: list[_Span], partners: _Partners) -> list[tuple[_Span, _Span]]:
    """Pairs of rounds that some path executes directly one after the other."""
    found: list[tuple[_Span, _Span]] = []
    for place, later in enumerate(spans):
        between: list[_Span] = []
        for before in range(place - 1, -1, -1):
            earlier = spans[before]
            own = partners.get(earlier.number, frozenset())
            if later.number in own:
                continue
            if all(other.number in own for other in between):
                found.append((earlier, later))
            if not own:
                break  # every path to earlier rounds goes through it
            between.append(earlier)
    return found


def _pair(earlier: _Span, later: _Span) -> Pair:
    before = after = 0.0
    for places in later.loads:
        before += sum(place < earlier.first for place in places) / len(places)
        after += sum(place > earlier.last for place in places) / len(places)
    return Pair(before / len(later.loads), after / len(later.loads))


def _first_compute(spans: list[_Span], span: _Span, partners: _Partners) -> int:
    """The first compute of this round, or of one that may run before it."""
    own = partners.get(span.number, frozenset())
    return next(other.first for other in spans if other.number not in own)


def _rounds_ahead(spans: list[_Span], partners: _Partners) -> int | tuple[int, int]:
    """Rounds between the loads of a round and its computes.

    Rounds with no compute before their loads are ignored.
    """
    firsts = [span.first for span in spans]
    place_of = {span.number: place for place, span in enumerate(spans)}
    ahead: set[int] = set()
    most = 1
    for place, span in enumerate(spans):
        behind = bisect_right(firsts, span.last_load, 0, place)
        others = [place_of[n] for n in partners.get(span.number, ()) if place_of.get(n, place) < place]
        earlier = place - len(others)
        count = place - behind - sum(other >= behind for other in others)
        most = max(most, count)
        if 0 < count < earlier:
            ahead.add(count)
    low, high = min(ahead, default=most), max(ahead, default=most)
    return low if low == high else (low, high)


def _groups(spans: list[_Span], partners: _Partners) -> str:
    """The rounds that are loaded together, without one of their computes in between, as `{1 2}{3}`.

    Groups are in the order of their loads. A compute that no path runs together with such a load does not
    split a group.
    """
    groups: list[list[_Span]] = []
    for span in sorted(spans, key=lambda span: (span.first_load, span.number)):
        group = groups[-1] if groups else []
        if not group or _parts(spans, partners, [*group, span]):
            group = []
            groups.append(group)
        group.append(span)
    return "".join(f"{{{' '.join(_in_order(group))}}}" for group in groups)


def _in_order(group: list[_Span]) -> list[str]:
    """The numbers of a group's rounds, in the order in which they compute."""
    return [str(span.number + 1) for span in sorted(group, key=lambda span: (span.first, span.number))]


def _parts(spans: list[_Span], partners: _Partners, group: list[_Span]) -> bool:
    """True if a compute is between the first and the last load of some rounds."""
    first, last = min(span.first_load for span in group), max(span.last_load for span in group)
    numbers = {span.number for span in group}
    return any(
        first < place < last
        for span in spans
        if not numbers & set(partners.get(span.number, ()))
        for place in span.computes
    )
