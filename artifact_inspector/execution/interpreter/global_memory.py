"""Global memory of a running program.

It consists of the tensors of the launch: an address is in one of them or out of bounds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from artifact_inspector.execution.interpreter.counters import OutOfBoundsAccess
from artifact_inspector.execution.interpreter.cta_offsets import offset_facts
from artifact_inspector.execution.interpreter.footprints import PAIR, SECTOR, AccessRecorder, FootprintAccess
from artifact_inspector.execution.interpreter.intervals import (
    Intervals,
    expand_intervals,
    intervals_of,
    sorted_distinct,
)
from artifact_inspector.execution.interpreter.launch_values import LaunchValues
from artifact_inspector.execution.interpreter.observation import AccessObserver, GlobalAccess
from artifact_inspector.execution.interpreter.values import IntArray
from artifact_inspector.execution.launch import SCRATCH_TENSOR, KernelLaunch, Tensor, separate_tensors
from artifact_inspector.execution.stored_values import StoredValues
from artifact_inspector.model.float_formats import NEAREST, Rounding

MOST_TRACKED = 1 << 32
"""Largest tensor, in bytes, whose elements are tracked individually."""
_BLOCK_GRANULES = 1 << 20
"""Granules that are counted at a time: they fit a CPU cache."""
_PARTLY_WRITTEN = (0,)
"""Key of the sectors that were written in part, among counts by unit and marks."""
MOST_PENDING_LANES = 1 << 17
"""Pending lanes before they are merged and marked: neighbours, which are the most, are marked as one run."""
MOST_MARKED_INTERVALS = 1 << 20
"""Intervals that are marked at a time."""
_FEWEST_SHIFTS = 16
"""Shifts of a run from which on it is marked as a whole."""
_LONG_INTERVAL = 64
"""Granules from which on an interval is marked as a slice."""

_NUMPY_TYPES: Mapping[str, str] = {
    "bool": "u1", "int8": "i1", "uint8": "u1", "i8": "i1", "u8": "u1", "i1": "u1", "int16": "i2", "i16": "i2",
    "uint16": "u2", "u16": "u2", "int32": "i4", "i32": "i4", "uint32": "u4", "u32": "u4", "int64": "i8",
    "i64": "i8", "uint64": "u8", "u64": "u8", "float16": "f2", "fp16": "f2", "f16": "f2", "float32": "f4",
    "fp32": "f4", "f32": "f4", "float64": "f8", "fp64": "f8", "f64": "f8", "long": "i8", "int": "i4",
    "short": "i2", "half": "f2", "float": "f4", "double": "f8", "u1": "u1",
}  # fmt: skip


def is_misaligned(addresses: IntArray, size: int) -> bool:
    """Whether accesses are misaligned, or their size is no power of two; NVIDIA's never are."""
    return bool(size & (size - 1) or (addresses & (size - 1)).any())


def whole_granule(addresses: IntArray, size: int) -> int:
    """The largest power of two of bytes of which each access touches whole units only."""
    bits = int(np.bitwise_or.reduce(addresses, axis=None)) | size
    return bits & -bits


class TensorSpan(NamedTuple):
    """A tensor, and its bytes in memory."""

    name: str
    start: int
    stop: int


