"""Locates the rounds of the program at a stage that has no source lines.

Counts and dataflow are used. If a number does not fit, the placement is marked uncertain and no order is reported.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from itertools import groupby
from operator import or_

from artifact_inspector.analysis.flow.function_code import FunctionCode
from artifact_inspector.analysis.flow.taint import find_first_computes
from artifact_inspector.analysis.flow.traversal import set_bit_indices
from artifact_inspector.analysis.order.placement import (
    LocatedRound,
    LocatedStatement,
    Placement,
    PreviousStage,
    sources_of,
    too_many_rounds,
)
from artifact_inspector.analysis.order.reference_regions import STRAIGHT, LoadStatement, ReferenceRegion, equal_runs
from artifact_inspector.analysis.order.region_facts import RegionNote
from artifact_inspector.analysis.order.regions import Region
from artifact_inspector.analysis.order.rounds import find_rounds
from artifact_inspector.model import LOADS, Basis, EventKind
from artifact_inspector.model.limits import ROUNDS

_COPIES, _MATRIX = frozenset({EventKind.ASYNC_COPY}), frozenset({EventKind.MATRIX})


def locate_by_structure(code: FunctionCode, region: Region, reference: ReferenceRegion) -> Placement | None:
    """Rounds read from a stage that is itself in tensor-level SSA form, matched by order.

    None if their number differs from the program's.
    """
    stage_rounds = code.compute_once(find_rounds)
    if stage_rounds is None:
        return None
    rounds_by_anchor = [(code.flow.loop_at(r.anchor), r) for r in stage_rounds.rounds]
    region_rounds = [(loop, r) for loop, r in rounds_by_anchor if r.loop == region.loop]
    if region.loop is None and all(reference_round.anchored_in == STRAIGHT for reference_round in reference.rounds):
        # Loads whose data goes into a loop are its prologue unless the program has such loads.
        region_rounds = [(loop, r) for loop, r in region_rounds if loop is None]
    if len(region_rounds) != len(reference.rounds):
        return None
    rounds: list[LocatedRound] = []
    for (_, stage_round), reference_round in zip(region_rounds, reference.rounds, strict=True):
        loads = [statement.index for statement in stage_round.statements]
        count = len(reference_round.statements)
        if len(loads) < count:
            return None
        has_all_computes = len(stage_round.computes) == len(reference_round.computes)
        located = LocatedRound(
            [LocatedStatement(*x) for x in zip(reference_round.statements, equal_runs(loads, count), strict=True)],
            list(stage_round.computes),
            identified_computes=frozenset(c.index for c in reference_round.computes) if has_all_computes else None,
        )
        if region.loop is not None:
            ahead = [
                statement.index
                for loop, other_round in rounds_by_anchor
                if loop == region.loop != other_round.loop and other_round.anchor == stage_round.anchor
                for statement in other_round.statements
            ]
            ahead = ahead[min(reference.outer_load_count, len(ahead)) :]
            for statement, share in zip(located.statements, equal_runs(ahead, count), strict=True):
                statement.loads_before_loop = share
        rounds.append(located)
    return Placement(rounds, sources_of(reference.unassigned_loads), Basis.DATAFLOW)


def find_computes_using(
    code: FunctionCode, region: Region, rounds: Sequence[Sequence[int]], also: frozenset[EventKind] = frozenset()
) -> dict[int, int]:
    """The computes of a region that are the first to use its loads, each with its rounds as a bit set.

    Args:
        rounds: the load instructions of each round. Data crosses the back edge if the region is a loop.
        also: kinds that count in addition to computes.
    """
    owners: dict[int, int] = {}
    """Load → its rounds as a bit set. A wide load may belong to several."""
    for number, loads in enumerate(rounds):
        for load in loads:
            owners[load] = owners.get(load, 0) | 1 << number
    sets = list(dict.fromkeys(owners.values()))
    numbers = {round_set: number for number, round_set in enumerate(sets)}
    groups = {load: numbers[round_set] for load, round_set in owners.items()}
    trips = 1 if region.loop is None else 2
    users = find_first_computes(code, code.indices(region.enclosed_blocks), groups, trips, also)
    return {index: reduce(or_, map(sets.__getitem__, set_bit_indices(bits)), 0) for index, bits in users.items()}


def locate_by_dataflow(
    code: FunctionCode, region: Region, reference: ReferenceRegion, previous: PreviousStage | None
) -> Placement:
    """Rounds by count and dataflow, for stages without lines."""
    region_loads = code.find(LOADS, region.scope)
    kinds = frozenset(code.instructions[i].kind for i in region_loads)
    loads_before_loop = region.instructions_before_loop(code, code.find(kinds)) if kinds else []
    copies = code.of_kind.get(EventKind.ASYNC_COPY, ())
    if region.loop is None and any(code.flow.loop_at(index) is not None for index in copies):
        # Asynchronous copies outside loops are a prologue if a loop also holds some.
        region_loads = [i for i in region_loads if code.instructions[i].kind is not EventKind.ASYNC_COPY]
    rounds = [LocatedRound([LocatedStatement(s) for s in r.statements]) for r in reference.rounds]
    notes: list[RegionNote] = []
    if rounds and region_loads:
        runs = _split_by_rounds(code, region, region_loads, rounds, reference)
        if runs is None:
            notes.append(RegionNote("its loads cannot be distinguished without source lines"))
            return Placement(rounds, sources_of(reference.unassigned_loads), Basis.DATAFLOW, notes, is_uncertain=True)
        for current_round, loads in zip(rounds, runs, strict=True):
            statements = current_round.statements
            for statement, share in zip(statements, equal_runs(loads, len(statements)), strict=True):
                statement.loads = share
        if region.loop is not None:
            notes += _assume_prologue(code, region, rounds, region_loads, loads_before_loop, previous)
    for index, bits in find_computes_using(code, region, [r.loads for r in rounds]).items():
        if bits:  # data of several rounds (or of a shared operand): the compute belongs to the last
            rounds[bits.bit_length() - 1].computes.append(index)
    if any(statement.is_shared for statement in reference.statements):
        _trim_to_next_round(code, rounds)
    if region.loop is not None and len(rounds) == 1 and not rounds[0].computes:
        rounds[0].computes = _matrix_operations(code, region)
    unassigned = sources_of(reference.unassigned_loads)
    return Placement(rounds, unassigned, Basis.DATAFLOW, notes, is_uncertain=bool(notes))


def _matrix_operations(code: FunctionCode, region: Region) -> list[int]:
    """Matrix operations of a region and of the loops inside it, in execution order."""
    return code.find(_MATRIX, region.enclosed_blocks)


def _trim_to_next_round(code: FunctionCode, rounds: list[LocatedRound]) -> None:
    """Remove computes that follow the next round's first compute: a shared operand is used again there."""
    position = code.flow.position
    end = len(position)
    for located_round in reversed(rounds):
        located_round.computes = [index for index in located_round.computes if position[index] < end]
        end = min((position[index] for index in located_round.computes), default=end)


