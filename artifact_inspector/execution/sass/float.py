"""SASS floating-point instructions with known inputs.

Floats are simulated for one purpose: integer division is computed with them, and values derived from
arguments may be divided. Loaded data is unknown anyway. Approximations whose last bits are not documented
(`MUFU.EX2` and the like) are unknown. `MUFU.RCP` is rounded to nearest; every division corrects its error of
1 ulp.

**Source** CUDA C++ Programming Guide, "Intrinsic Functions": rcp is off by 1 ulp at most.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from artifact_inspector.execution.interpreter.lanes import (
    FULL,
    Known,
    Unknown,
    Value,
    apply,
    as_wide,
    choose,
    invert,
    signed,
)
from artifact_inspector.execution.interpreter.numbers import as_predicate, bits_of, cut, each, float_of, wrap
from artifact_inspector.execution.sass.operands import (
    Build,
    Run,
    is_nothing,
    not_known,
    predicate,
    results,
    source,
    write_wide,
    writes,
)
from artifact_inspector.formats.sass.statement import OperandKind, Statement

if TYPE_CHECKING:
    from artifact_inspector.execution.interpreter.machine import Machine


def _fused(a: Any, b: Any, c: Any) -> Any:
    """a·b + c of float32s in double precision, rounded to odd so that rounding to float32 is exact."""
    product = a * b  # exact: 24 bits by 24
    found = product + c
    part = found - product
    lost = (product - (found - part)) + (c - part)
    even = np.asarray(found, np.float64).view(np.int64) & 1 == 0
    odd = np.nextafter(found, np.where(lost > 0, np.inf, -np.inf))
    return np.where((lost != 0) & even & np.isfinite(found), odd, found)


def _flushed(value: Any) -> Any:
    """Numbers below the normal range replaced by a signed zero, as `.FTZ` does."""
    return np.where(np.abs(value) < np.finfo(np.float32).tiny, np.copysign(0.0, value), value)


def _poison(name: str | None, statement: Statement) -> Run:
    return not_known(name, f"the result of {statement.opcode}")


def _quiet(function: Callable[..., Known]) -> Callable[..., Known]:
    def found(*values: Known) -> Known:
        with np.errstate(all="ignore"):
            return function(*values)

    return found


def _arithmetic(function: Callable[..., Any]) -> Build:
    def build(statement: Statement) -> Run:
        name, _, at = results(statement, 0)
        operands = [o for o in statement.operands[at:] if o.kind is not OperandKind.PREDICATE]
        readers = [source(operand, real=True) for operand in operands]

        def compute(*values: Known) -> Known:
            given = [float_of(value).astype(np.float64) for value in values]
            if not flushes:
                return bits_of(function(*given))
            return bits_of(_flushed(np.float32(function(*map(_flushed, given)))))

        flushes = statement.has("FTZ")
        if {"RM", "RP", "RZ", "SAT"} & set(statement.modifiers):  # other rounding modes
            return _poison(name, statement)
        return writes(name, lambda machine: apply(_quiet(compute), *(reader(machine) for reader in readers)))

    return build


_COMPARE: Mapping[str, tuple[Callable[[Any, Any], Any], bool]] = {
    # second: the result if an operand is NaN
    "LT": (np.less, False), "LE": (np.less_equal, False), "GT": (np.greater, False),
    "GE": (np.greater_equal, False), "EQ": (np.equal, False), "NE": (np.not_equal, False),
    "LTU": (np.less, True), "LEU": (np.less_equal, True), "GTU": (np.greater, True),
    "GEU": (np.greater_equal, True), "EQU": (np.equal, True), "NEU": (np.not_equal, True),
}  # fmt: skip


def _compare(statement: Statement) -> Run:
    operands = statement.operands
    targets = [None if is_nothing(o) else o.name for o in operands[:2]]
    name = next((m for m in statement.modifiers if m in _COMPARE), None)
    left, right = source(operands[2], real=True), source(operands[3], real=True)
    given = predicate(operands[4]) if len(operands) > 4 else (lambda _machine: True)
    how = "OR" if statement.has("OR") else "XOR" if statement.has("XOR") else "AND"

    def compare(a: Known, b: Known) -> Known:
        assert name is not None
        function, unordered = _COMPARE[name]
        x, y = float_of(a), float_of(b)
        either = np.isnan(x) | np.isnan(y)
        found = np.where(either, unordered, function(x, y))
        return found if found.ndim else bool(found)

    def run(machine: Machine) -> None:
        found: Value = machine.unknown(f"the result of {statement.opcode}")
        if name is not None:
            found = apply(_quiet(compare), left(machine), right(machine))
        found = as_predicate(found._replace(data=found.data != 0)) if isinstance(found, Unknown) else found
        other = given(machine)
        for target, value in zip(targets, (found, invert(found)), strict=True):
            if target is None:
                continue
            if how == "AND":
                value = choose(other, value, False)
            elif how == "OR":
                value = choose(other, True, value)
            else:
                value = choose(other, invert(value), value)
            machine.write(target, value)

    return run


def _extreme(statement: Statement) -> Run:
    name, _, at = results(statement, 0)
    first, second, *more = statement.operands[at:]
    if len(more) != 1 or statement.has("NAN") or statement.has("XORSIGN"):
        return _poison(name, statement)
    left, right, smaller = source(first, real=True), source(second, real=True), predicate(more[0])

    def picked(machine: Machine) -> Value:
        a, b = left(machine), right(machine)
        least = apply(lambda x, y: bits_of(np.fmin(float_of(x), float_of(y))), a, b)
        most = apply(lambda x, y: bits_of(np.fmax(float_of(x), float_of(y))), a, b)
        return choose(smaller(machine), least, most)

    return writes(name, picked)


# ── Conversions ──────────────────────────────────────────────────────────────────────────────────


def _round(number: int, up: str | None) -> int:
    """The bits of a float32 for an integer, rounded up, down, towards zero, or to nearest."""
    near = np.float32(number)
    exact = int(near) if np.isfinite(near) else 0
    if up == "RP" and exact < number:
        near = np.nextafter(near, np.float32(np.inf))
    elif up == "RM" and exact > number:
        near = np.nextafter(near, np.float32(-np.inf))
    elif up == "RZ" and abs(exact) > abs(number):
        near = np.nextafter(near, np.float32(0))
    return int(near.view(np.uint32))


_ROUNDINGS = ("RP", "RM", "RZ")
_NARROW = {"U8": 8, "S8": 8, "U16": 16, "S16": 16}


def _from_integer(statement: Statement) -> Run:
    name, _, at = results(statement, 0)
    operand = statement.operands[at]
    modifiers = statement.modifiers
    how = next((m for m in modifiers if m in _ROUNDINGS), None)
    kind = next((m for m in modifiers if m[0] in "US" and m[1:].isdigit()), "S32")
    if any(m in modifiers for m in ("F16", "F64", "BF16")):
        return _poison(name, statement)
    low = source(operand)
    high = source(operand, step=1) if kind in ("U64", "S64") else None
    shift = next((8 * int(s[1]) for s in operand.suffix if s in ("B1", "B2", "B3")), 0)
    shift = 16 if "H1" in operand.suffix else shift

    def number(value: int) -> int:
        bits = _NARROW.get(kind)
        if bits is not None:
            value = cut(value >> shift, bits, is_signed=kind[0] == "S")
        elif kind == "S32":
            value = signed(value)
        elif kind == "U64":
            value &= (1 << 64) - 1
        return _round(value, how)

    def converted(machine: Machine) -> Value:
        value = low(machine) if high is None else as_wide(low(machine), high(machine))
        return apply(partial(each, number), value)

    return writes(name, converted)


def _to_integer(statement: Statement) -> Run:
    name, _, at = results(statement, 0)
    modifiers = statement.modifiers
    kind = next((m for m in modifiers if m[0] in "US" and m[1:].isdigit()), "S32")
    if any(m in modifiers for m in ("F16", "F64", "BF16")):
        return _poison(name, statement)
    reader = source(statement.operands[at], real=True)
    bits = int(kind[1:])
    lowest, highest = (0, (1 << bits) - 1) if kind[0] == "U" else (-(1 << bits - 1), (1 << bits - 1) - 1)
    how = next((m for m in modifiers if m in ("TRUNC", "FLOOR", "CEIL")), "")

    def number(word: int) -> int:
        value = float(float_of(word))
        if np.isnan(value):
            return 0 if kind[0] == "U" else 1 << bits - 1
        if np.isinf(value):
            return (highest if value > 0 else lowest) & ((1 << bits) - 1)
        exact = Fraction(value)
        near = {
            "TRUNC": int(exact), "FLOOR": exact.__floor__(), "CEIL": exact.__ceil__()
        }.get(how, round(exact))  # fmt: skip
        return min(max(near, lowest), highest) & ((1 << bits) - 1)

    def whole(machine: Machine) -> Value:
        return apply(partial(each, lambda word: wrap(number(word))), reader(machine))

    if bits == 64:
        return lambda machine: write_wide(machine, name, whole(machine))
    return writes(name, lambda machine: apply(lambda v: v & FULL, whole(machine)))


def _special(statement: Statement) -> Run:
    """MUFU: only the reciprocal."""
    name, _, at = results(statement, 0)
    if statement.modifiers != ("RCP",):
        return _poison(name, statement)
    reader, inverse = (
        source(statement.operands[at], real=True),
        _quiet(lambda v: bits_of(np.float32(1) / float_of(v))),
    )
    return writes(name, lambda machine: apply(inverse, reader(machine)))


def _half_pair(statement: Statement) -> Run:
    """HFMA2 of zeros and two numbers: loads a constant."""
    name, _, at = results(statement, 0)
    first, second, *more = statement.operands[at:]
    numbers = [o for o in more if o.kind in (OperandKind.FLOAT, OperandKind.NUMBER)]
    if not (is_nothing(first) and is_nothing(second) and len(numbers) == len(more) == 2):
        return _poison(name, statement)
    if statement.has("BF16_V2") or statement.has("BF16"):
        words = [bits_of(np.float32(o.real or o.value)) >> 16 for o in numbers]
    else:
        with np.errstate(over="ignore"):  # too large a number becomes infinite
            words = [int(np.float16(o.real or o.value).view(np.uint16)) for o in numbers]
    value = words[0] << 16 | words[1]
    return writes(name, lambda _machine: value)


def _check(statement: Statement) -> Run:
    """FCHK: whether a division needs the slow path; not simulated."""
    name = statement.operands[0].name

    def run(machine: Machine) -> None:
        found = machine.unknown(f"the result of {statement.opcode}")
        machine.write(name, Unknown(False, True, found.why))

    return run


FLOAT: Mapping[str, Build] = {
    "FADD": _arithmetic(lambda a, b: a + b),
    "FMUL": _arithmetic(lambda a, b: a * b),
    "FFMA": _arithmetic(_fused),
    "FSETP": _compare,
    "FMNMX": _extreme,
    "I2F": _from_integer,
    "I2FP": _from_integer,
    "F2I": _to_integer,
    "MUFU": _special,
    "HFMA2": _half_pair,
    "FCHK": _check,
}
"""Opcode, without modifiers and without the `U` of uniform instructions → builder of its run."""
