"""The sectors of each tensor that every CTA reads, and the address that it writes first.

Most CTAs read the same sectors at different offsets. So a footprint is stored as its first sector and a shape
that many CTAs share.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any, NamedTuple

import numpy as np

from artifact_inspector.execution.interpreter.affine import BoolArray, IntArray
from artifact_inspector.execution.interpreter.cta_offsets import offset_facts, share_offsets
from artifact_inspector.execution.interpreter.intervals import Intervals, intervals_of, sorted_distinct
from artifact_inspector.execution.launch import KernelLaunch

SECTOR = 32
"""Bytes of a sector, the smallest unit of L1 and L2 requests."""
PAIR = 2 * SECTOR
"""Bytes of an aligned pair of sectors. The L2 fetches both from device memory if one is read; measured on an H200."""
MOST_PENDING_SECTORS = 1 << 21
"""Sectors that are stored individually before duplicates are removed."""


class FootprintAccess(NamedTuple):
    """One read or write by lanes of some CTAs; without addresses, one that they skip."""

    step: int
    """Index of the instruction."""
    ctas: IntArray
    """Linear CTA numbers."""
    addresses: IntArray
    """Shape (CTAs or 1, lanes)."""
    mask: BoolArray | None
    """Lanes that take part, same shape; None means all."""
    is_read: bool
    """False means that it writes."""
    rows: IntArray | None = None
    """Row of the machine of each CTA, in order; None if all of its rows take part."""
    cta_offsets: IntArray | None = None
    """Byte offset of each CTA, if all of them share one row of addresses."""

    @property
    def machine_rows(self) -> int:
        """Rows of the machine up to the last that takes part."""
        return len(self.ctas) if self.rows is None else int(self.rows[-1]) + 1

    def rows_of_machine(self, own_rows: IntArray) -> IntArray:
        """The rows of the machine of some CTAs, by their indices in the access."""
        return own_rows if self.rows is None else self.rows[own_rows]


class AccessRecorder:
    """Receives all accesses of a launch; by default each at once, so that portions and first writes do not matter."""

    def add(self, access: FootprintAccess) -> None:
        """Record an access."""
        self.add_iterations([access], access.machine_rows)

    def add_iterations(self, accesses: Sequence[FootprintAccess], rows: int) -> None:
        """Record the accesses of many loop iterations.

        Args:
            accesses: one per instruction; its rows are ordered by iteration, then by CTA.
            rows: CTAs of one iteration.
        """

    def end_portion(self) -> None:
        """Finish a portion of CTAs."""

    def has_written(self, ctas: IntArray) -> bool:
        """Whether the first write of each of the CTAs is known."""
        return True


@dataclass(frozen=True, slots=True)
class TensorReads:
    """What CTAs read of one tensor, in sectors from its beginning."""

    base_address: int
    """Address of the first sector."""
    shapes: list[Intervals] = field(default_factory=list)
    """Distinct footprints, each from sector 0 on."""
    shape_of_cta: dict[int, int] = field(default_factory=dict)
    """CTA → index of its footprint in `forms`."""
    start_of_cta: dict[int, int] = field(default_factory=dict)
    """CTA → first sector of its footprint."""


class _TensorPortion:
    """What the current portion of CTAs reads of one tensor."""

    def __init__(self, reads: TensorReads, start: int, stop: int) -> None:
        self.reads, self.start, self.stop = reads, start, stop
        self.sector_count = (stop - 1 - reads.base_address) // SECTOR + 1
        self.patterns: list[Intervals] = []
        self.pattern_numbers: dict[Any, int] = {}
        self.shape_numbers: dict[Any, tuple[int, int]] = {}
        self.clear()

    def clear(self) -> None:
        """Start the next portion of CTAs."""
        self.entries: dict[tuple[int, int], tuple[IntArray, IntArray, set[tuple[int, int]]]] = {}
        """CTAs, their offsets, and what they read there: first sectors and patterns. By the identities of the two."""
        self.sector_codes: list[IntArray] = []
        self.count = 0

    def pattern_number(self, offsets: IntArray, within: int) -> int:
        """The number of a pattern: the offsets between lanes, and the position in the first sector."""
        key = (offsets.tobytes(), within)
        number = self.pattern_numbers.get(key)
        if number is None:
            number = self.pattern_numbers[key] = self._interval_pattern(intervals_of((offsets + within) // SECTOR))
        return number

    def _interval_pattern(self, runs: Intervals) -> int:
        key = runs.starts.tobytes() + runs.stops.tobytes()
        number = self.pattern_numbers.get(key)
        if number is None:
            number = self.pattern_numbers[key] = len(self.patterns)
            self.patterns.append(runs)
        return number

    def add_offset_ctas(self, ctas: IntArray, cta_offsets: IntArray, lanes: IntArray) -> None:
        """Add CTAs whose lanes have the same addresses but for an offset."""
        cta_groups, lanes = [(ctas, cta_offsets)], lanes - self.reads.base_address
        if offset_facts(cta_offsets).bits % SECTOR:
            residues = (cta_offsets + lanes[0]) % SECTOR
            classes = [residues == within for within in sorted_distinct(residues)]
            cta_groups = [(ctas[in_class], cta_offsets[in_class]) for in_class in classes]
        for own_ctas, offsets in cta_groups:
            sector, within = divmod(int(lanes[0] + offsets[0]), SECTOR)
            entry = self.entries.setdefault((id(own_ctas), id(offsets)), (own_ctas, offsets, set()))
            entry[2].add((sector, self.pattern_number(lanes - lanes[0], within)))

    def add_lanes(self, ctas: IntArray, addresses: IntArray) -> None:
        """Add individual lanes of CTAs, flat."""
        self.sector_codes.append(
            sorted_distinct(ctas * self.sector_count + (addresses - self.reads.base_address) // SECTOR)
        )
        self.count += len(self.sector_codes[-1])
        if self.count > MOST_PENDING_SECTORS:
            self.sector_codes = [sorted_distinct(np.concatenate(self.sector_codes))]
            self.count = 0

    def finish(self) -> None:
        """Record what each CTA of the portion has read."""
        rows: list[tuple[IntArray, IntArray, IntArray]] = []
        for ctas, cta_offsets, reads in self.entries.values():
            first = min(sector for sector, _ in reads)
            runs = Intervals.union([self.patterns[pattern].at(np.array([sector - first])) for sector, pattern in reads])
            kind = np.full(len(ctas), self._interval_pattern(runs))
            rows.append(((cta_offsets - cta_offsets[0]) // SECTOR + first, kind, ctas))
        if self.sector_codes:
            codes, self.sector_codes = np.concatenate(self.sector_codes), []
            codes, first = sorted_distinct(codes), 0
            while first < len(codes):
                cta = codes[first : first + 1] // self.sector_count
                last = int(np.searchsorted(codes, (cta[0] + 1) * self.sector_count))
                sectors, first = codes[first:last] - cta * self.sector_count, last
                runs, base = intervals_of(sectors), sectors[:1]
                rows.append((base, np.array([self._interval_pattern(runs.at(-base))]), cta))
        if rows:
            table = np.concatenate([np.stack(part) for part in rows], axis=1)
            table = table[:, np.lexsort(table)]
            is_new = np.append(True, (table[:, 1:] != table[:, :-1]).any(axis=0))
            bases, kinds, ctas = table[:, is_new]
            own_ctas, firsts = np.unique(ctas, return_index=True)
            self._record_ctas(own_ctas, firsts, bases, kinds)

    def _record_ctas(self, ctas: IntArray, firsts: IntArray, bases: IntArray, kinds: IntArray) -> None:
        """Record the patterns of CTAs, in order; neighbours with equal ones share the number of their footprint.

        Args:
            ctas: linear numbers.
            firsts: index of the first pattern of each CTA.
            bases: first sector of each pattern.
            kinds: number of each pattern.
        """
        counts, starts = np.diff(firsts, append=len(bases)), bases[firsts]
        offsets = bases - np.repeat(starts, counts)
        earlier = np.arange(len(bases)) - np.repeat(counts, counts)
        is_equal = (offsets == offsets[earlier]) & (kinds == kinds[earlier])
        is_repeated = np.logical_and.reduceat(is_equal, firsts)
        is_repeated[1:] &= counts[1:] == counts[:-1]
        is_repeated[0] = False
        leaders = np.flatnonzero(~is_repeated)
        numbers = [
            self._shape_number(offsets[first : first + count], kinds[first : first + count])
            for first, count in zip(firsts[leaders].tolist(), counts[leaders].tolist(), strict=True)
        ]
        shapes, lowest = np.repeat(numbers, np.diff(leaders, append=len(ctas)), axis=0).T
        self.reads.shape_of_cta.update(zip(ctas.tolist(), shapes.tolist(), strict=True))
        self.reads.start_of_cta.update(zip(ctas.tolist(), (starts + lowest).tolist(), strict=True))

    def _shape_number(self, offsets: IntArray, kinds: IntArray) -> tuple[int, int]:
        """The number of the footprint of some patterns, which other patterns may share, and its first sector."""
        key = _digest(offsets, kinds)
        if key not in self.shape_numbers:
            runs = Intervals.union(
                [self.patterns[kind].at(offsets[kinds == kind]) for kind in sorted_distinct(kinds).tolist()]
            )
            shape = runs.at(-runs.starts[:1])
            number, _ = self.shape_numbers.setdefault((_digest(*shape),), (len(self.reads.shapes), 0))
            if number == len(self.reads.shapes):
                self.reads.shapes.append(shape)
            self.shape_numbers[key] = number, int(runs.starts[0])
        return self.shape_numbers[key]


def _digest(*arrays: IntArray) -> bytes:
    """A short key of some arrays, which may be as large as a tensor."""
    return blake2b(b"".join(array.tobytes() for array in arrays), digest_size=16).digest()


class Footprints(AccessRecorder):
    """What the CTAs of a launch read, collected portion by portion.

    Args:
        launch: with an address for every tensor.
        recorders: receive all accesses too.
    """

    def __init__(self, launch: KernelLaunch, *recorders: AccessRecorder) -> None:
        self._recorders = recorders
        self._portions: dict[str, _TensorPortion] = {}
        self.reads_by_tensor: dict[str, TensorReads] = {}
        """Tensor → what CTAs read of it."""
        self._tensors = tuple(launch.tensors.items())
        self.first_tensors = np.full(launch.ctas, -1, np.int64)
        """CTA → index in `launch.tensors` of the first tensor that it writes; -1 if it writes none."""
        self.lowest_addresses = np.zeros(launch.ctas, np.int64)
        """CTA → its lowest written address in that tensor."""
        self.accesses_of_cta = np.zeros(launch.ctas, np.int64)
        """CTA → its accesses, one for each instruction and iteration."""

    def _add(self, access: FootprintAccess) -> None:
        if not access.addresses.size:
            return
        np.add.at(self.accesses_of_cta, access.ctas, 1)
        if access.cta_offsets is None:
            self._add_lanes(access)
        else:
            self._add_offset_access(access)

    def _add_lanes(self, access: FootprintAccess) -> None:
        _, ctas, addresses, mask, reads, *_ = access
        low, high = int(addresses.min()), int(addresses.max())
        for tensor_index, (name, tensor) in enumerate(self._tensors):
            start = tensor.pointer or 0
            stop = start + tensor.bytes
            is_entirely_inside = mask is None and start <= low and high < stop
            if not is_entirely_inside and (high < start or low >= stop):
                continue
            inside = None if is_entirely_inside else (addresses >= start) & (addresses < stop)
            if inside is not None:
                inside = inside if mask is None else inside & mask
                if not inside.any():
                    continue
            if reads:
                self._mark_reads(name, start, stop, ctas, addresses, inside)
            else:
                self._mark_writes(tensor_index, ctas, addresses, inside)
            if inside is None or inside.all():
                return

    def _add_offset_access(self, access: FootprintAccess) -> None:
        """Record an access within one tensor by CTAs that differ by an offset only."""
        lanes, starts = access.addresses, access.cta_offsets
        assert starts is not None
        lanes = lanes[0] if access.mask is None else lanes[access.mask]
        first, facts = int(lanes[0] + starts[0]), offset_facts(starts)
        for tensor_index, (name, tensor) in enumerate(self._tensors):
            start = tensor.pointer or 0
            if not start <= first < start + tensor.bytes:
                continue
            if facts.low + lanes.min() < start or facts.high + lanes.max() >= start + tensor.bytes:
                # two tensors of the same memory
                self._add_lanes(access._replace(addresses=lanes + starts[:, None], mask=None, cta_offsets=None))
            elif access.is_read:
                portion = self._portion(name, start, start + tensor.bytes)
                portion.add_offset_ctas(access.ctas, starts, lanes)
            else:
                self._mark_writes(tensor_index, access.ctas, (starts + lanes.min())[:, None], None)
            return

    def add_iterations(self, accesses: Sequence[FootprintAccess], rows: int) -> None:
        """Record the accesses of many loop iterations."""
        for recorder in self._recorders:
            recorder.add_iterations(accesses, rows)
        for access in accesses:
            self._add(access)

    def has_written(self, ctas: IntArray) -> bool:
        """Whether the first write of each of the CTAs is known."""
        return bool((self.first_tensors[ctas] >= 0).all())

    def _portion(self, name: str, start: int, stop: int) -> _TensorPortion:
        portion = self._portions.get(name)
        if portion is None:
            reads = self.reads_by_tensor[name] = TensorReads(start & -SECTOR)
            portion = self._portions[name] = _TensorPortion(reads, start, stop)
        return portion

    def _mark_reads(self, name: str, start: int, stop: int, ctas: IntArray, addresses: Any, inside: Any) -> None:
        portion = self._portion(name, start, stop)
        lanes = addresses[0] if inside is None else addresses[0, inside[0]]
        cta_offsets = addresses[:, :1] - addresses[:1, :1]
        if (
            len(lanes)
            and (inside is None or (inside == inside[:1]).all())
            and (addresses - cta_offsets == addresses[:1]).all()
        ):
            portion.add_offset_ctas(ctas, share_offsets(np.broadcast_to(cta_offsets[:, 0], ctas.shape)), lanes)
        elif inside is None:
            portion.add_lanes(ctas.repeat(addresses.shape[1]), addresses.ravel())
        else:
            portion.add_lanes(np.broadcast_to(ctas[:, None], addresses.shape)[inside], addresses[inside])

    def _mark_writes(self, tensor_index: int, ctas: IntArray, addresses: Any, inside: Any) -> None:
        written_addresses = addresses if inside is None else np.where(inside, addresses, np.iinfo(np.int64).max)
        lowest = np.broadcast_to(written_addresses.min(axis=1), (len(ctas),))
        first_tensors, old_lowest = self.first_tensors[ctas], self.lowest_addresses[ctas]
        writes = lowest != np.iinfo(np.int64).max
        is_first_write, is_lower = (
            writes & (first_tensors < 0),
            writes & ((first_tensors < 0) | ((first_tensors == tensor_index) & (lowest < old_lowest))),
        )
        self.first_tensors[ctas[is_first_write]] = tensor_index
        self.lowest_addresses[ctas[is_first_write]] = np.iinfo(np.int64).max
        np.minimum.at(self.lowest_addresses, ctas[is_lower], lowest[is_lower])  # iterations of a loop repeat a CTA

    def end_portion(self) -> None:
        """Finish a portion of CTAs."""
        for portion in self._portions.values():
            portion.finish()
            portion.clear()
