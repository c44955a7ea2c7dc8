"""What SASS's floating-point instructions compute where their inputs are known.

Floats are followed for one purpose: integers are divided by way of them, and what is derived from arguments
may be. What comes of loaded data is unknown from the start. Approximations whose last bits are not published
(`MUFU.EX2` and the like) are unknown; `MUFU.RCP` is taken as rounded to nearest, which is within the unit in
the last place that every division mends.

**Source** CUDA C++ Programming Guide, "Intrinsic Functions": rcp is off by 1 ulp at most.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
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
)
from artifact_inspector.execution.sass.operands import (
    Build,
    Run,
    is_nothing,
    predicate,
    results,
    source,
    write_wide,
)
from artifact_inspector.formats.sass.statement import OperandKind, Statement

if TYPE_CHECKING:
    from artifact_inspector.execution.interpreter.machine import Machine


def _float(value: Known) -> Any:
    return np.asarray(value, np.int64).astype(np.uint32).view(np.float32)


def _bits(value: Any) -> Known:
    found = np.asarray(value, np.float32).view(np.uint32).astype(np.int64)
    return found if found.ndim else int(found)


def _poison(name: str | None, statement: Statement) -> Run:
    def run(machine: Machine) -> None:
        if name is not None:
            machine.write(name, machine.unknown(f"the result of {statement.opcode}"))

    return run


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
            return _bits(function(*(_float(value).astype(np.float64) for value in values)))

        rounded = {"RM", "RP", "RZ", "SAT"} & set(statement.modifiers)
        if rounded:
            return _poison(name, statement)

        def run(machine: Machine) -> None:
            if name is not None:
                machine.write(name, apply(_quiet(compute), *(reader(machine) for reader in readers)))

        return run

    return build


_COMPARE: Mapping[str, tuple[Callable[[Any, Any], Any], bool]] = {
    # with what holds where one of them is no number
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
        x, y = _float(a), _float(b)
        either = np.isnan(x) | np.isnan(y)
        found = np.where(either, unordered, function(x, y))
        return found if found.ndim else bool(found)

    def run(machine: Machine) -> None:
        found: Value = machine.unknown(f"the result of {statement.opcode}")
        if name is not None:
            found = apply(_quiet(compare), left(machine), right(machine))
        if isinstance(found, Unknown):
            found = Unknown(found.data != 0, found.bad != 0, found.why)
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

    def run(machine: Machine) -> None:
        if name is not None:
            a, b = left(machine), right(machine)
            least = apply(lambda x, y: _bits(np.fmin(_float(x), _float(y))), a, b)
            most = apply(lambda x, y: _bits(np.fmax(_float(x), _float(y))), a, b)
            machine.write(name, choose(smaller(machine), least, most))

    return run


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


def _each(function: Callable[[int], int], value: Known) -> Known:
    if isinstance(value, (int, np.integer)):
        return function(int(value))
    distinct, places = np.unique(value, return_inverse=True)
    made = np.array([function(int(number)) for number in distinct], np.int64)
    return made[places].reshape(np.shape(value))


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
            value = (value >> shift) & ((1 << bits) - 1)
            value = (value ^ (1 << bits - 1)) - (1 << bits - 1) if kind[0] == "S" else value
        elif kind == "S32":
            value = (value ^ 0x80000000) - 0x80000000
        elif kind == "U64":
            value &= (1 << 64) - 1
        return _round(value, how)

    def run(machine: Machine) -> None:
        if name is not None:
            value = low(machine) if high is None else as_wide(low(machine), high(machine))
            machine.write(name, apply(lambda v: _each(number, v), value))

    return run


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
        value = float(_float(word))
        if np.isnan(value):
            return 0 if kind[0] == "U" else 1 << bits - 1
        if np.isinf(value):
            return (highest if value > 0 else lowest) & ((1 << bits) - 1)
        exact = Fraction(value)
        whole = {
            "TRUNC": int(exact), "FLOOR": exact.__floor__(), "CEIL": exact.__ceil__()
        }.get(how, round(exact))  # fmt: skip
        return min(max(whole, lowest), highest) & ((1 << bits) - 1)

    def signed64(word: int) -> int:
        found = number(word)
        return found - (1 << 64) if found >= 1 << 63 else found

    def run(machine: Machine) -> None:
        if name is None:
            return
        value = apply(lambda v: _each(signed64, v), reader(machine))
        if bits == 64:
            write_wide(machine, name, value)
        else:
            machine.write(name, apply(lambda v: v & FULL, value))

    return run


def _special(statement: Statement) -> Run:
    """MUFU: the reciprocal only."""
    name, _, at = results(statement, 0)
    if statement.modifiers != ("RCP",):
        return _poison(name, statement)
    reader = source(statement.operands[at], real=True)

    def run(machine: Machine) -> None:
        if name is not None:
            found = apply(_quiet(lambda v: _bits(np.float32(1) / _float(v))), reader(machine))
            machine.write(name, found)

    return run


def _half_pair(statement: Statement) -> Run:
    """HFMA2 of nothing and two numbers: a constant is moved."""
    name, _, at = results(statement, 0)
    first, second, *more = statement.operands[at:]
    numbers = [o for o in more if o.kind in (OperandKind.FLOAT, OperandKind.NUMBER)]
    if not (is_nothing(first) and is_nothing(second) and len(numbers) == len(more) == 2):
        return _poison(name, statement)
    if statement.has("BF16_V2") or statement.has("BF16"):
        words = [_bits(np.float32(o.real or o.value)) >> 16 for o in numbers]
    else:
        with np.errstate(over="ignore"):  # what is too large becomes infinite
            words = [int(np.float16(o.real or o.value).view(np.uint16)) for o in numbers]
    value = words[0] << 16 | words[1]

    def run(machine: Machine) -> None:
        if name is not None:
            machine.write(name, value)

    return run


def _check(statement: Statement) -> Run:
    """FCHK: whether a division needs the long way; not followed."""
    name = statement.operands[0].name

    def run(machine: Machine) -> None:
        found = machine.unknown(f"the result of {statement.opcode}")
        machine.write(name, Unknown(False, True, found.why))

    return run


FLOAT: Mapping[str, Build] = {
    "FADD": _arithmetic(lambda a, b: a + b),
    "FMUL": _arithmetic(lambda a, b: a * b),
    "FFMA": _arithmetic(lambda a, b, c: a * b + c),
    "FSETP": _compare,
    "FMNMX": _extreme,
    "I2F": _from_integer,
    "I2FP": _from_integer,
    "F2I": _to_integer,
    "MUFU": _special,
    "HFMA2": _half_pair,
    "FCHK": _check,
}
"""Opcode without modifiers and, for the uniform kind, without its `U`."""
