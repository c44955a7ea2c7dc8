"""CTA order: what each wave of CTAs reads, what it reads twice, and the effect of other orders.

A wave is the set of CTAs that are resident at the same time: as many as the GPU holds, in order of their
numbers. Data that several CTAs of a wave read is fetched from memory once. If everything the launch reads
fits in L2, the order does not matter.

XCDs of AMD GPUs get the CTAs in turn. Each has its own L2, so data that CTAs of several XCDs read is fetched for each.

**Source** Triton's tutorial on matrix multiplication, "L2 Cache Optimizations" (grouped order, and the
figures of its example: 9×9 tiles, 90 blocks row-major, 54 grouped by 3). Modular's documentation of
`chiplet_transform_chunked` (order of XCDs on MI300X and MI355X, and the order that gives each a contiguous part).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from artifact_inspector.execution.interpreter.footprints import SECTOR, Footprints, TensorReads
from artifact_inspector.execution.interpreter.intervals import Intervals
from artifact_inspector.execution.launch import KernelLaunch

GROUPS = (2, 3, 4, 8, 16)
MOST_WAVES_LISTED = 64
"""Most waves that are reported individually."""
MOST_CTAS_LISTED = 1024
"""Most CTAs whose reads are reported individually."""
_MOST_INTERVALS = 1 << 20
"""Intervals that are merged at a time. All at once, those of a `grouped_gemm` took 700 MiB."""


@dataclass(frozen=True, slots=True)
class Wave:
    """CTAs that are resident at the same time."""

    ctas: int
    distinct_bytes_read: int
    distinct_tiles: int | None
    """Distinct blocks of the kernel's loads that they read; None if blocks are unknown, or a CTA reads a part
    of one."""
    bytes_requested: int
    """Total of the bytes that each CTA reads."""
    tiles_requested: int | None


@dataclass(frozen=True, slots=True)
class AlternativeOrder:
    """What the waves would read if the same tiles were computed in another order."""

    name: str
    """`row-major`, `column-major`, `grouped by 8`, `grouped by 8, contiguous for each XCD`."""
    distinct_bytes_read: int
    """Total of the distinct bytes of each wave."""
    first_wave_tiles: int | None


@dataclass(frozen=True, slots=True)
class ReadBox:
    """The bounding box of what a CTA reads of a tensor, ends exclusive."""

    tensor: str
    rows: tuple[int, int]
    columns: tuple[int, int]
    """Ranges of the last two dimensions; of a one-dimensional tensor, row 0 and its elements."""


@dataclass(frozen=True, slots=True)
class CtaReads:
    """What one CTA reads, and the tile that it writes."""

    cta: int
    wave: int
    tile: tuple[int, int] | None
    """Row and column of the tile; None if the tiles are not a grid."""
    reads: tuple[ReadBox, ...]


@dataclass(frozen=True, slots=True)
class CtaOrder:
    """The waves of a launch."""

    ctas_per_wave: int
    basis: str
    """How the size of a wave was determined."""
    waves: tuple[Wave, ...]
    wave_count: int
    distinct_bytes_read: int
    """Total of the distinct bytes of each wave."""
    bytes_requested: int
    footprint_bytes: int
    """Distinct bytes of the whole launch."""
    fits_l2: bool | None
    """Whether everything the launch reads and writes fits in L2, so that the order does not matter."""
    alternatives: tuple[AlternativeOrder, ...]
    tiles: tuple[tuple[int, int], ...]
    """Row and column of the tile that each CTA writes, in CTA order; empty if the tiles are not a grid."""
    ctas: tuple[CtaReads, ...]
    """What each CTA reads, in order; only the first of very many."""
    name: str | None = None
    """`row-major`, `column-major`, `grouped by 8` (rows), `grouped by 8 columns`; None if the order is another, or the
    tiles are not a grid."""
    l2_caches: int = 1
    """More than one if XCDs have their own; distinct bytes and tiles of a wave are totals of these."""


def find_cta_order(
    launch: KernelLaunch,
    footprints: Footprints,
    tile_bytes: Mapping[str, int],
    ctas_per_wave: int,
    basis: str,
    fits_l2: bool | None,
    l2_caches: int = 1,
) -> CtaOrder:
    """The waves of a launch.

    Args:
        launch: with an address for every tensor.
        footprints: of all its CTAs.
        tile_bytes: tensor → bytes of the block that one load of it reads.
        ctas_per_wave: resident CTAs of the GPU.
        basis: how that was determined.
        fits_l2: whether everything the launch reads and writes fits in L2.
        l2_caches: that get CTAs in turn.
    """
    order = np.arange(launch.ctas)
    tensors = [
        _TensorWaveReads(name, reads, launch.ctas, tile_bytes.get(name))
        for name, reads in footprints.reads_by_tensor.items()
    ]
    if not all(tensor_reads.has_whole_blocks for tensor_reads in tensors):
        for tensor_reads in tensors:
            tensor_reads.tile_bytes = None
    waves = [_wave(wave_ctas, tensors, l2_caches) for wave_ctas in _split_into_waves(order, ctas_per_wave)]
    footprint_bytes = sum(tensor_reads.distinct_bytes(order) for tensor_reads in tensors)
    tiles = _tiles_of_ctas(launch, footprints)
    return CtaOrder(
        ctas_per_wave=ctas_per_wave,
        basis=basis,
        waves=tuple(waves[:MOST_WAVES_LISTED]),
        wave_count=len(waves),
        distinct_bytes_read=sum(wave.distinct_bytes_read for wave in waves),
        bytes_requested=sum(wave.bytes_requested for wave in waves),
        footprint_bytes=footprint_bytes,
        fits_l2=fits_l2,
        alternatives=tuple(_alternative_orders(tiles, tensors, ctas_per_wave, l2_caches)),
        tiles=tuple(tiles),
        ctas=tuple(
            CtaReads(
                cta,
                position // ctas_per_wave,
                tiles[position] if tiles else None,
                tuple(tensor_reads.box(launch, cta) for tensor_reads in tensors if tensor_reads.part_of_cta[cta] >= 0),
            )
            for position, cta in enumerate(order[:MOST_CTAS_LISTED].tolist())
        ),
        name=_order_name(tiles),
        l2_caches=l2_caches,
    )


class _TensorWaveReads:
    """What the CTAs read of one tensor.

    Args:
        reads: the recorded footprints.
        tile_bytes: bytes of the block that one load of it reads, if known.
    """

    def __init__(self, name: str, reads: TensorReads, ctas: int, tile_bytes: int | None) -> None:
        self.name, self.reads, self.tile_bytes = name, reads, tile_bytes
        reading_ctas = np.array(list(reads.shape_of_cta), np.int64)
        parts_of_ctas = np.array([list(reads.shape_of_cta.values()), list(reads.start_of_cta.values())], np.int64)
        self.distinct_parts, part_numbers = np.unique(parts_of_ctas, axis=1, return_inverse=True)
        self.part_of_cta = np.full(ctas, -1, np.int64)
        """CTA → index of its part; -1 if it reads none."""
        self.part_of_cta[reading_ctas] = part_numbers.ravel()
        self.sectors_of_part = np.array([runs.total for runs in reads.shapes], np.int64)[self.distinct_parts[0]]
        """Sectors of each part."""
        self.has_whole_blocks = tile_bytes is None or not (self.sectors_of_part * SECTOR % tile_bytes).any()
        self._unions: dict[bytes, int] = {}
        """Numbers of parts → the distinct sectors of all of them; waves of several orders are the same CTAs."""
        self.are_disjoint = False
        self.are_disjoint = self._union_sectors(np.arange(self.distinct_parts.shape[1])) == int(
            self.sectors_of_part.sum()
        )
        """Whether no two parts share a sector."""
        self._boxes: dict[int, ReadBox] = {}

    def _union_sectors(self, part_numbers: NDArray[np.int64]) -> int:
        """Distinct sectors of some parts."""
        if self.are_disjoint or len(part_numbers) < 2:
            return int(self.sectors_of_part[part_numbers].sum())
        key = part_numbers.tobytes()
        if key not in self._unions:
            forms, starts = self.distinct_parts[:, part_numbers]
            unions, count = list[Intervals](), 0
            for form in np.unique(forms).tolist():
                shape, offsets = self.reads.shapes[form], starts[forms == form]
                step = max(1, _MOST_INTERVALS // max(1, len(shape.starts)))
                for first in range(0, len(offsets), step):
                    unions.append(shape.at(offsets[first : first + step]))
                    count += len(unions[-1].starts)
                    if count > _MOST_INTERVALS:
                        unions = [Intervals.union(unions)]
                        count = len(unions[0].starts)
            self._unions[key] = Intervals.union(unions).total
        return self._unions[key]

    def distinct_bytes(self, ctas: NDArray[np.int64]) -> int:
        """Distinct bytes that some CTAs read."""
        part_numbers = np.unique(self.part_of_cta[ctas])
        return self._union_sectors(part_numbers[part_numbers >= 0]) * SECTOR

    def requested(self, ctas: NDArray[np.int64]) -> tuple[int, int]:
        """Total bytes, and blocks, that some CTAs read, counted per CTA."""
        part_numbers = self.part_of_cta[ctas]
        size = self.sectors_of_part[part_numbers[part_numbers >= 0]] * SECTOR
        return int(size.sum()), 0 if self.tile_bytes is None else int(size.sum()) // self.tile_bytes

    def box(self, launch: KernelLaunch, cta: int) -> ReadBox:
        """The bounding box of what a CTA reads."""
        part_number = int(self.part_of_cta[cta])
        read_box = self._boxes.get(part_number)
        if read_box is None:
            form, start = self.distinct_parts[:, part_number].tolist()
            read_box = self._boxes[part_number] = _bounding_box(
                launch, self.name, self.reads.base_address, self.reads.shapes[form], start
            )
        return read_box


def _bounding_box(launch: KernelLaunch, name: str, base: int, runs: Intervals, start: int) -> ReadBox:
    tensor = launch.tensors[name]
    offset = base - (tensor.pointer or 0)
    ends = np.stack([runs.starts + start, runs.stops + start]) * SECTOR + offset - [[0], [1]]
    element_indices = np.clip(ends, 0, tensor.bytes - 1) * 8 // tensor.bits
    row_stride = tensor.strides[-2] if len(tensor.shape) > 1 else 0
    rows, columns = (
        (element_indices // row_stride, element_indices % row_stride)
        if row_stride
        else (0 * element_indices, element_indices)
    )
    spans_rows = bool(row_stride) and bool((rows[0] != rows[1]).any())
    return ReadBox(
        name, (int(rows.min()), int(rows.max()) + 1),
        (0, row_stride) if spans_rows else (int(columns.min()), int(columns.max()) + 1),
    )  # fmt: skip


def _split_into_waves(order: NDArray[np.int64], size: int) -> list[NDArray[np.int64]]:
    return [order[at : at + size] for at in range(0, len(order), size)]


def _wave(ctas: NDArray[np.int64], tensors: Sequence[_TensorWaveReads], l2_caches: int) -> Wave:
    distinct_bytes = bytes_requested = tiles = tiles_requested = 0
    has_blocks = False
    for tensor_reads in tensors:
        size = sum(tensor_reads.distinct_bytes(ctas[at::l2_caches]) for at in range(l2_caches))
        tensor_bytes, blocks_requested = tensor_reads.requested(ctas)
        distinct_bytes, bytes_requested = distinct_bytes + size, bytes_requested + tensor_bytes
        if tensor_reads.tile_bytes is not None and tensor_bytes:
            has_blocks = True
            tiles, tiles_requested = (
                tiles + round(blocks_requested * size / tensor_bytes),
                tiles_requested + blocks_requested,
            )
    return Wave(
        len(ctas), distinct_bytes, tiles if has_blocks else None, bytes_requested,
        tiles_requested if has_blocks else None,
    )  # fmt: skip


def _tiles_of_ctas(launch: KernelLaunch, footprints: Footprints) -> list[tuple[int, int]]:
    """Row and column of the tile that each CTA writes, from its first address in a matrix."""
    starts = np.zeros((2, launch.ctas), np.int64)
    for index, tensor in enumerate(launch.tensors.values()):
        is_first = footprints.first_tensors == index
        if not is_first.any():
            continue
        if len(tensor.shape) < 2 or not tensor.strides[-2]:
            return []
        offsets = (footprints.lowest_addresses[is_first] - (tensor.pointer or 0)) * 8 // tensor.bits
        starts[:, is_first] = np.divmod(offsets, tensor.strides[-2])
    if (footprints.first_tensors < 0).any():
        return []
    (row_starts, rows), (column_starts, columns) = (np.unique(axis, return_inverse=True) for axis in starts)
    if len(row_starts) * len(column_starts) != launch.ctas:
        return []
    if len(np.unique(rows * len(column_starts) + columns)) != launch.ctas:
        return []
    return list(zip(rows.tolist(), columns.tolist(), strict=True))


def _grouped_order(rows: NDArray[np.int64], columns: NDArray[np.int64], group: int) -> NDArray[np.int64]:
    """Indices of tiles in an order that walks down the columns of `group` rows after another."""
    order: NDArray[np.int64] = np.lexsort((rows, columns, rows // group))
    return order


def _split_among(order: NDArray[np.int64], l2_caches: int) -> NDArray[np.int64]:
    """The order in which each of the caches, which get CTAs in turn, gets a contiguous part of the given order."""
    ends = np.cumsum([len(order[at::l2_caches]) for at in range(l2_caches)])
    chunks = np.split(order, ends[:-1])
    split = np.empty_like(order)
    for at, chunk in enumerate(chunks):
        split[at::l2_caches] = chunk
    return split


def _order_name(tiles: Sequence[tuple[int, int]]) -> str | None:
    """The name of the order of some tiles; None if it has none.

    Example:
        >>> _order_name([(0, 0), (1, 0), (0, 1), (1, 1), (2, 0), (2, 1)])
        'grouped by 2'
    """
    if len(tiles) < 2:
        return None
    rows, columns = np.array(tiles, np.int64).T
    for name, first, second in (("row-major", rows, columns), ("column-major", columns, rows)):
        steps = np.diff(first)
        if ((steps > 0) | ((steps == 0) & (np.diff(second) >= 0))).all():
            return name
    for first, second, suffix in ((rows, columns, ""), (columns, rows, " columns")):
        group = int((second != second[0]).argmax())
        if group > 1 and (np.diff(_grouped_order(first, second, group)) == 1).all():
            return f"grouped by {group}{suffix}"
    return None


def _alternative_orders(
    tiles: Sequence[tuple[int, int]], tensors: Sequence[_TensorWaveReads], ctas_per_wave: int, l2_caches: int
) -> Iterable[AlternativeOrder]:
    if not tiles:
        return
    rows, columns = np.array(tiles, np.int64).T
    orders = {"row-major": np.lexsort((columns, rows)), "column-major": np.lexsort((rows, columns))}
    orders |= {f"grouped by {group}": _grouped_order(rows, columns, group) for group in GROUPS if group <= rows.max()}
    if l2_caches > 1:
        orders |= {f"{name}, contiguous for each XCD": _split_among(order, l2_caches) for name, order in orders.items()}
    for name, order in orders.items():
        waves = [_wave(wave_ctas, tensors, l2_caches) for wave_ctas in _split_into_waves(order, ctas_per_wave)]
        yield AlternativeOrder(name, sum(wave.distinct_bytes_read for wave in waves), waves[0].distinct_tiles)
