"""Races between CTAs: two access one byte, and at least one writes without an atomic.

CTAs of a launch have no order. Only atomics and fences can order them; where a kernel uses these, a race is undecided.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from artifact_inspector.execution.interpreter.global_memory import TensorMemory
from artifact_inspector.execution.interpreter.intervals import sorted_distinct
from artifact_inspector.execution.simulation import SimulatedLaunch
from artifact_inspector.memory_checks.access_log import AccessKind, AccessLog, TensorIntervals
from artifact_inspector.memory_checks.coverage import written_bytes
from artifact_inspector.memory_checks.problems import Check, MemoryProblem, site_of

_BLOCK = 1 << 20
"""Granules that are compared at a time."""


def find_suspects(run: SimulatedLaunch, log: AccessLog) -> list[str]:
    """Tensors in which a race is not ruled out by the marks of the first run.

    If plain stores write as many bytes as they mark, no byte is written twice. If no element is both read and
    written, no CTA reads what another one writes.
    """
    names = []
    for region in run.memory.tensors:
        stored = log.stored_bytes.get(region.name, 0)
        is_updated = region.name in log.updated_tensors
        if not stored and not is_updated:
            continue
        if (stored and stored != written_bytes(region)) or _has_common_granule(region):
            names.append(region.name)
    return names


def _has_common_granule(region: TensorMemory) -> bool:
    """Whether an element is both read and written."""
    region.mark_pending()
    read, written = region.read_marks, region.written_marks
    starts = range(0, len(read), _BLOCK)
    return any(bool((read[at : at + _BLOCK] & written[at : at + _BLOCK]).any()) for at in starts)


class _Accesses(NamedTuple):
    """Intervals of one kind; those of one CTA are disjoint."""

    starts: NDArray[np.int64]
    stops: NDArray[np.int64]
    ctas: NDArray[np.int64]
    steps: NDArray[np.int64]


class _Conflict(NamedTuple):
    """Two accesses to one byte."""

    address: int
    kinds: tuple[AccessKind, AccessKind]
    ctas: tuple[int, int]
    steps: tuple[int, int]
    bytes: int
    """Bytes with a conflict of this kind."""


def find_races(run: SimulatedLaunch, log: AccessLog) -> list[MemoryProblem]:
    """One error for each tensor and kind of race."""
    return [
        _describe(run, name, conflict)
        for name, intervals in log.intervals.items()
        for conflict in _find_conflicts(intervals)
    ]


def synchronizing_opcode(run: SimulatedLaunch) -> str | None:
    """An executed instruction that may order CTAs: an atomic that returns a value, or a load that acquires."""
    for step in run.loaded.program.steps:
        if not run.counters.warps_executed[step.index]:
            continue
        is_returning = step.opcode.startswith("ATOM") and not step.opcode.startswith("ATOMS")
        is_amd_returning = step.kind == "global_atomic" and any(f" {word}" in step.text for word in ("sc0", "glc"))
        is_acquiring = step.opcode.startswith("LD") and ".STRONG" in step.opcode and "GPU" in step.opcode
        if is_returning or is_amd_returning or is_acquiring:
            return step.opcode
    return None


def _accesses_of(intervals: TensorIntervals, kind: AccessKind) -> _Accesses:
    """The intervals of a kind, merged per CTA."""
    chosen = [at for at, value in enumerate(intervals.kinds) if value is kind]
    if not chosen:
        empty = np.empty(0, np.int64)
        return _Accesses(empty, empty, empty, empty)
    starts = np.concatenate([intervals.starts[at] for at in chosen])
    stops = np.concatenate([intervals.stops[at] for at in chosen])
    ctas = np.concatenate([intervals.ctas[at] for at in chosen])
    steps = np.concatenate([np.full(len(intervals.starts[at]), intervals.steps[at]) for at in chosen])
    order = np.lexsort((starts, ctas))
    starts, stops, ctas, steps = starts[order], stops[order], ctas[order], steps[order]
    # a running maximum per CTA: shift each CTA's numbers beyond those of the CTAs in front of it
    base, span = int(starts.min()), int(stops.max() - starts.min()) + 1
    ranks = np.cumsum(np.concatenate([[0], (ctas[1:] != ctas[:-1]).astype(np.int64)]))
    shifted_starts, shifted_stops = starts - base + ranks * span, stops - base + ranks * span
    reach = np.maximum.accumulate(shifted_stops)
    is_first = np.concatenate([[True], shifted_starts[1:] > reach[:-1]])
    first = np.flatnonzero(is_first)
    ends = reach[np.append(first[1:], len(starts)) - 1] - ranks[first] * span + base
    return _Accesses(starts[first], ends, ctas[first], steps[first])


def _find_conflicts(intervals: TensorIntervals) -> list[_Conflict]:
    """The first conflict of each pair of kinds: write and write, write and read, write and atomic, atomic and read."""
    read, write, atomic = AccessKind
    by_kind = {kind: _accesses_of(intervals, kind) for kind in AccessKind}
    points = sorted_distinct(np.concatenate([ends for rows in by_kind.values() for ends in (rows.starts, rows.stops)]))
    counts, owners = {}, {}
    for kind, rows in by_kind.items():
        counts[kind] = _sum_over(points, rows, np.ones(len(rows.starts), np.int64))
        owners[kind] = _sum_over(points, rows, rows.ctas)
    conflicts = []
    lengths = np.append(np.diff(points), 0)
    for first, second in ((write, write), (write, read), (write, atomic), (atomic, read)):
        is_conflict = counts[first] > 1
        if first is not second:
            is_same_cta = (counts[first] == 1) & (counts[second] == 1) & (owners[first] == owners[second])
            is_conflict = (counts[first] > 0) & (counts[second] > 0) & ~is_same_cta
        if is_conflict.any():
            address = int(points[is_conflict.argmax()])
            pair = _pick_pair(by_kind[first], by_kind[second], address)
            if pair is not None:
                (cta, step), (other_cta, other_step) = pair
                total = int(lengths[is_conflict].sum())
                conflicts.append(_Conflict(address, (first, second), (cta, other_cta), (step, other_step), total))
    return conflicts


def _sum_over(points: NDArray[np.int64], rows: _Accesses, weights: NDArray[np.int64]) -> NDArray[np.int64]:
    """At each point, the sum of the weights of the intervals that contain it."""
    changes = np.zeros(len(points) + 1, np.int64)
    np.add.at(changes, np.searchsorted(points, rows.starts), weights)
    np.add.at(changes, np.searchsorted(points, rows.stops), -weights)
    totals: NDArray[np.int64] = np.cumsum(changes)[:-1]
    return totals


def _pick_pair(first: _Accesses, second: _Accesses, address: int) -> tuple[tuple[int, int], tuple[int, int]] | None:
    rows = [np.flatnonzero((group.starts <= address) & (address < group.stops)) for group in (first, second)]
    for at in rows[0].tolist():
        others = rows[1][second.ctas[rows[1]] != first.ctas[at]]
        if len(others):
            other = int(others[0])
            return ((int(first.ctas[at]), int(first.steps[at])), (int(second.ctas[other]), int(second.steps[other])))
    return None


def _describe(run: SimulatedLaunch, name: str, conflict: _Conflict) -> MemoryProblem:
    steps = run.loaded.program.steps
    region = run.memory.region_of(conflict.address)
    element = 0 if region is None else (conflict.address - region.start) * 8 // region.tensor.bits
    site, other_site = (site_of(steps[at]) for at in conflict.steps)
    first, second = conflict.kinds
    if first is second:
        action = f"CTAs {conflict.ctas[0]} and {conflict.ctas[1]} write the same bytes of {name}"
        suggestion = "Give each CTA its own elements, or use tl.atomic_add where results are to be added."
    else:
        action = f"CTA {conflict.ctas[0]} {first.value} bytes of {name} that CTA {conflict.ctas[1]} {second.value}"
        suggestion = "CTAs have no order: use an atomic, or a second kernel for the reads."
    return MemoryProblem(
        check=Check.RACE,
        message=f"{action}, first at element {element:,} ({conflict.bytes:,} bytes in all)",
        site=site,
        tensor=name,
        cta=conflict.ctas[0],
        address=conflict.address,
        other_site=other_site,
        other_cta=conflict.ctas[1],
        suggestion=suggestion,
    )
