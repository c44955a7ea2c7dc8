"""SASS conversions between integers and float formats, and roundings to integral numbers."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from fractions import Fraction
from functools import partial

import numpy as np

from artifact_inspector.execution.interpreter.conversions import (
    apply_distinct,
    float32_bits,
    float_of,
    truncate,
    without_dimensions,
    wrap_int64,
)
from artifact_inspector.execution.interpreter.machine import Machine
from artifact_inspector.execution.interpreter.values import FULL, Known, Value, Word, apply, as_signed, join_words
from artifact_inspector.execution.sass import operands as op
from artifact_inspector.formats.sass.statement import SassStatement
from artifact_inspector.model.float_formats import (
    FLOAT16,
    FLOAT32,
    FORMATS,
    NEAREST,
    Doubles,
    FloatFormat,
    Rounding,
    bits_of,
    numbers_of,
)


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
        return op.unknown_result_run(name, statement)
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
        return op.unknown_result_run(name, statement)
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


def _build_pack(statement: SassStatement) -> op.StepRun:
    """F2FP: two numbers as a pair of halves or of bytes, or bytes as a pair of halves."""
    name, _, at = op.destinations(statement, 0)
    modifiers = statement.modifiers
    formats = [FORMATS[m] for m in modifiers if m in FORMATS]
    if "RELU" in modifiers or any(m.startswith(("E2M", "E3M", "UE8", "E8")) for m in modifiers):
        return op.unknown_result_run(name, statement)
    target = formats[0] if formats else FLOAT16
    source = formats[1] if len(formats) > 1 else FLOAT32
    direction = np.trunc if "RZ" in modifiers else None
    if any(m.startswith("UNPACK_B") for m in modifiers):
        return _build_unpack(statement, name, at, target, source)
    readers = [op.word_reader(operand, is_float=True) for operand in statement.operands[at:]]
    if source is not FLOAT32 or any("H1" in s for operand in statement.operands[at:] for s in operand.suffixes):
        return op.unknown_result_run(name, statement)

    def pack(rounding: Rounding, high: Known, low: Known, upper_half: Known = 0) -> Known:
        numbers = [rounding.to_format(numbers_of(word, FLOAT32), target, direction=direction) for word in (high, low)]
        packed = bits_of(numbers[0], target) << target.bits | bits_of(numbers[1], target)
        if target.bits == 8:
            packed = packed | (np.asarray(upper_half, np.int64) & 0xFFFF) << 16
        return without_dimensions(packed)

    def read_result(machine: Machine) -> Value:
        return apply(partial(pack, machine.memory.rounding), *(reader(machine) for reader in readers))

    return op.write_run(name, read_result)


def _build_unpack(
    statement: SassStatement, name: str | None, at: int, target: FloatFormat, source: FloatFormat
) -> op.StepRun:
    operand = statement.operands[at]
    reader, shift = op.word_reader(operand), 16 if "H1" in operand.suffixes else 0

    def unpack(word: Known) -> Known:
        bits = np.asarray(word, np.int64) >> shift
        low, high = (bits_of(numbers_of(bits >> by, source), target) for by in (0, 8))
        return without_dimensions(high << 16 | low)

    return op.write_run(name, lambda machine: apply(unpack, reader(machine)))


def _build_convert(statement: SassStatement) -> op.StepRun:
    """F2F: one number in another format; the target comes first."""
    name, _, at = op.destinations(statement, 0)
    kinds = [m for m in statement.modifiers if m in FORMATS or m == "F64"]
    operand = statement.operands[at]
    if len(kinds) != 2 or {"RELU", "SAT", "RM", "RP"} & set(statement.modifiers):
        return op.unknown_result_run(name, statement)
    direction = np.trunc if statement.has_modifier("RZ") else None
    reader = op.wide_reader(operand) if kinds[1] == "F64" else op.word_reader(operand, is_float=True)
    shift = 16 if "H1_H1" in operand.suffixes else 0

    def run(machine: Machine) -> None:
        rounding = machine.memory.rounding

        def convert(word: Known) -> Known:
            bits = np.asarray(word, np.int64)
            number = bits.view(np.float64) if kinds[1] == "F64" else numbers_of(bits >> shift, FORMATS[kinds[1]])
            if kinds[0] == "F64":
                return without_dimensions(number.view(np.int64))
            target = FORMATS[kinds[0]]
            return without_dimensions(bits_of(rounding.to_format(number, target, direction=direction), target))

        value = apply(convert, reader(machine))
        if kinds[0] == "F64":
            op.write_wide(machine, name, value)
        elif name is not None:
            machine.write_register(name, value)

    return run


_INTEGRAL: Mapping[str, Callable[[Doubles], Doubles]] = {"FLOOR": np.floor, "CEIL": np.ceil, "TRUNC": np.trunc}


def _build_round(statement: SassStatement) -> op.StepRun:
    """FRND: to an integral float32."""
    name, _, at = op.destinations(statement, 0)
    if any(m in statement.modifiers for m in ("F16", "F64", "BF16")):
        return op.unknown_result_run(name, statement)
    function = next((_INTEGRAL[m] for m in statement.modifiers if m in _INTEGRAL), np.rint)
    reader = op.word_reader(statement.operands[at], is_float=True)
    return op.write_run(
        name,
        lambda machine: apply(
            lambda word: without_dimensions(bits_of(function(numbers_of(word, FLOAT32)), FLOAT32)), reader(machine)
        ),
    )


FLOAT_CONVERSIONS: Mapping[str, op.RunBuilder] = {
    **dict.fromkeys(("I2F", "I2FP"), _build_from_integer), "F2I": _build_to_integer, "F2FP": _build_pack,
    "F2F": _build_convert, "FRND": _build_round
}  # fmt: skip
"""Opcode, without modifiers and without the `U` of uniform instructions → builder of its run."""
