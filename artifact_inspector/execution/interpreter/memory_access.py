"""Moves data between registers and memory, where its values are known."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np

from artifact_inspector.execution.interpreter.lane_accesses import LaneAccesses
from artifact_inspector.execution.interpreter.machine import Machine
from artifact_inspector.execution.interpreter.values import (
    FULL,
    BoolArray,
    IntArray,
    Plain,
    UnknownValue,
    Value,
    broadcast_value,
    data_of,
    in_affine_form,
    missing_inputs_of,
    select_lanes,
    unknown_bits_of,
)

WordUpdate: TypeAlias = Callable[..., IntArray]
"""Old words and operands → new words."""


def load_global(machine: Machine, lanes: LaneAccesses | None, size: int, word_count: int) -> Sequence[Value]:
    """The words at the accessed addresses, if the values of the tensor were given; none if they decide nothing."""
    if machine.step.only_counts:
        return ()
    if lanes is None:
        missing_inputs = machine.counters.missing_inputs.get(machine.step.index, 0)
        return [UnknownValue(0, FULL, missing_inputs)] * word_count
    if machine.memory.values is not None:
        return _load_values(machine, lanes, size, word_count)
    words: list[Value] = []
    word_bytes = min(size, 4)
    first = lanes.addresses if lanes.cta_offsets is None else lanes.addresses + lanes.cta_offsets[0]
    name = machine.memory.missing_values_at(first)
    if name is not None:
        return [machine.unknown_value(name)] * word_count
    lanes = lanes.expanded
    active = lanes.active_addresses
    for word_index in range(word_count):
        data, name = machine.memory.load(active + 4 * word_index, word_bytes)
        if data is None:
            return [machine.unknown_value(name)] * word_count
        if lanes.mask is None:
            words.append(data.reshape(lanes.addresses.shape))
        else:
            values = np.zeros(lanes.addresses.shape, np.int64)
            values[lanes.mask] = data
            words.append(values)
    return words


def _load_values(machine: Machine, lanes: LaneAccesses, size: int, word_count: int) -> list[Value]:
    """The words at the accessed addresses, of a launch with values."""
    values, lanes = machine.memory.values, lanes.expanded
    assert values is not None
    words: list[Value] = []
    for word_index in range(word_count):
        data, unknown = np.zeros(lanes.addresses.shape, np.int64), np.zeros(lanes.addresses.shape, np.int64)
        active = np.ones(lanes.addresses.shape, bool) if lanes.mask is None else lanes.mask
        loaded, known = values.load(lanes.addresses[active] + 4 * word_index, min(size, 4))
        data[active], unknown[active] = loaded, np.where(known, 0, FULL)
        reason = machine.input_names.bit_of("values of elements that nothing has written")
        words.append(UnknownValue(data, unknown, reason) if unknown.any() else data)
    return words


def store_values(machine: Machine, lanes: LaneAccesses | None, size: int, words: Sequence[Value]) -> None:
    """Store words of the active lanes, if the launch has values."""
    values = machine.memory.values
    if values is None or lanes is None:
        return
    addresses, active = _addresses_by_cta(lanes, [np.zeros(machine.shape, np.int64)])
    for word_index, word in enumerate(words):
        data = broadcast_value(data_of(word), machine.shape)[active]
        is_known = broadcast_value(_unknown_stored(word, size), machine.shape)[active] == 0
        values.store(addresses[active] + 4 * word_index, min(size, 4), data, is_known, machine.step.index)


def update_values(
    machine: Machine,
    lanes: LaneAccesses | None,
    size: int,
    operands: Sequence[Value],
    function: WordUpdate,
    offset: int = 0,
) -> Value | None:
    """Update words of up to 8 bytes in memory, if the launch has values; returns the old words.

    Args:
        lanes: the active lanes.
        size: bytes.
        operands: words of each lane.
        function: old words and the operands → new words.
        offset: bytes from the addresses to the words.
    """
    values = machine.memory.values
    if values is None or lanes is None:
        return None
    addresses, active = _addresses_by_cta(lanes, [np.zeros(machine.shape, np.int64)])
    words = [broadcast_value(data_of(word), machine.shape)[active] for word in operands]
    known = np.ones(addresses[active].shape, bool)
    for word in operands:
        known &= broadcast_value(unknown_bits_of(word), machine.shape)[active] == 0
    old, old_known = values.update(
        addresses[active] + offset, size, known, machine.step.index,
        lambda loaded, at: function(loaded, *(word[at] for word in words)),
    )  # fmt: skip
    data, unknown = np.zeros(machine.shape, np.int64), np.zeros(machine.shape, np.int64)
    data[active], unknown[active] = old, np.where(old_known, 0, FULL)
    reason = machine.input_names.bit_of("values of elements that nothing has written")
    return UnknownValue(data, unknown, reason) if unknown.any() else data


def store_global(machine: Machine, lanes: LaneAccesses, size: int, value: Value | None) -> None:
    """Store values to memory whose content is tracked; None stores unknown bytes."""
    addresses, active = _addresses_by_cta(lanes.expanded, [np.zeros(machine.shape, np.int64)])
    if value is None or broadcast_value(_unknown_stored(value, size), machine.shape)[active].any():
        machine.memory.store(addresses[active], size, None)
    else:
        machine.memory.store(addresses[active], size, broadcast_value(data_of(value), machine.shape)[active])


def _unknown_stored(value: Value, size: int) -> Plain:
    """The unknown bits of a word, of the bytes of it that a store of some bytes writes."""
    return unknown_bits_of(value) & ((1 << 8 * min(size, 4)) - 1)


_SHARED_WORD_COST = 8
"""A shared memory word costs as much simulation time as this many registers."""


def load_shared(machine: Machine, lanes: LaneAccesses | None, size: int, word_count: int) -> Sequence[Value]:
    """The words that shared memory holds, where known; none if they decide nothing."""
    if machine.step.only_counts:
        return ()
    unknown_value = unknown_shared_value(machine)
    if lanes is None or machine.shared_memory.content is None:
        return [unknown_value] * word_count
    addresses, mask = _addresses_by_cta(lanes, ())
    values: list[Value] = []
    for word_index in range(word_count):
        loaded = machine.shared_memory.load(addresses + 4 * word_index, min(size, 4), mask)
        if loaded is None:
            values.append(unknown_value)
            continue
        data, is_known = loaded
        unknown_lanes = mask & ~is_known
        values.append(
            UnknownValue(data, np.where(unknown_lanes, FULL, 0), unknown_value.missing_inputs)
            if unknown_lanes.any()
            else data
        )
    _count_array_words(machine, word_count)
    return values


def unknown_shared_value(machine: Machine) -> UnknownValue:
    """The value of unknown shared memory: any unknown value stored there may be its cause."""
    missing_inputs = machine.shared_memory.missing_inputs
    return (
        UnknownValue(0, FULL, missing_inputs)
        if missing_inputs
        else machine.unknown_value("uninitialized shared memory")
    )


def forget_shared(machine: Machine, missing_inputs: int, start: int | None = None) -> None:
    """Mark shared memory as unknown from a byte offset on."""
    machine.shared_memory.make_unknown(start)
    machine.shared_memory.missing_inputs |= missing_inputs


def store_shared(machine: Machine, lanes: LaneAccesses | None, size: int, values: Sequence[Value]) -> None:
    """Store values to shared memory; unknown values make its bytes unknown."""
    shared = machine.shared_memory
    if machine.undecided_lanes is not None:  # lanes that may or may not store
        forget_shared(machine, machine.undecided_lanes.missing_inputs)
    if lanes is None:  # the address is unknown: it may be anywhere
        if missing_inputs := machine.counters.missing_inputs.get(machine.step.index):
            forget_shared(machine, missing_inputs)
        return
    shared.missing_inputs |= missing_inputs_of(*values)
    unknown_parts = [_unknown_stored(value, size) for value in values]
    entirely_unknown = [not isinstance(bits, np.ndarray) and bits != 0 for bits in unknown_parts]
    if shared.content is None and all(entirely_unknown):
        return
    data_and_unknown = [
        (np.asarray(data_of(value), np.int64), np.asarray(bits) != 0)
        for value, bits in zip(values, unknown_parts, strict=True)
    ]
    addresses, mask = _addresses_by_cta(lanes, [array for pair in data_and_unknown for array in pair])
    for word_index, (data, unknown_lanes) in enumerate(data_and_unknown):
        word_addresses, word_bytes = addresses + 4 * word_index, min(size, 4)
        shared.store(word_addresses, word_bytes, np.broadcast_to(data, mask.shape), mask & ~unknown_lanes)
        shared.store(word_addresses, word_bytes, None, mask & unknown_lanes)
    _count_array_words(machine, len(values))


def _addresses_by_cta(lanes: LaneAccesses, values: Sequence[IntArray | BoolArray]) -> tuple[IntArray, BoolArray]:
    """Addresses and mask with a row per CTA, or one row if CTAs differ neither in addresses nor in values."""
    lanes = lanes.expanded
    on = np.ones((1, 1), bool) if lanes.mask is None else lanes.mask
    shape = np.broadcast_shapes(lanes.addresses.shape, on.shape, *(value.shape for value in values))
    return np.broadcast_to(lanes.addresses, shape), np.broadcast_to(on, shape)


def _count_array_words(machine: Machine, word_count: int) -> None:
    if machine.shared_memory.content is not None and len(machine.shared_memory.content) > 1:
        machine.counters.arrays += _SHARED_WORD_COST * word_count


def load_local(machine: Machine, address: Value, word_count: int, missing_input: str) -> list[Value]:
    """Words of each lane; the missing input names those that were not stored."""
    words = machine.local_memory.lane_words
    values = [words.get(address + 4 * n) if isinstance(address, int) else None for n in range(word_count)]
    return [machine.unknown_value(missing_input) if value is None else value for value in values]


def store_local(machine: Machine, address: int, values: Sequence[Value]) -> None:
    """Store words of the active lanes."""
    words = machine.local_memory.lane_words
    for at, value in enumerate(values):
        word = address + 4 * at
        stored = select_lanes(machine.active_mask, value, words.get(word, UnknownValue(0, FULL, 0)))
        words[word] = in_affine_form(stored, machine.shape) if machine.uses_affine else stored
