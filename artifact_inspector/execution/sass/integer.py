"""SASS integer arithmetic: sums, products, shifts and comparisons.

**Source** CUDA Binary Utilities, "Instruction Set Reference", lists the opcodes. Their semantics are not
published: each row was derived from the PTX that it was compiled from, and validated with hardware counters.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from artifact_inspector.execution.interpreter.affine import pair_operands
from artifact_inspector.execution.interpreter.conversions import as_predicate, to_number, wrap_int64
from artifact_inspector.execution.interpreter.machine import Machine
from artifact_inspector.execution.interpreter.values import (
    FULL,
    IntArray,
    Known,
    Mask,
    Number,
    UnknownValue,
    Value,
    Word,
    absolute,
    apply,
    apply_to_bits,
    apply_to_low_bits,
    as_plain_array,
    as_signed,
    invert,
    select_lanes,
)
from artifact_inspector.execution.sass import operands as op
from artifact_inspector.formats.sass.statement import SassOperand, SassStatement

# ── Sums ─────────────────────────────────────────────────────────────────────────────────────────


def _addend_reader(operand: SassOperand) -> op.Reader:
    """Reader of an addend before truncation to 32 bits: `-b` is `~b + 1`, whose carry counts."""
    if not operand.is_negated:
        return op.word_reader(operand)
    positive_reader = op.word_reader(operand._replace(is_negated=False))
    return lambda machine: apply(lambda v: (v ^ FULL) + 1, positive_reader(machine))


def _carry_readers(statement: SassStatement, operands: Sequence[SassOperand]) -> list[op.Reader]:
    """Readers of the carries that an instruction with `.X` adds, as numbers."""

    def as_addend(reader: op.Reader) -> op.Reader:
        return lambda machine: apply(to_number, reader(machine))

    return [as_addend(op.predicate_reader(operand)) for operand in operands] if statement.has_modifier("X") else []


def _sum(first: Number, *addends: Number) -> Number:
    for addend in addends:
        first, addend = pair_operands(first, addend)
        first = first + addend
    return first


def _sum_64(*values: Number) -> Number:
    return wrap_int64(_sum(*values))


def _build_add(statement: SassStatement) -> op.StepRun:
    name, carry_predicates, at = op.destinations(statement, 2)
    sources, carries = op.split_predicates(statement.operands[at:])
    if statement.has_modifier("64"):
        terms = [op.wide_reader(operand) for operand in sources]
        return lambda machine: op.write_wide(machine, name, apply(_sum_64, *(term(machine) for term in terms)))
    terms = [*map(_addend_reader, sources), *_carry_readers(statement, carries)]
    return lambda machine: op.write_sum(
        machine, name, carry_predicates, apply_to_low_bits(_sum, *(term(machine) for term in terms))
    )


# ── Products ─────────────────────────────────────────────────────────────────────────────────────


def _build_multiply(statement: SassStatement) -> op.StepRun:
    name, carry_predicates, at = op.destinations(statement, 1)
    first, second, third, *carry_operands = statement.operands[at:]
    left_reader, right_reader = op.word_reader(first), op.word_reader(second)
    carry_readers = _carry_readers(statement, carry_operands)
    is_high, is_unsigned = statement.has_modifier("HI"), statement.has_modifier("U32")
    if is_high or statement.has_modifier("WIDE"):
        wide_addend_reader = op.wide_reader(third)

        def product(a: Number, b: Number) -> Number:
            return wrap_int64(a * b if is_unsigned else as_signed(a) * as_signed(b))

        def run_wide(machine: Machine) -> None:
            product_value = apply(product, left_reader(machine), right_reader(machine))
            addend = wide_addend_reader(machine)
            total = apply(_sum_64, product_value, addend, *(reader(machine) for reader in carry_readers))
            if carry_predicates:
                carry = apply(lambda t, a: (t ^ _INT64_MINIMUM) < (a ^ _INT64_MINIMUM), total, addend)  # unsigned
                op.write_all(machine, carry_predicates, as_predicate(carry))
            if not is_high:
                op.write_wide(machine, name, total)
            elif name is not None:
                machine.write_register(name, apply(lambda t: (t >> 32) & FULL, total))

        return run_wide
    if (op.is_zero_register(first) or op.is_zero_register(second)) and not carry_operands and not carry_predicates:
        return op.build_move(statement, at + 2)
    readers = [left_reader, right_reader, _addend_reader(third), *carry_readers]

    def multiply_add(a: Number, b: Number, *addends: Number) -> Number:
        return _sum((a * b) & FULL, *addends)

    def total(left: Value, right: Value, *addends: Value) -> Value:
        if left.__class__ is UnknownValue and isinstance(right, int) and right.bit_count() == 1:  # a shift
            return apply_to_low_bits(_sum, apply_to_bits(lambda bits: (bits * right) & FULL, left), *addends)
        return apply_to_low_bits(multiply_add, left, right, *addends)

    return lambda machine: op.write_sum(
        machine, name, carry_predicates, total(*(reader(machine) for reader in readers))
    )


_INT64_MINIMUM = -(1 << 63)


# ── Shifts ───────────────────────────────────────────────────────────────────────────────────────


def _shift_pair_right(low: Number, high: Number, amount: Word) -> Number:
    """The low word of a register pair shifted right by 0 to 63."""
    if isinstance(amount, np.ndarray):
        near = np.minimum(amount, 31)
        shifted = ((low >> near) | (high << (32 - near))) & FULL
        return _choose(amount < 32, shifted, high >> np.clip(amount - 32, 0, 63))
    return ((low >> amount) | (high << (32 - amount))) & FULL if amount < 32 else high >> (amount - 32)


def _choose(mask: Mask, yes: Number, no: Number) -> IntArray:
    return np.where(mask, as_plain_array(yes), as_plain_array(no))


def _build_shift(statement: SassStatement) -> op.StepRun:
    name, _, at = op.destinations(statement, 0)
    low_reader, amount_reader, *high_readers = map(op.word_reader, statement.operands[at:])
    high_reader: op.Reader = high_readers[0] if high_readers else (lambda _machine: 0)
    is_left, is_high = "L" in statement.modifiers[:1], statement.has_modifier("HI")
    is_signed = not is_left and any(kind in statement.modifiers for kind in ("S32", "S64"))
    wraps, most = statement.has_modifier("W"), 63 if {"U64", "S64"} & {*statement.modifiers} else 32

    def shift(low: Number, shift_amount: Number, high_word: Number) -> Number:
        amount = as_plain_array(shift_amount & (63 if most == 63 else 31)) if wraps else op.minimum(shift_amount, most)
        if is_left:
            return _shift_left_high(low, amount, high_word) if is_high else (low << op.minimum(amount, 32)) & FULL
        if is_high:
            return (as_signed(high_word) >> amount) & FULL if is_signed else high_word >> amount
        if not is_signed:
            return _shift_pair_right(low, high_word, amount)
        signed_high = as_signed(high_word)
        if isinstance(amount, np.ndarray):
            near = _shift_pair_right(low, signed_high & FULL, np.minimum(amount, 31))
            return _choose(amount < 32, near, (signed_high >> np.clip(amount - 32, 0, 63)) & FULL)
        if amount < 32:
            return _shift_pair_right(low, signed_high & FULL, amount)
        return (signed_high >> (amount - 32)) & FULL

    def shifted(machine: Machine) -> Value:
        low, amount, high = low_reader(machine), amount_reader(machine), high_reader(machine)
        if isinstance(amount, int):
            return apply_to_bits(lambda low_bits, high_bits: shift(low_bits, amount, high_bits), low, high)
        return apply(shift, low, amount, high)

    return op.write_run(name, shifted)


def _shift_left_high(low: Number, amount: Word, high_word: Number) -> Number:
    """The high word of a left-shifted pair: its own bits, and those that come up from the low word."""
    if isinstance(amount, np.ndarray):
        near = np.minimum(amount, 32)
        shifted = ((high_word << near) | (low >> (32 - near))) & FULL
        return _choose(amount <= 32, shifted, (low << np.clip(amount - 32, 0, 31)) & FULL)
    if amount <= 32:
        return ((high_word << amount) | (low >> (32 - amount))) & FULL
    return (low << (amount - 32)) & FULL


def _build_lea(statement: SassStatement) -> op.StepRun:
    name, carry_predicates, at = op.destinations(statement, 1)
    (first, second, *shift_operands), carries = op.split_predicates(statement.operands[at:])
    carry_readers = _carry_readers(statement, carries)
    is_high, extends = statement.has_modifier("HI"), statement.has_modifier("SX32")
    base_reader, addend_reader = op.word_reader(first), _addend_reader(second)
    amount_reader = op.word_reader(shift_operands[-1])
    high_reader: op.Reader = op.word_reader(shift_operands[0]) if len(shift_operands) > 1 else (lambda _machine: 0)

    def scale_address(value: Number, high_word: Number, shift: Number) -> Number:
        if not is_high:
            return (value << shift) & FULL
        upper = (as_signed(value) >> 31) & FULL if extends else high_word
        return ((upper << shift) | (value >> (32 - shift))) & FULL

    def run(machine: Machine) -> None:
        high_word = high_reader(machine)
        scaled = apply(scale_address, base_reader(machine), high_word, amount_reader(machine))
        total = apply(_sum, scaled, addend_reader(machine), *(reader(machine) for reader in carry_readers))
        op.write_sum(machine, name, carry_predicates, total)

    return run


# ── Comparisons ──────────────────────────────────────────────────────────────────────────────────

_COMPARISONS: Mapping[str, Callable[[Number, Number], Known]] = {
    "LT": operator.lt, "LE": operator.le, "GT": operator.gt, "GE": operator.ge, "EQ": operator.eq,
    "NE": operator.ne,
}  # fmt: skip


def _build_compare(statement: SassStatement) -> op.StepRun:
    modifiers = statement.modifiers
    first, second, combine, *low_operands = statement.operands[2:]
    name = next((m for m in modifiers if m in _COMPARISONS), None)
    is_unsigned, is_wide = (any(kind in modifiers for kind in kinds) for kinds in (("U32", "U64"), ("S64", "U64")))
    left_reader, right_reader = map(op.wide_reader if is_wide else op.word_reader, (first, second))
    low_result_reader = op.predicate_reader(low_operands[0]) if low_operands and "EX" in modifiers else None

    def as_ordered(value: Number) -> Number:
        if is_wide:
            return value ^ _INT64_MINIMUM if is_unsigned else value
        return value if is_unsigned else as_signed(value)

    def compare(a: Value, b: Value, function: Callable[[Number, Number], Known]) -> Value:
        return as_predicate(apply(lambda x, y: function(*pair_operands(as_ordered(x), as_ordered(y))), a, b))

    def read_comparison(machine: Machine) -> Value:
        if name is None:
            return next((m for m in modifiers if m in ("T", "F")), "F") == "T"
        a, b = left_reader(machine), right_reader(machine)
        if low_result_reader is None:
            return compare(a, b, _COMPARISONS[name])
        is_equal, low_result = as_predicate(apply(operator.eq, a, b)), low_result_reader(machine)
        if name == "NE":
            return op.predicate_or(invert(is_equal), low_result)
        continued = op.predicate_and(is_equal, low_result)
        return continued if name == "EQ" else op.predicate_or(compare(a, b, _COMPARISONS[f"{name[0]}T"]), continued)

    def read_results(machine: Machine) -> tuple[Value, Value]:
        comparison = read_comparison(machine)
        return comparison, invert(comparison)

    return op.comparison_run(statement, [combine], read_results)


def _build_min_max(statement: SassStatement) -> op.StepRun:
    """IMNMX, VIMNMX: the smaller if the predicate holds, otherwise the larger; VIADDMNMX adds first."""
    name, _, at = op.destinations(statement, 0)
    sources, predicates = op.split_predicates(statement.operands[at:])
    is_unsigned, adds_first = statement.has_modifier("U32"), "ADD" in statement.base
    readers, picks_minimum = [*map(op.word_reader, sources)], op.predicate_reader(predicates[-1])
    if any("x2" in m or m in ("RELU", "U16", "S16", "U8", "S8", "S64", "U64") for m in statement.modifiers):
        return op.unsupported_run(name, statement.opcode)

    def find_minimum(sign: int, *operands: Number) -> Number:
        """The smallest of the operands; the largest if the sign is -1."""
        first, *others = operands
        if adds_first:
            first, others = (first + others[0]) & FULL, others[1:]
        best, *values = [sign * (value if is_unsigned else as_signed(value)) for value in (first, *others)]
        for value in values:
            is_int = isinstance(best, int) and isinstance(value, int)
            best = min(best, value) if is_int else np.minimum(as_plain_array(best), as_plain_array(value))
        return (sign * best) & FULL

    def pick_value(machine: Machine) -> Value:
        values = [reader(machine) for reader in readers]
        smallest, largest = (apply(lambda *v, sign=sign: find_minimum(sign, *v), *values) for sign in (1, -1))
        return select_lanes(picks_minimum(machine), smallest, largest)

    return op.write_run(name, pick_value)


INTEGER: Mapping[str, op.RunBuilder] = {
    **dict.fromkeys(("IADD", "IADD3", "VIADD", "IADD32I"), _build_add), "IMAD": _build_multiply,
    "IMUL": op.operation_builder(lambda a, b: (a * b) & FULL, 2), "SHF": _build_shift,
    "SHL": op.operation_builder(lambda a, by: (a << op.minimum(by, 32)) & FULL, 2), "LEA": _build_lea,
    "ISETP": _build_compare, **dict.fromkeys(("IMNMX", "VIMNMX", "VIMNMX3", "VIADDMNMX"), _build_min_max),
    "IABS": op.operation_builder(lambda a: absolute(as_signed(a)) & FULL, 1)
}  # fmt: skip
"""Opcode, without modifiers and without the `U` of uniform instructions → builder of its run."""
