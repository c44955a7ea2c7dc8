"""How far the loads of a loop run ahead of the computes that use their data.

The distance is counted from the data: the values that cross the loop's back edge in the program, plus the
copies of a statement before the loop whose data is not consumed there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import groupby

from artifact_inspector.analysis.flow.code import Code
from artifact_inspector.analysis.flow.places import Chain
from artifact_inspector.analysis.order.facts import Note
from artifact_inspector.analysis.order.placement import LocatedRound, LocatedStatement, Memory
from artifact_inspector.model import Standing


@dataclass(slots=True)
class Ahead:
    """The loads of a loop, split by whether they run ahead."""

    unrolled_by: int = 1
    """Number of equal copies of the program's loop body that the loop holds."""
    distances: dict[int, int] = field(default_factory=dict)
    """Index of the load statement → distance in iterations of the source loop."""
    ahead: list[LocatedStatement] = field(default_factory=list)
    same: list[LocatedStatement] = field(default_factory=list)
    """Statements loaded in the iteration that uses them. Index loads are in neither list."""
    notes: list[Note] = field(default_factory=list)
    uncertain: bool = False
    """The number of copies before the loop is not a multiple of the loads of one iteration."""
    stand: Standing | None = None
    """Position of the loads that run ahead relative to the direct computes."""

    @property
    def distance(self) -> int | tuple[int, int] | None:
        """Iterations ahead, as (least, most) where the loads differ. None if no load runs ahead."""
        found = [self.distances[statement.statement.index] for statement in self.ahead]
        if not found:
            return None
        return found[0] if min(found) == max(found) else (min(found), max(found))


def measure_ahead(code: Code, rounds: list[LocatedRound], before: Memory | None) -> Ahead:
    """The distance of each load statement of a loop, using the result of the previous stage."""
    result = Ahead(_unrolling(code, rounds, before))
    consumed = [_consumed_in_front(item, result.unrolled_by) for item in rounds]
    for item, own in zip(rounds, consumed, strict=True):
        for found in item.statements:
            if not found.loads:
                if found.front:
                    result.notes.append(
                        Note(f"the load of {found.statement.label} was hoisted out of the loop")
                    )
                continue
            result.distances[found.statement.index] = _distance(result, found, before, own, consumed)
    present = [found for item in rounds for found in item.statements if found.loads]
    if before is not None:
        result.distances.update(_of_one_place(code, present, result.distances, before.distances))
    for found in present:
        if not found.statement.is_index:
            (result.ahead if result.distances[found.statement.index] > 0 else result.same).append(found)
    result.stand = _standing(code, rounds, result.distances)
    return result


def _distance(
    result: Ahead, found: LocatedStatement, before: Memory | None, own: int, consumed: list[int]
) -> int:
    """Iterations ahead of one statement.

    `own` is the number of iterations that its own round computes before the loop, `consumed` the same
    number for each round. A back end may mix up the peeled computes of several rounds. The distance at
    the previous stage is then used if the peeled computes of another round give it.
    """
    known = 0 if before is None else before.distances.get(found.statement.index, 0)
    if known > found.statement.distance and not found.front:
        result.notes.append(
            Note(
                f"the copies of {found.statement.label} before the loop have no line; "
                "the distance of the previous stage is used"
            )
        )
        return known
    copies = _copies_in_front(result, found, before)
    distance, *others = (found.statement.distance + max(0, copies - n) for n in (own, *consumed))
    return known if known and known in others else distance


def _of_one_place(
    code: Code, statements: list[LocatedStatement], found: dict[int, int], known: dict[int, int]
) -> dict[int, int]:
    """Distances at the previous stage for statements that share one source location here.

    Their copies before the loop cannot be distinguished at this stage; only the total number can be
    compared.
    """
    at: dict[Chain | None, list[int]] = {}
    for one in statements:
        at.setdefault(code.visible(one.statement.chain), []).append(one.statement.index)
    return {
        index: known.get(index, 0)
        for chain, together in at.items()
        if chain is not None and len(together) > 1
        if sum(found[index] for index in together) == sum(known.get(index, 0) for index in together)
        for index in together
    }


