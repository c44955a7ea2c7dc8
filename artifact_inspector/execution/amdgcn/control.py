"""AMDGCN branches, barriers, program ends, and the float instructions that integer divisions use."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from artifact_inspector.execution.amdgcn.operands import Build, Reader, Run, nonzero, on_lanes, put, source
from artifact_inspector.execution.interpreter import converging
from artifact_inspector.execution.interpreter.lanes import Known, Value, apply, invert
from artifact_inspector.execution.interpreter.numbers import bits_of, cut, float_of
from artifact_inspector.execution.interpreter.program import Undecided
from artifact_inspector.formats.amdgcn.operations import Action, Meaning
from artifact_inspector.formats.amdgcn.statement import Statement

if TYPE_CHECKING:
    from artifact_inspector.execution.interpreter.machine import Machine


def branch_to(meaning: Meaning, target: int | None) -> Run:
    """Branch on SCC, VCC or EXEC, or always. Each wave branches independently."""
    condition = meaning.condition

    def holds(machine: Machine) -> Value:
        if not condition:
            return True
        if condition.startswith("scc"):
            found = machine.read("scc")
            return found if condition == "scc1" else invert(found)
        names = ("vcc_lo", "vcc_hi") if condition.startswith("vcc") else ("exec_lo", "exec_hi")
        halves = names[: machine.program.warp // 32]
        found = nonzero(*(machine.read(name) for name in halves))
        return found if condition.endswith("nz") else invert(found)

    def run(machine: Machine) -> bool | None:
        if target is None:
            raise Undecided(machine.step, ("an unknown branch target",))
        taken = holds(machine)
        if isinstance(taken, (bool, np.bool_)) and not taken:
            return False
        return machine.branch(taken, target)

    return run


def _end(_statement: Statement, _meaning: Meaning) -> Run:
    return lambda machine: machine.leave()


def _meet(_statement: Statement, _meaning: Meaning) -> Run:
    return lambda machine: converging.meet(machine, "s_barrier", None)


def _nothing(_statement: Statement, _meaning: Meaning) -> Run:
    return lambda _machine: None


def _call(statement: Statement, _meaning: Meaning) -> Run:
    def run(machine: Machine) -> bool | None:
        raise Undecided(machine.step, (f"a call to another function ({statement.opcode})",))

    return run


def _get_place(statement: Statement, _meaning: Meaning) -> Run:
    names = statement.operands[0].names

    def run(machine: Machine) -> None:
        for name in names:
            machine.write(name, machine.unknown("a code address"))

    return run


# ── Floats of an integer division ────────────────────────────────────────────────────────────────


def _float(value: Known) -> Any:
    return float_of(value).astype(np.float64)


def _whole(value: Any) -> Known:
    found = np.asarray(value).astype(np.int64) & 0xFFFFFFFF
    return int(found) if found.ndim == 0 else found


def _reader(statement: Statement, at: int) -> Reader:
    operand = statement.operands[at]
    plain = source(operand)
    if not operand.minus and not operand.absolute:
        return plain
    keeps, turns = 0x7FFFFFFF if operand.absolute else 0xFFFFFFFF, 0x80000000 if operand.minus else 0
    return lambda machine: apply(lambda v: (v & keeps) ^ turns, plain(machine))


_CHANGED = ("clamp", "mul", "div", "src0_sel", "src1_sel", "op_sel", "quad_perm", "row_shr", "row_shl")


def _compute(function: Callable[..., Known], count: int) -> Build:
    def build(statement: Statement, _meaning: Meaning) -> Run:
        write = put(statement)
        scalar = statement.base.startswith("s_")
        if any(statement.has(name) for name in _CHANGED) or any(o.extends for o in statement.operands):
            nothing = f"the result of {statement.opcode}"
            return on_lanes(lambda machine: write(machine, machine.unknown(nothing)))
        readers = [_reader(statement, at) for at in range(1, 1 + count)]

        def run(machine: Machine) -> None:
            with np.errstate(all="ignore"):
                write(machine, apply(function, *(reader(machine) for reader in readers)))

        return run if scalar else on_lanes(run)

    return build


def _into(function: Callable[..., Known]) -> Build:
    """Multiply and add to the old value of the destination."""
    plain = _compute(function, 3)

    def build(statement: Statement, meaning: Meaning) -> Run:
        first = statement.operands[0]
        return plain(statement._replace(operands=(*statement.operands[:3], first)), meaning)

    return build


def _from_integer(statement: Statement, meaning: Meaning) -> Run:
    bits, is_signed = 8 if "ubyte" in statement.base else 32, statement.base.endswith("i32")
    convert = _compute(lambda v: bits_of(np.asarray(cut(v, bits, is_signed=is_signed), np.float64)), 1)
    return convert(statement, meaning)


def _to_integer(statement: Statement, meaning: Meaning) -> Run:
    low, high = (-(1 << 31), (1 << 31) - 1) if "_i32_f32" in statement.base else (0, (1 << 32) - 1)

    def convert(value: Known) -> Known:
        real = np.nan_to_num(_float(value), nan=0.0, posinf=float(high), neginf=float(low))
        return _whole(np.clip(np.trunc(real), low, high))

    return _compute(convert, 1)(statement, meaning)


CONTROL: Mapping[Action, Build] = {
    Action.END: _end,
    Action.MEET: _meet,
    Action.NOTHING: _nothing,
    Action.CALL: _call,
    Action.GET_PLACE: _get_place,
    Action.FROM_INTEGER: _from_integer,
    Action.TO_INTEGER: _to_integer,
    Action.RECIPROCAL: _compute(lambda v: bits_of(1.0 / _float(v)), 1),
    Action.ADD_FLOATS: _compute(lambda a, b: bits_of(_float(a) + _float(b)), 2),
    Action.SUBTRACT_FLOATS: _compute(lambda a, b: bits_of(_float(a) - _float(b)), 2),
    Action.MULTIPLY_FLOATS: _compute(lambda a, b: bits_of(_float(a) * _float(b)), 2),
    Action.MULTIPLY_ADD_FLOATS: _compute(lambda a, b, c: bits_of(_float(a) * _float(b) + _float(c)), 3),
    Action.MULTIPLY_INTO_FLOATS: _into(lambda a, b, c: bits_of(_float(a) * _float(b) + _float(c))),
    Action.TRUNCATE: _compute(lambda v: bits_of(np.trunc(_float(v))), 1),
}
"""Action → builder of its run."""
