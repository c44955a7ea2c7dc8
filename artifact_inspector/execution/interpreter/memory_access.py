"""Global and shared memory accesses of a machine's lanes, and their counters, for any instruction set."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from artifact_inspector.execution.interpreter.banks import count_warp_wavefronts
from artifact_inspector.execution.interpreter.cost_cache import cached_cost
from artifact_inspector.execution.interpreter.counters import WarpAccess
from artifact_inspector.execution.interpreter.footprints import SECTOR, FootprintAccess
from artifact_inspector.execution.interpreter.global_memory import is_misaligned, out_of_bounds_accesses
from artifact_inspector.execution.interpreter.lane_accesses import (
    LaneAccesses,
    find_lane_accesses,
    find_offset_classes,
    have_equal_rows,
    merge_equal_rows,
)
from artifact_inspector.execution.interpreter.observation import GlobalAccess, SharedMemoryAccess
from artifact_inspector.execution.interpreter.values import FULL, Mask, UnknownValue, Value, data_of, unknown_bits_of
from artifact_inspector.execution.interpreter.wavefronts import (
    LINE,
    count_atomics,
    count_copy_wavefronts,
    count_l1_bypass_wavefronts,
    count_sectors,
    count_wavefronts,
)

if TYPE_CHECKING:
    from artifact_inspector.execution.interpreter.machine import Machine


def _addresses_by_warp(machine: Machine, lanes: LaneAccesses) -> tuple[NDArray[np.int64], NDArray[np.bool_] | None]:
    warp = machine.program.warp_size
    mask = None if lanes.mask is None else lanes.mask.reshape(-1, warp)
    return lanes.addresses.reshape(-1, warp), mask


def count_global_access(
    machine: Machine,
    address: Value,
    size: int,
    *,
    reads: bool,
    writes: bool,
    updates: bool = False,
    mask: Mask | None = None,
    request_unit: tuple[int, int] | None = None,
) -> LaneAccesses | None:
    """Count an access to global memory and record the bytes that it touches.

    Args:
        machine: the machine; its active lanes access.
        address: 64-bit address of each lane.
        size: bytes per lane.
        reads: whether it reads.
        writes: whether it writes.
        updates: whether it is an atomic.
        mask: lanes that take part; None means the active lanes.
        request_unit: (lanes per request, bytes per request unit); None means a warp and a sector.

    Returns:
        The lanes that access memory; None if there are none or an address is unknown.
    """
    lanes = find_lane_accesses(machine, address, mask, allows_offsets=True)
    if lanes is None:
        return None
    memory, index = machine.memory, machine.step.index
    if lanes.cta_offsets is not None and not memory.touch_offsets(
        lanes.active_addresses, lanes.cta_offsets, size, reads=reads, writes=writes, updates=updates
    ):
        lanes = lanes.expanded
    request_lanes, unit_bytes = request_unit or (machine.program.warp_size, machine.program.request_bytes)
    for unit_lanes in lanes.representatives(unit_bytes) if machine.counters.counts_requests else ():
        _count_sectors(machine, merge_equal_rows(unit_lanes, unit_bytes), size, unit_bytes, request_lanes)
    if memory.footprints is not None:
        memory.footprints.add(
            FootprintAccess(
                index,
                lanes.participating(machine.ctas),
                lanes.addresses,
                lanes.mask,
                reads,
                cta_offsets=lanes.cta_offsets,
            )
        )
    if memory.observer is not None:
        memory.observer.observe_global(
            GlobalAccess(
                machine.step,
                lanes.participating(machine.ctas),
                lanes.addresses,
                lanes.mask,
                lanes.cta_offsets,
                size,
                writes,
            )
        )
    if lanes.cta_offsets is None:
        out_of_bounds = memory.touch(lanes.active_addresses, size, reads=reads, writes=writes, updates=updates)
        if out_of_bounds.size:
            _record_out_of_bounds(machine, lanes, out_of_bounds, "read" if reads and not writes else "write")
    return lanes


def l1_bypass_request_unit(machine: Machine, target: Value) -> tuple[int, int]:
    """(Lanes, bytes) by which the sectors of a copy that bypasses L1 are counted, from its target address.

    Two neighbouring lanes that fill one sector of shared memory request one sector for each 128-byte line
    that they read from, wherever they start in it. Other lanes are counted in requests of eight lanes. This
    matches 256 address patterns on an H200.
    """
    target_lanes = find_lane_accesses(machine, target) if machine.counters.counts_requests else None
    if target_lanes is None:
        return 8, SECTOR
    sector_pairs = target_lanes.addresses.reshape(-1, 2) // SECTOR
    crosses_sector = sector_pairs[:, 0] != sector_pairs[:, 1]
    if target_lanes.mask is not None:
        crosses_sector &= target_lanes.mask.reshape(-1, 2).all(axis=1)
    return (8, SECTOR) if crosses_sector.any() else (2, LINE)


def _count_sectors(machine: Machine, lanes: LaneAccesses, size: int, unit_bytes: int, request_lanes: int) -> None:
    """Count the sectors that lanes request; cache lines on AMD."""
    counts, index, line_bytes = machine.counters, machine.step.index, machine.program.request_bytes
    addresses, mask = _addresses_by_warp(machine, lanes)
    requests, request_mask = (
        addresses.reshape(-1, request_lanes),
        None if mask is None else mask.reshape(-1, request_lanes),
    )
    if line_bytes > SECTOR and is_misaligned(addresses, size):  # they may end in the next line
        requests = np.concatenate([requests, requests + (size - 1)], axis=1)
        request_mask = None if request_mask is None else np.concatenate([request_mask, request_mask], axis=1)
    sectors = count_sectors(requests, request_mask, unit_bytes) * max(size // unit_bytes, 1)
    if mask is None:
        ideal_sectors = -(-machine.program.warp_size * size // line_bytes) * len(addresses)
        active_count = lanes.addresses.size
    else:
        active_lanes = mask.sum(axis=1)
        ideal_sectors, active_count = (int((-(-active_lanes * size // line_bytes)).sum()), int(active_lanes.sum()))
    counts.sectors[index] += sectors * lanes.multiplicity
    counts.sectors_ideal[index] += min(ideal_sectors, sectors) * lanes.multiplicity
    counts.bytes_requested[index] += active_count * size * lanes.multiplicity
    counts.active_threads[index] += active_count * lanes.multiplicity


def _record_out_of_bounds(machine: Machine, lanes: LaneAccesses, out_of_bounds: NDArray[Any], kind: str) -> None:
    counts = machine.counters
    recorded_count = sum(1 for recorded in counts.out_of_bounds if recorded.step_index == machine.step.index)
    reported = out_of_bounds[: max(3 - recorded_count, 0)]
    if reported.size:
        flat_lanes = reported if lanes.mask is None else np.flatnonzero(lanes.mask)[reported]
        rows, threads = np.divmod(flat_lanes, lanes.addresses.shape[1])
        ctas, positions = machine.ctas[rows], np.arange(len(flat_lanes))
        counts.out_of_bounds += out_of_bounds_accesses(
            machine.memory, machine.step.index, kind, positions, ctas, threads, lanes.addresses.ravel()[flat_lanes]
        )
    index = machine.step.index
    counts.out_of_bounds_lanes[index] = (
        counts.out_of_bounds_lanes.get(index, 0) + len(out_of_bounds) * lanes.multiplicity
    )


def load_global(machine: Machine, lanes: LaneAccesses | None, size: int, word_count: int) -> Sequence[Value]:
    """The words at the accessed addresses, if the values of the tensor were given."""
    if lanes is None:
        missing_inputs = machine.counters.missing_inputs.get(machine.step.index, 0)
        return [UnknownValue(0, FULL, missing_inputs)] * word_count
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


def store_global(machine: Machine, lanes: LaneAccesses, size: int, value: Value) -> None:
    """Store values to memory whose content is tracked; None stores unknown bytes."""
    addresses, mask = _broadcast_to_ctas(machine, lanes)
    if value is None or np.any(np.broadcast_to(unknown_bits_of(value), machine.shape)[mask]):
        machine.memory.store(addresses[mask], size, None)
        return
    data = np.broadcast_to(np.asarray(data_of(value), np.int64), machine.shape)
    machine.memory.store(addresses[mask], size, data[mask])


# ── Shared memory ────────────────────────────────────────────────────────────────────────────────


def count_shared_access(
    machine: Machine,
    address: Value,
    size: int,
    mask: Mask | None = None,
    lanes_per_group: int | None = None,
    *,
    is_load: bool = False,
) -> LaneAccesses | None:
    """Count an access to shared memory.

    Args:
        machine: the machine; its active lanes access.
        address: of each lane.
        size: bytes per lane.
        mask: lanes that take part; None means the active lanes.
        lanes_per_group: lanes that are served together, if the opcode fixes it.
        is_load: whether it is a load, whose lanes may share words.
    """
    access_lanes = find_lane_accesses(machine, address, mask, allows_offsets=True)
    if access_lanes is None or not machine.counters.counts_requests:
        return access_lanes
    group_lanes = lanes_per_group or machine.program.warp_size
    for lanes in _split_by_iteration(machine, access_lanes):
        addresses = lanes.addresses.reshape(-1, group_lanes)
        on = None if lanes.mask is None else lanes.mask.reshape(-1, group_lanes)
        cost = cached_cost(count_wavefronts, addresses, size, on, modulus=_LINE, loads=is_load)
        _add_wavefronts(machine, cost, lanes.multiplicity)
        if _has_most_conflicts(machine, lanes, cost):
            _keep_worst_warp(
                machine,
                lanes,
                lambda lane_addresses, cta, warp: WarpAccess(lane_addresses, size, cta, warp, group_lanes, is_load),
            )
    return access_lanes


def count_shared_atomic(machine: Machine, address: Value, size: int, operands: int) -> LaneAccesses | None:
    """Count atomics on shared memory, which are serialized.

    Args:
        machine: the machine; its active lanes access.
        address: of each lane.
        size: bytes per lane.
        operands: operands per lane.
    """
    access_lanes = find_lane_accesses(machine, address)
    if access_lanes is None:
        return None
    for lanes in _split_by_iteration(machine, access_lanes):
        addresses, on = _addresses_by_warp(machine, lanes)
        cost = cached_cost(count_atomics, addresses, size, on, operands, modulus=_LINE)
        _add_wavefronts(machine, cost, lanes.multiplicity)
        if _has_most_conflicts(machine, lanes, cost):
            _keep_worst_warp(
                machine,
                lanes,
                lambda lane_addresses, cta, warp: WarpAccess(lane_addresses, size, cta, warp, operands=operands),
            )
    return access_lanes


def _split_by_iteration(machine: Machine, access_lanes: LaneAccesses) -> list[LaneAccesses]:
    """Split an access of several iterations into one per iteration; one for all if they cost the same."""
    if access_lanes.cta_offsets is not None:
        return access_lanes.representatives(_LINE)
    lanes, iterations = merge_equal_rows(access_lanes, _LINE), machine.iterations
    if iterations == 1 or len(lanes.addresses) == 1:
        return [lanes]
    addresses = np.split(lanes.addresses, iterations)
    masks = [None] * iterations if lanes.mask is None else np.split(lanes.mask, iterations)
    return [
        LaneAccesses(iteration_addresses, iteration_mask, lanes.multiplicity)
        for iteration_addresses, iteration_mask in zip(addresses, masks, strict=True)
    ]


def count_async_copy(
    machine: Machine, address: Value, size: int, source_lanes: LaneAccesses | None, *, past_l1: bool
) -> LaneAccesses | None:
    """Count the shared memory writes of an asynchronous copy.

    Args:
        machine: the machine; its active lanes access.
        address: shared memory address of each lane.
        size: bytes per lane.
        source_lanes: the lanes that read global memory; the others write zeros.
        past_l1: whether the copy bypasses L1.
    """
    target_lanes = find_lane_accesses(machine, address, allows_offsets=True)
    if target_lanes is None or not machine.counters.counts_requests:
        return target_lanes
    if source_lanes is not None and source_lanes.cta_offsets is not None and _is_one_row(target_lanes):
        offsets = np.zeros(machine.rows, np.int64) if target_lanes.cta_offsets is None else target_lanes.cta_offsets
        starts = np.stack([source_lanes.cta_offsets, source_lanes.participating(offsets)])
        for cta, multiplicity in find_offset_classes(starts, _LINE):
            representative = LaneAccesses(target_lanes.addresses + starts[1, cta], target_lanes.mask, multiplicity)
            source_representative = LaneAccesses(
                source_lanes.addresses + starts[0, cta], source_lanes.mask, multiplicity
            )
            _count_copy_wavefronts(machine, representative, size, source_representative, past_l1, multiplicity)
        if source_lanes.participating_ctas is not None:  # the others write zeros
            for representative in LaneAccesses(
                target_lanes.addresses, target_lanes.mask, 1, offsets[~source_lanes.participating_ctas]
            ).representatives(_LINE):
                _count_copy_wavefronts(machine, representative, size, None, past_l1, representative.multiplicity)
        return target_lanes
    target_lanes, source_lanes = (target_lanes.expanded, None if source_lanes is None else source_lanes.expanded)
    rows = max(len(target_lanes.addresses), 1 if source_lanes is None else len(source_lanes.addresses))
    _count_copy_wavefronts(machine, target_lanes, size, source_lanes, past_l1, machine.rows // rows)
    return target_lanes


def _is_one_row(lanes: LaneAccesses) -> bool:
    """Whether all CTAs access one row of addresses, plus an offset per CTA."""
    return lanes.participating_ctas is None and len(lanes.addresses) == 1


def _count_copy_wavefronts(
    machine: Machine,
    target_lanes: LaneAccesses,
    size: int,
    source_lanes: LaneAccesses | None,
    past_l1: bool,
    repeat: int,
) -> None:
    rows = max(len(target_lanes.addresses), 1 if source_lanes is None else len(source_lanes.addresses))
    shape = (rows, machine.threads)
    source_addresses = np.full(shape, -1, np.int64)
    if source_lanes is not None:
        source_addresses[:] = source_lanes.addresses
        if source_lanes.mask is not None:
            source_addresses[~np.broadcast_to(source_lanes.mask, shape)] = -1
    warp = machine.program.warp_size
    grouped = source_addresses.reshape(rows, -1, warp)
    lowest_lines = np.where(grouped < 0, np.iinfo(np.int64).max, grouped).min(axis=2, keepdims=True) & -_LINE
    source_addresses = np.where(grouped < 0, -1, grouped - lowest_lines).reshape(rows, -1)
    addresses = np.broadcast_to(target_lanes.addresses, shape)
    mask = np.ones(shape, bool) if target_lanes.mask is None else np.broadcast_to(target_lanes.mask, shape)
    if rows > 1 and (source_addresses == source_addresses[:1]).all() and have_equal_rows(addresses, mask, _LINE):
        addresses, mask, source_addresses, repeat = (addresses[:1], mask[:1], source_addresses[:1], machine.rows)
    count = count_l1_bypass_wavefronts if past_l1 else count_copy_wavefronts
    on, warp_sources = mask.reshape(-1, warp), source_addresses.reshape(-1, warp)
    counted = cached_cost(count, addresses.reshape(-1, warp), size, on, warp_sources, modulus=_LINE)
    _add_wavefronts(machine, counted, repeat)


_LINE = 128
"""Bytes of an L1 cache line."""


def _add_wavefronts(machine: Machine, cost: tuple[int, int], repeat: int) -> None:
    counts, index = machine.counters, machine.step.index
    counts.wavefronts[index] += cost[0] * repeat
    counts.wavefronts_ideal[index] += cost[1] * repeat


def _has_most_conflicts(machine: Machine, lanes: LaneAccesses, cost: tuple[int, int]) -> bool:
    """Whether it is the first access of the instruction, or has more conflicts per lane than earlier ones."""
    excess_per_lane, index = (cost[0] - cost[1]) / lanes.addresses.size, machine.step.index
    if excess_per_lane <= machine.counters.worst_conflict_rate.get(index, -1):
        return False
    machine.counters.worst_conflict_rate[index] = excess_per_lane
    return True


def _keep_worst_warp(
    machine: Machine, lanes: LaneAccesses, make_access: Callable[[tuple[int | None, ...], int, int], WarpAccess]
) -> None:
    """Keep the warp with the most bank conflicts among the first warps of an access."""
    addresses, on = _addresses_by_warp(machine, lanes)
    warps_per_cta = machine.threads // machine.program.warp_size
    active = range(len(addresses)) if on is None else np.flatnonzero(on.any(axis=1)).tolist()
    worst_excess = -1
    for row in active[:_MOST_WARPS_SEARCHED]:
        mask = [True] * machine.program.warp_size if on is None else on[row].tolist()
        lane_addresses = tuple(
            at if takes_part else None for at, takes_part in zip(addresses[row].tolist(), mask, strict=True)
        )
        access = make_access(lane_addresses, int(machine.ctas[row // warps_per_cta]), row % warps_per_cta)
        wavefronts, ideal = count_warp_wavefronts(access)
        if wavefronts - ideal > worst_excess:
            worst_excess, machine.counters.worst_shared_access[machine.step.index] = (wavefronts - ideal, access)


_MOST_WARPS_SEARCHED = 32
"""Warps of an access that are searched for the one with the most conflicts."""


def _broadcast_to_ctas(machine: Machine, lanes: LaneAccesses) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    lanes = lanes.expanded
    addresses = np.broadcast_to(lanes.addresses, machine.shape)
    mask = np.ones(machine.shape, bool) if lanes.mask is None else np.broadcast_to(lanes.mask, machine.shape)
    return addresses, mask


_SHARED_WORD_COST = 8
"""A shared memory word costs as much simulation time as this many registers."""


def load_shared(machine: Machine, lanes: LaneAccesses | None, size: int, word_count: int) -> Sequence[Value]:
    """The words that shared memory holds, where known."""
    if machine.memory.observer is not None and lanes is not None:
        addresses, mask, *_ = lanes.expanded
        machine.memory.observer.observe_shared(SharedMemoryAccess(machine.step, addresses, mask, size, False))
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
    if machine.memory.observer is not None and lanes is not None:
        addresses, mask, *_ = lanes.expanded
        machine.memory.observer.observe_shared(SharedMemoryAccess(machine.step, addresses, mask, size, True))
    shared = machine.shared_memory
    if machine.undecided_lanes is not None:  # lanes that may or may not store
        forget_shared(machine, machine.undecided_lanes.missing_inputs)
    if lanes is None:  # the address is unknown: it may be anywhere
        if missing_inputs := machine.counters.missing_inputs.get(machine.step.index):
            forget_shared(machine, missing_inputs)
        return
    for value in values:
        if isinstance(value, UnknownValue):
            shared.missing_inputs |= value.missing_inputs
    entirely_unknown = [
        isinstance(value, UnknownValue) and not isinstance(value.unknown_bits, np.ndarray) for value in values
    ]
    if shared.content is None and all(entirely_unknown):
        return
    data_and_unknown = [
        (np.asarray(data_of(value), np.int64), np.asarray(unknown_bits_of(value)) != 0) for value in values
    ]
    addresses, mask = _addresses_by_cta(lanes, [array for pair in data_and_unknown for array in pair])
    for word_index, (data, unknown_lanes) in enumerate(data_and_unknown):
        word_addresses, word_bytes = addresses + 4 * word_index, min(size, 4)
        shared.store(word_addresses, word_bytes, np.broadcast_to(data, mask.shape), mask & ~unknown_lanes)
        shared.store(word_addresses, word_bytes, None, mask & unknown_lanes)
    _count_array_words(machine, len(values))


def _addresses_by_cta(
    lanes: LaneAccesses, values: Sequence[NDArray[Any]]
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Addresses and mask with a row per CTA, or one row if CTAs differ neither in addresses nor in values."""
    lanes = lanes.expanded
    on = np.ones((1, 1), bool) if lanes.mask is None else lanes.mask
    shape = np.broadcast_shapes(lanes.addresses.shape, on.shape, *(value.shape for value in values))
    return np.broadcast_to(lanes.addresses, shape), np.broadcast_to(on, shape)


def _count_array_words(machine: Machine, word_count: int) -> None:
    if machine.shared_memory.content is not None and len(machine.shared_memory.content) > 1:
        machine.counters.arrays += _SHARED_WORD_COST * word_count
