"""Which loads belong together: the rounds of a kernel, read off its tensor-level IR.

The definitions (load statement, anchor, round, direct compute) are those of docs/verdicts.md. SSA
gives them exactly at the first stage; later stages inherit them and only have to find where their
loads and computes ended up.
"""

from __future__ import annotations

from dataclasses import dataclass

from artifact_inspector.analysis.flow.code import Code
from artifact_inspector.model import COMPUTES, LOADS, SINKS, EventKind, Instruction, Pointing, Trait
from artifact_inspector.model.shared import SharedRole

__all__ = ["Round", "RoundsOf", "Statement", "bits_of", "find_rounds"]

_NAMING = frozenset({SharedRole.ALLOCATION, SharedRole.BUFFER, SharedRole.VIEW})
FARTHEST = 8
"""Iterations that data is followed across back edges; deeper prefetch than this is not written."""


@dataclass(frozen=True, slots=True)
class Statement:
    """One load operation of the program as written."""

    index: int
    """Its instruction."""
    loop: int | None
    """Innermost loop it stands in."""
    distance: int
    """Source iterations between the load and the first anchor its data reaches."""
    shared: bool
    """Its data also reaches later anchors."""
    is_index: bool
    """Its data only addresses other loads."""
    base: str | None
    """The argument that its address comes from."""


@dataclass(frozen=True, slots=True)
class Round:
    """Load statements with the same first anchor, and the computes that take their data first."""

    loop: int | None
    anchor: int
    statements: tuple[Statement, ...]
    computes: tuple[int, ...]
    """Direct computes, in program order."""


@dataclass(frozen=True, slots=True)
class RoundsOf:
    """Rounds of a function, and the loads that form none."""

    rounds: tuple[Round, ...]
    """Of all regions, in program order of their anchors."""
    other: tuple[Statement, ...]
    consumers: dict[int, tuple[int, ...]]
    """For a compute, the computes that take its result next."""
    serves: dict[int, frozenset[int]]
    """For a compute, the anchors and final stores that its result reaches (itself, if it is one)."""


@dataclass(slots=True)
class _Tags:
    """What a value carries, as bit sets; a load's bits are `FARTHEST` wide, one per iteration."""

    reach: int = 0
    """Loads whose data it holds, through any operation but an anchor."""
    fresh: int = 0
    """Loads whose data no compute has used yet."""
    through: int = 0
    """Computes it has come through since the last anchor."""
    last: int = 0
    """Computes that made it, with nothing but moves since."""

    def join(self, other: _Tags) -> None:
        self.reach |= other.reach
        self.fresh |= other.fresh
        self.through |= other.through
        self.last |= other.last

    def __bool__(self) -> bool:
        return bool(self.reach | self.fresh | self.through | self.last)


def find_rounds(code: Code) -> RoundsOf | None:
    """The rounds of every region of a function; None where it is not in tensor-level SSA form."""
    return None if code.language.access is None else _Search(code).run()


