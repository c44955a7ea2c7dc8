"""SASS instructions that cross the lanes of a warp: shuffles, votes, reductions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from artifact_inspector.execution.interpreter.values import (
    FULL,
    UnknownValue,
    Value,
    as_signed,
    broadcast_value,
    collapse_unknown,
    data_of,
    has_lanes,
    widen_to_warps,
)
from artifact_inspector.execution.sass.operands import (
    RunBuilder,
    StepRun,
    destinations,
    is_zero_register,
    predicate_reader,
    wide_reader,
    word_reader,
    write_all,
)
from artifact_inspector.formats.sass.statement import SassOperandKind, SassStatement

if TYPE_CHECKING:
    from artifact_inspector.execution.interpreter.machine import Machine


def _lanes_by_warp(machine: Machine, value: Any) -> Any:
    """A value by warp: (CTAs or 1, warps, lanes)."""
    warp = machine.program.warp_size
    rows = np.shape(value)[0] if np.ndim(value) == 2 else 1
    return broadcast_value(value, (rows, machine.threads)).reshape(rows, machine.threads // warp, warp)


def _repeat_in_warps(machine: Machine, value: Any) -> Any:
    """One value for each warp, repeated in all of its lanes."""
    return np.repeat(value, machine.program.warp_size, axis=1)


def _build_to_uniform(statement: SassStatement) -> StepRun:
    """R2UR: the first active lane's value for the warp."""
    name, predicates, at = destinations(statement, 0)
    reader = word_reader(statement.operands[at])

    def run(machine: Machine) -> None:
        value = reader(machine)
        mask = machine.active_mask
        machine.active_mask = widen_to_warps(mask, machine.program.warp_size)
        if name is not None:
            machine.write_register(name, _first_active_value(machine, value, mask))
        write_all(machine, predicates, True)

    return run


def _first_active_value(machine: Machine, value: Value, mask: Any) -> Value:
    if not isinstance(data_of(value), np.ndarray) or np.shape(data_of(value))[1] == 1:
        return value
    if isinstance(value, UnknownValue):
        return value if not isinstance(value.unknown_bits, np.ndarray) else UnknownValue(
            _first_active_value(machine, value.data, mask), _first_active_value(machine, value.unknown_bits, mask),
            value.missing_inputs,
        )  # fmt: skip
    on = _lanes_by_warp(machine, mask)
    warp_values = _lanes_by_warp(machine, value)
    first = on.argmax(axis=2)
    rows = max(len(warp_values), len(first))
    lane_index = np.broadcast_to(first[:, :, None], (rows, *first.shape[1:], 1))
    first_values = np.take_along_axis(np.broadcast_to(warp_values, (rows, *warp_values.shape[1:])), lane_index, axis=2)[
        :, :, 0
    ]
    if (first_values == first_values.flat[0]).all():
        return first_values.flat[0].item()
    return _repeat_in_warps(machine, first_values)


def _build_elect(statement: SassStatement) -> StepRun:
    name, predicates, _ = destinations(statement, 0)

    def run(machine: Machine) -> None:
        mask = machine.active_mask
        lane = machine.environment.lane(machine)
        on = _lanes_by_warp(machine, mask)
        first = _repeat_in_warps(machine, on.argmax(axis=2))
        if predicates and predicates[0] is not None:
            machine.write_register(predicates[0], np.asarray(lane == first))
        if name is not None:
            machine.active_mask = widen_to_warps(mask, machine.program.warp_size)
            machine.write_register(name, 0 if not first.any() else first)

    return run


