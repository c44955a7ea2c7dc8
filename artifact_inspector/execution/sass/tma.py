"""SASS copies by the tensor memory accelerator: of boxes by a tensor map, and bulk copies."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from artifact_inspector.execution.interpreter.machine import Machine
from artifact_inspector.execution.interpreter.memory_access import forget_shared
from artifact_inspector.execution.interpreter.observation import SharedMemoryAccess
from artifact_inspector.execution.interpreter.tensor_maps import (
    PARAMETER_WINDOW,
    TensorDescriptor,
    read_maps,
    record_box_copies,
)
from artifact_inspector.execution.interpreter.values import (
    IntArray,
    Mask,
    UnknownValue,
    Value,
    broadcast_mask,
    broadcast_value,
    distinct_values,
    join_words,
    missing_inputs_of,
)
from artifact_inspector.execution.sass.environment import environment_of
from artifact_inspector.execution.sass.operands import RunBuilder, StepRun, register_after
from artifact_inspector.formats.sass.statement import SassOperandKind, SassStatement

SHARED_WINDOW = 0xFFFFFF
"""Bits of an address in shared memory; those above are the CTA of the cluster."""
_SHARED_START = 0x400
"""Where a CTA's own shared memory begins on GPUs with such copies: the first 1 KiB is reserved."""


def _build_tensor_copy(statement: SassStatement) -> StepRun:
    """TMA: the tensor map says what it copies; the data in shared memory becomes unknown."""
    reads = statement.base == "UTMALDG"

    def run(machine: Machine) -> None:
        _count_copies(machine)
        names = _record_tensor_copy(machine, statement)
        if reads:
            missing_inputs = missing_inputs_of(*(machine.unknown_value(f"values of {name}") for name in names))
            known_missing = machine.counters.missing_inputs.get(machine.step.index, 0)
            forget_shared(machine, missing_inputs | known_missing, _SHARED_START)

    return run


def _record_tensor_copy(machine: Machine, statement: SassStatement) -> list[str]:
    """Record a copy by the tensor map whose address is the last operand.

    Returns:
        The tensors of which it copies parts; empty if unknown, which is recorded.
    """
    address_operands = [operand for operand in statement.operands if operand.kind is SassOperandKind.ADDRESS]
    dimensions = next((int(m[0]) for m in statement.modifiers if m[:1].isdigit() and m[1:] == "D"), 0)
    reads = statement.base == "UTMALDG"
    first = address_operands[0].address_registers[0][0]
    skipped_registers = 2 if reads else 1  # address in shared memory, and the barrier of a load
    coordinates = [machine.read_register(register_after(first, skipped_registers + axis)) for axis in range(dimensions)]
    low = address_operands[-1].address_registers[0][0]
    address = join_words(machine.read_register(low), machine.read_register(register_after(low)))
    address = machine.resolve_active(address)
    if isinstance(address, UnknownValue):
        machine.counters.mark_unknown(machine.step.index, address.missing_inputs)
        return []
    descriptors = _find_descriptors(machine, distinct_values(address, machine.active_mask))
    names = []
    for descriptor, map_addresses in descriptors:
        if descriptor is None or dimensions != len(descriptor.tensor.shape):
            reason = "a tensor map that cannot be read" if descriptor is None else "a tensor map of another rank"
            machine.counters.mark_unknown(machine.step.index, machine.unknown_value(reason).missing_inputs)
            return []
        mask = True if len(descriptors) == 1 else np.isin(broadcast_value(address, machine.shape), map_addresses)
        record_box_copies(
            machine, descriptor, coordinates, reads=reads, updates=statement.base == "UTMAREDG", mask=mask
        )
        _observe_box(machine, descriptor, machine.read_register(first), mask, is_store=reads)
        region = machine.memory.region_of(descriptor.tensor.pointer or 0)
        names.append("memory outside of every tensor" if region is None else region.name)
    return names


def _observe_box(machine: Machine, descriptor: TensorDescriptor, address: Value, mask: Mask, *, is_store: bool) -> None:
    """Observe what a copy of each active warp accesses in shared memory, as one access of its first lane."""
    observer, address = machine.memory.observer, machine.resolve_active(address)
    if observer is not None and observer.observes_shared and not isinstance(address, UnknownValue):
        lanes = broadcast_mask(machine.active_mask & mask, machine.shape) & (machine.lane_numbers == 0)
        addresses = broadcast_value(address, machine.shape) & SHARED_WINDOW
        size = math.prod(descriptor.box) * descriptor.tensor.bits // 8
        observer.observe_shared(SharedMemoryAccess(machine.step, machine.rows, addresses, lanes, size, is_store))


def _find_descriptors(machine: Machine, addresses: IntArray) -> list[tuple[TensorDescriptor | None, IntArray]]:
    """The descriptors at some addresses: kernel parameters, or maps that the kernel made."""
    environment = environment_of(machine)
    descriptors: list[tuple[TensorDescriptor | None, IntArray]] = []
    is_parameter = np.zeros(len(addresses), bool)
    for offset, descriptor in environment.descriptors.items():
        is_at_offset = np.isin(addresses - PARAMETER_WINDOW, (offset, offset - environment.first_parameter))
        if is_at_offset.any():
            descriptors.append((descriptor, addresses[is_at_offset]))
            is_parameter |= is_at_offset
    if not is_parameter.all():
        descriptors += read_maps(machine.memory, addresses[~is_parameter])
    return descriptors


def _count_copies(machine: Machine) -> None:
    """Count one copy for each warp whose guard holds."""
    index, is_issuing = machine.step.index, broadcast_mask(machine.active_mask, machine.shape)
    machine.counters.tensor_copies[index] += int(is_issuing[:, :: machine.warp_size].sum())
    machine.counters.undecided_copies[index] += machine.undecided_lanes is not None


def _build_bulk_copy(_statement: SassStatement) -> StepRun:
    def run(machine: Machine) -> None:
        _count_copies(machine)
        unknown_size = machine.unknown_value("the size of a bulk copy")
        machine.counters.mark_unknown(machine.step.index, unknown_size.missing_inputs)

    return run


COPIES: Mapping[str, RunBuilder] = {
    **dict.fromkeys(("UTMALDG", "UTMASTG", "UTMAREDG"), _build_tensor_copy),
    **dict.fromkeys(("UBLKCP", "UBLKRED"), _build_bulk_copy),
}
"""Opcode without modifiers → builder of its run."""
