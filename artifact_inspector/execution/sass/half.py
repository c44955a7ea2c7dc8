"""SASS instructions on packed numbers, doubles and formats: two halves in a register, conversions, approximations.

Approximations (`MUFU`) are computed only if the launch has values; each is off by at most the stated error.

**Source** CUDA C++ Programming Guide, "Mathematical Functions Appendix", intrinsic functions; PTX ISA, `ex2.approx`,
`lg2.approx`, `rsqrt.approx`, `sin.approx`, `tanh.approx`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from artifact_inspector.execution.interpreter.conversions import as_predicate
from artifact_inspector.execution.interpreter.machine import Machine
from artifact_inspector.execution.interpreter.values import IntArray, Known, Value, apply, invert, select_lanes
from artifact_inspector.execution.sass import operands as op
from artifact_inspector.formats.sass.statement import SassOperand, SassOperandKind, SassStatement
from artifact_inspector.model.float_formats import (
    BFLOAT16,
    FLOAT16,
    FLOAT32,
    FORMATS,
    Doubles,
    FloatFormat,
    Rounding,
    bits_of,
    numbers_of,
)

_LITERALS = (SassOperandKind.FLOAT, SassOperandKind.NUMBER)


def half_format(statement: SassStatement) -> FloatFormat:
    """The format of an instruction on halves."""
    return BFLOAT16 if any("BF16" in modifier for modifier in statement.modifiers) else FLOAT16


def half_pair_readers(operands: Sequence[SassOperand], source: FloatFormat) -> list[op.Reader]:
    """Readers of pairs of halves as words; two literals in a row are one pair, the high half first."""
    readers: list[op.Reader] = []
    rest = list(operands)
    while rest:
        operand = rest.pop(0)
        if operand.kind in _LITERALS and rest and rest[0].kind in _LITERALS:
            high, low = (_literal_bits(one, source) for one in (operand, rest.pop(0)))
            readers.append(_constant_reader(high << 16 | low))
        else:
            readers.append(_half_reader(operand, source))
    return readers


def _constant_reader(register: int) -> op.Reader:
    return lambda _machine: register


def _literal_bits(operand: SassOperand, source: FloatFormat) -> int:
    number = np.array(operand.float_value or float(operand.value))
    return int(bits_of(Rounding().to_format(number, source), source))


def _half_reader(operand: SassOperand, source: FloatFormat) -> op.Reader:
    """Reader of the two halves that an operand's suffix picks, with its signs."""
    suffixes = operand.suffixes
    if operand.kind in _LITERALS:  # one literal for both
        bits = _literal_bits(operand, source)
        return lambda _machine: bits << 16 | bits
    reader = op.word_reader(operand._replace(is_negated=False, is_absolute=False))
    is_float32 = "F32" in suffixes

    def pick(register: Known) -> Known:
        register = np.asarray(register, np.int64)
        if "H0_H0" in suffixes:
            register = (register & 0xFFFF) * 0x10001
        elif "H1_H1" in suffixes:
            register = (register >> 16 & 0xFFFF) * 0x10001
        if operand.is_absolute:
            register = register & 0x7FFF7FFF
        if operand.is_negated:
            register = register ^ 0x80008000
        if "H0_NH1" in suffixes:
            register = register ^ 0x80000000
        return register if register.ndim else int(register)

    if is_float32 or any(suffix.startswith("H") and suffix not in ("H0_H0", "H1_H1", "H0_NH1") for suffix in suffixes):
        return lambda machine: machine.unknown_value("a half that is not modelled")
    return lambda machine: apply(pick, reader(machine))


def _as_word(words: IntArray) -> Known:
    return words if words.ndim else int(words)


def _build_half_arithmetic(function: Callable[..., Doubles]) -> op.RunBuilder:
    """HADD2, HMUL2, HFMA2; `.F32` makes a float32 of the low halves."""

    def build(statement: SassStatement) -> op.StepRun:
        name, _, at = op.destinations(statement, 0)
        source = half_format(statement)
        target = FLOAT32 if statement.has_modifier("F32") else source
        operands, predicates = op.split_predicates(statement.operands[at:])
        readers = half_pair_readers(operands, source)
        if predicates or {"SAT", "RELU"} & set(statement.modifiers):
            return op.unknown_run(name, f"the result of {statement.opcode}")

        def run(machine: Machine) -> None:
            rounding = machine.memory.rounding

            def compute(*words: Known) -> Known:
                def of_halves(shift: int) -> IntArray:
                    parts = [numbers_of(np.asarray(register, np.int64) >> shift, source) for register in words]
                    with np.errstate(all="ignore"):
                        if rounding.is_random and len(parts) == 3:  # others may round the product
                            parts = [rounding.to_format(parts[0] * parts[1], source), np.float64(1), parts[2]]
                        return bits_of(rounding.to_format(function(*parts), target), target)

                return _as_word(of_halves(0) if target is FLOAT32 else of_halves(16) << 16 | of_halves(0))

            machine.write_register(name or "RZ", apply(compute, *(reader(machine) for reader in readers)))

        return (lambda _machine: None) if name is None else run

    return build