def _build_vote(statement: SassStatement) -> StepRun:
    first, *later_operands = statement.operands
    has_register = first.kind is SassOperandKind.REGISTER
    name = first.name if has_register and not is_zero_register(first) else None
    target = later_operands[0] if has_register and len(later_operands) > 1 else first
    predicates = [None if is_zero_register(target) or target.kind is SassOperandKind.REGISTER else target.name]
    operand = statement.operands[-1]
    reader = predicate_reader(operand)
    requires_all, requires_equal = statement.has_modifier("ALL"), statement.has_modifier("EQ")

    def run(machine: Machine) -> None:
        value = reader(machine)
        mask = machine.active_mask
        machine.active_mask = widen_to_warps(mask, machine.program.warp_size)
        unknown = isinstance(value, UnknownValue) and has_lanes(machine.intersect(mask, value.unknown_bits))
        if unknown or requires_equal:
            missing_inputs = (
                value.missing_inputs
                if isinstance(value, UnknownValue)
                else machine.unknown_value("a vote").missing_inputs
            )
            ballot: Value = UnknownValue(0, FULL, missing_inputs)
            vote_result: Value = UnknownValue(False, True, missing_inputs)
        elif isinstance(value, bool) and machine.group.lanes == machine.group.warps * machine.program.warp_size:
            ballot, vote_result = (FULL if value else 0), value
        else:
            on, warp_predicates = _lanes_by_warp(machine, mask), _lanes_by_warp(machine, data_of(value))
            votes = on & warp_predicates
            weights = 1 << np.arange(machine.program.warp_size, dtype=np.int64)
            ballot = _repeat_in_warps(machine, (votes * weights).sum(axis=2))
            warp_results = (votes == on).all(axis=2) if requires_all else votes.any(axis=2)
            vote_result = _repeat_in_warps(machine, warp_results)
        write_all(machine, (name,), ballot)
        write_all(machine, predicates, vote_result)

    return run


def _build_shuffle(statement: SassStatement) -> StepRun:
    """SHFL: read another lane's register."""
    name, predicates, at = destinations(statement, 0)
    value, lane, clamp = (word_reader(operand) for operand in statement.operands[at : at + 3])
    kind = statement.modifiers[0]

    def run(machine: Machine) -> None:
        source_value, lane_operand, clamp_operand = (
            machine.resolve_active(reader(machine)) for reader in (value, lane, clamp)
        )
        unknown = next((v for v in (lane_operand, clamp_operand) if isinstance(v, UnknownValue)), None)
        if unknown is not None:
            write_all(machine, predicates, UnknownValue(False, True, unknown.missing_inputs))
            write_all(machine, (name,), UnknownValue(0, FULL, unknown.missing_inputs))
            return
        lane_numbers, step, limit = machine.environment.lane(machine), lane_operand, clamp_operand
        segment = (limit >> 8) & 31
        upper_bound = (lane_numbers & segment) | (limit & 31 & ~segment)
        lower_bound = lane_numbers & segment
        source_lanes = {
            "IDX": lower_bound | (step & ~segment & 31), "UP": lane_numbers - step, "DOWN": lane_numbers + step,
            "BFLY": lane_numbers ^ step,
        }[kind]  # fmt: skip
        inside = source_lanes >= upper_bound if kind == "UP" else source_lanes <= upper_bound
        clamped_lanes = np.where(inside, source_lanes, lane_numbers) & 31
        write_all(machine, predicates, True if inside.all() else inside)
        if name is not None:
            machine.write_register(name, _gather_lanes(machine, source_value, clamped_lanes))

    return run


def _gather_lanes(machine: Machine, source_value: Value, source_lanes: Any) -> Value:
    """A register of the lane of the warp that each lane selects."""
    if isinstance(source_value, UnknownValue):
        data, bad = (
            _gather_lanes(machine, source_value.data, source_lanes),
            _gather_lanes(machine, source_value.unknown_bits, source_lanes),
        )
        return collapse_unknown(UnknownValue(data, bad, source_value.missing_inputs))
    if not isinstance(source_value, np.ndarray) or source_value.shape[1] == 1:
        return source_value
    lanes = np.arange(machine.threads)
    lane_index = lanes // machine.program.warp_size * machine.program.warp_size + source_lanes
    if len(lane_index) == 1:
        return source_value[:, lane_index[0]]
    return np.take_along_axis(np.broadcast_to(source_value, lane_index.shape), lane_index, axis=1)


