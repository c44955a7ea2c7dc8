"""Locates the rounds of the program at a stage that has no source lines.

Counts and dataflow are used. If a number does not fit, the placement is marked uncertain and no order is
reported.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import reduce
from operator import or_

from artifact_inspector.analysis.flow.code import Code
from artifact_inspector.analysis.flow.taint import find_first_computes
from artifact_inspector.analysis.order.facts import Note
from artifact_inspector.analysis.order.placement import (
    LocatedRound,
    LocatedStatement,
    Memory,
    Placement,
    sources_of,
    too_many_rounds,
)
from artifact_inspector.analysis.order.reference import STRAIGHT, LoadStatement, ReferenceRegion, equal_runs
from artifact_inspector.analysis.order.regions import Region
from artifact_inspector.analysis.order.rounds import bits_of, find_rounds
from artifact_inspector.model import LOADS, Basis, EventKind
from artifact_inspector.model.limits import ROUNDS

_MATRIX = frozenset({EventKind.MATRIX})


def locate_by_structure(code: Code, region: Region, reference: ReferenceRegion) -> Placement | None:
    """Rounds read from a stage that is itself in tensor-level SSA form, matched by order.

    None if their number differs from the program's.
    """
    read = code.once(find_rounds)
    if read is None:
        return None
    loop_at = [code.flow.loop_at(item.anchor) for item in read.rounds]
    here = [item for item, at in zip(read.rounds, loop_at, strict=True) if item.loop == region.loop]
    if region.loop is None:
        # Loads whose data goes into a loop are its prologue unless the program has such loads.
        inner = [item for item in reference.rounds if item.anchored_in != STRAIGHT]
        if not inner:
            here = [item for item in here if code.flow.loop_at(item.anchor) is None]
    if len(here) != len(reference.rounds):
        return None
    rounds: list[LocatedRound] = []
    for item, wanted in zip(here, reference.rounds, strict=True):
        loads = [statement.index for statement in item.statements]
        if len(loads) < len(wanted.statements):
            return None
        located = LocatedRound(
            [
                LocatedStatement(statement, share)
                for statement, share in zip(
                    wanted.statements, equal_runs(loads, len(wanted.statements)), strict=True
                )
            ],
            list(item.computes),
            found=(
                frozenset(compute.index for compute in wanted.computes)
                if len(item.computes) == len(wanted.computes)
                else None
            ),
        )
        if region.loop is not None:
            ahead = [
                statement.index
                for other, at in zip(read.rounds, loop_at, strict=True)
                if at == region.loop and other.loop != region.loop and other.anchor == item.anchor
                for statement in other.statements
            ]
            ahead = ahead[min(reference.lent, len(ahead)) :]
            for found, share in zip(
                located.statements, equal_runs(ahead, len(located.statements)), strict=True
            ):
                found.front = share
        rounds.append(located)
    return Placement(rounds, sources_of(reference.other), Basis.DATAFLOW)


def find_computes_taking(
    code: Code,
    region: Region,
    rounds: Sequence[Sequence[int]],
    also: frozenset[EventKind] = frozenset(),
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
    numbers = {owned: number for number, owned in enumerate(sets)}
    groups = {load: numbers[owned] for load, owned in owners.items()}
    trips = 1 if region.loop is None else 2
    taking = find_first_computes(code, code.indices(region.whole), groups, trips, also)
    return {index: reduce(or_, map(sets.__getitem__, bits_of(bits)), 0) for index, bits in taking.items()}


def locate_by_dataflow(
    code: Code, region: Region, reference: ReferenceRegion, before: Memory | None
) -> Placement:
    """Rounds by count and dataflow, for stages without lines."""
    own = code.find(LOADS, region.scope)
    front = _front_loads(code, region, own)
    if region.loop is None:
        own = _without_prologues(code, own)
    rounds = [LocatedRound([LocatedStatement(s) for s in item.statements]) for item in reference.rounds]
    notes: list[Note] = []
    if rounds and own:
        runs = _split_by_rounds(code, region, own, rounds, reference)
        if runs is None:
            notes.append(Note("its loads cannot be distinguished without source lines"))
            return Placement(rounds, sources_of(reference.other), Basis.DATAFLOW, notes, uncertain=True)
        for item, loads in zip(rounds, runs, strict=True):
            for found, share in zip(item.statements, equal_runs(loads, len(item.statements)), strict=True):
                found.loads = share
        if region.loop is not None:
            notes += _assume_prologue(code, region, rounds, own, front, before)
    uncertain = bool(notes)
    flowing = find_computes_taking(code, region, [item.loads for item in rounds])
    for item in rounds:
        item.computes = []
    for index, bits in flowing.items():
        if bits:  # data of several rounds (or of a shared operand): the compute belongs to the last
            rounds[bits.bit_length() - 1].computes.append(index)
    if any(statement.shared for statement in reference.statements):
        _stop_at_next_round(code, rounds)
    if region.loop is not None and len(rounds) == 1 and not rounds[0].computes:
        rounds[0].computes = _matrix_operations(code, region)
    return Placement(rounds, sources_of(reference.other), Basis.DATAFLOW, notes, uncertain)


def _matrix_operations(code: Code, region: Region) -> list[int]:
    """Matrix operations of a region and of the loops inside it, in execution order."""
    return code.find(_MATRIX, region.whole)


def _stop_at_next_round(code: Code, rounds: list[LocatedRound]) -> None:
    """Remove computes that follow the next round's first compute: a shared operand is used again there."""
    position = code.flow.position
    end = len(position)
    for item in reversed(rounds):
        item.computes = [index for index in item.computes if position[index] < end]
        end = min((position[index] for index in item.computes), default=end)


