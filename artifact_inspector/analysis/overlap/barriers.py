"""The array of barriers in shared memory that an operand points into.

A pipelined loop cycles through the barriers of one array, one for each buffer. A wait and the copies that
it waits for refer to the same array, so only the array has to be identified. In tensor-level IR the array
is the allocation that a value comes from. At lower levels, an address is a constant offset from the start
of the block's shared memory plus, inside a loop, a variable part. The constant is the start of the array.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from artifact_inspector.analysis.flow.code import Code
from artifact_inspector.model import Language, Module
from artifact_inspector.model.address import AddressRole, AddressStep

BARRIER_BYTES = 8
"""Size of a barrier (PTX ISA, mbarrier objects)."""


class BarrierArray(NamedTuple):
    """Barriers that are used cyclically."""

    start: int
    """First byte in shared memory, or the instruction that allocates it."""
    slots: int | None
    """Number of barriers; None if unknown."""


class _Place(NamedTuple):
    """The target of an address."""

    root: int | None
    """The allocating instruction; None below tensor-level IR, where shared memory is one allocation."""
    offset: int
    moves: bool
    """True if a value that is not constant is added."""


_LOOPED = _Place(None, 0, True)
"""An address that depends only on itself: the start value of a loop-carried sum."""

_Use = tuple[str, int]
"""A value and the instruction that reads it."""


def find_arrays(
    code: Code, module: Module, language: Language, barriers: Mapping[int, str | None]
) -> dict[int, BarrierArray]:
    """The arrays that operands point into, by instruction. Unknown ones are left out.

    Args:
        barriers: the operand that names the barrier, by instruction.
    """
    tracer = _Tracer(code)
    places = {at: tracer.place(name, at) for at, name in barriers.items() if name is not None}
    told = {at: place for at, place in places.items() if place is not None and place is not _LOOPED}
    lengths = _lengths(tracer, told.values())
    found: dict[int, BarrierArray] = {}
    for at, place in told.items():
        if place.root is not None:
            found[at] = BarrierArray(place.root, _slots(code, module, language, place.root))
            continue
        start, slots = place.offset, 1
        for first, count in lengths.items():
            if start == first or first <= start < first + BARRIER_BYTES * count:
                start, slots = first, count
        found[at] = BarrierArray(start, slots or None)
    return found


def _slots(code: Code, module: Module, language: Language, root: int) -> int | None:
    """Number of barriers in an allocation: its leading extent if it has several dimensions."""
    types = language.types(code.function.instructions[root], module)
    if not types:
        return None
    return types[-1].shape[0] if len(types[-1].shape) > 1 else 1


def _lengths(tracer: _Tracer, places: Iterable[_Place]) -> dict[int, int]:
    """Number of barriers in each array that is cycled through, by its first byte, in ascending order."""
    turning = sorted({place.offset for place in places if place.root is None and place.moves})
    known = set(tracer.initialised()) if turning else set[int]()
    return {first: _length(first, turning, known) for first in turning}


def _length(first: int, turning: list[int], known: set[int]) -> int:
    """Number of barriers initialised contiguously from `first` on, up to the next array."""
    at = first
    while at in known and (at == first or at not in turning):
        at += BARRIER_BYTES
    return (at - first) // BARRIER_BYTES


class _Tracer:
    """Traces addresses back to their origin."""

    def __init__(self, code: Code) -> None:
        self._code = code
        self._addresses = code.language.addresses
        self._known: dict[_Use, _Place | None] = {}
        self._handed: dict[str, list[tuple[int, str, int]]] = {}
        for flow in code.function.flows:
            self._handed.setdefault(flow.target, []).append((flow.owner, flow.source, flow.at))

    def place(self, operand: str, at: int) -> _Place | None:
        """The target of an instruction's operand; None if unknown."""
        named = self._addresses.place(operand)
        if named is not None:
            return _Place(None, *named)
        known, pending = self._known, [(operand, at)]
        opened: dict[_Use, list[_Source]] = {}
        while pending:
            use = pending[-1]
            if use in known and use not in opened:
                pending.pop()
            elif use not in opened:
                known[use] = _LOOPED  # a value reached again depends on itself
                sources = opened[use] = [self._source(*source) for source in self._sources(*use)]
                needed = [one for source in sources for one in source.uses if one not in known]
                pending += reversed(needed)
            else:
                pending.pop()
                known[use] = _joined([self._resolved(source) for source in opened.pop(use)])
        return known[operand, at]

    def initialised(self) -> Iterator[int]:
        """Bytes of shared memory at which a barrier is initialised."""
        for index, instruction in enumerate(self._code.function.instructions):
            operand = self._addresses.initialised(instruction)
            place = None if operand is None else self.place(operand, index)
            if place is not None and place.root is None and not place.moves:
                yield place.offset

    def _sources(self, operand: str, at: int) -> list[tuple[str | None, int]]:
        """Possible definitions of an operand: (None, instruction), or (passed name, passing instruction)."""
        handed = [flow for flow in self._handed.get(operand, ()) if flow[0] <= at]
        defined = self._code.definitions(operand)
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
        """True if an instruction is in one of the loops around a location."""
        flow = self._code.flow
        while around is not None:
            if flow.encloses(around, flow.loop_at(index)):
                return True
            around = flow.loops[around].parent
        return False

    def _source(self, name: str | None, at: int) -> _Source:
        if name is not None:
            return _Source(at, AddressStep(AddressRole.SAME), ((name, at),))
        step = self._addresses.step(self._code.function.instructions[at])
        reads = () if step is None else tuple((read, at) for read in dict.fromkeys(step.reads))
        return _Source(at, step, reads)

    def _resolved(self, source: _Source) -> _Place | None:
        """The target of a value from one source, given the known targets of its operands."""
        step = source.step
        if step is None:
            return None
        if step.role is AddressRole.ALLOCATION:
            return _Place(source.at, 0, moves=False)
        places = [self._place_of(use) for use in source.uses]
        constants = [_Place(None, *place) for place in step.places]
        if step.role is AddressRole.SAME:
            return _joined([*places, *constants])
        bases = [place for place in (*places, *constants) if place is not None and place is not _LOOPED]
        if len(bases) != 1:
            return _LOOPED if _LOOPED in places and not bases else None
        if step.added is None:
            return None
        moves = bases[0].moves or len(places) > (not constants)
        return _Place(bases[0].root, bases[0].offset + step.added, moves)

    def _place_of(self, use: _Use) -> _Place | None:
        named = self._addresses.place(use[0])
        return self._known.get(use) if named is None else _Place(None, *named)


class _Source(NamedTuple):
    """One of the instructions that may define an address."""

    at: int
    step: AddressStep | None
    uses: tuple[_Use, ...]


def _joined(places: list[_Place | None]) -> _Place | None:
    """The common target of a value that comes from several sources."""
    told = [place for place in places if place is not None and place is not _LOOPED]
    if None in places or len({place.root for place in told}) != 1:
        return _LOOPED if places and not told and None not in places else None
    first = min(told, key=lambda place: place.offset)
    return first._replace(moves=len(set(places)) > 1 or first.moves)
