"""SASS instructions that cross the lanes of a warp: shuffles, votes, reductions."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from artifact_inspector.execution.interpreter.machine import Machine
from artifact_inspector.execution.interpreter.values import (
    FULL,
    BoolArray,
    IntArray,
    Known,
    Mask,
    UnknownValue,
    Value,
    Word,
    as_signed,
    as_word,
    broadcast_mask,
    broadcast_value,
    collapse_unknown,
    data_of,
    has_lanes,
    move_lanes,
    widen_to_warps,
)
from artifact_inspector.execution.sass import operands as op
from artifact_inspector.formats.sass.statement import SassOperandKind, SassStatement


def _words_by_warp(machine: Machine, value: Known) -> IntArray:
    """A number by warp: (CTAs or 1, warps, lanes)."""
    rows = np.shape(value)[0] if np.ndim(value) == 2 else 1
    return broadcast_value(value, (rows, machine.threads)).reshape(rows, -1, machine.warp_size)


def _lanes_by_warp(machine: Machine, mask: Known) -> BoolArray:
    """A mask by warp: (CTAs or 1, warps, lanes)."""
    rows = np.shape(mask)[0] if np.ndim(mask) == 2 else 1
    return broadcast_mask(mask, (rows, machine.threads)).reshape(rows, -1, machine.warp_size)


def _activate_warps(machine: Machine) -> Mask:
    """Activate all lanes of the active warps, which receive the result; returns the lanes that take part."""
    mask = machine.active_mask
    machine.active_mask = widen_to_warps(mask, machine.warp_size)
    return mask


def _build_to_uniform(statement: SassStatement) -> op.StepRun:
    """R2UR: the first active lane's value for the warp."""
    name, predicates, at = op.destinations(statement, 0)
    reader = op.word_reader(statement.operands[at])

    def run(machine: Machine) -> None:
        value, mask = reader(machine), _activate_warps(machine)
        op.write_all(machine, (name,), _first_active_value(machine, value, mask))
        op.write_all(machine, predicates, True)

    return run


def _first_active_value(machine: Machine, value: Value, mask: Mask) -> Value:
    if np.ndim(data_of(value)) < 2 or np.shape(data_of(value))[1] == 1:
        return value
    if isinstance(value, UnknownValue) and not isinstance(value.unknown_bits, np.ndarray):
        return value
    return move_lanes(lambda plane: machine.first_of_warps(plane, mask), value)


def _build_elect(statement: SassStatement) -> op.StepRun:
    name, predicates, _ = op.destinations(statement, 0)

    def run(machine: Machine) -> None:
        first = machine.repeat_in_warps(_lanes_by_warp(machine, machine.active_mask).argmax(axis=2))
        op.write_all(machine, predicates[:1], np.asarray(machine.lane_numbers == first))
        if name is not None:
            _activate_warps(machine)
            machine.write_register(name, first)

    return run


def _build_vote(statement: SassStatement) -> op.StepRun:
    first, *later_operands = statement.operands
    has_register = first.kind is SassOperandKind.REGISTER
    name = op.writable_name(first) if has_register else None
    target = later_operands[0] if has_register and len(later_operands) > 1 else first
    predicates = [None if target.kind is SassOperandKind.REGISTER else op.writable_name(target)]
    reader = op.predicate_reader(statement.operands[-1])
    requires_all, requires_equal = statement.has_modifier("ALL"), statement.has_modifier("EQ")

    def run(machine: Machine) -> None:
        value, mask = reader(machine), _activate_warps(machine)
        ballot: Value
        vote_result: Value
        is_unknown = isinstance(value, UnknownValue) and has_lanes(machine.intersect(mask, value.unknown_bits))
        if is_unknown or requires_equal:
            reason = value if isinstance(value, UnknownValue) else machine.unknown_value("a vote")
            ballot = UnknownValue(0, FULL, reason.missing_inputs)
            vote_result = UnknownValue(False, True, reason.missing_inputs)
        elif isinstance(value, bool) and machine.group.lanes == machine.group.warps * machine.warp_size:
            ballot, vote_result = (FULL if value else 0), value
        else:
            on = _lanes_by_warp(machine, mask)
            votes = np.logical_and(on, _lanes_by_warp(machine, data_of(value)))
            ballot = machine.repeat_in_warps(_pack_bits(votes))
            warp_results = np.all(votes == on, axis=2) if requires_all else np.any(votes, axis=2)
            vote_result = machine.repeat_in_warps(warp_results)
        op.write_all(machine, (name,), ballot)
        op.write_all(machine, predicates, vote_result)

    return run


def _pack_bits(lanes: BoolArray) -> IntArray:
    """A number with a bit for each lane of the last axis."""
    bits: IntArray = (lanes * (1 << np.arange(lanes.shape[-1], dtype=np.int64))).sum(axis=-1)
    return bits


