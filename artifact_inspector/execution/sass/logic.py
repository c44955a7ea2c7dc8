"""SASS logic, moves, selections, bit operations and packed predicates.

**Source** as for `sass.integer`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

import numpy as np

from artifact_inspector.execution.interpreter.affine import as_plain_array
from artifact_inspector.execution.interpreter.conversions import apply_distinct, as_predicate, without_dimensions
from artifact_inspector.execution.interpreter.machine import Machine
from artifact_inspector.execution.interpreter.values import (
    FULL,
    Known,
    Number,
    UnknownValue,
    Value,
    Word,
    apply,
    as_word,
    data_of,
    invert,
    is_entirely_unknown,
    missing_inputs_of,
    select_lanes,
    unknown_bits_of,
    with_unknown_bits,
)
from artifact_inspector.execution.sass import operands as op
from artifact_inspector.formats.sass.statement import SassOperandKind, SassStatement

# ── Logic ────────────────────────────────────────────────────────────────────────────────────────


def _lookup(table: int, a: Number, b: Number, c: Number) -> Number:
    """Any function of three bits; the highest bit of the table is the result for a=1, b=1, c=1."""
    combined: Number = 0
    for row in range(8):
        if table >> row & 1:
            term = a if row & 4 else a ^ FULL
            term = term & (b if row & 2 else b ^ FULL) & (c if row & 1 else c ^ FULL)
            combined = combined | term
    return combined


_COMMON_TABLES: Mapping[int, Callable[[Number, Number, Number], Number]] = {
    0xC0: lambda a, b, _c: a & b, 0xFC: lambda a, b, _c: a | b, 0x3C: lambda a, b, _c: a ^ b,
    0x33: lambda _a, b, _c: b ^ FULL, 0x30: lambda a, b, _c: a & (b ^ FULL),
    0xF8: lambda a, b, c: a | (b & c), 0xFE: lambda a, b, c: a | b | c, 0x96: lambda a, b, c: a ^ b ^ c,
    0x80: lambda a, b, c: a & b & c, 0x78: lambda a, b, c: a ^ (b & c), 0xEA: lambda a, b, c: (a & b) | c,
    0x6C: lambda a, b, c: (a & c) ^ b, 0xC8: lambda a, b, c: (a | c) & b,
    0xF2: lambda a, b, c: a | ((b ^ FULL) & c)
}  # fmt: skip


def _build_logic(statement: SassStatement) -> op.StepRun:
    name, predicates, at = op.destinations(statement, 0)
    first, second, third = map(op.word_reader, statement.operands[at : at + 3])
    table = statement.operands[at + 3].value & 0xFF
    combine = op.predicate_reader(statement.operands[at + 4]) if len(statement.operands) > at + 4 else None
    combination = op.predicate_and if statement.has_modifier("PAND") else op.predicate_or

    def run(machine: Machine) -> None:
        logic_result = _known_logic(table, (first(machine), second(machine), third(machine)))
        if name is not None:
            machine.write_register(name, logic_result)
        if predicates and predicates[0] is not None:
            holds = _is_nonzero(logic_result)
            machine.write_register(predicates[0], holds if combine is None else combination(holds, combine(machine)))

    return run


def _is_nonzero(value: Value) -> Value:
    return as_predicate(apply(lambda v: v != 0, value))


def _known_logic(table: int, values: tuple[Value, Value, Value]) -> Value:
    """The result of a lookup table; a bit is known if its unknown inputs make no difference."""
    unknown_positions = [at for at, value in enumerate(values) if isinstance(value, UnknownValue)]
    if not unknown_positions:
        return apply(_COMMON_TABLES.get(table) or partial(_lookup, table), *values)
    if _leaves_nothing_known(table, values, unknown_positions):
        return UnknownValue(0, FULL, missing_inputs_of(*values))
    first_outcome: Word | None = None
    unknown_bits: Word = 0
    for assignment in range(1 << len(unknown_positions)):
        inputs = [as_word(data_of(value)) for value in values]
        for bit_position, at in enumerate(unknown_positions):
            bits = as_word(unknown_bits_of(values[at]))
            inputs[at] = (inputs[at] & (FULL ^ bits)) | (bits if assignment >> bit_position & 1 else 0)
        outcome = as_word(_lookup(table, *inputs))
        first_outcome = outcome if first_outcome is None else first_outcome
        unknown_bits = unknown_bits | (first_outcome ^ outcome)
    assert first_outcome is not None
    return with_unknown_bits(first_outcome, unknown_bits, *values)


def _leaves_nothing_known(table: int, values: tuple[Value, ...], unknown_positions: list[int]) -> bool:
    """Whether entirely unknown inputs, the others being zero, leave no bit of the result known."""
    if not all(is_entirely_unknown(values[at]) for at in unknown_positions):
        return False
    if any(value.__class__ is not int or value for at, value in enumerate(values) if at not in unknown_positions):
        return False
    rows = [row for row in range(8) if all(at in unknown_positions or not row >> (2 - at) & 1 for at in range(3))]
    return len({table >> row & 1 for row in rows}) > 1


def _build_predicate_logic(statement: SassStatement) -> op.StepRun:
    """PLOP3: two functions of three predicates."""
    operands = statement.operands
    targets = [*map(op.writable_name, operands[:2])]
    readers = [op.predicate_reader(operand) for operand in operands[2:5]]
    tables = [operand.value & 0xFF for operand in operands[5:7]]

    def run(machine: Machine) -> None:
        values = [reader(machine) for reader in readers]
        for target, table in zip(targets, tables, strict=False):
            if target is not None:
                combined: Value = False
                for row in range(8):
                    if table >> row & 1:
                        term: Value = True
                        for bit, value in zip((4, 2, 1), values, strict=True):
                            term = op.predicate_and(term, value if row & bit else invert(value))
                        combined = op.predicate_or(combined, term)
                machine.write_register(target, combined)

    return run


# ── Moves and bits ───────────────────────────────────────────────────────────────────────────────


def _build_select(statement: SassStatement) -> op.StepRun:
    name, _, at = op.destinations(statement, 0)
    is_wide, is_float = statement.has_modifier("64"), statement.base in ("FSEL", "UFSEL")
    yes, no = (
        op.wide_reader(operand) if is_wide else op.word_reader(operand, is_float=is_float)
        for operand in statement.operands[at : at + 2]
    )
    condition = op.predicate_reader(statement.operands[at + 2])
    if is_wide:
        return lambda machine: op.write_wide(machine, name, select_lanes(condition(machine), yes(machine), no(machine)))
    return op.write_run(name, lambda machine: select_lanes(condition(machine), yes(machine), no(machine)))


def _build_permute(statement: SassStatement) -> op.StepRun:
    name, _, at = op.destinations(statement, 0)
    first, selector, second = statement.operands[at : at + 3]
    if statement.modifiers:
        return op.unsupported_run(name, statement.opcode)
    low, high, selector_reader = map(op.word_reader, (first, second, selector))
    if selector.kind is not SassOperandKind.NUMBER:
        return op.write_run(
            name, lambda machine: apply(_permute_any, low(machine), selector_reader(machine), high(machine))
        )
    picks = [(selector.value >> (4 * byte)) & 15 for byte in range(4)]

    def permute(a: Word, b: Word) -> Word:
        permuted_bytes: Word = 0
        for byte, pick in enumerate(picks):
            byte_value = ((a if pick & 7 < 4 else b) >> (8 * (pick & 3))) & 0xFF
            permuted_bytes = permuted_bytes | ((byte_value >> 7) * 0xFF if pick & 8 else byte_value) << (8 * byte)
        return permuted_bytes

    def read_permuted(machine: Machine) -> Value:
        a, b = low(machine), high(machine)
        unknown_bits = permute(*(as_word(unknown_bits_of(v)) for v in (a, b)))  # a sign is as unknown as its bit
        return with_unknown_bits(permute(as_word(data_of(a)), as_word(data_of(b))), unknown_bits, a, b)

    return op.write_run(name, read_permuted)


def _permute_any(a: Number, picks: Number, b: Number) -> Word:
    """Bytes of two registers, picked by a register."""
    permuted_bytes = np.zeros((), np.int64)
    for byte in range(4):
        pick = np.asarray(picks >> (4 * byte)) & 15
        byte_value = (np.where(pick & 4, np.asarray(b), np.asarray(a)) >> (8 * (pick & 3))) & 0xFF
        permuted_bytes = permuted_bytes | np.where(pick & 8, (byte_value >> 7) * 0xFF, byte_value) << (8 * byte)
    return without_dimensions(permuted_bytes)


def _build_find_leading(statement: SassStatement) -> op.StepRun:
    name, predicates, at = op.destinations(statement, 0)
    is_unsigned, is_shift = statement.has_modifier("U32"), statement.has_modifier("SH")
    reader = op.word_reader(statement.operands[at])

    def leading_bit(number: int) -> int:
        number = number if is_unsigned or not number >> 31 else number ^ FULL
        top = number.bit_length() - 1
        return FULL if top < 0 else 31 - top if is_shift else top

    def run(machine: Machine) -> None:
        value = reader(machine)
        if name is not None:
            machine.write_register(name, apply(partial(apply_distinct, leading_bit), value))
        if predicates and predicates[0] is not None:
            machine.write_register(predicates[0], _is_nonzero(value))

    return run


def _build_extend(statement: SassStatement) -> op.StepRun:
    name, _, at = op.destinations(statement, 0)
    value, width = map(op.word_reader, statement.operands[at : at + 2])
    is_unsigned, wraps = statement.has_modifier("U32"), statement.has_modifier("W")

    def extend(number: Number, bits: Number) -> Number:
        bits = bits & 31 if wraps else op.minimum(bits, 32)
        low_bits = number & ((1 << bits) - 1)
        sign = (1 << bits) >> 1
        return low_bits if is_unsigned else ((low_bits ^ sign) - sign) & FULL

    return op.write_run(name, lambda machine: apply(extend, value(machine), width(machine)))


def _build_pack_predicates(statement: SassStatement) -> op.StepRun:
    """P2R: replace the bits of a register that a mask selects by predicates."""
    name, _, at = op.destinations(statement, 0)
    bank = "UP" if statement.operands[at].name == "UPR" else "P"
    base_reader, mask = op.word_reader(statement.operands[at + 1]), statement.operands[at + 2].value
    shift = next((8 * int(m[1:]) for m in statement.modifiers if m in ("B1", "B2", "B3")), 0)

    def read_packed(machine: Machine) -> Value:
        packed_value = base_reader(machine)
        for number in (number for number in range(7) if mask >> number & 1):
            predicate = machine.read_register(f"{bank}{number}")
            packed_value = _set_bit_to(packed_value, 1 << (number + shift), predicate)
        return packed_value

    return op.write_run(name, read_packed)


def _set_bit_to(value: Value, bit: int, predicate: Value) -> Value:
    def replace_bit(word: Known, bit_value: Known) -> Word:
        is_set = as_plain_array(bit_value)
        bit_word: Word = np.where(is_set, bit, 0) if isinstance(is_set, np.ndarray) else bit if is_set else 0
        return (as_plain_array(word) & (FULL ^ bit)) | bit_word

    unknown_bits = replace_bit(unknown_bits_of(value), unknown_bits_of(predicate))
    return with_unknown_bits(replace_bit(data_of(value), data_of(predicate)), unknown_bits, value, predicate)


def _build_unpack_predicates(statement: SassStatement) -> op.StepRun:
    """R2P: copy the bits of a register that a mask selects to predicates."""
    bank = "UP" if statement.operands[0].name == "UPR" else "P"
    reader, mask = op.word_reader(statement.operands[1]), statement.operands[2].value
    shift = next((8 * int(s[1:]) for s in statement.operands[1].suffixes if s in ("B1", "B2", "B3")), 0)

    def run(machine: Machine) -> None:
        value = reader(machine)
        for number in (number for number in range(7) if mask >> number & 1):
            bit = 1 << (number + shift)
            is_set, is_unknown = (
                (as_plain_array(plane) & bit) != 0 for plane in (data_of(value), unknown_bits_of(value))
            )
            machine.write_register(f"{bank}{number}", with_unknown_bits(is_set, is_unknown, value))

    return run


LOGIC: Mapping[str, op.RunBuilder] = {
    "LOP3": _build_logic, "PLOP3": _build_predicate_logic, **dict.fromkeys(("MOV", "MOV32I"), op.build_move),
    **dict.fromkeys(("SEL", "FSEL"), _build_select), "PRMT": _build_permute,
    "POPC": op.operation_builder(partial(apply_distinct, int.bit_count), 1),
    "BREV": op.operation_builder(partial(apply_distinct, lambda number: int(f"{number:032b}"[::-1], 2)), 1),
    "BMSK": op.operation_builder(lambda a, width: (((1 << op.minimum(width, 32)) - 1) << op.minimum(a, 32)) & FULL, 2),
    "FLO": _build_find_leading, "SGXT": _build_extend,
    **dict.fromkeys(("P2R", "UP2UR"), _build_pack_predicates),
    **dict.fromkeys(("R2P", "UR2UP"), _build_unpack_predicates)
}  # fmt: skip
"""Opcode, without modifiers and without the `U` of uniform instructions → builder of its run."""