def _assume_prologue(
    code: Code,
    region: Region,
    rounds: list[LocatedRound],
    own: Sequence[int],
    front: Sequence[int],
    before: Memory | None,
) -> list[Note]:
    """Assign the loads before a loop to its statements. Returns a note if their number does not fit."""
    assert region.reference is not None
    lent = region.reference.lent
    statements = [found for item in rounds for found in item.statements]
    due = {found.statement.index: found.statement.distance for found in statements}
    times, spare = divmod(len(front), len(own))
    if before is not None:
        ahead = {before.distances.get(index, base) - base for index, base in due.items()}
        times = max(ahead)
        spare = len(front) - times * len(own) if len(ahead) == 1 else -1
    if spare > 0 and lent == 0:
        spare -= _peeled(code, region, front) * len(own)
    if spare < 0 or (spare > 0 and lent == 0):
        return [
            Note(f"{len(front)} loads before the loop do not match {len(own)} per iteration, {times} ahead")
        ]
    for found in statements:
        found.front = list(front[: len(found.loads) * times])
    return []


def _peeled(code: Code, region: Region, front: Sequence[int]) -> int:
    """Iterations whose matrix operations are before the loop."""
    inside = len(_matrix_operations(code, region))
    start = code.start_of(region.whole)
    ahead = sum(code.flow.position[index] < start for index in code.find(_MATRIX))
    return ahead // inside if front and inside else 0


def _front_loads(code: Code, region: Region, own: Sequence[int]) -> list[int]:
    """Loads of the same kind before a loop and outside every loop."""
    if region.loop is None or not own:
        return []
    kinds = {code.function.instructions[i].kind for i in own}
    start = code.start_of(region.whole)
    return [
        i
        for i in code.loads_outside_loops
        if code.function.instructions[i].kind in kinds and code.flow.position[i] < start
    ]


def _without_prologues(code: Code, own: list[int]) -> list[int]:
    # Asynchronous copies outside loops are a prologue if a loop also holds some.
    copies = code.of_kind.get(EventKind.ASYNC_COPY, ())
    if all(code.flow.loop_at(index) is None for index in copies):
        return own
    return [i for i in own if code.function.instructions[i].kind is not EventKind.ASYNC_COPY]


def _split_by_rounds(
    code: Code, region: Region, own: list[int], rounds: list[LocatedRound], reference: ReferenceRegion
) -> list[list[int]] | None:
    """The loads of a region split by round; None if the owner of a load cannot be determined.

    Uses the runs between computes if there is one for each round, or else equal runs if every round loads
    the same number.
    """
    if len(rounds) == 1:
        return [own]
    runs = _runs(code, region, own)
    if len(runs) == len(rounds):
        return runs
    sizes = {len(item.statements) for item in rounds}
    if len(sizes) == 1 and not any(s.shared for s in reference.statements):
        return equal_runs(own, len(rounds))
    return None


def _runs(code: Code, region: Region, own: Sequence[int]) -> list[list[int]]:
    """Loads split into runs by the computes that use loaded data, in execution order."""
    wanted = set(own)
    computes = find_first_computes(code, code.indices(region.whole), dict.fromkeys(own, 0))
    runs: list[list[int]] = []
    closed = True
    for index in sorted(wanted | computes.keys(), key=code.flow.position.__getitem__):
        if index in wanted:
            if closed:
                runs.append([])
            runs[-1].append(index)
            closed = False
        else:
            closed = True
    return runs


def _numbers(bits: int) -> Iterator[int]:
    """The indices of the bits that are set, lowest first."""
    while bits:
        lowest = bits & -bits
        yield lowest.bit_length() - 1
        bits ^= lowest


def locate_by_runs(code: Code, region: Region) -> Placement:
    """Rounds from the code only: runs of loads, each with the computes that use its data."""
    own = code.find(LOADS, region.blocks)
    runs = _runs(code, region, own)
    if len(runs) > ROUNDS.most:
        return too_many_rounds()
    taking: list[list[int]] = [[] for _ in runs]
    for index, bits in find_computes_taking(code, region, runs).items():
        for number in _numbers(bits):
            taking[number].append(index)
    rounds: list[LocatedRound] = []
    for loads, computes in zip(runs, taking, strict=True):
        if computes:
            statement = LoadStatement(loads[0], None, None, "", 0, False, False, None)
            rounds.append(LocatedRound([LocatedStatement(statement, loads)], computes))
    matrix = _matrix_operations(code, region)
    if own and matrix and not rounds:
        # Matrix operations may read shared memory through a descriptor, which is not visible in
        # registers.
        statement = LoadStatement(own[0], None, None, "", 0, False, False, None)
        rounds = [LocatedRound([LocatedStatement(statement, own)], matrix)]
    if region.loop is None or not rounds:
        return Placement(rounds, [], Basis.DATAFLOW)
    front = _front_loads(code, region, own)
    times, spare = divmod(len(front), len(own))
    is_copied = all(code.function.instructions[i].kind is EventKind.ASYNC_COPY for i in own)
    if front and (spare or not is_copied):
        note = Note(
            f"{len(front)} loads before the loop and {len(own)} inside: unknown whether it is pipelined"
        )
        return Placement(rounds, [], Basis.DATAFLOW, [note], uncertain=True)
    for item in rounds:
        for found in item.statements:
            found.front = front[: len(found.loads) * times]
    return Placement(rounds, [], Basis.DATAFLOW)
