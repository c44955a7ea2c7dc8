"""Which thread holds which element: register layouts as linear maps over bits.

A layout is three lists of bases. Bit i of a thread's register number (lane number, warp number)
moves the element it names by basis i; the moves of several bits add up by exclusive or. Elements
are numbered with the first axis fastest, as Triton does: where it breaks ties, the order counts.

Source: LinearLayout.h, LinearLayoutConversions.cpp and TritonGPUAttrDefs.td of Triton.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass

from artifact_inspector.model import TensorType

__all__ = ["Bases", "Layout", "extent_along", "read_layout", "short_name", "span"]

Bases = tuple[int, ...]

_LIST = re.compile(r"(\w+) = \[([\d, ]*)\]")
_NUMBER = re.compile(r"(\w+) = (\d+|true|false)")
_LINEAR = re.compile(r"(register|lane|warp) = \[((?:\[[\d, ]*\](?:, )?)*)\]")
_VECTOR = re.compile(r"\[([\d, ]*)\]")
_KIND = re.compile(r"#[a-z_]+\.(\w+)<")
_PARENT = re.compile(r"parent = (#[^{]*\{)")

_NAMES = {
    "blocked": "blocked",
    "linear": "linear",
    "slice": "slice",
    "dot_op": "dot operand",
    "mma": "mma",
    "nvidia_mma": "mma",
    "amd_mfma": "mfma",
    "amd_wmma": "wmma",
    "shared": "shared",
    "swizzled_shared": "shared",
    "nvmma_shared": "shared",
    "padded_shared": "padded shared",
    "amd_rotating_shared": "shared",
}


@dataclass(frozen=True, slots=True)
class Layout:
    """Where the registers, lanes and warps of a block hold the elements of a tensor."""

    shape: tuple[int, ...]
    register: Bases
    lane: Bases
    warp: Bases
    tile: tuple[int, ...]
    """What all threads cover by one repetition of the layout's pattern, along each axis."""
    order: tuple[int, ...]
    """Axes, fastest first."""
    contiguous: tuple[int, ...]
    """Elements next to each other along each axis in one thread's registers."""
    kind: str
    """As `short_name` has it."""

    @property
    def is_one_to_one(self) -> bool:
        """True when no two registers of the block hold the same element."""
        bases = (*self.register, *self.lane, *self.warp)
        return len(span(bases)) == len(bases)

    def moves(self, basis: int, axis: int) -> int:
        """How far a basis moves along an axis."""
        return basis // math.prod(self.shape[:axis]) % self.shape[axis]

    def axis_of(self, basis: int) -> int:
        """The axis along which a basis moves; the slowest of several."""
        return next((a for a in reversed(range(len(self.shape))) if self.moves(basis, a)), 0)


def short_name(layout: str) -> str:
    """A layout's kind in a word or two: `blocked`, `dot operand`, `mma`; empty without layout."""
    kind = _KIND.match(layout)
    return "" if kind is None else _NAMES.get(kind[1], kind[1].replace("_", " "))


def read_layout(tensor: TensorType, threads_per_warp: int) -> Layout | None:
    """The layout of a tensor in registers; None for one that is not modelled."""
    if any(extent & (extent - 1) or extent == 0 for extent in tensor.shape):
        return None
    try:
        pattern = _pattern(tensor.layout, tensor.shape, threads_per_warp)
    except LookupError:  # a damaged text: a list is missing, or shorter than the others
        return None
    if pattern is None or len(pattern.tile) != len(tensor.shape) or len(pattern.order) != len(tensor.shape):
        return None
    return _fit(pattern, tensor.shape, short_name(tensor.layout))


def span(bases: Iterable[int]) -> list[int]:
    """An independent set that spans the same numbers, each with a highest bit of its own."""
    found: list[int] = []
    for basis in bases:
        for other in found:
            basis = min(basis, basis ^ other)
        if basis:
            found.append(basis)
            found.sort(reverse=True)
    return found


def extent_along(bases: Bases, shape: tuple[int, ...], axis: int) -> int:
    """By how many different places along one axis these bases move."""
    stride = math.prod(shape[:axis])
    mask = (shape[axis] - 1) * stride
    return 1 << len(span(basis & mask for basis in bases))


