"""AMDGCN instructions that move data between lanes.

**Source** AMD Instinct MI300 and RDNA 3 Instruction Set Architecture documents, "Instructions".
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import numpy as np

from artifact_inspector.execution.amdgcn import operands as op
from artifact_inspector.execution.interpreter.conversions import apply_distinct
from artifact_inspector.execution.interpreter.machine import Machine
from artifact_inspector.execution.interpreter.values import (
    FULL,
    IntArray,
    Known,
    UnknownValue,
    Value,
    Word,
    apply,
    as_plain_array,
    as_word,
    broadcast_mask,
    broadcast_value,
    data_of,
    has_lanes,
    invert_mask,
    is_entirely_unknown,
    move_lanes,
    select_lanes,
    unknown_bits_of,
    widen_to_warps,
    with_unknown_bits,
)
from artifact_inspector.formats.amdgcn.operations import Action, OpcodeSemantics
from artifact_inspector.formats.amdgcn.statement import AmdgcnStatement


def _build_lane_count(statement: AmdgcnStatement, _meaning: OpcodeSemantics) -> op.StepRun:
    """`v_mbcnt`: number of mask bits below the lane, in the lower or upper half of the wave."""
    readers, write = op.source_readers(statement, 1, 2), op.word_writer(statement)
    first_lane = 32 if "_hi_" in statement.base else 0

    def run(machine: Machine) -> None:
        window_mask = (np.int64(1) << np.clip(machine.lane_numbers - first_lane, 0, 32)) - 1

        def count(mask: Known, added: Word) -> Word:
            return apply_distinct(lambda v: (v & FULL).bit_count(), as_plain_array(mask) & window_mask) + added

        write(machine, apply(count, *(reader(machine) for reader in readers)))

    return op.under_exec(run)


def _build_read_lane(statement: AmdgcnStatement, _meaning: OpcodeSemantics) -> op.StepRun:
    reader, write = op.word_reader(statement.operands[1]), op.word_writer(statement)
    lane_readers = [*map(op.word_reader, statement.operands[2:3])]

    def read_lane(machine: Machine, lane: Word, plane: Known) -> Word:
        plain = as_word(plane)
        if not isinstance(plain, np.ndarray) or plain.shape[1] == 1:
            return plain
        warp, thread = machine.warp_size, np.arange(machine.threads).reshape(1, -1)
        source_lanes = np.broadcast_to(thread // warp * warp + lane % warp, (plain.shape[0], machine.threads))
        return np.take_along_axis(plain, source_lanes, axis=1)

    def run(machine: Machine) -> None:
        value = reader(machine)
        lane: Value = lane_readers[0](machine) if lane_readers else 0
        mask, machine.active_mask, machine.undecided_lanes = machine.active_mask, machine.group.mask, None
        if isinstance(lane, UnknownValue):
            write(machine, UnknownValue(0, FULL, lane.missing_inputs))
        else:
            read_first = partial(machine.first_of_warps, mask=mask)
            moved = move_lanes(partial(read_lane, machine, as_word(lane)) if lane_readers else read_first, value)
            moved = with_unknown_bits(data_of(moved), unknown_bits_of(moved), value)
            waiting = machine.intersect(machine.group.mask, invert_mask(widen_to_warps(mask, machine.warp_size)))
            if not lane_readers and has_lanes(waiting):
                moved = select_lanes(waiting, machine.unknown_value("the first lane of a wave without lanes"), moved)
            write(machine, moved)

    return op.under_exec(run)


def _build_write_lane(statement: AmdgcnStatement, _meaning: OpcodeSemantics) -> op.StepRun:
    value_reader, lane_reader = map(op.word_reader, statement.operands[1:3])
    write = op.word_writer(statement)

    def run(machine: Machine) -> None:
        lane, written_value = lane_reader(machine), value_reader(machine)
        if isinstance(lane, UnknownValue):
            write(machine, UnknownValue(0, FULL, lane.missing_inputs))
            return
        is_target_lane = machine.lane_numbers == as_plain_array(lane) % machine.warp_size
        machine.active_mask = machine.intersect(machine.group.mask, is_target_lane)
        write(machine, written_value)

    return run


def _build_permute_lanes(statement: AmdgcnStatement, _meaning: OpcodeSemantics) -> op.StepRun:
    """`ds_bpermute_b32` pulls the register of the lane at address / 4; `ds_permute_b32` pushes to that lane.

    An inactive lane reads as 0.
    """
    address_reader, value_reader = map(op.word_reader, statement.operands[1:3])
    write, offset = op.word_writer(statement), statement.modifier_number("offset")
    exchange = _push if statement.base.startswith("ds_permute") else _pull

    def run(machine: Machine) -> None:
        addresses = machine.resolve_active(address_reader(machine))
        value = machine.resolve_active(value_reader(machine))
        if isinstance(addresses, UnknownValue):
            write(machine, UnknownValue(0, FULL, addresses.missing_inputs))
            return
        if exchange is _pull and is_entirely_unknown(value) and np.all(machine.active_mask):
            write(machine, value)
            return
        lane = ((as_plain_array(addresses) + offset) >> 2) % machine.warp_size
        moved = move_lanes(lambda plane: exchange(machine, lane, plane), value)
        write(machine, with_unknown_bits(data_of(moved), unknown_bits_of(moved), value))

    return op.under_exec(run)


def _by_wave(machine: Machine, value: Known) -> IntArray:
    return broadcast_value(value, machine.shape).reshape(-1, machine.warp_size)


def _pull(machine: Machine, lane: Word, source_value: Known) -> IntArray:
    """The values that lanes pull from other lanes of their wave."""
    on = broadcast_mask(machine.active_mask, machine.shape).reshape(-1, machine.warp_size)
    visible_value = np.where(on, _by_wave(machine, source_value), 0)
    return np.take_along_axis(visible_value, _by_wave(machine, lane), axis=1).reshape(machine.shape)


def _push(machine: Machine, lane: Word, source_value: Known) -> IntArray:
    """The values that lanes receive from others of their wave. The highest sender wins; no sender gives 0."""
    on = broadcast_mask(machine.active_mask, machine.shape).reshape(-1, machine.warp_size)
    target_lanes, values = (_by_wave(machine, operand) for operand in (lane, source_value))
    received = np.zeros(on.shape, np.int64)
    rows = np.arange(len(on))
    for sender in range(machine.warp_size):
        targets = rows, target_lanes[:, sender]
        received[targets] = np.where(on[:, sender], values[:, sender], received[targets])
    return received.reshape(machine.shape)


LANES: Mapping[Action, op.RunBuilder] = {
    Action.MASKED_BIT_COUNT: _build_lane_count,
    **dict.fromkeys((Action.READ_LANE, Action.READ_FIRST_LANE), _build_read_lane),
    Action.WRITE_LANE: _build_write_lane, Action.PERMUTE_LANES: _build_permute_lanes,
}  # fmt: skip
"""Action → builder of its run."""
