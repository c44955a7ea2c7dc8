"""Global memory of a running program.

It consists of the tensors of the launch: an address is in one of them or out of bounds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from artifact_inspector.execution.interpreter.counters import Bounds
from artifact_inspector.execution.interpreter.footprints import SECTOR, Footprints
from artifact_inspector.execution.interpreter.runs import Runs, each_once, numbers_of, runs_of
from artifact_inspector.execution.launch import SCRATCH, Launch, Tensor

MOST_TRACKED = 1 << 32
"""Largest tensor, in bytes, whose elements are tracked individually."""
_TOGETHER = 1 << 20
"""Granules that are counted at a time: they fit a CPU cache."""
MOST_RUNS = 1 << 20
"""Pending intervals before they are merged and marked."""
_LONG = 64
"""Granules from which on an interval is marked as a slice."""
MOST_OUTSIDE = 20
"""Out-of-bounds accesses that are reported individually."""

_FORMS: Mapping[str, str] = {
    "bool": "u1", "int8": "i1", "uint8": "u1", "i8": "i1", "u8": "u1", "i1": "u1", "int16": "i2", "i16": "i2",
    "uint16": "u2", "u16": "u2", "int32": "i4", "i32": "i4", "uint32": "u4", "u32": "u4", "int64": "i8",
    "i64": "i8", "uint64": "u8", "u64": "u8", "float16": "f2", "fp16": "f2", "f16": "f2", "float32": "f4",
    "fp32": "f4", "f32": "f4", "float64": "f8", "fp64": "f8", "f64": "f8", "long": "i8", "int": "i4",
    "short": "i2", "half": "f2", "float": "f4", "double": "f8", "u1": "u1",
}  # fmt: skip


def lies_oddly(addresses: NDArray[np.int64], size: int) -> bool:
    """Whether accesses are misaligned, or their size is no power of two; NVIDIA's never are."""
    return bool(size & (size - 1) or (addresses & (size - 1)).any())


