"""SASS branches, convergence barriers, special registers and allocation of tensor memory."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from artifact_inspector.execution.interpreter import converging
from artifact_inspector.execution.interpreter.lanes import FULL, Unknown, Value, apply, spread, widen
from artifact_inspector.execution.interpreter.program import Undecided
from artifact_inspector.execution.sass.operands import (
    Build,
    Run,
    following,
    is_nothing,
    predicate,
    results,
    source,
    words,
    write_all,
)
from artifact_inspector.formats.sass.statement import OperandKind, Statement

if TYPE_CHECKING:
    from artifact_inspector.execution.interpreter.machine import Machine

WORD = 16
"""Bytes of an instruction."""


def branch_to(statement: Statement, target: int | None) -> Run:
    """A branch with a fixed target.

    A warp takes `.U` only if its guard holds in all of its active lanes; otherwise all of them fall through.
    """
    conditions = [predicate(o) for o in statement.operands if o.kind is OperandKind.PREDICATE]
    splits, whole, together = statement.has("DIV"), statement.has("CONV"), statement.has("U")

    def run(machine: Machine) -> bool | None:
        if target is None:
            raise Undecided(machine.step, ("an unknown branch target",))
        if splits or whole:
            full = machine.group.lanes == machine.group.warps * machine.program.warp
            return machine.branch(full is whole, target) if full is whole else False
        if together and machine.on is not machine.group.mask:
            others = widen(np.logical_not(machine.on) & machine.group.mask, machine.program.warp)
            machine.on = machine.on & np.logical_not(others)
        taken: Value = True
        for condition in conditions:
            taken = (
                apply(np.logical_and, taken, condition(machine)) if taken is not True else condition(machine)
            )
        if isinstance(taken, (bool, np.bool_)) and not taken:
            return False
        return machine.branch(taken, target)

    return run


def _branch_by_register(statement: Statement) -> Run:
    """BRX, RET: branch to an address in a register, relative to the function (RET) or to itself (BRX)."""
    operand = next(o for o in statement.operands if o.kind is OperandKind.REGISTER)
    offset = sum(o.value for o in statement.operands if o.kind is OperandKind.NUMBER)
    relative = statement.base in ("BRX", "BRXU")
    reader = source(operand)

    def run(machine: Machine) -> bool | None:
        value = reader(machine)
        if isinstance(value, Unknown):
            raise Undecided(machine.step, machine.names.of(value.why))
        base = machine.step.address + WORD + offset if relative else 0
        targets = spread(value, machine.shape)
        wanted = np.unique(targets[spread(machine.on, machine.shape)]).tolist()
        if not wanted:
            return False
        target = wanted[0]
        place = machine.program.places.get((target + base) & FULL)
        if place is None:
            raise Undecided(machine.step, (f"a branch to address {target + base:#x}, which has no code",))
        if len(wanted) == 1:
            return machine.branch(True, place)
        step, groups = machine.step.index, len(machine.groups)
        machine.group.pc = step  # lanes with other targets run it again and are counted then
        machine.branch(value == target, place)
        if len(machine.groups) > groups:
            others = machine.groups[-2]
            machine.counts.executed[step] -= others.warps
            machine.counts.lanes[step] -= others.lanes
        return True

    return run


def _exit(_statement: Statement) -> Run:
    return lambda machine: machine.leave()


def _begin(statement: Statement) -> Run:
    barrier = statement.operands[0].name
    return lambda machine: converging.begin(machine, barrier)


def _converge(statement: Statement) -> Run:
    barrier = statement.operands[0].name
    return lambda machine: converging.wait(machine, barrier)


def _converge_warp(statement: Statement) -> Run:
    """WARPSYNC of all lanes merges the parts of a warp; a mask in a register is ignored."""
    every = statement.has("ALL") or any(o.value == FULL for o in statement.operands)
    return (lambda machine: converging.wait(machine, "WARPSYNC")) if every else (lambda _machine: None)


def _break(statement: Statement) -> Run:
    barrier = next(o.name for o in statement.operands if o.name.startswith("B"))
    return lambda machine: converging.leave(machine, barrier)


def _meet(statement: Statement) -> Run:
    """BAR: a barrier of the CTA; without a thread count it waits for all threads that are running."""
    numbers = [o for o in statement.operands if o.kind is OperandKind.NUMBER]
    registers = [o for o in statement.operands if o.kind is OperandKind.REGISTER]
    count = numbers[1].value if len(numbers) > 1 else None
    waits = not statement.has("ARV")
    if registers or not numbers or statement.has("RED"):
        return lambda _machine: None
    name = f"BAR {numbers[0].value}"
    return lambda machine: converging.meet(machine, name, count, waits=waits)


def _move_barrier(statement: Statement) -> Run:
    """BMOV: save a convergence barrier to a register, restore or clear it."""
    target, origin = statement.operands[0], statement.operands[1]

    def run(machine: Machine) -> None:
        if target.name.startswith("B"):
            machine.barriers[target.name] = machine.saved.get(origin.name, True)
            return
        if not is_nothing(target):
            machine.saved[target.name] = machine.barriers.get(origin.name, True)
            machine.write(target.name, machine.unknown("lanes of a convergence barrier"))
        if statement.has("CLEAR"):
            machine.barriers.pop(origin.name, None)

    return run


# ── Special registers ────────────────────────────────────────────────────────────────────────────


def _special(statement: Statement) -> Run:
    name, _, at = results(statement, 0)
    operand = statement.operands[at]
    double = statement.base == "CS2R" and not statement.has("32")

    def run(machine: Machine) -> None:
        if name is None:
            return
        value: Value = 0 if is_nothing(operand) else machine.environment.special(machine, operand.name)
        machine.write(name, value)
        if double:
            machine.write(following(name), 0 if is_nothing(operand) else value)

    return run


# ── Instructions that always succeed ─────────────────────────────────────────────────────────────


def succeed(statement: Statement) -> Run:
    """A wait or allocation that succeeds: predicates become true, registers unknown."""
    name, beside, _ = _targets(statement)

    def run(machine: Machine) -> None:
        write_all(machine, beside, True)
        if name is not None:
            machine.write(name, machine.unknown(f"the result of {statement.opcode}"))

    return run


_COLUMNS = (0x54, 0x58, 0x5C)
"""Shared memory addresses where code for sm_100 keeps the allocated columns of tensor memory, and where
Triton 3.7 keeps the flag that forbids further allocation, which traps."""


def free_columns(machine: Machine) -> None:
    """Mark all columns of tensor memory as free, if the program allocates any."""
    if not any(step.opcode.startswith("UTCATOMSWS") for step in machine.program.steps):
        return
    nought = np.zeros((machine.rows, len(_COLUMNS)), np.int64)
    machine.shared.store(nought + np.array(_COLUMNS), 4, nought, nought == 0)


def _allocate(statement: Statement) -> Run:
    """UTCATOMSWS: allocate tensor memory from its first column on, as the first CTA does."""
    if not statement.has("FIND_AND_SET"):
        return _nothing(statement)
    name, beside, _ = _targets(statement)
    # its predicate comes before the register
    register = name or next((o.name for o in statement.operands if o.kind is OperandKind.REGISTER), None)

    def run(machine: Machine) -> None:
        for target in beside:
            if target is not None:
                machine.write(target, True)
        if register is not None:
            machine.write(register, 0)

    return run


def _targets(statement: Statement) -> tuple[str | None, list[str | None], int]:
    if not any(o.kind is OperandKind.REGISTER for o in statement.operands):
        beside: list[str | None] = [
            o.name for o in statement.operands if o.kind is OperandKind.PREDICATE and not is_nothing(o)
        ]
        return None, beside[:1], 0
    first = next((o for o in statement.operands if o.kind is not OperandKind.PREDICATE), None)
    if first is None or first.kind is not OperandKind.REGISTER:
        return None, [
            None if is_nothing(o) else o.name
            for o in statement.operands[:1]
            if o.kind is OperandKind.PREDICATE
        ], 0  # fmt: skip
    return results(statement, 0)


def _nothing(_statement: Statement) -> Run:
    return lambda _machine: None


CONTROL: Mapping[str, Build] = {
    "BRX": _branch_by_register,
    "BRXU": _branch_by_register,
    "RET": _branch_by_register,
    "EXIT": _exit,
    "KILL": _exit,
    "BPT": _exit,
    "BSSY": _begin,
    "BSYNC": _converge,
    "BREAK": _break,
    "BMOV": _move_barrier,
    "BAR": _meet,
    "S2R": _special,
    "S2UR": _special,
    "CS2R": _special,
    "CS2UR": _special,
    "UTCATOMSWS": _allocate,
    "WARPSYNC": _converge_warp,
}

NOTHING = words("""
    NOP DEPBAR MEMBAR FENCE ERRBAR CGAERRBAR CCTL CCTLL CCTLT UCCTL YIELD NANOSLEEP LDGDEPBAR
    ARRIVES WARPGROUP WARPGROUPSET UTMACMDFLUSH UTMACCTL UTMAPF UBLKPF UTCBAR UTCCP UTCSHIFT UCGABAR_ARV
    UCGABAR_WAIT PREEXIT ACQBULK PMTRIG UVIRTCOUNT ENDCOLLECTIVE SETMAXREG STTM UTCHMMA UTCQMMA UTCIMMA
    UTCOMMA
    """)
"""Instructions without an effect on the simulated state."""