def _assume_prologue(
    code: FunctionCode,
    region: Region,
    rounds: list[LocatedRound],
    region_loads: Sequence[int],
    loads_before_loop: Sequence[int],
    previous: PreviousStage | None,
) -> list[RegionNote]:
    """Assign the loads before a loop to its statements. Returns a note if their number does not fit."""
    assert region.reference is not None
    outer_load_count = region.reference.outer_load_count
    statements = [statement for located_round in rounds for statement in located_round.statements]
    base_distances = {statement.program.index: statement.program.distance for statement in statements}
    iterations_ahead, extra_loads = divmod(len(loads_before_loop), len(region_loads))
    if previous is not None:
        distances_ahead = {previous.distances.get(index, base) - base for index, base in base_distances.items()}
        iterations_ahead = max(distances_ahead)
        extra_loads = len(loads_before_loop) - iterations_ahead * len(region_loads) if len(distances_ahead) == 1 else -1
    if extra_loads > 0 and outer_load_count == 0:  # matrix operations before the loop are peeled iterations
        start, per_iteration = code.start_position(region.enclosed_blocks), len(_matrix_operations(code, region))
        ahead = sum(code.flow.position[index] < start for index in code.find(_MATRIX))
        extra_loads -= ahead // per_iteration * len(region_loads) if per_iteration else 0
    if extra_loads < 0 or (extra_loads > 0 and outer_load_count == 0):
        return [
            RegionNote(
                f"{len(loads_before_loop)} loads before the loop do not match {len(region_loads)} per iteration, "
                f"{iterations_ahead} ahead"
            )
        ]
    for statement in statements:
        statement.loads_before_loop = list(loads_before_loop[: len(statement.loads) * iterations_ahead])
    return []


