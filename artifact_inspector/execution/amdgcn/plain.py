"""Parts shared by AMDGCN arithmetic instructions: widths, signs, SCC, scalar or vector execution."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from artifact_inspector.execution.amdgcn.operands import (
    Build,
    Run,
    nonzero,
    on_lanes,
    put,
    put_wide,
    sources,
    wide,
)
from artifact_inspector.execution.interpreter.lanes import Known, apply
from artifact_inspector.execution.interpreter.numbers import cut, wrap
from artifact_inspector.formats.amdgcn.operations import Meaning
from artifact_inspector.formats.amdgcn.statement import Statement

if TYPE_CHECKING:
    from artifact_inspector.execution.interpreter.machine import Machine


def is_scalar(statement: Statement) -> bool:
    """Whether a wave executes it once: its results are scalar registers and SCC."""
    return statement.base.startswith("s_")


def run_of(statement: Statement, run: Run) -> Run:
    """The run of a scalar instruction unchanged, or of a vector instruction under EXEC."""
    return run if is_scalar(statement) else on_lanes(run)


def operate(function: Callable[..., Known], count: int) -> Build:
    """Builder for an operation on 32 bits, or on 16 or 64 if the opcode says so."""

    def build(statement: Statement, meaning: Meaning) -> Run:
        bits, is_signed = meaning.bits, meaning.signed
        names = statement.operands[0].names
        readers = (
            [wide(operand) for operand in statement.operands[1 : 1 + count]]
            if bits == 64
            else sources(statement, 1, count)
        )
        write = put(statement)
        if bits == 16 and any(statement.has(name) for name in ("op_sel", "dst_sel", "src0_sel")):
            raise ValueError(statement.opcode)

        def run(machine: Machine) -> None:
            values = [reader(machine) for reader in readers]
            if bits == 64:
                put_wide(machine, names, apply(function, *values))
                return
            given = [apply(lambda v: cut(v, bits, is_signed=is_signed), value) for value in values]
            write(machine, apply(lambda *given: function(*given) & ((1 << bits) - 1), *given))

        return run_of(statement, run)

    return build


def with_scc(function: Callable[..., Known], count: int) -> Build:
    """Builder whose scalar form also sets SCC if the result is nonzero."""
    plain = operate(function, count)

    def build(statement: Statement, meaning: Meaning) -> Run:
        run = plain(statement, meaning)
        return then_test(run, statement) if is_scalar(statement) else run

    return build


def then_test(run: Run, statement: Statement) -> Run:
    """A run that then sets SCC if its result is nonzero."""
    names = statement.operands[0].names

    def and_test(machine: Machine) -> None:
        run(machine)
        machine.write("scc", nonzero(*(machine.read(name) for name in names)))

    return and_test


def sum_wide(a: Known, b: Known, c: Known) -> Known:
    """The sum a * b + c in 64 signed bits."""
    return wrap(a * b + c)