class Region:
    """One tensor in memory: the touched bytes, and its content if known."""

    def __init__(self, name: str, tensor: Tensor) -> None:
        self.name = name
        self.tensor = tensor
        self.start = tensor.pointer or 0
        self.stop = self.start + tensor.bytes
        self.base = self.start & -SECTOR
        self.granule = max(1, tensor.bits // 8) if tensor.bytes <= MOST_TRACKED else SECTOR
        """Bytes per mark: an element, or a sector of a very large tensor."""
        size = (-(-(self.stop - self.base) // SECTOR)) * SECTOR // self.granule
        self.read = np.zeros(size, np.uint8)
        """1 for every granule that was read."""
        self.written = np.zeros(size, np.uint8)
        self.updated: NDArray[np.uint8] | None = None
        """1 for every granule that atomics updated; None if there are none."""
        self._pending: dict[int, tuple[NDArray[np.uint8], list[tuple[Runs, NDArray[np.int64]]]]] = {}
        """Accesses of CTAs that differ by an offset, not yet marked: intervals and the offsets."""
        self._count = 0
        self.content: NDArray[np.uint8] | None = None
        self.keeps = name == SCRATCH
        """Whether stores change `content`, so that later loads see them."""
        if self.keeps:
            self.content = np.zeros(tensor.bytes, np.uint8)
        form = _FORMS.get(tensor.dtype)
        if tensor.values is not None and form is not None:
            with np.errstate(invalid="ignore", over="ignore"):  # float values as integers
                self.content = np.array(tensor.values).astype(f"<{form}").view(np.uint8).reshape(-1)

    def touch(self, marks: NDArray[np.uint8], addresses: NDArray[np.int64], size: int) -> None:
        """Mark the bytes of an access at each address."""
        each = max(1, size // self.granule)
        at = (addresses - self.base) // self.granule
        if lies_oddly(addresses, size):
            last = (addresses + (size - 1) - self.base) // self.granule
            for step in range(int((last - at).max()) + 1):
                marks[np.minimum(at + step, last)] = 1
        elif each in (2, 4, 8):
            form, ones = _WIDE[each]
            marks.view(form)[at // each] = ones
        else:
            for step in range(0, each, 8):
                if each >= 8:
                    marks.view(np.uint64)[at // 8 + step // 8] = _WIDE[8][1]
                else:
                    marks[at + step] = 1

    def touch_alike(
        self, marks: NDArray[np.uint8], lanes: NDArray[np.int64], starts: NDArray[np.int64], size: int
    ) -> None:
        """Mark the bytes of lanes at each of some offsets."""
        each = max(1, size // self.granule)
        runs = runs_of((lanes + (starts[0] - self.base)) // self.granule, each)
        shifts = each_once((starts - starts[0]) // self.granule)
        held = self._pending.setdefault(id(marks), (marks, []))[1]
        held.append((runs, shifts))
        self._count += len(shifts) * len(runs.starts)
        if self._count > MOST_RUNS:
            self.settle()

    def settle(self) -> None:
        """Mark what is pending."""
        for marks, parts in self._pending.values():
            found = Runs.together([runs.at(shifts) for runs, shifts in parts])
            long = found.stops - found.starts >= _LONG
            for start, stop in zip(found.starts[long].tolist(), found.stops[long].tolist(), strict=True):
                marks[start:stop] = 1
            marks[numbers_of(Runs(found.starts[~long], found.stops[~long]))] = 1
        self._pending, self._count = {}, 0

    @property
    def fetched(self) -> tuple[NDArray[np.uint8], ...]:
        """Marks of what is fetched from device memory: bytes that are read, and those that atomics update."""
        return (self.read,) if self.updated is None else (self.read, self.updated)

    def count(self, *marks: NDArray[np.uint8]) -> tuple[int, int]:
        """Bytes and sectors marked in any of the arrays; untouched ranges cost little time."""
        self.settle()
        touched = sectors = 0
        for start in range(0, len(marks[0]), _TOGETHER):
            block = marks[0][start : start + _TOGETHER].view(bool)
            for more in marks[1:]:
                block = block | more[start : start + _TOGETHER].view(bool)
            found = int(np.count_nonzero(block))
            if found:
                touched += found
                sectors += int(np.count_nonzero(block.reshape(-1, SECTOR // self.granule).any(axis=1)))
        return min(touched * self.granule, self.tensor.bytes), sectors


_WIDE: Mapping[int, tuple[type[np.unsignedinteger[Any]], Any]] = {
    2: (np.uint16, 0x0101),
    4: (np.uint32, 0x01010101),
    8: (np.uint64, 0x0101010101010101),
}


Touch = Callable[[NDArray[np.uint8]], None]
"""Marks what lanes touch in an array of a region."""


class Memory:
    """Global memory of a launch."""

    def __init__(self, launch: Launch) -> None:
        self.regions = sorted(
            (Region(name, tensor) for name, tensor in launch.tensors.items() if tensor.bytes),
            key=lambda region: region.start,
        )
        self.starts = np.array([region.start for region in self.regions], np.int64)
        self.stops = np.array([region.stop for region in self.regions], np.int64)
        self.footprints: Footprints | None = None
        """What each CTA reads, if requested."""
        self.track = True
        """Whether to record the touched bytes."""

    @property
    def tensors(self) -> list[Region]:
        """The regions of the launch's own arguments."""
        return [region for region in self.regions if not region.keeps]

    def region_of(self, address: int) -> Region | None:
        """The tensor that contains an address."""
        at = int(np.searchsorted(self.starts, address, side="right")) - 1
        return self.regions[at] if at >= 0 and address < self.stops[at] else None

    def touch_alike(
        self,
        lanes: NDArray[np.int64],
        starts: NDArray[np.int64],
        size: int,
        *,
        reads: bool,
        writes: bool,
        updates: bool = False,
    ) -> bool:
        """Record what lanes of many CTAs touch, each CTA at an offset.

        Args:
            lanes: addresses of the active lanes, flat.
            starts: offset of each CTA.
            size: bytes per lane.
            reads: whether they are read.
            writes: whether they are written.
            updates: whether the written value depends on the old one.

        Returns:
            False, with nothing recorded, if they are not all in one tensor or are misaligned.
        """
        low, high = int(lanes.min() + starts.min()), int(lanes.max() + starts.max())
        region = self.region_of(low)
        if region is None or high + size > region.stop:
            return False
        each = max(size, region.granule)
        if ((lanes - region.base + starts[0]) % each).any() or ((starts - starts[0]) % each).any():
            return False
        touch = partial(region.touch_alike, lanes=lanes, starts=starts, size=size)
        self._note(region, touch, reads, writes, updates)
        return True

    def touch(
        self,
        addresses: NDArray[np.int64],
        size: int,
        *,
        reads: bool,
        writes: bool,
        updates: bool = False,
    ) -> NDArray[Any]:
        """Record what active lanes touch.

        Args:
            addresses: of the active lanes, flat.
            size: bytes per lane.
            reads: whether they are read.
            writes: whether they are written.
            updates: whether the written value depends on the old one.

        Returns:
            The indices in `addresses` that are out of bounds.
        """
        low, high = int(addresses.min()), int(addresses.max())
        region = self.region_of(low)
        if region is not None and high + size <= region.stop:
            self._note(region, partial(region.touch, addresses=addresses, size=size), reads, writes, updates)
            return np.empty(0, np.int64)
        if not self.regions:
            return np.arange(len(addresses))
        at = np.searchsorted(self.starts, addresses, side="right") - 1
        inside = (at >= 0) & (addresses + size <= self.stops[at])
        for number, region in enumerate(self.regions):
            mine = addresses[inside & (at == number)]
            if mine.size:
                self._note(region, partial(region.touch, addresses=mine, size=size), reads, writes, updates)
        return np.flatnonzero(~inside)

    def _note(self, region: Region, touch: Touch, reads: bool, writes: bool, updates: bool) -> None:
        if self.track:
            if reads:
                touch(region.read)
            if writes:
                touch(region.written)
            if updates:
                if region.updated is None:
                    region.updated = np.zeros_like(region.written)
                touch(region.updated)
        if writes and region.content is not None and not region.keeps:
            region.content = None  # stored values are not tracked

    def load(self, addresses: NDArray[np.int64], size: int) -> tuple[NDArray[np.int64] | None, str]:
        """Numbers of up to 4 bytes at some addresses; None if they were not given.

        Also returns the name of the tensor, or the reason why they are unknown.
        """
        region = self.region_of(int(addresses.flat[0]))
        if region is None:
            return None, "memory outside of every tensor"
        if region.content is None:
            return None, f"values of {region.name}"
        if int(addresses.min()) < region.start or int(addresses.max()) + size > region.stop:
            return None, "memory of several tensors"
        at = addresses - region.start
        found = np.zeros(at.shape, np.int64)
        for byte in range(size):
            found |= region.content[at + byte].astype(np.int64) << (8 * byte)
        return found, region.name

    def keep(self, addresses: NDArray[np.int64], size: int, values: NDArray[np.int64] | None) -> None:
        """Store values where content is tracked; None stores unknown bytes."""
        region = self.region_of(int(addresses.flat[0]))
        if region is None or not region.keeps or region.content is None:
            return
        if values is None or int(addresses.max()) + size > region.stop:
            region.content = None
            return
        for byte in range(size):
            region.content[addresses - region.start + byte] = (values >> (8 * byte)) & 0xFF

    def content_at(self, addresses: NDArray[np.int64], size: int) -> NDArray[np.uint8] | None:
        """Bytes at some addresses, one row for each; None if unknown."""
        region = self.region_of(int(addresses.min()))
        if region is None or region.content is None or int(addresses.max()) + size > region.stop:
            return None
        found: NDArray[np.uint8] = region.content[(addresses - region.start)[:, None] + np.arange(size)]
        return found

    def describe(self, address: int) -> str:
        """The nearest tensor of an address, and the distance to it."""
        best = min(
            self.regions, key=lambda r: min(abs(address - r.start), abs(address - r.stop)), default=None
        )
        if best is None:
            return "the launch has no tensor"
        if address >= best.stop:
            return f"{address - best.stop} bytes after the end of {best.name}"
        return f"{best.start - address} bytes before {best.name}"

    def unique(self) -> tuple[int, int]:
        """Distinct bytes that were read, and that were written."""
        return (
            sum(region.count(region.read)[0] for region in self.tensors),
            sum(region.count(region.written)[0] for region in self.tensors),
        )

    def sectors(self) -> tuple[int, int]:
        """Distinct sectors that were read or updated, and that were written."""
        return (
            sum(region.count(*region.fetched)[1] for region in self.regions),
            sum(region.count(region.written)[1] for region in self.regions),
        )

    def not_given(self, addresses: NDArray[np.int64]) -> str | None:
        """The tensor of the first address, if its values were not given."""
        region = self.region_of(int(addresses.flat[0]))
        return None if region is None or region.content is not None else f"values of {region.name}"


# ── Accesses out of bounds ───────────────────────────────────────────────────────────────────────


def outside(
    memory: Memory, index: int, kind: str, places: NDArray[Any], ctas: NDArray[Any], lanes: NDArray[Any],
    addresses: NDArray[Any],
) -> list[Bounds]:  # fmt: skip
    """The first out-of-bounds accesses."""
    return [
        Bounds(
            index,
            kind,
            int(ctas[at]),
            int(lanes[at]),
            int(addresses[at]),
            memory.describe(int(addresses[at])),
        )
        for at in places[:MOST_OUTSIDE]
    ]
