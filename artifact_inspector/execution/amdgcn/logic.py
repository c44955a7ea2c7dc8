"""AMDGCN logic, moves, selections and comparisons, and those that write EXEC.

**Source** AMD Instinct MI300 and RDNA 3 Instruction Set Architecture documents, "Instructions".
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

import numpy as np

from artifact_inspector.execution.amdgcn import operands as op
from artifact_inspector.execution.interpreter.affine import AffineValue, is_bool_array, pair_operands
from artifact_inspector.execution.interpreter.conversions import as_predicate, truncate, wrap_int64
from artifact_inspector.execution.interpreter.machine import Machine
from artifact_inspector.execution.interpreter.values import (
    FULL,
    Known,
    Number,
    Plain,
    UnknownValue,
    Value,
    apply,
    as_plain_array,
    data_of,
    select_lanes,
    unknown_bits_of,
    with_unknown_bits,
)
from artifact_inspector.formats.amdgcn.operations import Action, OpcodeSemantics
from artifact_inspector.formats.amdgcn.statement import AmdgcnOperand, AmdgcnStatement

_EXEC = ("exec_lo", "exec_hi")

# ── Logic ────────────────────────────────────────────────────────────────────────────────────────

_Logic: TypeAlias = Callable[[Value, Value], Value]


def _planes(value: Value) -> tuple[Plain, Plain]:
    return as_plain_array(data_of(value)), unknown_bits_of(value)


def _and(a: Value, b: Value) -> Value:
    """Bitwise and: a known 0 makes the result known."""
    if not isinstance(a, UnknownValue) and not isinstance(b, UnknownValue):
        return apply(operator.and_, a, b)
    (data, unknown), (other_data, other_unknown) = _planes(a), _planes(b)
    unknown_bits = (unknown & (other_data | other_unknown)) | (other_unknown & (data | unknown))
    return with_unknown_bits(data & other_data, unknown_bits & FULL, a, b)


def _or(a: Value, b: Value) -> Value:
    """Bitwise or: a known 1 makes the result known."""
    if not isinstance(a, UnknownValue) and not isinstance(b, UnknownValue):
        return apply(operator.or_, a, b)
    (data, unknown), (other_data, other_unknown) = _planes(a), _planes(b)
    unknown_bits = (unknown & ~(other_data & ~other_unknown)) | (other_unknown & ~(data & ~unknown))
    return with_unknown_bits(data | other_data, unknown_bits & FULL, a, b)


def _xor(a: Value, b: Value) -> Value:
    if not isinstance(a, UnknownValue) and not isinstance(b, UnknownValue):
        return apply(operator.xor, a, b)
    (data, unknown), (other_data, other_unknown) = _planes(a), _planes(b)
    return with_unknown_bits(data ^ other_data, (unknown | other_unknown) & FULL, a, b)


def _not(value: Value) -> Value:
    data, unknown_bits = _planes(value)
    return with_unknown_bits(data ^ FULL, unknown_bits, value)


LOGICAL: Mapping[Action, _Logic] = {
    Action.AND: _and, Action.OR: _or, Action.XOR: _xor, Action.XNOR: lambda a, b: _not(_xor(a, b)),
    Action.AND_NOT: lambda a, b: _and(a, _not(b)), Action.OR_NOT: lambda a, b: _or(a, _not(b)),
    Action.NAND: lambda a, b: _not(_and(a, b)), Action.NOR: lambda a, b: _not(_or(a, b)),
    Action.NOT: lambda a, _b: _not(a)
}  # fmt: skip
"""Action → the operation on bits."""
_MOST_SELECTIONS = 8
"""Selections of addresses that are kept until an access: it takes the lanes of each value together."""
_SAVE_EXEC_OPERATIONS: Mapping[str, _Logic] = {
    "and": _and, "or": _or, "xor": _xor, "andn2": LOGICAL[Action.AND_NOT],
    "andn1": lambda a, b: _and(_not(a), b), "orn2": LOGICAL[Action.OR_NOT], "nand": LOGICAL[Action.NAND],
    "nor": LOGICAL[Action.NOR], "xnor": LOGICAL[Action.XNOR]
}  # fmt: skip


def _collapse(word: Value) -> Value:
    """One number for an array of equal ones."""
    return int(word.flat[0]) if isinstance(word, np.ndarray) and (word == word.flat[0]).all() else word


def _build_logic(statement: AmdgcnStatement, meaning: OpcodeSemantics) -> op.StepRun:
    function = LOGICAL[meaning.action]
    names, sets_scc, is_wide = statement.operands[0].names, op.is_scalar(statement), meaning.bits == 64
    write, sources = op.word_writer(statement), (statement.operands[1], statement.operands[-1])
    half_readers = [op.source_readers(statement, 1, 2)]
    if is_wide:
        half_readers = [[op.word_reader(operand, half) for operand in sources] for half in range(2)]

    def run(machine: Machine) -> None:
        pairs = [(readers[0](machine), readers[-1](machine)) for readers in half_readers]
        results = [function(*pairs[0])]
        if is_wide:  # a mask: its halves, and its CTAs, are often the same
            is_repeated = pairs[1][0] is pairs[0][0] and pairs[1][1] is pairs[0][1]
            results = [*map(_collapse, (results[0], results[0] if is_repeated else function(*pairs[1])))]
            op.write_all(machine, names, results)
        else:
            write(machine, results[0])
        if sets_scc:
            machine.write_register("scc", op.is_nonzero(*results))

    return op.scalar_or_vector_run(statement, run)


def _build_save_exec(statement: AmdgcnStatement, meaning: OpcodeSemantics) -> op.StepRun:
    """Save EXEC to a register, then combine EXEC with the operand."""
    function = _SAVE_EXEC_OPERATIONS[meaning.condition]
    exec_registers = _EXEC[: meaning.bits // 32]
    readers = [op.word_reader(statement.operands[1], half) for half in range(len(exec_registers))]

    def run(machine: Machine) -> None:
        old_exec = [machine.read_register(name) for name in exec_registers]
        new_exec = [function(reader(machine), old) for reader, old in zip(readers, old_exec, strict=True)]
        op.write_all(machine, statement.operands[0].names, old_exec)
        op.write_all(machine, exec_registers, new_exec)
        machine.write_register("scc", op.is_nonzero(*new_exec))

    return run


def _build_lookup_table(statement: AmdgcnStatement, _meaning: OpcodeSemantics) -> op.StepRun:
    table = statement.modifier_number("bitop3")
    readers, write = op.source_readers(statement, 1, 3), op.word_writer(statement)

    def run(machine: Machine) -> None:
        a, b, c = (reader(machine) for reader in readers)
        combined: Value = 0
        for row in range(8):
            if table >> row & 1:
                two_terms = _and(a if row & 4 else _not(a), b if row & 2 else _not(b))
                combined = _or(combined, _and(two_terms, c if row & 1 else _not(c)))
        write(machine, combined)

    return op.under_exec(run)


def _build_select(statement: AmdgcnStatement, meaning: OpcodeSemantics) -> op.StepRun:
    operands = statement.operands
    if op.is_scalar(statement):
        pairs = [[op.word_reader(operand, half) for operand in operands[1:3]] for half in range(meaning.bits // 32)]

        def select(machine: Machine) -> None:
            condition = machine.read_register("scc")
            for name, (yes, no) in zip(operands[0].names, pairs, strict=False):
                machine.write_register(name, select_lanes(condition, yes(machine), no(machine)))

        return select
    no, yes = op.source_readers(statement, 1, 2)
    mask_registers = operands[3].names if len(operands) > 3 else ("vcc_lo", "vcc_hi")
    write = op.word_writer(statement)

    def run(machine: Machine) -> None:
        mask, values = op.read_mask(machine, mask_registers), (yes(machine), no(machine))
        selected = select_lanes(mask, *values)
        if isinstance(selected, np.ndarray) and is_bool_array(mask) and any(isinstance(v, AffineValue) for v in values):
            if len(machine.selections) >= _MOST_SELECTIONS:
                machine.selections.clear()
            machine.selections[id(selected)] = selected, mask, *values
        write(machine, selected)

    return op.under_exec(run)


def _bit_builder(function: Callable[[Number, Number], Number]) -> op.RunBuilder:
    """Set or clear one bit of the destination."""

    def build(statement: AmdgcnStatement, _meaning: OpcodeSemantics) -> op.StepRun:
        old_reader, bit_reader = map(op.word_reader, statement.operands[:2])
        write = op.word_writer(statement)

        def run(machine: Machine) -> None:
            write(machine, apply(lambda a, at: function(a, 1 << (at & 31)), old_reader(machine), bit_reader(machine)))

        return op.scalar_or_vector_run(statement, run)

    return build


def _move_run(statement: AmdgcnStatement, names: tuple[str, ...], readers: Sequence[op.Reader]) -> op.StepRun:
    return op.scalar_or_vector_run(
        statement, lambda machine: op.write_all(machine, names, [reader(machine) for reader in readers])
    )


def _build_move_pair(statement: AmdgcnStatement, _meaning: OpcodeSemantics) -> op.StepRun:
    word_choice = statement.list("op_sel") if statement.has_modifier("op_sel") else (0, 0)
    readers = [op.word_reader(pair, at) for pair, at in zip(statement.operands[1:3], word_choice, strict=True)]
    return _move_run(statement, statement.operands[0].names, readers)


def _build_swap(statement: AmdgcnStatement, _meaning: OpcodeSemantics) -> op.StepRun:
    first, second = statement.operands
    return _move_run(statement, (*first.names, *second.names), [op.word_reader(second), op.word_reader(first)])


def _source_readers(operand: AmdgcnOperand, meaning: OpcodeSemantics) -> list[op.Reader]:
    """Readers of the words of an operand, or of a signed constant of 16 bits."""
    number = truncate(operand.value, 16, is_signed=True) & FULL
    return [
        (lambda _machine: number) if meaning.is_signed else op.word_reader(operand, at)
        for at in range(meaning.bits // 32)
    ]


def _build_move(statement: AmdgcnStatement, meaning: OpcodeSemantics) -> op.StepRun:
    if meaning.bits == 64 or meaning.is_signed:
        return _move_run(statement, statement.operands[0].names, _source_readers(statement.operands[1], meaning))
    write, reader = op.word_writer(statement), op.source_readers(statement, 1, 1)[0]
    return op.scalar_or_vector_run(statement, lambda machine: write(machine, reader(machine)))


def _build_conditional_move(statement: AmdgcnStatement, meaning: OpcodeSemantics) -> op.StepRun:
    names, readers = statement.operands[0].names, _source_readers(statement.operands[1], meaning)

    def run(machine: Machine) -> None:
        condition = machine.read_register("scc")
        for name, reader in zip(names, readers, strict=False):
            machine.write_register(name, select_lanes(condition, reader(machine), machine.read_register(name)))

    return run


# ── Comparisons ──────────────────────────────────────────────────────────────────────────────────

_CONDITIONS: Mapping[str, Callable[[Number, Number], Known]] = {
    "lt": operator.lt, "eq": operator.eq, "le": operator.le,
    "gt": operator.gt, "lg": operator.ne, "ge": operator.ge,
    "t": lambda a, b: (a == a) | (b == b),
    "f": lambda a, b: (a != a) & (b != b),
}  # fmt: skip


def _build_compare(statement: AmdgcnStatement, meaning: OpcodeSemantics) -> op.StepRun:
    is_scalar_compare = op.is_scalar(statement)
    condition, bits, is_signed = _CONDITIONS[meaning.condition], meaning.bits, meaning.is_signed
    writes_exec = meaning.action is Action.COMPARE_INTO_EXEC
    first_source = 0 if is_scalar_compare or (writes_exec and len(statement.operands) == 2) else 1
    readers = op.source_readers(statement, first_source, 2)
    if bits == 64:
        readers = [op.operand_reader(operand, bits) for operand in statement.operands[first_source : first_source + 2]]
    targets = [*([statement.operands[0].names] if first_source else []), *([_EXEC] if writes_exec else [])]
    has_constant = statement.base.startswith("s_cmpk")

    def as_ordered(value: Number) -> Number:
        if bits < 64:
            return truncate(value, bits, is_signed=is_signed)
        return value if is_signed else wrap_int64(value) ^ -(1 << 63)

    def compare(a: Number, b: Number) -> Known:
        left = as_ordered(a)
        right = truncate(b, 16, is_signed=is_signed) if has_constant else as_ordered(b)
        return condition(*pair_operands(left, right))

    def run(machine: Machine) -> None:
        comparison = as_predicate(apply(compare, *(reader(machine) for reader in readers)))
        if is_scalar_compare:
            machine.write_register("scc", comparison)
        for names in targets:
            op.write_mask(machine, names, comparison)

    return run if is_scalar_compare else op.under_exec(run)


def _build_float_compare(statement: AmdgcnStatement, _meaning: OpcodeSemantics) -> op.StepRun:
    """Float comparison: data is not computed, so the mask is unknown for active lanes."""
    is_scalar_compare = op.is_scalar(statement)
    names = [statement.operands[0].names] if len(statement.operands) > 2 and not is_scalar_compare else []
    names += [_EXEC] if statement.base.startswith("v_cmpx") else []

    def run(machine: Machine) -> None:
        reason = machine.unknown_value(f"the result of {statement.opcode}")
        unknown_mask = UnknownValue(False, True, reason.missing_inputs)
        if is_scalar_compare:
            machine.write_register("scc", unknown_mask)
        for name in names:
            op.write_mask(machine, name, unknown_mask)

    return op.scalar_or_vector_run(statement, run)


def _build_bit_test(statement: AmdgcnStatement, meaning: OpcodeSemantics) -> op.StepRun:
    readers = op.operand_reader(statement.operands[0], meaning.bits), op.word_reader(statement.operands[1])
    expected_bit, bit_mask = int(meaning.condition), meaning.bits - 1

    def run(machine: Machine) -> None:
        values = [reader(machine) for reader in readers]
        is_expected = apply(lambda v, at: (v >> (at & bit_mask) & 1) == expected_bit, *values)
        machine.write_register("scc", as_predicate(is_expected))

    return run


LOGIC: Mapping[Action, op.RunBuilder] = {
    **dict.fromkeys(LOGICAL, _build_logic), Action.MOVE: _build_move, Action.MOVE_PAIR: _build_move_pair,
    Action.SWAP: _build_swap, Action.SET_BIT: _bit_builder(operator.or_),
    Action.CLEAR_BIT: _bit_builder(lambda a, bit: a & ~bit), Action.CONDITIONAL_MOVE: _build_conditional_move,
    Action.BITOP3: _build_lookup_table, Action.SELECT: _build_select,
    **dict.fromkeys((Action.COMPARE, Action.COMPARE_INTO_EXEC), _build_compare),
    Action.COMPARE_FLOATS: _build_float_compare, Action.TEST_BIT: _build_bit_test,
    Action.SAVE_EXEC: _build_save_exec
}  # fmt: skip
"""Action → builder of its run."""
