"""Waiting of lane groups: at convergence barriers of a warp, at barriers of a CTA."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from artifact_inspector.execution.interpreter.lanes import Mask, widen
from artifact_inspector.execution.interpreter.machine import Group, Machine


def begin(machine: Machine, barrier: str) -> None:
    """Add the lanes of the group to a convergence barrier."""
    mask = machine.group.mask
    if mask is True:
        machine.barriers[barrier] = True
        return
    old = machine.barriers.get(barrier, False)
    warps = widen(mask, machine.program.warp)
    machine.barriers[barrier] = (mask & warps) | (np.logical_not(warps) & old)


def leave(machine: Machine, barrier: str) -> None:
    """Remove the lanes of the group from a convergence barrier."""
    old = machine.barriers.get(barrier, False)
    machine.barriers[barrier] = np.logical_not(machine.group.mask) & old if old is not False else False
    _release(machine, barrier)


def wait(machine: Machine, barrier: str) -> bool:
    """Block the group until all lanes of its warps that take part in the barrier have arrived."""
    group, need = machine.group, machine.barriers.get(barrier, True)
    if need is group.mask or (machine.count_lanes(need) == group.lanes and not machine.waiting):
        return False
    machine.groups.remove(group)
    machine.waiting.append((barrier, group))
    _release(machine, barrier)
    return True


def meet(machine: Machine, barrier: str, count: int | None, *, waits: bool = True) -> bool:
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
    here = [held for name, held in machine.waiting if name == barrier]
    came = sum(_threads(machine, held.mask) for held in here)
    told = machine.arrivals.get(barrier, 0)
    if not waits:
        machine.arrivals[barrier] = told + _threads(machine, group.mask)
        told = machine.arrivals[barrier]
    ended = _threads(machine, machine.exited)
    ready = (came + told >= (machine.threads - ended if count is None else count)) & (np.asarray(came) > 0)
    if np.any(ready):
        machine.arrivals[barrier] = np.where(ready, 0, told)
        machine.waiting = [(name, held) for name, held in machine.waiting if name != barrier]
        for held in here:
            if np.all(ready):
                machine.groups.append(held)
                continue
            goes, stays = held.mask & ready[:, None], held.mask & ~ready[:, None]
            machine.groups += [Group(held.pc, goes, machine)] if goes.any() else []
            machine.waiting += [(barrier, Group(held.pc, stays, machine))] if stays.any() else []
    return True


def _threads(machine: Machine, mask: Mask) -> NDArray[np.int64]:
    """Threads in a mask per CTA; one number if all CTAs have the same."""
    rows = len(mask) if isinstance(mask, np.ndarray) else 1
    counted: NDArray[np.int64] = np.broadcast_to(mask, (rows, machine.threads)).sum(axis=1)
    return counted


def _release(machine: Machine, barrier: str) -> None:
    for pc in {group.pc for name, group in machine.waiting if name == barrier}:
        here = [group for name, group in machine.waiting if name == barrier and group.pc == pc]
        arrived: Mask = False
        for group in here:
            arrived = group.mask | arrived
        need = machine.barriers.get(barrier, True)
        missing = need & np.logical_not(arrived) & np.logical_not(machine.exited)
        missing = np.broadcast_to(missing, (np.shape(missing)[0] if np.ndim(missing) else 1, machine.threads))
        ready = arrived & np.logical_not(widen(missing, machine.program.warp))
        if not ready.any():
            continue
        machine.waiting = [held for held in machine.waiting if held[1] not in here]
        joined = Group(pc, ready, machine)
        machine.groups.append(joined)
        parts = sum(machine.count_warps(group.mask & ready) for group in here)
        machine.counts.rejoined[pc] += parts - joined.warps
        left = arrived & ~ready
        if left.any():
            machine.waiting.append((barrier, Group(pc, left, machine)))
