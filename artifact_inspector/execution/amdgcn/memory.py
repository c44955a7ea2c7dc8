"""AMDGCN accesses to global memory, LDS, scratch and kernel arguments.

The LDS has 32 banks of four bytes: one pass serves 32 lanes of four bytes, or fewer of more, as on NVIDIA GPUs.

**Source** AMD Instinct MI300 ISA, "Buffer Addressing" and "LDS Operations"; RDNA 3 ISA, the same chapters.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from artifact_inspector.execution.amdgcn import operands as op
from artifact_inspector.execution.amdgcn.environment import AmdgcnEnvironment
from artifact_inspector.execution.amdgcn.retry_loops import is_swap
from artifact_inspector.execution.interpreter.access_counting import (
    count_global_access,
    count_shared_access,
    observe_shared,
)
from artifact_inspector.execution.interpreter.banks import BANKS
from artifact_inspector.execution.interpreter.lane_accesses import LaneAccesses, find_lane_accesses
from artifact_inspector.execution.interpreter.machine import Machine
from artifact_inspector.execution.interpreter.memory_access import (
    forget_shared,
    load_global,
    load_local,
    load_shared,
    store_local,
    store_shared,
)
from artifact_inspector.execution.interpreter.swap_outcomes import record_swap
from artifact_inspector.execution.interpreter.values import (
    FULL,
    Known,
    Mask,
    UnknownValue,
    Value,
    Word,
    apply,
    as_mask,
    as_word,
    broadcast_mask,
    broadcast_value,
    has_lanes,
    invert_mask,
    move_lanes,
    select_lanes,
)
from artifact_inspector.formats.amdgcn.operations import Action, OpcodeSemantics
from artifact_inspector.formats.amdgcn.statement import AmdgcnOperand, AmdgcnOperandKind, AmdgcnStatement

_ATOMIC_RESULT = "the result of an atomic"
_SCRATCH_CONTENT = "the content of scratch memory"


def _sum_reader(readers: Sequence[op.Reader], offset: int) -> op.Reader:
    """Reader of a sum of operands and a constant."""

    def read_sum(machine: Machine) -> Value:
        total: Value = offset
        for reader in readers:
            total = apply(lambda a, b: a + b, total, reader(machine))
        return total

    return read_sum


def _can_write(machine: Machine) -> bool:
    """Whether any lane writes, or may write, its registers."""
    return has_lanes(machine.active_mask) or machine.undecided_lanes is not None


def _write_loaded(
    machine: Machine, names: tuple[str, ...], values: Sequence[Value], meaning: OpcodeSemantics, in_range: Mask = True
) -> None:
    """Write loaded words to registers; 0 for lanes outside the range of the buffer."""
    for name, value in zip(names, values, strict=False):
        if meaning.preserves_half:
            value = machine.unknown_value("the other half of a register")
        elif meaning.is_signed:
            sign = 1 << (8 * meaning.size - 1)
            value = apply(lambda v, sign=sign: ((v ^ sign) - sign) & FULL, value)
        machine.write_register(name, select_lanes(in_range, value, 0))


def _word_count(meaning: OpcodeSemantics) -> int:
    return max(meaning.size // 4, 1)


# ── Buffers ──────────────────────────────────────────────────────────────────────────────────────


def _buffer_base_reader(descriptor: AmdgcnOperand) -> op.Reader:
    low_reader, high_reader = op.word_reader(descriptor), op.word_reader(descriptor, 1)
    return lambda machine: apply(lambda a, b: a | (b & 0xFFFF) << 32, low_reader(machine), high_reader(machine))


def _buffer_address(statement: AmdgcnStatement, size: int, first: int) -> Callable[[Machine], tuple[Value, Mask]]:
    """Reader of the address of each lane, and of the lanes in range: others read 0 and write nothing.

    The address is a descriptor in four scalar registers, plus offsets.
    """
    operands = statement.operands[first:]
    at = next(n for n, o in enumerate(operands) if o.kind is AmdgcnOperandKind.SCALAR and len(o.names) == 4)
    base_reader = _buffer_base_reader(operands[at])
    high_reader, limit_reader = (op.word_reader(operands[at], n) for n in (1, 2))
    vector = operands[at - 1] if at else None
    has_index = vector is not None and statement.has_modifier("idxen")
    lanes = None
    if vector is not None and statement.has_modifier("offen"):
        lanes = vector.names[1 if has_index else 0]
    offset_reader = _sum_reader(
        [op.word_reader(operand) for operand in operands[at + 1 : at + 2]], statement.modifier_number("offset")
    )
    index_reader = op.word_reader(vector) if vector is not None and has_index else None

    def locate_at(machine: Machine, lane_offset: Value) -> tuple[Value, Mask]:
        offset = apply(lambda a, b: a + b, offset_reader(machine), lane_offset)
        if index_reader is not None:
            indices, strides = index_reader(machine), high_reader(machine)
            offset = apply(lambda a, i, s: a + i * (s >> 16 & 0x3FFF), offset, indices, strides)
        address = apply(lambda a, o: a + o, base_reader(machine), offset)
        in_range = apply(lambda o, n: o + size <= n, offset, limit_reader(machine))
        return address, True if isinstance(in_range, UnknownValue) else as_mask(in_range)

    def locate(machine: Machine) -> tuple[Value, Mask]:
        if lanes is None:
            return locate_at(machine, 0)
        register = machine.registers.get(lanes)
        selected, mask, *values = machine.selections.get(id(register), (None, True))
        if selected is register and values:  # mostly, only one of both is in range
            located = [locate_at(machine, value) for value in values]
            reached = [
                machine.intersect(on, in_range)
                for on, (_, in_range) in zip((mask, invert_mask(mask)), located, strict=True)
            ]
            if has_lanes(reached[0]) != has_lanes(reached[1]):
                return next((address, on) for (address, _), on in zip(located, reached, strict=True) if has_lanes(on))
        return locate_at(machine, machine.read_register(lanes))

    return locate


def _forget_copied_lds(machine: Machine, lanes: LaneAccesses | None, size: int) -> None:
    """A direct copy from global memory to LDS; its LDS address is not modelled."""
    value = load_global(machine, lanes, size, 1)[0]
    copied_value = value if isinstance(value, UnknownValue) else machine.unknown_value("data copied into LDS")
    forget_shared(machine, copied_value.missing_inputs)


def _locator(
    statement: AmdgcnStatement, meaning: OpcodeSemantics, first: int
) -> Callable[[Machine], tuple[Value, Mask]]:
    """The same for any access to global memory: a vector register pair, or a scalar pair (last) plus one register."""
    if meaning.action in (Action.LOAD_BUFFER, Action.STORE_BUFFER, Action.ATOMIC_BUFFER):
        return _buffer_address(statement, meaning.size, first)
    lane_operand, base = statement.operands[first], statement.operands[-1]
    readers = [op.wide_reader(lane_operand)]
    if base.kind is AmdgcnOperandKind.SCALAR and len(base.names) == 2:
        readers = [op.wide_reader(base), op.word_reader(lane_operand)]
    address_reader = _sum_reader(readers, statement.modifier_number("offset"))
    return lambda machine: (address_reader(machine), True)


def _build_load_global(statement: AmdgcnStatement, meaning: OpcodeSemantics) -> op.StepRun:
    to_shared = statement.has_modifier("lds") or meaning.writes_shared
    locate = _locator(statement, meaning, 0 if to_shared else 1)
    names = () if to_shared else statement.operands[0].names

    def run(machine: Machine) -> None:
        address, in_range = locate(machine)
        mask = machine.intersect(machine.active_mask, in_range)
        lanes = count_global_access(machine, address, meaning.size, mask=mask)
        if to_shared:
            _forget_copied_lds(machine, lanes, meaning.size)
            return
        values: Sequence[Value] = [0] * _word_count(meaning)
        if lanes is not None or has_lanes(mask) or machine.undecided_lanes is not None:
            values = load_global(machine, lanes, meaning.size, _word_count(meaning))
        if _can_write(machine):
            _write_loaded(machine, names, values, meaning, in_range)

    return op.under_exec(run)


def _build_write_global(statement: AmdgcnStatement, meaning: OpcodeSemantics) -> op.StepRun:
    """Stores and atomics."""
    is_buffer = meaning.action in (Action.STORE_BUFFER, Action.ATOMIC_BUFFER)
    is_atomic = meaning.action in (Action.ATOMIC_BUFFER, Action.ATOMIC_GLOBAL)
    returns = {"glc", "sc0"} & {*statement.modifiers} or "RETURN" in statement.modifiers.get("th", "")
    returns_old_value = is_atomic and bool(returns)
    locate = _locator(statement, meaning, 1 if is_buffer or returns_old_value else 0)
    names = statement.operands[0].names if returns_old_value else ()
    records_swap = is_swap(statement) and returns_old_value

    def run(machine: Machine) -> None:
        address, in_range = locate(machine)
        mask = machine.intersect(machine.active_mask, in_range)
        lanes = count_global_access(machine, address, meaning.size, is_write=True, mask=mask)
        if records_swap:
            record_swap(machine, names[0], lanes)
        op.write_all(machine, names, [machine.unknown_value(_ATOMIC_RESULT) for _ in names])

    return op.under_exec(run)


# ── Scalar loads ─────────────────────────────────────────────────────────────────────────────────


def _build_load_scalar(statement: AmdgcnStatement, meaning: OpcodeSemantics) -> op.StepRun:
    """Load kernel arguments, or memory at an address that is uniform for the wave."""
    (target, base), word_count = statement.operands[:2], _word_count(meaning)
    is_buffer = meaning.action is Action.LOAD_SCALAR_BUFFER
    base_reader = _buffer_base_reader(base) if is_buffer else op.wide_reader(base)
    readers = [base_reader, *map(op.word_reader, statement.operands[2:3])]
    address_reader = _sum_reader(readers, statement.modifier_number("offset"))

    def run(machine: Machine) -> None:
        address = _uniform_address(machine, address_reader(machine))
        assert isinstance(machine.environment, AmdgcnEnvironment)
        values = machine.environment.arguments(address, meaning.size) if isinstance(address, int) else None
        op.write_all(machine, target.names, values or _load_wave_words(machine, address, word_count))

    return run


def _uniform_address(machine: Machine, address: Value) -> Value:
    """An address as one number if all active lanes agree on it."""
    address = machine.resolve_active(address)
    if isinstance(address, np.ndarray) and has_lanes(machine.active_mask):
        active_lanes = broadcast_mask(machine.active_mask, machine.shape)
        active_addresses = broadcast_value(address, machine.shape)[active_lanes]
        return int(active_addresses[0]) if (active_addresses == active_addresses[0]).all() else address
    return address


def _load_wave_words(machine: Machine, address: Value, word_count: int) -> list[Value]:
    """Words that a wave loads once for all of its lanes."""
    mask = machine.intersect(machine.active_mask, machine.lane_numbers == 0)
    lanes = count_global_access(machine, address, 4 * word_count, mask=mask)

    def repeat_first_lanes(plane: Known) -> Word:
        plain = as_word(plane)
        if not isinstance(plain, np.ndarray) or plain.shape[1] == 1:
            return plain
        return machine.repeat_in_warps(plain[:, :: machine.warp_size])

    return [move_lanes(repeat_first_lanes, value) for value in load_global(machine, lanes, 4 * word_count, word_count)]


# ── LDS ──────────────────────────────────────────────────────────────────────────────────────────


_ORDER_OF_WIDE_LOADS = [lane for first in (0, 4, 8, 12) for at in (first, first ^ 20) for lane in range(at, at + 4)]
"""Lanes of half a wave in the order in which `ds_read_b128` serves them, eight at a time: 0–3 and 20–23, and so on.
Source: Composable Kernel's documentation, "Understanding AMD GPU LDS and bank conflicts"."""


