"""The assignment of elements to threads: register layouts as linear maps over bits.

A layout is three lists of bases. Bit i of a thread's register number (lane number, warp number) moves its element by
basis i. The moves of several bits are combined by exclusive or. Elements are numbered with the first axis fastest, as
in Triton, because its tie-breaking depends on the order.

Source: LinearLayout.h, LinearLayoutConversions.cpp and TritonGPUAttrDefs.td of Triton.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import NamedTuple

from artifact_inspector.model import TensorType
from artifact_inspector.model.encoding import Encoding, LayoutKind

Bases = tuple[int, ...]
Move = tuple[int, ...]
"""Distance that a bit moves along each axis."""


class Layout(NamedTuple):
    """The elements of a tensor that the registers, lanes and warps of a block hold."""

    shape: tuple[int, ...]
    register: Bases
    lane: Bases
    warp: Bases
    tile: tuple[int, ...]
    """Extents that all threads cover in one repetition of the layout's pattern, along each axis."""
    order: tuple[int, ...]
    """Axes, fastest first."""
    contiguous: tuple[int, ...]
    """Contiguous elements along each axis in one thread's registers."""
    kinds: tuple[LayoutKind, ...]
    """Its kind, then the kind of the layout that it is a slice or an operand of, and so on."""

    @property
    def kind(self) -> LayoutKind:
        """The kind of the layout."""
        return self.kinds[0]

    @property
    def is_one_to_one(self) -> bool:
        """True if no two registers of the block hold the same element."""
        bases = (*self.register, *self.lane, *self.warp)
        return len(span(bases)) == len(bases)

    def moves(self, basis: int, axis: int) -> int:
        """Distance that a basis moves along an axis."""
        return basis // math.prod(self.shape[:axis]) % self.shape[axis]

    def axis_of(self, basis: int) -> int:
        """The axis along which a basis moves; the slowest of several."""
        return next((a for a in reversed(range(len(self.shape))) if self.moves(basis, a)), 0)


def read_layout(tensor: TensorType, threads_per_warp: int) -> Layout | None:
    """The layout of a tensor in registers; None for one that is not modelled."""
    return None if tensor.encoding is None else _cached_layout(tensor.encoding, tensor.shape, threads_per_warp)


@lru_cache(maxsize=1024)
def _cached_layout(encoding: Encoding, shape: tuple[int, ...], threads_per_warp: int) -> Layout | None:
    if any(extent & (extent - 1) or extent == 0 for extent in shape):
        return None
    try:
        pattern = _pattern(encoding, shape, threads_per_warp)
    except LookupError:  # a damaged text: a list is missing, or shorter than the others
        return None
    if pattern is None or len(pattern.tile) != len(shape) or len(pattern.order) != len(shape):
        return None
    return _fit(pattern, shape, tuple(link.kind for link in encoding.chain))


def span(bases: Iterable[int]) -> list[int]:
    """An independent set that spans the same numbers, each with a different highest bit."""
    independent: list[int] = []
    for basis in bases:
        for element in independent:
            basis = min(basis, basis ^ element)
        if basis:
            independent.append(basis)
            independent.sort(reverse=True)
    return independent


def extent_along(bases: Bases, shape: tuple[int, ...], axis: int) -> int:
    """Number of different positions along one axis that these bases reach."""
    stride = math.prod(shape[:axis])
    mask = (shape[axis] - 1) * stride
    return 1 << len(span(basis & mask for basis in bases))


class _LayoutPattern(NamedTuple):
    """A layout before it is cut or repeated to fill a tensor."""

    register: list[Move]
    lane: list[Move]
    warp: list[Move]
    order: tuple[int, ...]
    tile: tuple[int, ...]