_REDUCTIONS: Mapping[str, Any] = {
    "MIN": np.minimum, "MAX": np.maximum, "SUM": np.add, "AND": np.bitwise_and, "OR": np.bitwise_or,
    "XOR": np.bitwise_xor,
}  # fmt: skip
_NEUTRAL: Mapping[str, int] = {"MIN": 1 << 62, "MAX": -(1 << 62), "AND": -1}


def _build_reduce(statement: SassStatement) -> StepRun:
    """REDUX: a reduction over the active lanes of a warp."""
    name, _, at = destinations(statement, 0)
    reader = word_reader(statement.operands[at])
    kind = next((m for m in statement.modifiers if m in _REDUCTIONS), "AND")
    is_signed, is_float = statement.has_modifier("S32"), statement.has_modifier("F32")

    def run(machine: Machine) -> None:
        value, mask = machine.resolve_active(reader(machine)), machine.active_mask
        machine.active_mask = widen_to_warps(mask, machine.program.warp_size)
        if name is None:
            return
        if isinstance(value, UnknownValue) or is_float:
            nothing = (
                value if isinstance(value, UnknownValue) else machine.unknown_value(f"the result of {statement.opcode}")
            )
            machine.write_register(name, UnknownValue(0, FULL, nothing.missing_inputs))
            return
        warp_values = _lanes_by_warp(machine, as_signed(value) if is_signed else value)
        masked_values = np.where(_lanes_by_warp(machine, mask), warp_values, _NEUTRAL.get(kind, 0))
        reduced = _REDUCTIONS[kind].reduce(masked_values, axis=2) & FULL
        same = (reduced == reduced.flat[0]).all()
        machine.write_register(name, int(reduced.flat[0]) if same else _repeat_in_warps(machine, reduced))

    return run


def _build_match(statement: SassStatement) -> StepRun:
    """MATCH: the lanes that hold the same number; ALL also tests whether all of them do."""
    name, predicates, at = destinations(statement, 0)
    reader = (
        wide_reader(statement.operands[at]) if statement.has_modifier("U64") else word_reader(statement.operands[at])
    )
    requires_all = statement.has_modifier("ALL")

    def run(machine: Machine) -> None:
        value, mask = machine.resolve_active(reader(machine)), machine.active_mask
        if isinstance(value, UnknownValue):
            matching_lanes: Value = UnknownValue(0, FULL, value.missing_inputs)
            holds: Value = UnknownValue(False, True, value.missing_inputs)
        else:
            on, warp_values = _lanes_by_warp(machine, mask), _lanes_by_warp(machine, value)
            equal = (warp_values[:, :, :, None] == warp_values[:, :, None, :]) & on[:, :, None, :]
            weights = 1 << np.arange(machine.program.warp_size, dtype=np.int64)
            matching_lanes = (equal * weights).sum(axis=3).reshape(-1, machine.threads)
            is_all_equal = (equal == on[:, :, None, :]).all(axis=3).reshape(-1, machine.threads)
            matching_lanes, holds = (
                (np.where(is_all_equal, matching_lanes, 0), is_all_equal) if requires_all else (matching_lanes, True)
            )
        write_all(machine, (name,), matching_lanes)
        write_all(machine, predicates, holds)

    return run


LANES: Mapping[str, RunBuilder] = {
    "R2UR": _build_to_uniform,
    "ELECT": _build_elect,
    "VOTE": _build_vote,
    "VOTEU": _build_vote,
    "SHFL": _build_shuffle,
    "REDUX": _build_reduce,
    "CREDUX": _build_reduce,
    "MATCH": _build_match,
}
"""Opcode without modifiers → builder of its run."""
