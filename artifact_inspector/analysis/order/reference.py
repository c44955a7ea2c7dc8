"""The regions of a kernel as its author wrote them, which later stages are compared with.

They are read once from the first tensor-level stage, then located by source line in every later stage.
Only the instruction indices refer to the first stage, which uses them itself.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from artifact_inspector.analysis.flow.code import Code
from artifact_inspector.analysis.flow.exclusive import find_exclusive
from artifact_inspector.analysis.flow.places import Chain, chain_of, source_of
from artifact_inspector.analysis.order.integers import body_of, is_integer_reduction
from artifact_inspector.analysis.order.rounds import Round, RoundsOf, Statement, find_rounds
from artifact_inspector.model import COMPUTES, SINKS, EventKind, Function, SourceLine, Trait

MOST_STEPS = 8
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
    shared: bool
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

    `chains[0]` are its own locations, `chains[1:]` those of its consumers, nearest first. If it was
    contracted, one of the consumers holds it.
    """

    index: int
    chains: tuple[frozenset[Chain], ...]
    steps: tuple[frozenset[int], ...]
    """The instructions of the reference stage at these locations."""
    is_integer: bool
    """Integer work: at later stages its computes are integer operations."""


@dataclass(frozen=True, slots=True)
class ReferenceRound:
    """A round, in terms that later stages can match."""

    statements: tuple[LoadStatement, ...]
    computes: tuple[ReferenceCompute, ...]
    anchored_in: str
    """The region that contains its anchor."""


class Peers:
    """The computes of the program by location. Several may share one (an unrolled `tl.static_range`)."""

    def __init__(self, code: Code) -> None:
        self._flow = code.flow
        self._matrix = frozenset(code.of_kind.get(EventKind.MATRIX, ()))
        self._at: dict[Chain, list[int]] = {}
        for index in code.find(COMPUTES):
            for chain in dict.fromkeys(_chains_at(code, index)):
                self._at.setdefault(chain, []).append(index)

    def seen(self, code: Code) -> dict[Chain, list[int]]:
        """The computes of the program by location as a stage writes it."""
        return code.once(self._seen)

    def _seen(self, code: Code) -> dict[Chain, list[int]]:
        found: dict[Chain, set[int]] = {}
        for chain, indices in self._at.items():
            seen = code.visible(chain)
            if seen is not None:
                found.setdefault(seen, set()).update(indices)
        place = self._flow.position.__getitem__
        return {chain: sorted(indices, key=place) for chain, indices in found.items()}

    def is_matrix(self, index: int) -> bool:
        """True for a matrix operation."""
        return index in self._matrix

    def is_inside(self, index: int, loop: int | None) -> bool:
        """True for a compute inside a loop of the program; None means the whole program."""
        return self._flow.encloses(loop, self._flow.loop_at(index))


@dataclass(frozen=True, slots=True)
class ReferenceRegion:
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
    other: tuple[LoadStatement, ...]
    sinks: frozenset[Chain]
    """Locations of its stores and atomics: a load there is part of an atomic's compare-and-swap loop."""
    lent: int
    """Number of load statements outside the region whose first anchor is in it."""
    exclusive: tuple[tuple[int, int], ...]
    """Pairs of its rounds, by index, that no path executes one after the other."""
    has_matrix: bool
    is_flattened: bool
    """The program requests that this loop and the loop inside it become one."""
    peers: Peers

    @property
    def statements(self) -> tuple[LoadStatement, ...]:
        """All load statements that belong to rounds, in round order."""
        return tuple(statement for found in self.rounds for statement in found.statements)


def find_reference(code: Code, *, pipelined: bool = False) -> tuple[ReferenceRegion, ...]:
    """The regions of a kernel: straight-line code first, then the loops in execution order.

    Args:
        pipelined: the stage comes after the pipeliner. Loads before a loop that share an anchor with its
            loads are then its prologue, not loads of the program.
    """
    found = code.once(find_rounds)
    if found is None:
        return ()
    function, flow = code.function, code.flow
    prologues = _prologues(code, found) if pipelined else {}
    folded = {index for copies in prologues.values() for index in copies}
    written = []
    for item in found.rounds:
        kept = tuple(statement for statement in item.statements if statement.index not in folded)
        if kept:
            written.append(replace(item, statements=kept))
    names = loop_names(code)
    blocks_of: dict[int | None, list[int]] = {}
    for block in flow.order:
        blocks_of.setdefault(flow.loop_of[block], []).append(block)
    own: dict[int | None, list[Round]] = {}
    lent: dict[int | None, int] = {}
    for item in written:
        own.setdefault(item.loop, []).append(item)
        anchored = flow.loop_at(item.anchor)
        if anchored != item.loop:
            lent[anchored] = lent.get(anchored, 0) + len(item.statements)
    other: dict[int | None, list[LoadStatement]] = {}
    for statement in found.other:
        other.setdefault(statement.loop, []).append(_statement(function, statement))
    peers = Peers(code)
    regions = []
    for loop in (None, *range(len(flow.loops))):
        blocks = (function.blocks[block] for block in blocks_of.get(loop, ()))
        inside = [index for block in blocks for index in range(block.start, block.stop)]
        kinds = {function.instructions[index].kind for index in inside}
        parent = None if loop is None else flow.loops[loop].parent
        regions.append(
            ReferenceRegion(
                id=STRAIGHT if loop is None else names[loop],
                loop=loop,
                parent=None if loop is None else (STRAIGHT if parent is None else names[parent]),
                depth=0 if loop is None else flow.loops[loop].depth,
                chain=None if loop is None else loop_chain(code, loop),
                chains=_places_of(code, inside),
                rounds=tuple(_round(code, names, found, item, prologues) for item in own.get(loop, ())),
                other=tuple(other.get(loop, ())),
                sinks=_places_of(code, (i for i in inside if function.instructions[i].kind in SINKS)),
                lent=lent.get(loop, 0),
                exclusive=_exclusive(code, loop, own.get(loop, [])),
                has_matrix=EventKind.MATRIX in kinds,
                is_flattened=loop is not None and _is_flattened(code, loop),
                peers=peers,
            )
        )
    return tuple(regions)