@dataclass(frozen=True, slots=True)
class _Pattern:
    """A layout before it is cut or repeated to fill a tensor; a basis has a move along each axis."""

    register: list[tuple[int, ...]]
    lane: list[tuple[int, ...]]
    warp: list[tuple[int, ...]]
    order: tuple[int, ...]
    tile: tuple[int, ...]


def _pattern(text: str, shape: tuple[int, ...], threads: int) -> _Pattern | None:
    found = _KIND.match(text)
    if found is None:
        return None
    kind = found[1]
    if kind in ("slice", "dot_op"):
        return _derived(kind, text, shape, threads)
    if kind == "linear":
        return _linear(text, shape)
    lists = {name: _integers(values) for name, values in _LIST.findall(text)}
    numbers = dict(_NUMBER.findall(text))
    if kind == "blocked" and {"sizePerThread", "threadsPerWarp", "warpsPerCTA", "order"} <= lists.keys():
        sizes = (lists["sizePerThread"], lists["threadsPerWarp"], lists["warpsPerCTA"])
        return _nested(sizes, lists["order"])
    if kind in ("nvidia_mma", "mma") and numbers.get("versionMajor") in ("2", "3"):
        return _mma(lists["warpsPerCTA"], lists.get("instrShape", (16, 8)), int(numbers["versionMajor"]))
    if kind == "amd_mfma" and threads == 64 and set(lists.get("tilesPerWarp", (1,))) == {1}:
        m = lists["instrShape"][0]
        return _mfma(lists["warpsPerCTA"], m, numbers.get("isTransposed") == "true")
    if kind == "amd_wmma" and threads == 32:
        return _wmma(text, lists, numbers)
    return None


def _derived(kind: str, text: str, shape: tuple[int, ...], threads: int) -> _Pattern | None:
    """A layout made of another: a slice of it, or an operand of a dot that has it."""
    found = _PARENT.search(text)
    if found is None:
        return None
    stop = text.rfind("}>", 0, text.rfind("}>")) + 2
    parent, own = text[found.start(1) : stop], text[: found.start()] + text[stop:]
    numbers = dict(_NUMBER.findall(own))
    if kind == "slice":
        return _slice(parent, int(numbers["dim"]), shape, threads) if "dim" in numbers else None
    if "opIdx" not in numbers or len(shape) != 2:
        return None
    operand, width = int(numbers["opIdx"]), int(numbers.get("kWidth", 0))
    lists = {name: _integers(values) for name, values in _LIST.findall(parent)}
    if short_name(parent) == "blocked" and "sizePerThread" in lists:
        sizes = (lists["sizePerThread"], lists["threadsPerWarp"], lists["warpsPerCTA"])
        return _blocked_operand(sizes, lists["order"], 1 - operand, shape)
    if short_name(parent) == "wmma" and threads == 32 and "warpsPerCTA" in lists:
        version = dict(_NUMBER.findall(parent)).get("version", "1")
        return _wmma_operand(lists["warpsPerCTA"], operand, width, halves=2 if version != "1" else 1)
    if short_name(parent) == "mma":
        return _mma_operand(parent, operand, width)
    if short_name(parent) == "mfma" and threads == 64 and set(lists.get("tilesPerWarp", (1,))) == {1}:
        return _mfma_operand(lists["warpsPerCTA"], lists["instrShape"][0], operand, width)
    return None


def _integers(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(",") if part.strip())


class _Builder:
    """Bases that are stacked on each other: each move starts where the last along its axis ended."""

    def __init__(self, rank: int) -> None:
        self.reach = [1] * rank

    def along(self, axis: int, extent: int) -> list[tuple[int, ...]]:
        """Bases for `extent` further places along an axis."""
        found = []
        while extent > 1:
            found.append(tuple(self.reach[axis] if a == axis else 0 for a in range(len(self.reach))))
            self.reach[axis] *= 2
            extent //= 2
        return found

    def nothing(self, extent: int) -> list[tuple[int, ...]]:
        """Bases for `extent` threads that all hold the same."""
        return [(0,) * len(self.reach)] * (extent.bit_length() - 1)


