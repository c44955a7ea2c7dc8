"""The regions of a kernel as its author wrote them, which later stages are compared with.

They are read once from the first tensor-level stage, then located by source line in every later stage. Only the
instruction indices refer to the first stage, which uses them itself.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import NamedTuple

from artifact_inspector.analysis.flow.function_code import FunctionCode
from artifact_inspector.analysis.flow.mutual_exclusion import find_exclusive
from artifact_inspector.analysis.flow.source_locations import Chain, chain_of, source_of
from artifact_inspector.analysis.flow.traversal import group_by_key
from artifact_inspector.analysis.order.integer_computes import body_of, is_integer_reduction
from artifact_inspector.analysis.order.loop_schedules import LoopSchedule, find_loop_schedules
from artifact_inspector.analysis.order.rounds import ProgramLoad, ProgramRound, StageRounds, find_rounds
from artifact_inspector.model import COMPUTES, SINKS, EventKind, Function, SourceLine, Trait

MAX_CONSUMER_DEPTH = 8
"""Length of the chain of consumers in which a contracted compute is searched. Usually it is in the first."""
STRAIGHT = "straight"
"""Name of the code outside loops."""


@dataclass(frozen=True, slots=True)
class LoadStatement:
    """A load of the program as written, in terms that later stages can match."""

    index: int
    """Its instruction in the reference stage."""
    chain: Chain | None
    source: SourceLine | None
    """`file.py:line` of the user's code."""
    name: str
    """Name of the loaded value in the IR (`a`); empty if it is only a number."""
    distance: int
    is_shared: bool
    is_index: bool
    base: str | None
    """The argument that its address is computed from."""
    prologue: tuple[int, ...] = ()
    """Its copies before the loop, if the reference stage is already pipelined."""

    @property
    def label(self) -> str:
        """Its name and line, as far as they are known."""
        if self.source is None:
            return self.name or "a load"
        return f"{self.name} ({self.source})" if self.name else self.source


@dataclass(frozen=True, slots=True)
class ReferenceCompute:
    """A direct compute and the locations to look for it.

    `chains[0]` are its own locations, `chains[1:]` those of its consumers, nearest first. If it was contracted, one of
    the consumers holds it.
    """

    index: int
    chains: tuple[frozenset[Chain], ...]
    steps: tuple[frozenset[int], ...]
    """The instructions of the reference stage at these locations."""
    is_integer: bool
    """Integer work: at later stages its computes are integer operations."""


class ReferenceRound(NamedTuple):
    """A round, in terms that later stages can match."""

    statements: tuple[LoadStatement, ...]
    computes: tuple[ReferenceCompute, ...]
    anchored_in: str
    """The region that contains its anchor."""


class ProgramComputes:
    """The computes of the program by location. Several may share one (an unrolled `tl.static_range`)."""

    def __init__(self, code: FunctionCode) -> None:
        self._flow = code.flow
        self._matrix = frozenset(code.of_kind.get(EventKind.MATRIX, ()))
        self._by_location = group_by_key(
            (chain, index) for index in code.find(COMPUTES) for chain in dict.fromkeys(_chains_at(code, index))
        )

    def find_visible(self, code: FunctionCode) -> dict[Chain, list[int]]:
        """The computes of the program by location as a stage writes it."""
        indices_by_location: dict[Chain, set[int]] = {}
        for chain, indices in self._by_location.items():
            visible_chain = code.visible_chain(chain)
            if visible_chain is not None:
                indices_by_location.setdefault(visible_chain, set()).update(indices)
        position_of = self._flow.position.__getitem__
        return {chain: sorted(indices, key=position_of) for chain, indices in indices_by_location.items()}

    def is_matrix(self, index: int) -> bool:
        """True for a matrix operation."""
        return index in self._matrix

    def is_inside(self, index: int, loop: int | None) -> bool:
        """True for a compute inside a loop of the program; None means the whole program."""
        return self._flow.encloses(loop, self._flow.loop_at(index))


class ReferenceRegion(NamedTuple):
    """A loop, or the straight-line code, of the program as written."""

    id: str
    loop: int | None
    """The reference stage's loop; None for straight-line code."""
    parent: str | None
    depth: int
    chain: Chain | None
    """Location of the loop statement itself."""
    chains: frozenset[Chain]
    """Locations of everything directly in the region."""
    rounds: tuple[ReferenceRound, ...]
    unassigned_loads: tuple[LoadStatement, ...]
    sinks: frozenset[Chain]
    """Locations of its stores and atomics: a load there is part of an atomic's compare-and-swap loop."""
    outer_load_count: int
    """Number of load statements outside the region whose first anchor is in it."""
    exclusive: tuple[tuple[int, int], ...]
    """Pairs of its rounds, by index, that no path executes one after the other."""
    has_matrix: bool
    matrix_chains: frozenset[Chain]
    """Locations of the matrix operations directly in the region."""
    is_flattened: bool
    """The program requests that this loop and the loop inside it become one."""
    program_computes: ProgramComputes
    schedule: LoopSchedule | None = None
    """The order of copies that the program itself gives a loop."""

    @property
    def statements(self) -> tuple[LoadStatement, ...]:
        """All load statements that belong to rounds, in round order."""
        return tuple(statement for reference_round in self.rounds for statement in reference_round.statements)


