"""The array of barriers in shared memory that an operand points into.

A pipelined loop cycles through the barriers of one array, one for each buffer. A wait and the copies that it waits for
refer to the same array, so only the array has to be identified. In tensor-level IR the array is the allocation that a
value comes from. At lower levels, an address is a constant offset from the start of the block's shared memory plus,
inside a loop, a variable part. The constant is the start of the array.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple, TypeGuard

from artifact_inspector.analysis.flow.function_code import FunctionCode
from artifact_inspector.analysis.flow.traversal import group_by_key
from artifact_inspector.model.address import AddressRole, AddressStep

BARRIER_BYTES = 8
"""Size of a barrier (PTX ISA, mbarrier objects)."""


class BarrierArray(NamedTuple):
    """Barriers that are used cyclically."""

    start: int
    """First byte in shared memory, or the instruction that allocates it."""
    slots: int | None
    """Number of barriers; None if unknown."""


class _SharedAddress(NamedTuple):
    """The target of an address."""

    root: int | None
    """The allocating instruction; None below tensor-level IR, where shared memory is one allocation."""
    offset: int
    is_variable: bool
    """True if a value that is not constant is added."""


_SELF_DEPENDENT = _SharedAddress(None, 0, True)
"""An address that depends only on itself: the start value of a loop-carried sum."""

_Use = tuple[str, int]
"""A value and the instruction that reads it."""


def find_barrier_arrays(code: FunctionCode, barriers: Mapping[int, str | None]) -> dict[int, BarrierArray]:
    """The arrays that operands point into, by instruction. Unknown ones are left out.

    Args:
        barriers: the operand that names the barrier, by instruction.
    """
    tracer = _AddressTracer(code)
    addresses = {index: tracer.trace_address(name, index) for index, name in barriers.items() if name is not None}
    known = {index: address for index, address in addresses.items() if _is_known(address)}
    lengths = _array_lengths(tracer, known.values())
    arrays: dict[int, BarrierArray] = {}
    for index, address in known.items():
        start, slots = address.offset, 1
        if address.root is not None:  # its leading extent if it has several dimensions
            types = code.language.tensor_types(code.instructions[address.root], code.module)
            start, slots = address.root, (types[-1].shape[0] if len(types[-1].shape) > 1 else 1) if types else 0
        else:
            for first, count in lengths.items():
                if start == first or first <= start < first + BARRIER_BYTES * count:
                    start, slots = first, count
        arrays[index] = BarrierArray(start, slots or None)
    return arrays


def _array_lengths(tracer: _AddressTracer, addresses: Iterable[_SharedAddress]) -> dict[int, int]:
    """Number of barriers in each array that is cycled through, by its first byte, in ascending order.

    They are initialised contiguously from the first byte on, up to the next array.
    """
    starts = sorted({address.offset for address in addresses if address.root is None and address.is_variable})
    initialised_offsets = set(tracer.initialised_offsets()) if starts else set[int]()
    lengths = {}
    for first in starts:
        offset = first
        while offset in initialised_offsets and (offset == first or offset not in starts):
            offset += BARRIER_BYTES
        lengths[first] = (offset - first) // BARRIER_BYTES
    return lengths


class _AddressTracer:
    """Traces addresses back to their origin."""

    def __init__(self, code: FunctionCode) -> None:
        self._code = code
        self._addresses = code.language.addresses
        self._cache: dict[_Use, _SharedAddress | None] = {}
        self._passed_values = group_by_key(
            (flow.target, (flow.owner, flow.source, flow.instruction_index)) for flow in code.function.flows
        )

    def trace_address(self, operand: str, at: int) -> _SharedAddress | None:
        """The target of an instruction's operand; None if unknown."""
        direct_address = self._addresses.shared_location(operand)
        if direct_address is not None:
            return _SharedAddress(None, *direct_address)
        cache, pending = self._cache, [(operand, at)]
        opened: dict[_Use, list[_AddressSource]] = {}
        while pending:
            use = pending[-1]
            if use in cache and use not in opened:
                pending.pop()
            elif use not in opened:
                cache[use] = _SELF_DEPENDENT  # a value reached again depends on itself
                sources = opened[use] = [self._source(*source) for source in self._sources(*use)]
                needed = [source_use for source in sources for source_use in source.uses if source_use not in cache]
                pending += reversed(needed)
            else:
                pending.pop()
                cache[use] = _merge_addresses([self._resolve(source) for source in opened.pop(use)])
        return cache[operand, at]

    def initialised_offsets(self) -> Iterator[int]:
        """Bytes of shared memory at which a barrier is initialised."""
        for index, instruction in enumerate(self._code.instructions):
            operand = self._addresses.initialised_barrier(instruction)
            address = None if operand is None else self.trace_address(operand, index)
            if address is not None and address.root is None and not address.is_variable:
                yield address.offset

    def _sources(self, operand: str, at: int) -> list[tuple[str | None, int]]:
        """Possible definitions of an operand: (None, instruction), or (passed name, passing instruction)."""
        passed_values = [flow for flow in self._passed_values.get(operand, ()) if flow[0] <= at]
        defined = self._code.definitions(operand)
        position, flow = self._code.flow.position, self._code.flow
        earlier_definitions = [index for index in defined if position[index] < position[at]]
        nearest = max(earlier_definitions, key=position.__getitem__, default=-1)
        owner = max((owner for owner, _, _ in passed_values), default=-1)
        if owner > nearest:
            return [(source, when) for o, source, when in passed_values if o == owner]
        outermost = list(flow.enclosing(flow.loop_at(at)))[-1:] if not self._passed_values else []
        later = [
            index
            for index in defined
            if position[index] >= position[at] and any(flow.encloses(loop, flow.loop_at(index)) for loop in outermost)
        ]
        return [(None, index) for index in (nearest, *later) if index >= 0]

    def _source(self, name: str | None, at: int) -> _AddressSource:
        if name is not None:
            return _AddressSource(at, AddressStep(AddressRole.SAME), ((name, at),))
        step = self._addresses.address_step(self._code.instructions[at])
        reads = () if step is None else tuple((register, at) for register in dict.fromkeys(step.reads))
        return _AddressSource(at, step, reads)

    def _resolve(self, source: _AddressSource) -> _SharedAddress | None:
        """The target of a value from one source, given the known targets of its operands."""
        step = source.step
        if step is None:
            return None
        if step.role is AddressRole.ALLOCATION:
            return _SharedAddress(source.at, 0, is_variable=False)
        addresses = [self._address_of(use) for use in source.uses]
        constants = [_SharedAddress(None, *address) for address in step.locations]
        if step.role is AddressRole.SAME:
            return _merge_addresses([*addresses, *constants])
        bases = [address for address in (*addresses, *constants) if _is_known(address)]
        if len(bases) != 1:
            return _SELF_DEPENDENT if _SELF_DEPENDENT in addresses and not bases else None
        if step.added_bytes is None:
            return None
        moves = bases[0].is_variable or len(addresses) > (not constants)
        return _SharedAddress(bases[0].root, bases[0].offset + step.added_bytes, moves)

    def _address_of(self, use: _Use) -> _SharedAddress | None:
        named = self._addresses.shared_location(use[0])
        return self._cache.get(use) if named is None else _SharedAddress(None, *named)


class _AddressSource(NamedTuple):
    """One of the instructions that may define an address."""

    at: int
    step: AddressStep | None
    uses: tuple[_Use, ...]


def _is_known(address: _SharedAddress | None) -> TypeGuard[_SharedAddress]:
    return address is not None and address is not _SELF_DEPENDENT


def _merge_addresses(addresses: list[_SharedAddress | None]) -> _SharedAddress | None:
    """The common target of a value that comes from several sources."""
    known_addresses = [address for address in addresses if _is_known(address)]
    if None in addresses or len({address.root for address in known_addresses}) != 1:
        return _SELF_DEPENDENT if addresses and not known_addresses and None not in addresses else None
    first = min(known_addresses, key=lambda address: address.offset)
    return first._replace(is_variable=len(set(addresses)) > 1 or first.is_variable)
