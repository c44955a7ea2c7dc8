"""SASS instructions on packed numbers: two halves in a register."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import reduce

import numpy as np

from artifact_inspector.execution.interpreter.conversions import as_predicate, without_dimensions
from artifact_inspector.execution.interpreter.machine import Machine
from artifact_inspector.execution.interpreter.values import (
    FULL,
    Known,
    Value,
    apply,
    apply_to_bits,
    data_of,
    unknown_bits_of,
    with_unknown_bits,
)
from artifact_inspector.execution.sass import operands as op
from artifact_inspector.execution.sass.float import comparison_of, min_max_run
from artifact_inspector.formats.sass.statement import SassOperand, SassStatement
from artifact_inspector.model.float_formats import (
    BFLOAT16,
    FLOAT16,
    FLOAT32,
    NEAREST,
    Bits,
    Doubles,
    FloatFormat,
    bits_of,
    numbers_of,
)


def half_format(statement: SassStatement) -> FloatFormat:
    """The format of an instruction on halves."""
    return BFLOAT16 if any("BF16" in modifier for modifier in statement.modifiers) else FLOAT16


def half_pair_readers(operands: Sequence[SassOperand], source: FloatFormat) -> list[op.Reader]:
    """Readers of pairs of halves as words; two literals in a row are one pair, the high half first."""
    readers: list[op.Reader] = []
    rest = list(operands)
    while rest:
        operand = rest.pop(0)
        if operand.kind in op.LITERALS and rest and rest[0].kind in op.LITERALS:
            high, low = (_literal_bits(one, source) for one in (operand, rest.pop(0)))
            readers.append(_constant_reader(high << 16 | low))
        else:
            readers.append(_half_reader(operand, source))
    return readers


def _constant_reader(word: int) -> op.Reader:
    return lambda _machine: word


def _literal_bits(operand: SassOperand, source: FloatFormat) -> int:
    number = np.array(operand.real)
    return int(bits_of(NEAREST.to_format(number, source), source))


def _half_reader(operand: SassOperand, source: FloatFormat) -> op.Reader:
    """Reader of the two halves that an operand's suffix picks, with its signs."""
    suffixes = operand.suffixes
    if operand.kind in op.LITERALS:  # one literal for both
        return _constant_reader(_literal_bits(operand, source) * 0x10001)
    reader = op.word_reader(operand._replace(is_negated=False, is_absolute=False))

    if "F32" in suffixes or any(s.startswith("H") and s not in ("H0_H0", "H1_H1", "H0_NH1") for s in suffixes):
        return lambda machine: machine.unknown_value("a half that is not modelled")

    def pick(value: Known) -> Bits:
        word = np.asarray(value, np.int64)
        if "H0_H0" in suffixes:
            word = (word & 0xFFFF) * 0x10001
        elif "H1_H1" in suffixes:
            word = (word >> 16 & 0xFFFF) * 0x10001
        return word

    def change(value: Known) -> Known:
        word = pick(value)
        if operand.is_absolute:
            word = word & 0x7FFF7FFF
        if operand.is_negated:
            word = word ^ 0x80008000
        if "H0_NH1" in suffixes:
            word = word ^ 0x80000000
        return without_dimensions(word)

    def read(machine: Machine) -> Value:
        value = reader(machine)
        return with_unknown_bits(change(data_of(value)), pick(unknown_bits_of(value)), value)

    return read


def _numbers_in(words: Sequence[Known], shift: int, source: FloatFormat) -> list[Doubles]:
    return [numbers_of(np.asarray(word, np.int64) >> shift, source) for word in words]