def _build_half_min_max(statement: SassStatement) -> op.StepRun:
    name, _, at = op.destinations(statement, 0)
    operands, predicates = op.split_predicates(statement.operands[at:])
    source, readers = half_format(statement), half_pair_readers(operands, half_format(statement))
    propagates = statement.has_modifier("NAN")

    def choose(smaller: bool) -> Callable[..., Known]:
        functions = (np.minimum, np.maximum) if propagates else (np.fmin, np.fmax)

        def compute(a: Known, b: Known) -> Known:
            def of_halves(shift: int) -> IntArray:
                x, y = (numbers_of(np.asarray(register, np.int64) >> shift, source) for register in (a, b))
                return bits_of(functions[0 if smaller else 1](x, y), source)

            return _as_word(of_halves(16) << 16 | of_halves(0))

        return compute

    def pick(machine: Machine) -> Value:
        a, b = (reader(machine) for reader in readers)
        is_minimum = op.predicate_reader(predicates[-1])(machine)
        return select_lanes(is_minimum, apply(choose(True), a, b), apply(choose(False), a, b))

    return op.write_run(name, pick)


_COMPARISONS: Mapping[str, Callable[[Doubles, Doubles], np.ndarray]] = {
    "LT": np.less, "LE": np.less_equal, "GT": np.greater, "GE": np.greater_equal, "EQ": np.equal, "NE": np.not_equal,
}  # fmt: skip


def _compare(name: str, a: Doubles, b: Doubles) -> Known:
    """A comparison; with NaN it is false, or true if its name ends in U; `NE` is false."""
    is_unordered = np.isnan(a) | np.isnan(b)
    result = np.where(is_unordered, name.endswith("U"), _COMPARISONS[name.removesuffix("U")](a, b))
    return result if result.ndim else bool(result)


def _comparison_name(statement: SassStatement) -> str | None:
    return next((m for m in statement.modifiers if m.removesuffix("U") in _COMPARISONS), None)


def _write_comparison(machine: Machine, statement: SassStatement, target: str, result: Value, combined: Value) -> None:
    combination = op.predicate_xor if statement.has_modifier("XOR") else op.predicate_and
    combination = op.predicate_or if statement.has_modifier("OR") else combination
    machine.write_register(target, combination(as_predicate(result), combined))


def _build_half_compare(statement: SassStatement) -> op.StepRun:
    """HSETP2: the first predicate from the low halves, the second from the high halves."""
    targets = [op.writable_name(operand) for operand in statement.operands[:2]]
    operands, predicates = op.split_predicates(statement.operands[2:])
    source, name = half_format(statement), _comparison_name(statement)
    readers = half_pair_readers(operands, source)
    combine: op.Reader = op.predicate_reader(predicates[0]) if predicates else (lambda _machine: True)

    def run(machine: Machine) -> None:
        words = [reader(machine) for reader in readers]
        for target, shift in zip(targets, (0, 16), strict=True):
            if target is None:
                continue

            def compare(a: Known, b: Known, shift: int = shift) -> Known:
                x, y = (numbers_of(np.asarray(register, np.int64) >> shift, source) for register in (a, b))
                return _compare(name or "EQ", x, y)

            _write_comparison(machine, statement, target, apply(compare, *words), combine(machine))

    if name is None or statement.has_modifier("BM"):
        return lambda machine: op.write_all(
            machine, targets, machine.unknown_result("P0", f"the result of {statement.opcode}")
        )
    return run


# ── Conversions ──────────────────────────────────────────────────────────────────────────────────


def _build_pack(statement: SassStatement) -> op.StepRun:
    """F2FP: two numbers as a pair of halves or of bytes, or bytes as a pair of halves."""
    name, _, at = op.destinations(statement, 0)
    modifiers = statement.modifiers
    formats = [FORMATS[m] for m in modifiers if m in FORMATS]
    if "RELU" in modifiers or any(m.startswith(("E2M", "E3M", "UE8", "E8")) for m in modifiers):
        return op.unknown_run(name, f"the result of {statement.opcode}")
    target = formats[0] if formats else FLOAT16
    source = formats[1] if len(formats) > 1 else FLOAT32
    towards_zero = "RZ" in modifiers
    if any(m.startswith("UNPACK_B") for m in modifiers):
        return _build_unpack(statement, name, at, target, source)
    readers = [op.word_reader(operand, is_float=True) for operand in statement.operands[at:]]
    if source is not FLOAT32 or any("H1" in s for operand in statement.operands[at:] for s in operand.suffixes):
        return op.unknown_run(name, f"the result of {statement.opcode}")

    def run(machine: Machine) -> None:
        rounding = machine.memory.rounding

        def pack(high: Known, low: Known, kept: Known = 0) -> Known:
            parts = []
            for register in (high, low):
                number = rounding.to_format(
                    numbers_of(np.asarray(register, np.int64), FLOAT32), target, towards_zero=towards_zero
                )
                parts.append(bits_of(number, target))
            packed = parts[0] << target.bits | parts[1]
            if target.bits == 8:
                packed = packed | (np.asarray(kept, np.int64) & 0xFFFF) << 16
            return _as_word(packed)

        if name is not None:
            machine.write_register(name, apply(pack, *(reader(machine) for reader in readers)))

    return run


