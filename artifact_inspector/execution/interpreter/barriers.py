"""Waiting of lane groups: at convergence barriers of a warp, at barriers of a CTA."""

from __future__ import annotations

import numpy as np

from artifact_inspector.execution.interpreter.machine import Machine
from artifact_inspector.execution.interpreter.state import LaneGroup
from artifact_inspector.execution.interpreter.values import (
    IntArray,
    Mask,
    broadcast_mask,
    has_lanes,
    invert_mask,
    widen_to_warps,
)


def join_barrier(machine: Machine, barrier: str) -> None:
    """Add the lanes of the group to a convergence barrier."""
    mask = machine.group.mask
    warps = widen_to_warps(mask, machine.warp_size)
    machine.barriers[barrier] = mask is True or (mask & warps) | (
        invert_mask(warps) & machine.barriers.get(barrier, False)
    )


def leave_barrier(machine: Machine, barrier: str) -> None:
    """Remove the lanes of the group from a convergence barrier."""
    old = machine.barriers.get(barrier, False)
    machine.barriers[barrier] = old is not False and invert_mask(machine.group.mask) & old
    _release_waiting(machine, barrier)


def wait_at_barrier(machine: Machine, barrier: str) -> bool:
    """Block the group until all lanes of its warps that take part in the barrier have arrived."""
    group, participants = machine.group, machine.barriers.get(barrier, True)
    if participants is group.mask or (machine.count_lanes(participants) == group.lanes and not machine.waiting):
        return False
    _block(machine, group, barrier)
    _release_waiting(machine, barrier)
    return True


def _block(machine: Machine, group: LaneGroup, barrier: str) -> None:
    machine.groups.remove(group)
    group.barrier = barrier
    machine.waiting.append(group)


def arrive_at_cta_barrier(machine: Machine, barrier: str, count: int | None, *, waits: bool = True) -> bool:
    """Block the group at a CTA barrier until enough threads have arrived.

    Args:
        barrier: name of the barrier.
        count: threads that it needs; None means all that have not exited.
        waits: False for a group that arrives without waiting.
    """
    group = machine.group
    if group.mask is True:
        return False
    arrived_threads = machine.early_arrivals.get(barrier, np.zeros(1, np.int64))
    if waits:
        _block(machine, group, barrier)
    else:
        arrived_threads = machine.early_arrivals[barrier] = arrived_threads + _threads_by_cta(machine, group.mask)
    waiting_groups = [waiting for waiting in machine.waiting if waiting.barrier == barrier]
    waiting_threads = sum((_threads_by_cta(machine, waiting.mask) for waiting in waiting_groups), np.zeros(1, np.int64))
    needed = machine.threads - _threads_by_cta(machine, machine.exited) if count is None else np.array([count])
    is_released = (waiting_threads + arrived_threads >= needed) & (waiting_threads > 0)
    if is_released.any():
        machine.early_arrivals[barrier] = np.where(is_released, 0, arrived_threads)
        machine.waiting = [waiting for waiting in machine.waiting if waiting.barrier != barrier]
        for waiting in waiting_groups:
            if is_released.all():
                machine.groups.append(waiting)
                continue
            for groups, ctas in ((machine.groups, is_released), (machine.waiting, ~is_released)):
                mask = waiting.mask & ctas[:, None]
                groups += [LaneGroup(waiting.pc, mask, machine, barrier)] if mask.any() else []
    return True


def _threads_by_cta(machine: Machine, mask: Mask) -> IntArray:
    """Threads in a mask per CTA; one number if all CTAs have the same."""
    rows = len(mask) if isinstance(mask, np.ndarray) else 1
    threads: IntArray = broadcast_mask(mask, (rows, machine.threads)).sum(axis=1)
    return threads


def _release_waiting(machine: Machine, barrier: str) -> None:
    for pc in {group.pc for group in machine.waiting if group.barrier == barrier}:
        waiting_groups = [group for group in machine.waiting if group.barrier == barrier and group.pc == pc]
        arrived: Mask = False
        for group in waiting_groups:
            arrived = group.mask | arrived
        missing = machine.barriers.get(barrier, True) & invert_mask(arrived) & invert_mask(machine.exited)
        rows = len(missing) if isinstance(missing, np.ndarray) else 1
        missing = broadcast_mask(missing, (rows, machine.threads))
        ready = arrived & invert_mask(widen_to_warps(missing, machine.warp_size))
        if not has_lanes(ready):
            continue
        machine.waiting = [group for group in machine.waiting if group not in waiting_groups]
        merged_group = LaneGroup(pc, ready, machine)
        machine.groups.append(merged_group)
        part_count = sum(machine.count_warps(group.mask & ready) for group in waiting_groups)
        machine.counters.reconverged_parts[pc] += part_count - merged_group.warps
        still_waiting = arrived & invert_mask(ready)
        if has_lanes(still_waiting):
            machine.waiting.append(LaneGroup(pc, still_waiting, machine, barrier))
