"""SASS accesses to global, shared, local and constant memory, and atomics."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from artifact_inspector.execution.interpreter.access_counting import (
    count_async_copy,
    count_global_access,
    count_shared_access,
    l1_bypass_request_unit,
)
from artifact_inspector.execution.interpreter.conversions import truncate
from artifact_inspector.execution.interpreter.lane_accesses import LaneAccesses, find_lane_accesses
from artifact_inspector.execution.interpreter.machine import Machine
from artifact_inspector.execution.interpreter.memory_access import (
    load_global,
    load_local,
    load_shared,
    store_global,
    store_local,
    store_shared,
    store_values,
    unknown_shared_value,
    update_values,
)
from artifact_inspector.execution.interpreter.swap_outcomes import record_swap
from artifact_inspector.execution.interpreter.values import FULL, UnknownValue, Value, apply, data_of, has_lanes
from artifact_inspector.execution.sass import operands as op
from artifact_inspector.execution.sass.atomic_values import atomic_update
from artifact_inspector.execution.sass.environment import environment_of
from artifact_inspector.formats.sass.statement import SassOperand, SassOperandKind, SassStatement, bytes_moved

_SCALE = re.compile(r"X(\d+)$")


def _address_reader(operand: SassOperand, *, is_global: bool, extended: bool = True) -> op.Reader:
    """Reader of the address of each lane: 64 bits for global memory, otherwise 32."""
    readers: list[op.Reader] = []
    for name, suffix in operand.address_registers:
        register = SassOperand(SassOperandKind.REGISTER, name)
        is_pair = is_global and ("64" in suffix or (not suffix and (name.startswith("U") or extended)))
        if is_pair and not op.is_zero_register(register):
            readers.append(op.wide_reader(register))
            continue
        scale = next((int(match[1]) for modifier in suffix if (match := _SCALE.match(modifier))), 1)
        readers.append(_scaled_reader(op.word_reader(register), scale) if scale > 1 else op.word_reader(register))
    offset = operand.value

    def read_address(machine: Machine) -> Value:
        address: Value = offset
        for reader in readers:
            address = apply(lambda a, b: a + b, address, reader(machine))
        return address if is_global else apply(lambda v: v & FULL, address)

    return read_address


def _scaled_reader(reader: op.Reader, scale: int) -> op.Reader:
    return lambda machine: apply(lambda v: v * scale, reader(machine))


def _global_address(statement: SassStatement, position: int = 0) -> op.Reader:
    operand = _address_operands(statement)[position]
    return _address_reader(operand, is_global=True, extended=statement.has_modifier("E"))


def local_address(statement: SassStatement) -> op.Reader:
    """Reader of an address of shared or local memory."""
    return _address_reader(_address_operands(statement)[0], is_global=False)


def _address_operands(statement: SassStatement) -> list[SassOperand]:
    return [operand for operand in statement.operands if operand.kind is SassOperandKind.ADDRESS]


def _word_count(size: int) -> int:
    return max(size // 4, 1)


def _data_readers(statement: SassStatement, count: int) -> list[op.Reader]:
    """Readers of the words that are stored: the last operand that is not an address."""
    operands = [o for o in statement.operands if o.kind in (SassOperandKind.REGISTER, SassOperandKind.NUMBER)]
    return [op.word_reader(operand, word_offset=n) for operand in operands[-1:] for n in range(count)]


_SIGNED_WIDTHS = {"S8": 8, "S16": 16}


def _loaded_writer(statement: SassStatement) -> Callable[[Machine, Sequence[Value]], None]:
    """Writer of loaded words to the destination; a byte or half-word is sign-extended if signed."""
    name = op.destinations(statement, 0)[0]
    bits = next((_SIGNED_WIDTHS[m] for m in statement.modifiers if m in _SIGNED_WIDTHS), None)

    def write(machine: Machine, values: Sequence[Value]) -> None:
        if name is not None:
            for step, value in enumerate(values):
                if bits is not None:
                    value = apply(lambda v: truncate(v, bits, is_signed=True) & FULL, value)
                machine.write_register(op.register_after(name, step), value)

    return write


# ── Global memory ────────────────────────────────────────────────────────────────────────────────


def _build_load_global(statement: SassStatement) -> op.StepRun:
    size, address_reader = bytes_moved(statement.opcode), _global_address(statement)
    write_loaded = _loaded_writer(statement)

    def run(machine: Machine) -> None:
        lanes = count_global_access(machine, address_reader(machine), size)
        values = load_global(machine, lanes, size, _word_count(size))
        if has_lanes(machine.active_mask) or machine.undecided_lanes is not None:
            write_loaded(machine, values)

    return run


def _build_store_global(statement: SassStatement) -> op.StepRun:
    size, address_reader = bytes_moved(statement.opcode), _global_address(statement)
    readers = _data_readers(statement, _word_count(size))

    def run(machine: Machine) -> None:
        lanes = count_global_access(machine, address_reader(machine), size, is_write=True)
        if machine.memory.values is not None:
            store_values(machine, lanes, size, [reader(machine) for reader in readers])

    return run


def _build_atomic_global(statement: SassStatement) -> op.StepRun:
    size, address_reader = bytes_moved(statement.opcode), _global_address(statement)
    names = _written_registers(statement) if statement.base.startswith("ATOM") else []
    readers = _data_readers(statement, 1) if statement.has_modifier("EXCH") and size == 4 else []
    operands, is_swap = _atomic_operands(statement, size), statement.has_modifier("CAS")
    vector = _data_readers(statement, size // 4) if size > 8 else []

    def run(machine: Machine) -> None:
        lanes = count_global_access(machine, address_reader(machine), size, is_write=True, updates=True)
        if machine.memory.values is not None:
            function = atomic_update(statement, 4 if vector else size, machine.memory.rounding)
            words = [reader(machine) for reader in vector or operands]
            if function is None:
                words = [machine.unknown_value("the result of an atomic")] * max(1, len(vector))
                function = lambda _old, new: new  # noqa: E731
            if vector:
                for number, word in enumerate(words):
                    update_values(machine, lanes, 4, [word], function, 4 * number)
            old = None if vector else update_values(machine, lanes, size, words, function)
            if old is not None:
                _write_old_words(machine, statement, names, old)
                return
        if lanes is not None:
            store_global(machine, lanes, size, readers[0](machine) if readers else None)
        if is_swap and names:
            record_swap(machine, names[0], lanes)
        _write_atomic_results(machine, names)

    return run


def _atomic_operands(statement: SassStatement, size: int) -> list[op.Reader]:
    """Readers of the operands of an atomic, of 4 or 8 bytes each; a compare-and-swap has two."""
    operands = [o for o in statement.operands if o.kind in (SassOperandKind.REGISTER, SassOperandKind.NUMBER)]
    count = 2 if statement.has_modifier("CAS") else 1
    make_reader = op.wide_reader if size == 8 else op.word_reader
    return [make_reader(operand) for operand in operands[-count:]]


def _write_old_words(machine: Machine, statement: SassStatement, names: Sequence[str], old: Value) -> None:
    register = op.destinations(statement, 0)[0]
    for name in names:
        if name.lstrip("U").startswith("P"):
            machine.write_register(name, True)
        elif name == register:
            machine.write_register(name, apply(lambda v: v & FULL, old))
        else:
            machine.write_register(name, apply(lambda v: v >> 32 & FULL, old))


def _write_atomic_results(machine: Machine, names: Sequence[str]) -> None:
    for name in names:
        machine.write_register(name, machine.unknown_result(name, "the result of an atomic"))


def _written_registers(statement: SassStatement) -> list[str]:
    """All registers and predicates that an atomic writes."""
    name, predicates, _ = op.destinations(statement, 0)
    words = range(_word_count(bytes_moved(statement.opcode)) if name is not None else 0)
    names = [op.register_after(name or "", step) for step in words]
    return names + [predicate_name for predicate_name in predicates if predicate_name is not None]


def _build_async_copy(statement: SassStatement) -> op.StepRun:
    """LDGSTS: copy from global to shared memory; a false last predicate writes zeros and reads nothing."""
    size = bytes_moved(statement.opcode)
    first, second = _address_operands(statement)[:2]
    if first.prefix == "desc":  # operand order of some versions
        first, second = second, first
    target_reader = _address_reader(first, is_global=False)
    source_reader = _address_reader(second, is_global=True, extended=statement.has_modifier("E"))
    predicate_operands = [o for o in statement.operands if o.kind is SassOperandKind.PREDICATE]
    predicate_readers = [op.predicate_reader(o) for o in predicate_operands]
    past_l1, word_count = statement.has_modifier("BYPASS"), _word_count(size)
    # Nsight Compute counts wavefronts of a copy past the L1 as if P0 did not hold.
    counts_as_zeros, counts_as_read = (
        past_l1 and any(o.name == "P0" and o.is_inverted is inverted for o in predicate_operands)
        for inverted in (False, True)
    )

    def run(machine: Machine) -> None:
        mask = machine.active_mask
        for reader in predicate_readers:
            predicate = reader(machine)
            if isinstance(predicate, UnknownValue) and has_lanes(machine.intersect(mask, predicate.unknown_bits)):
                machine.counters.mark_unknown(machine.step.index, predicate.missing_inputs)
            mask = machine.intersect(mask, data_of(predicate))
        address = source_reader(machine)
        target_address = target_reader(machine)
        request_unit = l1_bypass_request_unit(machine, target_address) if past_l1 else None
        lanes = count_global_access(machine, address, size, mask=mask, request_unit=request_unit)
        if counts_as_zeros:
            target_lanes = count_shared_access(machine, target_address, size)
        else:
            source_lanes = find_lane_accesses(machine, address) if counts_as_read else lanes
            target_lanes = count_async_copy(machine, target_address, size, source_lanes, past_l1=past_l1)
        if not machine.program.keeps_shared_data:
            return
        values: Sequence[Value] = [0] * word_count
        if lanes is not None or machine.counters.missing_inputs.get(machine.step.index):
            values = load_global(machine, lanes, size, word_count)
        store_shared(machine, target_lanes, size, values)

    return run


# ── Shared memory ────────────────────────────────────────────────────────────────────────────────


def _build_load_shared(statement: SassStatement) -> op.StepRun:
    size, address_reader = bytes_moved(statement.opcode), local_address(statement)
    write_loaded = _loaded_writer(statement)

    def run(machine: Machine) -> None:
        lanes = count_shared_access(machine, address_reader(machine), size, is_load=True)
        values = load_shared(machine, lanes, size, _word_count(size))
        if has_lanes(machine.active_mask) or machine.undecided_lanes is not None:
            write_loaded(machine, values)

    return run


def _build_store_shared(statement: SassStatement) -> op.StepRun:
    size, address_reader = bytes_moved(statement.opcode), local_address(statement)
    readers = _data_readers(statement, _word_count(size))

    def run(machine: Machine) -> None:
        lanes = count_shared_access(machine, address_reader(machine), size)
        if machine.program.keeps_shared_data:
            store_shared(machine, lanes, size, [reader(machine) for reader in readers])

    return run


_MATRIX_COUNT = re.compile(r"88(?:\.(\d))?(?=\.|$)|\.(\d)$")


def _build_matrix_access(statement: SassStatement) -> op.StepRun:
    """LDSM, STSM: 8 rows of 16 bytes per matrix; 8 lanes hold the row addresses of each matrix.

    A lane gets two neighbours of one row, or of one column if transposed: lane / 4 selects the row, lane % 4 the pair.

    **Source** PTX ISA, "Warp-level matrix load instruction: ldmatrix".
    """
    match = _MATRIX_COUNT.search(statement.opcode)
    count = int((match[1] or match[2] or 1) if match is not None else 1)
    address_reader = local_address(statement)
    is_load, is_transposed = statement.base == "LDSM", "MT88" in statement.opcode
    write_loaded = _loaded_writer(statement) if is_load else None
    readers = [] if is_load else _data_readers(statement, count)

    def run(machine: Machine) -> None:
        active_mask = machine.active_mask
        is_everything = count == 4 and active_mask is True
        mask = is_everything or machine.intersect(active_mask, machine.lane_numbers < 8 * count)
        lanes = count_shared_access(machine, address_reader(machine), 16, mask, lanes_per_group=8)
        if machine.step.only_counts or not (is_load or machine.program.keeps_shared_data):
            return
        matrix_lanes = [_matrix_lanes(machine, lanes, n, is_transposed=is_transposed) for n in range(count)]
        if write_loaded is not None:
            write_loaded(machine, [_load_matrix_word(machine, lane_parts) for lane_parts in matrix_lanes])
        elif lanes is None:
            store_shared(machine, None, 16, [])
        else:
            for lane_parts, reader in zip(matrix_lanes, readers, strict=False):
                value, size = reader(machine), 4 // len(lane_parts)
                for half, lane_part in enumerate(lane_parts):
                    part = value if size == 4 else apply(lambda v, by=16 * half: v >> by & 0xFFFF, value)
                    store_shared(machine, lane_part, size, [part])

    return run


def _matrix_lanes(
    machine: Machine, rows: LaneAccesses | None, number: int, *, is_transposed: bool
) -> list[LaneAccesses]:
    """The address of each lane's part of a matrix: a word, or two half-words if transposed."""
    if rows is None:
        return []
    if rows.cta_offsets is not None and np.ndim(machine.active_mask) and len(np.asarray(machine.active_mask)) > 1:
        rows = rows.expanded
    lane = np.arange(machine.threads)
    first, row, pair = lane // 32 * 32 + 8 * number, lane % 32 // 4, lane % 4
    row_and_offset = [(2 * pair + half, 2 * row) for half in (0, 1)] if is_transposed else [(row, 4 * pair)]
    active_lanes = None if machine.active_mask is True else np.broadcast_to(machine.active_mask, rows.addresses.shape)
    return [
        LaneAccesses(
            rows.addresses[:, first + row_lanes] + byte_offset, active_lanes, rows.multiplicity, rows.cta_offsets
        )
        for row_lanes, byte_offset in row_and_offset
    ]


