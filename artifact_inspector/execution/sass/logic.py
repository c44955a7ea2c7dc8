"""SASS logic, moves, selections, bit operations and packed predicates.

**Source** as for `sass.integer`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from artifact_inspector.execution.interpreter.affine import as_plain_array
from artifact_inspector.execution.interpreter.conversions import apply_distinct, as_predicate
from artifact_inspector.execution.interpreter.values import (
    FULL,
    Known,
    UnknownValue,
    Value,
    apply,
    data_of,
    invert,
    is_entirely_unknown,
    select_lanes,
    unknown_bits_of,
)
from artifact_inspector.execution.sass.operands import (
    RunBuilder,
    StepRun,
    build_move,
    destinations,
    is_zero_register,
    minimum,
    operation_builder,
    predicate_and,
    predicate_or,
    predicate_reader,
    unsupported_run,
    wide_reader,
    word_reader,
    write_run,
    write_wide,
)
from artifact_inspector.formats.sass.statement import SassOperand, SassOperandKind, SassStatement

if TYPE_CHECKING:
    from artifact_inspector.execution.interpreter.machine import Machine

# ── Logic ────────────────────────────────────────────────────────────────────────────────────────


def _lookup(table: int, a: Any, b: Any, c: Any) -> Any:
    """Any function of three bits; the highest bit of the table is the result for a=1, b=1, c=1."""
    combined: Any = 0
    for row in range(8):
        if table >> row & 1:
            term = a if row & 4 else a ^ FULL
            term = term & (b if row & 2 else b ^ FULL) & (c if row & 1 else c ^ FULL)
            combined = combined | term
    return combined


_COMMON_TABLES: Mapping[int, Callable[[Any, Any, Any], Any]] = {
    0xC0: lambda a, b, _c: a & b,
    0xFC: lambda a, b, _c: a | b,
    0x3C: lambda a, b, _c: a ^ b,
    0x33: lambda _a, b, _c: b ^ FULL,
    0x30: lambda a, b, _c: a & (b ^ FULL),
    0xF8: lambda a, b, c: a | (b & c),
    0xFE: lambda a, b, c: a | b | c,
    0x96: lambda a, b, c: a ^ b ^ c,
    0x80: lambda a, b, c: a & b & c,
    0x78: lambda a, b, c: a ^ (b & c),
    0xEA: lambda a, b, c: (a & b) | c,
    0x6C: lambda a, b, c: (a & c) ^ b,
    0xC8: lambda a, b, c: (a | c) & b,
    0xF2: lambda a, b, c: a | ((b ^ FULL) & c),
}


def _build_logic(statement: SassStatement) -> StepRun:
    name, predicates, at = destinations(statement, 0)
    *sources, table = statement.operands[at : at + 4]
    predicate_operands = statement.operands[at + 4 :]
    readers = [word_reader(operand) for operand in sources]
    table_bits = table.value & 0xFF
    function = _COMMON_TABLES.get(table_bits) or partial(_lookup, table_bits)
    combine = predicate_reader(predicate_operands[0]) if predicate_operands else None
    combines_with_and = statement.has_modifier("PAND")

    def run(machine: Machine) -> None:
        first, second, third = readers
        logic_result = _known_logic(table_bits, function, (first(machine), second(machine), third(machine)))
        if name is not None:
            machine.write_register(name, logic_result)
        if predicates and predicates[0] is not None:
            holds = as_predicate(apply(lambda v: v != 0, logic_result))
            if combine is not None:
                holds = (predicate_and if combines_with_and else predicate_or)(holds, combine(machine))
            machine.write_register(predicates[0], holds)

    return run


def _known_logic(table: int, function: Callable[..., Any], values: tuple[Value, Value, Value]) -> Value:
    """The result of a lookup table; a bit is known if its unknown inputs make no difference."""
    unknown_positions = [at for at, value in enumerate(values) if isinstance(value, UnknownValue)]
    if not unknown_positions:
        return function(*values)
    values = tuple(map(as_plain_array, values))
    missing_inputs = 0
    for value in values:
        missing_inputs |= value.missing_inputs if isinstance(value, UnknownValue) else 0
    if _leaves_nothing_known(table, values, unknown_positions):
        return UnknownValue(0, FULL, missing_inputs)
    first_outcome: Any = None
    unknown_bits: Any = 0
    for assignment in range(1 << len(unknown_positions)):
        inputs = [data_of(value) for value in values]
        for bit_position, at in enumerate(unknown_positions):
            data, input_unknown_bits, _ = values[at]
            inputs[at] = (data & (FULL ^ input_unknown_bits)) | (
                input_unknown_bits if assignment >> bit_position & 1 else 0
            )
        outcome = _lookup(table, *inputs)
        if first_outcome is None:
            first_outcome = outcome
        else:
            unknown_bits = unknown_bits | (first_outcome ^ outcome)
    return UnknownValue(first_outcome, unknown_bits, missing_inputs) if np.any(unknown_bits) else first_outcome


def _leaves_nothing_known(table: int, values: tuple[Value, ...], unknown_positions: list[int]) -> bool:
    """Whether entirely unknown inputs, the others being zero, leave no bit of the result known."""
    if any(is_entirely_unknown(values[at]) is False for at in unknown_positions):
        return False
    if any(value.__class__ is not int or value for at, value in enumerate(values) if at not in unknown_positions):
        return False
    rows = [row for row in range(8) if all(at in unknown_positions or not row >> (2 - at) & 1 for at in range(3))]
    return len({table >> row & 1 for row in rows}) > 1


def _build_predicate_logic(statement: SassStatement) -> StepRun:
    """PLOP3: two functions of three predicates."""
    operands = statement.operands
    targets = [None if is_zero_register(o) else o.name for o in operands[:2]]
    readers = [predicate_reader(operand) for operand in operands[2:5]]
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
                            term = predicate_and(term, value if row & bit else invert(value))
                        combined = predicate_or(combined, term)
                machine.write_register(target, combined)

    return run


# ── Moves and bits ───────────────────────────────────────────────────────────────────────────────


def _build_select(statement: SassStatement) -> StepRun:
    name, _, at = destinations(statement, 0)
    is_float = statement.base in ("FSEL", "UFSEL")
    first, second, predicate_operand = statement.operands[at : at + 3]
    if statement.has_modifier("64"):
        left_reader, right_reader, choice_reader = (
            wide_reader(first),
            wide_reader(second),
            predicate_reader(predicate_operand),
        )
        return lambda machine: write_wide(
            machine, name, select_lanes(choice_reader(machine), left_reader(machine), right_reader(machine))
        )
    yes, no, select_reader = (
        word_reader(first, is_float=is_float),
        word_reader(second, is_float=is_float),
        predicate_reader(predicate_operand),
    )
    return write_run(name, lambda machine: select_lanes(select_reader(machine), yes(machine), no(machine)))


def _build_permute(statement: SassStatement) -> StepRun:
    name, _, at = destinations(statement, 0)
    first, selector, second = statement.operands[at : at + 3]
    if len(statement.modifiers) > 0 or selector.kind is not SassOperandKind.NUMBER:
        return _build_indirect_permute(statement, name, (first, selector, second))
    low, high = word_reader(first), word_reader(second)
    picks = [(selector.value >> (4 * byte)) & 15 for byte in range(4)]

    def permute(a: Known, b: Known) -> Known:
        permuted_bytes: Known = 0
        for byte, pick in enumerate(picks):
            byte_value = ((a if pick & 7 < 4 else b) >> (8 * (pick & 3))) & 0xFF
            if pick & 8:
                byte_value = (byte_value >> 7) * 0xFF
            permuted_bytes = permuted_bytes | (byte_value << (8 * byte))
        return permuted_bytes

    def read_permuted(machine: Machine) -> Value:
        a, b = low(machine), high(machine)
        permuted_value: Value = permute(data_of(a), data_of(b))
        if isinstance(a, UnknownValue) or isinstance(b, UnknownValue):
            unknown_bits = permute(unknown_bits_of(a), unknown_bits_of(b))  # a sign is as unknown as its bit
            missing_inputs = (a.missing_inputs if isinstance(a, UnknownValue) else 0) | (
                b.missing_inputs if isinstance(b, UnknownValue) else 0
            )
            permuted_value = (
                UnknownValue(data_of(permuted_value), unknown_bits, missing_inputs)
                if np.any(unknown_bits)
                else permuted_value
            )
        return permuted_value

    return write_run(name, read_permuted)


def _build_indirect_permute(statement: SassStatement, name: str | None, operands: tuple[SassOperand, ...]) -> StepRun:
    if statement.modifiers:
        return unsupported_run(name, statement.opcode)
    readers = [word_reader(operand) for operand in operands]

    def permute(a: Known, picks: Known, b: Known) -> Known:
        permuted_bytes: Known = 0
        for byte in range(4):
            pick = (picks >> (4 * byte)) & 15
            byte_value = (np.where(pick & 4, b, a) >> (8 * (pick & 3))) & 0xFF
            sign_byte = (byte_value >> 7) * 0xFF
            permuted_bytes = permuted_bytes | (np.where(pick & 8, sign_byte, byte_value).astype(np.int64) << (8 * byte))
        return permuted_bytes

    return write_run(name, lambda machine: _as_scalar(apply(permute, *(reader(machine) for reader in readers))))


def _as_scalar(value: Value) -> Value:
    """A zero-dimensional array as a number."""
    if isinstance(value, np.ndarray) and value.ndim == 0:
        return value.item()
    return value


def _build_find_leading(statement: SassStatement) -> StepRun:
    name, predicates, at = destinations(statement, 0)
    operand = statement.operands[at]
    unsigned, shift = statement.has_modifier("U32"), statement.has_modifier("SH")
    reader = word_reader(operand)

    def leading_bit(number: int) -> int:
        if not unsigned and number >> 31:
            number ^= FULL
        if number == 0:
            return FULL
        top = number.bit_length() - 1
        return 31 - top if shift else top

    def run(machine: Machine) -> None:
        value = reader(machine)
        if name is not None:
            machine.write_register(name, apply(partial(apply_distinct, leading_bit), value))
        if predicates and predicates[0] is not None:
            machine.write_register(predicates[0], as_predicate(apply(lambda v: v != 0, value)))

    return run


def _build_extend(statement: SassStatement) -> StepRun:
    name, _, at = destinations(statement, 0)
    value, width = word_reader(statement.operands[at]), word_reader(statement.operands[at + 1])
    unsigned, wraps = statement.has_modifier("U32"), statement.has_modifier("W")

    def extend(number: Known, bits: Known) -> Known:
        bits = bits & 31 if wraps else minimum(bits, 32)
        low_bits = number & ((1 << bits) - 1)
        if unsigned:
            return low_bits
        sign = (1 << bits) >> 1
        return ((low_bits ^ sign) - sign) & FULL

    return write_run(name, lambda machine: apply(extend, value(machine), width(machine)))


def _bit_mask(a: Known, width: Known) -> Known:
    return (((1 << minimum(width, 32)) - 1) << minimum(a, 32)) & FULL


def _build_pack_predicates(statement: SassStatement) -> StepRun:
    """P2R: replace the bits of a register that a mask selects by predicates."""
    name, _, at = destinations(statement, 0)
    bank = "UP" if statement.operands[at].name == "UPR" else "P"
    base_reader, mask = word_reader(statement.operands[at + 1]), statement.operands[at + 2].value
    shift = next((8 * int(m[1:]) for m in statement.modifiers if m in ("B1", "B2", "B3")), 0)

    def read_packed(machine: Machine) -> Value:
        packed_value = base_reader(machine)
        for number in range(7):
            if mask >> number & 1:
                packed_value = _set_bit_to(
                    packed_value, 1 << (number + shift), machine.read_register(f"{bank}{number}")
                )
        return packed_value

    return write_run(name, read_packed)


def _set_bit_to(value: Value, bit: int, bit_value: Value) -> Value:
    data = data_of(value) & (FULL ^ bit)
    on = data_of(bit_value)
    data = data | (np.where(on, bit, 0) if isinstance(on, np.ndarray) else (bit if on else 0))
    if not isinstance(value, UnknownValue) and not isinstance(bit_value, UnknownValue):
        return data
    unknown_bits: Any = (value.unknown_bits & (FULL ^ bit)) if isinstance(value, UnknownValue) else 0
    missing_inputs = (value.missing_inputs if isinstance(value, UnknownValue) else 0) | (
        bit_value.missing_inputs if isinstance(bit_value, UnknownValue) else 0
    )
    if isinstance(bit_value, UnknownValue):
        unknown_bits = unknown_bits | np.where(bit_value.unknown_bits, bit, 0)
    return UnknownValue(data, unknown_bits, missing_inputs) if np.any(unknown_bits) else data


def _build_unpack_predicates(statement: SassStatement) -> StepRun:
    """R2P: copy the bits of a register that a mask selects to predicates."""
    bank = "UP" if statement.operands[0].name == "UPR" else "P"
    reader, mask = word_reader(statement.operands[1]), statement.operands[2].value
    shift = next((8 * int(s[1:]) for s in statement.operands[1].suffixes if s in ("B1", "B2", "B3")), 0)

    def run(machine: Machine) -> None:
        value = reader(machine)
        for number in range(7):
            if mask >> number & 1:
                bit = 1 << (number + shift)
                machine.write_register(f"{bank}{number}", _bit_of(value, bit))

    return run


def _bit_of(value: Value, bit: int) -> Value:
    data: Any = (data_of(value) & bit) != 0
    if isinstance(value, UnknownValue):
        bad: Any = (value.unknown_bits & bit) != 0
        return UnknownValue(data, bad, value.missing_inputs) if np.any(bad) else data
    return as_predicate(data)


LOGIC: Mapping[str, RunBuilder] = {
    "LOP3": _build_logic,
    "PLOP3": _build_predicate_logic,
    "MOV": build_move,
    "MOV32I": build_move,
    "SEL": _build_select,
    "FSEL": _build_select,
    "PRMT": _build_permute,
    "POPC": operation_builder(partial(apply_distinct, int.bit_count), 1),
    "BREV": operation_builder(partial(apply_distinct, lambda number: int(f"{number:032b}"[::-1], 2)), 1),
    "BMSK": operation_builder(_bit_mask, 2),
    "FLO": _build_find_leading,
    "SGXT": _build_extend,
    "P2R": _build_pack_predicates,
    "UP2UR": _build_pack_predicates,
    "R2P": _build_unpack_predicates,
    "UR2UP": _build_unpack_predicates,
}
"""Opcode, without modifiers and without the `U` of uniform instructions → builder of its run."""