class TensorMemory:
    """One tensor in memory: the touched bytes, and its content if known."""

    def __init__(self, name: str, tensor: Tensor) -> None:
        self.name = name
        self.tensor = tensor
        self.start = tensor.pointer or 0
        self.stop = self.start + tensor.bytes
        self.base = self.start & -PAIR
        self.element_bytes = max(1, tensor.bits // 8) if tensor.bytes <= MOST_TRACKED else SECTOR
        """Fewest bytes per mark: an element, or a sector of a very large tensor."""
        self.granule_bytes = max(SECTOR, self.element_bytes)
        """Bytes per mark: as many as every access so far marks whole, at most a sector."""
        size = (-(-(self.stop - self.base) // PAIR)) * PAIR // self.granule_bytes
        self.read_marks = np.zeros(size, np.uint8)
        """1 for every granule that was read."""
        self.written_marks = np.zeros(size, np.uint8)
        self.update_marks: NDArray[np.uint8] | None = None
        """1 for every granule that atomics updated; None if there are none."""
        self._pending: dict[tuple[int, int, int], tuple[NDArray[np.uint8], IntArray, list[IntArray]]] = {}
        """Accesses of CTAs that differ by an offset, not yet marked, by granules of a lane: marks, offsets, lanes."""
        self._pending_count = 0
        self._counted: dict[tuple[int, ...], tuple[int, int]] = {}
        """Arrays of marks → bytes and sectors that they mark; empty once one has changed."""
        self.content: NDArray[np.uint8] | None = None
        self.tracks_stores = name == SCRATCH_TENSOR
        """Whether stores change `content`, so that later loads see them."""
        if self.tracks_stores:
            self.content = np.zeros(tensor.bytes, np.uint8)
        numpy_type = _NUMPY_TYPES.get(tensor.dtype)
        if tensor.values is not None and numpy_type is not None:
            with np.errstate(invalid="ignore", over="ignore"):  # float values as integers
                values = tensor.values
                elements = values.elements if isinstance(values, StoredValues) else np.array(values)
                self.content = elements.astype(f"<{numpy_type}").view(np.uint8).reshape(-1)

    def split_granules(self, granule_bytes: int) -> None:
        """Keep a mark for each so many bytes, a power of two, from now on; the arrays of marks are new ones."""
        parts = self.granule_bytes // max(granule_bytes, self.element_bytes)
        if parts > 1:
            self.mark_pending()
            self._counted.clear()
            self.granule_bytes //= parts
            self.read_marks = _split_marks(self.read_marks, parts)
            self.written_marks = _split_marks(self.written_marks, parts)
            if self.update_marks is not None:
                self.update_marks = _split_marks(self.update_marks, parts)

    def touch(self, marks: NDArray[np.uint8], addresses: IntArray, size: int) -> None:
        """Mark the bytes of an access at each address, all of whole granules or of single elements."""
        self._counted.clear()
        granules_per_lane = max(1, size // self.granule_bytes)
        first_granules = (addresses - self.base) // self.granule_bytes
        if is_misaligned(addresses, size):
            last_granules = (addresses + (size - 1) - self.base) // self.granule_bytes
            for step in range(int((last_granules - first_granules).max()) + 1):
                marks[np.minimum(first_granules + step, last_granules)] = 1
        elif granules_per_lane in (2, 4, 8):
            wide_type, ones = _WIDE_MARKS[granules_per_lane]
            marks.view(wide_type)[first_granules // granules_per_lane] = ones
        else:
            for step in range(0, granules_per_lane, 8):
                if granules_per_lane >= 8:
                    marks.view(np.uint64)[first_granules // 8 + step // 8] = _WIDE_MARKS[8][1]
                else:
                    marks[first_granules + step] = 1

    def touch_offsets(self, marks: NDArray[np.uint8], lanes: IntArray, cta_offsets: IntArray, size: int) -> None:
        """Mark the bytes of lanes at each of some offsets."""
        key = id(marks), id(cta_offsets), max(1, size // self.granule_bytes)
        self._pending.setdefault(key, (marks, cta_offsets, []))[2].append(lanes)
        self._pending_count += len(lanes)
        if self._pending_count > MOST_PENDING_LANES:
            self.mark_pending()

    def mark_pending(self) -> None:
        """Mark what is pending."""
        if self._pending:
            self._counted.clear()
        for (_, _, granules_per_lane), (marks, cta_offsets, lanes) in self._pending.items():
            first_lanes = np.concatenate(lanes) + (cta_offsets[0] - self.base)
            intervals = intervals_of(first_lanes // self.granule_bytes, granules_per_lane)
            shifts = sorted_distinct((offset_facts(cta_offsets).groups[0] - cta_offsets[0]) // self.granule_bytes)
            if _mark_evenly(marks, intervals, shifts):
                continue
            step = max(1, MOST_MARKED_INTERVALS // len(shifts))
            for first in range(0, len(intervals.starts), step):
                chunk = Intervals(intervals.starts[first : first + step], intervals.stops[first : first + step])
                chunk = chunk.at(shifts).merged()
                is_long = chunk.stops - chunk.starts >= _LONG_INTERVAL
                for start, stop in zip(chunk.starts[is_long].tolist(), chunk.stops[is_long].tolist(), strict=True):
                    marks[start:stop] = 1
                marks[expand_intervals(Intervals(chunk.starts[~is_long], chunk.stops[~is_long]))] = 1
        self._pending, self._pending_count = {}, 0

    @property
    def fetched_marks(self) -> tuple[NDArray[np.uint8], ...]:
        """Marks of what is fetched from device memory: bytes that are read, and those that atomics update."""
        return (self.read_marks,) if self.update_marks is None else (self.read_marks, self.update_marks)

    def describe_distance(self, address: int, name: str) -> str:
        """How far an address of an access is outside of the tensor; `just past` is its first byte there."""
        if address >= self.stop:
            distance = address - self.stop
            return f"{f'{distance:,} bytes' if distance else 'just'} past the end of {name}"
        if address < self.start:
            return f"{self.start - address:,} bytes before the start of {name}"
        return f"across the end of {name}"

    def count_touched(self, *marks: NDArray[np.uint8], unit: int = SECTOR) -> tuple[int, int]:
        """Bytes and units (of 32 or more bytes) marked in any of the arrays; untouched ranges cost little time."""
        self.mark_pending()
        key = (unit, *map(id, marks))
        if key not in self._counted:
            touched = units = 0
            for start in range(0, len(marks[0]), _BLOCK_GRANULES):
                block = marks[0][start : start + _BLOCK_GRANULES]
                for other_marks in marks[1:]:
                    block = block | other_marks[start : start + _BLOCK_GRANULES]
                touched_granules = int(np.count_nonzero(block.view(bool)))
                if touched_granules:
                    touched += touched_granules
                    words = block.view(_WORD_OF_SIZE.get(unit // self.granule_bytes, np.uint64))
                    step = len(words) * unit // self.granule_bytes // len(block)
                    units += int(np.count_nonzero(np.bitwise_or.reduce([words[at::step] for at in range(step)])))
            self._counted[key] = min(touched * self.granule_bytes, self.tensor.bytes), units
        return self._counted[key]

    def count_partly_written(self) -> int:
        """Sectors that were written in part and neither read nor updated."""
        self.mark_pending()
        granules, partly_written = SECTOR // self.granule_bytes, 0
        if granules == 1:  # marks of a very large tensor do not tell
            return 0
        if _PARTLY_WRITTEN in self._counted:
            return self._counted[_PARTLY_WRITTEN][1]
        for start in range(0, len(self.written_marks), _BLOCK_GRANULES):
            block = slice(start, start + _BLOCK_GRANULES)
            written = self.written_marks[block]
            if not written.any():
                continue
            sizes = written.reshape(-1, granules).sum(axis=1, dtype=np.uint8)
            is_partly_written = (sizes > 0) & (sizes < granules)
            for marks in self.fetched_marks:
                is_partly_written &= ~marks[block].reshape(-1, granules).any(axis=1)
            partly_written += int(np.count_nonzero(is_partly_written))
        self._counted[_PARTLY_WRITTEN] = partly_written * SECTOR, partly_written
        return partly_written


def _split_marks(marks: NDArray[np.uint8], parts: int) -> NDArray[np.uint8]:
    """Marks of granules that are a fraction as large; without marks, the pages of the array stay unused."""
    return marks.repeat(parts) if marks.any() else np.zeros(len(marks) * parts, np.uint8)


_WORD_OF_SIZE: Mapping[int, type[np.unsignedinteger[Any]]] = {1: np.uint8, 2: np.uint16, 4: np.uint32}


def _mark_evenly(marks: NDArray[np.uint8], intervals: Intervals, shifts: IntArray) -> bool:
    """Mark intervals at each of some sorted shifts, if these consist of few runs at one distance.

    Returns:
        Whether they are marked. Checking 100,000 CTAs of an addition takes 1.8 s; it took 13.8 s interval by interval.
    """
    if len(shifts) < _FEWEST_SHIFTS:
        return False
    distances = np.diff(shifts)
    distance = int(np.median(distances))
    stops = np.append(np.flatnonzero(distances != distance) + 1, len(shifts))
    if len(stops) * _FEWEST_SHIFTS > len(shifts):
        return False
    firsts = np.append(0, stops[:-1])
    starts, lengths = intervals.starts.tolist(), (intervals.stops - intervals.starts).tolist()
    pitches = np.unique(np.diff(intervals.starts)).tolist() or [0]
    if len(pitches) == 1 and len(set(lengths)) == 1:  # a tile: rows at one distance
        boxes = [(starts[0], (len(starts), lengths[0]))]
    else:
        boxes = [(start, (1, length)) for start, length in zip(starts, lengths, strict=True)]
    for first, count in zip(shifts[firsts].tolist(), (stops - firsts).tolist(), strict=True):
        for start, shape in boxes:
            np.ndarray((count, *shape), np.uint8, marks, first + start, (distance, pitches[0], 1))[...] = 1
    return True


_WIDE_MARKS: Mapping[int, tuple[type[np.unsignedinteger[Any]], Any]] = {
    2: (np.uint16, 0x0101), 4: (np.uint32, 0x01010101), 8: (np.uint64, 0x0101010101010101),
}  # fmt: skip


TouchMarker = Callable[[NDArray[np.uint8]], None]
"""Marks what lanes touch in an array of a region."""


class OrderDependent(Exception):  # noqa: N818 - no error: it has to run sequentially
    """The result of the speculative run depends on the order of iterations."""


class Journal:
    """Accesses in the order of execution, of all iterations at once.

    Args:
        footprints: what the recorded accesses are for.
    """

    def __init__(self, footprints: AccessRecorder | None) -> None:
        self.footprints = footprints
        self.touches: list[Callable[[], None]] = []
        """Marks to be set in tensors."""
        self.accesses: list[FootprintAccess] = []
        self.observed: list[GlobalAccess] = []
        self._writing_steps: set[int] = set()

    def add(self, access: FootprintAccess) -> None:
        """Record an access.

        Raises:
            OrderDependent: several steps write first; their order would be lost.
        """
        if not access.is_read and self.footprints is not None and not self.footprints.has_written(access.ctas):
            self._writing_steps.add(access.step)
            if len(self._writing_steps) > 1:
                raise OrderDependent
        self.accesses.append(access)


class GlobalMemory:
    """Global memory of a launch."""

    def __init__(self, launch: KernelLaunch) -> None:
        self.regions = [TensorMemory(name, tensor) for name, tensor in separate_tensors(launch)]
        self.start_addresses = np.array([region.start for region in self.regions], np.int64)
        self.end_addresses = np.array([region.stop for region in self.regions], np.int64)
        self.footprints: AccessRecorder | None = None
        """Receives what each CTA accesses, if requested."""
        self.tracks_touches = True
        """Whether to record the touched bytes."""
        self.observer: AccessObserver | None = None
        """Receives every access, if requested."""
        self.values: LaunchValues | None = None
        """The values of all tensors, if data is computed."""
        self.journal: Journal | None = None
        """Keeps the accesses of a speculative run until it is proven."""

    @property
    def spans(self) -> tuple[TensorSpan, ...]:
        """The tensors, without what was accessed."""
        return tuple(TensorSpan(region.name, region.start, region.stop) for region in self.regions)

    @property
    def rounding(self) -> Rounding:
        """How results of float arithmetic are rounded."""
        return NEAREST if self.values is None else self.values.rounding

    @property
    def computes_data(self) -> bool:
        """Whether data is computed that decides no address, guard or branch."""
        return self.values is not None or len(self.tensors) < len(self.regions)

    @property
    def tensors(self) -> list[TensorMemory]:
        """The regions of the launch's own arguments."""
        return [region for region in self.regions if not region.tracks_stores]

    def region_of(self, address: int) -> TensorMemory | None:
        """The tensor that contains an address."""
        at = int(np.searchsorted(self.start_addresses, address, side="right")) - 1
        return self.regions[at] if at >= 0 and address < self.end_addresses[at] else None

    def touch_offsets(
        self, lanes: IntArray, cta_offsets: IntArray, size: int, *, is_write: bool, updates: bool = False
    ) -> bool:
        """Record what lanes of many CTAs touch, each CTA at an offset.

        Args:
            lanes: addresses of the active lanes, flat.
            cta_offsets: offset of each CTA.
            size: bytes per lane.
            is_write: whether they are written; otherwise they are read.
            updates: whether the written value depends on the old one.

        Returns:
            False, with nothing recorded, if they are not all in one tensor or are misaligned.
        """
        facts = offset_facts(cta_offsets)
        region = self.region_of(int(lanes.min()) + facts.low)
        if region is None or int(lanes.max()) + facts.high + size > region.stop:
            return False
        alignment = max(size, region.element_bytes)
        if facts.bits % alignment or ((lanes - region.base + cta_offsets[0]) % alignment).any():
            return False
        touch = partial(region.touch_offsets, lanes=lanes, cta_offsets=cta_offsets, size=size)
        self._record_touch(region, touch, size & -size, is_write, updates)
        return True

    def touch(self, addresses: IntArray, size: int, *, is_write: bool, updates: bool = False) -> IntArray:
        """Record what active lanes touch.

        Args:
            addresses: of the active lanes, flat.
            size: bytes per lane.
            is_write: whether they are written; otherwise they are read.
            updates: whether the written value depends on the old one.

        Returns:
            The indices in `addresses` that are out of bounds.
        """
        low, high = int(addresses.min()), int(addresses.max())
        region = self.region_of(low)
        if region is not None and high + size <= region.stop:
            touch = partial(region.touch, addresses=addresses, size=size)
            self._record_touch(region, touch, whole_granule(addresses, size), is_write, updates)
            return np.empty(0, np.int64)
        if not self.regions:
            return np.arange(len(addresses))
        region_numbers = np.searchsorted(self.start_addresses, addresses, side="right") - 1
        inside = (region_numbers >= 0) & (addresses + size <= self.end_addresses[region_numbers])
        for number, region in enumerate(self.regions):
            region_addresses = addresses[inside & (region_numbers == number)]
            if region_addresses.size:
                touch = partial(region.touch, addresses=region_addresses, size=size)
                self._record_touch(region, touch, whole_granule(region_addresses, size), is_write, updates)
        return np.flatnonzero(~inside)

    def record(self, access: FootprintAccess) -> None:
        """Pass an access on to the footprints."""
        recorder = self.footprints if self.journal is None else self.journal
        if self.footprints is not None and recorder is not None:
            recorder.add(access)

    def observe(self, access: GlobalAccess) -> None:
        """Pass an access on to the observer."""
        if self.journal is not None:
            self.journal.observed.append(access)
        elif self.observer is not None:
            self.observer.observe_global(access)

    @contextmanager
    def speculate(self) -> Iterator[Journal]:
        """Keep all accesses in a journal for the duration of a speculative run."""
        self.journal = Journal(self.footprints)
        try:
            yield self.journal
        finally:
            self.journal = None

    def commit(self, journal: Journal, rows: int) -> None:
        """Apply the accesses of a proven run, whose iterations have `rows` CTAs each."""
        for touch in journal.touches:
            touch()
        if self.footprints is not None:
            self.footprints.add_iterations(journal.accesses, rows)
        for access in journal.observed:
            self.observe(access)

    def _record_touch(
        self, region: TensorMemory, touch: TouchMarker, granule: int, is_write: bool, updates: bool
    ) -> None:
        if self.journal is not None:
            if is_write and region.content is not None:
                raise OrderDependent
            self.journal.touches.append(partial(self._record_touch, region, touch, granule, is_write, updates))
            return
        if self.tracks_touches:
            region.split_granules(granule)
            touch(region.written_marks if is_write else region.read_marks)
            if updates:
                if region.update_marks is None:
                    region.update_marks = np.zeros_like(region.written_marks)
                touch(region.update_marks)
        if is_write and region.content is not None and not region.tracks_stores:
            region.content = None  # stored values are not tracked

    def load(self, addresses: IntArray, size: int) -> tuple[IntArray | None, str]:
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
        words = np.zeros(at.shape, np.int64)
        for byte in range(size):
            words |= region.content[at + byte].astype(np.int64) << (8 * byte)
        return words, region.name

    def store(self, addresses: IntArray, size: int, values: IntArray | None) -> None:
        """Store values where content is tracked; None stores unknown bytes."""
        region = self.region_of(int(addresses.flat[0]))
        if region is None or not region.tracks_stores or region.content is None:
            return
        if values is None or int(addresses.max()) + size > region.stop:
            region.content = None
            return
        for byte in range(size):
            region.content[addresses - region.start + byte] = (values >> (8 * byte)) & 0xFF

    def content_at(self, addresses: IntArray, size: int) -> NDArray[np.uint8] | None:
        """Bytes at some addresses, one row for each; None if unknown."""
        region = self.region_of(int(addresses.min()))
        if region is None or region.content is None or int(addresses.max()) + size > region.stop:
            return None
        content: NDArray[np.uint8] = sliding_window_view(region.content, size)[addresses - region.start]
        return content

    def describe_nearest(self, address: int) -> str:
        """The nearest tensor of an address, and the distance to it."""
        nearest = min(self.regions, key=lambda r: min(abs(address - r.start), abs(address - r.stop)), default=None)
        return "the launch has no tensor" if nearest is None else nearest.describe_distance(address, nearest.name)

    def count_unique_bytes(self) -> tuple[int, int]:
        """Distinct bytes that were read, and that were written."""
        return (
            sum(region.count_touched(region.read_marks)[0] for region in self.tensors),
            sum(region.count_touched(region.written_marks)[0] for region in self.tensors),
        )

    def count_sectors(self) -> tuple[int, int]:
        """Distinct sectors that were read or updated, and that were written."""
        return (
            sum(region.count_touched(*region.fetched_marks)[1] for region in self.regions),
            sum(region.count_touched(region.written_marks)[1] for region in self.regions),
        )

    def count_fetched(self) -> dict[str, int]:
        """Tensor → bytes of its pairs of sectors that were read or updated."""
        return {one.name: one.count_touched(*one.fetched_marks, unit=PAIR)[1] * PAIR for one in self.regions}

    def count_filled(self) -> dict[str, int]:
        """Tensor → bytes of its sectors that were written in part: the L2 reads their rest before it writes them."""
        return {region.name: region.count_partly_written() * SECTOR for region in self.regions}

    def missing_values_at(self, addresses: IntArray) -> str | None:
        """The tensor of the first address, if its values were not given."""
        region = self.region_of(int(addresses.flat[0]))
        return None if region is None or region.content is not None else f"values of {region.name}"


def out_of_bounds_accesses(
    memory: GlobalMemory, index: int, kind: str, ctas: IntArray, threads: IntArray, addresses: IntArray
) -> list[OutOfBoundsAccess]:
    """Accesses of threads outside of every tensor."""
    return [
        OutOfBoundsAccess(index, kind, cta, thread, address, memory.describe_nearest(address))
        for cta, thread, address in zip(ctas.tolist(), threads.tolist(), addresses.tolist(), strict=True)
    ]
