"""Global, shared and local memory as a running program sees them, and what its accesses cost.

Global memory is the tensors of the launch: an address belongs to one of them or is out of bounds. Of shared
and local memory only what is known is kept. What is counted is what ncu counts on NVIDIA's GPUs: sectors of
32 bytes for each request of a warp, and wavefronts of 32 banks of 4 bytes.

**Source** Nsight Compute documentation, "Memory Tables" (sectors, requests, wavefronts, bank conflicts);
which lanes a wide access to shared memory serves together was measured with ncu on an H200.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from artifact_inspector.execution.counters import Bounds
from artifact_inspector.execution.footprints import Footprints
from artifact_inspector.execution.lanes import FULL, Mask, Unknown, Value, choose, rows_of
from artifact_inspector.execution.launch import Launch, Tensor

__all__ = [
    "SECTOR",
    "Memory",
    "Region",
    "Scratch",
    "count_atomics",
    "count_copied",
    "count_copied_past",
    "count_sectors",
    "count_wavefronts",
    "served_together",
]

SECTOR = 32
"""Bytes that a request asks the L1 and L2 for at least."""
BANKS = 32
"""Banks of shared memory, of 4 bytes each."""
MOST_TRACKED = 1 << 32
"""Bytes of a tensor whose elements are followed one by one."""
MOST_OUTSIDE = 20
"""Accesses out of bounds that are told one by one."""
_NONE = np.iinfo(np.int64).max

_FORMS: Mapping[str, str] = {
    "bool": "u1", "int8": "i1", "uint8": "u1", "i8": "i1", "u8": "u1", "i1": "u1", "int16": "i2", "i16": "i2",
    "uint16": "u2", "u16": "u2", "int32": "i4", "i32": "i4", "uint32": "u4", "u32": "u4", "int64": "i8",
    "i64": "i8", "uint64": "u8", "u64": "u8", "float16": "f2", "fp16": "f2", "f16": "f2", "float32": "f4",
    "fp32": "f4", "f32": "f4", "float64": "f8", "fp64": "f8", "f64": "f8", "long": "i8", "int": "i4",
    "short": "i2", "half": "f2", "float": "f4", "double": "f8", "u1": "u1",
}  # fmt: skip


class Region:
    """One tensor in memory: what was touched of it, and its bytes where they are known."""

    def __init__(self, name: str, tensor: Tensor) -> None:
        self.name = name
        self.tensor = tensor
        self.start = tensor.pointer or 0
        self.stop = self.start + tensor.bytes
        self.base = self.start & -SECTOR
        self.granule = max(1, tensor.bits // 8) if tensor.bytes <= MOST_TRACKED else SECTOR
        """Bytes that are followed as one: an element; a sector of a tensor that is very large."""
        size = (-(-(self.stop - self.base) // SECTOR)) * SECTOR // self.granule
        self.read = np.zeros(size, np.uint8)
        """1 for every granule that was read."""
        self.written = np.zeros(size, np.uint8)
        self.content: NDArray[np.uint8] | None = None
        form = _FORMS.get(tensor.dtype)
        if tensor.values is not None and form is not None:
            self.content = np.array(tensor.values).astype(f"<{form}").view(np.uint8).reshape(-1)

    def touch(self, marks: NDArray[np.uint8], addresses: NDArray[np.int64], size: int) -> None:
        """Mark what an access of some bytes at each address touches."""
        each = max(1, size // self.granule)
        at = (addresses - self.base) // self.granule
        if each in (2, 4, 8):
            form, ones = _WIDE[each]
            marks.view(form)[at // each] = ones
        else:
            for step in range(0, each, 8):
                if each >= 8:
                    marks.view(np.uint64)[at // 8 + step // 8] = _WIDE[8][1]
                else:
                    marks[at + step] = 1

    def count(self, marks: NDArray[np.uint8]) -> tuple[int, int]:
        """Bytes and sectors that are marked."""
        bytes_marked = int(np.count_nonzero(marks)) * self.granule
        sectors = marks.reshape(-1, SECTOR // self.granule)
        return min(bytes_marked, self.tensor.bytes), int(np.count_nonzero(sectors.any(axis=1)))


_WIDE: Mapping[int, tuple[type[np.unsignedinteger[Any]], Any]] = {
    2: (np.uint16, 0x0101),
    4: (np.uint32, 0x01010101),
    8: (np.uint64, 0x0101010101010101),
}


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
        """What each CTA reads, where that is wanted."""
        self.track = True
        """Whether to keep which bytes were touched."""

    def region_of(self, address: int) -> Region | None:
        """The tensor that an address is in."""
        at = int(np.searchsorted(self.starts, address, side="right")) - 1
        return self.regions[at] if at >= 0 and address < self.stops[at] else None

    def touch(self, addresses: NDArray[np.int64], size: int, *, reads: bool, writes: bool) -> NDArray[Any]:
        """Note what active lanes touch.

        Args:
            addresses: of the lanes that are on, flat.
            size: bytes of each lane.
            reads: they are read.
            writes: they are written.

        Returns:
            The places in `addresses` that are out of bounds.
        """
        low, high = int(addresses.min()), int(addresses.max())
        region = self.region_of(low)
        if region is not None and high + size <= region.stop:
            self._touch(region, addresses, size, reads, writes)
            return np.empty(0, np.int64)
        if not self.regions:
            return np.arange(len(addresses))
        at = np.searchsorted(self.starts, addresses, side="right") - 1
        inside = (at >= 0) & (addresses + size <= self.stops[at])
        for number, region in enumerate(self.regions):
            mine = addresses[inside & (at == number)]
            if mine.size:
                self._touch(region, mine, size, reads, writes)
        return np.flatnonzero(~inside)

    def _touch(
        self, region: Region, addresses: NDArray[np.int64], size: int, reads: bool, writes: bool
    ) -> None:
        if self.track:
            if reads:
                region.touch(region.read, addresses, size)
            if writes:
                region.touch(region.written, addresses, size)
        if writes and region.content is not None:
            region.content = None  # it is not followed what is stored

    def load(self, addresses: NDArray[np.int64], size: int) -> tuple[NDArray[np.int64] | None, str]:
        """The bytes at addresses as unsigned numbers of up to 4 bytes; None where they were not given.

        With it the name of the tensor, or of what is not known.
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

    def describe(self, address: int) -> str:
        """The tensor that begins or ends closest to an address, and by how much it is missed."""
        best = min(
            self.regions, key=lambda r: min(abs(address - r.start), abs(address - r.stop)), default=None
        )
        if best is None:
            return "the launch has no tensor"
        if address >= best.stop:
            return f"{address - best.stop} bytes behind the end of {best.name}"
        return f"{best.start - address} bytes before {best.name}"

    def unique(self) -> tuple[int, int]:
        """Bytes that were read and that were written, each counted once."""
        return (
            sum(region.count(region.read)[0] for region in self.regions),
            sum(region.count(region.written)[0] for region in self.regions),
        )

    def sectors(self) -> tuple[int, int]:
        """Sectors that were read and that were written, each counted once."""
        return (
            sum(region.count(region.read)[1] for region in self.regions),
            sum(region.count(region.written)[1] for region in self.regions),
        )

    def not_given(self, addresses: NDArray[np.int64]) -> str | None:
        """The tensor in which the first address is, where its values were not given."""
        region = self.region_of(int(addresses.flat[0]))
        return None if region is None or region.content is not None else f"values of {region.name}"