def find_reference(code: FunctionCode, *, pipelined: bool = False) -> tuple[ReferenceRegion, ...]:
    """The regions of a kernel: straight-line code first, then the loops in execution order.

    Args:
        pipelined: the stage comes after the pipeliner. Loads before a loop that share an anchor with its loads are then
            its prologue, not loads of the program.
    """
    stage_rounds = code.compute_once(find_rounds)
    if stage_rounds is None:
        return ()
    function, flow = code.function, code.flow
    prologues = _prologues(code, stage_rounds) if pipelined else {}
    folded = {index for copies in prologues.values() for index in copies}
    unfolded = ((r, tuple(s for s in r.statements if s.index not in folded)) for r in stage_rounds.rounds)
    program_rounds = [r._replace(statements=statements) for r, statements in unfolded if statements]
    names = loop_names(code)
    blocks_of = group_by_key((flow.loop_of[block], code.blocks[block]) for block in flow.order)
    waiting = [r for r in program_rounds if r.loop is not None and not _computes_inside(code, r)]
    program_rounds = [r for r in program_rounds if r not in waiting]
    rounds_by_loop = group_by_key((program_round.loop, program_round) for program_round in program_rounds)
    outer_load_counts: Counter[int | None] = Counter()
    for program_round in program_rounds:
        anchored = flow.loop_at(program_round.anchor)
        if anchored != program_round.loop:
            outer_load_counts[anchored] += len(program_round.statements)
    unassigned = (*stage_rounds.unassigned_loads, *(statement for r in waiting for statement in r.statements))
    unassigned_loads = group_by_key((statement.loop, _statement(function, statement)) for statement in unassigned)
    program_computes = ProgramComputes(code)
    schedules = find_loop_schedules(code)
    regions = []
    for loop in (None, *range(len(flow.loops))):
        inside = [index for block in blocks_of.get(loop, ()) for index in range(block.start, block.stop)]
        parent = None if loop is None else flow.loops[loop].parent
        opening = -1 if loop is None else code.blocks[flow.loops[loop].header].start - 1
        matrices = [index for index in inside if code.instructions[index].kind is EventKind.MATRIX]
        own_rounds = rounds_by_loop.get(loop, ())
        block_sets = [{flow.block_of[i] for i in x.computes or (x.anchor,)} for x in own_rounds]
        regions.append(
            ReferenceRegion(
                id=STRAIGHT if loop is None else names[loop],
                loop=loop,
                parent=None if loop is None else (STRAIGHT if parent is None else names[parent]),
                depth=0 if loop is None else flow.loops[loop].depth,
                chain=None if loop is None else loop_chain(code, loop),
                chains=frozenset(code.chains_of(inside)),
                rounds=tuple(_round(code, names, stage_rounds, x, prologues) for x in own_rounds),
                unassigned_loads=tuple(unassigned_loads.get(loop, ())),
                sinks=frozenset(code.chains_of(i for i in inside if code.instructions[i].kind in SINKS)),
                outer_load_count=outer_load_counts[loop],
                exclusive=tuple(find_exclusive(code, loop, block_sets)),
                has_matrix=bool(matrices),
                matrix_chains=frozenset(code.chains_of(matrices)),
                is_flattened=opening >= 0 and code.language.loop_header(code.instructions[opening]).is_flattened,
                program_computes=program_computes,
                schedule=None if loop is None else schedules.get(loop),
            )
        )
    return tuple(regions)


def _computes_inside(code: FunctionCode, program_round: ProgramRound) -> bool:
    """False for loads whose data only leaves their loop: it waits for a value, and computes nothing."""
    ends = (program_round.anchor, *program_round.computes)
    return any(code.flow.encloses(program_round.loop, code.flow.loop_at(index)) for index in ends)


def loop_names(code: FunctionCode) -> list[str]:
    """`loop@line` for every loop, with `#2` … where a line has several, `loop#n` without lines."""
    names: list[str] = []
    used: Counter[str] = Counter()
    for loop in range(len(code.flow.loops)):
        chain = loop_chain(code, loop)
        name = "loop" if chain is None else f"loop@{chain[-1][1]}"
        used[name] += 1
        names.append(f"{name}#{used[name]}" if chain is None or used[name] > 1 else name)
    return names


