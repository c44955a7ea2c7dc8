"""SASS branches, convergence barriers, special registers and allocation of tensor memory."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from artifact_inspector.execution.interpreter import barriers
from artifact_inspector.execution.interpreter.machine import Machine
from artifact_inspector.execution.interpreter.program import UndecidedPath
from artifact_inspector.execution.interpreter.values import (
    FULL,
    UnknownValue,
    Value,
    apply,
    as_mask,
    distinct_values,
    has_lanes,
    invert_mask,
    widen_to_warps,
)
from artifact_inspector.execution.sass import operands as op
from artifact_inspector.execution.sass.environment import environment_of
from artifact_inspector.formats.sass.statement import SassOperandKind, SassStatement

INSTRUCTION_BYTES = 16
"""Bytes of an instruction since sm_70."""


def branch_to(statement: SassStatement, target: int | None, *, is_usual: bool = False) -> op.StepRun:
    """A branch with a fixed target.

    Lanes with an unknown condition take it if it `is_usual`, as around the slow path of a division.
    A warp takes `.U` only if its guard holds in all of its active lanes; otherwise all of them fall through.
    """
    conditions = [op.predicate_reader(o) for o in statement.operands if o.kind is SassOperandKind.PREDICATE]
    is_divergent, is_converged, is_unanimous = map(statement.has_modifier, ("DIV", "CONV", "U"))

    def run(machine: Machine) -> bool | None:
        if target is None:
            raise UndecidedPath(machine.step, ("an unknown branch target",))
        if is_divergent or is_converged:
            has_full_warps = machine.group.lanes == machine.group.warps * machine.warp_size
            return machine.branch(has_full_warps is is_converged, target) if has_full_warps is is_converged else False
        if is_unanimous and machine.active_mask is not machine.group.mask:
            others = widen_to_warps(invert_mask(machine.active_mask) & machine.group.mask, machine.warp_size)
            machine.active_mask = machine.active_mask & invert_mask(others)
        condition_holds: Value = True
        for condition in conditions:
            holds = condition(machine)
            condition_holds = holds if condition_holds is True else apply(np.logical_and, condition_holds, holds)
        if isinstance(condition_holds, (bool, np.bool_)) and not condition_holds:
            return False
        if is_usual:
            condition_holds = True if isinstance(condition_holds, UnknownValue) else condition_holds
            if machine.undecided_lanes is not None:
                machine.active_mask = machine.active_mask | as_mask(machine.undecided_lanes.unknown_bits)
                machine.undecided_lanes = None
        return machine.branch(condition_holds, target)

    return run


def _build_indirect_branch(statement: SassStatement) -> op.StepRun:
    """BRX, RET: branch to an address in a register, relative to the function (RET) or to itself (BRX)."""
    operand = next(o for o in statement.operands if o.kind is SassOperandKind.REGISTER)
    offset = sum(o.value for o in statement.operands if o.kind is SassOperandKind.NUMBER)
    is_relative = statement.base in ("BRX", "BRXU")
    reader = op.word_reader(operand)

    def run(machine: Machine) -> bool | None:
        value = reader(machine)
        if isinstance(value, UnknownValue):
            raise UndecidedPath(machine.step, machine.input_names.names_in(value.missing_inputs))
        base = machine.step.address + INSTRUCTION_BYTES + offset if is_relative else 0
        if not has_lanes(machine.active_mask):
            return False
        distinct_targets = distinct_values(value, machine.active_mask)
        target = int(distinct_targets[0])
        target_step = machine.program.step_by_address.get((target + base) & FULL)
        if target_step is None:
            raise UndecidedPath(machine.step, (f"a branch to address {target + base:#x}, which has no code",))
        if len(distinct_targets) == 1:
            return machine.branch(True, target_step)
        step, groups = machine.step.index, len(machine.groups)
        machine.group.pc = step  # lanes with other targets run it again and are counted then
        machine.branch(np.equal(value, target), target_step)
        if len(machine.groups) > groups:
            others = machine.groups[-2]
            machine.counters.warps_executed[step] -= others.warps
            machine.counters.threads_executed[step] -= others.lanes
        return True

    return run


def _build_join_barrier(statement: SassStatement) -> op.StepRun:
    barrier = statement.operands[0].name
    return lambda machine: barriers.join_barrier(machine, barrier)


def _build_wait(statement: SassStatement) -> op.StepRun:
    barrier = statement.operands[0].name
    return lambda machine: barriers.wait_at_barrier(machine, barrier)


def _build_warp_sync(statement: SassStatement) -> op.StepRun:
    """WARPSYNC of all lanes merges the parts of a warp; a mask in a register is ignored."""
    is_all_lanes = statement.has_modifier("ALL") or any(o.value == FULL for o in statement.operands)
    return (lambda machine: barriers.wait_at_barrier(machine, "WARPSYNC")) if is_all_lanes else (lambda _machine: None)


def _build_leave_barrier(statement: SassStatement) -> op.StepRun:
    barrier = next(o.name for o in statement.operands if o.name.startswith("B"))
    return lambda machine: barriers.leave_barrier(machine, barrier)


def _build_cta_barrier(statement: SassStatement) -> op.StepRun:
    """BAR: a barrier of the CTA; without a thread count it waits for all threads that are running."""
    numbers = [o for o in statement.operands if o.kind is SassOperandKind.NUMBER]
    registers = [o for o in statement.operands if o.kind is SassOperandKind.REGISTER]
    count = numbers[1].value if len(numbers) > 1 else None
    waits = not statement.has_modifier("ARV")
    if registers or not numbers or statement.has_modifier("RED"):
        return lambda _machine: None
    name = f"BAR {numbers[0].value}"
    return lambda machine: barriers.arrive_at_cta_barrier(machine, name, count, waits=waits)


def _build_move_barrier(statement: SassStatement) -> op.StepRun:
    """BMOV: save a convergence barrier to a register, restore or clear it."""
    target, source_operand = statement.operands[0], statement.operands[1]

    def run(machine: Machine) -> None:
        if target.name.startswith("B"):
            machine.barriers[target.name] = machine.saved_barriers.get(source_operand.name, True)
            return
        if not op.is_zero_register(target):
            machine.saved_barriers[target.name] = machine.barriers.get(source_operand.name, True)
            machine.write_register(target.name, machine.unknown_value("lanes of a convergence barrier"))
        if statement.has_modifier("CLEAR"):
            machine.barriers.pop(source_operand.name, None)

    return run


# ── Special registers ────────────────────────────────────────────────────────────────────────────


def _build_special_register(statement: SassStatement) -> op.StepRun:
    name, _, source_position = op.destinations(statement, 0)
    operand = statement.operands[source_position]
    is_pair = statement.base == "CS2R" and not statement.has_modifier("32")

    def run(machine: Machine) -> None:
        if name is not None:
            is_zero = op.is_zero_register(operand)
            value: Value = 0 if is_zero else environment_of(machine).special(machine, operand.name)
            machine.write_register(name, value)
            if is_pair:
                machine.write_register(op.register_after(name), value)

    return run


# ── Instructions that always succeed ─────────────────────────────────────────────────────────────


def build_success(statement: SassStatement) -> op.StepRun:
    """A wait or allocation that succeeds: predicates become true, registers unknown."""
    name, predicates, _ = _destinations(statement)

    def run(machine: Machine) -> None:
        op.write_all(machine, predicates, True)
        if name is not None:
            machine.write_register(name, machine.unknown_value(f"the result of {statement.opcode}"))

    return run


def _build_tensor_allocation(statement: SassStatement) -> op.StepRun:
    """UTCATOMSWS: allocate tensor memory from its first column on, as the first CTA does."""
    if not statement.has_modifier("FIND_AND_SET"):
        return lambda _machine: None
    name, predicates, _ = _destinations(statement)
    # its predicate comes before the register
    register = name or next((o.name for o in statement.operands if o.kind is SassOperandKind.REGISTER), None)

    def run(machine: Machine) -> None:
        op.write_all(machine, predicates, True)
        op.write_all(machine, (register,), 0)

    return run


def _destinations(statement: SassStatement) -> tuple[str | None, list[str | None], int]:
    kinds = [operand.kind for operand in statement.operands]
    predicates = [operand for operand in statement.operands if operand.kind is SassOperandKind.PREDICATE]
    if SassOperandKind.REGISTER not in kinds:
        names: list[str | None] = [o.name for o in predicates if not op.is_zero_register(o)]
        return None, names[:1], 0
    if next((kind for kind in kinds if kind is not SassOperandKind.PREDICATE), None) is SassOperandKind.REGISTER:
        return op.destinations(statement, 0)
    return None, [op.writable_name(predicates[0])] if kinds[0] is SassOperandKind.PREDICATE else [], 0


CONTROL: Mapping[str, op.RunBuilder] = {
    **dict.fromkeys(("BRX", "BRXU", "RET"), _build_indirect_branch),
    **dict.fromkeys(("EXIT", "KILL", "BPT"), lambda _statement: lambda machine: machine.exit_lanes()),
    "BSSY": _build_join_barrier, "BSYNC": _build_wait, "BREAK": _build_leave_barrier,
    "BMOV": _build_move_barrier, "BAR": _build_cta_barrier,
    **dict.fromkeys(("S2R", "S2UR", "CS2R", "CS2UR"), _build_special_register),
    "UTCATOMSWS": _build_tensor_allocation, "WARPSYNC": _build_warp_sync
}  # fmt: skip

NO_OPS = op.split_words("""
    NOP DEPBAR MEMBAR FENCE ERRBAR CGAERRBAR CCTL CCTLL CCTLT UCCTL YIELD NANOSLEEP LDGDEPBAR
    ARRIVES WARPGROUP WARPGROUPSET UTMACMDFLUSH UTMACCTL UTMAPF UBLKPF UTCBAR UTCCP UTCSHIFT UCGABAR_ARV
    UCGABAR_WAIT PREEXIT ACQBULK PMTRIG UVIRTCOUNT ENDCOLLECTIVE SETMAXREG STTM UTCHMMA UTCQMMA UTCIMMA
    UTCOMMA
    """)
"""Instructions without an effect on the simulated state."""
