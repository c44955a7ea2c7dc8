"""Readers and writers of SASS operands."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from artifact_inspector.execution.interpreter.lanes import (
    FULL,
    Known,
    Unknown,
    Value,
    apply,
    as_wide,
    data_of,
    distinct,
    invert,
    is_true,
)
from artifact_inspector.execution.interpreter.numbers import as_predicate
from artifact_inspector.formats.sass.statement import Operand, OperandKind, Statement

if TYPE_CHECKING:
    from artifact_inspector.execution.interpreter.machine import Machine

Reader: TypeAlias = Callable[["Machine"], Value]
Run: TypeAlias = Callable[["Machine"], "bool | None"]
Build: TypeAlias = Callable[[Statement], Run]

_NOTHING = frozenset(("RZ", "URZ", "PT", "UPT", "SRZ"))


def is_nothing(operand: Operand) -> bool:
    """Whether a register reads as zero (or true) and ignores writes."""
    return operand.name in _NOTHING


def following(name: str, step: int = 1) -> str:
    """The `step`-th register after another: `R4` → `R5`.

    Example:
        >>> following("UR7"), following("RZ")
        ('UR8', 'RZ')
    """
    if name in _NOTHING or step == 0:
        return name
    bank = name.rstrip("0123456789")
    return f"{bank}{int(name[len(bank) :]) + step}"


def results(statement: Statement, most: int = 1) -> tuple[str | None, list[str | None], int]:
    """The destination register, the destination predicates, and the number of destination operands.

    Predicates come before the register (`LOP3 P0, R1, …`) or right after it (`IADD3 R1, P0, …`).
    """
    operands, at = statement.operands, 0
    beside: list[str | None] = []
    while operands[at].kind is OperandKind.PREDICATE:
        beside.append(_kept(operands[at]))
        at += 1
    register = _kept(operands[at])
    at += 1
    while at < len(operands) and len(beside) < most and operands[at].kind is OperandKind.PREDICATE:
        beside.append(_kept(operands[at]))
        at += 1
    return register, beside, at


def _kept(operand: Operand) -> str | None:
    return None if operand.name in _NOTHING else operand.name


def predicate(operand: Operand) -> Reader:
    """Reader of a predicate, negated if the operand is."""
    name, inverted = operand.name, operand.invert
    if name in _NOTHING:
        return lambda _machine: not inverted
    if inverted:
        return lambda machine: invert(machine.read(name))
    return lambda machine: machine.read(name)


def source(operand: Operand, *, real: bool = False, step: int = 0) -> Reader:
    """Reader of 32 bits.

    Args:
        operand: a register, number or constant.
        real: whether signs and decimal numbers are those of a float.
        step: number of registers or words to skip.
    """
    if real and operand.kind is OperandKind.NUMBER and operand.real:
        operand = operand._replace(kind=OperandKind.FLOAT)
    base = _plain(operand, step)
    if not (operand.minus or operand.invert or operand.absolute):
        return base
    change = _float_sign(operand) if real else _integer_sign(operand)
    return lambda machine: apply(change, base(machine))


def _integer_sign(operand: Operand) -> Callable[[Known], Known]:
    def change(value: Known) -> Known:
        if operand.absolute:
            value = abs((value ^ 0x80000000) - 0x80000000)
        if operand.invert:
            value = value ^ FULL
        return -value & FULL if operand.minus else value

    return change


def _float_sign(operand: Operand) -> Callable[[Known], Known]:
    def change(value: Known) -> Known:
        if operand.absolute:
            value = value & 0x7FFFFFFF
        return value ^ 0x80000000 if operand.minus else value

    return change


def _plain(operand: Operand, step: int) -> Reader:
    if operand.kind is OperandKind.REGISTER:
        if operand.name in _NOTHING:
            return lambda _machine: 0
        name = following(operand.name, step)
        return lambda machine: machine.read(name)
    if operand.kind is OperandKind.NUMBER:
        number = (operand.value >> (32 * step)) & FULL
        return lambda _machine: number
    if operand.kind is OperandKind.FLOAT:
        with np.errstate(over="ignore"):
            bits = int(np.float32(operand.real).view(np.uint32))
        return lambda _machine: bits
    if operand.kind is OperandKind.CONSTANT:
        return _constant(operand, step)
    if operand.kind is OperandKind.PREDICATE:  # of USEL and the like, never a number
        return predicate(operand)
    text = operand.name
    return lambda machine: machine.unknown(f"operand {text}")


_MOST_PLACES = 64
"""Most distinct constant addresses of the lanes of one access; branch tables have a few."""


def _constant(operand: Operand, step: int) -> Reader:
    offset, bank = operand.value + 4 * step, operand.bank
    if operand.prefix == "cx" or operand.descriptor:
        return lambda machine: machine.unknown("a constant bank selected by a register")
    if not operand.parts:
        return lambda machine: machine.environment.constant(bank, offset, 4)

    def read(machine: Machine) -> Value:
        at: Value = offset
        for name, _ in operand.parts:
            at = apply(lambda a, b: a + b, at, 0 if name in _NOTHING else machine.read(name))
        at = machine.settled(at)
        if isinstance(at, (int, np.integer)):
            return machine.environment.constant(bank, int(at) & FULL, 4)
        if isinstance(at, np.ndarray) and is_true(machine.on):
            places = distinct(at, machine.on)
            held = [machine.environment.constant(bank, int(one) & FULL, 4) for one in places[:_MOST_PLACES]]
            if len(held) == len(places) and not any(isinstance(one, Unknown) for one in held):
                which = np.minimum(np.searchsorted(places, at), len(places) - 1)  # inactive lanes: any
                return np.array(held, np.int64)[which]
        return machine.unknown(f"c[{bank:#x}] at an address that differs between lanes")

    return read


def wide(operand: Operand) -> Reader:
    """Reader of 64 bits of a register pair, a number or a constant."""
    if operand.kind is OperandKind.NUMBER:
        number = operand.value
        return lambda _machine: number
    plain = operand._replace(minus=False, invert=False, absolute=False)
    low, high = source(plain), source(plain, step=1)
    minus, inverted = operand.minus, operand.invert

    def read(machine: Machine) -> Value:
        value = as_wide(low(machine), high(machine))
        if minus:
            return apply(lambda v: -v, value)
        return apply(lambda v: ~v, value) if inverted else value

    return read


def write_wide(machine: Machine, name: str | None, value: Value) -> None:
    """Write a 64-bit number to a register pair."""
    if name is None:
        return
    machine.write(name, apply(lambda v: v & FULL, value))
    machine.write(following(name), apply(lambda v: (v >> 32) & FULL, value))


# ── Shared by several kinds of instructions ──────────────────────────────────────────────────────


def plain(function: Callable[..., Known], sources: int) -> Build:
    """Builder for an instruction that computes one register from others."""

    def build(statement: Statement) -> Run:
        name, _, at = results(statement, 0)
        readers = [source(operand) for operand in statement.operands[at : at + sources]]
        return writes(name, lambda machine: apply(function, *(reader(machine) for reader in readers)))

    return build


def least(by: Known, most: int) -> Known:
    """The smaller of both."""
    return np.minimum(by, most) if isinstance(by, np.ndarray) else min(by, most)


def writes(name: str | None, value: Reader) -> Run:
    """A run that writes what a reader returns, unless the register ignores writes."""
    if name is None:
        return lambda _machine: None

    def run(machine: Machine) -> None:
        machine.write(name, value(machine))

    return run


def write_all(machine: Machine, names: Iterable[str | None], value: Value) -> None:
    """Write one value to several registers or predicates."""
    for name in names:
        if name is not None:
            machine.write(name, value)


def put_sum(machine: Machine, name: str | None, carries: Iterable[str | None], total: Value) -> None:
    """Write the low 32 bits of a sum; the n-th carry is set if the sum is at least n · 2³²."""
    if name is not None:
        machine.write(name, apply(lambda t: t & FULL, total))
    for most, carry in enumerate(carries, 1):
        if carry is not None:
            machine.write(carry, as_predicate(apply(lambda t, n=most: (t >> 32) >= n, total)))


def not_known(name: str | None, why: str) -> Run:
    """A run that makes a register unknown, with the reason."""
    return writes(name, lambda machine: machine.unknown(why))


def not_understood(name: str | None, opcode: str) -> Run:
    """A run that makes a register unknown because the opcode is not supported."""
    return not_known(name, f"unsupported opcode {opcode}")


def move(statement: Statement, place: int | None = None) -> Run:
    """A run that copies one operand: the first source, or the one at `place`."""
    name, _, at = results(statement, 0)
    at = at if place is None else place
    if statement.has("64"):
        reader = wide(statement.operands[at])
        return lambda machine: write_wide(machine, name, reader(machine))
    return writes(name, source(statement.operands[at]))


def both(a: Value, b: Value) -> Value:
    """Conjunction of predicates."""
    return _combine(a, b, False)


def either(a: Value, b: Value) -> Value:
    """Disjunction of predicates."""
    return _combine(a, b, True)


def _combine(a: Value, b: Value, settles: bool) -> Value:
    """Conjunction or disjunction of predicates; the result is known if one operand decides it."""
    if isinstance(a, bool):
        return settles if a is settles else b
    if isinstance(b, bool):
        return settles if b is settles else a
    function: Any = np.logical_or if settles else np.logical_and
    if not isinstance(a, Unknown) and not isinstance(b, Unknown):
        return function(a, b)
    data: Any = function(data_of(a), data_of(b))
    bad: Any = False
    why = 0
    for mine, other in ((a, b), (b, a)):
        if isinstance(mine, Unknown):
            why |= mine.why
            sure = other.bad if isinstance(other, Unknown) else False
            settled = np.logical_and(np.equal(data_of(other), settles), np.logical_not(sure))
            bad = np.logical_or(bad, np.logical_and(mine.bad, np.logical_not(settled)))
            data = np.where(settled, settles, data)
    return Unknown(data, bad, why) if np.any(bad) else data


def xor(a: Value, b: Value) -> Value:
    """Exclusive or of predicates."""
    return as_predicate(apply(np.logical_xor, a, b))


def words(text: str) -> frozenset[str]:
    """The words of a table."""
    return frozenset(text.split())
