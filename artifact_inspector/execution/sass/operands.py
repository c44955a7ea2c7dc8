"""Readers and writers of SASS operands."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeAlias

import numpy as np

from artifact_inspector.execution.interpreter.conversions import as_predicate
from artifact_inspector.execution.interpreter.machine import Machine
from artifact_inspector.execution.interpreter.values import (
    FULL,
    Known,
    Number,
    UnknownValue,
    Value,
    Word,
    absolute,
    apply,
    as_plain_array,
    as_signed,
    data_of,
    distinct_values,
    has_lanes,
    invert,
    join_words,
    move_lanes,
    unknown_bits_of,
    with_unknown_bits,
)
from artifact_inspector.execution.sass.environment import environment_of
from artifact_inspector.formats.sass.statement import SassOperand, SassOperandKind, SassStatement

Reader: TypeAlias = Callable[[Machine], Value]
StepRun: TypeAlias = Callable[[Machine], "bool | None"]
RunBuilder: TypeAlias = Callable[[SassStatement], StepRun]

LITERALS = (SassOperandKind.FLOAT, SassOperandKind.NUMBER)
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
    operands = statement.operands
    at = next(at for at, operand in enumerate(operands) if operand.kind is not SassOperandKind.PREDICATE)
    predicates, stop = [*operands[:at]], at + 1
    while (
        stop < len(operands) and len(predicates) < most_predicates and operands[stop].kind is SassOperandKind.PREDICATE
    ):
        predicates.append(operands[stop])
        stop += 1
    return writable_name(operands[at]), [*map(writable_name, predicates)], stop


def writable_name(operand: SassOperand) -> str | None:
    """The name of a destination; None if it ignores writes."""
    return None if operand.name in _ZERO_REGISTERS else operand.name


def split_predicates(operands: Sequence[SassOperand]) -> tuple[list[SassOperand], list[SassOperand]]:
    """The operands that are numbers, and those that are predicates."""
    predicates = [operand for operand in operands if operand.kind is SassOperandKind.PREDICATE]
    return [operand for operand in operands if operand.kind is not SassOperandKind.PREDICATE], predicates


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
    if is_float and operand.kind is SassOperandKind.NUMBER and (operand.float_value or not operand.value):
        operand = operand._replace(kind=SassOperandKind.FLOAT)
    plain_reader = _plain_reader(operand, word_offset)
    if not (operand.is_negated or operand.is_inverted or operand.is_absolute):
        return plain_reader

    def change(value: Number) -> Number:
        if operand.is_absolute:
            value = value & 0x7FFFFFFF if is_float else absolute(as_signed(value))
        if operand.is_inverted and not is_float:
            value = value ^ FULL
        if not operand.is_negated:
            return value
        return value ^ 0x80000000 if is_float else -value & FULL

    return lambda machine: apply(change, plain_reader(machine))


def _plain_reader(operand: SassOperand, step: int) -> Reader:
    number = 0
    match operand.kind:
        case SassOperandKind.REGISTER if operand.name not in _ZERO_REGISTERS:
            name = register_after(operand.name, step)
            return lambda machine: machine.read_register(name)
        case SassOperandKind.REGISTER:
            pass
        case SassOperandKind.NUMBER:
            number = (operand.value >> (32 * step)) & FULL
        case SassOperandKind.FLOAT:
            with np.errstate(over="ignore"):
                number = int(np.float32(operand.float_value).view(np.uint32))
        case SassOperandKind.CONSTANT:
            return _constant_reader(operand, step)
        case SassOperandKind.PREDICATE:  # of USEL and the like, never a number
            return predicate_reader(operand)
        case _:
            return lambda machine: machine.unknown_value(f"operand {operand.name}")
    return lambda _machine: number


_MOST_CONSTANT_ADDRESSES = 64
"""Most distinct constant addresses of the lanes of one access; branch tables have a few."""


def _constant_reader(operand: SassOperand, step: int) -> Reader:
    offset, bank = operand.value + 4 * step, operand.bank
    if operand.prefix == "cx" or operand.descriptor:
        return lambda machine: machine.unknown_value("a constant bank selected by a register")
    names = [name for name, _ in operand.address_registers if name not in _ZERO_REGISTERS]
    if not names:
        return lambda machine: environment_of(machine).constant(bank, offset, 4)

    def read_constant(machine: Machine) -> Value:
        address: Value = offset
        for name in names:
            address = apply(lambda a, b: a + b, address, machine.read_register(name))
        address = machine.resolve_active(address)
        if isinstance(address, int):
            return environment_of(machine).constant(bank, address & FULL, 4)
        if not isinstance(address, UnknownValue) and has_lanes(machine.active_mask):
            offsets = distinct_values(address, machine.active_mask)
            constants = [
                environment_of(machine).constant(bank, at & FULL, 4)
                for at in offsets[:_MOST_CONSTANT_ADDRESSES].tolist()
            ]
            known = [constant for constant in constants if isinstance(constant, int)]
            if len(known) == len(offsets):
                index = np.minimum(np.searchsorted(offsets, np.asarray(address)), len(offsets) - 1)  # inactive: any
                return np.array(known, np.int64)[index]
        return machine.unknown_value(f"c[{bank:#x}] at an address that differs between lanes")

    return read_constant


def wide_reader(operand: SassOperand) -> Reader:
    """Reader of 64 bits of a register pair, a number or a constant."""
    if operand.kind is SassOperandKind.NUMBER:
        number = operand.value
        return lambda _machine: number
    plain = operand._replace(is_negated=False, is_inverted=False, is_absolute=False)
    low_reader, high_reader = word_reader(plain), word_reader(plain, word_offset=1)
    if operand.is_negated:
        return lambda machine: apply(lambda v: -v, join_words(low_reader(machine), high_reader(machine)))
    if operand.is_inverted:
        return lambda machine: apply(lambda v: ~v, join_words(low_reader(machine), high_reader(machine)))
    return lambda machine: join_words(low_reader(machine), high_reader(machine))


def write_wide(machine: Machine, name: str | None, value: Value) -> None:
    """Write a 64-bit number to a register pair."""
    if name is not None:
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


def minimum(amount: Number, limit: int) -> Word:
    """The smaller of both."""
    return min(amount, limit) if isinstance(amount, int) else np.minimum(as_plain_array(amount), limit)


def write_run(name: str | None, value: Reader) -> StepRun:
    """A run that writes what a reader returns, unless the register ignores writes."""
    if name is None:
        return lambda _machine: None
    return lambda machine: machine.write_register(name, value(machine))


def write_all(machine: Machine, names: Iterable[str | None], value: Value) -> None:
    """Write one value to several registers or predicates."""
    for name in names:
        if name is not None:
            machine.write_register(name, value)


def write_sum(machine: Machine, name: str | None, carry_predicates: Iterable[str | None], total: Value) -> None:
    """Write the low 32 bits of a sum; the n-th carry is set if the sum is at least n · 2³²."""
    if name is not None:
        machine.write_register(name, move_lanes(lambda t: t & FULL, total))
    for multiple, carry in enumerate(carry_predicates, 1):
        if carry is not None:
            machine.write_register(carry, as_predicate(apply(lambda t, n=multiple: (t >> 32) >= n, total)))


def unknown_run(name: str | None, reason: str) -> StepRun:
    """A run that makes a register unknown, with the reason."""
    return write_run(name, lambda machine: machine.unknown_value(reason))


def unknown_result_run(name: str | None, statement: SassStatement) -> StepRun:
    """A run that makes a register unknown because the result of the statement is."""
    return unknown_run(name, f"the result of {statement.opcode}")


def unsupported_run(name: str | None, opcode: str) -> StepRun:
    """A run that makes a register unknown because the opcode is not supported."""
    return unknown_run(name, f"unsupported opcode {opcode}")


def build_move(statement: SassStatement, source_position: int | None = None) -> StepRun:
    """A run that copies one operand: the first source, or the one at `source_position`."""
    name, _, at = destinations(statement, 0)
    operand = statement.operands[at if source_position is None else source_position]
    if statement.has_modifier("64"):
        reader = wide_reader(operand)
        return lambda machine: write_wide(machine, name, reader(machine))
    is_copy = operand.kind is SassOperandKind.REGISTER and not (operand.is_negated or operand.is_inverted)
    if name is None or not is_copy or is_zero_register(operand) or operand.is_absolute:
        return write_run(name, word_reader(operand))
    return lambda machine: machine.copy_register(name, operand.name)


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
    function = np.logical_or if deciding_value else np.logical_and
    data, other_data, bits, other_bits = data_of(a), data_of(b), unknown_bits_of(a), unknown_bits_of(b)
    combined: Known = function(data, other_data)
    if not isinstance(a, UnknownValue) and not isinstance(b, UnknownValue):
        return combined
    decides = np.logical_and(np.equal(data, deciding_value), np.logical_not(bits))
    other_decides = np.logical_and(np.equal(other_data, deciding_value), np.logical_not(other_bits))
    is_decided = np.logical_or(decides, other_decides)
    unknown_lanes = np.logical_and(np.logical_or(bits, other_bits), np.logical_not(is_decided))
    return with_unknown_bits(np.where(is_decided, deciding_value, combined), unknown_lanes, a, b)


def predicate_xor(a: Value, b: Value) -> Value:
    """Exclusive or of predicates."""
    return as_predicate(apply(np.logical_xor, a, b))


_COMBINATIONS = {"AND": predicate_and, "OR": predicate_or, "XOR": predicate_xor}


def comparison_run(
    statement: SassStatement, predicates: Sequence[SassOperand], results: Callable[[Machine], tuple[Value, Value]]
) -> StepRun:
    """A run that writes two results of comparisons, each combined with the first of the predicates, if there is one."""
    targets = [writable_name(operand) for operand in statement.operands[:2]]
    combination = next((_COMBINATIONS[m] for m in statement.modifiers if m in _COMBINATIONS), predicate_and)
    combine_reader: Reader = predicate_reader(predicates[0]) if predicates else (lambda _machine: True)

    def run(machine: Machine) -> None:
        comparisons, combined = results(machine), combine_reader(machine)
        for target, comparison in zip(targets, comparisons, strict=True):
            if target is not None:
                machine.write_register(target, combination(comparison, combined))

    return run


def split_words(text: str) -> frozenset[str]:
    """The words of a table."""
    return frozenset(text.split())