def _exclusive(code: Code, loop: int | None, rounds: list[Round]) -> tuple[tuple[int, int], ...]:
    block_of = code.flow.block_of
    parts = [{block_of[index] for index in item.computes or (item.anchor,)} for item in rounds]
    return tuple(find_exclusive(code.function, code.flow, loop, parts))


def _is_flattened(code: Code, loop: int) -> bool:
    opening = code.function.blocks[code.flow.loops[loop].header].start - 1
    return opening >= 0 and code.language.loop_header(code.function.instructions[opening]).flattens


def _places_of(code: Code, indices: Iterable[int]) -> frozenset[Chain]:
    return frozenset(chain for index in indices if (chain := code.chain(index)) is not None)


def loop_names(code: Code) -> list[str]:
    """`loop@line` for every loop, with `#2` … where a line has several, `loop#n` without lines."""
    names: list[str] = []
    used: dict[str, int] = {}
    for loop in range(len(code.flow.loops)):
        chain = loop_chain(code, loop)
        name = f"loop@{chain[-1][1]}" if chain is not None else "loop"
        used[name] = used.get(name, 0) + 1
        numbered = chain is None or used[name] > 1
        names.append(f"{name}#{used[name]}" if numbered else name)
    return names


def loop_chain(code: Code, loop: int) -> Chain | None:
    """Location of a loop statement: of the structured operation, or else of the branch that closes it."""
    function, flow = code.function, code.flow
    before = function.blocks[flow.loops[loop].header].start - 1
    if before >= 0 and code.has(before, Trait.LOOP):
        return chain_of(function.instructions[before].location)
    for latch in flow.loops[loop].latches:
        block = function.blocks[latch]
        for index in range(block.stop - 1, block.start - 1, -1):
            instruction = function.instructions[index]
            if instruction.kind is EventKind.BRANCH:
                chain = chain_of(instruction.location)
                if chain is not None:
                    return chain
    return None


def _prologues(code: Code, found: RoundsOf) -> dict[int, list[int]]:
    """Loads before a loop that are copies of a load inside it: load in the loop → its copies.

    They share an anchor and a line. Without lines, both are asynchronous copies.
    """
    function, flow = code.function, code.flow
    copies: dict[int, list[int]] = {}
    meeting: dict[int, list[Round]] = {}
    for item in found.rounds:
        meeting.setdefault(item.anchor, []).append(item)
    for item in found.rounds:
        own = [s for s in item.statements if item.loop is not None and s.distance == 0]
        ahead = [
            s.index
            for other in meeting[item.anchor]
            if other.loop != item.loop == flow.loop_at(item.anchor)
            for s in other.statements
        ]
        for statement in own:
            place = function.instructions[statement.index].location
            alike = [i for i in ahead if place is not None and function.instructions[i].location == place]
            if alike:
                copies[statement.index] = alike
        inside = [statement.index for statement in own]
        kinds = {function.instructions[i].kind for i in (*inside, *ahead)}
        if inside and ahead and kinds == {EventKind.ASYNC_COPY} and not copies.keys() & set(inside):
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
    code: Code,
    names: list[str],
    found: RoundsOf,
    item: Round,
    prologues: dict[int, list[int]],
) -> ReferenceRound:
    function = code.function
    anchored = code.flow.loop_at(item.anchor)
    statements = [_statement(function, statement) for statement in item.statements]
    statements = [replace(s, prologue=tuple(prologues.get(s.index, ()))) for s in statements]
    return ReferenceRound(
        tuple(statements),
        tuple(_compute(code, found, index, item.anchor) for index in item.computes),
        STRAIGHT if anchored is None else names[anchored],
    )


def _statement(function: Function, statement: Statement) -> LoadStatement:
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
        statement.shared,
        statement.is_index,
        statement.base,
    )


def _compute(code: Code, found: RoundsOf, index: int, anchor: int) -> ReferenceCompute:
    levels: list[frozenset[Chain]] = []
    steps: list[frozenset[int]] = []
    level: Iterable[int] = (index,)
    seen: set[int] = set()
    for _ in range(MOST_STEPS):
        fresh = [i for i in level if i not in seen]
        if not fresh:
            break
        seen.update(fresh)
        steps.append(frozenset(fresh))
        levels.append(frozenset(chain for i in fresh for chain in _chains_at(code, i)))
        level = [
            after
            for i in fresh
            if i != anchor  # what follows the anchor belongs to another round
            for after in found.consumers(i, anchor)
        ]
    kind = code.function.instructions[index].kind
    is_integer = kind is EventKind.INTEGER or is_integer_reduction(code, index)
    return ReferenceCompute(index, tuple(levels), tuple(steps), is_integer)


def _chains_at(code: Code, index: int) -> list[Chain]:
    """Locations of an operation: its own and, for a reduction, those of its body."""
    found = (code.chain(i) for i in (index, *body_of(code, index)))
    return [chain for chain in found if chain is not None]
