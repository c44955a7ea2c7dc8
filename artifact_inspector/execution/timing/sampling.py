"""Simulates some CTAs of a launch as a sample: the average cost of each instruction for a CTA.

Most CTAs of a launch behave alike. The sampled ones are spread over the grid without aligning with the tile
order. Their average is used for rankings, never for counters.

**Source** M. Roberts, "The Unreasonable Effectiveness of Quasirandom Sequences" (2018): steps by powers of
the root of x⁴ = x + 1 cover every direction of the grid.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from artifact_inspector.execution.interpreter.counters import StepCounters
from artifact_inspector.execution.interpreter.footprints import SECTOR, AccessRecorder, FootprintAccess
from artifact_inspector.execution.interpreter.global_memory import TensorSpan
from artifact_inspector.execution.interpreter.intervals import sorted_distinct
from artifact_inspector.execution.interpreter.launch_log import LaunchLog
from artifact_inspector.execution.interpreter.tensor_maps import BOX_ROW_UNIT
from artifact_inspector.execution.interpreter.values import InputNames
from artifact_inspector.execution.kernel_loader import LoadedKernel
from artifact_inspector.execution.launch import KernelLaunch
from artifact_inspector.execution.simulation import (
    SimulatedLaunch,
    UnfinishedCtas,
    reclassify_unknown_pointers,
    run_machines,
    set_up_launch,
)

LINE = 128
"""Bytes of an L1 cache line."""
_WARP_LANES = 32
L2_PIECE = 256
"""Bytes whose atomics follow each other in the L2. Measured on an H200 (docs/lab/diagnosis.md)."""
_WIDEST_ACCESS = 16
"""Bytes that a thread accesses by the widest instruction."""
EQUAL_WORK = 0.9
"""Fewest accesses of a CTA over the most, from which CTAs work alike."""
_UNEQUAL_CTAS = 64
"""CTAs of a sample that work unequally."""
_QUASIRANDOM_ROOT = 1.2207440846057596
_STEPS = tuple(_QUASIRANDOM_ROOT**-power for power in (1, 2, 3))


def choose_ctas(grid: tuple[int, int, int], cta_limit: int) -> NDArray[np.int64]:
    """Linear numbers of CTAs that are spread over a grid; all CTAs if there are at most `cta_limit`.

    Example:
        >>> choose_ctas((2, 2, 1), 8).tolist()
        [0, 1, 2, 3]
    """
    x, y, z = grid
    total = x * y * z
    if total <= cta_limit:
        return np.arange(total, dtype=np.int64)
    chosen_ctas: dict[int, None] = {}
    sample_number = 0
    while len(chosen_ctas) < cta_limit:
        sample_number += 1
        coordinates = [
            int((0.5 + sample_number * step) % 1 * extent) for step, extent in zip(_STEPS, grid, strict=True)
        ]
        chosen_ctas[coordinates[0] + x * (coordinates[1] + y * coordinates[2])] = None
    return np.array(sorted(chosen_ctas), np.int64)


class _AccessPattern(NamedTuple):
    """The cost of an access pattern: the offsets between the lanes of a CTA."""

    sectors: int
    """Total over requests."""
    lines: int
    contiguous_ranges: int
    sector_offsets: NDArray[np.int64]
    """Distinct sectors, relative to that of the first lane."""
    lanes: int
    distinct_addresses: int
    run_starts: frozenset[int]
    """As of `GlobalTraffic.run_starts`."""


@dataclass(frozen=True, slots=True)
class GlobalTraffic(AccessRecorder):
    """Global memory costs of the sampled CTAs, per step."""

    regions: tuple[TensorSpan, ...]
    requested_lines: dict[int, int] = field(default_factory=dict)
    """Step → 128-byte lines that warps request, totalled over requests."""
    new_sectors: dict[int, int] = field(default_factory=dict)
    """Step → sectors that their CTA had not read (or written) before."""
    requested_sectors: dict[int, int] = field(default_factory=dict)
    """Step → sectors, totalled over requests."""
    accesses: dict[int, int] = field(default_factory=dict)
    """Step → accesses of a CTA, by all its warps at once."""
    missing_accesses: dict[int, int] = field(default_factory=dict)
    """Step → those with a sector that their CTA had not read (or written) before."""
    completed_sectors: dict[int, int] = field(default_factory=dict)
    """Step → sectors of stores that directly follow a store to the same ones, with which the L1 may merge them."""
    accesses_of_cta: Counter[int] = field(default_factory=Counter)
    """CTA → its accesses."""
    contiguous_ranges: dict[int, int] = field(default_factory=dict)
    """Step → contiguous memory ranges that the warps of a CTA touch together."""
    sectors_read: dict[str, int] = field(default_factory=dict)
    """Tensor → sectors that the CTAs read, distinct within each CTA."""
    sectors_written: dict[str, int] = field(default_factory=dict)
    tensor_of_step: dict[int, str] = field(default_factory=dict)
    """Step → the tensor that it reads or writes."""
    active_lanes: dict[int, int] = field(default_factory=dict)
    """Step → lanes that access memory, totalled over accesses of a CTA."""
    distinct_addresses: dict[int, int] = field(default_factory=dict)
    """Step → distinct lane addresses, counted separately for each access of a CTA."""
    first_addresses: dict[int, dict[tuple[int, int], int]] = field(default_factory=dict)
    """Step → (CTA, address of its first active lane) → accesses; empty unless `tracks_addresses`."""
    run_starts: dict[int, set[int]] = field(default_factory=dict)
    """Step → distances of neighbouring lanes up to 16 bytes; and of each lane that is farther from the one before, 16 +
    its offset from the first lane modulo 16. Empty unless `tracks_addresses`."""
    tracks_addresses: bool = False
    lane_steps: frozenset[int] = frozenset()
    """Steps whose lanes are recorded in `lane_addresses`: atomics, and loads of what swaps expect."""
    lane_addresses: dict[int, list[NDArray[np.int64]]] = field(default_factory=dict)
    """Step → addresses of all active lanes and the numbers of their warps, per access."""
    _touched_sectors: dict[tuple[str, int, bool], NDArray[np.bool_]] = field(default_factory=dict)
    _first_positions: dict[str, NDArray[np.int32]] = field(default_factory=dict)
    """Tensor → scratch array: the position of the first touch of each sector."""
    _patterns: dict[tuple[bytes, bytes, int], _AccessPattern] = field(default_factory=dict)
    _last_store: list[NDArray[np.int64]] = field(default_factory=list)
    """The sector of each lane in the last store."""

    def count_atomic_operations(self, steps: Iterable[int], per_conflict: float, size: int) -> tuple[float, float]:
        """Operations of the L2 one after the other: on the bytes that most atomics use, and if they were even.

        The lanes of a warp on one sector are one operation, and those on one address follow each other.

        Args:
            steps: the atomics.
            per_conflict: operations of a sector for each further lane on one address; other sectors proceed.
            size: bytes of their tensor.
        """
        addresses, warps = np.concatenate([array for step in steps for array in self.lane_addresses[step]], axis=1)
        order = np.lexsort((addresses, warps))
        addresses, warps = addresses[order], warps[order]
        first_lanes = np.flatnonzero(_starts_group(addresses, warps))
        lanes, sectors = np.diff(np.r_[first_lanes, len(order)]), addresses[first_lanes] // SECTOR
        first_addresses = np.flatnonzero(_starts_group(sectors, warps[first_lanes]))
        most_lanes = np.maximum.reduceat(lanes, first_addresses)
        names, numbers = np.unique(sectors[first_addresses], return_inverse=True)
        of_sector = np.bincount(numbers, weights=1 + per_conflict * (most_lanes - 1))
        of_piece = np.bincount(
            np.unique(names * SECTOR // L2_PIECE, return_inverse=True)[1][numbers], weights=most_lanes
        )
        pieces = max(1.0, size / L2_PIECE)  # four in a row share two slices
        even = max(of_piece.sum() / max(min(pieces, 2), pieces / 2), of_sector.sum() / max(1.0, size / SECTOR))
        return float(max(of_piece.max(), of_sector.max())), float(even)

    def count_lanes(self, steps: Iterable[int]) -> tuple[int, int, int, int]:
        """Lanes of some atomics: all, distinct addresses, those on the address that most use, and that address."""
        arrays = [array for step in steps for array in self.lane_addresses.get(step, ())]
        if not arrays:
            return 0, 0, 0, 0
        addresses, counts = np.unique(np.concatenate(arrays, axis=1)[0], return_counts=True)
        hottest = int(counts.argmax())
        return int(counts.sum()), len(addresses), int(counts[hottest]), int(addresses[hottest])

    def add_iterations(self, accesses: Sequence[FootprintAccess], rows: int) -> None:
        """Record the accesses of many loop iterations.

        Args:
            accesses: one per instruction; its rows are ordered by iteration, then by CTA.
            rows: CTAs of one iteration.
        """
        touches: dict[tuple[str, int, bool], list[SectorTouches]] = {}
        for access in (access for access in accesses if access.addresses.size):
            has_one_row = access.mask is None or (len(access.mask) == 1 and access.mask.any())
            is_plain_read = access.is_read and access.step not in self.lane_steps
            offset_of_row = access.cta_offsets if has_one_row and is_plain_read else None
            one_row = access.addresses, access.mask, np.arange(len(access.ctas))
            addresses, on, rows_on = _active_rows(access) if offset_of_row is None else one_row
            if not len(rows_on):
                continue
            base = _first_addresses(addresses, on)
            offsets = addresses - base[:, None]
            base = base if offset_of_row is None else base + offset_of_row
            completes = not access.is_read and self._repeats_sectors(addresses // SECTOR)
            if access.step in self.lane_steps:
                self._record_lanes(access.step, addresses, on)
            ctas, iterations, step = access.ctas[rows_on], access.rows_of_machine(rows_on) // rows, access.step
            self._count_accesses(step, ctas, iterations)
            for same_pattern in _group_equal_patterns(offsets, on, base % LINE):
                row = int(same_pattern[0]) if offset_of_row is None else 0
                mask = None if on is None else on[row]
                pattern = self._access_pattern(offsets[row], mask, int(base[same_pattern[0]]) % LINE)
                for counter, count in (
                    (self.requested_sectors, pattern.sectors), (self.requested_lines, pattern.lines),
                    (self.contiguous_ranges, pattern.contiguous_ranges),
                    (self.active_lanes, pattern.lanes), (self.distinct_addresses, pattern.distinct_addresses),
                    (self.completed_sectors, pattern.sectors if completes else 0),
                ):  # fmt: skip
                    counter[step] = counter.get(step, 0) + count * len(same_pattern)
                self.new_sectors.setdefault(step, 0)
                self.missing_accesses.setdefault(step, 0)
                if self.tracks_addresses:
                    self.run_starts.setdefault(step, set()).update(pattern.run_starts)
                    accesses_at = self.first_addresses.setdefault(step, {})
                    for key in zip(ctas[same_pattern].tolist(), base[same_pattern].tolist(), strict=True):
                        accesses_at[key] = accesses_at.get(key, 0) + 1
                for region in self.regions:
                    rows_inside = same_pattern[
                        (base[same_pattern] >= region.start) & (base[same_pattern] < region.stop)
                    ]
                    if rows_inside.size:
                        self.tensor_of_step.setdefault(step, region.name)
                    numbers = ctas[rows_inside]
                    distinct = dict.fromkeys(numbers.tolist())
                    for cta in distinct:
                        cta_rows = rows_inside[numbers == cta] if len(distinct) > 1 else rows_inside
                        sectors = base[cta_rows, None] // SECTOR + pattern.sector_offsets
                        touches.setdefault((region.name, cta, access.is_read), []).append(
                            SectorTouches(step, iterations[cta_rows], sectors)
                        )
        for (name, cta, reads), touched in touches.items():
            self._record_first_touches(name, cta, reads, touched)

    def _record_lanes(self, step: int, addresses: NDArray[np.int64], on: NDArray[np.bool_] | None) -> None:
        rows_of_step = self.lane_addresses.setdefault(step, [])
        # the number of an access of a warp: no two accesses share one
        first_warp = ((step << 20) + len(rows_of_step)) << 24
        warps = first_warp + np.arange(addresses.size).reshape(addresses.shape) // _WARP_LANES
        lanes = np.ones(addresses.shape, np.bool_) if on is None else on
        rows_of_step.append(np.stack([addresses[lanes], warps[lanes]]))

    def _count_accesses(self, step: int, ctas: NDArray[np.int64], iterations: NDArray[np.int64]) -> None:
        starts = _starts_group(ctas, iterations)  # warps that copy a box each take part in one access
        self.accesses[step] = self.accesses.get(step, 0) + int(np.count_nonzero(starts))
        self.accesses_of_cta.update(ctas[starts].tolist())

    def _repeats_sectors(self, lane_sectors: NDArray[np.int64]) -> bool:
        """Whether a store goes to the sectors of the store that precedes it."""
        is_repeated = any(np.array_equal(lane_sectors, last) for last in self._last_store)
        self._last_store[:] = [lane_sectors]
        return is_repeated

    def _record_first_touches(self, name: str, cta: int, reads: bool, touched: Sequence[SectorTouches]) -> None:
        """Record which sectors a CTA touches for the first time, and by which step."""
        region = next(region for region in self.regions if region.name == name)
        first = region.start // SECTOR
        size = (region.stop - 1) // SECTOR - first + 1
        is_touched = self._touched_sectors.get((name, cta, reads))
        if is_touched is None:
            is_touched = self._touched_sectors[name, cta, reads] = np.zeros(size, bool)
        totals = self.sectors_read if reads else self.sectors_written
        counts = touch_all(is_touched, touched, first)
        if counts is None:
            sectors, numbers, iterations = _in_touch_order(touched)
            sectors -= first
            is_new = (sectors >= 0) & (sectors < size)
            is_new[is_new] = ~is_touched[sectors[is_new]]
            sectors, numbers, iterations = sectors[is_new], numbers[is_new], iterations[is_new]
            first_positions = self._first_positions.setdefault(name, np.empty(size, np.int32))
            positions = np.arange(len(sectors), dtype=np.int32)
            first_positions[sectors[::-1]] = positions[::-1]  # the first position of each sector is written last
            is_first = first_positions[sectors] == positions
            numbers, iterations = numbers[is_first], iterations[is_first]
            is_touched[sectors] = True
            accesses = numbers[_starts_group(numbers, iterations)]  # sectors of one access follow each other
            counts = [np.bincount(of, minlength=len(touched)).tolist() for of in (numbers, accesses)]
        totals[name] = totals.get(name, 0) + sum(counts[0])
        for touches, count, missing in zip(touched, *counts, strict=True):
            self.new_sectors[touches.step] += count
            self.missing_accesses[touches.step] += missing

    def _access_pattern(
        self, offsets: NDArray[np.int64], mask: NDArray[np.bool_] | None, line_offset: int
    ) -> _AccessPattern:
        key = (offsets.tobytes(), b"" if mask is None else mask.tobytes(), line_offset)
        pattern = self._patterns.get(key)
        if pattern is None:
            warps = np.arange(len(offsets)) >> 5
            if mask is not None:
                offsets, warps = offsets[mask], warps[mask]
            positions = offsets + line_offset
            sectors = sorted_distinct(positions // SECTOR)
            distinct_offsets = sorted_distinct(offsets)
            pattern = self._patterns[key] = _AccessPattern(
                _count_distinct_by_warp(warps, positions // SECTOR),
                _count_distinct_by_warp(warps, positions // LINE),
                1 + int(np.count_nonzero(np.diff(sectors) != 1)),
                sectors - line_offset // SECTOR,
                len(offsets),
                len(distinct_offsets),
                _run_starts(distinct_offsets) if self.tracks_addresses else frozenset(),
            )
        return pattern


def _run_starts(offsets: NDArray[np.int64]) -> frozenset[int]:
    """The run starts of an access, from the sorted distinct offsets of its lanes."""
    gaps = np.diff(offsets, prepend=offsets[0] - 2 * _WIDEST_ACCESS)
    return frozenset(np.where(gaps > _WIDEST_ACCESS, _WIDEST_ACCESS + offsets % _WIDEST_ACCESS, gaps).tolist())


def _count_distinct_by_warp(warps: NDArray[np.int64], numbers: NDArray[np.int64]) -> int:
    """Distinct numbers of each warp, totalled."""
    low, high = int(numbers.min()), int(numbers.max())
    return len(sorted_distinct(warps * (high - low + 1) + (numbers - low)))


class SectorTouches(NamedTuple):
    """Sectors of a tensor that one instruction of a CTA touches in some iterations."""

    step: int
    iterations: NDArray[np.int64]
    sectors: NDArray[np.int64]
    """Shape (iterations, sectors of each)."""


def touch_all(is_touched: NDArray[np.bool_], touched: Sequence[SectorTouches], first: int) -> list[list[int]] | None:
    """Mark sectors as touched: how many are new, and accesses with a new one. None if only some are, or equal ones."""
    if any((touches.iterations[1:] <= touches.iterations[:-1]).any() for touches in touched):
        return None
    # neighbours one after the other, which are those of successive iterations if these are closer than a row is long
    rows = [row.T if abs(int(row[-1, 0] - row[0, 0])) < row.size else row for row in (x.sectors for x in touched)]
    sectors = np.concatenate([row.ravel() for row in rows]) - first
    low, high, is_one_row = int(sectors.min()), int(sectors.max()), len(touched) == len(touched[0].sectors) == 1
    if low < 0 or high >= len(is_touched) or (not is_one_row and high - low > 64 * len(sectors)):  # sparse
        return None
    new, span = len(sectors) - int(np.count_nonzero(is_touched[sectors])), is_touched[low : high + 1]
    if is_one_row:  # its sectors are distinct
        is_touched[sectors] = True
        return [[new], [int(new > 0)]]
    if new == len(sectors):
        before = np.count_nonzero(span)
        is_touched[sectors] = True
        if np.count_nonzero(span) == before + new:
            return [[touches.sectors.size for touches in touched], [len(touches.sectors) for touches in touched]]
        is_touched[sectors] = False
    return None if new else [[0] * len(touched)] * 2


def _in_touch_order(touched: Sequence[SectorTouches]) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Sectors in the order in which they are touched, iteration by iteration; and of each, its index and iteration."""
    numbers = [np.full(touches.sectors.shape, number) for number, touches in enumerate(touched)]
    if all(np.array_equal(touches.iterations, touched[0].iterations) for touches in touched):
        sectors = np.concatenate([touches.sectors for touches in touched], axis=1)
        iterations = np.repeat(touched[0].iterations, sectors.shape[1])
        return sectors.ravel(), np.concatenate(numbers, axis=1).ravel(), iterations
    iterations = np.concatenate([np.repeat(touches.iterations, touches.sectors.shape[1]) for touches in touched])
    order = np.argsort(iterations, kind="stable")
    sectors = np.concatenate([touches.sectors.ravel() for touches in touched])[order]
    return sectors, np.concatenate([x.ravel() for x in numbers])[order], iterations[order]