# ── What an access costs ─────────────────────────────────────────────────────────────────────────


def count_sectors(addresses: NDArray[np.int64], mask: NDArray[np.bool_] | None, piece: int = SECTOR) -> int:
    """Distinct sectors, or lines, of the lanes in each row, added up.

    Args:
        addresses: shape (warps, lanes); an access does not cross a sector.
        mask: lanes that take part, all where None.
        piece: bytes of a sector or a line.
    """
    sectors = addresses >> (piece.bit_length() - 1)
    if mask is None:
        steps = sectors[:, 1:] - sectors[:, :-1]
        if (steps >= 0).all():
            return len(sectors) + int(np.count_nonzero(steps))
    else:
        sectors = np.where(mask, sectors, _NONE)
    sectors = np.sort(sectors, axis=1)
    found = int(np.count_nonzero(sectors[:, 1:] != sectors[:, :-1])) + len(sectors)
    return found if mask is None else found - int(np.count_nonzero(sectors[:, -1] == _NONE))


def served_together(size: int) -> int:
    """Lanes of a warp whose accesses of some bytes to shared memory are served at a time.

    Measured with ncu on an H200: all of them up to 4 bytes, half of them for 8, a quarter for 16.
    """
    return 32 * 4 // max(4, min(size, 16))


def count_wavefronts(
    addresses: NDArray[np.int64], size: int, mask: NDArray[np.bool_] | None, *, loads: bool = False
) -> tuple[int, int]:
    """Wavefronts of accesses to shared memory, and how many there would be without bank conflicts.

    A load of 8 or 16 bytes serves twice as many lanes at once where neighbours want the same (each lane and
    the one beside it, or each and the one two away, of those that take part) and no bank is asked twice.

    Args:
        addresses: shape (rows, lanes); a row is a whole warp, or what an opcode serves at a time.
        size: bytes of each lane.
        mask: lanes that take part, all where None.
        loads: it is a load.
    """
    together = min(served_together(size), addresses.shape[1])
    words = addresses >> 2 if mask is None else np.where(mask, addresses >> 2, -1)
    found = _count_served(words.reshape(-1, together), size)
    if loads and addresses.shape[1] >= 2 * together:
        double = words.reshape(-1, 2 * together)
        joined = _neighbours_agree(double, 1) | _neighbours_agree(double, 2)
        found = found.reshape(-1, 2).sum(axis=1)
        if joined.any():
            once = _count_served(double[joined], size)
            found[joined] = np.where(once == 1, 1, found[joined])
    return _with_ideal(found.reshape(len(addresses), -1).sum(axis=1), words >= 0, size)


