"""Merges machines at the same step into one machine that runs the CTAs of all."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from artifact_inspector.execution.interpreter.affine import is_affine_worthwhile, stack_affine
from artifact_inspector.execution.interpreter.cta_memory import CtaMemory
from artifact_inspector.execution.interpreter.lane_partition import LanePartition, LaneSubset, as_array_value
from artifact_inspector.execution.interpreter.machine import LaneGroup, Machine
from artifact_inspector.execution.interpreter.values import (
    Known,
    Mask,
    UnknownValue,
    Value,
    data_of,
    in_affine_form,
    unknown_bits_of,
)


def arrive_at_reconvergence(machine: Machine, *, has_reconverged: bool) -> list[Machine]:
    """Record that a machine arrived at its reconvergence point, or ended; returns the machines that continue.

    Args:
        machine: the machine that has stopped.
        has_reconverged: whether it is at its reconvergence point.
    """
    point = machine.reconvergence
    while point is not None:
        point.missing_count -= 1
        if has_reconverged:
            point.arrived.append(machine)
        if point.missing_count:
            return []
        merged = _merge_if_possible(point.arrived)
        for merged_machine in merged:
            merged_machine.reconvergence = point.outer
        if merged:
            if point.outer is not None:
                point.outer.missing_count += len(merged) - 1
            return merged
        point, has_reconverged = point.outer, False
    return []


def _merge_if_possible(machines: Sequence[Machine]) -> list[Machine]:
    """One machine from several at the same step; the machines themselves if they cannot be merged."""
    word_keys = [machine.local_memory.lane_words.keys() for machine in machines]
    if len(machines) < 2 or any(keys != word_keys[0] for keys in word_keys):
        return list(machines)
    return [_merge(machines)]


def _merge(machines: Sequence[Machine]) -> Machine:
    first = machines[0]
    rows = [machine.rows for machine in machines]
    merged = object.__new__(Machine)
    merged.__dict__.update(first.__dict__)
    merged.ctas = np.concatenate([machine.ctas for machine in machines])
    merged.uses_affine = is_affine_worthwhile(len(merged.ctas), first.threads)
    merged.loops = None if first.loops is None else first.loops.for_other_ctas()
    names = dict.fromkeys(name for machine in machines for name in machine.registers)
    merged.registers = {
        name: _merge_register([_register(machine, name) for machine in machines], rows, merged) for name in names
    }
    barriers = dict.fromkeys(name for machine in machines for name in machine.barriers)
    merged.barriers = {
        name: _merge_masks([machine.barriers.get(name, False) for machine in machines], rows) for name in barriers
    }
    saved = dict.fromkeys(name for machine in machines for name in machine.saved_barriers)
    merged.saved_barriers = {
        name: _merge_masks([machine.saved_barriers.get(name, False) for machine in machines], rows) for name in saved
    }
    barrier_names = dict.fromkeys(name for machine in machines for name in machine.early_arrivals)
    merged.early_arrivals = {
        name: _merge_arrivals([machine.early_arrivals.get(name, 0) for machine in machines], rows)
        for name in barrier_names
    }
    merged.exited = _merge_masks([machine.exited for machine in machines], rows)
    merged.trace = next((machine.trace for machine in machines if machine.trace is not None), None)
    merged.local_memory, merged.shared_memory = (
        CtaMemory(),
        _merge_shared([machine.shared_memory for machine in machines], rows),
    )
    merged.local_memory.lane_words = {
        at: _merge_register([machine.local_memory.lane_words[at] for machine in machines], rows, merged)
        for at in first.local_memory.lane_words
    }
    mask = _merge_masks([machine.groups[0].mask for machine in machines], rows)
    merged.groups, merged.waiting = [LaneGroup(first.groups[0].pc, mask, merged)], []
    merged.group = merged.groups[0]
    return merged


def _register(machine: Machine, name: str) -> Value:
    register_value = machine.registers.get(name)
    return machine.read_register(name) if register_value is None else register_value


def _merge_register(values: Sequence[Value], rows: Sequence[int], merged: Machine) -> Value:
    """A register of all CTAs."""
    first = values[0]
    if (
        all(part_value is first for part_value in values)
        and not np.ndim(data_of(first))
        and not isinstance(first, LanePartition)
    ):
        return first
    partitions = [part_value for part_value in values if isinstance(part_value, LanePartition)]
    if (
        merged.uses_affine
        and len(partitions) == len(values)
        and all(partitions[0].has_same_subsets(part_value) for part_value in partitions[1:])
    ):
        return LanePartition(
            tuple(
                LaneSubset(
                    matching_parts[0].mask,
                    _merge_register([lane_part.value for lane_part in matching_parts], rows, merged),
                )
                for matching_parts in zip(*(part_value.subsets for part_value in partitions), strict=True)
            )
        )
    if merged.uses_affine and (affine_merge := stack_affine(values, rows)) is not None:
        return affine_merge
    arrays = [as_array_value(part_value) for part_value in values]
    data = _stack([data_of(value) for value in arrays], rows)
    if not any(isinstance(value, UnknownValue) for value in arrays):
        return in_affine_form(data, merged.shape) if merged.uses_affine else data
    unknown_bits: list[Any] = [unknown_bits_of(value) for value in arrays]
    if all(isinstance(data_of(value), (bool, np.bool_)) or _is_bools(data_of(value)) for value in arrays):
        unknown_bits = [
            np.not_equal(part_value, 0) if isinstance(part_value, np.ndarray) else bool(part_value)
            for part_value in unknown_bits
        ]
    missing_inputs = 0
    for value in arrays:
        missing_inputs |= value.missing_inputs if isinstance(value, UnknownValue) else 0
    return UnknownValue(data, _stack(unknown_bits, rows), missing_inputs)


def _is_bools(value: Known) -> bool:
    return isinstance(value, np.ndarray) and value.dtype == np.bool_


def _stack(values: Sequence[Known], rows: Sequence[int]) -> Known:
    """Numbers or arrays stacked by CTA; one number if all are equal."""
    first = values[0]
    if not any(isinstance(part_value, np.ndarray) for part_value in values) and all(
        part_value == first for part_value in values
    ):
        return first
    arrays: list[NDArray[Any]] = [np.atleast_2d(np.asarray(part_value)) for part_value in values]
    if all(len(array) == 1 and np.array_equal(array, arrays[0]) for array in arrays):
        return first
    lanes = max(array.shape[1] for array in arrays)
    return np.concatenate([np.broadcast_to(array, (count, lanes)) for array, count in zip(arrays, rows, strict=True)])


def _merge_masks(masks: Sequence[Mask], rows: Sequence[int]) -> Mask:
    merged_mask: Mask = _stack(masks, rows)
    return merged_mask


def _merge_arrivals(arrivals: Sequence[Any], rows: Sequence[int]) -> Any:
    if all(np.size(arrival) == 1 and arrival == arrivals[0] for arrival in arrivals):
        return arrivals[0]
    return np.concatenate([np.broadcast_to(arrival, count) for arrival, count in zip(arrivals, rows, strict=True)])


def _merge_shared(memories: Sequence[CtaMemory], rows: Sequence[int]) -> CtaMemory:
    merged = CtaMemory()
    merged.byte_limit = memories[0].byte_limit
    for memory in memories:
        merged.missing_inputs |= memory.missing_inputs
    size = max((memory.content.shape[1] for memory in memories if memory.content is not None), default=0)
    if size:
        merged.content = _stack([_padded(memory.content, size) for memory in memories], rows)
        merged.known_marks = _stack([_padded(memory.known_marks, size) for memory in memories], rows)
        if len(merged.content) != len(merged.known_marks):
            shape = (sum(rows), size)
            merged.content, merged.known_marks = (
                np.broadcast_to(merged.content, shape).copy(),
                np.broadcast_to(merged.known_marks, shape).copy(),
            )
    return merged


def _padded(content: NDArray[np.uint8] | None, size: int) -> NDArray[np.uint8]:
    if content is None:
        return np.zeros((1, size), np.uint8)
    return np.pad(content, ((0, 0), (0, size - content.shape[1])))
