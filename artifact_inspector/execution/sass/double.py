"""SASS instructions on doubles, each in two registers."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from artifact_inspector.execution.interpreter.conversions import without_dimensions
from artifact_inspector.execution.interpreter.values import Known, apply
from artifact_inspector.execution.sass import operands as op
from artifact_inspector.execution.sass.float import comparison_builder
from artifact_inspector.formats.sass.statement import SassOperand, SassStatement
from artifact_inspector.model.float_formats import Doubles


def _build_double_arithmetic(function: Callable[..., Doubles]) -> op.RunBuilder:
    def build(statement: SassStatement) -> op.StepRun:
        name, _, at = op.destinations(statement, 0)
        readers = [_double_reader(operand) for operand in statement.operands[at:]]

        def compute(*words: Known) -> Known:
            with np.errstate(all="ignore"):
                return without_dimensions(np.asarray(function(*map(_doubles, words))).view(np.int64))

        return lambda machine: op.write_wide(machine, name, apply(compute, *(reader(machine) for reader in readers)))

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
    "DADD": _build_double_arithmetic(lambda a, b: a + b),
    "DMUL": _build_double_arithmetic(lambda a, b: a * b),
    "DFMA": _build_double_arithmetic(lambda a, b, c: a * b + c),
    "DSETP": comparison_builder(_double_reader, _doubles),
}
"""Opcode without modifiers → builder of its run."""
