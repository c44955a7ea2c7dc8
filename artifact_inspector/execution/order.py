"""The order of CTAs: what each wave of them reads, what it reads twice, and what another order would.

A wave is the CTAs that run side by side: as many as the GPU holds, in the order of their numbers. What
several of a wave read comes from memory once; what the launch reads in all may stay in the second-level cache
whatever the order.

**Source** Triton's tutorial on matrix multiplication, "L2 Cache Optimizations" (grouped order, and the
figures of the text book: 9×9 tiles, 90 blocks row-major, 54 grouped by 3).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from artifact_inspector.execution.interpreter.footprints import Footprint, Footprints
from artifact_inspector.execution.interpreter.memory import SECTOR
from artifact_inspector.execution.launch import Launch

__all__ = ["Box", "CtaOrder", "CtaReads", "OtherOrder", "Wave", "find_order"]

GROUPS = (2, 3, 4, 8, 16)
MOST_WAVES = 64
"""Waves that are told one by one."""
MOST_CTAS = 1024
"""CTAs whose reads are told one by one."""


@dataclass(frozen=True, slots=True)
class Wave:
    """CTAs that run side by side."""

    ctas: int
    distinct_bytes_read: int
    distinct_tiles: int | None
    """Blocks of the kernel's loads that they read, each counted once; None where blocks are not known."""
    bytes_asked: int
    """The same with what several read counted for each."""
    tiles_asked: int | None


@dataclass(frozen=True, slots=True)
class OtherOrder:
    """What the waves would read, were the same tiles computed in another order."""

    name: str
    """`row-major`, `column-major`, `grouped by 8`."""
    distinct_bytes_read: int
    """Of all waves together."""
    first_wave_tiles: int | None


@dataclass(frozen=True, slots=True)
class Box:
    """The part of a tensor that a CTA reads: the least that holds all of it, ends left out."""

    tensor: str
    rows: tuple[int, int]
    columns: tuple[int, int]
    """Of a tensor of two extents or more the last two, of one extent its elements; elsewhere in rows of 0."""


@dataclass(frozen=True, slots=True)
class CtaReads:
    """What one CTA reads, and the tile that it writes."""

    cta: int
    wave: int
    tile: tuple[int, int] | None
    """Row and column of the tile; None where they are no grid."""
    reads: tuple[Box, ...]


@dataclass(frozen=True, slots=True)
class CtaOrder:
    """A launch's waves."""

    ctas_per_wave: int
    basis: str
    """Whence the size of a wave is known."""
    waves: tuple[Wave, ...]
    waves_in_all: int
    distinct_bytes_read: int
    """Of all waves together, what two of them read counted for both."""
    bytes_asked: int
    footprint_bytes: int
    """Of the whole launch, each counted once."""
    fits_l2: bool | None
    """All that the launch reads stays in the second-level cache, whatever the order."""
    others: tuple[OtherOrder, ...]
    tiles: tuple[tuple[int, int], ...]
    """Row and column of the tile that each CTA writes, in the order of the CTAs; empty where they are no
    grid."""
    ctas: tuple[CtaReads, ...]
    """What each CTA reads, in their order; the first of very many."""


def find_order(
    launch: Launch,
    footprints: Footprints,
    tile_bytes: Mapping[str, int],
    ctas_per_wave: int,
    basis: str,
    l2_bytes: int | None,
) -> CtaOrder:
    """The waves of a launch.

    Args:
        launch: with an address for every tensor.
        footprints: of all its CTAs.
        tile_bytes: tensor → bytes of the block that one load of it reads.
        ctas_per_wave: that run side by side.
        basis: whence that is known.
        l2_bytes: of the second-level cache.
    """
    order = sorted(footprints.read)
    waves = [_wave(order[n : n + ctas_per_wave], footprints, tile_bytes)
             for n in range(0, len(order), ctas_per_wave)]  # fmt: skip
    whole = _union(order, footprints)
    tiles = _tiles(launch, footprints, order)
    return CtaOrder(
        ctas_per_wave=ctas_per_wave,
        basis=basis,
        waves=tuple(waves[:MOST_WAVES]),
        waves_in_all=len(waves),
        distinct_bytes_read=sum(wave.distinct_bytes_read for wave in waves),
        bytes_asked=sum(wave.bytes_asked for wave in waves),
        footprint_bytes=sum(whole.values()),
        fits_l2=None if l2_bytes is None else sum(whole.values()) <= l2_bytes,
        others=tuple(_others(order, tiles, footprints, tile_bytes, ctas_per_wave)),
        tiles=tuple(tiles),
        ctas=tuple(
            CtaReads(
                cta, at // ctas_per_wave, tiles[at] if tiles else None, _boxes(launch, footprints.read[cta])
            )
            for at, cta in enumerate(order[:MOST_CTAS])
        ),
    )