def _build_half_arithmetic(function: Callable[..., Doubles]) -> op.RunBuilder:
    """HADD2, HMUL2, HFMA2; `.F32` makes a float32 of the low halves."""

    def build(statement: SassStatement) -> op.StepRun:
        name, _, at = op.destinations(statement, 0)
        source = half_format(statement)
        target = FLOAT32 if statement.has_modifier("F32") else source
        operands, predicates = op.split_predicates(statement.operands[at:])
        readers = half_pair_readers(operands, source)
        if predicates or {"SAT", "RELU"} & set(statement.modifiers):
            return op.unknown_result_run(name, statement)

        def read_result(machine: Machine) -> Value:
            rounding = machine.memory.rounding

            def compute(*words: Known) -> Known:
                results = []
                for shift in (0,) if target is FLOAT32 else (16, 0):
                    with np.errstate(all="ignore"):
                        result = function(*rounding.split_fused(_numbers_in(words, shift, source), source))
                    results.append(bits_of(rounding.to_format(result, target), target) << shift)
                return without_dimensions(reduce(np.bitwise_or, results))

            words = [reader(machine) for reader in readers]
            unknown = reduce(np.bitwise_or, (np.asarray(unknown_bits_of(word), np.int64) for word in words))
            unknown_halves = (unknown & 0xFFFF != 0) * 0xFFFF | (unknown >> 16 != 0) * 0xFFFF0000
            if target is FLOAT32:
                unknown_halves = (unknown & 0xFFFF != 0) * FULL
            return with_unknown_bits(compute(*map(data_of, words)), unknown_halves, *words)

        return op.write_run(name, read_result)

    return build


def _build_half_min_max(statement: SassStatement) -> op.StepRun:
    _, _, at = op.destinations(statement, 0)
    operands, _ = op.split_predicates(statement.operands[at:])
    source = half_format(statement)

    def over_halves(function: Callable[..., Doubles]) -> Callable[..., Known]:
        def compute(*words: Known) -> Known:
            low, high = (bits_of(function(*_numbers_in(words, shift, source)), source) for shift in (0, 16))
            return without_dimensions(high << 16 | low)

        return compute

    return min_max_run(statement, half_pair_readers(operands, source), over_halves)


def _build_half_compare(statement: SassStatement) -> op.StepRun:
    """HSETP2: the first predicate from the low halves, the second from the high halves."""
    operands, predicates = op.split_predicates(statement.operands[2:])
    source, compare = half_format(statement), comparison_of(statement)
    readers = half_pair_readers(operands, source)
    if compare is None or statement.has_modifier("BM"):
        targets = [op.writable_name(operand) for operand in statement.operands[:2]]
        return lambda machine: op.write_all(
            machine, targets, machine.unknown_result("P0", f"the result of {statement.opcode}")
        )

    def read_results(machine: Machine) -> tuple[Value, Value]:
        words = [reader(machine) for reader in readers]
        low, high = (
            as_predicate(apply(lambda *of, shift=shift: compare(*_numbers_in(of, shift, source)), *words))
            for shift in (0, 16)
        )
        return low, high

    return op.comparison_run(statement, predicates, read_results)


def _build_transpose(statement: SassStatement) -> op.StepRun:
    """MOVM: an 8×8 matrix of halves, transposed; lane / 4 is the row, and a lane holds two neighbours."""
    name, _, at = op.destinations(statement, 0)
    reader = op.word_reader(statement.operands[at])

    def transpose(machine: Machine, word: Known) -> Known:
        shape = (np.shape(word)[0] if np.ndim(word) == 2 else 1, machine.threads)
        words = np.broadcast_to(np.asarray(word, np.int64), shape).reshape(shape[0], -1, 8, 4)
        matrix = np.stack((words & 0xFFFF, words >> 16 & 0xFFFF), axis=-1).reshape(*words.shape[:2], 8, 8)
        swapped = np.swapaxes(matrix, 2, 3).reshape(*words.shape, 2)
        return np.asarray(swapped[..., 0] | swapped[..., 1] << 16, np.int64).reshape(shape)

    return op.write_run(name, lambda machine: apply_to_bits(lambda word: transpose(machine, word), reader(machine)))


HALF: Mapping[str, op.RunBuilder] = {
    "HADD2": _build_half_arithmetic(lambda a, b: a + b), "HMUL2": _build_half_arithmetic(lambda a, b: a * b),
    "HFMA2": _build_half_arithmetic(lambda a, b, c: a * b + c), "HMNMX2": _build_half_min_max,
    "HSETP2": _build_half_compare, "MOVM": _build_transpose
}  # fmt: skip
"""Opcode, without modifiers and without the `U` of uniform instructions → builder of its run."""
