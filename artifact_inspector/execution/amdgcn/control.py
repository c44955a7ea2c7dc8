"""AMDGCN branches, barriers, program ends, and the float instructions that integer divisions use."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray

from artifact_inspector.execution.amdgcn import operands as op
from artifact_inspector.execution.interpreter import barriers
from artifact_inspector.execution.interpreter.conversions import float32_bits, float_of, truncate, without_dimensions
from artifact_inspector.execution.interpreter.machine import Machine
from artifact_inspector.execution.interpreter.program import UndecidedPath
from artifact_inspector.execution.interpreter.values import FULL, Known, Number, Value, Word, apply, invert
from artifact_inspector.formats.amdgcn.operations import Action, OpcodeSemantics
from artifact_inspector.formats.amdgcn.statement import AmdgcnStatement


def branch_to(meaning: OpcodeSemantics, target: int | None) -> op.StepRun:
    """Branch on SCC, VCC or EXEC, or always. Each wave branches independently."""
    condition = meaning.condition

    def read_condition(machine: Machine) -> Value:
        if not condition:
            return True
        if condition.startswith("scc"):
            any_bit_set = machine.read_register("scc")
            return any_bit_set if condition == "scc1" else invert(any_bit_set)
        names = ("vcc_lo", "vcc_hi") if condition.startswith("vcc") else ("exec_lo", "exec_hi")
        halves = names[: machine.warp_size // 32]
        any_bit_set = op.is_nonzero(*(machine.read_register(name) for name in halves))
        return any_bit_set if condition.endswith("nz") else invert(any_bit_set)

    def run(machine: Machine) -> bool | None:
        if target is None:
            raise UndecidedPath(machine.step, ("an unknown branch target",))
        condition_holds = read_condition(machine)
        if isinstance(condition_holds, (bool, np.bool_)) and not condition_holds:
            return False
        return machine.branch(condition_holds, target)

    return run


def _build_call(statement: AmdgcnStatement, _meaning: OpcodeSemantics) -> op.StepRun:
    def run(machine: Machine) -> bool | None:
        raise UndecidedPath(machine.step, (f"a call to another function ({statement.opcode})",))

    return run


def _build_code_address(statement: AmdgcnStatement, _meaning: OpcodeSemantics) -> op.StepRun:
    names = statement.operands[0].names
    return lambda machine: op.write_all(machine, names, [machine.unknown_value("a code address") for _ in names])


# ── Floats of an integer division ────────────────────────────────────────────────────────────────


def _as_float64(value: Known) -> NDArray[np.float64]:
    return float_of(value).astype(np.float64)


def _float_reader(statement: AmdgcnStatement, position: int) -> op.Reader:
    operand = statement.operands[position]
    read_bits = op.word_reader(operand)
    if not operand.is_negated and not operand.is_absolute:
        return read_bits
    and_mask, xor_mask = 0x7FFFFFFF if operand.is_absolute else FULL, 0x80000000 if operand.is_negated else 0
    return lambda machine: apply(lambda v: (v & and_mask) ^ xor_mask, read_bits(machine))


_UNSUPPORTED_MODIFIERS = ("clamp", "mul", "div", "src0_sel", "src1_sel", "op_sel", "quad_perm", "row_shr", "row_shl")


def _float_operation(function: Callable[..., Word], operand_count: int) -> op.RunBuilder:
    def build(statement: AmdgcnStatement, _meaning: OpcodeSemantics) -> op.StepRun:
        write = op.word_writer(statement)
        if any(statement.has_modifier(name) for name in _UNSUPPORTED_MODIFIERS) or any(
            o.is_sign_extended for o in statement.operands
        ):
            reason = f"the result of {statement.opcode}"
            return op.under_exec(lambda machine: write(machine, machine.unknown_value(reason)))
        readers = [_float_reader(statement, at) for at in range(1, 1 + operand_count)]

        def run(machine: Machine) -> None:
            with np.errstate(all="ignore"):
                write(machine, apply(function, *(reader(machine) for reader in readers)))

        return op.scalar_or_vector_run(statement, run)

    return build


def _multiply_add(a: Known, b: Known, c: Known) -> Word:
    return float32_bits(_as_float64(a) * _as_float64(b) + _as_float64(c))


def _build_accumulate(statement: AmdgcnStatement, meaning: OpcodeSemantics) -> op.StepRun:
    """Multiply and add to the old value of the destination."""
    operands = (*statement.operands[:3], statement.operands[0])
    return _float_operation(_multiply_add, 3)(statement._replace(operands=operands), meaning)


def _build_from_integer(statement: AmdgcnStatement, meaning: OpcodeSemantics) -> op.StepRun:
    bits, is_signed = 8 if "ubyte" in statement.base else 32, statement.base.endswith("i32")

    def convert(value: Number) -> Word:
        return float32_bits(np.asarray(truncate(value, bits, is_signed=is_signed), np.float64))

    return _float_operation(convert, 1)(statement, meaning)


def _build_to_integer(statement: AmdgcnStatement, meaning: OpcodeSemantics) -> op.StepRun:
    low, high = (-(1 << 31), (1 << 31) - 1) if "_i32_f32" in statement.base else (0, (1 << 32) - 1)

    def convert(value: Known) -> Word:
        real = np.nan_to_num(_as_float64(value), nan=0.0, posinf=float(high), neginf=float(low))
        return without_dimensions(np.clip(np.trunc(real), low, high).astype(np.int64) & FULL)

    return _float_operation(convert, 1)(statement, meaning)


CONTROL: Mapping[Action, op.RunBuilder] = {
    Action.END: lambda _statement, _meaning: lambda machine: machine.exit_lanes(),
    Action.BARRIER: lambda _statement, _meaning: (
        lambda machine: barriers.arrive_at_cta_barrier(machine, "s_barrier", None)
    ),
    Action.NOP: lambda _statement, _meaning: lambda _machine: None, Action.CALL: _build_call,
    Action.GET_PC: _build_code_address, Action.FROM_INTEGER: _build_from_integer,
    Action.TO_INTEGER: _build_to_integer,
    Action.RECIPROCAL: _float_operation(lambda v: float32_bits(1.0 / _as_float64(v)), 1),
    Action.ADD_FLOATS: _float_operation(lambda a, b: float32_bits(_as_float64(a) + _as_float64(b)), 2),
    Action.SUBTRACT_FLOATS: _float_operation(lambda a, b: float32_bits(_as_float64(a) - _as_float64(b)), 2),
    Action.MULTIPLY_FLOATS: _float_operation(lambda a, b: float32_bits(_as_float64(a) * _as_float64(b)), 2),
    Action.MULTIPLY_ADD_FLOATS: _float_operation(_multiply_add, 3),
    Action.MULTIPLY_ACCUMULATE_FLOATS: _build_accumulate,
    Action.TRUNCATE: _float_operation(lambda v: float32_bits(np.trunc(_as_float64(v))), 1),
}  # fmt: skip
"""Action → builder of its run."""
