"""AMDGCN instructions that move data between lanes.

**Source** AMD Instinct MI300 and RDNA 3 Instruction Set Architecture documents, "Instructions".
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from artifact_inspector.execution.amdgcn.operands import (
    RunBuilder,
    StepRun,
    first_active_lanes,
    source_readers,
    under_exec,
    word_reader,
    word_writer,
)
from artifact_inspector.execution.interpreter.conversions import apply_distinct
from artifact_inspector.execution.interpreter.values import (
    FULL,
    Known,
    UnknownValue,
    Value,
    apply,
    broadcast_value,
    data_of,
    unknown_bits_of,
)
from artifact_inspector.formats.amdgcn.operations import Action, OpcodeSemantics
from artifact_inspector.formats.amdgcn.statement import AmdgcnStatement

if TYPE_CHECKING:
    from artifact_inspector.execution.interpreter.machine import Machine

# ── Counting and crossing lanes ──────────────────────────────────────────────────────────────────


def _build_lane_count(statement: AmdgcnStatement, _meaning: OpcodeSemantics) -> StepRun:
    """`v_mbcnt`: number of mask bits below the lane, in the lower or upper half of the wave."""
    readers, write = source_readers(statement, 1, 2), word_writer(statement)
    is_upper_half = "_hi_" in statement.base

    def run(machine: Machine) -> None:
        lane = machine.environment.lane(machine)
        lanes_below = np.clip(lane - 32 if is_upper_half else lane, 0, 32)
        window_mask = (np.int64(1) << lanes_below) - 1

        def count(mask: Known, added: Known) -> Known:
            return apply_distinct(lambda v: (v & FULL).bit_count(), np.asarray(mask & window_mask)) + added

        write(machine, apply(count, *(reader(machine) for reader in readers)))

    return under_exec(run)


def _build_read_lane(statement: AmdgcnStatement, meaning: OpcodeSemantics) -> StepRun:
    reader, write = word_reader(statement.operands[1]), word_writer(statement)
    lane_reader = word_reader(statement.operands[2]) if meaning.action is Action.READ_LANE else None

    def read_value(machine: Machine, value: Known, lane: Value, mask: Any) -> Known:
        if not isinstance(value, np.ndarray) or value.shape[1] == 1:
            return value
        if lane_reader is None:
            return first_active_lanes(machine, value, mask)
        warp = machine.program.warp_size
        first_lane = np.arange(machine.threads).reshape(1, -1) // warp * warp
        source_lanes = np.broadcast_to(first_lane + lane % warp, (value.shape[0], machine.threads))
        return np.take_along_axis(value, source_lanes, axis=1)

    def run(machine: Machine) -> None:
        value = reader(machine)
        lane = lane_reader(machine) if lane_reader is not None else 0
        mask, machine.active_mask, machine.undecided_lanes = machine.active_mask, machine.group.mask, None
        if isinstance(lane, UnknownValue) or (
            isinstance(value, UnknownValue) and not isinstance(value.unknown_bits, np.ndarray)
        ):
            write(machine, UnknownValue(0, FULL, (lane if isinstance(lane, UnknownValue) else value).missing_inputs))
        elif isinstance(value, UnknownValue):
            data, bad = (read_value(machine, plane, lane, mask) for plane in (value.data, value.unknown_bits))
            write(machine, UnknownValue(data, bad, value.missing_inputs) if np.any(bad) else data)
        else:
            write(machine, read_value(machine, value, lane, mask))

    return under_exec(run)


def _build_write_lane(statement: AmdgcnStatement, _meaning: OpcodeSemantics) -> StepRun:
    value_reader, lane_reader, write = (
        word_reader(statement.operands[1]),
        word_reader(statement.operands[2]),
        word_writer(statement),
    )

    def run(machine: Machine) -> None:
        lane, written_value = lane_reader(machine), value_reader(machine)
        if isinstance(lane, UnknownValue):
            write(machine, UnknownValue(0, FULL, lane.missing_inputs))
            return
        is_target_lane = machine.environment.lane(machine) == lane % machine.program.warp_size
        machine.active_mask = machine.intersect(machine.group.mask, np.asarray(is_target_lane))
        write(machine, written_value)

    return run


def _build_permute_lanes(statement: AmdgcnStatement, _meaning: OpcodeSemantics) -> StepRun:
    """`ds_bpermute_b32` pulls the register of the lane at address / 4; `ds_permute_b32` pushes to that lane.

    An inactive lane reads as 0.
    """
    address_reader, value_reader, write = (
        word_reader(statement.operands[1]),
        word_reader(statement.operands[2]),
        word_writer(statement),
    )
    offset = statement.modifier_number("offset")
    exchange = _push if statement.base.startswith("ds_permute") else _pull

    def run(machine: Machine) -> None:
        lane_addresses, source_value = (
            machine.resolve_active(address_reader(machine)),
            machine.resolve_active(value_reader(machine)),
        )
        if isinstance(lane_addresses, UnknownValue):
            write(machine, UnknownValue(0, FULL, lane_addresses.missing_inputs))
            return
        lane = ((lane_addresses + offset) >> 2) % machine.program.warp_size
        moved_data, bad = (
            exchange(machine, lane, plane) for plane in (data_of(source_value), unknown_bits_of(source_value))
        )
        write(
            machine,
            UnknownValue(moved_data, bad, source_value.missing_inputs)
            if isinstance(source_value, UnknownValue) and bad.any()
            else moved_data,
        )

    return under_exec(run)


def _by_wave(machine: Machine, value: Known) -> NDArray[Any]:
    return broadcast_value(value, machine.shape).reshape(-1, machine.program.warp_size)


def _pull(machine: Machine, lane: Known, source_value: Known) -> NDArray[np.int64]:
    """The values that lanes pull from other lanes of their wave."""
    visible_value = np.where(_by_wave(machine, machine.active_mask), _by_wave(machine, source_value), 0)
    return np.take_along_axis(visible_value, _by_wave(machine, lane), axis=1).reshape(machine.shape)


def _push(machine: Machine, lane: Known, source_value: Known) -> NDArray[np.int64]:
    """The values that lanes receive from others of their wave. The highest sender wins; no sender gives 0."""
    on, target_lanes, values = (_by_wave(machine, operand) for operand in (machine.active_mask, lane, source_value))
    received = np.zeros(on.shape, np.int64)
    rows = np.arange(len(on))
    for sender in range(machine.program.warp_size):
        received[rows, target_lanes[:, sender]] = np.where(
            on[:, sender], values[:, sender], received[rows, target_lanes[:, sender]]
        )
    return received.reshape(machine.shape)


LANES: Mapping[Action, RunBuilder] = {
    Action.MASKED_BIT_COUNT: _build_lane_count,
    Action.READ_LANE: _build_read_lane,
    Action.READ_FIRST_LANE: _build_read_lane,
    Action.WRITE_LANE: _build_write_lane,
    Action.PERMUTE_LANES: _build_permute_lanes,
}
"""Action → builder of its run."""
