"""AMDGCN instructions that move data between lanes.

**Source** AMD Instinct MI300 and RDNA 3 Instruction Set Architecture documents, "Instructions".
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from artifact_inspector.execution.amdgcn.operands import (
    Build,
    Run,
    first_lanes,
    on_lanes,
    put,
    source,
    sources,
)
from artifact_inspector.execution.interpreter.lanes import (
    FULL,
    Known,
    Unknown,
    Value,
    apply,
    bits_unknown,
    data_of,
    spread,
)
from artifact_inspector.execution.interpreter.numbers import each
from artifact_inspector.formats.amdgcn.operations import Action, Meaning
from artifact_inspector.formats.amdgcn.statement import Statement

if TYPE_CHECKING:
    from artifact_inspector.execution.interpreter.machine import Machine

# ── Counting and crossing lanes ──────────────────────────────────────────────────────────────────


def _count_lanes(statement: Statement, _meaning: Meaning) -> Run:
    """`v_mbcnt`: number of mask bits below the lane, in the lower or upper half of the wave."""
    readers, write = sources(statement, 1, 2), put(statement)
    upper = "_hi_" in statement.base

    def run(machine: Machine) -> None:
        lane = machine.environment.lane(machine)
        below = np.clip(lane - 32 if upper else lane, 0, 32)
        window = (np.int64(1) << below) - 1

        def count(mask: Known, added: Known) -> Known:
            return each(lambda v: (v & FULL).bit_count(), np.asarray(mask & window)) + added

        write(machine, apply(count, *(reader(machine) for reader in readers)))

    return on_lanes(run)


def _read_lane(statement: Statement, meaning: Meaning) -> Run:
    reader, write = source(statement.operands[1]), put(statement)
    place = source(statement.operands[2]) if meaning.action is Action.READ_LANE else None

    def of(machine: Machine, value: Known, lane: Value, mask: Any) -> Known:
        if not isinstance(value, np.ndarray) or value.shape[1] == 1:
            return value
        if place is None:
            return first_lanes(machine, value, mask)
        warp = machine.program.warp
        start = np.arange(machine.threads).reshape(1, -1) // warp * warp
        at = np.broadcast_to(start + lane % warp, (value.shape[0], machine.threads))
        return np.take_along_axis(value, at, axis=1)

    def run(machine: Machine) -> None:
        value = reader(machine)
        lane = place(machine) if place is not None else 0
        mask, machine.on, machine.maybe = machine.on, machine.group.mask, None
        if isinstance(lane, Unknown) or (
            isinstance(value, Unknown) and not isinstance(value.bad, np.ndarray)
        ):
            write(machine, Unknown(0, FULL, (lane if isinstance(lane, Unknown) else value).why))
        elif isinstance(value, Unknown):
            data, bad = (of(machine, held, lane, mask) for held in (value.data, value.bad))
            write(machine, Unknown(data, bad, value.why) if np.any(bad) else data)
        else:
            write(machine, of(machine, value, lane, mask))

    return on_lanes(run)


def _write_lane(statement: Statement, _meaning: Meaning) -> Run:
    value, place, write = source(statement.operands[1]), source(statement.operands[2]), put(statement)

    def run(machine: Machine) -> None:
        lane, new = place(machine), value(machine)
        if isinstance(lane, Unknown):
            write(machine, Unknown(0, FULL, lane.why))
            return
        here = machine.environment.lane(machine) == lane % machine.program.warp
        machine.on = machine._and(machine.group.mask, np.asarray(here))
        write(machine, new)

    return run


def _permute_lanes(statement: Statement, _meaning: Meaning) -> Run:
    """`ds_bpermute_b32` pulls the register of the lane at address / 4; `ds_permute_b32` pushes to that lane.

    An inactive lane reads as 0.
    """
    place, value, write = source(statement.operands[1]), source(statement.operands[2]), put(statement)
    offset = statement.number("offset")
    move = _pushed if statement.base.startswith("ds_permute") else _pulled

    def run(machine: Machine) -> None:
        at, held = machine.settled(place(machine)), machine.settled(value(machine))
        if isinstance(at, Unknown):
            write(machine, Unknown(0, FULL, at.why))
            return
        lane = ((at + offset) >> 2) % machine.program.warp
        found, bad = (move(machine, lane, part) for part in (data_of(held), bits_unknown(held)))
        write(machine, Unknown(found, bad, held.why) if isinstance(held, Unknown) and bad.any() else found)

    return on_lanes(run)


def _by_wave(machine: Machine, value: Known) -> NDArray[Any]:
    return spread(value, machine.shape).reshape(-1, machine.program.warp)


def _pulled(machine: Machine, lane: Known, held: Known) -> NDArray[np.int64]:
    """The values that lanes pull from other lanes of their wave."""
    given = np.where(_by_wave(machine, machine.on), _by_wave(machine, held), 0)
    return np.take_along_axis(given, _by_wave(machine, lane), axis=1).reshape(machine.shape)


def _pushed(machine: Machine, lane: Known, held: Known) -> NDArray[np.int64]:
    """The values that lanes receive from others of their wave. The highest sender wins; no sender gives 0."""
    on, to, what = (_by_wave(machine, given) for given in (machine.on, lane, held))
    found = np.zeros(on.shape, np.int64)
    rows = np.arange(len(on))
    for at in range(machine.program.warp):
        found[rows, to[:, at]] = np.where(on[:, at], what[:, at], found[rows, to[:, at]])
    return found.reshape(machine.shape)


LANES: Mapping[Action, Build] = {
    Action.COUNT_LANES: _count_lanes,
    Action.READ_LANE: _read_lane,
    Action.READ_FIRST: _read_lane,
    Action.WRITE_LANE: _write_lane,
    Action.PERMUTE_LANES: _permute_lanes,
}
"""Action → builder of its run."""