def _copies_in_front(result: Ahead, found: LocatedStatement, before: Memory | None) -> int:
    each = len(found.loads) / result.unrolled_by
    copies = len(found.front) / each
    if copies == int(copies):
        return int(copies)
    known = None if before is None else before.distances.get(found.statement.index)
    result.notes.append(
        Note(
            f"{len(found.front)} loads of {found.statement.label} before the loop, "
            f"{len(found.loads)} inside: not a whole number of iterations; "
            + ("its distance is unknown" if known is None else "the distance of the previous stage is used")
        )
    )
    if known is None:
        result.uncertain = True
        return round(copies)
    return known - found.statement.distance


def _consumed_in_front(item: LocatedRound, unrolled_by: int) -> int:
    if not item.computes or not item.front_computes:
        return 0
    return round(len(item.front_computes) / (len(item.computes) / unrolled_by))


def _standing(code: Code, rounds: list[LocatedRound], distances: dict[int, int]) -> Standing | None:
    """Position of the loads that run ahead.

    Loads for the current iteration always precede their computes.
    """
    position = code.flow.position
    statements = [found for item in rounds for found in item.statements]
    ahead = [found for found in statements if distances.get(found.statement.index, 0) > 0]
    loads = [position[i] for found in ahead for i in found.loads]
    computes = [position[i] for item in rounds for i in item.computes]
    if not loads or not computes:
        return None
    if max(loads) < min(computes):
        return Standing.BEFORE
    return Standing.AFTER if min(loads) > max(computes) else Standing.BETWEEN


def _unrolling(code: Code, rounds: list[LocatedRound], before: Memory | None) -> int:
    """Number of equal copies of the program's loop body that the loop holds.

    LLVM unrolls after the rounds were read, so the sequence of events, labelled by round, repeats.
    """
    present = [found for item in rounds for found in item.statements if found.loads]
    # A back end that interleaves the copies, or the loads and computes of one copy, keeps the number of
    # loads.
    if before is not None and all(len(s.loads) == before.loads.get(s.statement.index) for s in present):
        return before.unrolled_by
    labels: dict[int, tuple[int, int]] = {}
    """Load or compute → (round, index of the load's statement in the round; -1 for a compute)."""
    for number, item in enumerate(rounds):
        for place, found in enumerate(item.statements):
            labels.update(dict.fromkeys(found.loads, (number, place)))
        labels.update(dict.fromkeys(item.computes, (number, -1)))
    events = [labels[index] for index in sorted(labels, key=code.flow.position.__getitem__)]
    runs = [event for event, _ in groupby(events)]
    least = max(2, len(present))  # a copy holds every statement, and at least one load and one compute
    # A back end may reorder adjacent loads, or adjacent computes, within each copy.
    together = [frozenset(run) for _, run in groupby(events, lambda event: event[1] < 0)]
    return max(_copies(runs, least), _copies(together, 2))


def _copies(runs: Sequence[object], least: int) -> int:
    """How often a run of at least `least` elements repeats to form the sequence."""
    period = _period(runs)
    longer = (n for n in range(period, len(runs) + 1, period) if n >= least and len(runs) % n == 0)
    return len(runs) // next(longer, len(runs)) if runs else 1


def _period(runs: Sequence[object]) -> int:
    """The length of the shortest run that repeats to form the sequence; the full length if none does.

    Source: the failure function of Knuth, Morris, Pratt, "Fast Pattern Matching in Strings" (1977).
    """
    borders = [0] * len(runs)
    for place in range(1, len(runs)):
        length = borders[place - 1]
        while length and runs[place] != runs[length]:
            length = borders[length - 1]
        borders[place] = length + (runs[place] == runs[length])
    if not runs:
        return 1
    period = len(runs) - borders[-1]
    return period if len(runs) % period == 0 else len(runs)
