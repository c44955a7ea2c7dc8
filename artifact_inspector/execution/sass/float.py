"""SASS float32 instructions with known inputs.

Integer division is computed with floats, and values derived from arguments may be divided. Loaded data is unknown
unless the launch has values.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from fractions import Fraction
from functools import partial, reduce
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from artifact_inspector.execution.interpreter.conversions import (
    apply_distinct,
    as_predicate,
    float32_bits,
    float_of,
    truncate,
    wrap_int64,
)
from artifact_inspector.execution.interpreter.machine import Machine
from artifact_inspector.execution.interpreter.values import (
    FULL,
    Known,
    Mask,
    UnknownValue,
    Value,
    Word,
    apply,
    as_mask,
    as_signed,
    invert,
    join_words,
    select_lanes,
)
from artifact_inspector.execution.sass import operands as op
from artifact_inspector.formats.sass.statement import SassStatement
from artifact_inspector.model.float_formats import FLOAT32, FORMATS, NEAREST, bits_of

_Floats: TypeAlias = NDArray[np.floating[Any]]


def _fused_multiply_add(a: _Floats, b: _Floats, c: _Floats) -> _Floats:
    """a·b + c of float32s in double precision, rounded to odd so that rounding to float32 is exact."""
    product = a * b  # exact: 24 bits by 24
    rounded_sum = product + c
    recovered_product = rounded_sum - product
    rounding_error = (product - (rounded_sum - recovered_product)) + (c - recovered_product)
    even = np.asarray(rounded_sum, np.float64).view(np.int64) & 1 == 0
    odd = np.nextafter(rounded_sum, np.where(rounding_error > 0, np.inf, -np.inf))
    return np.where((rounding_error != 0) & even & np.isfinite(rounded_sum), odd, rounded_sum)


def _flush_denormals(value: _Floats) -> _Floats:
    """Numbers below the normal range replaced by a signed zero, as `.FTZ` does."""
    return np.where(np.abs(value) < np.finfo(np.float32).tiny, np.copysign(0.0, value), value)


def _unknown_result(name: str | None, statement: SassStatement) -> op.StepRun:
    return op.unknown_run(name, f"the result of {statement.opcode}")


def _float_reader(function: Callable[..., Known], *readers: op.Reader) -> op.Reader:
    """Reader of a function of float registers, without warnings of overflows and NaNs."""

    def call_quietly(*values: Known) -> Known:
        with np.errstate(all="ignore"):
            return function(*values)

    return lambda machine: apply(call_quietly, *(reader(machine) for reader in readers))


def _arithmetic_builder(function: Callable[..., _Floats]) -> op.RunBuilder:
    def build(statement: SassStatement) -> op.StepRun:
        name, _, at = op.destinations(statement, 0)
        sources, _ = op.split_predicates(statement.operands[at:])
        flushes_denormals = statement.has_modifier("FTZ")

        towards_zero, saturates = statement.has_modifier("RZ"), statement.has_modifier("SAT")
        readers = [op.word_reader(operand, is_float=True) for operand in sources]
        if {"RM", "RP"} & set(statement.modifiers):  # other rounding modes
            return _unknown_result(name, statement)

        def read_result(machine: Machine) -> Value:
            rounding = machine.memory.rounding

            def compute(*values: Known) -> Word:
                operands: list[_Floats] = [float_of(value).astype(np.float64) for value in values]
                with np.errstate(all="ignore"):
                    operands = [*map(_flush_denormals, operands)] if flushes_denormals else operands
                    if rounding.is_random and len(operands) == 3:  # others may round the product
                        product = np.asarray(operands[0] * operands[1], np.float64)
                        operands = [rounding.to_format(product, FLOAT32), np.ones(()), operands[2]]
                    result = function(*operands)
                    if towards_zero or rounding.is_random:
                        result = rounding.to_format(np.asarray(result, np.float64), FLOAT32, towards_zero=towards_zero)
                    if saturates:
                        result = np.where(np.isnan(result), 0.0, np.clip(result, 0.0, 1.0))
                    return float32_bits(_flush_denormals(np.float32(result)) if flushes_denormals else result)

            return apply(compute, *(reader(machine) for reader in readers))

        return op.write_run(name, read_result)

    return build


_COMPARISONS: Mapping[str, tuple[np.ufunc, bool]] = {
    # second: the result if an operand is NaN
    "LT": (np.less, False), "LE": (np.less_equal, False), "GT": (np.greater, False),
    "GE": (np.greater_equal, False), "EQ": (np.equal, False), "NE": (np.not_equal, False),
    "LTU": (np.less, True), "LEU": (np.less_equal, True), "GTU": (np.greater, True),
    "GEU": (np.greater_equal, True), "EQU": (np.equal, True), "NEU": (np.not_equal, True),
}  # fmt: skip


def _compare(name: str, a: Known, b: Known) -> Mask:
    function, nan_result = _COMPARISONS[name]
    x, y = float_of(a), float_of(b)
    comparison = np.where(np.isnan(x) | np.isnan(y), nan_result, function(x, y))
    return comparison if comparison.ndim else bool(comparison)


def _build_set(statement: SassStatement) -> op.StepRun:
    """FSET: a comparison as a number, 1.0 with `.BF` and all bits without."""
    name, _, at = op.destinations(statement, 0)
    sources, predicates = op.split_predicates(statement.operands[at:])
    comparison = next((m for m in statement.modifiers if m in _COMPARISONS), None)
    is_plain = statement.has_modifier("AND") and all(one.name in ("PT", "UPT") for one in predicates)
    if comparison is None or not is_plain:
        return _unknown_result(name, statement)
    true_word = 0x3F800000 if statement.has_modifier("BF") else FULL
    reader = _float_reader(
        lambda a, b: np.asarray(_compare(comparison, a, b), np.int64) * true_word,
        *(op.word_reader(source, is_float=True) for source in sources),
    )
    return op.write_run(name, reader)


def _build_compare(statement: SassStatement) -> op.StepRun:
    operands = statement.operands
    targets = [*map(op.writable_name, operands[:2])]
    name = next((m for m in statement.modifiers if m in _COMPARISONS), None)
    combine_reader: op.Reader = op.predicate_reader(operands[4]) if len(operands) > 4 else (lambda _machine: True)
    is_or, is_xor = statement.has_modifier("OR"), statement.has_modifier("XOR")

    read_comparison = _float_reader(
        partial(_compare, name or ""), *(op.word_reader(operand, is_float=True) for operand in operands[2:4])
    )

    def run(machine: Machine) -> None:
        unknown_result = machine.unknown_value(f"the result of {statement.opcode}")
        comparison = unknown_result if name is None else read_comparison(machine)
        if isinstance(comparison, UnknownValue):
            comparison = as_predicate(comparison._replace(data=as_mask(comparison.data)))
        combined = combine_reader(machine)
        for target, value in zip(targets, (comparison, invert(comparison)), strict=True):
            if target is not None:
                yes: Value = True if is_or else invert(value) if is_xor else value
                no: Value = value if is_or or is_xor else False
                machine.write_register(target, select_lanes(combined, yes, no))

    return run


def _build_min_max(statement: SassStatement) -> op.StepRun:
    name, _, at = op.destinations(statement, 0)
    sources, predicates = op.split_predicates(statement.operands[at:])
    if len(predicates) != 1 or statement.has_modifier("XORSIGN"):
        return _unknown_result(name, statement)
    readers = [op.word_reader(source, is_float=True) for source in sources]
    picks_minimum = op.predicate_reader(predicates[0])
    functions = (np.minimum, np.maximum) if statement.has_modifier("NAN") else (np.fmin, np.fmax)

    def pick(machine: Machine) -> Value:
        values = [reader(machine) for reader in readers]
        extremes = [
            apply(lambda *words, f=function: float32_bits(reduce(f, map(float_of, words))), *values)
            for function in functions
        ]
        return select_lanes(picks_minimum(machine), *extremes)

    return op.write_run(name, pick)


# ── Conversions ──────────────────────────────────────────────────────────────────────────────────


def _round_to_float32(number: int, rounding: str | None) -> int:
    """The bits of a float32 for an integer, rounded up, down, towards zero, or to nearest."""
    nearest = np.float32(number)
    exact = int(nearest) if np.isfinite(nearest) else 0
    if rounding == "RP" and exact < number:
        nearest = np.nextafter(nearest, np.float32(np.inf))
    elif rounding == "RM" and exact > number:
        nearest = np.nextafter(nearest, np.float32(-np.inf))
    elif rounding == "RZ" and abs(exact) > abs(number):
        nearest = np.nextafter(nearest, np.float32(0))
    return int(nearest.view(np.uint32))


_ROUNDINGS = ("RP", "RM", "RZ")
_NARROW = {"U8": 8, "S8": 8, "U16": 16, "S16": 16}


def _build_from_integer(statement: SassStatement) -> op.StepRun:
    name, _, at = op.destinations(statement, 0)
    operand = statement.operands[at]
    modifiers = statement.modifiers
    rounding = next((m for m in modifiers if m in _ROUNDINGS), None)
    kind = next((m for m in modifiers if m[0] in "US" and m[1:].isdigit()), "S32")
    half = next((FORMATS[m] for m in modifiers if m in ("F16", "BF16")), None)
    if "F64" in modifiers or (half is not None and rounding is not None):
        return _unknown_result(name, statement)
    low_reader = op.word_reader(operand)
    high_reader = op.word_reader(operand, word_offset=1) if kind in ("U64", "S64") else None
    shift = next((8 * int(s[1]) for s in operand.suffixes if s in ("B1", "B2", "B3")), 0)
    shift = 16 if "H1" in operand.suffixes else shift

    def convert_number(value: int) -> int:
        bits = _NARROW.get(kind)
        if bits is not None:
            value = truncate(value >> shift, bits, is_signed=kind[0] == "S")
        elif kind == "S32":
            value = as_signed(value)
        elif kind == "U64":
            value &= (1 << 64) - 1
        if half is not None:
            return int(bits_of(NEAREST.to_format(np.array(float(value)), half), half))
        return _round_to_float32(value, rounding)

    def convert_words(value: Known) -> Word:
        words = np.asarray(value, np.int64) & 0xFFFFFFFF
        return float32_bits((words if kind == "U32" else words.astype(np.int32)).astype(np.float32))

    is_plain = half is None and rounding is None and kind in ("S32", "U32") and high_reader is None
    convert = convert_words if is_plain else partial(apply_distinct, convert_number)

    def read_converted(machine: Machine) -> Value:
        value = low_reader(machine) if high_reader is None else join_words(low_reader(machine), high_reader(machine))
        return apply(convert, value)

    return op.write_run(name, read_converted)


def _build_to_integer(statement: SassStatement) -> op.StepRun:
    name, _, at = op.destinations(statement, 0)
    modifiers = statement.modifiers
    kind = next((m for m in modifiers if m[0] in "US" and m[1:].isdigit()), "S32")
    if any(m in modifiers for m in ("F16", "F64", "BF16")):
        return _unknown_result(name, statement)
    reader = op.word_reader(statement.operands[at], is_float=True)
    bits, is_unsigned = int(kind[1:]), kind[0] == "U"
    lowest, highest = (0, (1 << bits) - 1) if is_unsigned else (-(1 << bits - 1), (1 << bits - 1) - 1)
    round_number = next((_TO_INTEGER[m] for m in modifiers if m in _TO_INTEGER), round)

    def convert_number(float_bits: int) -> int:
        value = float(float_of(float_bits))
        if np.isnan(value):
            return wrap_int64(0 if is_unsigned else 1 << bits - 1)
        rounded = (highest if value > 0 else lowest) if np.isinf(value) else round_number(Fraction(value))
        return wrap_int64(min(max(rounded, lowest), highest) & ((1 << bits) - 1))

    def read_converted(machine: Machine) -> Value:
        return apply(partial(apply_distinct, convert_number), reader(machine))

    if bits == 64:
        return lambda machine: op.write_wide(machine, name, read_converted(machine))
    return op.write_run(name, lambda machine: apply(lambda v: v & FULL, read_converted(machine)))


_TO_INTEGER: Mapping[str, Callable[[Fraction], int]] = {"TRUNC": int, "FLOOR": math.floor, "CEIL": math.ceil}
"""Rounding → function; to the nearest even number by default."""


def _build_division_check(statement: SassStatement) -> op.StepRun:
    """FCHK: whether a division needs the slow path; not simulated."""
    name = statement.operands[0].name
    return lambda machine: machine.write_register(
        name, machine.unknown_result(name, f"the result of {statement.opcode}")
    )


FLOAT: Mapping[str, op.RunBuilder] = {
    "FADD": _arithmetic_builder(lambda a, b: a + b),
    "FMUL": _arithmetic_builder(lambda a, b: a * b),
    "FFMA": _arithmetic_builder(_fused_multiply_add),
    "FSETP": _build_compare,
    "FSET": _build_set,
    **dict.fromkeys(("FMNMX", "FMNMX3"), _build_min_max),
    **dict.fromkeys(("I2F", "I2FP"), _build_from_integer),
    "F2I": _build_to_integer,
    "FCHK": _build_division_check,
}
"""Opcode, without modifiers and without the `U` of uniform instructions → builder of its run."""
