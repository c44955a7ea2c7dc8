"""Simulates some CTAs of a launch as a sample: the average cost of each instruction for a CTA.

Most CTAs of a launch behave alike. The sampled ones are spread over the grid without aligning with the tile
order. Their average is used for rankings, never for counters.

**Source** M. Roberts, "The Unreasonable Effectiveness of Quasirandom Sequences" (2018): steps by powers of
the root of x⁴ = x + 1 cover every direction of the grid.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from artifact_inspector.execution.interpreter.counters import Counts
from artifact_inspector.execution.interpreter.footprints import SECTOR, Access
from artifact_inspector.execution.interpreter.lanes import Names
from artifact_inspector.execution.interpreter.memory import Memory, Region
from artifact_inspector.execution.interpreter.runs import each_once
from artifact_inspector.execution.launch import Launch
from artifact_inspector.execution.loading import Loaded
from artifact_inspector.execution.running import Ended, begin, excuse_strangers, run_all

LINE = 128
"""Bytes of an L1 cache line."""
_ROOT = 1.2207440846057596
_STEPS = tuple(_ROOT**-power for power in (1, 2, 3))


def choose_ctas(grid: tuple[int, int, int], most: int) -> NDArray[np.int64]:
    """Linear numbers of CTAs that are spread over a grid; all CTAs if there are at most `most`.

    Example:
        >>> choose_ctas((2, 2, 1), 8).tolist()
        [0, 1, 2, 3]
    """
    x, y, z = grid
    total = x * y * z
    if total <= most:
        return np.arange(total, dtype=np.int64)
    found: dict[int, None] = {}
    turn = 0
    while len(found) < most:
        turn += 1
        places = [int((0.5 + turn * step) % 1 * extent) for step, extent in zip(_STEPS, grid, strict=True)]
        found[places[0] + x * (places[1] + y * places[2])] = None
    return np.array(sorted(found), np.int64)


class _Pattern(NamedTuple):
    """The cost of an access pattern: the offsets between the lanes of a CTA."""

    sectors: int
    """Total over requests."""
    lines: int
    runs: int
    places: NDArray[np.int64]
    """Distinct sectors, relative to that of the first lane."""


@dataclass(frozen=True, slots=True)
class Traffic:
    """Global memory costs of the sampled CTAs, per step."""

    regions: tuple[Region, ...]
    lines: dict[int, int] = field(default_factory=dict)
    """Step → 128-byte lines that warps request, totalled over requests."""
    fresh: dict[int, int] = field(default_factory=dict)
    """Step → sectors that their CTA had not read (or written) before."""
    asked: dict[int, int] = field(default_factory=dict)
    """Step → sectors, totalled over requests."""
    runs: dict[int, int] = field(default_factory=dict)
    """Step → contiguous memory ranges that the warps of a CTA touch together."""
    read: dict[str, int] = field(default_factory=dict)
    """Tensor → sectors that the CTAs read, distinct within each CTA."""
    written: dict[str, int] = field(default_factory=dict)
    whose: dict[int, str] = field(default_factory=dict)
    """Step → the tensor that it reads or writes."""
    _seen: dict[tuple[str, int, bool], NDArray[np.bool_]] = field(default_factory=dict)
    _order: dict[str, NDArray[np.int32]] = field(default_factory=dict)
    """Tensor → scratch array: the position of the first touch of each sector."""
    _patterns: dict[tuple[bytes, bytes, int], _Pattern] = field(default_factory=dict)

    def begin(self, first: int) -> None:
        """Do nothing: CTAs are recorded individually."""

    def end(self, ctas: NDArray[np.int64]) -> None:
        """Do nothing: accesses are recorded immediately."""

    def has_written(self, _ctas: NDArray[np.int64]) -> bool:
        """Always True: first writes are not needed."""
        return True

    def add(self, access: Access) -> None:
        """Record an access."""
        self.add_all([access], access.first + len(access.ctas))

    def add_all(self, accesses: Sequence[Access], rows: int) -> None:
        """Record the accesses of many loop iterations.

        Args:
            accesses: one per instruction; its rows are ordered by iteration, then by CTA.
            rows: CTAs of one iteration.
        """
        found: dict[tuple[str, int, bool], list[_Touched]] = {}
        for access in accesses:
            own, on, at = _rows_of(access)
            if not len(at):
                continue
            base = (
                own[:, 0] if on is None else np.take_along_axis(own, on.argmax(axis=1)[:, None], axis=1)[:, 0]
            )
            offsets = own - base[:, None]
            ctas, trips, step = access.ctas[at], (access.first + at) // rows, access.step
            for alike in _alike(offsets, on, base % LINE):
                first = alike[0]
                mask = None if on is None else on[first]
                pattern = self._pattern(offsets[first], mask, int(base[first]) % LINE)
                for held, count in (
                    (self.asked, pattern.sectors), (self.lines, pattern.lines), (self.runs, pattern.runs)
                ):  # fmt: skip
                    held[step] = held.get(step, 0) + count * len(alike)
                self.fresh.setdefault(step, 0)
                for region in self.regions:
                    inside = alike[(base[alike] >= region.start) & (base[alike] < region.stop)]
                    if inside.size:
                        self.whose.setdefault(step, region.name)
                    for cta in dict.fromkeys(ctas[inside].tolist()):
                        mine = inside[ctas[inside] == cta]
                        sectors = base[mine, None] // SECTOR + pattern.places
                        found.setdefault((region.name, cta, access.reads), []).append(
                            _Touched(step, trips[mine], sectors)
                        )
        for (name, cta, reads), touched in found.items():
            self._touch(name, cta, reads, touched)

    def _touch(self, name: str, cta: int, reads: bool, touched: Sequence[_Touched]) -> None:
        """Record which sectors a CTA touches for the first time, and by which step."""
        region = next(region for region in self.regions if region.name == name)
        first = region.start // SECTOR
        size = (region.stop - 1) // SECTOR - first + 1
        seen = self._seen.get((name, cta, reads))
        if seen is None:
            seen = self._seen[name, cta, reads] = np.zeros(size, bool)
        order = self._order.get(name)
        if order is None:
            order = self._order[name] = np.empty(size, np.int32)
        places, steps = _in_turn(touched)
        places -= first
        taken = (places >= 0) & (places < size)
        taken[taken] = ~seen[places[taken]]
        places, steps = places[taken], steps[taken]
        turns = np.arange(len(places), dtype=np.int32)
        order[places[::-1]] = turns[::-1]  # the first position of each sector is written last
        steps = steps[order[places] == turns]
        seen[places] = True
        total = self.read if reads else self.written
        total[name] = total.get(name, 0) + len(steps)
        for step, count in zip(
            *(part.tolist() for part in np.unique(steps, return_counts=True)), strict=True
        ):
            self.fresh[step] += count

    def _pattern(self, offsets: NDArray[np.int64], mask: NDArray[np.bool_] | None, within: int) -> _Pattern:
        key = (offsets.tobytes(), b"" if mask is None else mask.tobytes(), within)
        found = self._patterns.get(key)
        if found is None:
            warps = np.arange(len(offsets)) >> 5
            if mask is not None:
                offsets, warps = offsets[mask], warps[mask]
            at = offsets + within
            places = each_once(at // SECTOR)
            found = self._patterns[key] = _Pattern(
                _count_by(warps, at // SECTOR),
                _count_by(warps, at // LINE),
                1 + int(np.count_nonzero(np.diff(places) != 1)),
                places - within // SECTOR,
            )
        return found


def _count_by(warps: NDArray[np.int64], numbers: NDArray[np.int64]) -> int:
    """Distinct numbers of each warp, totalled."""
    low, high = int(numbers.min()), int(numbers.max())
    return len(each_once(warps * (high - low + 1) + (numbers - low)))


class _Touched(NamedTuple):
    """Sectors of a tensor that one instruction of a CTA touches in some iterations."""

    step: int
    trips: NDArray[np.int64]
    sectors: NDArray[np.int64]
    """Shape (iterations, sectors of each)."""


def _in_turn(touched: Sequence[_Touched]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Sectors in the order in which they are touched, iteration by iteration, and the step of each."""
    steps = [np.full(one.sectors.shape, one.step) for one in touched]
    if all(np.array_equal(one.trips, touched[0].trips) for one in touched):
        places = np.concatenate([one.sectors for one in touched], axis=1)
        return places.ravel(), np.concatenate(steps, axis=1).ravel()
    trips = np.concatenate([np.repeat(one.trips, one.sectors.shape[1]) for one in touched])
    turn = np.argsort(trips, kind="stable")
    places = np.concatenate([one.sectors.ravel() for one in touched])
    return places[turn], np.concatenate([one.ravel() for one in steps])[turn]