def loop_chain(code: FunctionCode, loop: int) -> Chain | None:
    """Location of a loop statement: of the structured operation, or else of the branch that closes it."""
    instructions, natural = code.instructions, code.flow.loops[loop]
    opening = code.blocks[natural.header].start - 1
    if opening >= 0 and code.has_trait(opening, Trait.LOOP):
        return chain_of(instructions[opening].location)
    latches = (code.blocks[latch] for latch in natural.latches)
    ends = (index for block in latches for index in range(block.stop - 1, block.start - 1, -1))
    chains = (chain_of(instructions[i].location) for i in ends if instructions[i].kind is EventKind.BRANCH)
    return next((chain for chain in chains if chain is not None), None)


def _prologues(code: FunctionCode, stage_rounds: StageRounds) -> dict[int, list[int]]:
    """Loads before a loop that are copies of a load inside it: load in the loop → its copies.

    They share an anchor and a line. Without lines, both are asynchronous copies.
    """
    instructions, flow = code.instructions, code.flow
    copies: dict[int, list[int]] = {}
    rounds_by_anchor = group_by_key((program_round.anchor, program_round) for program_round in stage_rounds.rounds)
    for program_round in stage_rounds.rounds:
        loop = program_round.loop
        inside = [s.index for s in program_round.statements if loop is not None and s.distance == 0]
        ahead = [
            s.index
            for other_round in rounds_by_anchor[program_round.anchor]
            if other_round.loop != loop == flow.loop_at(program_round.anchor)
            for s in other_round.statements
        ]
        for index in inside:
            location = instructions[index].location
            matching = [i for i in ahead if location is not None and instructions[i].location == location]
            if matching:
                copies[index] = matching
        kinds = {instructions[i].kind for i in (*inside, *ahead)}
        if inside and ahead and kinds == {EventKind.ASYNC_COPY} and copies.keys().isdisjoint(inside):
            copies.update(zip(inside, equal_runs(ahead, len(inside)), strict=True))
    return copies


def equal_runs(indices: list[int], count: int) -> list[list[int]]:
    """`count` runs of equal length; with fewer indices than runs, neighbours share one."""
    total = len(indices)
    if total == 0:
        return [[] for _ in range(count)]
    if total < count:
        return [[indices[n * total // count]] for n in range(count)]
    return [indices[n * total // count : (n + 1) * total // count] for n in range(count)]


def _round(
    code: FunctionCode,
    names: list[str],
    stage_rounds: StageRounds,
    program_round: ProgramRound,
    prologues: dict[int, list[int]],
) -> ReferenceRound:
    anchored = code.flow.loop_at(program_round.anchor)
    statements = (_statement(code.function, statement) for statement in program_round.statements)
    return ReferenceRound(
        tuple(replace(statement, prologue=tuple(prologues.get(statement.index, ()))) for statement in statements),
        tuple(_compute(code, stage_rounds, index, program_round.anchor) for index in program_round.computes),
        STRAIGHT if anchored is None else names[anchored],
    )


def _statement(function: Function, statement: ProgramLoad) -> LoadStatement:
    instruction = function.instructions[statement.index]
    results = instruction.operands.results
    name = results[0].lstrip("%").partition("#")[0] if results else ""
    base, _, suffix = name.rpartition("_")
    if base and suffix.isdigit():
        name = base
    return LoadStatement(
        statement.index,
        chain_of(instruction.location),
        source_of(instruction.location),
        "" if name.isdigit() else name,
        statement.distance,
        statement.is_shared,
        statement.is_index,
        statement.base,
    )


def _compute(code: FunctionCode, stage_rounds: StageRounds, index: int, anchor: int) -> ReferenceCompute:
    levels: list[frozenset[Chain]] = []
    steps: list[frozenset[int]] = []
    level: Iterable[int] = (index,)
    visited: set[int] = set()
    for _ in range(MAX_CONSUMER_DEPTH):
        new_indices = [i for i in level if i not in visited]
        if not new_indices:
            break
        visited.update(new_indices)
        steps.append(frozenset(new_indices))
        levels.append(frozenset(chain for i in new_indices for chain in _chains_at(code, i)))
        level = [
            consumer
            for i in new_indices
            if i != anchor  # what follows the anchor belongs to another round
            for consumer in stage_rounds.consumers(i, anchor)
        ]
    is_integer = code.instructions[index].kind is EventKind.INTEGER or is_integer_reduction(code, index)
    return ReferenceCompute(index, tuple(levels), tuple(steps), is_integer)


def _chains_at(code: FunctionCode, index: int) -> list[Chain]:
    """Locations of an operation: its own and, for a reduction, those of its body."""
    return code.chains_of((index, *body_of(code, index)))