class _Search:
    def __init__(self, code: Code) -> None:
        function, access = code.function, code.language.access
        assert access is not None
        self.code, self.function, self.flow, self.values = code, function, code.flow, code.values
        self.loads = [i for i, x in enumerate(function.instructions) if x.kind in LOADS]
        self.number = {index: n for n, index in enumerate(self.loads)}
        self.roles = {
            i: access(x) for i, x in enumerate(function.instructions) if x.kind in LOADS or x.kind in SINKS
        }
        self.scalars = 0
        """Bits of the loads of one element each."""
        for number, index in enumerate(self.loads):
            if code.language.pointing(function.instructions[index]) is Pointing.ONE:
                self.scalars |= ((1 << FARTHEST) - 1) << (number * FARTHEST)
        self.carried = _carried_floats(code)
        self.root = _buffers(code)
        self.base = _pointer_bases(code)
        self.tags: list[_Tags | None] = [None] * self.values.count
        self.memory: dict[int, _Tags] = {}
        self.anchors: dict[int, set[tuple[int, int]]] = {}
        """Load number → (distance, anchor)."""
        self.sinks: dict[int, set[tuple[int, int]]] = {}
        self.addressed: dict[int, set[int]] = {}
        """Load number → loads that its data addresses."""
        self.direct: dict[int, int] = {}
        """Compute → fresh bits it takes."""
        self.serves: dict[int, set[int]] = {}
        """Compute → anchors and sinks that its result reaches."""
        self.consumers: dict[int, set[int]] = {}
        self.owner_loop = {
            block.start - 1: self.flow.loop_of[block.index]
            for block in function.blocks
            if self.flow.loop_of[block.index] is not None
            and self.flow.loops[self.flow.loop_of[block.index] or 0].header == block.index
        }

    def run(self) -> RoundsOf:
        has_back = any(back for handed in self.values.flows for *_, back in handed)
        for _ in range(FARTHEST + 1 if has_back else 1):
            before = self._size()
            for index in range(len(self.function.instructions)):
                self._step(index)
            if self._size() == before:
                break
        return self._collect()

    def _size(self) -> int:
        return hash(tuple((t.reach, t.fresh, t.through, t.last) if t is not None else 0 for t in self.tags))

    # -- propagation -----------------------------------------------------------

    def _joined(self, values: tuple[int, ...] | list[int]) -> _Tags:
        joined = _Tags()
        for value in values:
            tags = self.tags[value]
            if tags is not None:
                joined.join(tags)
            memory = self.memory.get(self.root.get(value, -1))
            if memory is not None:
                joined.join(memory)
        return joined

    def _define(self, values: tuple[int, ...], tags: _Tags) -> None:
        for value in values:
            if tags:
                self.tags[value] = tags

    def _step(self, index: int) -> None:
        instruction = self.function.instructions[index]
        kind = instruction.kind
        reads = self.values.reads[index]
        results = self.values.results[index]
        if kind in LOADS:
            self._load(index, reads, results)
        elif kind in SINKS:
            role = self.roles[index]
            data = self._joined([reads[name] for name in role.value if name in reads])
            self._reached(data, self.sinks, index)
            for compute in bits_of(data.through):
                self.serves.setdefault(compute, set()).add(index)
        elif kind in COMPUTES:
            self._compute(index, self._joined(list(reads.values())), results)
        elif kind is EventKind.SHARED_STORE:
            values = list(reads.values())
            stored = self._joined(values)
            for value in values:
                if value in self.root:
                    self.memory.setdefault(self.root[value], _Tags()).join(stored)
        elif kind is not EventKind.BRANCH or results:
            moved = self._joined(list(reads.values()))
            if kind is EventKind.MOVE and self.code.has(index, Trait.SELECTION):
                self._drop_bounds(moved, instruction, reads)
            self._define(results, moved)
        for source, target, owner, back in self.values.flows[index]:
            moved = self._joined([source])
            if back:
                moved = self._next_iteration(moved, owner, index)
            elif not moved:
                continue
            known = self.tags[target]
            if known is not None:
                moved.join(known)
            self.tags[target] = moved

    def _drop_bounds(self, moved: _Tags, instruction: Instruction, reads: dict[str, int]) -> None:
        """Take scalar loads out of what a selection yields when they only decide it: a bound, no data."""
        condition, *chosen = instruction.operands.reads
        if condition in reads:
            data = self._joined([reads[name] for name in chosen if name in reads])
            deciding = self._joined([reads[condition]])
            moved.reach &= ~(deciding.reach & ~data.reach & self.scalars)
            moved.fresh &= ~(deciding.fresh & ~data.fresh & self.scalars)

    def _load(self, index: int, reads: dict[str, int], results: tuple[int, ...]) -> None:
        role = self.roles[index]
        number = self.number[index]
        address = self._joined([reads[name] for name in role.address if name in reads])
        for other in {bit // FARTHEST for bit in bits_of(address.reach)}:
            if other != number:
                self.addressed.setdefault(other, set()).add(number)
        loaded = self._joined([reads[name] for name in role.value if name in reads])
        bit = 1 << (number * FARTHEST)
        loaded.join(_Tags(bit, bit))
        if self.function.instructions[index].kind is EventKind.ASYNC_COPY:
            for value in reads.values():
                if value in self.root:
                    self.memory.setdefault(self.root[value], _Tags()).join(loaded)
        self._define(results, loaded)

    def _compute(self, index: int, data: _Tags, results: tuple[int, ...]) -> None:
        if not data:
            return
        own = 1 << index
        if data.fresh:
            self.direct[index] = self.direct.get(index, 0) | data.fresh
        for earlier in bits_of(data.last):
            self.consumers.setdefault(earlier, set()).add(index)
        if self._is_anchor(index):
            self._reached(data, self.anchors, index)
            for compute in bits_of(data.through | own):
                self.serves.setdefault(compute, set()).add(index)
            self._define(results, _Tags(last=own))
        else:
            self._define(results, _Tags(data.reach, 0, data.through | own, own))

    def _is_anchor(self, index: int) -> bool:
        return (
            self.function.instructions[index].kind is EventKind.MATRIX
            or index in self.carried
            or self.code.has(index, Trait.COMBINATION)
        )

    def _reached(self, data: _Tags, where: dict[int, set[tuple[int, int]]], index: int) -> None:
        for bit in bits_of(data.reach):
            number, distance = divmod(bit, FARTHEST)
            where.setdefault(number, set()).add((distance, index))

    def _next_iteration(self, tags: _Tags, owner: int, index: int) -> _Tags:
        loop = self.owner_loop.get(owner) if owner >= 0 else self.flow.loop_of[-1 - owner]
        moved = _Tags(0, 0, tags.through, tags.last)
        for bit in bits_of(tags.reach):
            moved.reach |= self._shifted(bit, loop)
        for bit in bits_of(tags.fresh):
            moved.fresh |= self._shifted(bit, loop)
        return moved

    def _shifted(self, bit: int, loop: int | None) -> int:
        number, distance = divmod(bit, FARTHEST)
        own = self.flow.loop_at(self.loads[number])
        if own != loop:
            return 1 << bit
        return 1 << (bit + 1) if distance + 1 < FARTHEST else 0

    # -- result ----------------------------------------------------------------

    def _collect(self) -> RoundsOf:
        position = self.flow.position
        chosen: dict[int, tuple[int, int]] = {}
        computed: set[int] = set()
        for fresh in self.direct.values():
            computed.update(bit // FARTHEST for bit in bits_of(fresh))
        for number in range(len(self.loads)):
            reached = self.anchors.get(number)
            if not reached and number in computed:
                reached = self.sinks.get(number)
            if reached:
                chosen[number] = min(reached, key=lambda found: (found[0], position[found[1]]))
        indices = self._index_loads(chosen)
        grouped: dict[tuple[int | None, int], list[Statement]] = {}
        other: list[Statement] = []
        for number, index in enumerate(self.loads):
            loop = self.flow.loop_at(index)
            if number not in chosen:
                other.append(Statement(index, loop, 0, False, False, self._base(index)))
                continue
            distance, anchor = chosen[number]
            later = {found for _, found in self.anchors.get(number, ())} - {anchor}
            statement = Statement(index, loop, distance, bool(later), number in indices, self._base(index))
            grouped.setdefault((loop, anchor), []).append(statement)
        for key, statements in list(grouped.items()):
            if all(statement.is_index for statement in statements):
                # What they address is loaded in another region; here they compute nothing.
                other += grouped.pop(key)
        other.sort(key=lambda statement: statement.index)
        serving: dict[int, list[int]] = {}
        for compute in self.direct:
            for anchor in self.serves.get(compute, ()):
                serving.setdefault(anchor, []).append(compute)
        rounds = [
            Round(loop, anchor, tuple(statements), self._computes_of(serving.get(anchor, []), statements))
            for (loop, anchor), statements in grouped.items()
        ]
        rounds.sort(key=lambda found: (position[found.anchor], position[found.statements[0].index]))
        consumers = {compute: tuple(sorted(after)) for compute, after in self.consumers.items()}
        serves = {compute: frozenset(reached) for compute, reached in self.serves.items()}
        return RoundsOf(tuple(rounds), tuple(other), consumers, serves)

    def _base(self, index: int) -> str | None:
        reads = self.values.reads[index]
        address = (reads[name] for name in self.roles[index].address if name in reads)
        return next((self.base[value] for value in address if value in self.base), None)

    def _index_loads(self, chosen: dict[int, tuple[int, int]]) -> set[int]:
        """Give loads that only feed addresses the round of the load they address."""
        indices: set[int] = set()
        changed = True
        while changed:
            changed = False
            for number, targets in self.addressed.items():
                known = [chosen[target] for target in targets if target in chosen]
                if number not in chosen and known:
                    chosen[number] = min(known, key=lambda found: self.flow.position[found[1]])
                    indices.add(number)
                    changed = True
        return indices

    def _computes_of(self, serving: list[int], statements: list[Statement]) -> tuple[int, ...]:
        mask = 0
        for statement in statements:
            mask |= ((1 << FARTHEST) - 1) << (self.number[statement.index] * FARTHEST)
        found = [compute for compute in serving if self.direct[compute] & mask]
        return tuple(sorted(found, key=lambda index: self.flow.position[index]))


def bits_of(mask: int) -> list[int]:
    """Places of the bits that are set, lowest first."""
    found = []
    while mask:
        low = mask & -mask
        found.append(low.bit_length() - 1)
        mask ^= low
    return found


def _carried_floats(code: Code) -> set[int]:
    """Float operations whose result a loop carries to its next iteration, moves in between or not."""
    function, values = code.function, code.values
    carried = {handed.source for flows in values.flows for handed in flows if handed.back}
    found: set[int] = set()
    for index in range(len(function.instructions) - 1, -1, -1):
        kind = function.instructions[index].kind
        for handed in values.flows[index]:
            if not handed.back and handed.target in carried:
                carried.add(handed.source)  # out of an `scf.if` on the way to the back edge
        if not carried.isdisjoint(values.results[index]):
            if kind is EventKind.FLOAT:
                found.add(index)
            elif kind in (EventKind.MOVE, EventKind.LAYOUT_CONVERSION):
                carried.update(values.reads[index].values())
    return found


def _pointer_bases(code: Code) -> dict[int, str]:
    """The argument behind every value made from a pointer or a descriptor."""
    function, values = code.function, code.values
    base = dict(enumerate(function.arguments))
    for index, instruction in enumerate(function.instructions):
        if instruction.kind not in LOADS and values.results[index]:
            origin = next((base[v] for v in values.reads[index].values() if v in base), None)
            if origin is not None and code.language.pointing(instruction) is not Pointing.NONE:
                base.update(dict.fromkeys(values.results[index], origin))
        for handed in values.flows[index]:
            if handed.source in base:
                base.setdefault(handed.target, base[handed.source])
    return base


def _buffers(code: Code) -> dict[int, int]:
    """The allocation behind every value that is a view of shared memory, as value → root value."""
    function, values = code.function, code.values
    root: dict[int, int] = {}
    for index, instruction in enumerate(function.instructions):
        results = values.results[index]
        role = code.language.shared(instruction).role if results else SharedRole.NONE
        if role not in _NAMING:
            continue
        if role is SharedRole.ALLOCATION:
            root[results[0]] = results[0]
        elif instruction.kind is EventKind.MOVE:
            for value in values.reads[index].values():
                if value in root:
                    root[results[0]] = root[value]
                    break
        for handed in values.flows[index]:
            if handed.source in root:
                root[handed.target] = root[handed.source]
    return root
