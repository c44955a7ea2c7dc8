"""Locates the rounds of the program at a stage that has no source lines.

Counts and dataflow are used. If a number does not fit, the placement is marked uncertain and no order is reported.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import reduce
from operator import or_

from artifact_inspector.analysis.flow.function_code import FunctionCode
from artifact_inspector.analysis.flow.taint import find_first_computes
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
from artifact_inspector.analysis.order.rounds import find_rounds, set_bit_indices
from artifact_inspector.model import LOADS, Basis, EventKind
from artifact_inspector.model.limits import ROUNDS

_MATRIX = frozenset({EventKind.MATRIX})


def locate_by_structure(code: FunctionCode, region: Region, reference: ReferenceRegion) -> Placement | None:
    """Rounds read from a stage that is itself in tensor-level SSA form, matched by order.

    None if their number differs from the program's.
    """
    stage_rounds = code.compute_once(find_rounds)
    if stage_rounds is None:
        return None
    loop_at = [code.flow.loop_at(stage_round.anchor) for stage_round in stage_rounds.rounds]
    region_rounds = [
        stage_round
        for stage_round, anchor_loop in zip(stage_rounds.rounds, loop_at, strict=True)
        if stage_round.loop == region.loop
    ]
    if region.loop is None:
        # Loads whose data goes into a loop are its prologue unless the program has such loads.
        inner = [stage_round for stage_round in reference.rounds if stage_round.anchored_in != STRAIGHT]
        if not inner:
            region_rounds = [
                stage_round for stage_round in region_rounds if code.flow.loop_at(stage_round.anchor) is None
            ]
    if len(region_rounds) != len(reference.rounds):
        return None
    rounds: list[LocatedRound] = []
    for stage_round, reference_round in zip(region_rounds, reference.rounds, strict=True):
        loads = [statement.index for statement in stage_round.statements]
        if len(loads) < len(reference_round.statements):
            return None
        located = LocatedRound(
            [
                LocatedStatement(statement, share)
                for statement, share in zip(
                    reference_round.statements, equal_runs(loads, len(reference_round.statements)), strict=True
                )
            ],
            list(stage_round.computes),
            identified_computes=(
                frozenset(compute.index for compute in reference_round.computes)
                if len(stage_round.computes) == len(reference_round.computes)
                else None
            ),
        )
        if region.loop is not None:
            ahead = [
                statement.index
                for other_round, anchor_loop in zip(stage_rounds.rounds, loop_at, strict=True)
                if anchor_loop == region.loop
                and other_round.loop != region.loop
                and other_round.anchor == stage_round.anchor
                for statement in other_round.statements
            ]
            ahead = ahead[min(reference.outer_load_count, len(ahead)) :]
            for located_statement, share in zip(
                located.statements, equal_runs(ahead, len(located.statements)), strict=True
            ):
                located_statement.loads_before_loop = share
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
    loads_before_loop = _loads_before_loop(code, region, region_loads)
    if region.loop is None:
        region_loads = _without_prologues(code, region_loads)
    rounds = [
        LocatedRound([LocatedStatement(s) for s in current_round.statements]) for current_round in reference.rounds
    ]
    notes: list[RegionNote] = []
    if rounds and region_loads:
        runs = _split_by_rounds(code, region, region_loads, rounds, reference)
        if runs is None:
            notes.append(RegionNote("its loads cannot be distinguished without source lines"))
            return Placement(rounds, sources_of(reference.unassigned_loads), Basis.DATAFLOW, notes, is_uncertain=True)
        for current_round, loads in zip(rounds, runs, strict=True):
            for located_statement, share in zip(
                current_round.statements, equal_runs(loads, len(current_round.statements)), strict=True
            ):
                located_statement.loads = share
        if region.loop is not None:
            notes += _assume_prologue(code, region, rounds, region_loads, loads_before_loop, previous)
    uncertain = bool(notes)
    flowing = find_computes_using(code, region, [current_round.loads for current_round in rounds])
    for current_round in rounds:
        current_round.computes = []
    for index, bits in flowing.items():
        if bits:  # data of several rounds (or of a shared operand): the compute belongs to the last
            rounds[bits.bit_length() - 1].computes.append(index)
    if any(statement.is_shared for statement in reference.statements):
        _trim_to_next_round(code, rounds)
    if region.loop is not None and len(rounds) == 1 and not rounds[0].computes:
        rounds[0].computes = _matrix_operations(code, region)
    return Placement(rounds, sources_of(reference.unassigned_loads), Basis.DATAFLOW, notes, uncertain)


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
    statements = [located_statement for located_round in rounds for located_statement in located_round.statements]
    base_distances = {
        located_statement.statement.index: located_statement.statement.distance for located_statement in statements
    }
    iterations_ahead, extra_loads = divmod(len(loads_before_loop), len(region_loads))
    if previous is not None:
        distances_ahead = {previous.distances.get(index, base) - base for index, base in base_distances.items()}
        iterations_ahead = max(distances_ahead)
        extra_loads = len(loads_before_loop) - iterations_ahead * len(region_loads) if len(distances_ahead) == 1 else -1
    if extra_loads > 0 and outer_load_count == 0:
        extra_loads -= _count_peeled_iterations(code, region, loads_before_loop) * len(region_loads)
    if extra_loads < 0 or (extra_loads > 0 and outer_load_count == 0):
        return [
            RegionNote(
                f"{len(loads_before_loop)} loads before the loop do not match {len(region_loads)} per iteration, "
                f"{iterations_ahead} ahead"
            )
        ]
    for located_statement in statements:
        located_statement.loads_before_loop = list(loads_before_loop[: len(located_statement.loads) * iterations_ahead])
    return []


def _count_peeled_iterations(code: FunctionCode, region: Region, loads_before_loop: Sequence[int]) -> int:
    """Iterations whose matrix operations are before the loop."""
    inside = len(_matrix_operations(code, region))
    start = code.start_position(region.enclosed_blocks)
    ahead = sum(code.flow.position[index] < start for index in code.find(_MATRIX))
    return ahead // inside if loads_before_loop and inside else 0


def _loads_before_loop(code: FunctionCode, region: Region, region_loads: Sequence[int]) -> list[int]:
    """Loads of the same kind before a loop and outside every loop."""
    if region.loop is None or not region_loads:
        return []
    kinds = {code.function.instructions[i].kind for i in region_loads}
    start = code.start_position(region.enclosed_blocks)
    return [
        i
        for i in code.loads_outside_loops
        if code.function.instructions[i].kind in kinds and code.flow.position[i] < start
    ]


def _without_prologues(code: FunctionCode, region_loads: list[int]) -> list[int]:
    # Asynchronous copies outside loops are a prologue if a loop also holds some.
    copies = code.of_kind.get(EventKind.ASYNC_COPY, ())
    if all(code.flow.loop_at(index) is None for index in copies):
        return region_loads
    return [i for i in region_loads if code.function.instructions[i].kind is not EventKind.ASYNC_COPY]


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
    load_set = set(loads)
    computes = find_first_computes(code, code.indices(region.enclosed_blocks), dict.fromkeys(loads, 0))
    runs: list[list[int]] = []
    closed = True
    for index in sorted(load_set | computes.keys(), key=code.flow.position.__getitem__):
        if index in load_set:
            if closed:
                runs.append([])
            runs[-1].append(index)
            closed = False
        else:
            closed = True
    return runs


def _set_bits(bits: int) -> Iterator[int]:
    """The indices of the bits that are set, lowest first."""
    while bits:
        lowest = bits & -bits
        yield lowest.bit_length() - 1
        bits ^= lowest


def locate_by_runs(code: FunctionCode, region: Region) -> Placement:
    """Rounds from the code only: runs of loads, each with the computes that use its data."""
    region_loads = code.find(LOADS, region.blocks)
    runs = _load_runs(code, region, region_loads)
    if len(runs) > ROUNDS.value:
        return too_many_rounds()
    users_by_run: list[list[int]] = [[] for _ in runs]
    for index, bits in find_computes_using(code, region, runs).items():
        for number in _set_bits(bits):
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
    loads_before_loop = _loads_before_loop(code, region, region_loads)
    iterations_ahead, extra_loads = divmod(len(loads_before_loop), len(region_loads))
    is_copied = all(code.function.instructions[i].kind is EventKind.ASYNC_COPY for i in region_loads)
    if loads_before_loop and (extra_loads or not is_copied):
        note = RegionNote(
            f"{len(loads_before_loop)} loads before the loop and {len(region_loads)} inside: "
            "unknown whether it is pipelined"
        )
        return Placement(rounds, [], Basis.DATAFLOW, [note], is_uncertain=True)
    for located_round in rounds:
        for located_statement in located_round.statements:
            located_statement.loads_before_loop = loads_before_loop[: len(located_statement.loads) * iterations_ahead]
    return Placement(rounds, [], Basis.DATAFLOW)
