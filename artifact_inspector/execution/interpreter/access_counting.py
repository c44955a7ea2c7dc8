"""Counts what accesses of a machine's lanes cost: sectors of global memory, wavefronts of shared memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from artifact_inspector.execution.interpreter.banks import count_warp_wavefronts
from artifact_inspector.execution.interpreter.counters import WarpAccess
from artifact_inspector.execution.interpreter.footprints import SECTOR, FootprintAccess
from artifact_inspector.execution.interpreter.global_memory import is_misaligned, out_of_bounds_accesses
from artifact_inspector.execution.interpreter.lane_accesses import (
    LaneAccesses,
    find_lane_accesses,
    find_lane_sets,
    find_offset_classes,
    have_equal_rows,
    merge_equal_rows,
)
from artifact_inspector.execution.interpreter.machine import Machine
from artifact_inspector.execution.interpreter.observation import GlobalAccess, SharedMemoryAccess
from artifact_inspector.execution.interpreter.values import BoolArray, IntArray, Mask, Value
from artifact_inspector.execution.interpreter.wavefronts import (
    LINE,
    count_atomics,
    count_copy_wavefronts,
    count_l1_bypass_wavefronts,
    count_sectors,
    count_wavefronts,
)

_MOST_CACHED_LANES = 1 << 11
"""Largest access, in lanes, that is cached; larger ones are rare."""
_MOST_CACHED_COSTS = 1 << 12

_cached_costs: dict[Any, tuple[int, int]] = {}


def _cached_cost(
    cost_function: Callable[..., tuple[int, int]],
    addresses: IntArray,
    size: int,
    *further_arguments: IntArray | BoolArray | int | None,
    modulus: int,
    **options: bool,
) -> tuple[int, int]:
    """The cached result of a cost function of an access's addresses.

    Loop iterations and CTAs repeat the same patterns. The function depends on addresses modulo `modulus` bytes and on
    their differences only.
    """
    if addresses.size > _MOST_CACHED_LANES:
        return cost_function(addresses, size, *further_arguments, **options)
    relative_addresses = addresses - (addresses.flat[0] & -modulus)
    key_arguments = tuple(
        argument.tobytes() if isinstance(argument, np.ndarray) else argument for argument in further_arguments
    )
    key = (cost_function, addresses.shape, relative_addresses.tobytes(), size, key_arguments, *options.values())
    cost = _cached_costs.get(key)
    if cost is None:
        if len(_cached_costs) >= _MOST_CACHED_COSTS:
            _cached_costs.clear()
        cost = _cached_costs[key] = cost_function(addresses, size, *further_arguments, **options)
    return cost


def _addresses_by_warp(machine: Machine, lanes: LaneAccesses) -> tuple[IntArray, BoolArray | None]:
    warp = machine.warp_size
    return lanes.addresses.reshape(-1, warp), None if lanes.mask is None else lanes.mask.reshape(-1, warp)


# ── Global memory ────────────────────────────────────────────────────────────────────────────────


def count_global_access(
    machine: Machine,
    address: Value,
    size: int,
    *,
    is_write: bool = False,
    updates: bool = False,
    mask: Mask | None = None,
    request_unit: tuple[int, int] | None = None,
) -> LaneAccesses | None:
    """Count an access to global memory and record the bytes that it touches.

    Args:
        machine: the machine; its active lanes access.
        address: 64-bit address of each lane.
        size: bytes per lane.
        is_write: whether it writes; otherwise it reads.
        mask: lanes that take part; None means the active lanes.
        request_unit: (lanes per request, bytes per request unit); None means a warp and a sector.

    Returns:
        The lanes that access memory; None if there are none or an address is unknown.
    """
    mask = machine.active_mask if mask is None else mask
    machine.record_skipped(mask)
    sets: Sequence[LaneAccesses | None] = find_lane_sets(machine, address, mask)
    sets = sets or [find_lane_accesses(machine, address, mask, allows_offsets=True)]
    for lanes in sets:
        if lanes is not None:
            request = request_unit or (machine.warp_size, machine.program.request_bytes)
            _count_lanes(machine, lanes, size, request, is_write=is_write, updates=updates)
    return sets[0]


def _count_lanes(
    machine: Machine, lanes: LaneAccesses, size: int, request: tuple[int, int], *, is_write: bool, updates: bool
) -> None:
    memory, step, (request_lanes, unit_bytes) = machine.memory, machine.step, request
    if lanes.cta_offsets is not None and not memory.touch_offsets(
        lanes.active_addresses, lanes.cta_offsets, size, is_write=is_write, updates=updates
    ):
        lanes = lanes.expanded
    for unit_lanes in lanes.representatives(unit_bytes) if machine.counters.counts_requests else ():
        _count_sectors(machine, merge_equal_rows(unit_lanes, unit_bytes), size, unit_bytes, request_lanes)
    ctas, addresses, active = lanes.participating(machine.ctas), lanes.addresses, lanes.mask
    if memory.footprints is not None:
        rows = None if lanes.participating_ctas is None else np.flatnonzero(lanes.participating_ctas)
        memory.record(FootprintAccess(step.index, ctas, addresses, active, not is_write, rows, lanes.cta_offsets))
    if memory.observer is not None:
        memory.observe(GlobalAccess(step, ctas, addresses, active, lanes.cta_offsets, size, is_write))
    if lanes.cta_offsets is None:
        outside = memory.touch(lanes.active_addresses, size, is_write=is_write, updates=updates)
        if outside.size:
            _record_out_of_bounds(machine, lanes, outside, "write" if is_write else "read")


def l1_bypass_request_unit(machine: Machine, target: Value) -> tuple[int, int]:
    """(Lanes, bytes) by which the sectors of a copy that bypasses L1 are counted, from its target address.

    Two neighbouring lanes that fill one sector of shared memory request one sector for each 128-byte line
    that they read from, wherever they start in it. Other lanes are counted in requests of eight lanes. This
    matches 256 address patterns on an H200.
    """
    if not machine.counters.counts_requests:
        return 8, SECTOR
    target_lanes = find_lane_accesses(machine, target, allows_offsets=True)
    for lanes in () if target_lanes is None else target_lanes.representatives(SECTOR):
        sector_pairs = lanes.addresses.reshape(-1, 2) // SECTOR
        crosses_sector = sector_pairs[:, 0] != sector_pairs[:, 1]
        if lanes.mask is not None:
            crosses_sector &= lanes.mask.reshape(-1, 2).all(axis=1)
        if crosses_sector.any():
            return 8, SECTOR
    return (8, SECTOR) if target_lanes is None else (2, LINE)


def _count_sectors(machine: Machine, lanes: LaneAccesses, size: int, unit_bytes: int, request_lanes: int) -> None:
    """Count the sectors that lanes request; cache lines on AMD."""
    counts, index, line_bytes = machine.counters, machine.step.index, machine.program.request_bytes
    addresses, mask = _addresses_by_warp(machine, lanes)
    requests = addresses.reshape(-1, request_lanes)
    request_mask = None if mask is None else mask.reshape(-1, request_lanes)
    if line_bytes > SECTOR and is_misaligned(addresses, size):  # they may end in the next line
        requests = np.concatenate([requests, requests + (size - 1)], axis=1)
        request_mask = None if request_mask is None else np.concatenate([request_mask, request_mask], axis=1)
    sectors = count_sectors(requests, request_mask, unit_bytes) * max(size // unit_bytes, 1)
    if mask is None:
        ideal_sectors = -(-machine.warp_size * size // line_bytes) * len(addresses)
        active_count = lanes.addresses.size
    else:
        active_lanes = mask.sum(axis=1)
        ideal_sectors, active_count = int((-(-active_lanes * size // line_bytes)).sum()), int(active_lanes.sum())
    counts.sectors[index] += sectors * lanes.multiplicity
    counts.sectors_ideal[index] += min(ideal_sectors, sectors) * lanes.multiplicity
    counts.bytes_requested[index] += active_count * size * lanes.multiplicity
    counts.active_threads[index] += active_count * lanes.multiplicity
    accessing = len(lanes.addresses) if lanes.mask is None else int(lanes.mask.any(axis=1).sum())
    counts.accessing_ctas[index] += accessing * lanes.multiplicity


def _record_out_of_bounds(machine: Machine, lanes: LaneAccesses, outside: IntArray, kind: str) -> None:
    counts, index = machine.counters, machine.step.index
    recorded_count = sum(1 for recorded in counts.out_of_bounds if recorded.step_index == index)
    reported = outside[: max(3 - recorded_count, 0)]
    if reported.size:
        flat_lanes = reported if lanes.mask is None else np.flatnonzero(lanes.mask)[reported]
        rows, threads = np.divmod(flat_lanes, lanes.addresses.shape[1])
        counts.out_of_bounds += out_of_bounds_accesses(
            machine.memory, index, kind, machine.ctas[rows], threads, lanes.addresses.ravel()[flat_lanes]
        )
    lane_count = len(outside) * lanes.multiplicity
    counts.out_of_bounds_lanes[index] = counts.out_of_bounds_lanes.get(index, 0) + lane_count


# ── Shared memory ────────────────────────────────────────────────────────────────────────────────


def observe_shared(machine: Machine, lanes: LaneAccesses | None, size: int) -> None:
    """Pass an access to shared memory on to the observer; one that copies there is a store."""
    observer = machine.memory.observer
    if lanes is None or observer is None or not observer.observes_shared:
        return
    addresses, mask, *_ = lanes.expanded
    is_store = not machine.step.kind.endswith("load")
    observer.observe_shared(SharedMemoryAccess(machine.step, machine.rows, addresses, mask, size, is_store))


def count_shared_access(
    machine: Machine,
    address: Value,
    size: int,
    mask: Mask | None = None,
    lanes_per_group: int | None = None,
    *,
    is_load: bool = False,
    operands: int = 0,
    lane_order: Sequence[int] | None = None,
) -> LaneAccesses | None:
    """Count an access to shared memory.

    Args:
        machine: the machine; its active lanes access.
        address: of each lane.
        size: bytes per lane.
        mask: lanes that take part; None means the active lanes.
        lanes_per_group: lanes that are served together, if the opcode fixes it.
        is_load: whether it is a load, whose lanes may share words.
        operands: operands per lane of an atomic, whose lanes are served one after the other.
        lane_order: order in which the lanes of a group are served; None for that of their numbers.
    """
    access_lanes = find_lane_accesses(machine, address, mask, allows_offsets=not operands)
    observe_shared(machine, access_lanes, size)
    if access_lanes is None or not machine.counters.counts_requests:
        return access_lanes
    group_lanes = lanes_per_group or machine.warp_size
    if size == 12:  # 96 bits take the passes of 128.
        size = 16
    for lanes in _split_by_iteration(machine, access_lanes):
        addresses = lanes.addresses.reshape(-1, group_lanes)
        on = None if lanes.mask is None else lanes.mask.reshape(-1, group_lanes)
        if lane_order is not None:
            addresses, on = addresses[:, lane_order], None if on is None else on[:, lane_order]
        if operands:
            cost = _cached_cost(count_atomics, addresses, size, on, operands, modulus=LINE)
        else:
            cost = _cached_cost(count_wavefronts, addresses, size, on, modulus=LINE, loads=is_load)
        _add_wavefronts(machine, cost, lanes.multiplicity)
        _keep_worst_warp(machine, lanes, cost, WarpAccess((), size, 0, 0, group_lanes, is_load, operands))
    return access_lanes


def _split_by_iteration(machine: Machine, access_lanes: LaneAccesses) -> list[LaneAccesses]:
    """Split an access of several iterations into one per iteration; one for all if they cost the same."""
    if access_lanes.cta_offsets is not None:
        return access_lanes.representatives(LINE)
    lanes, iterations = merge_equal_rows(access_lanes, LINE), machine.iterations
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
    observe_shared(machine, target_lanes, size)
    if target_lanes is None or not machine.counters.counts_requests:
        return target_lanes
    is_one_row = target_lanes.participating_ctas is None and len(target_lanes.addresses) == 1
    if source_lanes is not None and source_lanes.cta_offsets is not None and is_one_row:
        offsets = np.zeros(machine.rows, np.int64) if target_lanes.cta_offsets is None else target_lanes.cta_offsets
        starts = np.stack([source_lanes.cta_offsets, source_lanes.participating(offsets)])
        for cta, multiplicity in find_offset_classes(starts, LINE):
            representative, source_representative = (
                LaneAccesses(lanes.addresses + start[cta], lanes.mask, multiplicity)
                for lanes, start in ((target_lanes, starts[1]), (source_lanes, starts[0]))
            )
            _count_copy_wavefronts(machine, representative, size, source_representative, past_l1, multiplicity)
        if source_lanes.participating_ctas is not None:  # the others write zeros
            for representative in LaneAccesses(
                target_lanes.addresses, target_lanes.mask, 1, offsets[~source_lanes.participating_ctas]
            ).representatives(LINE):
                _count_copy_wavefronts(machine, representative, size, None, past_l1, representative.multiplicity)
        return target_lanes
    target_lanes, source_lanes = target_lanes.expanded, None if source_lanes is None else source_lanes.expanded
    rows = max(len(target_lanes.addresses), 1 if source_lanes is None else len(source_lanes.addresses))
    _count_copy_wavefronts(machine, target_lanes, size, source_lanes, past_l1, machine.rows // rows)
    return target_lanes


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
    warp = machine.warp_size
    grouped = source_addresses.reshape(rows, -1, warp)
    lowest_lines = np.where(grouped < 0, np.iinfo(np.int64).max, grouped).min(axis=2, keepdims=True) & -LINE
    source_addresses = np.where(grouped < 0, -1, grouped - lowest_lines).reshape(rows, -1)
    addresses = np.broadcast_to(target_lanes.addresses, shape)
    mask = np.ones(shape, bool) if target_lanes.mask is None else np.broadcast_to(target_lanes.mask, shape)
    if rows > 1 and (source_addresses == source_addresses[:1]).all() and have_equal_rows(addresses, mask, LINE):
        addresses, mask, source_addresses, repeat = addresses[:1], mask[:1], source_addresses[:1], machine.rows
    count = count_l1_bypass_wavefronts if past_l1 else count_copy_wavefronts
    on, warp_sources = mask.reshape(-1, warp), source_addresses.reshape(-1, warp)
    counted = _cached_cost(count, addresses.reshape(-1, warp), size, on, warp_sources, modulus=LINE)
    _add_wavefronts(machine, counted, repeat)


def _add_wavefronts(machine: Machine, cost: tuple[int, int], repeat: int) -> None:
    counts, index = machine.counters, machine.step.index
    counts.wavefronts[index] += cost[0] * repeat
    counts.wavefronts_ideal[index] += cost[1] * repeat


def _keep_worst_warp(machine: Machine, lanes: LaneAccesses, cost: tuple[int, int], access: WarpAccess) -> None:
    """Keep the warp with the most conflicts per lane; the cost is wavefronts, and those without conflicts."""
    excess_per_lane, counts, index = (cost[0] - cost[1]) / lanes.addresses.size, machine.counters, machine.step.index
    if excess_per_lane <= counts.worst_conflict_rate.get(index, -1):
        return
    counts.worst_conflict_rate[index] = excess_per_lane
    addresses, on = _addresses_by_warp(machine, lanes)
    warps_per_cta = machine.threads // machine.warp_size
    active = range(len(addresses)) if on is None else np.flatnonzero(on.any(axis=1)).tolist()
    worst_excess = -1
    for row in active[:_MOST_WARPS_SEARCHED]:
        mask = [True] * machine.warp_size if on is None else on[row].tolist()
        lane_addresses = tuple(
            at if takes_part else None for at, takes_part in zip(addresses[row].tolist(), mask, strict=True)
        )
        cta, warp = divmod(row, warps_per_cta)
        candidate = replace(access, addresses=lane_addresses, cta=int(machine.ctas[cta]), warp=warp)
        wavefronts, ideal = count_warp_wavefronts(candidate)
        if wavefronts - ideal > worst_excess:
            worst_excess, counts.worst_shared_access[index] = wavefronts - ideal, candidate


_MOST_WARPS_SEARCHED = 32
"""Warps of an access that are searched for the one with the most conflicts."""
