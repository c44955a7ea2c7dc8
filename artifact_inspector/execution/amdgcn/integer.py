"""AMDGCN integer arithmetic: sums, products, shifts and bit operations, scalar and vector.

**Source** AMD Instinct MI300 and RDNA 3 Instruction Set Architecture documents, "Instructions".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from artifact_inspector.execution.amdgcn.builders import (
    integer_operation,
    is_scalar,
    multiply_add_64,
    operation_with_scc,
    scalar_or_vector_run,
    set_scc_after,
)
from artifact_inspector.execution.amdgcn.operands import (
    Reader,
    RunBuilder,
    StepRun,
    is_nonzero,
    source_readers,
    under_exec,
    unpack_mask,
    wide_reader,
    word_reader,
    word_writer,
    write_mask,
    write_sum_halves,
    write_wide,
)
from artifact_inspector.execution.interpreter.conversions import apply_distinct, as_predicate, to_number, truncate
from artifact_inspector.execution.interpreter.values import FULL, Known, UnknownValue, Value, apply, as_signed
from artifact_inspector.formats.amdgcn.operations import Action, OpcodeSemantics
from artifact_inspector.formats.amdgcn.statement import AmdgcnStatement

if TYPE_CHECKING:
    from artifact_inspector.execution.interpreter.machine import Machine

# ── Sums ─────────────────────────────────────────────────────────────────────────────────────────


def _add_builder(sign: int, *, is_swapped: bool = False, has_carry_in: bool = False) -> RunBuilder:
    """Sums and differences, with carry in and carry out."""

    def build(statement: AmdgcnStatement, meaning: OpcodeSemantics) -> StepRun:
        if statement.has_modifier("clamp"):
            if sign > 0 or is_swapped or has_carry_in or meaning.bits != 32 or meaning.is_signed:
                raise ValueError(statement.opcode)
            return integer_operation(lambda a, b: (a - b) * (a >= b), 2)(statement, meaning)
        if meaning.bits == 64:
            return integer_operation((lambda a, b: a + b) if sign > 0 else (lambda a, b: a - b), 2)(statement, meaning)
        if meaning.condition == "constant":
            return _build_with_constant(statement, meaning)
        is_vector = not is_scalar(statement)
        has_carry_out = is_vector and (has_carry_in or meaning.condition == "carry") and len(statement.operands) > 3
        first_source = 2 if has_carry_out else 1
        left_reader, right_reader = source_readers(statement, first_source, 2)
        if is_swapped:
            left_reader, right_reader = right_reader, left_reader
        carry_in_registers = statement.operands[first_source + 2].names if is_vector and has_carry_in else ()
        write, bits, is_signed = word_writer(statement), meaning.bits, meaning.is_signed
        carry_out_registers = statement.operands[1].names if has_carry_out else ()

        def run(machine: Machine) -> None:
            a, b = left_reader(machine), right_reader(machine)
            carry_in: Value = 0
            if has_carry_in:
                carry_mask = machine.read_register("scc") if not is_vector else unpack_mask(
                    machine, machine.read_register(carry_in_registers[0]), machine.read_register(carry_in_registers[-1])
                )  # fmt: skip
                carry_in = apply(to_number, _predicate_as_operand(carry_mask))
            total = apply(lambda x, y, c: x + sign * (y + c), a, b, carry_in)
            write(machine, apply(lambda v: v & ((1 << bits) - 1), total))
            if has_carry_out:
                write_mask(machine, carry_out_registers, as_predicate(apply(lambda v: (v >> 32 & 1) != 0, total)))
            elif not is_vector:
                carry_out = apply(lambda x, y, c: _overflows(x, y, c, sign), a, b, carry_in) if is_signed else total
                machine.write_register(
                    "scc", as_predicate(carry_out if is_signed else apply(lambda v: (v >> 32 & 1) != 0, carry_out))
                )

        return scalar_or_vector_run(statement, run)

    return build


def _predicate_as_operand(value: Value) -> Value:
    """A predicate as an operand of `apply`: its unknown lanes become unknown numbers."""
    if isinstance(value, UnknownValue):
        return UnknownValue(value.data, np.where(value.unknown_bits, FULL, 0), value.missing_inputs)
    return value


def _overflows(a: Known, b: Known, carry: Known, sign: int) -> Known:
    total = as_signed(a) + sign * (as_signed(b) + carry)
    return (total < -(1 << 31)) | (total >= 1 << 31)


def _build_with_constant(statement: AmdgcnStatement, meaning: OpcodeSemantics) -> StepRun:
    """`s_addk_i32`, `s_mulk_i32`: the destination register and a 16-bit constant."""
    read_operand, write = word_reader(statement.operands[0]), word_writer(statement)
    number = truncate(statement.operands[1].value, 16, is_signed=True)
    is_addition = meaning.action is Action.ADD

    def run(machine: Machine) -> None:
        operand_value = read_operand(machine)
        write(machine, apply(lambda v: (v + number if is_addition else v * number) & FULL, operand_value))
        if is_addition:
            machine.write_register(
                "scc", as_predicate(apply(lambda v: _overflows(v, number & FULL, 0, 1), operand_value))
            )

    return run


def _build_multiply(statement: AmdgcnStatement, meaning: OpcodeSemantics) -> StepRun:
    if meaning.condition == "constant":
        return _build_with_constant(statement, meaning)
    return integer_operation(lambda a, b: a * b, 2)(statement, meaning)


def _high_word(a: Known, b: Known) -> Known:
    """The upper half of a 32 × 32-bit product; an unsigned product may not fit a signed 64-bit number."""
    if isinstance(a, int) and isinstance(b, int):
        return a * b >> 32
    low_product = (a & 0xFFFF) * b
    return ((a >> 16) * b + (low_product >> 16)) >> 16


def _build_multiply_wide(statement: AmdgcnStatement, meaning: OpcodeSemantics) -> StepRun:
    """`v_mad_u64_u32`: a 32 × 32-bit product plus a 64-bit addend."""
    has_carry_out = len(statement.operands) == 5
    first_source = 2 if has_carry_out else 1
    left_reader, right_reader = source_readers(statement, first_source, 2)
    addend, destination_registers = statement.operands[first_source + 2], statement.operands[0].names
    addend_reader, addend_low_reader = wide_reader(addend), word_reader(addend)
    carry_out_registers = statement.operands[1].names if has_carry_out else ()
    is_signed = meaning.is_signed

    def run(machine: Machine) -> None:
        a, b = (
            apply(lambda v: truncate(v, 32, is_signed=is_signed), reader(machine))
            for reader in (left_reader, right_reader)
        )
        full_sum, low_sum = (
            apply(multiply_add_64, a, b, addend_reader(machine)),
            apply(multiply_add_64, a, b, addend_low_reader(machine)),
        )
        write_sum_halves(machine, destination_registers, low_sum, full_sum)
        if carry_out_registers:
            write_mask(
                machine,
                carry_out_registers,
                UnknownValue(False, True, machine.unknown_value("the carry of a 64-bit product").missing_inputs),
            )

    return under_exec(run)


# ── Bits ─────────────────────────────────────────────────────────────────────────────────────────


def _build_shift(statement: AmdgcnStatement, meaning: OpcodeSemantics) -> StepRun:
    """Vector instructions take the shift count first, scalar instructions last."""
    is_scalar_shift, bits, is_signed = is_scalar(statement), meaning.bits, meaning.is_signed
    is_left_shift = meaning.action is Action.SHIFT_LEFT
    if bits == 16 and statement.has_modifier("op_sel"):
        raise ValueError(statement.opcode)
    value_position, count_position = (1, 2) if is_scalar_shift else (2, 1)
    operands = statement.operands
    word_readers = source_readers(statement, 1, 2)
    value_reader = wide_reader(operands[value_position]) if bits == 64 else word_readers[value_position - 1]
    count_reader = word_reader(operands[count_position]) if bits == 64 else word_readers[count_position - 1]
    write, destination_registers = word_writer(statement), operands[0].names

    def compute(v: Known, amount: Known) -> Known:
        amount = amount & (bits - 1)
        v = truncate(v, bits, is_signed=is_signed) if bits < 64 else v
        if is_left_shift:
            shifted_value = v << amount
            return multiply_add_64(shifted_value, 1, 0) if bits == 64 else shifted_value & ((1 << bits) - 1)
        if bits == 64 and not is_signed:
            if isinstance(v, int) and isinstance(amount, int):
                return (v & ((1 << 64) - 1)) >> amount
            sign_mask = np.where(np.asarray(amount) == 0, -1, ~(np.int64(-1) << (64 - np.maximum(amount, 1))))
            return (v >> amount) & sign_mask
        return v >> amount if bits == 64 else (v >> amount) & ((1 << bits) - 1)

    def run(machine: Machine) -> None:
        shifted_value = apply(compute, value_reader(machine), count_reader(machine))
        if bits == 64:
            write_wide(machine, destination_registers, shifted_value)
        else:
            write(machine, shifted_value)

    return set_scc_after(run, statement) if is_scalar_shift else under_exec(run)


def _build_extract(statement: AmdgcnStatement, meaning: OpcodeSemantics) -> StepRun:
    """Extract a bit field; a scalar instruction has offset and width in one operand."""
    is_scalar_extract, is_signed, bits = is_scalar(statement), meaning.is_signed, meaning.bits
    operands = statement.operands
    value_reader = wide_reader(operands[1]) if bits == 64 else word_reader(operands[1])
    field_readers = [word_reader(operand) for operand in operands[2:4]]
    write, destination_registers = word_writer(statement), operands[0].names

    def compute(v: Known, start: Known, count: Known) -> Known:
        count = np.minimum(count, bits - start) if isinstance(count, np.ndarray) else min(count, bits)
        field_bits = (v >> start) & ((1 << count) - 1)
        sign = (1 << count) >> 1
        return (field_bits ^ sign) - sign if is_signed else field_bits

    def run(machine: Machine) -> None:
        field_operands = [reader(machine) for reader in field_readers]
        if is_scalar_extract:
            offset_mask = bits - 1
            field_operands = [
                apply(lambda v: v & offset_mask, field_operands[0]),
                apply(lambda v: v >> 16 & 127, field_operands[0]),
            ]
        else:
            field_operands = [apply(lambda v: v & 31, field_operand) for field_operand in field_operands]
        extracted = apply(compute, value_reader(machine), *field_operands)
        if bits == 64:
            write_wide(machine, destination_registers, extracted)
        else:
            write(machine, apply(lambda v: v & FULL, extracted))

    return set_scc_after(run, statement) if is_scalar_extract else under_exec(run)


def _permute_bytes(high: Known, low: Known, selector: Known) -> Known:
    """`v_perm_b32`: each byte of the result is one of eight source bytes, or a constant."""
    permuted: Any = 0
    for byte in range(4):
        selected_byte = (selector >> 8 * byte) & 0xFF
        byte_value: Any = 0
        for source_byte in range(8):
            candidate_byte = ((low if source_byte < 4 else high) >> 8 * (source_byte & 3)) & 0xFF
            byte_value = byte_value + candidate_byte * (selected_byte == source_byte)
        permuted = permuted | ((byte_value + 0xFF * (selected_byte >= 13)) << 8 * byte)
    return permuted


def _build_permute(statement: AmdgcnStatement, _meaning: OpcodeSemantics) -> StepRun:
    readers, write = source_readers(statement, 1, 3), word_writer(statement)

    def run(machine: Machine) -> None:
        values = [reader(machine) for reader in readers]
        selector = values[2]
        permuted = apply(_permute_bytes, *values)
        if isinstance(selector, int) and all(8 <= (selector >> 8 * byte & 0xFF) < 12 for byte in range(4)):
            permuted = machine.unknown_value("the sign of a byte")
        write(machine, permuted)

    return under_exec(run)


def _leading_sign_bits(value: int, bits: int) -> int:
    differing_bits = value ^ (-(value >> bits - 1) & ((1 << bits) - 1))
    return bits - differing_bits.bit_length() if differing_bits else -1


def _bit_count_builder(function: Callable[[Any, int], Any]) -> RunBuilder:
    """Instructions that count or find bits in one number."""

    def build(statement: AmdgcnStatement, meaning: OpcodeSemantics) -> StepRun:
        bits, write = meaning.bits, word_writer(statement)
        reader = wide_reader(statement.operands[1]) if bits == 64 else word_reader(statement.operands[1])
        addend_reader = word_reader(statement.operands[2]) if len(statement.operands) > 2 else None
        sets_scc = is_scalar(statement) and meaning.action is Action.COUNT_BITS

        def count_bits(number: int) -> int:
            return int(function(number & ((1 << bits) - 1), bits)) & FULL

        def run(machine: Machine) -> None:
            bit_count = apply(partial(apply_distinct, count_bits), reader(machine))
            if addend_reader is not None:
                bit_count = apply(lambda v, addend: (v + addend) & FULL, bit_count, addend_reader(machine))
            write(machine, bit_count)
            if sets_scc:
                machine.write_register("scc", is_nonzero(bit_count))

        return scalar_or_vector_run(statement, run)

    return build


def _median(a: Known, b: Known, c: Known) -> Known:
    return _maximum(_minimum(a, b), _minimum(_maximum(a, b), c))


def _minimum(*values: Any) -> Any:
    smallest = values[0]
    for value in values[1:]:
        smallest = np.minimum(smallest, value)
    return int(smallest) if np.ndim(smallest) == 0 else smallest


def _maximum(*values: Any) -> Any:
    return -_minimum(*(-value for value in values))


def _min_max(pick: Callable[..., Known]) -> RunBuilder:
    """Minimum and maximum; the scalar form sets SCC if the result is the first operand."""
    build_selection = integer_operation(pick, 2)

    def build(statement: AmdgcnStatement, meaning: OpcodeSemantics) -> StepRun:
        run = build_selection(statement, meaning)
        if not is_scalar(statement):
            return run
        first_reader, second_reader = source_readers(statement, 1, 2)

        def run_and_set_scc(machine: Machine) -> None:
            a, b = (
                apply(lambda v: truncate(v, 32, is_signed=meaning.is_signed), r(machine))
                for r in (first_reader, second_reader)
            )
            is_first = as_predicate(apply(lambda x, y: pick(x, y) == x, a, b))
            run(machine)
            machine.write_register("scc", is_first)

        return run_and_set_scc

    return build


def _reverse_bits(value: int, bits: int) -> int:
    return int(f"{value:0{bits}b}"[::-1], 2)


def _half_word(value: Any, is_upper: bool) -> Any:
    return value >> 16 if is_upper else value & 0xFFFF


def _build_pack(statement: AmdgcnStatement, meaning: OpcodeSemantics) -> StepRun:
    first_is_upper, second_is_upper = (letter == "h" for letter in meaning.condition)
    return integer_operation(lambda a, b: _half_word(a, first_is_upper) | (_half_word(b, second_is_upper) << 16), 2)(
        statement, meaning
    )


def _build_align(statement: AmdgcnStatement, meaning: OpcodeSemantics) -> StepRun:
    bits_per_step = meaning.bits
    plain_meaning = OpcodeSemantics(meaning.action)
    return integer_operation(lambda a, b, c: ((a << 32) | b) >> (bits_per_step * (c & (31 // bits_per_step))), 3)(
        statement, plain_meaning
    )


def _build_scalar_shift_add(statement: AmdgcnStatement, amount: int) -> StepRun:
    """`s_lshl2_add_u32`: SCC is set if the sum exceeds 32 bits."""
    left_reader, right_reader = source_readers(statement, 1, 2)
    write = word_writer(statement)

    def run(machine: Machine) -> None:
        total = apply(lambda a, b: (a << amount) + b, left_reader(machine), right_reader(machine))
        write(machine, apply(lambda v: v & FULL, total))
        machine.write_register("scc", as_predicate(apply(lambda v: v > FULL, total)))

    return run


def _build_shift_add(statement: AmdgcnStatement, meaning: OpcodeSemantics) -> StepRun:
    if meaning.condition:
        return _build_scalar_shift_add(statement, int(meaning.condition))
    if meaning.bits == 64:
        wide_readers = [wide_reader(statement.operands[at]) for at in (1, 3)]
        lower = [word_reader(statement.operands[at]) for at in (1, 3)]
        count_reader, destination_registers = word_reader(statement.operands[2]), statement.operands[0].names

        def shifted_sum(machine: Machine, readers: list[Reader]) -> Value:
            value, addend = (reader(machine) for reader in readers)
            return apply(lambda v, by, c: multiply_add_64(v << (by & 7), 1, c), value, count_reader(machine), addend)

        def run(machine: Machine) -> None:
            write_sum_halves(
                machine, destination_registers, shifted_sum(machine, lower), shifted_sum(machine, wide_readers)
            )

        return under_exec(run)
    return integer_operation(lambda a, b, c: (a << (b & 31)) + c, 3)(statement, meaning)


def _low_24_bits(value: Any, is_signed: bool) -> Any:
    return truncate(value, 24, is_signed=is_signed)


def _build_multiply_24(statement: AmdgcnStatement, meaning: OpcodeSemantics) -> StepRun:
    is_signed = meaning.is_signed
    if meaning.action is Action.MULTIPLY_24:
        return integer_operation(lambda a, b: _low_24_bits(a, is_signed) * _low_24_bits(b, is_signed), 2)(
            statement, meaning
        )
    return integer_operation(lambda a, b, c: _low_24_bits(a, is_signed) * _low_24_bits(b, is_signed) + c, 3)(
        statement, meaning
    )


INTEGER: Mapping[Action, RunBuilder] = {
    Action.REVERSE_BITS: _bit_count_builder(_reverse_bits),
    Action.ADD: _add_builder(1),
    Action.SUBTRACT: _add_builder(-1),
    Action.SUBTRACT_FROM: _add_builder(-1, is_swapped=True),
    Action.ADD_WITH_CARRY: _add_builder(1, has_carry_in=True),
    Action.SUBTRACT_WITH_BORROW: _add_builder(-1, has_carry_in=True),
    Action.SUBTRACT_FROM_WITH_BORROW: _add_builder(-1, is_swapped=True, has_carry_in=True),
    Action.MULTIPLY: _build_multiply,
    Action.MULTIPLY_HIGH: integer_operation(_high_word, 2),
    Action.MULTIPLY_24: _build_multiply_24,
    Action.MULTIPLY_ADD_24: _build_multiply_24,
    Action.MULTIPLY_ADD_WIDE: _build_multiply_wide,
    Action.SHIFT_LEFT: _build_shift,
    Action.SHIFT_RIGHT: _build_shift,
    Action.XOR_XOR: integer_operation(lambda a, b, c: a ^ b ^ c, 3),
    Action.AND_OR: integer_operation(lambda a, b, c: (a & b) | c, 3),
    Action.OR_OR: integer_operation(lambda a, b, c: a | b | c, 3),
    Action.ADD_ADD: integer_operation(lambda a, b, c: a + b + c, 3),
    Action.SHIFT_OR: integer_operation(lambda a, b, c: (a << (b & 31)) | c, 3),
    Action.SHIFT_ADD: _build_shift_add,
    Action.ADD_SHIFT: integer_operation(lambda a, b, c: (a + b) << (c & 31), 3),
    Action.XOR_ADD: integer_operation(lambda a, b, c: (a ^ b) + c, 3),
    Action.BITFIELD_EXTRACT: _build_extract,
    Action.BITFIELD_INSERT: integer_operation(lambda a, b, c: (a & b) | (~a & c), 3),
    Action.BITFIELD_MASK: integer_operation(lambda a, b: ((1 << (a & 31)) - 1) << (b & 31), 2),
    Action.PERMUTE_BYTES: _build_permute,
    Action.FUNNEL_SHIFT: _build_align,
    Action.MIN: _min_max(_minimum),
    Action.MAX: _min_max(_maximum),
    Action.MIN3: integer_operation(_minimum, 3),
    Action.MAX3: integer_operation(_maximum, 3),
    Action.MEDIAN3: integer_operation(_median, 3),
    Action.ABSOLUTE: operation_with_scc(abs, 1),
    Action.COUNT_BITS: _bit_count_builder(lambda v, _bits: v.bit_count()),
    Action.TRAILING_ZEROS: _bit_count_builder(lambda v, _bits: (v & -v).bit_length() - 1),
    Action.LEADING_ZEROS: _bit_count_builder(lambda v, bits: bits - v.bit_length() if v else -1),
    Action.SIGN_BITS: _bit_count_builder(_leading_sign_bits),
    Action.SIGN_EXTEND: integer_operation(lambda a: a, 1),
    Action.PACK: _build_pack,
}
"""Action → builder of its run."""