def _first_addresses(addresses: NDArray[np.int64], on: NDArray[np.bool_] | None) -> NDArray[np.int64]:
    """The address of the first active lane of each row."""
    if on is None:
        return addresses[:, 0]
    return np.take_along_axis(addresses, on.argmax(axis=1)[:, None], axis=1)[:, 0]


def _active_rows(access: FootprintAccess) -> tuple[NDArray[np.int64], NDArray[np.bool_] | None, NDArray[np.int64]]:
    """Addresses and masks of the CTAs that take part, and their indices."""
    shape = (len(access.ctas), access.addresses.shape[1])
    addresses = np.broadcast_to(access.addresses, shape)
    if access.cta_offsets is not None:
        addresses = addresses + access.cta_offsets[:, None]
    if access.mask is None:
        return addresses, None, np.arange(shape[0])
    row_masks = np.broadcast_to(access.mask, shape)
    rows = np.flatnonzero(row_masks.any(axis=1))
    return addresses[rows], row_masks[rows], rows


def _starts_group(*keys: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Whether each element differs from the one before in any key."""
    starts = np.ones(len(keys[0]), np.bool_)
    starts[1:] = np.any([key[1:] != key[:-1] for key in keys], axis=0)
    return starts


def _group_equal_patterns(
    offsets: NDArray[np.int64], mask: NDArray[np.bool_] | None, line_offsets: NDArray[np.int64]
) -> list[NDArray[np.int64]]:
    """Groups of rows whose lanes have the same offsets and the same position in their cache line.

    One row of offsets is that of all line offsets.
    """
    if (
        (line_offsets == line_offsets[0]).all()
        and (mask is None or (mask == mask[0]).all())
        and (offsets == offsets[0]).all()
    ):
        return [np.arange(len(line_offsets))]
    if len(offsets) == 1:
        return [np.flatnonzero(line_offsets == line_offset) for line_offset in dict.fromkeys(line_offsets.tolist())]
    groups: dict[Any, list[int]] = {}
    for row, line_offset in enumerate(line_offsets.tolist()):
        key = (line_offset, offsets[row].tobytes(), b"" if mask is None else mask[row].tobytes())
        groups.setdefault(key, []).append(row)
    return [np.array(rows) for rows in groups.values()]


@dataclass(frozen=True, slots=True)
class SampleResults:
    """What the simulation of some CTAs of a launch found; processes may pass it on."""

    launch: KernelLaunch
    ctas: NDArray[np.int64]
    counters: StepCounters
    traffic: GlobalTraffic
    trace: tuple[int, ...]
    """Steps that most warps of one CTA executed, in order."""
    unfinished: tuple[UnfinishedCtas, ...]
    input_names: InputNames


@dataclass(frozen=True, slots=True)
class LaunchSample(SampleResults):
    """The simulation of some CTAs of a launch."""

    loaded: LoadedKernel

    def results(self) -> SampleResults:
        """The sample without its kernel, and without what only further accesses need (a byte for each sector)."""
        traffic = replace(self.traffic, _touched_sectors={}, _first_positions={}, _patterns={}, _last_store=[])
        return SampleResults(**{**_results_of(self), "traffic": traffic})

    @property
    def accesses(self) -> NDArray[np.int64]:
        """Accesses to global memory of each sampled CTA, by all its warps at once."""
        return np.array([self.traffic.accesses_of_cta[cta] for cta in self.ctas.tolist()])

    def requested_bytes(self, sectors: Mapping[str, int]) -> dict[str, float]:
        """Tensor → bytes of it that the CTAs touch, each by itself, from the sectors of the sampled ones."""
        scale = SECTOR * self.launch.ctas / len(self.ctas)
        return {name: count * scale for name, count in sectors.items()}

    def distinct_bytes(self, sectors: Mapping[str, int]) -> dict[str, float]:
        """The same, but at most the bytes of the tensor."""
        sizes = {region.name: region.stop - region.start for region in self.traffic.regions}
        return {name: min(size, sizes.get(name, size)) for name, size in self.requested_bytes(sectors).items()}


def with_kernel(results: SampleResults, loaded: LoadedKernel) -> LaunchSample:
    """The sample with these results."""
    return LaunchSample(loaded=loaded, **_results_of(results))


def _results_of(sample: SampleResults) -> dict[str, Any]:
    return {result.name: getattr(sample, result.name) for result in fields(SampleResults)}


def sample_launch(
    loaded: LoadedKernel,
    launch: KernelLaunch,
    cta_limit: int = 4,
    limit: int = 20_000_000,
    *,
    ctas: NDArray[np.int64] | None = None,
    runs_in_parallel: bool = True,
    tracks_addresses: bool = False,
) -> LaunchSample:
    """Simulate some CTAs of a launch.

    Args:
        ctas: numbers of the CTAs; by default some that are spread over the grid.
        runs_in_parallel: whether loop iterations may run in parallel; the counters are the same.
        tracks_addresses: whether to record the first address of each access.

    Raises:
        UsageError: arguments are missing or wrong, or the grid is empty.
    """
    counters = StepCounters(len(loaded.program.steps), limit)
    setup = set_up_launch(loaded, launch, counters, runs_in_parallel=runs_in_parallel)
    steps, kinds = loaded.program.steps if tracks_addresses else (), ("global_atomic", "global_reduction")
    lane_steps = frozenset(step.index for step in steps if step.kind in kinds or step.starts_swap)
    traffic = GlobalTraffic(setup.memory.spans, tracks_addresses=tracks_addresses, lane_steps=lane_steps)
    setup.memory.tracks_touches = False
    setup.memory.footprints = traffic
    ctas = choose_ctas(launch.grid, cta_limit) if ctas is None else ctas
    log = LaunchLog(counters, is_exact=True)
    unfinished = run_machines(replace(setup, log=log).machine(ctas))
    reclassify_unknown_pointers(setup)
    trace = log.trace_of(int(ctas[len(ctas) // 2]))
    return LaunchSample(setup.launch, ctas, counters, traffic, trace, tuple(unfinished), setup.input_names, loaded)


def sample_simulated(run: SimulatedLaunch, ctas: NDArray[np.int64] | None, cta_limit: int = 4) -> LaunchSample | None:
    """The same from the simulation of all CTAs; None if its log is not complete."""
    if run.log is None or not run.log.is_complete:
        return None
    ctas = choose_ctas(run.launch.grid, cta_limit) if ctas is None else ctas
    traffic = GlobalTraffic(run.memory.spans)
    for accesses, rows in run.log.accesses_of(ctas):
        traffic.add_iterations(accesses, rows)
    trace, counters = run.log.trace_of(int(ctas[len(ctas) // 2])), run.log.counters_of(ctas)
    for step, lanes in traffic.active_lanes.items():  # only lanes of boxes are not threads
        threads, size = run.counters.active_threads[step], run.counters.bytes_requested[step]
        counters.bytes_requested[step] = lanes * (size // threads if threads else BOX_ROW_UNIT)
    return LaunchSample(run.launch, ctas, counters, traffic, trace, (), run.input_names, run.loaded)


def sample_evenly(
    loaded: LoadedKernel, launch: KernelLaunch, limit: int, *, tracks_addresses: bool = False
) -> LaunchSample:
    """A sample that averages more CTAs if they work unequally, as on ragged or sparse data.

    Its trace is that of a CTA which works as much as the average.
    """
    sample = sample_launch(loaded, launch, limit=limit, tracks_addresses=tracks_addresses)
    accesses = sample.accesses
    if sample.unfinished or accesses.min() >= max(1, EQUAL_WORK * accesses.max()):
        return sample
    sample = sample_launch(loaded, launch, _UNEQUAL_CTAS, limit, tracks_addresses=tracks_addresses)
    accesses = sample.accesses
    typical = sample.ctas[[np.abs(accesses - accesses.mean()).argmin()]]
    return replace(sample, trace=sample_launch(loaded, launch, limit=limit, ctas=typical).trace)
