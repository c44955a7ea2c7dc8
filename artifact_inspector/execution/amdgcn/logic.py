"""AMDGCN logic, moves, selections and comparisons, and those that write EXEC.

**Source** AMD Instinct MI300 and RDNA 3 Instruction Set Architecture documents, "Instructions".
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from artifact_inspector.execution.amdgcn.builders import is_scalar, scalar_or_vector_run
from artifact_inspector.execution.amdgcn.operands import (
    RunBuilder,
    StepRun,
    is_nonzero,
    source_readers,
    under_exec,
    unpack_mask,
    wide_reader,
    word_reader,
    word_writer,
    write_all,
    write_mask,
)
from artifact_inspector.execution.interpreter.conversions import as_predicate, truncate
from artifact_inspector.execution.interpreter.values import (
    FULL,
    Known,
    UnknownValue,
    Value,
    apply,
    data_of,
    select_lanes,
    unknown_bits_of,
)
from artifact_inspector.formats.amdgcn.operations import Action, OpcodeSemantics
from artifact_inspector.formats.amdgcn.statement import AmdgcnStatement

if TYPE_CHECKING:
    from artifact_inspector.execution.interpreter.machine import Machine

# ── Logic ────────────────────────────────────────────────────────────────────────────────────────


def _and(a: Value, b: Value) -> Value:
    """Bitwise and: a known 0 makes the result known."""
    unknown_a, unknown_b = unknown_bits_of(a), unknown_bits_of(b)
    data = data_of(a) & data_of(b)
    return _with_unknown_bits(
        data, (unknown_a & (data_of(b) | unknown_b)) | (unknown_b & (data_of(a) | unknown_a)), a, b
    )


def _or(a: Value, b: Value) -> Value:
    """Bitwise or: a known 1 makes the result known."""
    unknown_a, unknown_b = unknown_bits_of(a), unknown_bits_of(b)
    data = data_of(a) | data_of(b)
    return _with_unknown_bits(
        data, (unknown_a & ~(data_of(b) & ~unknown_b)) | (unknown_b & ~(data_of(a) & ~unknown_a)), a, b
    )


def _xor(a: Value, b: Value) -> Value:
    return _with_unknown_bits(data_of(a) ^ data_of(b), unknown_bits_of(a) | unknown_bits_of(b), a, b)


def _with_unknown_bits(data: Known, unknown_bits: Known, *values: Value) -> Value:
    missing_inputs = 0
    for value in values:
        missing_inputs |= value.missing_inputs if isinstance(value, UnknownValue) else 0
    return (
        UnknownValue(data, unknown_bits & FULL, missing_inputs)
        if missing_inputs and np.any(unknown_bits & FULL)
        else data
    )


def _not(value: Value) -> Value:
    if isinstance(value, UnknownValue):
        return UnknownValue(value.data ^ FULL, value.unknown_bits, value.missing_inputs)
    return value ^ FULL


_LOGIC: Mapping[Action, Callable[[Value, Value], Value]] = {
    Action.AND: _and,
    Action.OR: _or,
    Action.XOR: _xor,
    Action.XNOR: lambda a, b: _not(_xor(a, b)),
    Action.AND_NOT: lambda a, b: _and(a, _not(b)),
    Action.OR_NOT: lambda a, b: _or(a, _not(b)),
    Action.NAND: lambda a, b: _not(_and(a, b)),
    Action.NOR: lambda a, b: _not(_or(a, b)),
    Action.NOT: lambda a, _b: _not(a),
}
_SAVE_EXEC_OPERATIONS: Mapping[str, Callable[[Value, Value], Value]] = {
    "and": _and,
    "or": _or,
    "xor": _xor,
    "andn2": lambda a, b: _and(a, _not(b)),
    "andn1": lambda a, b: _and(_not(a), b),
    "orn2": lambda a, b: _or(a, _not(b)),
    "nand": _LOGIC[Action.NAND],
    "nor": _LOGIC[Action.NOR],
    "xnor": _LOGIC[Action.XNOR],
}


def _build_logic(statement: AmdgcnStatement, meaning: OpcodeSemantics) -> StepRun:
    function = _LOGIC[meaning.action]
    names, sets_scc = statement.operands[0].names, is_scalar(statement)
    half_count = 2 if meaning.bits == 64 else 1
    write = word_writer(statement)
    last_operand = statement.operands[-1]
    half_readers = [source_readers(statement, 1, 2)] if half_count == 1 else [
        [word_reader(statement.operands[1], half), word_reader(last_operand, half)] for half in range(2)
    ]  # fmt: skip

    def run(machine: Machine) -> None:
        results = [function(readers[0](machine), readers[-1](machine)) for readers in half_readers]
        if half_count == 1:
            write(machine, results[0])
        else:
            write_all(machine, names, results)
        if sets_scc:
            machine.write_register("scc", is_nonzero(*results))

    return scalar_or_vector_run(statement, run)


def _build_save_exec(statement: AmdgcnStatement, meaning: OpcodeSemantics) -> StepRun:
    """Save EXEC to a register, then combine EXEC with the operand."""
    function = _SAVE_EXEC_OPERATIONS[meaning.condition]
    exec_registers = ("exec_lo", "exec_hi")[: meaning.bits // 32]
    target, operand = statement.operands[0], statement.operands[1]
    readers = [word_reader(operand, half) for half in range(len(exec_registers))]

    def run(machine: Machine) -> None:
        old_exec = [machine.read_register(name) for name in exec_registers]
        new_exec = [function(reader(machine), old) for reader, old in zip(readers, old_exec, strict=True)]
        write_all(machine, target.names, old_exec)
        write_all(machine, exec_registers, new_exec)
        machine.write_register("scc", is_nonzero(*new_exec))

    return run


def _build_lookup_table(statement: AmdgcnStatement, _meaning: OpcodeSemantics) -> StepRun:
    table = statement.modifier_number("bitop3")
    readers, write = source_readers(statement, 1, 3), word_writer(statement)

    def run(machine: Machine) -> None:
        a, b, c = (reader(machine) for reader in readers)
        combined: Value = 0
        for row in range(8):
            if table >> row & 1:
                first_term = a if row & 4 else _not(a)
                two_terms = _and(first_term, b if row & 2 else _not(b))
                combined = _or(combined, _and(two_terms, c if row & 1 else _not(c)))
        write(machine, combined)

    return under_exec(run)


def _build_select(statement: AmdgcnStatement, meaning: OpcodeSemantics) -> StepRun:
    if is_scalar(statement):
        names = statement.operands[0].names
        pairs = [
            (word_reader(statement.operands[1], half), word_reader(statement.operands[2], half))
            for half in range(meaning.bits // 32)
        ]

        def select(machine: Machine) -> None:
            condition = machine.read_register("scc")
            for name, (yes, no) in zip(names, pairs, strict=False):
                machine.write_register(name, select_lanes(condition, yes(machine), no(machine)))

        return select
    no, yes = source_readers(statement, 1, 2)
    mask_registers = statement.operands[3].names if len(statement.operands) > 3 else ("vcc_lo", "vcc_hi")
    write = word_writer(statement)

    def run(machine: Machine) -> None:
        mask = unpack_mask(machine, machine.read_register(mask_registers[0]), machine.read_register(mask_registers[-1]))
        write(machine, select_lanes(mask, yes(machine), no(machine)))

    return under_exec(run)


def _bit_builder(function: Callable[[Known, Known], Known]) -> RunBuilder:
    """Set or clear one bit of the destination."""

    def build(statement: AmdgcnStatement, _meaning: OpcodeSemantics) -> StepRun:
        old_reader, bit_reader, write = (
            word_reader(statement.operands[0]),
            word_reader(statement.operands[1]),
            word_writer(statement),
        )
        change_bit = partial(apply, lambda a, at: function(a, 1 << (at & 31)))
        return scalar_or_vector_run(
            statement, lambda machine: write(machine, change_bit(old_reader(machine), bit_reader(machine)))
        )

    return build


def _build_move_pair(statement: AmdgcnStatement, _meaning: OpcodeSemantics) -> StepRun:
    names = statement.operands[0].names
    word_choice = statement.list("op_sel") if statement.has_modifier("op_sel") else (0, 0)
    readers = [
        word_reader(pair, word_index) for pair, word_index in zip(statement.operands[1:3], word_choice, strict=True)
    ]
    return under_exec(lambda machine: write_all(machine, names, [reader(machine) for reader in readers]))


def _build_swap(statement: AmdgcnStatement, _meaning: OpcodeSemantics) -> StepRun:
    first, second = statement.operands
    names, readers = (*first.names, *second.names), [word_reader(second), word_reader(first)]
    return under_exec(lambda machine: write_all(machine, names, [reader(machine) for reader in readers]))


def _build_move(statement: AmdgcnStatement, meaning: OpcodeSemantics) -> StepRun:
    target, source_operand = statement.operands[0], statement.operands[1]
    if meaning.bits == 64:
        readers = [word_reader(source_operand, half) for half in range(2)]

        return scalar_or_vector_run(
            statement, lambda machine: write_all(machine, target.names, [reader(machine) for reader in readers])
        )
    write = word_writer(statement)
    reader = source_readers(statement, 1, 1)[0]
    if meaning.is_signed:
        number = truncate(source_operand.value, 16, is_signed=True) & FULL
        return lambda machine: write(machine, number)

    return scalar_or_vector_run(statement, lambda machine: write(machine, reader(machine)))


def _build_conditional_move(statement: AmdgcnStatement, meaning: OpcodeSemantics) -> StepRun:
    target, source_operand = statement.operands[:2]
    readers = [word_reader(source_operand, half) for half in range(meaning.bits // 32)]
    if meaning.is_signed:
        number = truncate(source_operand.value, 16, is_signed=True) & FULL
        readers = [lambda _machine: number]

    def run(machine: Machine) -> None:
        condition = machine.read_register("scc")
        for name, reader in zip(target.names, readers, strict=False):
            machine.write_register(name, select_lanes(condition, reader(machine), machine.read_register(name)))

    return run


# ── Comparisons ──────────────────────────────────────────────────────────────────────────────────

_CONDITIONS: Mapping[str, Callable[[Any, Any], Any]] = {
    "lt": operator.lt, "eq": operator.eq, "le": operator.le,
    "gt": operator.gt, "lg": operator.ne, "ge": operator.ge,
    "t": lambda a, b: (a == a) | (b == b),
    "f": lambda a, b: (a != a) & (b != b),
}  # fmt: skip


def _build_compare(statement: AmdgcnStatement, meaning: OpcodeSemantics) -> StepRun:
    is_scalar_compare = is_scalar(statement)
    condition, bits, is_signed = _CONDITIONS[meaning.condition], meaning.bits, meaning.is_signed
    writes_exec = meaning.action is Action.COMPARE_INTO_EXEC
    first_source = 0 if is_scalar_compare or (writes_exec and len(statement.operands) == 2) else 1
    operands = statement.operands[first_source : first_source + 2]
    readers = (
        [wide_reader(operand) for operand in operands] if bits == 64 else source_readers(statement, first_source, 2)
    )
    targets = [statement.operands[0].names] if first_source else []
    targets += [("exec_lo", "exec_hi")] if writes_exec else []
    has_constant = statement.base.startswith("s_cmpk")

    def as_number(value: Known) -> Known:
        if bits < 64:
            return truncate(
                value, 16 if has_constant and isinstance(value, int) and value < 1 << 16 else bits, is_signed=is_signed
            )
        if is_signed:
            return value
        return value & ((1 << 64) - 1) if isinstance(value, int) else value ^ np.int64(-(1 << 63))

    def run(machine: Machine) -> None:
        a, b = (reader(machine) for reader in readers)
        if bits == 64 and not is_signed and isinstance(data_of(a), int) is not isinstance(data_of(b), int):
            a, b = (
                apply(lambda v: np.asarray(v, np.int64).reshape(1, 1) if isinstance(v, int) else v, v) for v in (a, b)
            )
        if is_scalar_compare:
            right_operand = apply(lambda v: truncate(v, 16, is_signed=is_signed) if has_constant else as_number(v), b)
            left_operand = apply(lambda v: truncate(v, bits, is_signed=is_signed) if bits < 64 else as_number(v), a)
            machine.write_register("scc", as_predicate(apply(condition, left_operand, right_operand)))
            return
        comparison = as_predicate(apply(lambda x, y: condition(as_number(x), as_number(y)), a, b))
        for names in targets:
            write_mask(machine, names, comparison)

    return run if is_scalar_compare else under_exec(run)


def _build_float_compare(statement: AmdgcnStatement, _meaning: OpcodeSemantics) -> StepRun:
    """Float comparison: data is not computed, so the mask is unknown for active lanes."""
    first = statement.operands[0]
    writes_exec = statement.base.startswith("v_cmpx")
    names = [first.names] if len(statement.operands) > 2 and not is_scalar(statement) else []
    names += [("exec_lo", "exec_hi")] if writes_exec else []

    def run(machine: Machine) -> None:
        unknown_mask = UnknownValue(
            False, True, machine.unknown_value(f"the result of {statement.opcode}").missing_inputs
        )
        if is_scalar(statement):
            machine.write_register("scc", unknown_mask)
        for name in names:
            write_mask(machine, name, unknown_mask)

    return scalar_or_vector_run(statement, run)


def _build_bit_test(statement: AmdgcnStatement, meaning: OpcodeSemantics) -> StepRun:
    value_reader = wide_reader(statement.operands[0]) if meaning.bits == 64 else word_reader(statement.operands[0])
    bit_reader, expected_bit, bit_mask = (word_reader(statement.operands[1]), int(meaning.condition), meaning.bits - 1)

    def run(machine: Machine) -> None:
        is_expected = apply(
            lambda v, at: (v >> (at & bit_mask) & 1) == expected_bit, value_reader(machine), bit_reader(machine)
        )
        machine.write_register("scc", as_predicate(is_expected))

    return run


LOGIC: Mapping[Action, RunBuilder] = {
    Action.MOVE: _build_move,
    Action.MOVE_PAIR: _build_move_pair,
    Action.SWAP: _build_swap,
    Action.SET_BIT: _bit_builder(operator.or_),
    Action.CLEAR_BIT: _bit_builder(lambda a, bit: a & ~bit),
    Action.CONDITIONAL_MOVE: _build_conditional_move,
    Action.NOT: _build_logic,
    Action.AND: _build_logic,
    Action.OR: _build_logic,
    Action.XOR: _build_logic,
    Action.XNOR: _build_logic,
    Action.AND_NOT: _build_logic,
    Action.OR_NOT: _build_logic,
    Action.NAND: _build_logic,
    Action.NOR: _build_logic,
    Action.BITOP3: _build_lookup_table,
    Action.SELECT: _build_select,
    Action.COMPARE: _build_compare,
    Action.COMPARE_INTO_EXEC: _build_compare,
    Action.COMPARE_FLOATS: _build_float_compare,
    Action.TEST_BIT: _build_bit_test,
    Action.SAVE_EXEC: _build_save_exec,
}
"""Action → builder of its run."""
