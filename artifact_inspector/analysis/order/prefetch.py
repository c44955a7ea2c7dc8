"""How far the loads of a loop run ahead of the computes that use their data.

The distance is counted from the data: the values that cross the loop's back edge in the program, plus the copies of a
statement before the loop whose data is not consumed there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby

from artifact_inspector.analysis.flow.function_code import FunctionCode
from artifact_inspector.analysis.flow.traversal import group_by_key, range_of
from artifact_inspector.analysis.order.placement import LocatedRound, LocatedStatement, PreviousStage
from artifact_inspector.analysis.order.region_facts import RegionNote
from artifact_inspector.model import CopyPosition, Stage


@dataclass(slots=True)
class LoopPrefetch:
    """The loads of a loop, split by whether they run ahead."""

    unroll_factor: int = 1
    """Number of equal copies of the program's loop body that the loop holds."""
    distances: dict[int, int] = field(default_factory=dict)
    """Index of the load statement → distance in iterations of the source loop."""
    ahead_statements: list[LocatedStatement] = field(default_factory=list)
    same_iteration_statements: list[LocatedStatement] = field(default_factory=list)
    """Statements loaded in the iteration that uses them. Index loads are in neither list."""
    notes: list[RegionNote] = field(default_factory=list)
    is_uncertain: bool = False
    """The number of copies before the loop is not a multiple of the loads of one iteration."""
    load_position: CopyPosition | None = None
    """Position of the loads that run ahead relative to the direct computes."""

    @property
    def distance(self) -> int | tuple[int, int] | None:
        """Iterations ahead, as (least, most) where the loads differ. None if no load runs ahead."""
        return range_of(self.distances[statement.program.index] for statement in self.ahead_statements)


def measure_prefetch(
    code: FunctionCode,
    rounds: list[LocatedRound],
    previous: PreviousStage | None,
    scheduled: Mapping[int, int] | None = None,
) -> LoopPrefetch:
    """The distance of each load statement of a loop, using the result of the previous stage.

    Args:
        scheduled: the distances that the program itself gives to its copies, by statement.
    """
    scheduled = scheduled or {}
    prefetch = LoopPrefetch(_find_unroll_factor(code, rounds, previous))
    distances = prefetch.distances
    consumed = [
        round(len(r.computes_before_loop) * prefetch.unroll_factor / len(r.computes)) if r.computes else 0
        for r in rounds
    ]
    present_statements: list[LocatedStatement] = []
    for located_round, own_consumed in zip(rounds, consumed, strict=True):
        for statement in located_round.statements:
            if statement.loads:
                present_statements.append(statement)
                index = statement.program.index
                if index not in scheduled:
                    distances[index] = _distance(code, prefetch, statement, previous, own_consumed, consumed)
                else:
                    distances[index] = scheduled[index]
            elif statement.loads_before_loop:
                message = f"the load of {statement.program.label} was hoisted out of the loop"
                prefetch.notes.append(RegionNote(message))
    if previous is not None and not scheduled:
        distances.update(_distances_at_shared_location(code, present_statements, distances, previous.distances))
    for statement in present_statements:
        if not statement.program.is_index:
            is_ahead = distances[statement.program.index] > 0
            (prefetch.ahead_statements if is_ahead else prefetch.same_iteration_statements).append(statement)
    prefetch.load_position = _position_of_loads(code, rounds, distances)
    return prefetch


def _distance(
    code: FunctionCode,
    prefetch: LoopPrefetch,
    statement: LocatedStatement,
    previous: PreviousStage | None,
    own_consumed: int,
    consumed: list[int],
) -> int:
    """Iterations ahead of one statement.

    `own_consumed` is the number of iterations that its own round computes before the loop, `consumed` the same number
    for each round. A back end may mix up the peeled computes of several rounds. The distance at the previous stage is
    then used if the peeled computes of another round give it.
    """
    program = statement.program
    previous_distance = 0 if previous is None else previous.distances.get(program.index, 0)
    if previous_distance > program.distance and not statement.loads_before_loop:
        message = (
            f"the copies of {program.label} before the loop have no line; the distance of the previous stage is used"
        )
        prefetch.notes.append(RegionNote(message))
        return previous_distance
    copies = _copies_before_loop(prefetch, statement, previous)
    distance, *others = (program.distance + max(0, copies - n) for n in (own_consumed, *consumed))
    if not previous_distance or previous_distance == distance:
        return distance
    if previous_distance not in others and code.module.stage.order > Stage.TTGIR.order:
        message = (
            f"{copies} copies of {program.label} before the loop: some are of other loops or of a peeled iteration"
        )
        prefetch.notes.append(RegionNote(message))
        return previous_distance
    return previous_distance if previous_distance in others else distance


