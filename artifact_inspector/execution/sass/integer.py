"""SASS integer arithmetic: sums, products, shifts and comparisons.

**Source** CUDA Binary Utilities, "Instruction Set Reference", lists the opcodes. Their semantics are not
published: each row was derived from the PTX that it was compiled from, and validated with hardware counters.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from artifact_inspector.execution.interpreter.lanes import FULL, Known, Value, apply, choose, invert, signed
from artifact_inspector.execution.interpreter.numbers import as_predicate, to_number, wrap
from artifact_inspector.execution.sass.operands import (
    Build,
    Reader,
    Run,
    both,
    either,
    is_nothing,
    least,
    move,
    not_understood,
    plain,
    predicate,
    put_sum,
    results,
    source,
    wide,
    write_all,
    write_wide,
    writes,
    xor,
)
from artifact_inspector.formats.sass.statement import Operand, OperandKind, Statement

if TYPE_CHECKING:
    from artifact_inspector.execution.interpreter.machine import Machine

# ── Sums ─────────────────────────────────────────────────────────────────────────────────────────


def _term(operand: Operand) -> Reader:
    """Reader of an addend before truncation to 32 bits: `-b` is `~b + 1`, whose carry counts."""
    if not operand.minus:
        return source(operand)
    plain = source(operand._replace(minus=False))
    return lambda machine: apply(lambda v: (v ^ FULL) + 1, plain(machine))


def _add(statement: Statement) -> Run:
    if statement.has("64"):
        return _add_wide(statement)
    name, carries, at = results(statement, 2)
    rest = statement.operands[at:]
    terms = [_term(operand) for operand in rest if operand.kind is not OperandKind.PREDICATE]
    given = [predicate(operand) for operand in rest if operand.kind is OperandKind.PREDICATE]
    given = given if statement.has("X") else []

    def run(machine: Machine) -> None:
        values = [term(machine) for term in terms] + [_carried(carry, machine) for carry in given]
        put_sum(machine, name, carries, apply(_sum, *values))

    return run


def _carried(carry: Reader, machine: Machine) -> Value:
    return apply(to_number, carry(machine))


def _sum(*values: Known) -> Known:
    total = values[0]
    for value in values[1:]:
        total = total + value
    return total


def _add_wide(statement: Statement) -> Run:
    name, _, at = results(statement, 2)
    terms = [wide(o) for o in statement.operands[at:] if o.kind is not OperandKind.PREDICATE]
    return lambda machine: write_wide(machine, name, apply(_sum64, *(term(machine) for term in terms)))


def _sum64(*values: Known) -> Known:
    return wrap(_sum(*values))


# ── Products ─────────────────────────────────────────────────────────────────────────────────────


def _multiply(statement: Statement) -> Run:
    if statement.has("WIDE") or statement.has("HI"):
        return _multiply_wide(statement)
    name, carries, at = results(statement, 1)
    first, second, third, *rest = statement.operands[at:]
    if (is_nothing(first) or is_nothing(second)) and not rest and not carries:
        return move(statement, at + 2)
    readers = [source(operand) for operand in (first, second, third)]
    carry = [predicate(operand) for operand in rest] if statement.has("X") else []
    add = _term(third)

    def run(machine: Machine) -> None:
        total = apply(
            lambda a, b, c, *more: ((a * b) & FULL) + c + sum(more),
            readers[0](machine),
            readers[1](machine),
            add(machine),
            *(_carried(given, machine) for given in carry),
        )
        put_sum(machine, name, carries, total)

    return run


def _multiply_wide(statement: Statement) -> Run:
    name, carries, at = results(statement, 1)
    first, second, third, *rest = statement.operands[at:]
    unsigned = statement.has("U32")
    left, right, add = source(first), source(second), wide(third)
    carry = [predicate(operand) for operand in rest] if statement.has("X") else []
    high = statement.has("HI")

    def product(a: Known, b: Known) -> Known:
        return wrap(a * b if unsigned else signed(a) * signed(b))

    def run(machine: Machine) -> None:
        made = apply(product, left(machine), right(machine))
        given = add(machine)
        total = apply(_sum64, made, given, *(_carried(reader, machine) for reader in carry))
        if carries:
            write_all(machine, carries, as_predicate(apply(_below, total, given)))
        if not high:
            write_wide(machine, name, total)
        elif name is not None:
            machine.write(name, apply(lambda t: (t >> 32) & FULL, total))

    return run


_MINIMUM = -(1 << 63)


def _below(a: Known, b: Known) -> Known:
    """A < b as unsigned 64-bit numbers."""
    return (a ^ _MINIMUM) < (b ^ _MINIMUM)


# ── Shifts ───────────────────────────────────────────────────────────────────────────────────────


def _low_right(low: Known, high: Known, by: Known) -> Known:
    """The low word of a register pair shifted right by 0 to 63."""
    if isinstance(by, np.ndarray):
        near = np.minimum(by, 31)
        return np.where(
            by < 32, ((low >> near) | (high << (32 - near))) & FULL, high >> np.clip(by - 32, 0, 63)
        )
    return ((low >> by) | (high << (32 - by))) & FULL if by < 32 else high >> (by - 32)


def _shift(statement: Statement) -> Run:
    name, _, at = results(statement, 0)
    low, by, *more = statement.operands[at:]
    readers = [source(low), source(by), source(more[0]) if more else (lambda _machine: 0)]
    function = _shift_left(statement) if "L" in statement.modifiers[:1] else _shift_right(statement)
    return writes(name, lambda machine: apply(function, *(reader(machine) for reader in readers)))


def _amount(statement: Statement, by: Known) -> Known:
    wide_type = any(kind in statement.modifiers for kind in ("U64", "S64"))
    if statement.has("W"):
        return by & (63 if wide_type else 31)
    return least(by, 63 if wide_type else 32)


def _shift_left(statement: Statement) -> Callable[..., Known]:
    high = statement.has("HI")

    def shift(low: Known, by: Known, above: Known) -> Known:
        by = _amount(statement, by)
        if not high:
            return (low << least(by, 32)) & FULL
        # The high word of a left-shifted pair has its own bits and those that come up from the low word.
        back = 32 - by
        if isinstance(by, np.ndarray):
            near = np.minimum(by, 32)
            far = np.clip(by - 32, 0, 31)
            return np.where(by <= 32, ((above << near) | (low >> (32 - near))) & FULL, (low << far) & FULL)
        return ((above << by) | (low >> back)) & FULL if by <= 32 else (low << (by - 32)) & FULL

    return shift


def _shift_right(statement: Statement) -> Callable[..., Known]:
    high = statement.has("HI")
    is_signed = any(kind in statement.modifiers for kind in ("S32", "S64"))

    def shift(low: Known, by: Known, above: Known) -> Known:
        by = _amount(statement, by)
        if high:
            return (signed(above) >> least(by, 63)) & FULL if is_signed else above >> least(by, 63)
        if is_signed:
            above = signed(above)
            if isinstance(by, np.ndarray):
                return np.where(by < 32, _low_right(low, above & FULL, np.minimum(by, 31)),
                                (above >> np.clip(by - 32, 0, 63)) & FULL)  # fmt: skip
            return _low_right(low, above & FULL, by) if by < 32 else (above >> (by - 32)) & FULL
        return _low_right(low, above, by)

    return shift


def _lea(statement: Statement) -> Run:
    name, carries, at = results(statement, 1)
    rest = [o for o in statement.operands[at:] if o.kind is not OperandKind.PREDICATE]
    given = [predicate(o) for o in statement.operands[at:] if o.kind is OperandKind.PREDICATE]
    given = given if statement.has("X") else []
    high, extends = statement.has("HI"), statement.has("SX32")
    first, second, *more = rest
    base, add, by = source(first), _term(second), source(more[-1])
    above = source(more[0]) if len(more) > 1 else None

    def scaled(value: Known, over: Known, shift: Known) -> Known:
        if not high:
            return (value << shift) & FULL
        upper = (signed(value) >> 31) & FULL if extends else over
        return ((upper << shift) | (value >> (32 - shift))) & FULL

    def run(machine: Machine) -> None:
        over = 0 if above is None else above(machine)
        made = apply(scaled, base(machine), over, by(machine))
        total = apply(_sum, made, add(machine), *(_carried(reader, machine) for reader in given))
        put_sum(machine, name, carries, total)

    return run


# ── Comparisons ──────────────────────────────────────────────────────────────────────────────────

_COMPARE: Mapping[str, Callable[[Any, Any], Any]] = {
    "LT": operator.lt, "LE": operator.le, "GT": operator.gt, "GE": operator.ge, "EQ": operator.eq,
    "NE": operator.ne,
}  # fmt: skip
_COMBINES = {"AND": both, "OR": either, "XOR": xor}
_STRICT = {"LT": operator.lt, "LE": operator.lt, "GT": operator.gt, "GE": operator.gt}


def _compare(statement: Statement) -> Run:
    operands = statement.operands
    targets = [None if is_nothing(o) else o.name for o in operands[:2]]
    first, second, combine, *low = operands[2:]
    name = next((m for m in statement.modifiers if m in _COMPARE), None)
    always = next((m == "T" for m in statement.modifiers if m in ("T", "F")), None)
    unsigned = any(kind in statement.modifiers for kind in ("U32", "U64"))
    is_wide = any(kind in statement.modifiers for kind in ("S64", "U64"))
    left, right = (wide(first), wide(second)) if is_wide else (source(first), source(second))
    given = predicate(combine)
    below = predicate(low[0]) if low and statement.has("EX") else None
    how = next((_COMBINES[m] for m in statement.modifiers if m in _COMBINES), both)

    def order(value: Known) -> Known:
        if is_wide:
            return value ^ _MINIMUM if unsigned else value
        return value if unsigned else signed(value)

    def decide(machine: Machine) -> Value:
        if name is None:
            return bool(always)
        a, b = left(machine), right(machine)
        if below is None:
            return as_predicate(apply(lambda x, y: _COMPARE[name](order(x), order(y)), a, b))
        same = as_predicate(apply(operator.eq, a, b))
        rest = below(machine)
        if name == "NE":
            return either(invert(same), rest)
        if name == "EQ":
            return both(same, rest)
        strict = as_predicate(apply(lambda x, y: _STRICT[name](order(x), order(y)), a, b))
        return either(strict, both(same, rest))

    def run(machine: Machine) -> None:
        found, other = decide(machine), given(machine)
        if targets[0] is not None:
            machine.write(targets[0], how(found, other))
        if targets[1] is not None:
            machine.write(targets[1], how(invert(found), other))

    return run


def _extreme(statement: Statement) -> Run:
    """IMNMX, VIMNMX: the smaller if the predicate holds, otherwise the larger; VIADDMNMX adds first."""
    name, _, at = results(statement, 0)
    kept = [o for o in statement.operands[at:] if o.kind is not OperandKind.PREDICATE]
    chosen = [o for o in statement.operands[at:] if o.kind is OperandKind.PREDICATE]
    unsigned = statement.has("U32")
    adds = "ADD" in statement.base
    readers = [source(operand) for operand in kept]
    smaller = predicate(chosen[-1])
    if any("x2" in m or m in ("RELU", "U16", "S16", "U8", "S8", "S64", "U64") for m in statement.modifiers):
        return not_understood(name, statement.opcode)

    def pick(function: Any) -> Callable[..., Known]:
        def found(*values: Known) -> Known:
            if adds:
                values = ((values[0] + values[1]) & FULL, *values[2:])
            best = values[0]
            for value in values[1:]:
                a, b = (best, value) if unsigned else (signed(best), signed(value))
                if isinstance(a, int) and isinstance(b, int):
                    best = (min if function is np.minimum else max)(a, b) & FULL
                else:
                    best = function(a, b) & FULL
            return best

        return found

    def picked(machine: Machine) -> Value:
        values = [reader(machine) for reader in readers]
        least, most = apply(pick(np.minimum), *values), apply(pick(np.maximum), *values)
        return choose(smaller(machine), least, most)

    return writes(name, picked)


def _iabs(a: Known) -> Known:
    return abs(signed(a)) & FULL


INTEGER: Mapping[str, Build] = {
    "IADD": _add,
    "IADD3": _add,
    "VIADD": _add,
    "IADD32I": _add,
    "IMAD": _multiply,
    "IMUL": plain(lambda a, b: (a * b) & FULL, 2),
    "SHF": _shift,
    "SHL": plain(lambda a, by: (a << least(by, 32)) & FULL, 2),
    "LEA": _lea,
    "ISETP": _compare,
    "IMNMX": _extreme,
    "VIMNMX": _extreme,
    "VIMNMX3": _extreme,
    "VIADDMNMX": _extreme,
    "IABS": plain(_iabs, 1),
}
"""Opcode, without modifiers and without the `U` of uniform instructions → builder of its run."""