def _with_ideal(found: NDArray[np.int64], active: NDArray[np.bool_], size: int) -> tuple[int, int]:
    """Wavefronts of all rows; without conflicts, those that the lanes' bytes fill, where that is fewer."""
    filled = -(-active.sum(axis=1) * size // (4 * BANKS))
    return int(found.sum()), int(np.minimum(found, filled).sum())


def _neighbours_agree(words: NDArray[np.int64], apart: int) -> NDArray[np.bool_]:
    """Rows whose lanes want the same as the lane whose number differs by a bit, or are alone."""
    other = words[:, np.arange(words.shape[1]) ^ apart]
    agrees: NDArray[np.bool_] = ((words == other) | (words < 0) | (other < 0)).all(axis=1)
    return agrees


def _all_words(words: NDArray[np.int64], size: int) -> NDArray[np.int64]:
    """Every word that lanes ask for, by the first of each; negative where it takes no part."""
    parts = max(size // 4, 1)
    if parts == 1:
        return words
    return np.where(words[:, :, None] < 0, -1, words[:, :, None] + np.arange(parts)).reshape(len(words), -1)


def _count_served(words: NDArray[np.int64], size: int) -> NDArray[np.int64]:
    """Wavefronts of each row of lanes that are served together: a bank serves its distinct words in turn."""
    words = np.sort(_all_words(words, size), axis=1)
    fresh = words >= 0
    fresh[:, 1:] &= words[:, 1:] != words[:, :-1]
    return _busiest(np.where(fresh, words, -1))


def _busiest(words: NDArray[np.int64]) -> NDArray[np.int64]:
    """How many words of each row are in the bank that has most of them."""
    rows, _ = np.nonzero(words >= 0)
    banks = np.bincount(rows * BANKS + words[words >= 0] % BANKS, minlength=len(words) * BANKS)
    return banks.reshape(-1, BANKS).max(axis=1)


def count_atomics(
    addresses: NDArray[np.int64], size: int, mask: NDArray[np.bool_] | None, operands: int = 1
) -> tuple[int, int]:
    """Wavefronts of atomics on shared memory, one after the other where they share a bank, or an address.

    Args:
        addresses: shape (warps, lanes).
        size: bytes of each lane.
        mask: lanes that take part, all where None.
        operands: that each lane brings, two to compare and swap.
    """
    words = addresses >> 2 if mask is None else np.where(mask, addresses >> 2, -1)
    found, ideal = _with_ideal(_busiest(_all_words(words, size)), words >= 0, size)
    return operands * found, operands * ideal


def count_copied(
    addresses: NDArray[np.int64], size: int, mask: NDArray[np.bool_], origins: NDArray[np.int64]
) -> tuple[int, int]:
    """Wavefronts of asynchronous copies through the L1, and how many there would be without conflicts.

    Lanes are served by their words in shared memory, and wait for one another where their words in global
    memory are in the same bank; neither is shared.

    Args:
        addresses: in shared memory, shape (warps, lanes).
        size: bytes of each lane.
        mask: lanes that take part.
        origins: in global memory; lanes whose is negative write zeros.
    """
    together = served_together(size)
    into = np.where(mask, addresses >> 2, -1)
    out = np.where(mask & (origins >= 0), origins >> 2, -1)
    found, waits = (_busiest(_all_words(words.reshape(-1, together), size)) for words in (into, out))
    found = found + np.maximum(waits - 1, 0)
    return _with_ideal(found.reshape(len(addresses), -1).sum(axis=1), mask, size)


def count_copied_past(
    addresses: NDArray[np.int64], size: int, mask: NDArray[np.bool_], origins: NDArray[np.int64]
) -> tuple[int, int]:
    """The same of copies past the L1: what comes of different lines of 128 bytes is written one by one.

    Where any lane of a warp writes zeros, a write by all of its lanes comes on top.
    """
    together = served_together(size)
    reads = mask & (origins >= 0)
    filling = (mask & ~reads).any(axis=1)
    found = ideal = 0
    if filling.any():
        found, ideal = count_wavefronts(addresses[filling], size, mask[filling])
    ideal += int((-(-reads.sum(axis=1) * size // (4 * BANKS))).sum())
    left = reads.reshape(-1, together)
    words, lines = (addresses >> 2).reshape(-1, together), (origins >> 7).reshape(-1, together)
    while left.any():
        first = np.take_along_axis(lines, left.argmax(axis=1)[:, None], axis=1)
        now = left & (lines == first)
        found += int(_count_served(np.where(now, words, -1), size).sum())
        left = left & ~now
    return found, ideal


# ── Shared and local memory ──────────────────────────────────────────────────────────────────────


class Scratch:
    """Shared or local memory of some CTAs: what is known of it.

    Words that all lanes name by the same address are kept by that address, with a value for every lane
    (local memory, most of it); of shared memory, which lanes address one by one, bytes are kept by CTA.
    """

    def __init__(self) -> None:
        self.words: dict[int, Value] = {}
        self.data: NDArray[np.uint8] | None = None
        self.known: NDArray[np.bool_] | None = None

    def copy(self) -> Scratch:
        """Another with the same content."""
        other = Scratch()
        other.words = dict(self.words)
        if self.data is not None and self.known is not None:
            other.data, other.known = self.data.copy(), self.known.copy()
        return other

    def keep(self, rows: NDArray[Any]) -> None:
        """Keep the content of some CTAs."""
        self.words = {at: rows_of(value, rows) for at, value in self.words.items()}
        if self.data is not None and self.known is not None:
            self.data, self.known = self.data[rows], self.known[rows]

    # Words that every lane has for itself.

    def store_word(self, at: int, value: Value, mask: Mask) -> None:
        """Keep a lane's word."""
        if mask is not True:
            value = choose(mask, value, self.words.get(at, Unknown(0, FULL, 0)))
        self.words[at] = value

    def load_word(self, at: int) -> Value | None:
        """A lane's word, None where nothing was stored."""
        return self.words.get(at)

    # Bytes that the lanes of a CTA share.

    def store(
        self,
        addresses: NDArray[np.int64],
        size: int,
        value: NDArray[np.int64] | None,
        mask: NDArray[np.bool_],
    ) -> None:
        """Store up to 4 bytes of each lane; None where they are not known.

        Args:
            addresses: shape (CTAs, threads).
            size: bytes of each lane.
            value: of the same shape.
            mask: lanes that store.
        """
        if value is None and self.data is None:
            return
        rows = np.broadcast_to(np.arange(addresses.shape[0])[:, None], addresses.shape)[mask]
        at = addresses[mask]
        if not at.size:
            return
        self._grow(addresses.shape[0], int(at.max()) + size)
        assert self.data is not None
        assert self.known is not None
        for byte in range(size):
            self.known[rows, at + byte] = value is not None
            if value is not None:
                self.data[rows, at + byte] = (value[mask] >> (8 * byte)) & 0xFF

    def _grow(self, rows: int, size: int) -> None:
        if self.data is None or self.known is None:
            self.data, self.known = np.zeros((rows, size), np.uint8), np.zeros((rows, size), bool)
        elif self.data.shape[1] < size:
            more = max(size, 2 * self.data.shape[1]) - self.data.shape[1]
            self.data = np.pad(self.data, ((0, 0), (0, more)))
            self.known = np.pad(self.known, ((0, 0), (0, more)))

    def forget(self, start: int | None = None, stop: int | None = None) -> None:
        """Know nothing of a range any more."""
        if self.known is not None:
            self.known[:, slice(start, stop)] = False

    def load(
        self, addresses: NDArray[np.int64], size: int, mask: NDArray[np.bool_]
    ) -> tuple[NDArray[np.int64], NDArray[np.bool_]] | None:
        """Up to 4 bytes of each lane, and where they are known; None where nothing is."""
        if self.data is None or self.known is None:
            return None
        inside = mask & (addresses >= 0) & (addresses + size <= self.data.shape[1])
        at = np.where(inside, addresses, 0)
        rows = np.arange(addresses.shape[0])[:, None]
        found = np.zeros(addresses.shape, np.int64)
        known = inside.copy()
        for byte in range(size):
            place = np.minimum(at + byte, self.data.shape[1] - 1)
            found |= self.data[rows, place].astype(np.int64) << (8 * byte)
            known &= self.known[rows, place]
        return (found, known) if known.any() else None


def outside(
    memory: Memory, index: int, kind: str, places: NDArray[Any], ctas: NDArray[Any], lanes: NDArray[Any],
    addresses: NDArray[Any],
) -> list[Bounds]:  # fmt: skip
    """The first accesses out of bounds, one by one."""
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