def _pattern(encoding: Encoding, shape: tuple[int, ...], threads: int) -> _LayoutPattern | None:
    dims: list[int] = []
    for link in encoding.chain:
        encoding = link
        if link.kind is not LayoutKind.SLICE:
            break
        if link.dim is None or link.dim > len(shape):
            return None
        dims.append(link.dim)
        shape = (*shape[: link.dim], 1, *shape[link.dim :])
    reader = _READERS.get(encoding.kind)
    pattern = None if reader is None else reader(encoding, shape, threads)
    for dim in reversed(dims):
        if pattern is None:
            return None
        pattern = _remove_axis(pattern, dim)
    return pattern


def _operand(encoding: Encoding, shape: tuple[int, ...], threads: int) -> _LayoutPattern | None:
    """The operand of a dot with another layout."""
    parent, operand, width = encoding.parent, encoding.operand, encoding.width or 0
    if parent is None or operand not in (0, 1) or len(shape) != 2:
        return None
    warps = parent.warps or ()
    if parent.kind is LayoutKind.BLOCKED:
        return _blocked_operand(parent, 1 - operand, shape)
    if len(warps) != 2 or not width:
        return None
    if parent.kind is LayoutKind.MMA and parent.version in (2, 3):
        return _mma_operand(warps, operand, width, parent.version)
    if parent.kind is LayoutKind.MFMA and _is_plain_mfma(parent, threads):
        return _mfma_operand(warps, (parent.instruction or ())[0], operand, width)
    if parent.kind is LayoutKind.WMMA and threads == 32:
        return _wmma_operand(warps, operand, width, halves=1 if parent.version in (None, 1) else 2)
    return None


def _is_plain_mfma(encoding: Encoding, threads: int) -> bool:
    return threads == 64 and set(encoding.tiles_per_warp or (1,)) == {1}


class _BasisBuilder:
    """Stacks bases: each move starts where the last one along its axis ended."""

    def __init__(self, rank: int) -> None:
        self.reach = [1] * rank

    def along(self, axis: int, extent: int) -> list[Move]:
        """Bases for `extent` further positions along an axis."""
        bases = []
        while extent > 1:
            bases.append(tuple(self.reach[axis] if a == axis else 0 for a in range(len(self.reach))))
            self.reach[axis] *= 2
            extent //= 2
        return bases

    def repeated(self, extent: int) -> list[Move]:
        """Bases for `extent` threads that all hold the same element."""
        return [(0,) * len(self.reach)] * (extent.bit_length() - 1)

    def warps(self, counts: tuple[int, ...], order: tuple[int, ...], outer: int) -> list[Move]:
        """Bases of the warps of an operand: only those along its outer axis hold other elements."""
        moves = (self.along(axis, counts[axis]) if axis == outer else self.repeated(counts[axis]) for axis in order)
        return [move for axis_moves in moves for move in axis_moves]


def _blocked(encoding: Encoding, _: tuple[int, ...], __: int) -> _LayoutPattern:
    order = encoding.order or ()
    builder = _BasisBuilder(len(order))
    levels = [[b for axis in order for b in builder.along(axis, size[axis])] for size in _sizes(encoding)]
    return _LayoutPattern(levels[0], levels[1], levels[2], order, tuple(builder.reach))


def _sizes(encoding: Encoding) -> tuple[tuple[int, ...], ...]:
    """Extents of a thread, a warp and the block along each axis."""
    return encoding.size_per_thread or (), encoding.threads_per_warp or (), encoding.warps or ()


