"""Some CTAs of a launch, run on paper for all of them: what each instruction costs a CTA on average.

A launch's CTAs mostly do the same. Those that run are spread over the grid so that no order of tiles meets
them in step; their average stands for all. What it stands for is a ranking, never a counter.

**Source** M. Roberts, "The Unreasonable Effectiveness of Quasirandom Sequences" (2018): steps by powers of
the root of x⁴ = x + 1 leave no direction of the grid uncovered.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from artifact_inspector.execution.counters import Counts
from artifact_inspector.execution.launch import Launch
from artifact_inspector.execution.loading import Loaded
from artifact_inspector.execution.memory import SECTOR, Memory, Region
from artifact_inspector.execution.program import Step
from artifact_inspector.execution.running import Ended, begin, run_all

__all__ = ["Sample", "Traffic", "choose_ctas", "sample_launch"]

LINE = 128
"""Bytes of a line of the first-level cache."""
_ROOT = 1.2207440846057596
_STEPS = tuple(_ROOT**-power for power in (1, 2, 3))


def choose_ctas(grid: tuple[int, int, int], most: int) -> NDArray[np.int64]:
    """Linear numbers of CTAs that are spread over a grid; all where there are no more than that.

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


@dataclass(slots=True)
class _Watched(Counts):
    """Counts that know which step runs."""

    now: int = 0

    def spend(self, step: Step) -> None:
        self.now = step.index
        Counts.spend(self, step)


class _Pattern(NamedTuple):
    """How the lanes of a CTA lie to each other in one access."""

    sectors: int
    """Request by request."""
    lines: int
    runs: int
    places: NDArray[np.int64]
    """Distinct sectors, counted from that of the first lane."""


@dataclass(slots=True)
class Traffic:
    """What the sampled CTAs' accesses to global memory cost by step."""

    counts: _Watched
    regions: tuple[Region, ...]
    lines: dict[int, int] = field(default_factory=dict)
    """Step → lines of 128 bytes that warps ask for, request by request."""
    fresh: dict[int, int] = field(default_factory=dict)
    """Step → sectors that their CTA had not read (or written) before."""
    asked: dict[int, int] = field(default_factory=dict)
    """Step → sectors, request by request."""
    runs: dict[int, int] = field(default_factory=dict)
    """Step → stretches of memory without a gap that a CTA's warps touch together."""
    read: dict[str, int] = field(default_factory=dict)
    """Tensor → sectors that the CTAs read, each CTA for itself."""
    written: dict[str, int] = field(default_factory=dict)
    whose: dict[int, str] = field(default_factory=dict)
    """Step → the tensor that it reads or writes."""
    _seen: dict[tuple[str, int, bool], NDArray[np.bool_]] = field(default_factory=dict)
    _patterns: dict[tuple[bytes, bytes, int], _Pattern] = field(default_factory=dict)

    def begin(self, first: int) -> None:
        """Nothing: every CTA is followed for itself."""

    def end(self, ctas: NDArray[np.int64]) -> None:
        """Nothing: all is noted at once."""

    def add(self, ctas: NDArray[np.int64], addresses: NDArray[np.int64], mask: Any, *, reads: bool) -> None:
        """Note an access, as `Footprints.add` does."""
        step = self.counts.now
        for row, cta in enumerate(ctas.tolist()):
            own = addresses[row if len(addresses) > 1 else 0]
            on = None if mask is None else mask[row if len(mask) > 1 else 0]
            if on is not None and not on.any():
                continue
            base = int(own[0] if on is None else own[int(on.argmax())])
            pattern = self._pattern(own - base, on, base % LINE)
            region = next((one for one in self.regions if one.start <= base < one.stop), None)
            new = 0
            if region is not None:
                new = self._fresh(region, cta, reads, pattern.places + (base // SECTOR))
                self.whose.setdefault(step, region.name)
                total = self.read if reads else self.written
                total[region.name] = total.get(region.name, 0) + new
            for held, count in (
                (self.asked, pattern.sectors),
                (self.lines, pattern.lines),
                (self.runs, pattern.runs),
                (self.fresh, new),
            ):
                held[step] = held.get(step, 0) + count

    def _pattern(self, offsets: NDArray[np.int64], mask: NDArray[np.bool_] | None, within: int) -> _Pattern:
        key = (offsets.tobytes(), b"" if mask is None else mask.tobytes(), within)
        found = self._patterns.get(key)
        if found is None:
            warps = np.arange(len(offsets)) >> 5
            if mask is not None:
                offsets, warps = offsets[mask], warps[mask]
            at = offsets + within
            places = np.unique(at // SECTOR)
            found = self._patterns[key] = _Pattern(
                len(np.unique(np.stack([warps, at // SECTOR]), axis=1)[0]),
                len(np.unique(np.stack([warps, at // LINE]), axis=1)[0]),
                1 + int(np.count_nonzero(np.diff(places) != 1)),
                places - within // SECTOR,
            )
        return found

    def _fresh(self, region: Region, cta: int, reads: bool, sectors: NDArray[np.int64]) -> int:
        """Sectors that a CTA has not touched before, which it now has."""
        seen = self._seen.get((region.name, cta, reads))
        first = region.start // SECTOR
        if seen is None:
            size = (region.stop - 1) // SECTOR - first + 1
            seen = self._seen[region.name, cta, reads] = np.zeros(size, bool)
        places = sectors - first
        if places[0] < 0 or places[-1] >= len(seen):
            places = places[(places >= 0) & (places < len(seen))]
        new = len(places) - int(np.count_nonzero(seen[places]))
        if new:
            seen[places] = True
        return new


@dataclass(frozen=True, slots=True)
class Sample:
    """What some CTAs of a launch did."""

    loaded: Loaded
    launch: Launch
    ctas: NDArray[np.int64]
    counts: Counts
    traffic: Traffic
    way: tuple[int, ...]
    """Steps that most warps of one CTA executed, in order."""
    memory: Memory
    ended: tuple[Ended, ...]
    names: Any


def sample_launch(loaded: Loaded, launch: Launch, most: int = 4, limit: int = 20_000_000) -> Sample:
    """Run some CTAs of a launch.

    Args:
        loaded: the kernel.
        launch: its grid and arguments.
        most: CTAs that run.
        limit: steps after which it counts as endless.

    Raises:
        UsageError: arguments are missing or wrong, or the grid launches nothing.
    """
    counts = _Watched(len(loaded.program.steps), limit)
    started = begin(loaded, launch, counts)
    traffic = Traffic(counts, tuple(started.memory.regions))
    started.memory.track = False
    started.memory.footprints = traffic  # type: ignore[assignment]
    ctas = choose_ctas(launch.grid, most)
    machine = started.machine(ctas)
    way: list[int] = []
    machine.followed, machine.way = int(ctas[len(ctas) // 2]), way
    ended = run_all(machine)
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
