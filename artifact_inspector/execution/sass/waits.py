"""Waits of specialized warps, which fail a few times on hardware before they succeed.

All other waits succeed at once in the simulation. So they do on an H200: in eleven launches whose warps load
for themselves, no wait for a tensor copy failed. If some warps load for others, the others start while the
first copy is in flight. Six launches (K from 256 to 1024, 128 to 512 CTAs) executed, beyond the simulated
path and per warp, 4.1 instructions for a first `USETMAXREG.TRY_ALLOC` and 5.0 to 5.6 for a first wait, for
any loop length: one and two failures.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from artifact_inspector.execution.interpreter.lanes import Known
from artifact_inspector.execution.sass.control import succeed
from artifact_inspector.execution.sass.operands import Build, Run, is_nothing
from artifact_inspector.formats.sass.statement import OperandKind, Statement

if TYPE_CHECKING:
    from artifact_inspector.execution.interpreter.machine import Machine

FAILS = 2
"""Failures of the first wait of a warp that got registers."""
_ASKED = "whether a warp has requested or released registers"
_LEFT = "remaining failures of a warp's wait"


def _held(machine: Machine, name: str) -> Known:
    return machine.registers.get(name, 0)


def _keep(machine: Machine, name: str, value: Known) -> None:
    mask = machine.on
    machine.registers[name] = value if mask is True else np.where(mask, value, _held(machine, name))


def _registers(statement: Statement) -> Run:
    """USETMAXREG: a warp's first request fails once, before other warps have released theirs."""
    target = next((o.name for o in statement.operands if o.kind is OperandKind.PREDICATE), None)

    def run(machine: Machine) -> None:
        asked = _held(machine, _ASKED)
        _keep(machine, _ASKED, 1)
        _keep(machine, _LEFT, 0 if target is None else FAILS)
        if target is not None:
            machine.write(target, asked == 1)

    return run


def _phase(statement: Statement) -> Run:
    """SYNCS: waits by TRYWAIT may fail; everything else succeeds."""
    otherwise = succeed(statement)
    target = statement.operands[0] if statement.operands else None
    if not statement.has("TRYWAIT") or target is None or target.kind is not OperandKind.PREDICATE:
        return otherwise

    def run(machine: Machine) -> bool | None:
        left = _held(machine, _LEFT)
        if isinstance(left, int) and left == 0:
            return otherwise(machine)
        _keep(machine, _LEFT, np.maximum(left - 1, 0) if isinstance(left, np.ndarray) else max(left - 1, 0))
        if not is_nothing(target):
            machine.write(target.name, left == 0)
        return None

    return run


WAITS: Mapping[str, Build] = {"USETMAXREG": _registers, "SYNCS": _phase}
"""Opcode without modifiers → builder of its run."""
