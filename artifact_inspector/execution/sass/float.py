"""SASS float32 instructions with known inputs: one number in a register, and pairs of registers.

Integer division is computed with floats, and values derived from arguments may be divided. Loaded data is unknown
unless the launch has values.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial, reduce
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from artifact_inspector.execution.interpreter.conversions import as_predicate, float32_bits, float_of
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
    invert,
    select_lanes,
)
from artifact_inspector.execution.sass import operands as op
from artifact_inspector.formats.sass.statement import SassOperand, SassStatement
from artifact_inspector.model.float_formats import FLOAT32, Doubles

Floats: TypeAlias = NDArray[np.floating[Any]]
Comparison: TypeAlias = Callable[[Floats, Floats], Mask]


def _fused_multiply_add(a: Floats, b: Floats, c: Floats) -> Floats:
    """a·b + c of float32s in double precision, rounded to odd so that rounding to float32 is exact."""
    product = a * b  # exact: 24 bits by 24
    rounded_sum = product + c
    recovered_product = rounded_sum - product
    rounding_error = (product - (rounded_sum - recovered_product)) + (c - recovered_product)
    even = np.asarray(rounded_sum, np.float64).view(np.int64) & 1 == 0
    odd = np.nextafter(rounded_sum, np.where(rounding_error > 0, np.inf, -np.inf))
    return np.where((rounding_error != 0) & even & np.isfinite(rounded_sum), odd, rounded_sum)


def _flush_denormals(value: Floats) -> Doubles:
    """Numbers below the normal range of float32 replaced by a signed zero, as `.FTZ` does."""
    flushed = np.where(np.abs(value) < np.finfo(np.float32).tiny, np.copysign(0.0, value), value)
    return np.asarray(flushed, np.float64)


def _arithmetic_builder(function: Callable[..., Floats], registers: int = 1) -> op.RunBuilder:
    """Builder of an instruction on one register, or on two in a row (FADD2, FMUL2, FFMA2)."""

    def reader_of(operand: SassOperand, step: int) -> op.Reader:
        is_repeated = operand.kind in op.LITERALS or "F32" in operand.suffixes
        return op.word_reader(operand, is_float=True, word_offset=0 if is_repeated else step)

    def build(statement: SassStatement) -> op.StepRun:
        name, _, at = op.destinations(statement, 0)
        sources, _ = op.split_predicates(statement.operands[at:])
        flushes_denormals = statement.has_modifier("FTZ")
        saturates = statement.has_modifier("SAT")
        direction = next((_DIRECTIONS[m] for m in statement.modifiers if m in _DIRECTIONS), None)
        readers = [[reader_of(operand, step) for operand in sources] for step in range(registers)]

        def run(machine: Machine) -> None:
            rounding = machine.memory.rounding

            def compute(*values: Known) -> Word:
                operands: Sequence[Doubles] = [float_of(value).astype(np.float64) for value in values]
                with np.errstate(all="ignore"):
                    operands = [*map(_flush_denormals, operands)] if flushes_denormals else operands
                    result = function(*rounding.split_fused(operands, FLOAT32))
                    if direction or rounding.is_random:
                        result = rounding.to_format(np.asarray(result, np.float64), FLOAT32, direction=direction)
                    if saturates:
                        result = np.where(np.isnan(result), 0.0, np.clip(result, 0.0, 1.0))
                    return float32_bits(_flush_denormals(np.float32(result)) if flushes_denormals else result)

            results = [apply(compute, *(reader(machine) for reader in part)) for part in readers]
            for step, result in enumerate(results):
                machine.write_register(op.register_after(name or "RZ", step), result)

        return run if name is not None else lambda _machine: None

    return build


_DIRECTIONS: Mapping[str, Callable[[Doubles], Doubles]] = {"RZ": np.trunc, "RM": np.floor, "RP": np.ceil}
"""Rounding modes other than to nearest."""
_COMPARISONS: Mapping[str, np.ufunc] = {
    "LT": np.less, "LE": np.less_equal, "GT": np.greater, "GE": np.greater_equal, "EQ": np.equal, "NE": np.not_equal,
}  # fmt: skip

_ORDERS = ("NUM", "NAN")


def comparison_of(statement: SassStatement) -> Comparison | None:
    """The comparison of an instruction: with NaN it is false, also NE, or true if its name ends in U.

    NUM holds if neither is NaN, NAN if one is.
    """
    name = next((m for m in statement.modifiers if m in _ORDERS or m.removesuffix("U") in _COMPARISONS), None)
    if name is None:
        return None
    is_order = name in _ORDERS
    nan_result = name == "NAN" if is_order else name.endswith("U")
    function = (lambda *_: not nan_result) if is_order else _COMPARISONS[name.removesuffix("U")]

    def compare(a: Floats, b: Floats) -> Mask:
        result = np.where(np.isnan(a) | np.isnan(b), nan_result, function(a, b))
        return result if result.ndim else bool(result)

    return compare


def _build_set(statement: SassStatement) -> op.StepRun:
    """FSET: a comparison as a number, 1.0 with `.BF` and all bits without."""
    name, _, at = op.destinations(statement, 0)
    sources, predicates = op.split_predicates(statement.operands[at:])
    compare = comparison_of(statement)
    is_plain = statement.has_modifier("AND") and all(one.name in ("PT", "UPT") for one in predicates)
    if compare is None or not is_plain:
        return op.unknown_result_run(name, statement)
    true_word = 0x3F800000 if statement.has_modifier("BF") else FULL
    readers = [op.word_reader(source, is_float=True) for source in sources]

    def set_word(a: Known, b: Known) -> Known:
        return np.asarray(compare(float_of(a), float_of(b)), np.int64) * true_word

    return op.write_run(name, lambda machine: apply(set_word, *(reader(machine) for reader in readers)))


def comparison_builder(
    reader_of: Callable[[SassOperand], op.Reader], numbers_of: Callable[[Known], Floats]
) -> op.RunBuilder:
    """Builder of a comparison that writes its result and the negation of it."""

    def build(statement: SassStatement) -> op.StepRun:
        sources, predicates = op.split_predicates(statement.operands[2:])
        readers, compare = [reader_of(source) for source in sources], comparison_of(statement)

        def read_results(machine: Machine) -> tuple[Value, Value]:
            if compare is None:
                result: Value = machine.unknown_value(f"the result of {statement.opcode}")
            else:
                result = apply(
                    lambda a, b: compare(numbers_of(a), numbers_of(b)), *(reader(machine) for reader in readers)
                )
            if isinstance(result, UnknownValue):
                result = result._replace(data=as_mask(result.data))
            result = as_predicate(result)
            return result, invert(result)

        return op.comparison_run(statement, predicates, read_results)

    return build


def min_max_run(
    statement: SassStatement,
    readers: Sequence[op.Reader],
    over: Callable[[Callable[..., Doubles]], Callable[..., Known]],
) -> op.StepRun:
    """The smallest number if the last predicate holds, otherwise the largest.

    Args:
        statement: with `.NAN`, a NaN is the result; otherwise the other number is.
        readers: of the operands.
        over: makes a function of registers from one of numbers.
    """
    name, _, at = op.destinations(statement, 0)
    picks_minimum = op.predicate_reader(op.split_predicates(statement.operands[at:])[1][-1])
    functions = (np.minimum, np.maximum) if statement.has_modifier("NAN") else (np.fmin, np.fmax)
    smallest, largest = (over(lambda *numbers, f=function: reduce(f, numbers)) for function in functions)

    def pick(machine: Machine) -> Value:
        values = [reader(machine) for reader in readers]
        return select_lanes(picks_minimum(machine), apply(smallest, *values), apply(largest, *values))

    return op.write_run(name, pick)


def _build_min_max(statement: SassStatement) -> op.StepRun:
    name, _, at = op.destinations(statement, 0)
    sources, predicates = op.split_predicates(statement.operands[at:])
    if len(predicates) != 1 or statement.has_modifier("XORSIGN"):
        return op.unknown_result_run(name, statement)
    readers = [op.word_reader(source, is_float=True) for source in sources]
    return min_max_run(
        statement, readers, lambda function: lambda *words: float32_bits(function(*map(float_of, words)))
    )


def _build_division_check(statement: SassStatement) -> op.StepRun:
    """FCHK: whether a division needs the slow path. Both paths round correctly, so its exact range does not matter."""
    name = statement.operands[0].name
    readers = [op.word_reader(operand, is_float=True) for operand in statement.operands[1:3]]

    def is_slow(dividend: Any, divisor: Any) -> Mask:
        with np.errstate(all="ignore"):
            x, y = np.abs(float_of(dividend)), np.abs(float_of(divisor))
            is_usual = (x >= _LEAST_USUAL) & (x <= 1 / _LEAST_USUAL) & (y >= _LEAST_USUAL) & (y <= 1 / _LEAST_USUAL)
        return ~np.asarray(is_usual | ((x == 0) & (y >= _LEAST_USUAL)))

    return lambda machine: machine.write_register(
        name, as_predicate(apply(is_slow, *(reader(machine) for reader in readers)))
    )


_LEAST_USUAL = 2.0**-60
"""Operands from here to its reciprocal, and their quotients, are normal numbers far from overflow."""


FLOAT: Mapping[str, op.RunBuilder] = {
    "FADD": _arithmetic_builder(lambda a, b: a + b), "FMUL": _arithmetic_builder(lambda a, b: a * b),
    "FFMA": _arithmetic_builder(_fused_multiply_add), "FADD2": _arithmetic_builder(lambda a, b: a + b, 2),
    "FMUL2": _arithmetic_builder(lambda a, b: a * b, 2), "FFMA2": _arithmetic_builder(_fused_multiply_add, 2),
    "FSETP": comparison_builder(partial(op.word_reader, is_float=True), float_of), "FSET": _build_set,
    **dict.fromkeys(("FMNMX", "FMNMX3"), _build_min_max), "FCHK": _build_division_check
}  # fmt: skip
"""Opcode, without modifiers and without the `U` of uniform instructions → builder of its run."""