def _lds_address_readers(statement: AmdgcnStatement, meaning: OpcodeSemantics, position: int) -> list[op.Reader]:
    """Readers of the LDS addresses of each lane, one or two."""
    base_reader = op.word_reader(statement.operands[position])
    if meaning.addresses == 1:
        offsets = [statement.modifier_number("offset")]
    else:
        offset_unit = meaning.size * meaning.stride
        offsets = [statement.modifier_number(name) * offset_unit for name in ("offset0", "offset1")]

    def offset_reader(offset: int) -> op.Reader:
        return lambda machine: apply(lambda v: (v + offset) & FULL, base_reader(machine))

    return [offset_reader(offset) for offset in offsets]


def _build_load_shared(statement: AmdgcnStatement, meaning: OpcodeSemantics) -> op.StepRun:
    names = statement.operands[0].names
    address_readers, word_count = _lds_address_readers(statement, meaning, 1), _word_count(meaning)
    order = _ORDER_OF_WIDE_LOADS if meaning.size == 16 else None

    def run(machine: Machine) -> None:
        loaded_words: list[Value] = []
        for address_reader in address_readers:
            lanes = count_shared_access(machine, address_reader(machine), meaning.size, None, BANKS, lane_order=order)
            loaded_words += load_shared(machine, lanes, meaning.size, word_count)
        if _can_write(machine):
            _write_loaded(machine, names, loaded_words, meaning)

    return op.under_exec(run)


