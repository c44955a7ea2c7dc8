"""AMDGCN integer arithmetic: sums, products, shifts and bit operations, scalar and vector.

**Source** AMD Instinct MI300 and RDNA 3 Instruction Set Architecture documents, "Instructions".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

import numpy as np

from artifact_inspector.execution.amdgcn import operands as op
from artifact_inspector.execution.interpreter.conversions import (
    apply_distinct,
    as_predicate,
    to_number,
    truncate,
    wrap_int64,
)
from artifact_inspector.execution.interpreter.machine import Machine
from artifact_inspector.execution.interpreter.values import (
    FULL,
    Known,
    Mask,
    Number,
    UnknownValue,
    Value,
    absolute,
    apply,
    as_plain_array,
    as_signed,
)
from artifact_inspector.formats.amdgcn.operations import Action, OpcodeSemantics
from artifact_inspector.formats.amdgcn.statement import AmdgcnStatement


def _operation(function: Callable[..., Number], operand_count: int) -> op.RunBuilder:
    """Builder for an operation on 32 bits, or on 16 or 64 if the opcode says so."""

    def build(statement: AmdgcnStatement, meaning: OpcodeSemantics) -> op.StepRun:
        bits, is_signed = meaning.bits, meaning.is_signed
        write = op.result_writer(statement, bits)
        if bits == 64:
            readers = [op.wide_reader(operand) for operand in statement.operands[1 : 1 + operand_count]]
        else:
            readers = op.source_readers(statement, 1, operand_count)
        if bits == 16 and any(statement.has_modifier(name) for name in ("op_sel", "dst_sel", "src0_sel")):
            raise ValueError(statement.opcode)

        def compute(*values: Number) -> Number:
            if bits == 64:
                return function(*values)
            return function(*(truncate(value, bits, is_signed=is_signed) for value in values)) & ((1 << bits) - 1)

        def run(machine: Machine) -> None:
            write(machine, apply(compute, *(reader(machine) for reader in readers)))

        return op.scalar_or_vector_run(statement, run)

    return build


def _operation_with_scc(function: Callable[..., Number], operand_count: int) -> op.RunBuilder:
    """Builder whose scalar form also sets SCC if the result is nonzero."""
    build_operation = _operation(function, operand_count)

    def build(statement: AmdgcnStatement, meaning: OpcodeSemantics) -> op.StepRun:
        run = build_operation(statement, meaning)
        return _set_scc_after(run, statement) if op.is_scalar(statement) else run

    return build


def _set_scc_after(run: op.StepRun, statement: AmdgcnStatement) -> op.StepRun:
    """A run that then sets SCC if its result is nonzero."""
    names = statement.operands[0].names

    def run_and_set_scc(machine: Machine) -> None:
        run(machine)
        machine.write_register("scc", op.is_nonzero(*(machine.read_register(name) for name in names)))

    return run_and_set_scc


def _multiply_add_64(a: Number, b: Number, c: Number) -> Number:
    """The sum a * b + c in 64 signed bits."""
    return wrap_int64(a * b + c)


# ── Sums ─────────────────────────────────────────────────────────────────────────────────────────


def _add_builder(sign: int, *, is_swapped: bool = False, has_carry_in: bool = False) -> op.RunBuilder:
    """Sums and differences, with carry in and carry out."""

    def build(statement: AmdgcnStatement, meaning: OpcodeSemantics) -> op.StepRun:
        bits, is_signed = meaning.bits, meaning.is_signed
        if statement.has_modifier("clamp"):
            if sign > 0 or is_swapped or has_carry_in or bits != 32 or is_signed:
                raise ValueError(statement.opcode)
            return _operation(lambda a, b: (a - b) * (a >= b), 2)(statement, meaning)
        if bits == 64:
            return _operation(lambda a, b: a + b if sign > 0 else a - b, 2)(statement, meaning)
        if meaning.condition == "constant":
            return _build_with_constant(statement, meaning)
        is_vector = not op.is_scalar(statement)
        has_carry_out = is_vector and (has_carry_in or meaning.condition == "carry") and len(statement.operands) > 3
        first_source = 2 if has_carry_out else 1
        readers = op.source_readers(statement, first_source, 2)
        left_reader, right_reader = reversed(readers) if is_swapped else readers
        carry_in_registers = statement.operands[first_source + 2].names if is_vector and has_carry_in else ()
        carry_out_registers = statement.operands[1].names if has_carry_out else ()
        write = op.word_writer(statement)

        def run(machine: Machine) -> None:
            a, b = left_reader(machine), right_reader(machine)
            carry_in: Value = 0
            if has_carry_in:
                mask = op.read_mask(machine, carry_in_registers) if is_vector else machine.read_register("scc")
                carry_in = apply(to_number, _predicate_as_operand(mask))
            total = apply(lambda x, y, c: x + sign * (y + c), a, b, carry_in)
            write(machine, apply(lambda v: v & ((1 << bits) - 1), total))
            if has_carry_out or not is_vector:
                carry_out = as_predicate(apply(lambda v: (v >> 32 & 1) != 0, total))
                if has_carry_out:
                    op.write_mask(machine, carry_out_registers, carry_out)
                    return
                if is_signed:
                    carry_out = as_predicate(apply(lambda x, y, c: _overflows(x, y, c, sign), a, b, carry_in))
                machine.write_register("scc", carry_out)

        return op.scalar_or_vector_run(statement, run)

    return build


def _predicate_as_operand(value: Value) -> Value:
    """A predicate as an operand of `apply`: its unknown lanes become unknown numbers."""
    if isinstance(value, UnknownValue):
        return value._replace(unknown_bits=np.where(value.unknown_bits, FULL, 0))
    return value


def _overflows(a: Number, b: Number, carry: Number, sign: int) -> Mask:
    total = as_signed(a) + sign * (as_signed(b) + carry)
    return (total < -(1 << 31)) | (total >= 1 << 31)


def _build_with_constant(statement: AmdgcnStatement, meaning: OpcodeSemantics) -> op.StepRun:
    """`s_addk_i32`, `s_mulk_i32`: the destination register and a 16-bit constant."""
    read_operand, write = op.word_reader(statement.operands[0]), op.word_writer(statement)
    number = truncate(statement.operands[1].value, 16, is_signed=True)
    is_addition = meaning.action is Action.ADD

    def run(machine: Machine) -> None:
        operand_value = read_operand(machine)
        write(machine, apply(lambda v: (v + number if is_addition else v * number) & FULL, operand_value))
        if is_addition:
            has_overflow = apply(lambda v: _overflows(v, number & FULL, 0, 1), operand_value)
            machine.write_register("scc", as_predicate(has_overflow))

    return run


def _build_multiply(statement: AmdgcnStatement, meaning: OpcodeSemantics) -> op.StepRun:
    if meaning.condition == "constant":
        return _build_with_constant(statement, meaning)
    return _operation(lambda a, b: a * b, 2)(statement, meaning)


def _high_word(a: Number, b: Number) -> Number:
    """The upper half of a 32 × 32-bit product; an unsigned product may not fit a signed 64-bit number."""
    if isinstance(a, int) and isinstance(b, int):
        return a * b >> 32
    return ((a >> 16) * b + ((a & 0xFFFF) * b >> 16)) >> 16


def _build_multiply_wide(statement: AmdgcnStatement, meaning: OpcodeSemantics) -> op.StepRun:
    """`v_mad_u64_u32`: a 32 × 32-bit product plus a 64-bit addend."""
    has_carry_out = len(statement.operands) == 5
    first_source = 2 if has_carry_out else 1
    readers = op.source_readers(statement, first_source, 2)
    addend, names = statement.operands[first_source + 2], statement.operands[0].names
    addend_reader, addend_low_reader = op.wide_reader(addend), op.word_reader(addend)

    def run(machine: Machine) -> None:
        a, b = (apply(lambda v: truncate(v, 32, is_signed=meaning.is_signed), reader(machine)) for reader in readers)
        total = apply(_multiply_add_64, a, b, addend_reader(machine))
        op.write_sum_halves(machine, names, total, lambda: apply(_multiply_add_64, a, b, addend_low_reader(machine)))
        if has_carry_out:
            missing_inputs = machine.unknown_value("the carry of a 64-bit product").missing_inputs
            op.write_mask(machine, statement.operands[1].names, UnknownValue(False, True, missing_inputs))

    return op.under_exec(run)


# ── Bits ─────────────────────────────────────────────────────────────────────────────────────────


def _build_shift(statement: AmdgcnStatement, meaning: OpcodeSemantics) -> op.StepRun:
    """Vector instructions take the shift count first, scalar instructions last."""
    is_scalar_shift, bits, is_signed = op.is_scalar(statement), meaning.bits, meaning.is_signed
    is_left_shift = meaning.action is Action.SHIFT_LEFT
    if bits == 16 and statement.has_modifier("op_sel"):
        raise ValueError(statement.opcode)
    readers = op.source_readers(statement, 1, 2)
    value_position = 0 if is_scalar_shift else 1
    value_reader, count_reader = readers[value_position], readers[1 - value_position]
    if bits == 64:
        value_reader = op.wide_reader(statement.operands[1 + value_position])
        count_reader = op.word_reader(statement.operands[2 - value_position])
    write = op.result_writer(statement, bits)

    def compute(value: Number, count: Number) -> Number:
        amount = as_plain_array(count & (bits - 1))
        if bits < 64:
            word = truncate(value, bits, is_signed=is_signed)
            return (word << amount if is_left_shift else word >> amount) & ((1 << bits) - 1)
        if is_left_shift:
            return wrap_int64(value << amount)
        if is_signed:
            return value >> amount
        v = as_plain_array(value)
        if isinstance(v, int) and isinstance(amount, int):
            return (v & ((1 << 64) - 1)) >> amount
        sign_mask = np.where(np.asarray(amount) == 0, -1, ~(np.int64(-1) << (64 - np.maximum(amount, 1))))
        return (v >> amount) & sign_mask

    def run(machine: Machine) -> None:
        write(machine, apply(compute, value_reader(machine), count_reader(machine)))

    return _set_scc_after(run, statement) if is_scalar_shift else op.under_exec(run)


def _build_extract(statement: AmdgcnStatement, meaning: OpcodeSemantics) -> op.StepRun:
    """Extract a bit field; a scalar instruction has offset and width in one operand."""
    is_scalar_extract, is_signed, bits = op.is_scalar(statement), meaning.is_signed, meaning.bits
    value_reader = op.operand_reader(statement.operands[1], bits)
    field_readers = [op.word_reader(operand) for operand in statement.operands[2:4]]
    write = op.result_writer(statement, bits)

    def compute(value: Number, *fields: Number) -> Number:
        if is_scalar_extract:
            start, count = as_plain_array(fields[0] & (bits - 1)), as_plain_array(fields[0] >> 16 & 127)
        else:
            start, count = (as_plain_array(field & 31) for field in fields)
        count = np.minimum(count, bits - start) if isinstance(count, np.ndarray) else min(count, bits)
        field_bits = (value >> start) & ((1 << count) - 1)
        sign = (1 << count) >> 1
        extracted = (field_bits ^ sign) - sign if is_signed else field_bits
        return extracted if bits == 64 else extracted & FULL

    def run(machine: Machine) -> None:
        fields = [reader(machine) for reader in field_readers]
        write(machine, apply(compute, value_reader(machine), *fields))

    return _set_scc_after(run, statement) if is_scalar_extract else op.under_exec(run)


def _permute_bytes(high: Number, low: Number, selector: Number) -> Number:
    """`v_perm_b32`: each byte of the result is one of eight source bytes, or a constant."""
    permuted: Number = 0
    for byte in range(4):
        selected_byte = (selector >> 8 * byte) & 0xFF
        byte_value: Number = 0
        for source_byte in range(8):
            candidate_byte = ((low if source_byte < 4 else high) >> 8 * (source_byte & 3)) & 0xFF
            byte_value = byte_value + candidate_byte * (selected_byte == source_byte)
        permuted = permuted | ((byte_value + 0xFF * (selected_byte >= 13)) << 8 * byte)
    return permuted


def _build_permute(statement: AmdgcnStatement, _meaning: OpcodeSemantics) -> op.StepRun:
    readers, write = op.source_readers(statement, 1, 3), op.word_writer(statement)

    def run(machine: Machine) -> None:
        values = [reader(machine) for reader in readers]
        selector, permuted = values[2], apply(_permute_bytes, *values)
        if isinstance(selector, int) and all(8 <= (selector >> 8 * byte & 0xFF) < 12 for byte in range(4)):
            permuted = machine.unknown_value("the sign of a byte")
        write(machine, permuted)

    return op.under_exec(run)


def _leading_sign_bits(value: int, bits: int) -> int:
    differing_bits = value ^ (-(value >> bits - 1) & ((1 << bits) - 1))
    return bits - differing_bits.bit_length() if differing_bits else -1


def _bit_count_builder(function: Callable[[int, int], int]) -> op.RunBuilder:
    """Instructions that count or find bits in one number."""

    def build(statement: AmdgcnStatement, meaning: OpcodeSemantics) -> op.StepRun:
        bits, write = meaning.bits, op.word_writer(statement)
        reader = op.operand_reader(statement.operands[1], bits)
        addend_readers = [op.word_reader(operand) for operand in statement.operands[2:3]]
        sets_scc = op.is_scalar(statement) and meaning.action is Action.COUNT_BITS

        def count_bits(number: int) -> int:
            return function(number & ((1 << bits) - 1), bits) & FULL

        def run(machine: Machine) -> None:
            bit_count = apply(partial(apply_distinct, count_bits), reader(machine))
            for addend_reader in addend_readers:
                bit_count = apply(lambda v, addend: (v + addend) & FULL, bit_count, addend_reader(machine))
            write(machine, bit_count)
            if sets_scc:
                machine.write_register("scc", op.is_nonzero(bit_count))

        return op.scalar_or_vector_run(statement, run)

    return build


def _minimum(*values: Number) -> Number:
    smallest = as_plain_array(values[0])
    for value in values[1:]:
        smallest = np.minimum(smallest, as_plain_array(value))
    return int(smallest) if np.ndim(smallest) == 0 else smallest


def _maximum(*values: Number) -> Number:
    return -_minimum(*(-value for value in values))


def _min_max(pick: Callable[..., Number]) -> op.RunBuilder:
    """Minimum and maximum; the scalar form sets SCC if the result is the first operand."""
    build_selection = _operation(pick, 2)

    def build(statement: AmdgcnStatement, meaning: OpcodeSemantics) -> op.StepRun:
        run = build_selection(statement, meaning)
        if not op.is_scalar(statement):
            return run
        readers = op.source_readers(statement, 1, 2)

        def compare(a: Number, b: Number) -> Known:
            first, second = (truncate(value, 32, is_signed=meaning.is_signed) for value in (a, b))
            return pick(first, second) == first

        def run_and_set_scc(machine: Machine) -> None:
            is_first = as_predicate(apply(compare, *(reader(machine) for reader in readers)))
            run(machine)
            machine.write_register("scc", is_first)

        return run_and_set_scc

    return build


def _build_pack(statement: AmdgcnStatement, meaning: OpcodeSemantics) -> op.StepRun:
    first_shift, second_shift = (16 if letter == "h" else 0 for letter in meaning.condition)
    return _operation(lambda a, b: (a >> first_shift & 0xFFFF) | ((b >> second_shift & 0xFFFF) << 16), 2)(
        statement, meaning
    )


def _build_align(statement: AmdgcnStatement, meaning: OpcodeSemantics) -> op.StepRun:
    step = meaning.bits
    return _operation(lambda a, b, c: ((a << 32) | b) >> (step * (c & (31 // step))), 3)(
        statement, OpcodeSemantics(meaning.action)
    )


def _build_shift_add(statement: AmdgcnStatement, meaning: OpcodeSemantics) -> op.StepRun:
    if meaning.condition:  # `s_lshl2_add_u32`: SCC is set if the sum exceeds 32 bits
        amount, write = int(meaning.condition), op.word_writer(statement)
        sources = op.source_readers(statement, 1, 2)

        def run_scalar(machine: Machine) -> None:
            total = apply(lambda a, b: (a << amount) + b, *(reader(machine) for reader in sources))
            write(machine, apply(lambda v: v & FULL, total))
            machine.write_register("scc", as_predicate(apply(lambda v: v > FULL, total)))

        return run_scalar
    if meaning.bits != 64:
        return _operation(lambda a, b, c: (a << (b & 31)) + c, 3)(statement, meaning)
    value, count, addend = statement.operands[1:4]
    count_reader, names = op.word_reader(count), statement.operands[0].names
    words, numbers = ([reader(value), count_reader, reader(addend)] for reader in (op.word_reader, op.wide_reader))

    def add(machine: Machine, readers: Sequence[op.Reader]) -> Value:
        return apply(lambda v, by, c: wrap_int64((v << (by & 7)) + c), *(reader(machine) for reader in readers))

    def run(machine: Machine) -> None:
        op.write_sum_halves(machine, names, add(machine, numbers), lambda: add(machine, words))

    return op.under_exec(run)


def _build_multiply_24(statement: AmdgcnStatement, meaning: OpcodeSemantics) -> op.StepRun:
    def low_24_bits(value: Number) -> Number:
        return truncate(value, 24, is_signed=meaning.is_signed)

    def multiply_add(a: Number, b: Number, c: Number = 0) -> Number:
        return low_24_bits(a) * low_24_bits(b) + c

    return _operation(multiply_add, 2 if meaning.action is Action.MULTIPLY_24 else 3)(statement, meaning)


INTEGER: Mapping[Action, op.RunBuilder] = {
    Action.REVERSE_BITS: _bit_count_builder(lambda v, bits: int(f"{v:0{bits}b}"[::-1], 2)),
    Action.ADD: _add_builder(1), Action.SUBTRACT: _add_builder(-1),
    Action.SUBTRACT_FROM: _add_builder(-1, is_swapped=True),
    Action.ADD_WITH_CARRY: _add_builder(1, has_carry_in=True),
    Action.SUBTRACT_WITH_BORROW: _add_builder(-1, has_carry_in=True),
    Action.SUBTRACT_FROM_WITH_BORROW: _add_builder(-1, is_swapped=True, has_carry_in=True),
    Action.MULTIPLY: _build_multiply, Action.MULTIPLY_HIGH: _operation(_high_word, 2),
    **dict.fromkeys((Action.MULTIPLY_24, Action.MULTIPLY_ADD_24), _build_multiply_24),
    Action.MULTIPLY_ADD_WIDE: _build_multiply_wide,
    **dict.fromkeys((Action.SHIFT_LEFT, Action.SHIFT_RIGHT), _build_shift),
    Action.XOR_XOR: _operation(lambda a, b, c: a ^ b ^ c, 3),
    Action.AND_OR: _operation(lambda a, b, c: (a & b) | c, 3),
    Action.OR_OR: _operation(lambda a, b, c: a | b | c, 3),
    Action.ADD_ADD: _operation(lambda a, b, c: a + b + c, 3),
    Action.SHIFT_OR: _operation(lambda a, b, c: (a << (b & 31)) | c, 3), Action.SHIFT_ADD: _build_shift_add,
    Action.ADD_SHIFT: _operation(lambda a, b, c: (a + b) << (c & 31), 3),
    Action.XOR_ADD: _operation(lambda a, b, c: (a ^ b) + c, 3), Action.BITFIELD_EXTRACT: _build_extract,
    Action.BITFIELD_INSERT: _operation(lambda a, b, c: (a & b) | (~a & c), 3),
    Action.BITFIELD_MASK: _operation(lambda a, b: ((1 << (a & 31)) - 1) << (b & 31), 2),
    Action.PERMUTE_BYTES: _build_permute, Action.FUNNEL_SHIFT: _build_align, Action.MIN: _min_max(_minimum),
    Action.MAX: _min_max(_maximum), Action.MIN3: _operation(_minimum, 3),
    Action.MAX3: _operation(_maximum, 3),
    Action.MEDIAN3: _operation(lambda a, b, c: _maximum(_minimum(a, b), _minimum(_maximum(a, b), c)), 3),
    Action.ABSOLUTE: _operation_with_scc(absolute, 1),
    Action.COUNT_BITS: _bit_count_builder(lambda v, _bits: v.bit_count()),
    Action.TRAILING_ZEROS: _bit_count_builder(lambda v, _bits: (v & -v).bit_length() - 1),
    Action.LEADING_ZEROS: _bit_count_builder(lambda v, bits: bits - v.bit_length() if v else -1),
    Action.SIGN_BITS: _bit_count_builder(_leading_sign_bits), Action.SIGN_EXTEND: _operation(lambda a: a, 1),
    Action.PACK: _build_pack
}  # fmt: skip
"""Action → builder of its run."""