def _rows_of(access: Access) -> tuple[NDArray[np.int64], NDArray[np.bool_] | None, NDArray[np.int64]]:
    """Addresses and masks of the CTAs that take part, and their indices."""
    shape = (len(access.ctas), access.addresses.shape[1])
    own = np.broadcast_to(access.addresses, shape)
    if access.starts is not None:
        own = own + access.starts[:, None]
    if access.mask is None:
        return own, None, np.arange(shape[0])
    on = np.broadcast_to(access.mask, shape)
    rows = np.flatnonzero(on.any(axis=1))
    return own[rows], on[rows], rows


def _alike(
    offsets: NDArray[np.int64], mask: NDArray[np.bool_] | None, within: NDArray[np.int64]
) -> list[NDArray[np.int64]]:
    """Groups of rows whose lanes have the same offsets and the same position in their cache line."""
    if (
        (within == within[0]).all()
        and (mask is None or (mask == mask[0]).all())
        and (offsets == offsets[0]).all()
    ):
        return [np.arange(len(offsets))]
    groups: dict[Any, list[int]] = {}
    for row, place in enumerate(within.tolist()):
        key = (place, offsets[row].tobytes(), b"" if mask is None else mask[row].tobytes())
        groups.setdefault(key, []).append(row)
    return [np.array(rows) for rows in groups.values()]


