"""Waits of specialized warps, which fail a few times on hardware before they succeed.

All other waits succeed at once in the simulation. So they do on an H200: in eleven launches whose warps load
for themselves, no wait for a tensor copy failed. If some warps load for others, the others start while the
first copy is in flight. Six launches (K from 256 to 1024, 128 to 512 CTAs) executed, beyond the simulated
path and per warp, 4.1 instructions for a first `USETMAXREG.TRY_ALLOC` and 5.0 to 5.6 for a first wait, for
any loop length: one and two failures.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from artifact_inspector.execution.interpreter.lane_partition import as_array_value
from artifact_inspector.execution.interpreter.machine import Machine
from artifact_inspector.execution.interpreter.values import Word, as_word, data_of
from artifact_inspector.execution.sass.control import build_success
from artifact_inspector.execution.sass.operands import RunBuilder, StepRun, is_zero_register
from artifact_inspector.formats.sass.statement import SassOperandKind, SassStatement

FIRST_WAIT_FAILURES = 2
"""Failures of the first wait of a warp that got registers."""
_HAS_REQUESTED = "whether a warp has requested or released registers"
_REMAINING_FAILURES = "remaining failures of a warp's wait"


def _hidden_state(machine: Machine, name: str) -> Word:
    return as_word(data_of(as_array_value(machine.registers.get(name, 0))))


def _set_hidden_state(machine: Machine, name: str, value: Word) -> None:
    mask = machine.active_mask
    machine.registers[name] = value if mask is True else np.where(mask, value, _hidden_state(machine, name))


def _build_set_registers(statement: SassStatement) -> StepRun:
    """USETMAXREG: a warp's first request fails once, before other warps have released theirs."""
    target = next((o.name for o in statement.operands if o.kind is SassOperandKind.PREDICATE), None)

    def run(machine: Machine) -> None:
        has_requested = _hidden_state(machine, _HAS_REQUESTED)
        _set_hidden_state(machine, _HAS_REQUESTED, 1)
        _set_hidden_state(machine, _REMAINING_FAILURES, 0 if target is None else FIRST_WAIT_FAILURES)
        if target is not None:
            machine.write_register(target, has_requested == 1)

    return run


def _build_barrier_wait(statement: SassStatement) -> StepRun:
    """SYNCS: waits by TRYWAIT may fail; everything else succeeds."""
    run_success = build_success(statement)
    target = statement.operands[0] if statement.operands else None
    if not statement.has_modifier("TRYWAIT") or target is None or target.kind is not SassOperandKind.PREDICATE:
        return run_success

    def run(machine: Machine) -> bool | None:
        remaining = _hidden_state(machine, _REMAINING_FAILURES)
        if isinstance(remaining, int) and remaining == 0:
            return run_success(machine)
        left = np.maximum(remaining - 1, 0) if isinstance(remaining, np.ndarray) else max(remaining - 1, 0)
        _set_hidden_state(machine, _REMAINING_FAILURES, left)
        if not is_zero_register(target):
            machine.write_register(target.name, remaining == 0)
        return None

    return run


WAITS: Mapping[str, RunBuilder] = {"USETMAXREG": _build_set_registers, "SYNCS": _build_barrier_wait}
"""Opcode without modifiers → builder of its run."""