def _split_by_rounds(
    code: FunctionCode, region: Region, region_loads: list[int], rounds: list[LocatedRound], reference: ReferenceRegion
) -> list[list[int]] | None:
    """The loads of a region split by round; None if the owner of a load cannot be determined.

    Uses the runs between computes if there is one for each round, or else equal runs if every round loads the same
    number.
    """
    if len(rounds) == 1:
        return [region_loads]
    runs = _load_runs(code, region, region_loads)
    if len(runs) == len(rounds):
        return runs
    sizes = {len(located_round.statements) for located_round in rounds}
    if len(sizes) == 1 and not any(s.is_shared for s in reference.statements):
        return equal_runs(region_loads, len(rounds))
    return None


def _load_runs(code: FunctionCode, region: Region, loads: Sequence[int]) -> list[list[int]]:
    """Loads split into runs by the computes that use loaded data, in execution order."""
    computes = find_first_computes(code, code.indices(region.enclosed_blocks), dict.fromkeys(loads, 0))
    events = sorted({*loads, *computes}, key=code.flow.position.__getitem__)
    return [list(run) for is_load, run in groupby(events, set(loads).__contains__) if is_load]


def locate_by_runs(code: FunctionCode, region: Region) -> Placement:
    """Rounds from the code only: runs of loads, each with the computes that use its data."""
    region_loads = code.find(LOADS, region.blocks)
    runs = _load_runs(code, region, region_loads)
    if len(runs) > ROUNDS.value:
        return too_many_rounds()
    users_by_run: list[list[int]] = [[] for _ in runs]
    for index, bits in find_computes_using(code, region, runs).items():
        for number in set_bit_indices(bits):
            users_by_run[number].append(index)
    rounds: list[LocatedRound] = []
    for loads, computes in zip(runs, users_by_run, strict=True):
        if computes:
            statement = LoadStatement(loads[0], None, None, "", 0, False, False, None)
            rounds.append(LocatedRound([LocatedStatement(statement, loads)], computes))
    matrix = _matrix_operations(code, region)
    if region_loads and matrix and not rounds:
        # Matrix operations may read shared memory through a descriptor, which is not visible in registers.
        statement = LoadStatement(region_loads[0], None, None, "", 0, False, False, None)
        rounds = [LocatedRound([LocatedStatement(statement, region_loads)], matrix)]
    if region.loop is None or not rounds:
        return Placement(rounds, [], Basis.DATAFLOW)
    kinds = frozenset(code.instructions[i].kind for i in region_loads)
    ahead = region.instructions_before_loop(code, code.find(kinds))
    peeled, extra_matrix = divmod(len(region.instructions_before_loop(code, code.find(_MATRIX))), len(matrix) or 1)
    iterations_ahead, extra_loads = divmod(len(ahead), len(region_loads))
    if ahead and (extra_loads or extra_matrix or peeled > iterations_ahead or kinds != _COPIES):
        note = RegionNote(
            f"{len(ahead)} loads before the loop and {len(region_loads)} inside: unknown whether it is pipelined"
        )
        return Placement(rounds, [], Basis.DATAFLOW, [note], is_uncertain=True)
    for located in (located for located_round in rounds for located in located_round.statements):
        located.loads_before_loop = ahead[: len(located.loads) * (iterations_ahead - peeled)]
    return Placement(rounds, [], Basis.DATAFLOW)
