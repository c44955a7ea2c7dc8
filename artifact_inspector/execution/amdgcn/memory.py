"""AMDGCN accesses to global memory, LDS, scratch and kernel arguments.

**Source** AMD Instinct MI300 ISA, "Buffer Addressing" and "LDS Operations"; RDNA 3 ISA, the same chapters.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from artifact_inspector.execution.amdgcn.operands import Reader, StepRun, under_exec, wide_reader, word_reader
from artifact_inspector.execution.interpreter.lane_accesses import LaneAccesses, find_lane_accesses
from artifact_inspector.execution.interpreter.memory_access import (
    count_global_access,
    forget_shared,
    load_global,
    load_shared,
    store_shared,
)
from artifact_inspector.execution.interpreter.values import (
    FULL,
    Mask,
    UnknownValue,
    Value,
    apply,
    broadcast_value,
    has_lanes,
    select_lanes,
)
from artifact_inspector.formats.amdgcn.operations import Action, OpcodeSemantics
from artifact_inspector.formats.amdgcn.statement import AmdgcnOperand, AmdgcnOperandKind, AmdgcnStatement

if TYPE_CHECKING:
    from artifact_inspector.execution.amdgcn.operands import RunBuilder
    from artifact_inspector.execution.interpreter.machine import Machine


def _constant_offset(statement: AmdgcnStatement) -> int:
    return statement.modifier_number("offset")


def _write_loaded(
    machine: Machine, names: tuple[str, ...], values: list[Value], meaning: OpcodeSemantics, in_range: Mask = True
) -> None:
    """Write loaded words to registers; 0 for lanes outside the range of the buffer."""
    for name, value in zip(names, values, strict=False):
        if meaning.preserves_half:
            value = machine.unknown_value("the other half of a register")
        elif meaning.is_signed:
            sign = 1 << (8 * meaning.size - 1)
            value = apply(lambda v, sign=sign: ((v ^ sign) - sign) & FULL, value)
        machine.write_register(name, select_lanes(in_range, value, 0) if in_range is not True else value)


def _word_count(meaning: OpcodeSemantics) -> int:
    return max(meaning.size // 4, 1)


# ── Buffers ──────────────────────────────────────────────────────────────────────────────────────


class _BufferAddress:
    """The address of a buffer instruction: a descriptor in four scalar registers, plus offsets."""

    def __init__(self, statement: AmdgcnStatement, size: int, first: int) -> None:
        operands = statement.operands[first:]
        descriptor_position = next(
            n for n, o in enumerate(operands) if o.kind is AmdgcnOperandKind.SCALAR and len(o.names) == 4
        )
        self.descriptor_readers = [word_reader(operands[descriptor_position], n) for n in range(4)]
        vector_operands = operands[:descriptor_position]
        has_index = statement.has_modifier("idxen")
        self.lane_offset_reader = (
            word_reader(vector_operands[-1], 1 if has_index else 0)
            if vector_operands and statement.has_modifier("offen")
            else None
        )
        self.index_reader = word_reader(vector_operands[-1]) if vector_operands and has_index else None
        self.scalar_offset_reader = (
            word_reader(operands[descriptor_position + 1])
            if len(operands) > descriptor_position + 1
            else (lambda _machine: 0)
        )
        self.constant_offset = _constant_offset(statement)
        self.size = size

    def locate(self, machine: Machine) -> tuple[Value, Mask]:
        """The address of each lane, and the lanes in range. Others read 0 and write nothing."""
        low, high, record_limit, _flags = (reader(machine) for reader in self.descriptor_readers)
        lane_offset = self.lane_offset_reader(machine) if self.lane_offset_reader is not None else 0
        offset = apply(lambda a, b: a + b + self.constant_offset, lane_offset, self.scalar_offset_reader(machine))
        if self.index_reader is not None:
            stride = apply(lambda v: v >> 16 & 0x3FFF, high)
            offset = apply(lambda a, i, s: a + i * s, offset, self.index_reader(machine), stride)
        base = apply(lambda a, b: a | (b & 0xFFFF) << 32, low, high)
        address = apply(lambda a, b: a + b, base, offset)
        in_range = apply(lambda o, n: o + self.size <= n, offset, record_limit)
        if isinstance(in_range, UnknownValue):
            return address, True
        return address, in_range if isinstance(in_range, np.ndarray) else bool(in_range)


def _lanes_in_range(machine: Machine, in_range: Mask) -> Mask:
    return machine.active_mask if in_range is True else machine.intersect(machine.active_mask, in_range)


def _forget_copied_lds(machine: Machine, lanes: LaneAccesses | None, size: int) -> None:
    """A direct copy from global memory to LDS; its LDS address is not modelled."""
    value = load_global(machine, lanes, size, 1)[0]
    copied_value = value if isinstance(value, UnknownValue) else machine.unknown_value("data copied into LDS")
    forget_shared(machine, copied_value.missing_inputs)


def _build_load_buffer(statement: AmdgcnStatement, meaning: OpcodeSemantics) -> StepRun:
    to_shared = statement.has_modifier("lds") or meaning.writes_shared
    buffer_address = _BufferAddress(statement, meaning.size, 0 if to_shared else 1)
    names = () if to_shared else statement.operands[0].names

    def run(machine: Machine) -> None:
        address, in_range = buffer_address.locate(machine)
        mask = _lanes_in_range(machine, in_range)
        lanes = count_global_access(machine, address, meaning.size, reads=True, writes=False, mask=mask)
        if to_shared:
            _forget_copied_lds(machine, lanes, meaning.size)
            return
        if lanes is None and not has_lanes(mask) and machine.undecided_lanes is None:
            values: list[Value] = [0] * _word_count(meaning)
        else:
            values = list(load_global(machine, lanes, meaning.size, _word_count(meaning)))
        if has_lanes(machine.active_mask) or machine.undecided_lanes is not None:
            _write_loaded(machine, names, values, meaning, in_range)

    return under_exec(run)


def _build_store_buffer(statement: AmdgcnStatement, meaning: OpcodeSemantics) -> StepRun:
    buffer_address = _BufferAddress(statement, meaning.size, 1)

    def run(machine: Machine) -> None:
        address, in_range = buffer_address.locate(machine)
        count_global_access(
            machine, address, meaning.size, reads=False, writes=True, mask=_lanes_in_range(machine, in_range)
        )

    return under_exec(run)


def _build_atomic_buffer(statement: AmdgcnStatement, meaning: OpcodeSemantics) -> StepRun:
    buffer_address = _BufferAddress(statement, meaning.size, 1)
    names = statement.operands[0].names if _returns_old_value(statement) else ()

    def run(machine: Machine) -> None:
        address, in_range = buffer_address.locate(machine)
        count_global_access(
            machine, address, meaning.size, reads=False, writes=True, mask=_lanes_in_range(machine, in_range)
        )
        for name in names:
            machine.write_register(name, machine.unknown_value("the result of an atomic"))

    return under_exec(run)


def _returns_old_value(statement: AmdgcnStatement) -> bool:
    return any(statement.has_modifier(name) for name in ("glc", "sc0")) or "RETURN" in statement.modifiers.get("th", "")


# ── Global memory by address ─────────────────────────────────────────────────────────────────────


def _address_reader(statement: AmdgcnStatement, position: int) -> Reader:
    """Reader of an address plus offset: a vector register pair, or a scalar pair (last) plus one register."""
    lane_operand, last_operand = statement.operands[position], statement.operands[-1]
    base = last_operand if last_operand.kind is AmdgcnOperandKind.SCALAR and len(last_operand.names) == 2 else None
    constant_offset = _constant_offset(statement)
    if base is None:
        pair_reader = wide_reader(lane_operand)
        return lambda machine: apply(lambda v: v + constant_offset, pair_reader(machine))
    scalar_reader, vector_reader = wide_reader(base), word_reader(lane_operand)
    return lambda machine: apply(lambda a, b: a + b + constant_offset, scalar_reader(machine), vector_reader(machine))


def _build_load_global(statement: AmdgcnStatement, meaning: OpcodeSemantics) -> StepRun:
    to_shared = meaning.writes_shared or statement.has_modifier("lds")
    names = () if to_shared else statement.operands[0].names
    address_reader = _address_reader(statement, 0 if to_shared else 1)

    def run(machine: Machine) -> None:
        lanes = count_global_access(machine, address_reader(machine), meaning.size, reads=True, writes=False)
        if to_shared:
            _forget_copied_lds(machine, lanes, meaning.size)
        elif has_lanes(machine.active_mask) or machine.undecided_lanes is not None:
            _write_loaded(
                machine, names, list(load_global(machine, lanes, meaning.size, _word_count(meaning))), meaning
            )

    return under_exec(run)


def _build_store_global(statement: AmdgcnStatement, meaning: OpcodeSemantics) -> StepRun:
    address_reader = _address_reader(statement, 0)

    def run(machine: Machine) -> None:
        count_global_access(machine, address_reader(machine), meaning.size, reads=False, writes=True)

    return under_exec(run)


def _build_atomic_global(statement: AmdgcnStatement, meaning: OpcodeSemantics) -> StepRun:
    returns_old_value = _returns_old_value(statement)
    names = statement.operands[0].names if returns_old_value else ()
    address_reader = _address_reader(statement, 1 if returns_old_value else 0)

    def run(machine: Machine) -> None:
        count_global_access(machine, address_reader(machine), meaning.size, reads=False, writes=True)
        for name in names:
            machine.write_register(name, machine.unknown_value("the result of an atomic"))

    return under_exec(run)


# ── Scalar loads ─────────────────────────────────────────────────────────────────────────────────


def _build_load_scalar(statement: AmdgcnStatement, meaning: OpcodeSemantics) -> StepRun:
    """Load kernel arguments, or memory at an address that is uniform for the wave."""
    target, base_reader = statement.operands[0], wide_reader(statement.operands[1])
    offset_readers = [word_reader(operand) for operand in statement.operands[2:3]]
    constant_offset, word_count = _constant_offset(statement), _word_count(meaning)

    def run(machine: Machine) -> None:
        address = base_reader(machine)
        for offset_reader in offset_readers:
            address = apply(lambda a, b: a + b, address, offset_reader(machine))
        address = _uniform_address(machine, apply(lambda v: v + constant_offset, address))
        if isinstance(address, int) and (argument_words := machine.environment.arguments(address, meaning.size)):
            values: list[Value] = argument_words
        else:
            values = _load_wave_words(machine, address, word_count)
        for name, value in zip(target.names, values, strict=False):
            machine.write_register(name, value)

    return run


def _uniform_address(machine: Machine, address: Value) -> Value:
    """An address as one number if all active lanes agree on it."""
    active_lanes = broadcast_value(machine.active_mask, machine.shape)
    if isinstance(address, UnknownValue):
        if broadcast_value(address.unknown_bits, machine.shape)[active_lanes].any():
            return address
        address = address.data
    if isinstance(address, np.ndarray) and active_lanes.any():
        active_addresses = broadcast_value(address, machine.shape)[active_lanes]
        return int(active_addresses[0]) if (active_addresses == active_addresses[0]).all() else address
    return address


def _load_wave_words(machine: Machine, address: Value, word_count: int) -> list[Value]:
    """Words that a wave loads once for all of its lanes."""
    lane = machine.environment.lane(machine)
    is_first_lane: Any = np.asarray(lane == 0)
    mask = machine.intersect(machine.active_mask, is_first_lane) if machine.active_mask is not True else is_first_lane
    lanes = count_global_access(machine, address, 4 * word_count, reads=True, writes=False, mask=mask)
    values = load_global(machine, lanes, 4 * word_count, word_count)
    return [_broadcast_to_wave(machine, value) for value in values]


def _broadcast_to_wave(machine: Machine, value: Value) -> Value:
    if isinstance(value, UnknownValue):
        data, bad = (_broadcast_to_wave(machine, plane) for plane in (value.data, value.unknown_bits))
        return UnknownValue(data, bad, value.missing_inputs)
    if not isinstance(value, np.ndarray) or value.shape[1] == 1:
        return value
    first_lane_values = value[:, :: machine.program.warp_size]
    if (first_lane_values == first_lane_values.flat[0]).all():
        return int(first_lane_values.flat[0])
    return np.repeat(first_lane_values, machine.program.warp_size, axis=1)


def _build_load_scalar_buffer(statement: AmdgcnStatement, meaning: OpcodeSemantics) -> StepRun:
    target, descriptor = statement.operands[:2]
    low_reader, high_reader = word_reader(descriptor), word_reader(descriptor, 1)
    offset_readers = [word_reader(operand) for operand in statement.operands[2:3]]
    constant_offset, word_count = _constant_offset(statement), _word_count(meaning)

    def run(machine: Machine) -> None:
        address = apply(
            lambda a, b: (a | (b & 0xFFFF) << 32) + constant_offset, low_reader(machine), high_reader(machine)
        )
        for offset_reader in offset_readers:
            address = apply(lambda a, b: a + b, address, offset_reader(machine))
        for name, value in zip(target.names, _load_wave_words(machine, address, word_count), strict=False):
            machine.write_register(name, value)

    return run


# ── LDS ──────────────────────────────────────────────────────────────────────────────────────────


def _lds_address_readers(statement: AmdgcnStatement, meaning: OpcodeSemantics, position: int) -> list[Reader]:
    """Readers of the LDS addresses of each lane, one or two."""
    base_reader = word_reader(statement.operands[position])
    if meaning.addresses == 1:
        offsets = [_constant_offset(statement)]
    else:
        offset_unit = meaning.size * meaning.stride
        offsets = [statement.modifier_number(name) * offset_unit for name in ("offset0", "offset1")]

    def offset_reader(offset: int) -> Reader:
        return lambda machine: apply(lambda v: (v + offset) & FULL, base_reader(machine))

    return [offset_reader(offset) for offset in offsets]


def _build_load_shared(statement: AmdgcnStatement, meaning: OpcodeSemantics) -> StepRun:
    names = statement.operands[0].names
    address_readers, word_count = _lds_address_readers(statement, meaning, 1), _word_count(meaning)

    def run(machine: Machine) -> None:
        loaded_words: list[Value] = []
        for address_reader in address_readers:
            lanes = find_lane_accesses(machine, address_reader(machine))
            loaded_words += list(load_shared(machine, lanes, meaning.size, word_count))
        if has_lanes(machine.active_mask) or machine.undecided_lanes is not None:
            _write_loaded(machine, names, loaded_words, meaning)

    return under_exec(run)


def _build_store_shared(statement: AmdgcnStatement, meaning: OpcodeSemantics) -> StepRun:
    address_readers, word_count = _lds_address_readers(statement, meaning, 0), _word_count(meaning)
    data_readers = [
        [word_reader(operand, n) for n in range(word_count)]
        for operand in statement.operands[1 : 1 + len(address_readers)]
    ]

    def run(machine: Machine) -> None:
        for address_reader, readers in zip(address_readers, data_readers, strict=True):
            values = [reader(machine) for reader in readers]
            if meaning.preserves_half:
                values = [apply(lambda v: v >> 16, value) for value in values]
            store_shared(machine, find_lane_accesses(machine, address_reader(machine)), meaning.size, values)

    return under_exec(run)


def _build_atomic_shared(statement: AmdgcnStatement, meaning: OpcodeSemantics) -> StepRun:
    returns_old_value = "_rtn" in statement.base
    address_readers = _lds_address_readers(statement, meaning, 1 if returns_old_value else 0)
    names = statement.operands[0].names if returns_old_value else ()

    def run(machine: Machine) -> None:
        lanes = find_lane_accesses(machine, address_readers[0](machine))
        store_shared(
            machine, lanes, meaning.size, [machine.unknown_value("the result of an atomic")] * _word_count(meaning)
        )
        for name in names:
            machine.write_register(name, machine.unknown_value("the result of an atomic"))

    return under_exec(run)


# ── Scratch ──────────────────────────────────────────────────────────────────────────────────────


def _scratch_address_reader(statement: AmdgcnStatement, first: int) -> Reader:
    address_operands: list[AmdgcnOperand] = [
        o
        for o in statement.operands[first:]
        if o.kind in (AmdgcnOperandKind.VECTOR, AmdgcnOperandKind.SCALAR, AmdgcnOperandKind.NUMBER) and len(o.names) < 2
    ]
    readers, constant_offset = ([word_reader(operand) for operand in address_operands], _constant_offset(statement))

    def read_address(machine: Machine) -> Value:
        address: Value = constant_offset
        for reader in readers:
            address = apply(lambda a, b: a + b, address, reader(machine))
        return address

    return read_address


def _build_load_scratch(statement: AmdgcnStatement, meaning: OpcodeSemantics) -> StepRun:
    names, address_reader = statement.operands[0].names, _scratch_address_reader(statement, 1)

    def run(machine: Machine) -> None:
        address = address_reader(machine)
        values: list[Value] = []
        for word_index in range(_word_count(meaning)):
            stored_word = machine.local_memory.load_word(address + 4 * word_index) if isinstance(address, int) else None
            values.append(
                machine.unknown_value("the content of scratch memory")
                if stored_word is None or meaning.size < 4
                else stored_word
            )
        _write_loaded(machine, names, values, meaning)

    return under_exec(run)


def _build_store_scratch(statement: AmdgcnStatement, meaning: OpcodeSemantics) -> StepRun:
    # Scratch instructions take the address first, buffer instructions the data.
    is_buffer = statement.base.startswith("buffer")
    data = statement.operands[0 if is_buffer else 1]
    address_statement = statement._replace(
        operands=statement.operands[1:] if is_buffer else (statement.operands[0], *statement.operands[2:])
    )
    address_reader, readers = (
        _scratch_address_reader(address_statement, 0),
        [word_reader(data, n) for n in range(_word_count(meaning))],
    )

    def run(machine: Machine) -> None:
        address = address_reader(machine)
        if not isinstance(address, int):
            machine.local_memory.lane_words.clear()
            return
        for word_index, reader in enumerate(readers):
            value = reader(machine) if meaning.size >= 4 else machine.unknown_value("the content of scratch memory")
            machine.local_memory.store_word(address + 4 * word_index, value, machine.active_mask)

    return under_exec(run)


MEMORY: Mapping[Action, RunBuilder] = {
    Action.LOAD_SCALAR: _build_load_scalar,
    Action.LOAD_SCALAR_BUFFER: _build_load_scalar_buffer,
    Action.LOAD_BUFFER: _build_load_buffer,
    Action.STORE_BUFFER: _build_store_buffer,
    Action.ATOMIC_BUFFER: _build_atomic_buffer,
    Action.LOAD_GLOBAL: _build_load_global,
    Action.STORE_GLOBAL: _build_store_global,
    Action.ATOMIC_GLOBAL: _build_atomic_global,
    Action.LOAD_SCRATCH: _build_load_scratch,
    Action.STORE_SCRATCH: _build_store_scratch,
    Action.LOAD_SHARED: _build_load_shared,
    Action.STORE_SHARED: _build_store_shared,
    Action.ATOMIC_SHARED: _build_atomic_shared,
}
"""Action → builder of its run."""
