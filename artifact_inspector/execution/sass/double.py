"""SASS instructions on doubles, each in two registers."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from artifact_inspector.execution.interpreter.conversions import without_dimensions
from artifact_inspector.execution.interpreter.machine import Machine
from artifact_inspector.execution.interpreter.values import Known, apply
from artifact_inspector.execution.sass import operands as op
from artifact_inspector.execution.sass.float import comparison_builder
from artifact_inspector.formats.sass.statement import SassOperand, SassStatement
from artifact_inspector.model.float_formats import FLOAT64, Doubles

_SPLITTER = float((1 << 27) + 1)


def _multiply_add(a: Doubles, b: Doubles, c: Doubles) -> Doubles:
    """a·b + c with the error of the product and of the sum, which a wider format can hold (x87; else rounded once).

    **Source** T. J. Dekker, "A floating-point technique for extending the available precision" (1971).
    """
    product = a * b
    a_high, b_high = (x * _SPLITTER - (x * _SPLITTER - x) for x in (a, b))
    a_low, b_low = a - a_high, b - b_high
    product_error = a_low * b_low - (((product - a_high * b_high) - a_low * b_high) - a_high * b_low)
    rounded_sum = product + c
    recovered = rounded_sum - product
    error = product_error + ((product - (rounded_sum - recovered)) + (c - recovered))
    return np.asarray(np.asarray(rounded_sum, np.longdouble) + np.where(np.isfinite(error), error, 0))


def _build_double_arithmetic(function: Callable[..., Doubles]) -> op.RunBuilder:
    def build(statement: SassStatement) -> op.StepRun:
        name, _, at = op.destinations(statement, 0)
        readers = [_double_reader(operand) for operand in statement.operands[at:]]

        def run(machine: Machine) -> None:
            rounding = machine.memory.rounding

            def compute(*words: Known) -> Known:
                with np.errstate(all="ignore"):
                    exact = function(*rounding.split_fused([*map(_doubles, words)], FLOAT64))
                    return without_dimensions(rounding.to_format(exact, FLOAT64).astype(np.float64).view(np.int64))

            op.write_wide(machine, name, apply(compute, *(reader(machine) for reader in readers)))

        return run

    return build


def _doubles(words: Known) -> Doubles:
    return np.asarray(words, np.int64).view(np.float64)


def _double_reader(operand: SassOperand) -> op.Reader:
    if operand.kind in op.LITERALS:
        bits = int(np.array(operand.real).view(np.int64))
        return lambda _machine: bits
    reader = op.wide_reader(operand._replace(is_negated=False, is_absolute=False))

    def change(word: Known) -> Known:
        bits = np.asarray(word, np.int64)
        if operand.is_absolute:
            bits = bits & 0x7FFFFFFFFFFFFFFF
        if operand.is_negated:
            bits = bits ^ np.int64(-(1 << 63))
        return without_dimensions(bits)

    return lambda machine: apply(change, reader(machine))


DOUBLE: Mapping[str, op.RunBuilder] = {
    "DADD": _build_double_arithmetic(lambda a, b: _multiply_add(a, np.ones(()), b)),
    "DMUL": _build_double_arithmetic(lambda a, b: _multiply_add(a, b, np.full((), -0.0))),
    "DFMA": _build_double_arithmetic(_multiply_add), "DSETP": comparison_builder(_double_reader, _doubles),
}  # fmt: skip
"""Opcode without modifiers → builder of its run."""