def _build_shuffle(statement: SassStatement) -> op.StepRun:
    """SHFL: read another lane's register."""
    name, predicates, at = op.destinations(statement, 0)
    readers = [op.word_reader(operand) for operand in statement.operands[at : at + 3]]
    kind = statement.modifiers[0]

    def run(machine: Machine) -> None:
        source_value, *lane_operands = [machine.resolve_active(reader(machine)) for reader in readers]
        unknown = next((value for value in lane_operands if isinstance(value, UnknownValue)), None)
        if unknown is not None:
            op.write_all(machine, predicates, UnknownValue(False, True, unknown.missing_inputs))
            op.write_all(machine, (name,), UnknownValue(0, FULL, unknown.missing_inputs))
            return
        step, limit = (as_word(data_of(value)) for value in lane_operands)
        lane_numbers = machine.lane_numbers
        segment = (limit >> 8) & 31
        upper_bound = (lane_numbers & segment) | (limit & 31 & ~segment)
        source_lanes = {
            "IDX": (lane_numbers & segment) | (step & ~segment & 31), "UP": lane_numbers - step,
            "DOWN": lane_numbers + step, "BFLY": lane_numbers ^ step,
        }[kind]  # fmt: skip
        inside = source_lanes >= upper_bound if kind == "UP" else source_lanes <= upper_bound
        clamped_lanes = np.where(inside, source_lanes, lane_numbers) & 31
        op.write_all(machine, predicates, True if inside.all() else inside)
        gathered = move_lanes(lambda plane: _gather_lanes(machine, as_word(plane), clamped_lanes), source_value)
        op.write_all(machine, (name,), collapse_unknown(gathered))

    return run


def _gather_lanes(machine: Machine, plane: Word, source_lanes: IntArray) -> Word:
    """A register of the lane of the warp that each lane selects."""
    if not isinstance(plane, np.ndarray) or plane.shape[1] == 1:
        return plane
    lane_index = np.arange(machine.threads) // machine.warp_size * machine.warp_size + source_lanes
    if len(lane_index) == 1:
        return plane[:, lane_index[0]]
    return np.take_along_axis(np.broadcast_to(plane, lane_index.shape), lane_index, axis=1)


_REDUCTIONS: Mapping[str, tuple[np.ufunc, int]] = {
    # second: the neutral element
    "MIN": (np.minimum, 1 << 62), "MAX": (np.maximum, -(1 << 62)), "SUM": (np.add, 0), "AND": (np.bitwise_and, -1),
    "OR": (np.bitwise_or, 0), "XOR": (np.bitwise_xor, 0),
}  # fmt: skip


def _build_reduce(statement: SassStatement) -> op.StepRun:
    """REDUX: a reduction over the active lanes of a warp."""
    name, _, at = op.destinations(statement, 0)
    reader = op.word_reader(statement.operands[at])
    function, neutral = next((_REDUCTIONS[m] for m in statement.modifiers if m in _REDUCTIONS), _REDUCTIONS["AND"])
    is_signed, is_float = statement.has_modifier("S32"), statement.has_modifier("F32")

    def run(machine: Machine) -> None:
        value, mask = machine.resolve_active(reader(machine)), _activate_warps(machine)
        if name is None:
            return
        if isinstance(value, UnknownValue) or is_float:
            reason = f"the result of {statement.opcode}"
            unknown = value if isinstance(value, UnknownValue) else machine.unknown_value(reason)
            machine.write_register(name, UnknownValue(0, FULL, unknown.missing_inputs))
            return
        word = as_word(value)
        warp_values = _words_by_warp(machine, as_signed(word) if is_signed else word)
        masked_values = np.where(_lanes_by_warp(machine, mask), warp_values, neutral)
        reduced: NDArray[np.int64] = function.reduce(masked_values, axis=2) & FULL
        same = (reduced == reduced.flat[0]).all()
        machine.write_register(name, int(reduced.flat[0]) if same else machine.repeat_in_warps(reduced))

    return run


def _build_match(statement: SassStatement) -> op.StepRun:
    """MATCH: the lanes that hold the same number; ALL also tests whether all of them do."""
    name, predicates, at = op.destinations(statement, 0)
    operand, requires_all = statement.operands[at], statement.has_modifier("ALL")
    reader = op.wide_reader(operand) if statement.has_modifier("U64") else op.word_reader(operand)

    def run(machine: Machine) -> None:
        value, mask = machine.resolve_active(reader(machine)), machine.active_mask
        if isinstance(value, UnknownValue):
            op.write_all(machine, (name,), UnknownValue(0, FULL, value.missing_inputs))
            op.write_all(machine, predicates, UnknownValue(False, True, value.missing_inputs))
            return
        on, warp_values = _lanes_by_warp(machine, mask), _words_by_warp(machine, value)
        equal = (warp_values[:, :, :, None] == warp_values[:, :, None, :]) & on[:, :, None, :]
        matching_lanes = _pack_bits(equal).reshape(-1, machine.threads)
        is_all_equal = (equal == on[:, :, None, :]).all(axis=3).reshape(-1, machine.threads)
        op.write_all(machine, (name,), np.where(is_all_equal, matching_lanes, 0) if requires_all else matching_lanes)
        op.write_all(machine, predicates, is_all_equal if requires_all else True)

    return run


LANES: Mapping[str, op.RunBuilder] = {
    "R2UR": _build_to_uniform, "ELECT": _build_elect, **dict.fromkeys(("VOTE", "VOTEU"), _build_vote),
    "SHFL": _build_shuffle, **dict.fromkeys(("REDUX", "CREDUX"), _build_reduce), "MATCH": _build_match
}  # fmt: skip
"""Opcode without modifiers → builder of its run."""
