"""Parts shared by AMDGCN arithmetic instructions: widths, signs, SCC, scalar or vector execution."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from artifact_inspector.execution.amdgcn.operands import (
    RunBuilder,
    StepRun,
    is_nonzero,
    source_readers,
    under_exec,
    wide_reader,
    word_writer,
    write_wide,
)
from artifact_inspector.execution.interpreter.conversions import truncate, wrap_int64
from artifact_inspector.execution.interpreter.values import Known, apply
from artifact_inspector.formats.amdgcn.operations import OpcodeSemantics
from artifact_inspector.formats.amdgcn.statement import AmdgcnStatement

if TYPE_CHECKING:
    from artifact_inspector.execution.interpreter.machine import Machine


def is_scalar(statement: AmdgcnStatement) -> bool:
    """Whether a wave executes it once: its results are scalar registers and SCC."""
    return statement.base.startswith("s_")


def scalar_or_vector_run(statement: AmdgcnStatement, run: StepRun) -> StepRun:
    """The run of a scalar instruction unchanged, or of a vector instruction under EXEC."""
    return run if is_scalar(statement) else under_exec(run)


def integer_operation(function: Callable[..., Known], operand_count: int) -> RunBuilder:
    """Builder for an operation on 32 bits, or on 16 or 64 if the opcode says so."""

    def build(statement: AmdgcnStatement, meaning: OpcodeSemantics) -> StepRun:
        bits, is_signed = meaning.bits, meaning.is_signed
        names = statement.operands[0].names
        readers = (
            [wide_reader(operand) for operand in statement.operands[1 : 1 + operand_count]]
            if bits == 64
            else source_readers(statement, 1, operand_count)
        )
        write = word_writer(statement)
        if bits == 16 and any(statement.has_modifier(name) for name in ("op_sel", "dst_sel", "src0_sel")):
            raise ValueError(statement.opcode)

        def run(machine: Machine) -> None:
            values = [reader(machine) for reader in readers]
            if bits == 64:
                write_wide(machine, names, apply(function, *values))
                return
            narrowed = [apply(lambda v: truncate(v, bits, is_signed=is_signed), value) for value in values]
            write(machine, apply(lambda *narrowed: function(*narrowed) & ((1 << bits) - 1), *narrowed))

        return scalar_or_vector_run(statement, run)

    return build


def operation_with_scc(function: Callable[..., Known], operand_count: int) -> RunBuilder:
    """Builder whose scalar form also sets SCC if the result is nonzero."""
    build_operation = integer_operation(function, operand_count)

    def build(statement: AmdgcnStatement, meaning: OpcodeSemantics) -> StepRun:
        run = build_operation(statement, meaning)
        return set_scc_after(run, statement) if is_scalar(statement) else run

    return build


def set_scc_after(run: StepRun, statement: AmdgcnStatement) -> StepRun:
    """A run that then sets SCC if its result is nonzero."""
    names = statement.operands[0].names

    def run_and_set_scc(machine: Machine) -> None:
        run(machine)
        machine.write_register("scc", is_nonzero(*(machine.read_register(name) for name in names)))

    return run_and_set_scc


def multiply_add_64(a: Known, b: Known, c: Known) -> Known:
    """The sum a * b + c in 64 signed bits."""
    return wrap_int64(a * b + c)