def _nested(sizes: tuple[tuple[int, ...], ...], order: tuple[int, ...]) -> _Pattern:
    builder = _Builder(len(order))
    levels = [[b for axis in order for b in builder.along(axis, size[axis])] for size in sizes]
    return _Pattern(levels[0], levels[1], levels[2], order, tuple(builder.reach))


def _mma(warps: tuple[int, ...], shape: tuple[int, ...], version: int) -> _Pattern | None:
    if len(warps) != 2:
        return None
    m, n = (16, 8) if version == 2 else (16, shape[1])
    builder = _Builder(2)
    register = builder.along(1, 2)
    lane = [*builder.along(1, 4), *builder.along(0, 8)]
    register += [*builder.along(0, m // 8), *builder.along(1, n // 8)]
    order = (1, 0) if version == 2 else (0, 1)
    warp = [b for axis in order for b in builder.along(axis, warps[axis])]
    return _Pattern(register, lane, warp, (1, 0), tuple(builder.reach))


def _mma_operand(parent: str, operand: int, width: int) -> _Pattern | None:
    lists = {name: _integers(values) for name, values in _LIST.findall(parent)}
    numbers = dict(_NUMBER.findall(parent))
    warps = lists.get("warpsPerCTA", ())
    if len(warps) != 2 or not width or numbers.get("versionMajor") not in ("2", "3"):
        return None
    k, outer = (1, 0) if operand == 0 else (0, 1)
    builder = _Builder(2)
    register = builder.along(k, width)
    lane = [*builder.along(k, 4), *builder.along(outer, 8)]
    if operand == 0:
        register += builder.along(outer, 2)
    register += builder.along(k, 2)
    order = (1, 0) if numbers["versionMajor"] == "2" else (0, 1)
    warp = [
        b
        for axis in order
        for b in (builder.along(axis, warps[axis]) if axis == outer else builder.nothing(warps[axis]))
    ]
    return _Pattern(register, lane, warp, (k, outer), tuple(builder.reach))


def _mfma(warps: tuple[int, ...], m: int, transposed: bool) -> _Pattern | None:
    if len(warps) != 2 or m not in (16, 32):
        return None
    rows, columns = (1, 0) if transposed else (0, 1)
    builder = _Builder(2)
    register = builder.along(rows, 4)
    lane = [*builder.along(columns, m), *builder.along(rows, 64 // m)]
    register += builder.along(rows, m // (4 * 64 // m))
    warp = [b for axis in (1, 0) for b in builder.along(axis, warps[axis])]
    return _Pattern(register, lane, warp, (rows, columns), tuple(builder.reach))


def _mfma_operand(warps: tuple[int, ...], m: int, operand: int, width: int) -> _Pattern | None:
    if len(warps) != 2 or m not in (16, 32) or not width:
        return None
    k, outer = 1 - operand, operand
    builder = _Builder(2)
    register = builder.along(k, width)
    lane = [*builder.along(outer, m), *builder.along(k, 64 // m)]
    warp = [
        b
        for axis in (1, 0)
        for b in (builder.along(axis, warps[axis]) if axis == outer else builder.nothing(warps[axis]))
    ]
    return _Pattern(register, lane, warp, (k, outer), tuple(builder.reach))


def _blocked_operand(
    sizes: tuple[tuple[int, ...], ...], order: tuple[int, ...], k: int, shape: tuple[int, ...]
) -> _Pattern:
    """Every thread holds all of k: a dot of multiply-adds, without matrix instructions."""
    builder = _Builder(2)
    register = [b for a in order for b in builder.along(a, shape[a] if a == k else sizes[0][a])]
    lane, warp = (
        [b for a in order for b in (builder.nothing(size[a]) if a == k else builder.along(a, size[a]))]
        for size in sizes[1:]
    )
    return _Pattern(register, lane, warp, order, tuple(builder.reach))


def _wmma(text: str, lists: dict[str, tuple[int, ...]], numbers: dict[str, str]) -> _Pattern | None:
    version = numbers.get("version", "1")
    rows, columns = (1, 0) if numbers.get("isTranspose", numbers.get("isTransposed")) == "true" else (0, 1)
    builder = _Builder(2)
    if version == "1":  # neighbouring rows lie in the two halves of a warp
        lane = [*builder.along(columns, 16), *builder.along(rows, 2)]
        register = builder.along(rows, 8)
    else:
        register = builder.along(rows, 8)
        lane = [*builder.along(columns, 16), *builder.along(rows, 2)]
    order = (rows, columns)
    if "warpsPerCTA" in lists:
        if len(lists["warpsPerCTA"]) != 2:
            return None
        warp = [b for axis in (1, 0) for b in builder.along(axis, lists["warpsPerCTA"][axis])]
        return _Pattern(register, lane, warp, order, tuple(builder.reach))
    # From 3.7 on the tiles of a block are a linear layout of their own.
    levels = {
        name: [_integers(vector) for vector in _VECTOR.findall(vectors)]
        for name, vectors in _LINEAR.findall(text)
    }
    moves = {name: [tuple(16 * n for n in vector) for vector in vectors] for name, vectors in levels.items()}
    if any(len(move) != 2 for vectors in moves.values() for move in vectors):
        return None
    warp = moves.get("warp", [])
    register += moves.get("register", [])
    reach = [16, 16]
    for move in (*warp, *moves.get("register", [])):
        for axis in (0, 1):
            reach[axis] = max(reach[axis], 2 * move[axis])
    return _Pattern(register, lane, warp, order, tuple(reach))


def _wmma_operand(warps: tuple[int, ...], operand: int, width: int, *, halves: int) -> _Pattern | None:
    """`halves`: 1 where both halves of a warp hold all of k (gfx11), 2 where each holds its own."""
    if len(warps) != 2 or not width:
        return None
    k, outer = 1 - operand, operand
    builder = _Builder(2)
    register = builder.along(k, width)
    lane = [*builder.along(outer, 16), *(builder.along(k, 2) if halves == 2 else builder.nothing(2))]
    warp = [
        b
        for axis in (1, 0)
        for b in (builder.along(axis, warps[axis]) if axis == outer else builder.nothing(warps[axis]))
    ]
    return _Pattern(register, lane, warp, (k, outer), tuple(builder.reach))


def _linear(text: str, shape: tuple[int, ...]) -> _Pattern | None:
    levels = {
        name: [_integers(vector) for vector in _VECTOR.findall(vectors)]
        for name, vectors in _LINEAR.findall(text)
    }
    if levels.keys() != {"register", "lane", "warp"}:
        return None
    if any(len(vector) != len(shape) for vectors in levels.values() for vector in vectors):
        return None
    first = [next((a for a, move in enumerate(v) if move), 0) for v in levels["register"]]
    order = tuple(dict.fromkeys([*first, *reversed(range(len(shape)))]))
    return _Pattern(levels["register"], levels["lane"], levels["warp"], order, shape)


def _slice(parent: str, dim: int, shape: tuple[int, ...], threads: int) -> _Pattern | None:
    whole = (*shape[:dim], 1, *shape[dim:])
    found = _pattern(parent, whole, threads)
    if found is None or dim > len(shape):
        return None

    def cut(bases: list[tuple[int, ...]]) -> list[tuple[int, ...]]:
        return [(*b[:dim], *b[dim + 1 :]) for b in bases]

    order = tuple(axis - (axis > dim) for axis in found.order if axis != dim)
    # Registers that differ along the lost axis alone hold the same and are one register here.
    register = [b for b in cut(found.register) if any(b)]
    return _Pattern(
        register, cut(found.lane), cut(found.warp), order, (*found.tile[:dim], *found.tile[dim + 1 :])
    )


def _fit(pattern: _Pattern, shape: tuple[int, ...], kind: str) -> Layout:
    """A pattern cut where the tensor ends, and repeated in registers where it goes on."""
    strides = [1] * len(shape)
    for axis in range(1, len(shape)):
        strides[axis] = strides[axis - 1] * shape[axis - 1]

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
        kind,
    )


def _contiguous(register: list[tuple[int, ...]], axis: int, extent: int) -> int:
    found = 1
    for basis in register:
        if sum(basis) == basis[axis] == found < extent:
            found *= 2
    return found