@dataclass(frozen=True, slots=True)
class Sample:
    """The simulation of some CTAs of a launch."""

    loaded: Loaded
    launch: Launch
    ctas: NDArray[np.int64]
    counts: Counts
    traffic: Traffic
    way: tuple[int, ...]
    """Steps that most warps of one CTA executed, in order."""
    memory: Memory
    ended: tuple[Ended, ...]
    names: Names


def sample_launch(
    loaded: Loaded, launch: Launch, most: int = 4, limit: int = 20_000_000, *, side_by_side: bool = True
) -> Sample:
    """Simulate some CTAs of a launch.

    Args:
        loaded: the kernel.
        launch: its grid and arguments.
        most: number of CTAs.
        limit: steps after which it counts as endless.
        side_by_side: whether loop iterations may run in parallel; the counters are the same.

    Raises:
        UsageError: arguments are missing or wrong, or the grid is empty.
    """
    counts = Counts(len(loaded.program.steps), limit)
    started = begin(loaded, launch, counts, side_by_side=side_by_side)
    traffic = Traffic(tuple(started.memory.regions))
    started.memory.track = False
    started.memory.footprints = traffic  # type: ignore[assignment]
    ctas = choose_ctas(launch.grid, most)
    machine = started.machine(ctas)
    way: list[int] = []
    machine.followed, machine.way = int(ctas[len(ctas) // 2]), way
    ended = run_all(machine)
    excuse_strangers(started)
    return Sample(
        loaded=loaded,
        launch=started.launch,
        ctas=ctas,
        counts=counts,
        traffic=traffic,
        way=tuple(way),
        memory=started.memory,
        ended=tuple(ended),
        names=started.names,
    )