def _mma(encoding: Encoding, _: tuple[int, ...], __: int) -> _LayoutPattern | None:
    warps, version = encoding.warps or (), encoding.version
    if len(warps) != 2 or version not in (2, 3):
        return None
    m, n = (16, 8) if version == 2 else (16, (encoding.instruction or (16, 8))[1])
    builder = _BasisBuilder(2)
    register = builder.along(1, 2)
    lane = [*builder.along(1, 4), *builder.along(0, 8)]
    register += [*builder.along(0, m // 8), *builder.along(1, n // 8)]
    order = (1, 0) if version == 2 else (0, 1)
    warp = [b for axis in order for b in builder.along(axis, warps[axis])]
    return _LayoutPattern(register, lane, warp, (1, 0), tuple(builder.reach))


def _mma_operand(warps: tuple[int, ...], operand: int, width: int, version: int) -> _LayoutPattern:
    k, outer = (1, 0) if operand == 0 else (0, 1)
    builder = _BasisBuilder(2)
    register = builder.along(k, width)
    lane = [*builder.along(k, 4), *builder.along(outer, 8)]
    if operand == 0:
        register += builder.along(outer, 2)
    register += builder.along(k, 2)
    warp = builder.warps(warps, (1, 0) if version == 2 else (0, 1), outer)
    return _LayoutPattern(register, lane, warp, (k, outer), tuple(builder.reach))


def _mfma(encoding: Encoding, _: tuple[int, ...], threads: int) -> _LayoutPattern | None:
    warps, m = encoding.warps or (), (encoding.instruction or (0,))[0]
    if len(warps) != 2 or m not in (16, 32) or not _is_plain_mfma(encoding, threads):
        return None
    rows, columns = (1, 0) if encoding.is_transposed else (0, 1)
    builder = _BasisBuilder(2)
    register = builder.along(rows, 4)
    lane = [*builder.along(columns, m), *builder.along(rows, 64 // m)]
    register += builder.along(rows, m // (4 * 64 // m))
    warp = [b for axis in (1, 0) for b in builder.along(axis, warps[axis])]
    return _LayoutPattern(register, lane, warp, (rows, columns), tuple(builder.reach))


def _mfma_operand(warps: tuple[int, ...], m: int, operand: int, width: int) -> _LayoutPattern | None:
    if m not in (16, 32):
        return None
    k, outer = 1 - operand, operand
    builder = _BasisBuilder(2)
    register = builder.along(k, width)
    lane = [*builder.along(outer, m), *builder.along(k, 64 // m)]
    return _LayoutPattern(register, lane, builder.warps(warps, (1, 0), outer), (k, outer), tuple(builder.reach))


def _blocked_operand(parent: Encoding, k: int, shape: tuple[int, ...]) -> _LayoutPattern:
    """Every thread holds all of k: a dot of multiply-adds, without matrix instructions."""
    sizes, order = _sizes(parent), parent.order or ()
    builder = _BasisBuilder(2)
    register = [b for a in order for b in builder.along(a, shape[a] if a == k else sizes[0][a])]
    lane, warp = (
        [b for a in order for b in (builder.repeated(size[a]) if a == k else builder.along(a, size[a]))]
        for size in sizes[1:]
    )
    return _LayoutPattern(register, lane, warp, order, tuple(builder.reach))


def _wmma(encoding: Encoding, _: tuple[int, ...], threads: int) -> _LayoutPattern | None:
    if threads != WMMA_LANES:
        return None
    rows, columns = (1, 0) if encoding.is_transposed else (0, 1)
    builder = _BasisBuilder(2)
    if encoding.version in (None, 1):  # neighbouring rows are in the two halves of a warp
        lane = [*builder.along(columns, 16), *builder.along(rows, 2)]
        register = builder.along(rows, 8)
    else:
        register = builder.along(rows, 8)
        lane = [*builder.along(columns, 16), *builder.along(rows, 2)]
    order = (rows, columns)
    if encoding.warps is not None:
        if len(encoding.warps) != 2:
            return None
        warp = [b for axis in (1, 0) for b in builder.along(axis, encoding.warps[axis])]
        return _LayoutPattern(register, lane, warp, order, tuple(builder.reach))
    # From 3.7 on the tiles of a block are a separate linear layout.
    repeated, warp = (
        [tuple(16 * n for n in vector) for vector in vectors or ()] for vectors in (encoding.register, encoding.warp)
    )
    if any(len(move) != 2 for move in (*repeated, *warp)):
        return None
    reach = [16, 16]
    for move in (*warp, *repeated):
        for axis in (0, 1):
            reach[axis] = max(reach[axis], 2 * move[axis])
    return _LayoutPattern([*register, *repeated], lane, warp, order, tuple(reach))


WMMA_LANES = 32
"""Lanes of the waves for which Triton uses `wmma`."""


def _wmma_operand(warps: tuple[int, ...], operand: int, width: int, *, halves: int) -> _LayoutPattern:
    """The pattern of a WMMA operand.

    `halves` is 1 if both halves of a warp hold all of k (gfx11), 2 if each holds its own part.
    """
    k, outer = 1 - operand, operand
    builder = _BasisBuilder(2)
    register = builder.along(k, width)
    lane = [*builder.along(outer, 16), *(builder.along(k, 2) if halves == 2 else builder.repeated(2))]
    return _LayoutPattern(register, lane, builder.warps(warps, (1, 0), outer), (k, outer), tuple(builder.reach))


def _linear(encoding: Encoding, shape: tuple[int, ...], _: int) -> _LayoutPattern | None:
    levels = (encoding.register, encoding.lane, encoding.warp)
    register, lane, warp = (None if vectors is None else list(vectors) for vectors in levels)
    if register is None or lane is None or warp is None:
        return None
    if any(len(vector) != len(shape) for vector in (*register, *lane, *warp)):
        return None
    first = [next((a for a, move in enumerate(vector) if move), 0) for vector in register]
    order = tuple(dict.fromkeys([*first, *reversed(range(len(shape)))]))
    return _LayoutPattern(register, lane, warp, order, shape)


_READERS: dict[LayoutKind, Callable[[Encoding, tuple[int, ...], int], _LayoutPattern | None]] = {
    LayoutKind.BLOCKED: _blocked, LayoutKind.LINEAR: _linear, LayoutKind.DOT_OPERAND: _operand, LayoutKind.MMA: _mma,
    LayoutKind.MFMA: _mfma, LayoutKind.WMMA: _wmma,
}  # fmt: skip
"""Kind → function from a layout, the shape of its tensor and the lanes of a warp to its pattern."""


def _remove_axis(pattern: _LayoutPattern, dim: int) -> _LayoutPattern:

    def cut(bases: list[Move]) -> list[Move]:
        return [(*b[:dim], *b[dim + 1 :]) for b in bases]

    order = tuple(axis - (axis > dim) for axis in pattern.order if axis != dim)
    # Registers that differ only along the removed axis hold the same element and are one register here.
    register = [b for b in cut(pattern.register) if any(b)]
    tile = (*pattern.tile[:dim], *pattern.tile[dim + 1 :])
    return _LayoutPattern(register, cut(pattern.lane), cut(pattern.warp), order, tile)


def _fit(pattern: _LayoutPattern, shape: tuple[int, ...], kinds: tuple[LayoutKind, ...]) -> Layout:
    """A pattern cut to the extent of the tensor, or repeated in registers to fill it."""
    strides = [math.prod(shape[:axis]) for axis in range(len(shape))]

    def flat(basis: tuple[int, ...]) -> int:
        return sum(move % extent * stride for move, extent, stride in zip(basis, shape, strides, strict=True))

    register = [flat(basis) for basis in pattern.register]
    reach = list(pattern.tile)
    for axis in pattern.order:
        while reach[axis] < shape[axis]:
            register.append(reach[axis] * strides[axis])
            reach[axis] *= 2
    return Layout(
        shape,
        tuple(register),
        tuple(flat(basis) for basis in pattern.lane),
        tuple(flat(basis) for basis in pattern.warp),
        pattern.tile,
        pattern.order,
        tuple(_contiguous(pattern.register, axis, extent) for axis, extent in enumerate(shape)),
        kinds,
    )


def _contiguous(register: list[Move], axis: int, extent: int) -> int:
    run_length = 1
    for basis in register:
        if sum(basis) == basis[axis] == run_length < extent:
            run_length *= 2
    return run_length