def _distances_at_shared_location(
    code: FunctionCode,
    statements: list[LocatedStatement],
    distances: dict[int, int],
    previous_distances: dict[int, int],
) -> dict[int, int]:
    """Distances at the previous stage for statements that share one source location here.

    Their copies before the loop cannot be distinguished at this stage; only the total number can be compared.
    """
    indices_at = group_by_key((code.visible_chain(s.program.chain), s.program.index) for s in statements)
    return {
        index: previous_distances.get(index, 0)
        for chain, indices in indices_at.items()
        if chain is not None and len(indices) > 1
        if sum(distances[index] for index in indices) == sum(previous_distances.get(index, 0) for index in indices)
        for index in indices
    }


def _copies_before_loop(prefetch: LoopPrefetch, statement: LocatedStatement, previous: PreviousStage | None) -> int:
    program, ahead, inside = statement.program, len(statement.loads_before_loop), len(statement.loads)
    copies = ahead / (inside / prefetch.unroll_factor)
    if copies == int(copies):
        return int(copies)
    previous_distance = None if previous is None else previous.distances.get(program.index)
    remedy = "its distance is unknown" if previous_distance is None else "the distance of the previous stage is used"
    message = (
        f"{ahead} loads of {program.label} before the loop, {inside} inside: not a whole number of iterations; {remedy}"
    )
    prefetch.notes.append(RegionNote(message))
    if previous_distance is None:
        prefetch.is_uncertain = True
        return round(copies)
    return previous_distance - program.distance


def _position_of_loads(
    code: FunctionCode, rounds: list[LocatedRound], distances: dict[int, int]
) -> CopyPosition | None:
    """Position of the loads that run ahead. Loads for the current iteration always precede their computes."""
    position = code.flow.position
    statements = (statement for located_round in rounds for statement in located_round.statements)
    loads = [position[i] for s in statements if distances.get(s.program.index, 0) > 0 for i in s.loads]
    computes = [position[i] for located_round in rounds for i in located_round.computes]
    if not loads or not computes:
        return None
    if max(loads) < min(computes):
        return CopyPosition.BEFORE
    return CopyPosition.AFTER if min(loads) > max(computes) else CopyPosition.BETWEEN


def _find_unroll_factor(code: FunctionCode, rounds: list[LocatedRound], previous: PreviousStage | None) -> int:
    """Number of equal copies of the program's loop body that the loop holds.

    LLVM unrolls after the rounds were read, so the sequence of events, labelled by round, repeats.
    """
    present = [statement for located_round in rounds for statement in located_round.statements if statement.loads]
    # A back end that interleaves the copies, or the loads and computes of one copy, keeps the number of loads.
    if previous is not None and all(len(s.loads) == previous.loads.get(s.program.index) for s in present):
        return previous.unroll_factor if _are_equal_copies(code, rounds, present) else 1
    labels: dict[int, tuple[int, int]] = {}
    """Load or compute → (round, index of the load's statement in the round; -1 for a compute)."""
    for number, located_round in enumerate(rounds):
        for statement_index, statement in enumerate(located_round.statements):
            labels.update(dict.fromkeys(statement.loads, (number, statement_index)))
        labels.update(dict.fromkeys(located_round.computes, (number, -1)))
    indices = sorted(labels, key=code.flow.position.__getitem__)
    if previous is None and all(s.program.source is None for s in present):  # no program: copies have the same lines
        return _count_copies([code.chains.get(index, index) for index in indices], 2)
    events = [labels[index] for index in indices]
    runs = [event for event, _ in groupby(events)]
    least = max(2, len(present))  # a copy holds every statement, and at least one load and one compute
    # A back end may reorder adjacent loads, or adjacent computes, within each copy.
    unordered_runs = [frozenset(run) for _, run in groupby(events, lambda event: event[1] < 0)]
    return max(_count_copies(runs, least), _count_copies(unordered_runs, 2))


def _are_equal_copies(code: FunctionCode, rounds: list[LocatedRound], present: list[LocatedStatement]) -> bool:
    """False if all loads of one operand are before the first compute, and those of another among the computes."""
    position = code.flow.position
    computes = [position[index] for located_round in rounds for index in located_round.computes]
    first, last = min(computes, default=0), max(computes, default=0)
    together = {max(position[index] for index in statement.loads) < first for statement in present}
    spread = any(first < position[index] < last for statement in present for index in statement.loads)
    return together != {False, True} or not spread


def _count_copies(runs: Sequence[object], least: int) -> int:
    """How often a run of at least `least` elements repeats to form the sequence."""
    if not runs:
        return 1
    period = _period(runs)
    longer = (n for n in range(period, len(runs) + 1, period) if n >= least and len(runs) % n == 0)
    return len(runs) // next(longer, len(runs))


def _period(runs: Sequence[object]) -> int:
    """The length of the shortest run that repeats to form the sequence; the full length if none does.

    Source: the failure function of Knuth, Morris, Pratt, "Fast Pattern Matching in Strings" (1977).
    """
    borders = [0] * len(runs)
    for end in range(1, len(runs)):
        length = borders[end - 1]
        while length and runs[end] != runs[length]:
            length = borders[length - 1]
        borders[end] = length + (runs[end] == runs[length])
    period = len(runs) - borders[-1]
    return period if len(runs) % period == 0 else len(runs)
