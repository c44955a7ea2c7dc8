"""Readers and writers of SASS operands."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from artifact_inspector.execution.interpreter.conversions import as_predicate
from artifact_inspector.execution.interpreter.values import (
    FULL,
    Known,
    UnknownValue,
    Value,
    apply,
    data_of,
    distinct_values,
    has_lanes,
    invert,
    join_words,
)
from artifact_inspector.formats.sass.statement import SassOperand, SassOperandKind, SassStatement

if TYPE_CHECKING:
    from artifact_inspector.execution.interpreter.machine import Machine

Reader: TypeAlias = Callable[["Machine"], Value]
StepRun: TypeAlias = Callable[["Machine"], "bool | None"]
RunBuilder: TypeAlias = Callable[[SassStatement], StepRun]

_ZERO_REGISTERS = frozenset(("RZ", "URZ", "PT", "UPT", "SRZ"))


def is_zero_register(operand: SassOperand) -> bool:
    """Whether a register reads as zero (or true) and ignores writes."""
    return operand.name in _ZERO_REGISTERS


def register_after(name: str, distance: int = 1) -> str:
    """The `distance`-th register after another: `R4` → `R5`.

    Example:
        >>> register_after("UR7"), register_after("RZ")
        ('UR8', 'RZ')
    """
    if name in _ZERO_REGISTERS or distance == 0:
        return name
    bank = name.rstrip("0123456789")
    return f"{bank}{int(name[len(bank) :]) + distance}"


def destinations(statement: SassStatement, most_predicates: int = 1) -> tuple[str | None, list[str | None], int]:
    """The destination register, the destination predicates, and the number of destination operands.

    Predicates come before the register (`LOP3 P0, R1, …`) or right after it (`IADD3 R1, P0, …`).
    """
    operands, position = statement.operands, 0
    predicates: list[str | None] = []
    while operands[position].kind is SassOperandKind.PREDICATE:
        predicates.append(_writable_name(operands[position]))
        position += 1
    register = _writable_name(operands[position])
    position += 1
    while (
        position < len(operands)
        and len(predicates) < most_predicates
        and operands[position].kind is SassOperandKind.PREDICATE
    ):
        predicates.append(_writable_name(operands[position]))
        position += 1
    return register, predicates, position


def _writable_name(operand: SassOperand) -> str | None:
    return None if operand.name in _ZERO_REGISTERS else operand.name


def predicate_reader(operand: SassOperand) -> Reader:
    """Reader of a predicate, negated if the operand is."""
    name, inverted = operand.name, operand.is_inverted
    if name in _ZERO_REGISTERS:
        return lambda _machine: not inverted
    if inverted:
        return lambda machine: invert(machine.read_register(name))
    return lambda machine: machine.read_register(name)


def word_reader(operand: SassOperand, *, is_float: bool = False, word_offset: int = 0) -> Reader:
    """Reader of 32 bits.

    Args:
        operand: a register, number or constant.
        is_float: whether signs and decimal numbers are those of a float.
        word_offset: number of registers or words to skip.
    """
    if is_float and operand.kind is SassOperandKind.NUMBER and operand.float_value:
        operand = operand._replace(kind=SassOperandKind.FLOAT)
    plain_reader = _plain_reader(operand, word_offset)
    if not (operand.is_negated or operand.is_inverted or operand.is_absolute):
        return plain_reader
    apply_sign = _float_modifiers(operand) if is_float else _integer_modifiers(operand)
    return lambda machine: apply(apply_sign, plain_reader(machine))


def _integer_modifiers(operand: SassOperand) -> Callable[[Known], Known]:
    def change(value: Known) -> Known:
        if operand.is_absolute:
            value = abs((value ^ 0x80000000) - 0x80000000)
        if operand.is_inverted:
            value = value ^ FULL
        return -value & FULL if operand.is_negated else value

    return change


def _float_modifiers(operand: SassOperand) -> Callable[[Known], Known]:
    def change(value: Known) -> Known:
        if operand.is_absolute:
            value = value & 0x7FFFFFFF
        return value ^ 0x80000000 if operand.is_negated else value

    return change


def _plain_reader(operand: SassOperand, step: int) -> Reader:
    if operand.kind is SassOperandKind.REGISTER:
        if operand.name in _ZERO_REGISTERS:
            return lambda _machine: 0
        name = register_after(operand.name, step)
        return lambda machine: machine.read_register(name)
    if operand.kind is SassOperandKind.NUMBER:
        number = (operand.value >> (32 * step)) & FULL
        return lambda _machine: number
    if operand.kind is SassOperandKind.FLOAT:
        with np.errstate(over="ignore"):
            bits = int(np.float32(operand.float_value).view(np.uint32))
        return lambda _machine: bits
    if operand.kind is SassOperandKind.CONSTANT:
        return _constant_reader(operand, step)
    if operand.kind is SassOperandKind.PREDICATE:  # of USEL and the like, never a number
        return predicate_reader(operand)
    text = operand.name
    return lambda machine: machine.unknown_value(f"operand {text}")


_MOST_CONSTANT_ADDRESSES = 64
"""Most distinct constant addresses of the lanes of one access; branch tables have a few."""


def _constant_reader(operand: SassOperand, step: int) -> Reader:
    offset, bank = operand.value + 4 * step, operand.bank
    if operand.prefix == "cx" or operand.descriptor:
        return lambda machine: machine.unknown_value("a constant bank selected by a register")
    if not operand.address_registers:
        return lambda machine: machine.environment.constant(bank, offset, 4)

    def read_constant(machine: Machine) -> Value:
        bank_offset: Value = offset
        for name, _ in operand.address_registers:
            bank_offset = apply(
                lambda a, b: a + b, bank_offset, 0 if name in _ZERO_REGISTERS else machine.read_register(name)
            )
        bank_offset = machine.resolve_active(bank_offset)
        if isinstance(bank_offset, (int, np.integer)):
            return machine.environment.constant(bank, int(bank_offset) & FULL, 4)
        if isinstance(bank_offset, np.ndarray) and has_lanes(machine.active_mask):
            distinct_offsets = distinct_values(bank_offset, machine.active_mask)
            constants = [
                machine.environment.constant(bank, int(entry) & FULL, 4)
                for entry in distinct_offsets[:_MOST_CONSTANT_ADDRESSES]
            ]
            if len(constants) == len(distinct_offsets) and not any(
                isinstance(entry, UnknownValue) for entry in constants
            ):
                entry_index = np.minimum(
                    np.searchsorted(distinct_offsets, bank_offset), len(distinct_offsets) - 1
                )  # inactive lanes: any
                return np.array(constants, np.int64)[entry_index]
        return machine.unknown_value(f"c[{bank:#x}] at an address that differs between lanes")

    return read_constant


def wide_reader(operand: SassOperand) -> Reader:
    """Reader of 64 bits of a register pair, a number or a constant."""
    if operand.kind is SassOperandKind.NUMBER:
        number = operand.value
        return lambda _machine: number
    plain = operand._replace(is_negated=False, is_inverted=False, is_absolute=False)
    low_reader, high_reader = word_reader(plain), word_reader(plain, word_offset=1)
    minus, inverted = operand.is_negated, operand.is_inverted

    def read_wide(machine: Machine) -> Value:
        value = join_words(low_reader(machine), high_reader(machine))
        if minus:
            return apply(lambda v: -v, value)
        return apply(lambda v: ~v, value) if inverted else value

    return read_wide


def write_wide(machine: Machine, name: str | None, value: Value) -> None:
    """Write a 64-bit number to a register pair."""
    if name is None:
        return
    machine.write_register(name, apply(lambda v: v & FULL, value))
    machine.write_register(register_after(name), apply(lambda v: (v >> 32) & FULL, value))


# ── Shared by several kinds of instructions ──────────────────────────────────────────────────────


def operation_builder(function: Callable[..., Known], source_count: int) -> RunBuilder:
    """Builder for an instruction that computes one register from others."""

    def build(statement: SassStatement) -> StepRun:
        name, _, at = destinations(statement, 0)
        readers = [word_reader(operand) for operand in statement.operands[at : at + source_count]]
        return write_run(name, lambda machine: apply(function, *(reader(machine) for reader in readers)))

    return build


def minimum(amount: Known, limit: int) -> Known:
    """The smaller of both."""
    return np.minimum(amount, limit) if isinstance(amount, np.ndarray) else min(amount, limit)


def write_run(name: str | None, value: Reader) -> StepRun:
    """A run that writes what a reader returns, unless the register ignores writes."""
    if name is None:
        return lambda _machine: None

    def run(machine: Machine) -> None:
        machine.write_register(name, value(machine))

    return run


def write_all(machine: Machine, names: Iterable[str | None], value: Value) -> None:
    """Write one value to several registers or predicates."""
    for name in names:
        if name is not None:
            machine.write_register(name, value)


def write_sum(machine: Machine, name: str | None, carry_predicates: Iterable[str | None], total: Value) -> None:
    """Write the low 32 bits of a sum; the n-th carry is set if the sum is at least n · 2³²."""
    if name is not None:
        machine.write_register(name, apply(lambda t: t & FULL, total))
    for multiple, carry in enumerate(carry_predicates, 1):
        if carry is not None:
            machine.write_register(carry, as_predicate(apply(lambda t, n=multiple: (t >> 32) >= n, total)))


def unknown_run(name: str | None, reason: str) -> StepRun:
    """A run that makes a register unknown, with the reason."""
    return write_run(name, lambda machine: machine.unknown_value(reason))


def unsupported_run(name: str | None, opcode: str) -> StepRun:
    """A run that makes a register unknown because the opcode is not supported."""
    return unknown_run(name, f"unsupported opcode {opcode}")


def build_move(statement: SassStatement, source_position: int | None = None) -> StepRun:
    """A run that copies one operand: the first source, or the one at `source_position`."""
    name, _, at = destinations(statement, 0)
    at = at if source_position is None else source_position
    if statement.has_modifier("64"):
        reader = wide_reader(statement.operands[at])
        return lambda machine: write_wide(machine, name, reader(machine))
    return write_run(name, word_reader(statement.operands[at]))


def predicate_and(a: Value, b: Value) -> Value:
    """Conjunction of predicates."""
    return _combine_predicates(a, b, False)


def predicate_or(a: Value, b: Value) -> Value:
    """Disjunction of predicates."""
    return _combine_predicates(a, b, True)


def _combine_predicates(a: Value, b: Value, deciding_value: bool) -> Value:
    """Conjunction or disjunction of predicates; the result is known if one operand decides it."""
    if isinstance(a, bool):
        return deciding_value if a is deciding_value else b
    if isinstance(b, bool):
        return deciding_value if b is deciding_value else a
    function: Any = np.logical_or if deciding_value else np.logical_and
    if not isinstance(a, UnknownValue) and not isinstance(b, UnknownValue):
        return function(a, b)
    data: Any = function(data_of(a), data_of(b))
    unknown_lanes: Any = False
    missing_inputs = 0
    for operand, partner in ((a, b), (b, a)):
        if isinstance(operand, UnknownValue):
            missing_inputs |= operand.missing_inputs
            partner_unknown = partner.unknown_bits if isinstance(partner, UnknownValue) else False
            is_decided = np.logical_and(np.equal(data_of(partner), deciding_value), np.logical_not(partner_unknown))
            unknown_lanes = np.logical_or(
                unknown_lanes, np.logical_and(operand.unknown_bits, np.logical_not(is_decided))
            )
            data = np.where(is_decided, deciding_value, data)
    return UnknownValue(data, unknown_lanes, missing_inputs) if np.any(unknown_lanes) else data


def predicate_xor(a: Value, b: Value) -> Value:
    """Exclusive or of predicates."""
    return as_predicate(apply(np.logical_xor, a, b))


def split_words(text: str) -> frozenset[str]:
    """The words of a table."""
    return frozenset(text.split())