def _build_unpack(
    statement: SassStatement, name: str | None, at: int, target: FloatFormat, source: FloatFormat
) -> op.StepRun:
    operand = statement.operands[at]
    reader, shift = op.word_reader(operand), 16 if "H1" in operand.suffixes else 0

    def unpack(register: Known) -> Known:
        bits = np.asarray(register, np.int64) >> shift
        low, high = (bits_of(numbers_of(bits >> by, source), target) for by in (0, 8))
        return _as_word(high << 16 | low)

    return op.write_run(name, lambda machine: apply(unpack, reader(machine)))


def _build_convert(statement: SassStatement) -> op.StepRun:
    """F2F: one number in another format; the target comes first."""
    name, _, at = op.destinations(statement, 0)
    kinds = [m for m in statement.modifiers if m in FORMATS or m == "F64"]
    operand = statement.operands[at]
    if len(kinds) != 2 or {"RELU", "SAT", "RM", "RP"} & set(statement.modifiers):
        return op.unknown_run(name, f"the result of {statement.opcode}")
    towards_zero = statement.has_modifier("RZ")
    reader = op.wide_reader(operand) if kinds[1] == "F64" else op.word_reader(operand, is_float=True)
    shift = 16 if "H1_H1" in operand.suffixes else 0

    def run(machine: Machine) -> None:
        rounding = machine.memory.rounding

        def convert(register: Known) -> Known:
            bits = np.asarray(register, np.int64)
            number = bits.view(np.float64) if kinds[1] == "F64" else numbers_of(bits >> shift, FORMATS[kinds[1]])
            if kinds[0] == "F64":
                return _as_word(number.view(np.int64))
            target = FORMATS[kinds[0]]
            return _as_word(bits_of(rounding.to_format(number, target, towards_zero=towards_zero), target))

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
        return op.unknown_run(name, f"the result of {statement.opcode}")
    function = next((_INTEGRAL[m] for m in statement.modifiers if m in _INTEGRAL), np.rint)
    reader = op.word_reader(statement.operands[at], is_float=True)
    return op.write_run(
        name,
        lambda machine: apply(
            lambda register: _as_word(bits_of(function(numbers_of(np.asarray(register, np.int64), FLOAT32)), FLOAT32)),
            reader(machine),
        ),
    )


# ── Doubles and pairs of float32 ─────────────────────────────────────────────────────────────────


def _build_double_arithmetic(function: Callable[..., Doubles]) -> op.RunBuilder:
    def build(statement: SassStatement) -> op.StepRun:
        name, _, at = op.destinations(statement, 0)
        readers = [_double_reader(operand) for operand in statement.operands[at:]]

        def compute(*words: Known) -> Known:
            with np.errstate(all="ignore"):
                return _as_word(np.asarray(function(*map(_doubles, words))).view(np.int64))

        return lambda machine: op.write_wide(machine, name, apply(compute, *(reader(machine) for reader in readers)))

    return build


def _doubles(words: Known) -> Doubles:
    return np.asarray(words, np.int64).view(np.float64)


def _double_reader(operand: SassOperand) -> op.Reader:
    if operand.kind in _LITERALS:
        bits = int(np.array(operand.float_value or float(operand.value)).view(np.int64))
        return lambda _machine: bits
    reader = op.wide_reader(operand._replace(is_negated=False, is_absolute=False))

    def change(register: Known) -> Known:
        bits = np.asarray(register, np.int64)
        if operand.is_absolute:
            bits = bits & 0x7FFFFFFFFFFFFFFF
        if operand.is_negated:
            bits = bits ^ np.int64(-(1 << 63))
        return _as_word(bits)

    return lambda machine: apply(change, reader(machine))


def _build_double_compare(statement: SassStatement) -> op.StepRun:
    targets = [op.writable_name(operand) for operand in statement.operands[:2]]
    operands, predicates = op.split_predicates(statement.operands[2:])
    name, readers = _comparison_name(statement), [_double_reader(operand) for operand in operands]

    def run(machine: Machine) -> None:
        result: Value = apply(
            lambda a, b: _compare(name or "EQ", _doubles(a), _doubles(b)), *(reader(machine) for reader in readers)
        )
        combined = op.predicate_reader(predicates[0])(machine) if predicates else True
        for target, value in zip(targets, (result, invert(as_predicate(result))), strict=True):
            if target is not None:
                _write_comparison(machine, statement, target, value, combined)

    return run


