"""Global and shared memory accesses of a machine's lanes, and their counters, for any instruction set."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from artifact_inspector.execution.interpreter.asked import (
    Lanes,
    are_alike,
    first_alike,
    lanes_of,
    without_repeats,
)
from artifact_inspector.execution.interpreter.banks import count_access
from artifact_inspector.execution.interpreter.counters import WarpAccess
from artifact_inspector.execution.interpreter.footprints import SECTOR, Access
from artifact_inspector.execution.interpreter.lanes import (
    FULL,
    Mask,
    Unknown,
    Value,
    bits_unknown,
    data_of,
)
from artifact_inspector.execution.interpreter.memory import lies_oddly, outside
from artifact_inspector.execution.interpreter.patterns import recall
from artifact_inspector.execution.interpreter.wavefronts import (
    LINE,
    count_atomics,
    count_copied,
    count_copied_past,
    count_sectors,
    count_wavefronts,
)

if TYPE_CHECKING:
    from artifact_inspector.execution.interpreter.machine import Machine


def _by_warp(machine: Machine, lanes: Lanes) -> tuple[NDArray[np.int64], NDArray[np.bool_] | None]:
    warp = machine.program.warp
    mask = None if lanes.mask is None else lanes.mask.reshape(-1, warp)
    return lanes.addresses.reshape(-1, warp), mask


def access_global(
    machine: Machine,
    address: Value,
    size: int,
    *,
    reads: bool,
    writes: bool,
    updates: bool = False,
    mask: Mask | None = None,
    served: tuple[int, int] | None = None,
) -> Lanes | None:
    """Count an access to global memory and record the bytes that it touches.

    Args:
        machine: the machine; its active lanes access.
        address: 64-bit address of each lane.
        size: bytes per lane.
        reads: whether it reads.
        writes: whether it writes.
        updates: whether it is an atomic.
        mask: lanes that take part; None means the active lanes.
        served: (lanes per request, bytes per request unit); None means a warp and a sector.

    Returns:
        The lanes that access memory; None if there are none or an address is unknown.
    """
    lanes = lanes_of(machine, address, mask, together=True)
    if lanes is None:
        return None
    memory, index = machine.memory, machine.step.index
    if lanes.starts is not None and not memory.touch_alike(
        lanes.active, lanes.starts, size, reads=reads, writes=writes, updates=updates
    ):
        lanes = lanes.each
    row, piece = served or (machine.program.warp, machine.program.line)
    for counted in lanes.alike(piece):
        _count_sectors(machine, without_repeats(counted, piece), size, piece, row)
    if memory.footprints is not None:
        memory.footprints.add(
            Access(index, lanes.of(machine.ctas), lanes.addresses, lanes.mask, reads, starts=lanes.starts)
        )
    if lanes.starts is None:
        misses = memory.touch(lanes.active, size, reads=reads, writes=writes, updates=updates)
        if misses.size:
            _note_outside(machine, lanes, misses, "read" if reads and not writes else "write")
    return lanes


def past_l1_served(machine: Machine, into: Value) -> tuple[int, int]:
    """(Lanes, bytes) by which the sectors of a copy that bypasses L1 are counted, from its target address.

    Two neighbouring lanes that fill one sector of shared memory request one sector for each 128-byte line
    that they read from, wherever they start in it. Other lanes are counted in requests of eight lanes. This
    matches 256 address patterns on an H200.
    """
    near = lanes_of(machine, into)
    if near is None:
        return 8, SECTOR
    pairs = near.addresses.reshape(-1, 2) // SECTOR
    apart = pairs[:, 0] != pairs[:, 1]
    if near.mask is not None:
        apart &= near.mask.reshape(-1, 2).all(axis=1)
    return (8, SECTOR) if apart.any() else (2, LINE)


def _count_sectors(machine: Machine, counted: Lanes, size: int, piece: int, row: int) -> None:
    """Count the sectors that lanes request; cache lines on AMD."""
    counts, index, sector = machine.counts, machine.step.index, machine.program.line
    addresses, on = _by_warp(machine, counted)
    requests, asked = addresses.reshape(-1, row), None if on is None else on.reshape(-1, row)
    if sector > SECTOR and lies_oddly(addresses, size):  # they may end in the next line
        requests = np.concatenate([requests, requests + (size - 1)], axis=1)
        asked = None if asked is None else np.concatenate([asked, asked], axis=1)
    found = count_sectors(requests, asked, piece) * max(size // piece, 1)
    if on is None:
        full = -(-machine.program.warp * size // sector) * len(addresses)
        active = counted.addresses.size
    else:
        each = on.sum(axis=1)
        full, active = int((-(-each * size // sector)).sum()), int(each.sum())
    counts.sectors[index] += found * counted.repeat
    counts.sectors_ideal[index] += min(full, found) * counted.repeat
    counts.bytes[index] += active * size * counted.repeat
    counts.active[index] += active * counted.repeat


def _note_outside(machine: Machine, lanes: Lanes, misses: NDArray[Any], kind: str) -> None:
    counts = machine.counts
    seen = sum(1 for found in counts.outside if found.index == machine.step.index)
    told = misses[: max(3 - seen, 0)]
    if told.size:
        at = told if lanes.mask is None else np.flatnonzero(lanes.mask)[told]
        rows, threads = np.divmod(at, lanes.addresses.shape[1])
        ctas, places = machine.ctas[rows], np.arange(len(at))
        counts.outside += outside(
            machine.memory, machine.step.index, kind, places, ctas, threads, lanes.addresses.ravel()[at]
        )
    index = machine.step.index
    counts.more_outside[index] = counts.more_outside.get(index, 0) + len(misses) * lanes.repeat


def load_global(machine: Machine, lanes: Lanes | None, size: int, words: int) -> Sequence[Value]:
    """The words at the accessed addresses, if the values of the tensor were given."""
    if lanes is None:
        why = machine.counts.why.get(machine.step.index, 0)
        return [Unknown(0, FULL, why)] * words
    found: list[Value] = []
    each = min(size, 4)
    first = lanes.addresses if lanes.starts is None else lanes.addresses + lanes.starts[0]
    name = machine.memory.not_given(first)
    if name is not None:
        return [machine.unknown(name)] * words
    lanes = lanes.each
    active = lanes.active
    for word in range(words):
        data, name = machine.memory.load(active + 4 * word, each)
        if data is None:
            return [machine.unknown(name)] * words
        if lanes.mask is None:
            found.append(data.reshape(lanes.addresses.shape))
        else:
            values = np.zeros(lanes.addresses.shape, np.int64)
            values[lanes.mask] = data
            found.append(values)
    return found


def keep_global(machine: Machine, lanes: Lanes, size: int, value: Value) -> None:
    """Store values to memory whose content is tracked; None stores unknown bytes."""
    addresses, mask = _per_cta(machine, lanes)
    if value is None or np.any(np.broadcast_to(bits_unknown(value), machine.shape)[mask]):
        machine.memory.keep(addresses[mask], size, None)
        return
    held = np.broadcast_to(np.asarray(data_of(value), np.int64), machine.shape)
    machine.memory.keep(addresses[mask], size, held[mask])


# ── Shared memory ────────────────────────────────────────────────────────────────────────────────


def access_shared(
    machine: Machine,
    address: Value,
    size: int,
    mask: Mask | None = None,
    served: int | None = None,
    *,
    loads: bool = False,
) -> Lanes | None:
    """Count an access to shared memory.

    Args:
        machine: the machine; its active lanes access.
        address: of each lane.
        size: bytes per lane.
        mask: lanes that take part; None means the active lanes.
        served: lanes that are served together, if the opcode fixes it.
        loads: whether it is a load, whose lanes may share words.
    """
    whole = lanes_of(machine, address, mask, together=True)
    if whole is None:
        return None
    row = served or machine.program.warp
    for lanes in _requests(machine, whole):
        addresses = lanes.addresses.reshape(-1, row)
        on = None if lanes.mask is None else lanes.mask.reshape(-1, row)
        counted = recall(count_wavefronts, addresses, size, on, within=_LINE, loads=loads)
        _add_wavefronts(machine, counted, lanes.repeat)
        if _loses_most(machine, lanes, counted):
            _keep(machine, lanes, lambda held, cta, warp: WarpAccess(held, size, cta, warp, row, loads))
    return whole


def access_atomic(machine: Machine, address: Value, size: int, operands: int) -> Lanes | None:
    """Count atomics on shared memory, which are serialized.

    Args:
        machine: the machine; its active lanes access.
        address: of each lane.
        size: bytes per lane.
        operands: operands per lane.
    """
    whole = lanes_of(machine, address)
    if whole is None:
        return None
    for lanes in _requests(machine, whole):
        addresses, on = _by_warp(machine, lanes)
        counted = recall(count_atomics, addresses, size, on, operands, within=_LINE)
        _add_wavefronts(machine, counted, lanes.repeat)
        if _loses_most(machine, lanes, counted):
            _keep(
                machine, lanes, lambda held, cta, warp: WarpAccess(held, size, cta, warp, operands=operands)
            )
    return whole


def _requests(machine: Machine, whole: Lanes) -> list[Lanes]:
    """Split an access of several iterations into one per iteration; one for all if they cost the same."""
    if whole.starts is not None:
        return whole.alike(_LINE)
    lanes, trips = without_repeats(whole, _LINE), machine.trips
    if trips == 1 or len(lanes.addresses) == 1:
        return [lanes]
    addresses = np.split(lanes.addresses, trips)
    masks = [None] * trips if lanes.mask is None else np.split(lanes.mask, trips)
    return [Lanes(own, on, lanes.repeat) for own, on in zip(addresses, masks, strict=True)]


def access_copied(
    machine: Machine, address: Value, size: int, origin: Lanes | None, *, past_l1: bool
) -> Lanes | None:
    """Count the shared memory writes of an asynchronous copy.

    Args:
        machine: the machine; its active lanes access.
        address: shared memory address of each lane.
        size: bytes per lane.
        origin: the lanes that read global memory; the others write zeros.
        past_l1: whether the copy bypasses L1.
    """
    whole = lanes_of(machine, address, together=True)
    if whole is None:
        return None
    if origin is not None and origin.starts is not None and _is_one_row(whole):
        place = np.zeros(machine.rows, np.int64) if whole.starts is None else whole.starts
        starts = np.stack([origin.starts, origin.of(place)])
        for at, times in first_alike(starts, _LINE):
            own = Lanes(whole.addresses + starts[1, at], whole.mask, times)
            part = Lanes(origin.addresses + starts[0, at], origin.mask, times)
            _count_copied(machine, own, size, part, past_l1, times)
        if origin.among is not None:  # the others write zeros
            for own in Lanes(whole.addresses, whole.mask, 1, place[~origin.among]).alike(_LINE):
                _count_copied(machine, own, size, None, past_l1, own.repeat)
        return whole
    whole, origin = whole.each, None if origin is None else origin.each
    rows = max(len(whole.addresses), 1 if origin is None else len(origin.addresses))
    _count_copied(machine, whole, size, origin, past_l1, machine.rows // rows)
    return whole


def _is_one_row(lanes: Lanes) -> bool:
    """Whether all CTAs access one row of addresses, plus an offset per CTA."""
    return lanes.among is None and len(lanes.addresses) == 1


def _count_copied(
    machine: Machine, whole: Lanes, size: int, origin: Lanes | None, past_l1: bool, repeat: int
) -> None:
    rows = max(len(whole.addresses), 1 if origin is None else len(origin.addresses))
    shape = (rows, machine.threads)
    origins = np.full(shape, -1, np.int64)
    if origin is not None:
        origins[:] = origin.addresses
        if origin.mask is not None:
            origins[~np.broadcast_to(origin.mask, shape)] = -1
    warp = machine.program.warp
    grouped = origins.reshape(rows, -1, warp)
    least = np.where(grouped < 0, np.iinfo(np.int64).max, grouped).min(axis=2, keepdims=True) & -_LINE
    origins = np.where(grouped < 0, -1, grouped - least).reshape(rows, -1)
    addresses = np.broadcast_to(whole.addresses, shape)
    mask = np.ones(shape, bool) if whole.mask is None else np.broadcast_to(whole.mask, shape)
    if rows > 1 and (origins == origins[:1]).all() and are_alike(addresses, mask, _LINE):
        addresses, mask, origins, repeat = addresses[:1], mask[:1], origins[:1], machine.rows
    count = count_copied_past if past_l1 else count_copied
    on, of = mask.reshape(-1, warp), origins.reshape(-1, warp)
    counted = recall(count, addresses.reshape(-1, warp), size, on, of, within=_LINE)
    _add_wavefronts(machine, counted, repeat)


_LINE = 128
"""Bytes of an L1 cache line."""


def _add_wavefronts(machine: Machine, counted: tuple[int, int], repeat: int) -> None:
    counts, index = machine.counts, machine.step.index
    counts.wavefronts[index] += counted[0] * repeat
    counts.wavefronts_ideal[index] += counted[1] * repeat


def _loses_most(machine: Machine, lanes: Lanes, counted: tuple[int, int]) -> bool:
    """Whether it is the first access of the instruction, or has more conflicts per lane than earlier ones."""
    lost, index = (counted[0] - counted[1]) / lanes.addresses.size, machine.step.index
    if lost <= machine.counts.lost.get(index, -1):
        return False
    machine.counts.lost[index] = lost
    return True


def _keep(
    machine: Machine, lanes: Lanes, make: Callable[[tuple[int | None, ...], int, int], WarpAccess]
) -> None:
    """Keep the warp with the most bank conflicts among the first warps of an access."""
    addresses, on = _by_warp(machine, lanes)
    per_cta = machine.threads // machine.program.warp
    active = range(len(addresses)) if on is None else np.flatnonzero(on.any(axis=1)).tolist()
    most = -1
    for row in active[:_LOOKED_AT]:
        mask = [True] * machine.program.warp if on is None else on[row].tolist()
        held = tuple(
            at if takes_part else None for at, takes_part in zip(addresses[row].tolist(), mask, strict=True)
        )
        access = make(held, int(machine.ctas[row // per_cta]), row % per_cta)
        found, ideal = count_access(access)
        if found - ideal > most:
            most, machine.counts.shared[machine.step.index] = found - ideal, access


_LOOKED_AT = 32
"""Warps of an access that are searched for the one with the most conflicts."""


def _per_cta(machine: Machine, lanes: Lanes) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    lanes = lanes.each
    addresses = np.broadcast_to(lanes.addresses, machine.shape)
    mask = np.ones(machine.shape, bool) if lanes.mask is None else np.broadcast_to(lanes.mask, machine.shape)
    return addresses, mask


_OF_SHARED = 8
"""A shared memory word costs as much simulation time as this many registers."""


def load_shared(machine: Machine, lanes: Lanes | None, size: int, words: int) -> Sequence[Value]:
    """The words that shared memory holds, where known."""
    nothing = not_in_shared(machine)
    if lanes is None or machine.shared.data is None:
        return [nothing] * words
    addresses, mask = _by_cta(lanes, ())
    found: list[Value] = []
    for word in range(words):
        held = machine.shared.load(addresses + 4 * word, min(size, 4), mask)
        if held is None:
            found.append(nothing)
            continue
        data, known = held
        missing = mask & ~known
        found.append(Unknown(data, np.where(missing, FULL, 0), nothing.why) if missing.any() else data)
    _count_arrays(machine, words)
    return found


def not_in_shared(machine: Machine) -> Unknown:
    """The value of unknown shared memory: any unknown value stored there may be its cause."""
    why = machine.shared.why
    return Unknown(0, FULL, why) if why else machine.unknown("uninitialized shared memory")


def lose_shared(machine: Machine, why: int, start: int | None = None) -> None:
    """Mark shared memory as unknown from a byte offset on."""
    machine.shared.forget(start)
    machine.shared.why |= why


def store_shared(machine: Machine, lanes: Lanes | None, size: int, values: Sequence[Value]) -> None:
    """Store values to shared memory; unknown values make its bytes unknown."""
    shared = machine.shared
    if machine.maybe is not None:  # lanes that may or may not store
        lose_shared(machine, machine.maybe.why)
    if lanes is None:  # the address is unknown: it may be anywhere
        if why := machine.counts.why.get(machine.step.index):
            lose_shared(machine, why)
        return
    for value in values:
        if isinstance(value, Unknown):
            shared.why |= value.why
    wholly = [isinstance(value, Unknown) and not isinstance(value.bad, np.ndarray) for value in values]
    if shared.data is None and all(wholly):
        return
    held = [(np.asarray(data_of(value), np.int64), np.asarray(bits_unknown(value)) != 0) for value in values]
    addresses, mask = _by_cta(lanes, [part for pair in held for part in pair])
    for word, (data, bad) in enumerate(held):
        at, each = addresses + 4 * word, min(size, 4)
        shared.store(at, each, np.broadcast_to(data, mask.shape), mask & ~bad)
        shared.store(at, each, None, mask & bad)
    _count_arrays(machine, len(values))


def _by_cta(lanes: Lanes, values: Sequence[NDArray[Any]]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Addresses and mask with a row per CTA, or one row if CTAs differ neither in addresses nor in values."""
    lanes = lanes.each
    on = np.ones((1, 1), bool) if lanes.mask is None else lanes.mask
    shape = np.broadcast_shapes(lanes.addresses.shape, on.shape, *(value.shape for value in values))
    return np.broadcast_to(lanes.addresses, shape), np.broadcast_to(on, shape)


def _count_arrays(machine: Machine, words: int) -> None:
    if machine.shared.data is not None and len(machine.shared.data) > 1:
        machine.counts.arrays += _OF_SHARED * words