def _build_store_shared(statement: AmdgcnStatement, meaning: OpcodeSemantics) -> op.StepRun:
    address_readers, word_count = _lds_address_readers(statement, meaning, 0), _word_count(meaning)
    data_readers = [
        [op.word_reader(operand, n) for n in range(word_count)]
        for operand in statement.operands[1 : 1 + len(address_readers)]
    ]

    def run(machine: Machine) -> None:
        for address_reader, readers in zip(address_readers, data_readers, strict=True):
            lanes = count_shared_access(machine, address_reader(machine), meaning.size, None, BANKS)
            if machine.program.keeps_shared_data:
                values = [reader(machine) for reader in readers]
                if meaning.preserves_half:
                    values = [apply(lambda v: v >> 16, value) for value in values]
                store_shared(machine, lanes, meaning.size, values)

    return op.under_exec(run)


def _build_atomic_shared(statement: AmdgcnStatement, meaning: OpcodeSemantics) -> op.StepRun:
    returns_old_value = "_rtn" in statement.base
    address_readers = _lds_address_readers(statement, meaning, 1 if returns_old_value else 0)
    names = statement.operands[0].names if returns_old_value else ()

    def run(machine: Machine) -> None:
        lanes = find_lane_accesses(machine, address_readers[0](machine))
        observe_shared(machine, lanes, meaning.size)
        store_shared(machine, lanes, meaning.size, [machine.unknown_value(_ATOMIC_RESULT)] * _word_count(meaning))
        op.write_all(machine, names, [machine.unknown_value(_ATOMIC_RESULT) for _ in names])

    return op.under_exec(run)


