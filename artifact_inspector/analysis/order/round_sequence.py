"""The order of the rounds in one pass through a region: each round compared with the following ones.

Rounds are sorted by their first compute at the stage. Rounds that no path executes one after the other have no order.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

from artifact_inspector.analysis.flow.traversal import group_by_key, range_of
from artifact_inspector.analysis.order.placement import LocatedRound, LocatedStatement
from artifact_inspector.analysis.order.region_facts import RoundPair
from artifact_inspector.model import OrderVerdict, PairOrder


class RoundSequence(NamedTuple):
    """The result of comparing neighbouring rounds."""

    verdict: OrderVerdict = OrderVerdict.UNKNOWN
    pairs: tuple[RoundPair, ...] = ()
    groups: str = ""
    """For `grouped`: which rounds were loaded together, as `{1 2}{3}`."""
    distance: int | tuple[int, int] | None = None
    """For `staggered`: rounds that the loads run ahead; a range where they differ."""


class _RoundSpan:
    """The position of a round in execution order."""

    def __init__(self, position: tuple[int, ...], number: int, located_round: LocatedRound) -> None:
        self.number = number
        self.loads = [[position[i] for i in s.loads] for s in located_round.statements if s.loads]
        positions = [load_position for load_positions in self.loads for load_position in load_positions]
        self.first_load, self.last_load = min(positions), max(positions)
        self.computes = [position[i] for i in located_round.computes]
        self.first_compute, self.last_compute = min(self.computes), max(self.computes)


_Partners = Mapping[int, Collection[int]]
"""Round → the rounds that no path executes before or after it, by index."""


def compare_rounds(
    position: tuple[int, ...],
    rounds: Mapping[int, LocatedRound],
    exclusive: Iterable[tuple[int, int]],
    unrolled_by: int,
) -> RoundSequence | None:
    """The verdict on rounds that have a load and a compute each; None if no two of them have an order.

    Args:
        position: of every instruction in execution order.
        rounds: by their number in the program.
        exclusive: pairs that no path executes one after the other.
        unrolled_by: equal copies of the body. Only the first is judged.
    """
    spans = [
        _RoundSpan(position, number, item if unrolled_by == 1 else _first_copy(item, unrolled_by))
        for number, item in rounds.items()
    ]
    spans.sort(key=lambda span: (span.first_compute, span.number))
    partners = group_by_key(pair for first, second in exclusive for pair in ((first, second), (second, first)))
    neighbours = _neighbouring_spans(spans, partners)
    if not neighbours:
        return None
    pairs = tuple(_compare_pair(earlier, later) for earlier, later in neighbours)
    letters = {pair.order for pair in pairs}
    if PairOrder.MIXED in letters:
        return RoundSequence(OrderVerdict.MIXED, pairs)
    if letters == {PairOrder.INTERLEAVED}:
        return RoundSequence(OrderVerdict.INTERLEAVED, pairs)
    if letters == {PairOrder.INTERLEAVED, PairOrder.CLUSTERED}:
        return RoundSequence(OrderVerdict.GROUPED, pairs, _load_groups(spans, partners))
    # the first compute of this round, or of one that may run before it
    firsts = (next(x.first_compute for x in spans if x.number not in partners.get(s.number, ())) for s in spans)
    if all(span.last_load < first for span, first in zip(spans, firsts, strict=True)):
        return RoundSequence(OrderVerdict.CLUSTERED, pairs)
    return RoundSequence(OrderVerdict.STAGGERED, pairs, distance=_rounds_ahead(spans, partners))


def _first_copy(located_round: LocatedRound, times: int) -> LocatedRound:
    """The first of the equal copies of an unrolled body."""
    statements = [
        LocatedStatement(s.program, s.loads[: max(1, len(s.loads) // times)])
        for s in located_round.statements
        if s.loads
    ]
    return LocatedRound(statements, located_round.computes[: max(1, len(located_round.computes) // times)])


def _neighbouring_spans(spans: list[_RoundSpan], partners: _Partners) -> list[tuple[_RoundSpan, _RoundSpan]]:
    """Pairs of rounds that some path executes directly one after the other."""
    pairs: list[tuple[_RoundSpan, _RoundSpan]] = []
    for number, later in enumerate(spans):
        between: list[_RoundSpan] = []
        for earlier in reversed(spans[:number]):
            exclusive_rounds = partners.get(earlier.number, frozenset())
            if later.number in exclusive_rounds:
                continue
            if all(span_between.number in exclusive_rounds for span_between in between):
                pairs.append((earlier, later))
            if not exclusive_rounds:
                break  # every path to earlier rounds goes through it
            between.append(earlier)
    return pairs


def _compare_pair(earlier: _RoundSpan, later: _RoundSpan) -> RoundPair:
    issued_before = issued_after = 0.0
    for positions in later.loads:
        issued_before += sum(position < earlier.first_compute for position in positions) / len(positions)
        issued_after += sum(position > earlier.last_compute for position in positions) / len(positions)
    return RoundPair(issued_before / len(later.loads), issued_after / len(later.loads))


def _rounds_ahead(spans: list[_RoundSpan], partners: _Partners) -> int | tuple[int, int] | None:
    """Rounds between the loads of a round and its computes. Rounds with no compute before their loads are ignored."""
    firsts = [span.first_compute for span in spans]
    place_of = {span.number: span_index for span_index, span in enumerate(spans)}
    ahead: set[int] = set()
    max_ahead = 1
    for span_index, span in enumerate(spans):
        started_spans = bisect_right(firsts, span.last_load, 0, span_index)
        exclusive = [place_of[n] for n in partners.get(span.number, ()) if place_of.get(n, span_index) < span_index]
        count = span_index - started_spans - sum(other_index >= started_spans for other_index in exclusive)
        max_ahead = max(max_ahead, count)
        if 0 < count < span_index - len(exclusive):
            ahead.add(count)
    return range_of(ahead or (max_ahead,))


def _load_groups(spans: list[_RoundSpan], partners: _Partners) -> str:
    """The rounds that are loaded together, without one of their computes in between, as `{1 2}{3}`.

    Groups are in the order of their loads, the rounds of a group in that of their computes. A compute that no path runs
    together with such a load does not split a group.
    """
    groups: list[list[_RoundSpan]] = []
    for span in sorted(spans, key=lambda span: (span.first_load, span.number)):
        if not groups or _has_compute_between(spans, partners, [*groups[-1], span]):
            groups.append([])
        groups[-1].append(span)
    for group in groups:
        group.sort(key=lambda span: (span.first_compute, span.number))
    return "".join(f"{{{' '.join(str(span.number + 1) for span in group)}}}" for group in groups)


def _has_compute_between(spans: list[_RoundSpan], partners: _Partners, group: list[_RoundSpan]) -> bool:
    """True if a compute is between the first and the last load of some rounds."""
    first, last = min(span.first_load for span in group), max(span.last_load for span in group)
    numbers = {span.number for span in group}
    return any(
        first < position < last
        for span in spans
        if not numbers & set(partners.get(span.number, ()))
        for position in span.computes
    )
