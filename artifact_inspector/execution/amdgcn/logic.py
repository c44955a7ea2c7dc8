"""AMDGCN logic, moves, selections and comparisons, and those that write EXEC.

**Source** AMD Instinct MI300 and RDNA 3 Instruction Set Architecture documents, "Instructions".
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from artifact_inspector.execution.amdgcn.operands import (
    Build,
    Run,
    mask_of,
    nonzero,
    on_lanes,
    put,
    put_mask,
    source,
    sources,
    wide,
    write_all,
)
from artifact_inspector.execution.amdgcn.plain import is_scalar, run_of
from artifact_inspector.execution.interpreter.lanes import (
    FULL,
    Known,
    Unknown,
    Value,
    apply,
    bits_unknown,
    choose,
    data_of,
)
from artifact_inspector.execution.interpreter.numbers import as_predicate, cut
from artifact_inspector.formats.amdgcn.operations import Action, Meaning
from artifact_inspector.formats.amdgcn.statement import Statement

if TYPE_CHECKING:
    from artifact_inspector.execution.interpreter.machine import Machine

# ── Logic ────────────────────────────────────────────────────────────────────────────────────────


def _and(a: Value, b: Value) -> Value:
    """Bitwise and: a known 0 makes the result known."""
    lost_a, lost_b = bits_unknown(a), bits_unknown(b)
    data = data_of(a) & data_of(b)
    return _told(data, (lost_a & (data_of(b) | lost_b)) | (lost_b & (data_of(a) | lost_a)), a, b)


def _or(a: Value, b: Value) -> Value:
    """Bitwise or: a known 1 makes the result known."""
    lost_a, lost_b = bits_unknown(a), bits_unknown(b)
    data = data_of(a) | data_of(b)
    return _told(data, (lost_a & ~(data_of(b) & ~lost_b)) | (lost_b & ~(data_of(a) & ~lost_a)), a, b)


def _xor(a: Value, b: Value) -> Value:
    return _told(data_of(a) ^ data_of(b), bits_unknown(a) | bits_unknown(b), a, b)


def _told(data: Known, bad: Known, *values: Value) -> Value:
    why = 0
    for value in values:
        why |= value.why if isinstance(value, Unknown) else 0
    return Unknown(data, bad & FULL, why) if why and np.any(bad & FULL) else data


def _not(value: Value) -> Value:
    if isinstance(value, Unknown):
        return Unknown(value.data ^ FULL, value.bad, value.why)
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
_SAVED: Mapping[str, Callable[[Value, Value], Value]] = {
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


def _logic(statement: Statement, meaning: Meaning) -> Run:
    function = _LOGIC[meaning.action]
    names, scalar = statement.operands[0].names, is_scalar(statement)
    halves = 2 if meaning.bits == 64 else 1
    write = put(statement)
    last = statement.operands[-1]
    plain = [sources(statement, 1, 2)] if halves == 1 else [
        [source(statement.operands[1], half), source(last, half)] for half in range(2)
    ]  # fmt: skip

    def run(machine: Machine) -> None:
        found = [function(pair[0](machine), pair[-1](machine)) for pair in plain]
        if halves == 1:
            write(machine, found[0])
        else:
            write_all(machine, names, found)
        if scalar:
            machine.write("scc", nonzero(*found))

    return run_of(statement, run)


def _save_exec(statement: Statement, meaning: Meaning) -> Run:
    """Save EXEC to a register, then combine EXEC with the operand."""
    function = _SAVED[meaning.condition]
    halves = ("exec_lo", "exec_hi")[: meaning.bits // 32]
    target, operand = statement.operands[0], statement.operands[1]
    readers = [source(operand, half) for half in range(len(halves))]

    def run(machine: Machine) -> None:
        held = [machine.read(name) for name in halves]
        found = [function(reader(machine), old) for reader, old in zip(readers, held, strict=True)]
        write_all(machine, target.names, held)
        write_all(machine, halves, found)
        machine.write("scc", nonzero(*found))

    return run


def _any_of_three(statement: Statement, _meaning: Meaning) -> Run:
    table = statement.number("bitop3")
    readers, write = sources(statement, 1, 3), put(statement)

    def run(machine: Machine) -> None:
        a, b, c = (reader(machine) for reader in readers)
        found: Value = 0
        for row in range(8):
            if table >> row & 1:
                first = a if row & 4 else _not(a)
                both = _and(first, b if row & 2 else _not(b))
                found = _or(found, _and(both, c if row & 1 else _not(c)))
        write(machine, found)

    return on_lanes(run)


def _choose(statement: Statement, meaning: Meaning) -> Run:
    if is_scalar(statement):
        names = statement.operands[0].names
        pairs = [
            (source(statement.operands[1], half), source(statement.operands[2], half))
            for half in range(meaning.bits // 32)
        ]

        def select(machine: Machine) -> None:
            holds = machine.read("scc")
            for name, (yes, no) in zip(names, pairs, strict=False):
                machine.write(name, choose(holds, yes(machine), no(machine)))

        return select
    no, yes = sources(statement, 1, 2)
    chosen = statement.operands[3].names if len(statement.operands) > 3 else ("vcc_lo", "vcc_hi")
    write = put(statement)

    def run(machine: Machine) -> None:
        mask = mask_of(machine, machine.read(chosen[0]), machine.read(chosen[-1]))
        write(machine, choose(mask, yes(machine), no(machine)))

    return on_lanes(run)


def _one_bit(function: Callable[[Known, Known], Known]) -> Build:
    """Set or clear one bit of the destination."""

    def build(statement: Statement, _meaning: Meaning) -> Run:
        old, place, write = source(statement.operands[0]), source(statement.operands[1]), put(statement)
        changed = partial(apply, lambda a, at: function(a, 1 << (at & 31)))
        return run_of(statement, lambda machine: write(machine, changed(old(machine), place(machine))))

    return build


def _move_pair(statement: Statement, _meaning: Meaning) -> Run:
    names = statement.operands[0].names
    chosen = statement.list("op_sel") if statement.has("op_sel") else (0, 0)
    readers = [source(pair, word) for pair, word in zip(statement.operands[1:3], chosen, strict=True)]
    return on_lanes(lambda machine: write_all(machine, names, [reader(machine) for reader in readers]))


def _swap(statement: Statement, _meaning: Meaning) -> Run:
    first, second = statement.operands
    names, readers = (*first.names, *second.names), [source(second), source(first)]
    return on_lanes(lambda machine: write_all(machine, names, [reader(machine) for reader in readers]))


def _move(statement: Statement, meaning: Meaning) -> Run:
    target, origin = statement.operands[0], statement.operands[1]
    if meaning.bits == 64:
        readers = [source(origin, half) for half in range(2)]

        return run_of(
            statement,
            lambda machine: write_all(machine, target.names, [reader(machine) for reader in readers]),
        )
    write = put(statement)
    reader = sources(statement, 1, 1)[0]
    if meaning.signed:
        number = cut(origin.value, 16, is_signed=True) & FULL
        return lambda machine: write(machine, number)

    return run_of(statement, lambda machine: write(machine, reader(machine)))


def _move_if(statement: Statement, meaning: Meaning) -> Run:
    target, origin = statement.operands[:2]
    readers = [source(origin, half) for half in range(meaning.bits // 32)]
    if meaning.signed:
        number = cut(origin.value, 16, is_signed=True) & FULL
        readers = [lambda _machine: number]

    def run(machine: Machine) -> None:
        holds = machine.read("scc")
        for name, reader in zip(target.names, readers, strict=False):
            machine.write(name, choose(holds, reader(machine), machine.read(name)))

    return run


# ── Comparisons ──────────────────────────────────────────────────────────────────────────────────

_CONDITIONS: Mapping[str, Callable[[Any, Any], Any]] = {
    "lt": operator.lt, "eq": operator.eq, "le": operator.le,
    "gt": operator.gt, "lg": operator.ne, "ge": operator.ge,
    "t": lambda a, b: (a == a) | (b == b),
    "f": lambda a, b: (a != a) & (b != b),
}  # fmt: skip


def _compare(statement: Statement, meaning: Meaning) -> Run:
    scalar = is_scalar(statement)
    condition, bits, is_signed = _CONDITIONS[meaning.condition], meaning.bits, meaning.signed
    into_exec = meaning.action is Action.COMPARE_INTO_EXEC
    first = 0 if scalar or (into_exec and len(statement.operands) == 2) else 1
    operands = statement.operands[first : first + 2]
    readers = [wide(operand) for operand in operands] if bits == 64 else sources(statement, first, 2)
    targets = [statement.operands[0].names] if first else []
    targets += [("exec_lo", "exec_hi")] if into_exec else []
    constant = statement.base.startswith("s_cmpk")

    def as_number(value: Known) -> Known:
        if bits < 64:
            return cut(
                value,
                16 if constant and isinstance(value, int) and value < 1 << 16 else bits,
                is_signed=is_signed,
            )
        if is_signed:
            return value
        return value & ((1 << 64) - 1) if isinstance(value, int) else value ^ np.int64(-(1 << 63))

    def run(machine: Machine) -> None:
        a, b = (reader(machine) for reader in readers)
        if bits == 64 and not is_signed and isinstance(data_of(a), int) is not isinstance(data_of(b), int):
            a, b = (
                apply(lambda v: np.asarray(v, np.int64).reshape(1, 1) if isinstance(v, int) else v, v)
                for v in (a, b)
            )
        if scalar:
            right = apply(lambda v: cut(v, 16, is_signed=is_signed) if constant else as_number(v), b)
            left = apply(lambda v: cut(v, bits, is_signed=is_signed) if bits < 64 else as_number(v), a)
            machine.write("scc", as_predicate(apply(condition, left, right)))
            return
        found = as_predicate(apply(lambda x, y: condition(as_number(x), as_number(y)), a, b))
        for names in targets:
            put_mask(machine, names, found)

    return run if scalar else on_lanes(run)


def _compare_floats(statement: Statement, _meaning: Meaning) -> Run:
    """Float comparison: data is not computed, so the mask is unknown for active lanes."""
    first = statement.operands[0]
    into_exec = statement.base.startswith("v_cmpx")
    names = [first.names] if len(statement.operands) > 2 and not is_scalar(statement) else []
    names += [("exec_lo", "exec_hi")] if into_exec else []

    def run(machine: Machine) -> None:
        nothing = Unknown(False, True, machine.unknown(f"the result of {statement.opcode}").why)
        if is_scalar(statement):
            machine.write("scc", nothing)
        for name in names:
            put_mask(machine, name, nothing)

    return run_of(statement, run)


def _test_bit(statement: Statement, meaning: Meaning) -> Run:
    value = wide(statement.operands[0]) if meaning.bits == 64 else source(statement.operands[0])
    place, wanted, most = source(statement.operands[1]), int(meaning.condition), meaning.bits - 1

    def run(machine: Machine) -> None:
        found = apply(lambda v, at: (v >> (at & most) & 1) == wanted, value(machine), place(machine))
        machine.write("scc", as_predicate(found))

    return run


LOGIC: Mapping[Action, Build] = {
    Action.MOVE: _move,
    Action.MOVE_PAIR: _move_pair,
    Action.SWAP: _swap,
    Action.SET_BIT: _one_bit(operator.or_),
    Action.CLEAR_BIT: _one_bit(lambda a, bit: a & ~bit),
    Action.MOVE_IF: _move_if,
    Action.NOT: _logic,
    Action.AND: _logic,
    Action.OR: _logic,
    Action.XOR: _logic,
    Action.XNOR: _logic,
    Action.AND_NOT: _logic,
    Action.OR_NOT: _logic,
    Action.NAND: _logic,
    Action.NOR: _logic,
    Action.ANY_OF_THREE: _any_of_three,
    Action.CHOOSE: _choose,
    Action.COMPARE: _compare,
    Action.COMPARE_INTO_EXEC: _compare,
    Action.COMPARE_FLOATS: _compare_floats,
    Action.TEST_BIT: _test_bit,
    Action.SAVE_EXEC: _save_exec,
}
"""Action → builder of its run."""
