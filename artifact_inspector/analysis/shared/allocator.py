"""Placement of shared-memory buffers by Triton: buffers that are never live together may overlap.

Source: AllocationAnalysis in Triton's lib/Analysis/Allocation.cpp (after Gergov, Algorithms for Compile-Time Memory
Optimization, SODA 1999), the same from 2.1 to 3.9 except for the order of the buffers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from artifact_inspector.analysis.flow.traversal import group_by_key


class BufferRequest(NamedTuple):
    """A buffer to be placed."""

    bytes: int
    alignment: int
    first: int
    """Time from which it is live."""
    stop: int
    """Time from which it is no longer live."""
    group: int | None = None
    """The warp-specialised operation that it is allocated in."""
    partition: int | None = None
    """The partition of that operation. Buffers of two partitions are live together whenever they are."""


class BufferPlacement(NamedTuple):
    """Offsets, in the order of the requests, and the total size in bytes."""

    offsets: tuple[int, ...]
    size: int


_END = 1 << 62


def place_buffers(requests: Sequence[BufferRequest], *, by_size: bool = True) -> BufferPlacement:
    """The placement of buffers, as computed by Triton.

    Args:
        by_size: the largest first, as in Triton from 3.3 on; else in the given order.
    """
    indices = range(len(requests))
    order = sorted(indices, key=lambda index: -requests[index].bytes) if by_size else list(indices)
    offsets = _initial_offsets(requests, order)
    rivals = _rivals(requests)
    while True:
        conflicts = _conflicts(requests, rivals, offsets)
        _move_conflicting(requests, order, offsets, conflicts)
        if not any(_conflicts(requests, rivals, offsets)):
            break
    size = max((offsets[i] + requests[i].bytes for i in order), default=0)
    return BufferPlacement(tuple(offsets), size)


def _initial_offsets(requests: Sequence[BufferRequest], order: list[int]) -> list[int]:
    """Initial offsets: each slot (offset, from, to) takes the first buffer that meets no other slot."""
    offsets = [0] * len(requests)
    slots = [(0, 0, _END)]
    waiting = list(order)
    while waiting and slots:
        lowest = min(range(len(slots)), key=lambda index: slots[index][0])
        offset, first, stop = slots.pop(lowest)
        matching = (
            i
            for i in waiting
            if _overlap(requests[i], first, stop) and not any(_overlap(requests[i], f, s) for _, f, s in slots)
        )
        request_index = next(matching, None)
        if request_index is None:
            continue
        waiting.remove(request_index)
        request = requests[request_index]
        offsets[request_index] = _align(offset, request.alignment)
        slots.append((offsets[request_index] + request.bytes, max(first, request.first), min(stop, request.stop)))
        if first < request.first:
            slots.append((offset, first, request.stop))
        if request.stop < stop:
            slots.append((offset, request.first, stop))
    return offsets


def _rivals(requests: Sequence[BufferRequest]) -> list[list[int]]:
    """For each buffer, those that may share no byte with it: live at once, or of other partitions."""
    rivals: list[list[int]] = [[] for _ in requests]
    live: list[int] = []
    for i in sorted(range(len(requests)), key=lambda index: requests[index].first):
        live = [j for j in live if requests[j].stop > requests[i].first]
        for j in live:
            if _overlap(requests[i], requests[j].first, requests[j].stop):
                rivals[i].append(j)
                rivals[j].append(i)
        live.append(i)
    for members in group_by_key((x.group, i) for i, x in enumerate(requests) if x.group is not None).values():
        for i in members:
            rivals[i] += [
                j
                for j in members
                if requests[j].partition != requests[i].partition
                and not _overlap(requests[i], requests[j].first, requests[j].stop)
            ]
    return rivals


def _conflicts(requests: Sequence[BufferRequest], rivals: list[list[int]], offsets: list[int]) -> list[list[int]]:
    """For each buffer, the rivals that overlap it in memory."""
    ends = [offset + request.bytes for offset, request in zip(offsets, requests, strict=True)]
    return [[j for j in others if offsets[j] < ends[i] and offsets[i] < ends[j]] for i, others in enumerate(rivals)]


def _move_conflicting(
    requests: Sequence[BufferRequest], order: list[int], offsets: list[int], conflicts: list[list[int]]
) -> None:
    """Colour the buffers so that no two in conflict share a colour, and move all but the first colour."""
    colors = dict.fromkeys(order, -1)
    colors.update(dict.fromkeys(order[:1], 0))
    for i in order:
        used_colors = {colors[j] for j in conflicts[i]}
        colors[i] = next(color for color in range(len(order)) if color not in used_colors)
    for i in order:
        if colors[i]:
            past = max((offsets[j] + requests[j].bytes for j in conflicts[i]), default=0)
            offsets[i] = _align(past, requests[i].alignment)


def _overlap(request: BufferRequest, first: int, stop: int) -> bool:
    return request.first < stop and first < request.stop


def _align(offset: int, alignment: int) -> int:
    return -(-offset // alignment) * alignment