# ── Scratch ──────────────────────────────────────────────────────────────────────────────────────


def _scratch_address_reader(statement: AmdgcnStatement, data_position: int) -> op.Reader:
    """Reader of the address: all operands but the data."""
    kinds = (AmdgcnOperandKind.VECTOR, AmdgcnOperandKind.SCALAR, AmdgcnOperandKind.NUMBER)
    operands = [operand for at, operand in enumerate(statement.operands) if at != data_position]
    readers = [op.word_reader(operand) for operand in operands if operand.kind in kinds and len(operand.names) < 2]
    return _sum_reader(readers, statement.modifier_number("offset"))


def _build_load_scratch(statement: AmdgcnStatement, meaning: OpcodeSemantics) -> op.StepRun:
    names, address_reader = statement.operands[0].names, _scratch_address_reader(statement, 0)

    def run(machine: Machine) -> None:
        address = address_reader(machine) if meaning.size >= 4 else machine.unknown_value(_SCRATCH_CONTENT)
        _write_loaded(machine, names, load_local(machine, address, _word_count(meaning), _SCRATCH_CONTENT), meaning)

    return op.under_exec(run)


def _build_store_scratch(statement: AmdgcnStatement, meaning: OpcodeSemantics) -> op.StepRun:
    # Scratch instructions take the address first, buffer instructions the data.
    data_position = 0 if statement.base.startswith("buffer") else 1
    address_reader = _scratch_address_reader(statement, data_position)
    readers = [op.word_reader(statement.operands[data_position], n) for n in range(_word_count(meaning))]

    def run(machine: Machine) -> None:
        address = address_reader(machine)
        if not isinstance(address, int):
            machine.local_memory.lane_words.clear()
        elif meaning.size >= 4:
            store_local(machine, address, [reader(machine) for reader in readers])
        else:
            store_local(machine, address, [machine.unknown_value(_SCRATCH_CONTENT)])

    return op.under_exec(run)


MEMORY: Mapping[Action, op.RunBuilder] = {
    **dict.fromkeys((Action.LOAD_SCALAR, Action.LOAD_SCALAR_BUFFER), _build_load_scalar),
    **dict.fromkeys((Action.LOAD_BUFFER, Action.LOAD_GLOBAL), _build_load_global),
    **dict.fromkeys(
        (Action.STORE_BUFFER, Action.ATOMIC_BUFFER, Action.STORE_GLOBAL, Action.ATOMIC_GLOBAL), _build_write_global
    ),
    Action.LOAD_SCRATCH: _build_load_scratch, Action.STORE_SCRATCH: _build_store_scratch,
    Action.LOAD_SHARED: _build_load_shared, Action.STORE_SHARED: _build_store_shared,
    Action.ATOMIC_SHARED: _build_atomic_shared
}  # fmt: skip
"""Action → builder of its run."""
