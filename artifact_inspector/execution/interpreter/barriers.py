"""Waiting of lane groups: at convergence barriers of a warp, at barriers of a CTA."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from artifact_inspector.execution.interpreter.machine import LaneGroup, Machine
from artifact_inspector.execution.interpreter.values import Mask, widen_to_warps


def join_barrier(machine: Machine, barrier: str) -> None:
    """Add the lanes of the group to a convergence barrier."""
    mask = machine.group.mask
    if mask is True:
        machine.barriers[barrier] = True
        return
    old = machine.barriers.get(barrier, False)
    warps = widen_to_warps(mask, machine.program.warp_size)
    machine.barriers[barrier] = (mask & warps) | (np.logical_not(warps) & old)


def leave_barrier(machine: Machine, barrier: str) -> None:
    """Remove the lanes of the group from a convergence barrier."""
    old = machine.barriers.get(barrier, False)
    machine.barriers[barrier] = np.logical_not(machine.group.mask) & old if old is not False else False
    _release_waiting(machine, barrier)


def wait_at_barrier(machine: Machine, barrier: str) -> bool:
    """Block the group until all lanes of its warps that take part in the barrier have arrived."""
    group, participants = machine.group, machine.barriers.get(barrier, True)
    if participants is group.mask or (machine.count_lanes(participants) == group.lanes and not machine.waiting):
        return False
    machine.groups.remove(group)
    machine.waiting.append((barrier, group))
    _release_waiting(machine, barrier)
    return True


def arrive_at_cta_barrier(machine: Machine, barrier: str, count: int | None, *, waits: bool = True) -> bool:
    """Block the group at a CTA barrier until enough threads have arrived.

    Args:
        machine: the machine.
        barrier: name of the barrier.
        count: threads that it needs; None means all that have not exited.
        waits: False for a group that arrives without waiting.
    """
    group = machine.group
    if group.mask is True:
        return False
    if waits:
        machine.groups.remove(group)
        machine.waiting.append((barrier, group))
    waiting_groups = [waiting_group for name, waiting_group in machine.waiting if name == barrier]
    waiting_threads = sum(_threads_by_cta(machine, waiting_group.mask) for waiting_group in waiting_groups)
    arrived_threads = machine.early_arrivals.get(barrier, 0)
    if not waits:
        machine.early_arrivals[barrier] = arrived_threads + _threads_by_cta(machine, group.mask)
        arrived_threads = machine.early_arrivals[barrier]
    exited_threads = _threads_by_cta(machine, machine.exited)
    is_released = (
        waiting_threads + arrived_threads >= (machine.threads - exited_threads if count is None else count)
    ) & (np.asarray(waiting_threads) > 0)
    if np.any(is_released):
        machine.early_arrivals[barrier] = np.where(is_released, 0, arrived_threads)
        machine.waiting = [(name, waiting_group) for name, waiting_group in machine.waiting if name != barrier]
        for waiting_group in waiting_groups:
            if np.all(is_released):
                machine.groups.append(waiting_group)
                continue
            released, blocked = (waiting_group.mask & is_released[:, None], waiting_group.mask & ~is_released[:, None])
            machine.groups += [LaneGroup(waiting_group.pc, released, machine)] if released.any() else []
            machine.waiting += [(barrier, LaneGroup(waiting_group.pc, blocked, machine))] if blocked.any() else []
    return True


def _threads_by_cta(machine: Machine, mask: Mask) -> NDArray[np.int64]:
    """Threads in a mask per CTA; one number if all CTAs have the same."""
    rows = len(mask) if isinstance(mask, np.ndarray) else 1
    counted: NDArray[np.int64] = np.broadcast_to(mask, (rows, machine.threads)).sum(axis=1)
    return counted


def _release_waiting(machine: Machine, barrier: str) -> None:
    for pc in {group.pc for name, group in machine.waiting if name == barrier}:
        waiting_groups = [group for name, group in machine.waiting if name == barrier and group.pc == pc]
        arrived: Mask = False
        for group in waiting_groups:
            arrived = group.mask | arrived
        participants = machine.barriers.get(barrier, True)
        missing = participants & np.logical_not(arrived) & np.logical_not(machine.exited)
        missing = np.broadcast_to(missing, (np.shape(missing)[0] if np.ndim(missing) else 1, machine.threads))
        ready = arrived & np.logical_not(widen_to_warps(missing, machine.program.warp_size))
        if not ready.any():
            continue
        machine.waiting = [waiting_entry for waiting_entry in machine.waiting if waiting_entry[1] not in waiting_groups]
        merged_group = LaneGroup(pc, ready, machine)
        machine.groups.append(merged_group)
        part_count = sum(machine.count_warps(group.mask & ready) for group in waiting_groups)
        machine.counters.reconverged_parts[pc] += part_count - merged_group.warps
        still_waiting = arrived & ~ready
        if still_waiting.any():
            machine.waiting.append((barrier, LaneGroup(pc, still_waiting, machine)))
