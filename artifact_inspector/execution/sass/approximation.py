"""SASS approximations (`MUFU`), computed only if the launch has values; each is off by at most the stated error.

**Source** CUDA C++ Programming Guide, "Mathematical Functions Appendix", intrinsic functions; PTX ISA, `ex2.approx`,
`lg2.approx`, `rsqrt.approx`, `sin.approx`, `tanh.approx`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

import numpy as np

from artifact_inspector.execution.interpreter.conversions import without_dimensions
from artifact_inspector.execution.interpreter.machine import Machine
from artifact_inspector.execution.interpreter.values import Known, Value, apply
from artifact_inspector.execution.sass import operands as op
from artifact_inspector.formats.sass.statement import SassStatement
from artifact_inspector.model.float_formats import FLOAT32, Doubles, Rounding, bits_of, numbers_of

_APPROXIMATIONS: Mapping[str, tuple[Callable[[Doubles], Doubles], float, float]] = {
    # function, relative error, absolute error
    "RCP": (lambda x: 1 / x, 2**-23, 0.0),
    "EX2": (np.exp2, 2**-22, 0.0),
    "LG2": (np.log2, 2**-23, 2**-22),
    "RSQ": (lambda x: 1 / np.sqrt(x), 2**-22, 0.0),
    "SQRT": (np.sqrt, 2**-22, 0.0),
    "SIN": (lambda x: np.sin(2 * np.pi * x), 0.0, 2**-20),
    "COS": (lambda x: np.cos(2 * np.pi * x), 0.0, 2**-20),
    "TANH": (np.tanh, 2**-10.9, 0.0),
}


def build_approximation(statement: SassStatement) -> op.StepRun:
    """MUFU, if the launch has values; otherwise only a reciprocal, whose error every division corrects."""
    name, _, at = op.destinations(statement, 0)
    kind = next((m for m in statement.modifiers if m in _APPROXIMATIONS), None)
    if kind is None or any("F16" in m for m in statement.modifiers):
        return op.unknown_result_run(name, statement)
    function, relative_error, absolute_error = _APPROXIMATIONS[kind]
    reader = op.word_reader(statement.operands[at], is_float=True)

    def approximate(word: Known, rounding: Rounding) -> Known:
        with np.errstate(all="ignore"):
            result = np.asarray(function(numbers_of(word, FLOAT32)))
            return without_dimensions(bits_of(rounding.approximate(result, relative_error, absolute_error), FLOAT32))

    def read_result(machine: Machine) -> Value:
        if machine.memory.values is None and statement.modifiers != ("RCP",):
            return machine.unknown_value(f"the result of {statement.opcode}")
        return apply(partial(approximate, rounding=machine.memory.rounding), reader(machine))

    return op.write_run(name, read_result)
