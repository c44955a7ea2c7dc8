"""SASS integer arithmetic: sums, products, shifts and comparisons.

**Source** CUDA Binary Utilities, "Instruction Set Reference", lists the opcodes. Their semantics are not
published: each row was derived from the PTX that it was compiled from, and validated with hardware counters.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from artifact_inspector.execution.interpreter.conversions import as_predicate, to_number, wrap_int64
from artifact_inspector.execution.interpreter.values import FULL, Known, Value, apply, as_signed, invert, select_lanes
from artifact_inspector.execution.sass.operands import (
    Reader,
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
    predicate_xor,
    unsupported_run,
    wide_reader,
    word_reader,
    write_all,
    write_run,
    write_sum,
    write_wide,
)
from artifact_inspector.formats.sass.statement import SassOperand, SassOperandKind, SassStatement

if TYPE_CHECKING:
    from artifact_inspector.execution.interpreter.machine import Machine

# ── Sums ─────────────────────────────────────────────────────────────────────────────────────────


def _addend_reader(operand: SassOperand) -> Reader:
    """Reader of an addend before truncation to 32 bits: `-b` is `~b + 1`, whose carry counts."""
    if not operand.is_negated:
        return word_reader(operand)
    positive_reader = word_reader(operand._replace(is_negated=False))
    return lambda machine: apply(lambda v: (v ^ FULL) + 1, positive_reader(machine))


def _build_add(statement: SassStatement) -> StepRun:
    if statement.has_modifier("64"):
        return _build_wide_add(statement)
    name, carry_predicates, at = destinations(statement, 2)
    source_operands = statement.operands[at:]
    addend_readers = [
        _addend_reader(operand) for operand in source_operands if operand.kind is not SassOperandKind.PREDICATE
    ]
    carry_readers = [
        predicate_reader(operand) for operand in source_operands if operand.kind is SassOperandKind.PREDICATE
    ]
    carry_readers = carry_readers if statement.has_modifier("X") else []

    def run(machine: Machine) -> None:
        values = [term(machine) for term in addend_readers] + [_read_carry(carry, machine) for carry in carry_readers]
        write_sum(machine, name, carry_predicates, apply(_sum, *values))

    return run


def _read_carry(carry: Reader, machine: Machine) -> Value:
    return apply(to_number, carry(machine))


def _sum(*values: Known) -> Known:
    total = values[0]
    for value in values[1:]:
        total = total + value
    return total


def _build_wide_add(statement: SassStatement) -> StepRun:
    name, _, at = destinations(statement, 2)
    terms = [wide_reader(o) for o in statement.operands[at:] if o.kind is not SassOperandKind.PREDICATE]
    return lambda machine: write_wide(machine, name, apply(_sum_64, *(term(machine) for term in terms)))


def _sum_64(*values: Known) -> Known:
    return wrap_int64(_sum(*values))


# ── Products ─────────────────────────────────────────────────────────────────────────────────────


def _build_multiply(statement: SassStatement) -> StepRun:
    if statement.has_modifier("WIDE") or statement.has_modifier("HI"):
        return _build_multiply_wide(statement)
    name, carry_predicates, at = destinations(statement, 1)
    first, second, third, *carry_operands = statement.operands[at:]
    if (is_zero_register(first) or is_zero_register(second)) and not carry_operands and not carry_predicates:
        return build_move(statement, at + 2)
    readers = [word_reader(operand) for operand in (first, second, third)]
    carry_readers = [predicate_reader(operand) for operand in carry_operands] if statement.has_modifier("X") else []
    addend_reader = _addend_reader(third)

    def run(machine: Machine) -> None:
        total = apply(
            lambda a, b, c, *carry_values: ((a * b) & FULL) + c + sum(carry_values),
            readers[0](machine),
            readers[1](machine),
            addend_reader(machine),
            *(_read_carry(carry_reader, machine) for carry_reader in carry_readers),
        )
        write_sum(machine, name, carry_predicates, total)

    return run


def _build_multiply_wide(statement: SassStatement) -> StepRun:
    name, carry_predicates, at = destinations(statement, 1)
    first, second, third, *carry_operands = statement.operands[at:]
    is_unsigned = statement.has_modifier("U32")
    left_reader, right_reader, addend_reader = word_reader(first), word_reader(second), wide_reader(third)
    carry_readers = [predicate_reader(operand) for operand in carry_operands] if statement.has_modifier("X") else []
    is_high = statement.has_modifier("HI")

    def product(a: Known, b: Known) -> Known:
        return wrap_int64(a * b if is_unsigned else as_signed(a) * as_signed(b))

    def run(machine: Machine) -> None:
        product_value = apply(product, left_reader(machine), right_reader(machine))
        addend = addend_reader(machine)
        total = apply(_sum_64, product_value, addend, *(_read_carry(reader, machine) for reader in carry_readers))
        if carry_predicates:
            write_all(machine, carry_predicates, as_predicate(apply(_is_below_unsigned, total, addend)))
        if not is_high:
            write_wide(machine, name, total)
        elif name is not None:
            machine.write_register(name, apply(lambda t: (t >> 32) & FULL, total))

    return run


_INT64_MINIMUM = -(1 << 63)


def _is_below_unsigned(a: Known, b: Known) -> Known:
    """A < b as unsigned 64-bit numbers."""
    return (a ^ _INT64_MINIMUM) < (b ^ _INT64_MINIMUM)


# ── Shifts ───────────────────────────────────────────────────────────────────────────────────────


def _shift_pair_right(low: Known, high: Known, amount: Known) -> Known:
    """The low word of a register pair shifted right by 0 to 63."""
    if isinstance(amount, np.ndarray):
        clipped_amount = np.minimum(amount, 31)
        return np.where(
            amount < 32,
            ((low >> clipped_amount) | (high << (32 - clipped_amount))) & FULL,
            high >> np.clip(amount - 32, 0, 63),
        )
    return ((low >> amount) | (high << (32 - amount))) & FULL if amount < 32 else high >> (amount - 32)


def _build_shift(statement: SassStatement) -> StepRun:
    name, _, at = destinations(statement, 0)
    low, amount_operand, *high_operands = statement.operands[at:]
    readers = [
        word_reader(low),
        word_reader(amount_operand),
        word_reader(high_operands[0]) if high_operands else (lambda _machine: 0),
    ]
    function = _left_shift_function(statement) if "L" in statement.modifiers[:1] else _right_shift_function(statement)
    return write_run(name, lambda machine: apply(function, *(reader(machine) for reader in readers)))


def _shift_amount(statement: SassStatement, amount: Known) -> Known:
    is_wide = any(kind in statement.modifiers for kind in ("U64", "S64"))
    if statement.has_modifier("W"):
        return amount & (63 if is_wide else 31)
    return minimum(amount, 63 if is_wide else 32)


def _left_shift_function(statement: SassStatement) -> Callable[..., Known]:
    is_high = statement.has_modifier("HI")

    def shift(low: Known, amount: Known, high_word: Known) -> Known:
        amount = _shift_amount(statement, amount)
        if not is_high:
            return (low << minimum(amount, 32)) & FULL
        # The high word of a left-shifted pair has its own bits and those that come up from the low word.
        back = 32 - amount
        if isinstance(amount, np.ndarray):
            near_amount = np.minimum(amount, 32)
            far_amount = np.clip(amount - 32, 0, 31)
            return np.where(
                amount <= 32,
                ((high_word << near_amount) | (low >> (32 - near_amount))) & FULL,
                (low << far_amount) & FULL,
            )
        return ((high_word << amount) | (low >> back)) & FULL if amount <= 32 else (low << (amount - 32)) & FULL

    return shift


def _right_shift_function(statement: SassStatement) -> Callable[..., Known]:
    is_high = statement.has_modifier("HI")
    is_signed = any(kind in statement.modifiers for kind in ("S32", "S64"))

    def shift(low: Known, amount: Known, high_word: Known) -> Known:
        amount = _shift_amount(statement, amount)
        if is_high:
            return (
                (as_signed(high_word) >> minimum(amount, 63)) & FULL if is_signed else high_word >> minimum(amount, 63)
            )
        if is_signed:
            high_word = as_signed(high_word)
            if isinstance(amount, np.ndarray):
                return np.where(amount < 32, _shift_pair_right(low, high_word & FULL, np.minimum(amount, 31)),
                                (high_word >> np.clip(amount - 32, 0, 63)) & FULL)  # fmt: skip
            return (
                _shift_pair_right(low, high_word & FULL, amount) if amount < 32 else (high_word >> (amount - 32)) & FULL
            )
        return _shift_pair_right(low, high_word, amount)

    return shift


def _build_lea(statement: SassStatement) -> StepRun:
    name, carry_predicates, at = destinations(statement, 1)
    source_operands = [o for o in statement.operands[at:] if o.kind is not SassOperandKind.PREDICATE]
    carry_readers = [predicate_reader(o) for o in statement.operands[at:] if o.kind is SassOperandKind.PREDICATE]
    carry_readers = carry_readers if statement.has_modifier("X") else []
    is_high, extends = statement.has_modifier("HI"), statement.has_modifier("SX32")
    first, second, *shift_operands = source_operands
    base_reader, addend_reader, amount_reader = (
        word_reader(first),
        _addend_reader(second),
        word_reader(shift_operands[-1]),
    )
    high_reader = word_reader(shift_operands[0]) if len(shift_operands) > 1 else None

    def scale_address(value: Known, high_word: Known, shift: Known) -> Known:
        if not is_high:
            return (value << shift) & FULL
        upper = (as_signed(value) >> 31) & FULL if extends else high_word
        return ((upper << shift) | (value >> (32 - shift))) & FULL

    def run(machine: Machine) -> None:
        high_word = 0 if high_reader is None else high_reader(machine)
        scaled_value = apply(scale_address, base_reader(machine), high_word, amount_reader(machine))
        total = apply(
            _sum, scaled_value, addend_reader(machine), *(_read_carry(reader, machine) for reader in carry_readers)
        )
        write_sum(machine, name, carry_predicates, total)

    return run


# ── Comparisons ──────────────────────────────────────────────────────────────────────────────────

_COMPARISONS: Mapping[str, Callable[[Any, Any], Any]] = {
    "LT": operator.lt, "LE": operator.le, "GT": operator.gt, "GE": operator.ge, "EQ": operator.eq,
    "NE": operator.ne,
}  # fmt: skip
_COMBINATIONS = {"AND": predicate_and, "OR": predicate_or, "XOR": predicate_xor}
_STRICT_COMPARISONS = {"LT": operator.lt, "LE": operator.lt, "GT": operator.gt, "GE": operator.gt}


def _build_compare(statement: SassStatement) -> StepRun:
    operands = statement.operands
    targets = [None if is_zero_register(o) else o.name for o in operands[:2]]
    first, second, combine, *low_operands = operands[2:]
    name = next((m for m in statement.modifiers if m in _COMPARISONS), None)
    constant_result = next((m == "T" for m in statement.modifiers if m in ("T", "F")), None)
    unsigned = any(kind in statement.modifiers for kind in ("U32", "U64"))
    is_wide = any(kind in statement.modifiers for kind in ("S64", "U64"))
    left_reader, right_reader = (
        (wide_reader(first), wide_reader(second)) if is_wide else (word_reader(first), word_reader(second))
    )
    combine_reader = predicate_reader(combine)
    low_result_reader = predicate_reader(low_operands[0]) if low_operands and statement.has_modifier("EX") else None
    combination = next((_COMBINATIONS[m] for m in statement.modifiers if m in _COMBINATIONS), predicate_and)

    def as_ordered(value: Known) -> Known:
        if is_wide:
            return value ^ _INT64_MINIMUM if unsigned else value
        return value if unsigned else as_signed(value)

    def read_comparison(machine: Machine) -> Value:
        if name is None:
            return bool(constant_result)
        a, b = left_reader(machine), right_reader(machine)
        if low_result_reader is None:
            return as_predicate(apply(lambda x, y: _COMPARISONS[name](as_ordered(x), as_ordered(y)), a, b))
        is_equal = as_predicate(apply(operator.eq, a, b))
        low_result = low_result_reader(machine)
        if name == "NE":
            return predicate_or(invert(is_equal), low_result)
        if name == "EQ":
            return predicate_and(is_equal, low_result)
        is_strict = as_predicate(apply(lambda x, y: _STRICT_COMPARISONS[name](as_ordered(x), as_ordered(y)), a, b))
        return predicate_or(is_strict, predicate_and(is_equal, low_result))

    def run(machine: Machine) -> None:
        comparison, combined_predicate = read_comparison(machine), combine_reader(machine)
        if targets[0] is not None:
            machine.write_register(targets[0], combination(comparison, combined_predicate))
        if targets[1] is not None:
            machine.write_register(targets[1], combination(invert(comparison), combined_predicate))

    return run


def _build_min_max(statement: SassStatement) -> StepRun:
    """IMNMX, VIMNMX: the smaller if the predicate holds, otherwise the larger; VIADDMNMX adds first."""
    name, _, at = destinations(statement, 0)
    value_operands = [o for o in statement.operands[at:] if o.kind is not SassOperandKind.PREDICATE]
    predicate_operands = [o for o in statement.operands[at:] if o.kind is SassOperandKind.PREDICATE]
    unsigned = statement.has_modifier("U32")
    adds_first = "ADD" in statement.base
    readers = [word_reader(operand) for operand in value_operands]
    picks_minimum = predicate_reader(predicate_operands[-1])
    if any("x2" in m or m in ("RELU", "U16", "S16", "U8", "S8", "S64", "U64") for m in statement.modifiers):
        return unsupported_run(name, statement.opcode)

    def extreme_function(function: Any) -> Callable[..., Known]:
        def find_extreme(*values: Known) -> Known:
            if adds_first:
                values = ((values[0] + values[1]) & FULL, *values[2:])
            best = values[0]
            for value in values[1:]:
                a, b = (best, value) if unsigned else (as_signed(best), as_signed(value))
                if isinstance(a, int) and isinstance(b, int):
                    best = (min if function is np.minimum else max)(a, b) & FULL
                else:
                    best = function(a, b) & FULL
            return best

        return find_extreme

    def pick_value(machine: Machine) -> Value:
        values = [reader(machine) for reader in readers]
        minimum, maximum = (apply(extreme_function(np.minimum), *values), apply(extreme_function(np.maximum), *values))
        return select_lanes(picks_minimum(machine), minimum, maximum)

    return write_run(name, pick_value)


def _absolute(a: Known) -> Known:
    return abs(as_signed(a)) & FULL


INTEGER: Mapping[str, RunBuilder] = {
    "IADD": _build_add,
    "IADD3": _build_add,
    "VIADD": _build_add,
    "IADD32I": _build_add,
    "IMAD": _build_multiply,
    "IMUL": operation_builder(lambda a, b: (a * b) & FULL, 2),
    "SHF": _build_shift,
    "SHL": operation_builder(lambda a, by: (a << minimum(by, 32)) & FULL, 2),
    "LEA": _build_lea,
    "ISETP": _build_compare,
    "IMNMX": _build_min_max,
    "VIMNMX": _build_min_max,
    "VIMNMX3": _build_min_max,
    "VIADDMNMX": _build_min_max,
    "IABS": operation_builder(_absolute, 1),
}
"""Opcode, without modifiers and without the `U` of uniform instructions → builder of its run."""