def _boxes(launch: Launch, read: Sequence[Footprint]) -> tuple[Box, ...]:
    """The part of each tensor that its pieces make up."""
    found = []
    for held in read:
        tensor = launch.tensors[held.tensor]
        piece = held.bytes // len(held.pieces)
        base = (tensor.pointer or 0) & -SECTOR
        ends = np.stack(
            [held.pieces.astype(np.int64) * piece, (held.pieces.astype(np.int64) + 1) * piece - 1]
        )
        inside = np.clip(ends + base - (tensor.pointer or 0), 0, tensor.bytes - 1) * 8 // tensor.bits
        row = tensor.strides[-2] if len(tensor.shape) > 1 else 0
        rows, columns = (inside // row, inside % row) if row else (0 * inside, inside)
        whole = bool(row) and bool((rows[0] != rows[1]).any())
        found.append(
            Box(
                held.tensor,
                (int(rows.min()), int(rows.max()) + 1),
                (0, row) if whole else (int(columns.min()), int(columns.max()) + 1),
            )
        )
    return tuple(found)


def _wave(ctas: Sequence[int], footprints: Footprints, tile_bytes: Mapping[str, int]) -> Wave:
    distinct = _union(ctas, footprints)
    asked: dict[str, int] = {}
    blocks: dict[str, int] = {}
    for cta in ctas:
        for held in footprints.read[cta]:
            asked[held.tensor] = asked.get(held.tensor, 0) + held.bytes
            if held.tensor in tile_bytes:  # at an edge, a part of a block is one
                whole = -(-held.bytes // tile_bytes[held.tensor])
                blocks[held.tensor] = blocks.get(held.tensor, 0) + whole
    shared = {name: round(count * distinct[name] / asked[name]) for name, count in blocks.items()}
    return Wave(
        len(ctas),
        sum(distinct.values()),
        sum(shared.values()) if blocks else None,
        sum(asked.values()),
        sum(blocks.values()) if blocks else None,
    )


def _union(ctas: Iterable[int], footprints: Footprints) -> dict[str, int]:
    """Tensor → bytes that some CTAs read of it, each counted once."""
    held: dict[str, dict[int, Footprint]] = {}
    for cta in ctas:
        for found in footprints.read[cta]:
            held.setdefault(found.tensor, {})[id(found)] = found
    sizes = {}
    for name, parts in held.items():
        own = list(parts.values())
        pieces = own[0].pieces if len(own) == 1 else np.unique(np.concatenate([part.pieces for part in own]))
        sizes[name] = len(pieces) * (own[0].bytes // len(own[0].pieces))
    return sizes


def _tiles(launch: Launch, footprints: Footprints, order: Sequence[int]) -> list[tuple[int, int]]:
    """Row and column of the tile that each CTA writes, by where it begins in a tensor of two extents."""
    starts: list[tuple[int, int]] = []
    for cta in order:
        written = footprints.writes.get(cta)
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
    order: Sequence[int],
    tiles: Sequence[tuple[int, int]],
    footprints: Footprints,
    tile_bytes: Mapping[str, int],
    ctas_per_wave: int,
) -> Iterable[OtherOrder]:
    if not tiles:
        return
    rows = 1 + max(row for row, _ in tiles)
    place = dict(zip(tiles, order, strict=True))
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
        ctas = [place[tile] for tile in way]
        waves = [_wave(ctas[n : n + ctas_per_wave], footprints, tile_bytes)
                 for n in range(0, len(ctas), ctas_per_wave)]  # fmt: skip
        yield OtherOrder(name, sum(wave.distinct_bytes_read for wave in waves), waves[0].distinct_tiles)
