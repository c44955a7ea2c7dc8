"""CTA order: what each wave of CTAs reads, what it reads twice, and the effect of other orders.

A wave is the set of CTAs that are resident at the same time: as many as the GPU holds, in order of their
numbers. Data that several CTAs of a wave read is fetched from memory once. If everything the launch reads
fits in L2, the order does not matter.

**Source** Triton's tutorial on matrix multiplication, "L2 Cache Optimizations" (grouped order, and the
figures of its example: 9×9 tiles, 90 blocks row-major, 54 grouped by 3).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from artifact_inspector.execution.interpreter.footprints import SECTOR, Footprints, Reads
from artifact_inspector.execution.interpreter.runs import Runs
from artifact_inspector.execution.launch import Launch

GROUPS = (2, 3, 4, 8, 16)
MOST_WAVES = 64
"""Most waves that are reported individually."""
MOST_CTAS = 1024
"""Most CTAs whose reads are reported individually."""


@dataclass(frozen=True, slots=True)
class Wave:
    """CTAs that are resident at the same time."""

    ctas: int
    distinct_bytes_read: int
    distinct_tiles: int | None
    """Distinct blocks of the kernel's loads that they read; None if blocks are unknown, or a CTA reads a part
    of one."""
    bytes_asked: int
    """Total of the bytes that each CTA reads."""
    tiles_asked: int | None


@dataclass(frozen=True, slots=True)
class OtherOrder:
    """What the waves would read if the same tiles were computed in another order."""

    name: str
    """`row-major`, `column-major`, `grouped by 8`."""
    distinct_bytes_read: int
    """Total of the distinct bytes of each wave."""
    first_wave_tiles: int | None


@dataclass(frozen=True, slots=True)
class Box:
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
    reads: tuple[Box, ...]


@dataclass(frozen=True, slots=True)
class CtaOrder:
    """The waves of a launch."""

    ctas_per_wave: int
    basis: str
    """How the size of a wave was determined."""
    waves: tuple[Wave, ...]
    waves_in_all: int
    distinct_bytes_read: int
    """Total of the distinct bytes of each wave."""
    bytes_asked: int
    footprint_bytes: int
    """Distinct bytes of the whole launch."""
    fits_l2: bool | None
    """Whether everything the launch reads and writes fits in L2, so that the order does not matter."""
    others: tuple[OtherOrder, ...]
    tiles: tuple[tuple[int, int], ...]
    """Row and column of the tile that each CTA writes, in CTA order; empty if the tiles are not a grid."""
    ctas: tuple[CtaReads, ...]
    """What each CTA reads, in order; only the first of very many."""


def find_order(
    launch: Launch,
    footprints: Footprints,
    tile_bytes: Mapping[str, int],
    ctas_per_wave: int,
    basis: str,
    fits_l2: bool | None,
) -> CtaOrder:
    """The waves of a launch.

    Args:
        launch: with an address for every tensor.
        footprints: of all its CTAs.
        tile_bytes: tensor → bytes of the block that one load of it reads.
        ctas_per_wave: resident CTAs of the GPU.
        basis: how that was determined.
        fits_l2: whether everything the launch reads and writes fits in L2.
    """
    order = np.arange(launch.ctas)
    tensors = [
        _Tensor(name, reads, launch.ctas, tile_bytes.get(name)) for name, reads in footprints.read.items()
    ]
    if not all(one.of_whole_blocks for one in tensors):
        for one in tensors:
            one.tile_bytes = None
    waves = [_wave(part, tensors) for part in _parts(order, ctas_per_wave)]
    whole = sum(one.distinct(order) for one in tensors)
    tiles = _tiles(launch, footprints, order.tolist())
    return CtaOrder(
        ctas_per_wave=ctas_per_wave,
        basis=basis,
        waves=tuple(waves[:MOST_WAVES]),
        waves_in_all=len(waves),
        distinct_bytes_read=sum(wave.distinct_bytes_read for wave in waves),
        bytes_asked=sum(wave.bytes_asked for wave in waves),
        footprint_bytes=whole,
        fits_l2=fits_l2,
        others=tuple(_others(order, tiles, tensors, ctas_per_wave)),
        tiles=tuple(tiles),
        ctas=tuple(
            CtaReads(
                cta,
                at // ctas_per_wave,
                tiles[at] if tiles else None,
                tuple(one.box(launch, cta) for one in tensors if one.which[cta] >= 0),
            )
            for at, cta in enumerate(order[:MOST_CTAS].tolist())
        ),
    )


class _Tensor:
    """What the CTAs read of one tensor.

    Args:
        name: of the tensor.
        reads: the recorded footprints.
        ctas: number of CTAs of the launch.
        tile_bytes: bytes of the block that one load of it reads, if known.
    """

    def __init__(self, name: str, reads: Reads, ctas: int, tile_bytes: int | None) -> None:
        self.name, self.reads, self.tile_bytes = name, reads, tile_bytes
        held = np.array(list(reads.form), np.int64)
        parts = np.array([list(reads.form.values()), list(reads.start.values())], np.int64)
        self.parts, which = np.unique(parts, axis=1, return_inverse=True)
        self.which = np.full(ctas, -1, np.int64)
        """CTA → index of its part; -1 if it reads none."""
        self.which[held] = which.ravel()
        self.sectors = np.array([runs.total for runs in reads.forms], np.int64)[self.parts[0]]
        """Sectors of each part."""
        self.of_whole_blocks = tile_bytes is None or not (self.sectors * SECTOR % tile_bytes).any()
        self.apart = False
        self.apart = self._union(np.arange(self.parts.shape[1])) == int(self.sectors.sum())
        """Whether no two parts share a sector."""
        self._boxes: dict[int, Box] = {}

    def _union(self, parts: NDArray[np.int64]) -> int:
        """Distinct sectors of some parts."""
        if self.apart or len(parts) < 2:
            return int(self.sectors[parts].sum())
        forms, starts = self.parts[:, parts]
        return Runs.together(
            [self.reads.forms[form].at(starts[forms == form]) for form in np.unique(forms).tolist()]
        ).total

    def distinct(self, ctas: NDArray[np.int64]) -> int:
        """Distinct bytes that some CTAs read."""
        which = np.unique(self.which[ctas])
        return self._union(which[which >= 0]) * SECTOR

    def asked(self, ctas: NDArray[np.int64]) -> tuple[int, int]:
        """Total bytes, and blocks, that some CTAs read, counted per CTA."""
        which = self.which[ctas]
        size = self.sectors[which[which >= 0]] * SECTOR
        return int(size.sum()), 0 if self.tile_bytes is None else int(size.sum()) // self.tile_bytes

    def box(self, launch: Launch, cta: int) -> Box:
        """The bounding box of what a CTA reads."""
        which = int(self.which[cta])
        found = self._boxes.get(which)
        if found is None:
            form, start = self.parts[:, which].tolist()
            found = self._boxes[which] = _box(
                launch, self.name, self.reads.base, self.reads.forms[form], start
            )
        return found


def _box(launch: Launch, name: str, base: int, runs: Runs, start: int) -> Box:
    tensor = launch.tensors[name]
    offset = base - (tensor.pointer or 0)
    ends = np.stack([runs.starts + start, runs.stops + start]) * SECTOR + offset - [[0], [1]]
    inside = np.clip(ends, 0, tensor.bytes - 1) * 8 // tensor.bits
    row = tensor.strides[-2] if len(tensor.shape) > 1 else 0
    rows, columns = (inside // row, inside % row) if row else (0 * inside, inside)
    whole = bool(row) and bool((rows[0] != rows[1]).any())
    return Box(
        name,
        (int(rows.min()), int(rows.max()) + 1),
        (0, row) if whole else (int(columns.min()), int(columns.max()) + 1),
    )


def _parts(order: NDArray[np.int64], size: int) -> list[NDArray[np.int64]]:
    return [order[at : at + size] for at in range(0, len(order), size)]


def _wave(ctas: NDArray[np.int64], tensors: Sequence[_Tensor]) -> Wave:
    distinct = asked = tiles = tiles_asked = 0
    blocks = False
    for one in tensors:
        size, (bytes_asked, blocks_asked) = one.distinct(ctas), one.asked(ctas)
        distinct, asked = distinct + size, asked + bytes_asked
        if one.tile_bytes is not None and bytes_asked:
            blocks = True
            tiles, tiles_asked = tiles + round(blocks_asked * size / bytes_asked), tiles_asked + blocks_asked
    return Wave(len(ctas), distinct, tiles if blocks else None, asked, tiles_asked if blocks else None)


def _tiles(launch: Launch, footprints: Footprints, order: Sequence[int]) -> list[tuple[int, int]]:
    """Row and column of the tile that each CTA writes, from its first address in a matrix."""
    starts: list[tuple[int, int]] = []
    writes = footprints.writes
    for cta in order:
        written = writes.get(cta)
        if written is None:
            return []
        tensor = launch.tensors[written[0]]
        if len(tensor.shape) < 2 or not tensor.strides[-2]:
            return []
        offset = (written[1] - (tensor.pointer or 0)) * 8 // tensor.bits
        starts.append((offset // tensor.strides[-2], offset % tensor.strides[-2]))
    rows = {row: at for at, row in enumerate(sorted({row for row, _ in starts}))}
    columns = {column: at for at, column in enumerate(sorted({column for _, column in starts}))}
    tiles = [(rows[row], columns[column]) for row, column in starts]
    return tiles if len(set(tiles)) == len(tiles) == len(rows) * len(columns) else []


def _grouped(group: int, tile: tuple[int, int]) -> tuple[int, int, int]:
    return tile[0] // group, tile[1], tile[0]


def _others(
    order: NDArray[np.int64],
    tiles: Sequence[tuple[int, int]],
    tensors: Sequence[_Tensor],
    ctas_per_wave: int,
) -> Iterable[OtherOrder]:
    if not tiles:
        return
    rows = 1 + max(row for row, _ in tiles)
    place = dict(zip(tiles, order.tolist(), strict=True))
    ways = {
        "row-major": sorted(tiles),
        "column-major": sorted(tiles, key=lambda tile: (tile[1], tile[0])),
        **{
            f"grouped by {group}": sorted(tiles, key=partial(_grouped, group))
            for group in GROUPS
            if group < rows
        },
    }
    for name, way in ways.items():
        ctas = np.array([place[tile] for tile in way], np.int64)
        waves = [_wave(part, tensors) for part in _parts(ctas, ctas_per_wave)]
        yield OtherOrder(name, sum(wave.distinct_bytes_read for wave in waves), waves[0].distinct_tiles)