def _build_float_pair(function: Callable[..., Doubles]) -> op.RunBuilder:
    """FADD2, FMUL2, FFMA2: the same on two registers in a row."""

    def build(statement: SassStatement) -> op.StepRun:
        name, _, at = op.destinations(statement, 0)
        operands, _ = op.split_predicates(statement.operands[at:])

        def run(machine: Machine) -> None:
            rounding = machine.memory.rounding

            def compute(*words: Known) -> Known:
                parts = [numbers_of(np.asarray(register, np.int64), FLOAT32) for register in words]
                with np.errstate(all="ignore"):
                    if rounding.is_random and len(parts) == 3:  # others may round the product
                        parts = [rounding.to_format(parts[0] * parts[1], FLOAT32), np.float64(1), parts[2]]
                    result = function(*parts)
                return _as_word(bits_of(rounding.to_format(np.asarray(result), FLOAT32), FLOAT32))

            values = [apply(compute, *(reader(machine) for reader in part)) for part in parts]
            for step, value in enumerate(values):
                if name is not None:
                    machine.write_register(op.register_after(name, step), value)

        parts = [
            [
                op.word_reader(operand, is_float=True, word_offset=0 if operand.kind in _LITERALS else step)
                for operand in operands
            ]
            for step in (0, 1)
        ]
        return run

    return build


# ── Approximations ───────────────────────────────────────────────────────────────────────────────

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
        return op.unknown_run(name, f"the result of {statement.opcode}")
    function, relative_error, absolute_error = _APPROXIMATIONS[kind]
    reader = op.word_reader(statement.operands[at], is_float=True)

    def run(machine: Machine) -> None:
        rounding = machine.memory.rounding

        def compute(register: Known) -> Known:
            with np.errstate(all="ignore"):
                result = np.asarray(function(numbers_of(np.asarray(register, np.int64), FLOAT32)))
                result = rounding.approximate(result, relative_error, absolute_error)
                return _as_word(bits_of(result, FLOAT32))

        if name is not None:
            value = reader(machine)
            is_computed = machine.memory.values is not None or statement.modifiers == ("RCP",)
            unknown = machine.unknown_value(f"the result of {statement.opcode}")
            machine.write_register(name, apply(compute, value) if is_computed else unknown)

    return run


def _build_transpose(statement: SassStatement) -> op.StepRun:
    """MOVM: an 8×8 matrix of halves, transposed; lane / 4 is the row, and a lane holds two neighbours."""
    name, _, at = op.destinations(statement, 0)
    reader = op.word_reader(statement.operands[at])

    def transpose(machine: Machine, register: Known) -> Known:
        shape = (np.shape(register)[0] if np.ndim(register) == 2 else 1, machine.threads)
        words = np.broadcast_to(np.asarray(register, np.int64), shape).reshape(shape[0], -1, 8, 4)
        matrix = np.stack((words & 0xFFFF, words >> 16 & 0xFFFF), axis=-1).reshape(*words.shape[:2], 8, 8)
        swapped = np.swapaxes(matrix, 2, 3).reshape(*words.shape, 2)
        return np.asarray(swapped[..., 0] | swapped[..., 1] << 16, np.int64).reshape(shape)

    return op.write_run(name, lambda machine: apply(lambda register: transpose(machine, register), reader(machine)))


def _multiply_add(a: Doubles, b: Doubles, c: Doubles) -> Doubles:
    return a * b + c


HALF: Mapping[str, op.RunBuilder] = {
    "HADD2": _build_half_arithmetic(lambda a, b: a + b),
    "HMUL2": _build_half_arithmetic(lambda a, b: a * b),
    "HFMA2": _build_half_arithmetic(_multiply_add),
    "HMNMX2": _build_half_min_max,
    "HSETP2": _build_half_compare,
    "F2FP": _build_pack,
    "F2F": _build_convert,
    "FRND": _build_round,
    "DADD": _build_double_arithmetic(lambda a, b: a + b),
    "DMUL": _build_double_arithmetic(lambda a, b: a * b),
    "DFMA": _build_double_arithmetic(_multiply_add),
    "DSETP": _build_double_compare,
    "FADD2": _build_float_pair(lambda a, b: a + b),
    "FMUL2": _build_float_pair(lambda a, b: a * b),
    "FFMA2": _build_float_pair(_multiply_add),
    "MUFU": build_approximation,
    "MOVM": _build_transpose,
}
"""Opcode, without modifiers and without the `U` of uniform instructions → builder of its run."""
