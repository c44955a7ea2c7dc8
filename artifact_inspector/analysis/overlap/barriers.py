"""Which array of barriers in shared memory an operand points into.

A pipelined loop turns through the barriers of one array, one for each buffer. They complete in turn, so
the array is all that a wait and the copies it waits for have to agree on. In tensor-level IR the array is
the allocation that a value comes from. Below, an address is a constant distance from the start of the
block's shared memory and, inside a loop, a part that moves: the constant is where the array begins.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from artifact_inspector.analysis.flow.code import Code
from artifact_inspector.model import Language, Module

__all__ = ["BarrierArray", "find_arrays"]

BARRIER_BYTES = 8
"""Size of a barrier (PTX ISA, mbarrier objects)."""

_VALUE = re.compile(r'%(?:"[^"]*"|[\w.$-]+(?:#\d+)?)', re.ASCII)
_INTEGER = re.compile(r"(?<=, )-?\d+(?=,|$)")
# Triton has one name for a block's shared memory, in LLVM IR and in PTX.
_SHARED = re.compile(r"global_smem(?:, i\d+ (-?\d+)|\+(\d+))?")
_INDEX = re.compile(r"getelementptr (?:inbounds |nuw |nusw )*(i\d+|\[8 x i8\]),.* i\d+ (-?\d+|%)[^,)]*$")
_ELEMENT_BYTES = {"i8": 1, "i16": 2, "i32": 4, "i64": 8, "[8 x i8]": 8}
_INITIALISES = re.compile(r"mbarrier\.init\S* \[\s*([^\]\s]+)\s*\]")
_ALLOCATES = re.compile(r"\w+\.(?:local_alloc|alloc_mbarrier|alloc_tensor)$")
_VIEWS = re.compile(r"\w+\.(?:memdesc_|extract_slice)")
_SAME = re.compile(r"(?:mov|cvta?)\.|(?:bitcast|addrspacecast|ptrtoint|inttoptr|freeze|[sz]ext|trunc|phi)$")
_SUM = re.compile(r"(?:add|or|mad)\.|(?:add|or|getelementptr)$")


class BarrierArray(NamedTuple):
    """Barriers that are used in turn."""

    start: int
    """Its first byte in shared memory, or the instruction that allocates it."""
    slots: int | None
    """How many barriers it has, None where that cannot be told."""


class _Place(NamedTuple):
    """Where an address points."""

    root: int | None
    """The instruction that allocates; None below tensor-level IR, where shared memory is one."""
    offset: int
    moves: bool
    """True where something is added that is no constant."""


_LOOPED = _Place(None, 0, True)
"""An address that depends on itself only: what a loop adds to."""


def find_arrays(
    code: Code, module: Module, language: Language, barriers: Mapping[int, str | None]
) -> dict[int, BarrierArray]:
    """The arrays that operands point into, by instruction; those that cannot be told are left out.

    Args:
        barriers: the operand that names the barrier, by instruction.
    """
    tracer = _Tracer(code)
    places = {at: tracer.place(name, at) for at, name in barriers.items() if name is not None}
    told = {at: place for at, place in places.items() if place is not None and place is not _LOOPED}
    turning = sorted({place.offset for place in told.values() if place.root is None and place.moves})
    known = set(tracer.initialised()) if turning else set[int]()
    found: dict[int, BarrierArray] = {}
    for at, place in told.items():
        if place.root is not None:
            types = language.types(code.function.instructions[place.root], module)
            slots = types[-1].shape[0] if types and len(types[-1].shape) > 1 else 1 if types else None
            found[at] = BarrierArray(place.root, slots)
            continue
        start, slots = place.offset, 1
        for first in turning:
            count = _length(first, turning, known)
            if start == first or first <= start < first + BARRIER_BYTES * count:
                start, slots = first, count
        found[at] = BarrierArray(start, slots or None)
    return found


def _length(first: int, turning: list[int], known: set[int]) -> int:
    """Barriers that are initialised side by side from `first` on, up to the next array."""
    at = first
    while at in known and (at == first or at not in turning):
        at += BARRIER_BYTES
    return (at - first) // BARRIER_BYTES


class _Tracer:
    """Follows addresses back to where they come from."""

    def __init__(self, code: Code) -> None:
        self._code = code
        self._instructions = code.function.instructions
        self._known: dict[tuple[str, int], _Place | None] = {}
        self._definitions: dict[str, list[int]] = {}
        for index, instruction in enumerate(self._instructions):
            # The result stands first; what a statement without one names first is sorted out later.
            name = _VALUE.search(instruction.text)
            if name is not None:
                self._definitions.setdefault(name[0], []).append(index)
        self._handed: dict[str, list[tuple[int, str, int]]] = {}
        for flow in code.function.flows:
            self._handed.setdefault(flow.target, []).append((flow.owner, flow.source, flow.at))

    def place(self, operand: str, at: int) -> _Place | None:
        """Where an operand of an instruction points, None where that cannot be told."""
        shared = _SHARED.search(operand)
        if shared is not None:
            return _Place(None, int(shared[1] or shared[2] or 0), moves="%" in operand)
        key = (operand, at)
        if key not in self._known:
            self._known[key] = _LOOPED
            self._known[key] = _joined([self._source(*source) for source in self._sources(operand, at)])
        return self._known[key]

    def initialised(self) -> Iterator[int]:
        """Bytes of shared memory at which a barrier is initialised."""
        for index, instruction in enumerate(self._instructions):
            found = _INITIALISES.search(instruction.text)
            if found is None:
                continue
            # In inline assembly the operand is a number, and the barrier the only address behind it.
            shared = _SHARED.search(instruction.text, found.end())
            place = self.place(found[1] if shared is None else shared[0], index)
            if place is not None and place.root is None and not place.moves:
                yield place.offset

    def _sources(self, operand: str, at: int) -> list[tuple[str | None, int]]:
        """What may define an operand: (None, instruction), or (name handed over, instruction that hands)."""
        handed = [flow for flow in self._handed.get(operand, ()) if flow[0] <= at]
        defined = [
            index
            for index in self._definitions.get(operand, ())
            if operand in self._instructions[index].operands.results
        ]
        position = self._code.flow.position
        before = [index for index in defined if position[index] < position[at]]
        nearest = max(before, key=position.__getitem__, default=-1)
        owner = max((owner for owner, _, _ in handed), default=-1)
        if owner > nearest:
            return [(source, when) for o, source, when in handed if o == owner]
        around = self._code.flow.loop_at(at)
        later = [
            index
            for index in defined
            if position[index] >= position[at]
            and around is not None
            and not self._handed
            and self._shares_loop(index, around)
        ]
        return [(None, index) for index in (nearest, *later) if index >= 0]

    def _shares_loop(self, index: int, around: int | None) -> bool:
        """True where an instruction stands in some loop around a place."""
        flow = self._code.flow
        while around is not None:
            if flow.encloses(around, flow.loop_at(index)):
                return True
            around = flow.loops[around].parent
        return False

    def _source(self, name: str | None, at: int) -> _Place | None:
        if name is not None:
            return self.place(name, at)
        instruction = self._instructions[at]
        opcode, text = instruction.opcode, instruction.text
        if _ALLOCATES.match(opcode):
            return _Place(at, 0, moves=False)
        reads = instruction.operands.reads
        if _VIEWS.match(opcode):
            return self.place(reads[0], at) if reads else None
        same = _SAME.match(opcode) is not None
        if not same and not _SUM.match(opcode):
            return None
        places = [self.place(name, at) for name in dict.fromkeys(reads)]
        constants = [self.place(found[0], at) for found in _SHARED.finditer(text)]
        if same:
            return _joined([*places, *constants])
        bases = [place for place in (*places, *constants) if place is not None and place is not _LOOPED]
        if len(bases) != 1:
            return _LOOPED if _LOOPED in places and not bases else None
        base = bases[0]
        moves = base.moves or len(places) > (not constants)
        added = 0
        if opcode == "getelementptr":
            found = _INDEX.search(text)
            size = None if found is None else _ELEMENT_BYTES.get(found[1])
            if found is None or size is None:
                return None
            added = int(found[2]) * size if found[2] != "%" else 0
        elif not opcode.startswith("mad"):
            added = sum(int(number) for number in _INTEGER.findall(text))
        return _Place(base.root, base.offset + added, moves)


def _joined(places: list[_Place | None]) -> _Place | None:
    """Where a value points that comes from one of several places."""
    told = [place for place in places if place is not None and place is not _LOOPED]
    if None in places or len({place.root for place in told}) != 1:
        return _LOOPED if places and not told and None not in places else None
    first = min(told, key=lambda place: place.offset)
    return first._replace(moves=len(set(places)) > 1 or first.moves)