def _load_matrix_word(machine: Machine, lane_parts: list[LaneAccesses]) -> Value:
    if not lane_parts:
        return unknown_shared_value(machine)
    low, *high_words = [load_shared(machine, lane_part, 4 // len(lane_parts), 1)[0] for lane_part in lane_parts]
    return apply(lambda a, b: a | b << 16, low, high_words[0]) if high_words else low


def _build_atomic_shared(statement: SassStatement) -> op.StepRun:
    size, address_reader = bytes_moved(statement.opcode), local_address(statement)
    names = _written_registers(statement)
    operands = 2 if {"CAS", "CAST"} & {*statement.modifiers} else 1
    if statement.has_modifier("POPC"):  # lanes with the same address are combined first
        operands = 0
    readers = _data_readers(statement, 1) if statement.has_modifier("OR") and size == 4 else []

    def run(machine: Machine) -> None:
        lanes = count_shared_access(machine, address_reader(machine), size, operands=operands)
        new_values: list[Value] = [machine.unknown_value("the result of an atomic")] * _word_count(size)
        has_single_lane = np.broadcast_to(machine.active_mask, machine.shape).sum(axis=1).max() <= 1
        if readers and lanes is not None and has_single_lane:
            old_word = load_shared(machine, lanes, size, 1)[0]
            new_values = [apply(lambda a, b: a | b, old_word, readers[0](machine))]
        store_shared(machine, lanes, size, new_values)
        _write_atomic_results(machine, names)

    return run


# ── Local memory and constants ───────────────────────────────────────────────────────────────────


def _build_load_local(statement: SassStatement) -> op.StepRun:
    size, address_reader = bytes_moved(statement.opcode), local_address(statement)
    write_loaded = _loaded_writer(statement)

    def run(machine: Machine) -> None:
        address = address_reader(machine)
        shift = 8 * (address & 3) if isinstance(address, int) and size < 4 else 0
        start = address - shift // 8 if isinstance(address, int) else address
        values = load_local(machine, start, _word_count(size), "the content of local memory")
        if size < 4:
            values = [apply(lambda v: (v >> shift) & ((1 << 8 * size) - 1), values[0])]
        write_loaded(machine, values)

    return run


def _build_store_local(statement: SassStatement) -> op.StepRun:
    size, address_reader = bytes_moved(statement.opcode), local_address(statement)
    readers = _data_readers(statement, _word_count(size))

    def run(machine: Machine) -> None:
        address = address_reader(machine)
        if isinstance(address, int):
            values = [reader(machine) for reader in readers]
            if size < 4:
                values = [machine.unknown_value("the content of local memory")]
            store_local(machine, address & ~3, values)
        else:
            machine.local_memory.lane_words.clear()

    return run


def _build_load_constant(statement: SassStatement) -> op.StepRun:
    _, _, at = op.destinations(statement, 0)
    operand = statement.operands[at]
    size = bytes_moved(statement.opcode)
    readers = [op.word_reader(operand, word_offset=n) for n in range(_word_count(size))]
    write_loaded = _loaded_writer(statement)
    is_plain = operand.kind is SassOperandKind.CONSTANT and not operand.address_registers

    def run(machine: Machine) -> None:
        values = [reader(machine) for reader in readers]
        if size < 4 and is_plain:
            values = [environment_of(machine).constant(operand.bank, operand.value, size)]
        write_loaded(machine, values)

    return run


MEMORY: Mapping[str, op.RunBuilder] = {
    **dict.fromkeys(("LDG", "LD"), _build_load_global), **dict.fromkeys(("STG", "ST"), _build_store_global),
    **dict.fromkeys(("RED", "REDG", "ATOM", "ATOMG"), _build_atomic_global), "LDGSTS": _build_async_copy,
    "LDS": _build_load_shared, "STS": _build_store_shared,
    **dict.fromkeys(("LDSM", "STSM"), _build_matrix_access),
    **dict.fromkeys(("ATOMS", "REDS"), _build_atomic_shared), "LDL": _build_load_local,
    "STL": _build_store_local, **dict.fromkeys(("LDC", "ULDC", "LDCU"), _build_load_constant)
}  # fmt: skip
"""Opcode without modifiers → builder of its run."""
