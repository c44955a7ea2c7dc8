"""The number of elements that a layout conversion keeps in shared memory at a time.

There are two generations. Until Triton 3.3, and on AMD, one tile of both layouts is converted at a time
and its rows are padded. From 3.4 on, NVIDIA's conversions swizzle. The part that both sides hold in the
same registers is converted in several passes.

Source: getScratchConfigForCvt in Triton's lib/Analysis/Allocation.cpp (2.1 to 3.3; for AMD still in
third_party/amd/lib/Analysis); optimalSwizzlingLdSt in lib/Tools/GenericSwizzling.cpp.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from enum import Enum
from functools import lru_cache
from typing import NamedTuple

from artifact_inspector.analysis.shared.layouts import Bases, Layout, span
from artifact_inspector.model.encoding import LayoutKind

_BANKS = 32 * 32
"""Bits that all banks deliver in one cycle."""
_VECTOR = 128
"""Bits of the widest access of one thread."""


def padded_elements(source: Layout, target: Layout, bits: int, release: tuple[int, int]) -> int:
    """Elements, including padding, of one padded tile, as Triton up to 3.5 computes it."""
    shape = [
        max(min(extent, a), min(extent, b))
        for extent, a, b in zip(source.shape, _tile(source, release), _tile(target, release), strict=True)
    ]
    inner, outer = _order(source, release), _order(target, release)
    if release < (3, 2):  # a matrix operation's result has the order of the other side
        inner, outer = (
            (outer, outer)
            if source.kind is LayoutKind.MMA
            else (inner, inner)
            if target.kind is LayoutKind.MMA
            else (inner, outer)
        )
    fastest, last = outer[0], len(shape) - 1
    if len(shape) > 1 and (release < (3, 2) or math.prod(shape) != shape[fastest]):
        write = source.contiguous[last] if fastest == last == inner[0] else 1
        odd = source.kind is LayoutKind.MMA or (target.kind is LayoutKind.MMA and release < (3, 2))
        read = target.contiguous[_order(target, release)[0]] if fastest == last or odd else 1
        most = max(1, _VECTOR // bits) if release >= (3, 3) else max(write, read)
        shape[fastest] += min(most, max(write, read))
    return math.prod(shape)


def _tile(layout: Layout, release: tuple[int, int]) -> tuple[int, ...]:
    """The tile. From 3.3 on it ends, along each axis, with the farthest lane or warp."""
    if release < (3, 3):
        return layout.tile
    bases = (*layout.lane, *layout.warp)
    return tuple(
        max(1, *(2 * layout.moves(basis, axis) for basis in bases)) for axis in range(len(layout.shape))
    )


def _order(layout: Layout, release: tuple[int, int]) -> tuple[int, ...]:
    """Axes, fastest first. From 3.3 on this is the order of the registers, not the layout's own.

    Until 3.2 the axes of AMD's matrix operations are reversed.
    """
    if release < (3, 3):
        return layout.order[::-1] if layout.kind is LayoutKind.MFMA else layout.order
    axes = [layout.axis_of(basis) for basis in layout.register if basis]
    return tuple(dict.fromkeys([*axes, *reversed(range(len(layout.shape)))]))


class Access(NamedTuple):
    """A store to or load from shared memory of 128 bits for each of 8 threads."""

    contiguous: tuple[int, ...]
    """Bits of the lane number that move along one row."""
    address: tuple[int, ...]
    """Bits of the lane number that select the row."""


VECTOR = Access((), (0, 1, 2))
"""`ld.shared.v4.b32`: each thread accesses its own row."""
MATRIX = Access((0, 1), (2, 3, 4))
"""`ldmatrix`, `stmatrix`: four threads share a row."""
TRANSPOSED = Access((2, 3, 4), (0, 1))
"""The same with `.trans`, for 16 bits only."""


def swizzled_elements(
    source: Layout,
    target: Layout,
    bits: int,
    stores: Sequence[Access] = (),
    loads: Sequence[Access] = (),
) -> int:
    """Elements of one pass of a swizzled conversion.

    Args:
        stores: wide stores of the GPU. If none fits the layouts, plain ones are used.
        loads: wide loads of the GPU.
    """
    a, b = _without_zeros(source.register), _without_zeros(target.register)
    dim = math.prod(source.shape).bit_length() - 1
    ways: list[tuple[int, int]] = []
    for store in stores:
        for load in loads:
            wide = _wide(source, target, (a, b), (store, load), bits, dim)
            if wide is not None:
                ways.append(wide)
    if ways:  # the fewest bank conflicts, then the most passes
        return 1 << (dim + min((conflicts, -turns) for conflicts, turns in ways)[1])
    vector = _vector(a, b, source.lane, target.lane, bits)
    bank_a = [*vector, *_bank(a, source.lane, vector, bits)]
    bank_b = [*vector, *_bank(b, target.lane, vector, bits)]
    segment = _segment(bank_a, bank_b, dim, _rows(vector, bits, dim))
    return 1 << (dim - sum(1 for basis in segment if basis in a and basis in b))


def _rows(vector: list[int], bits: int, dim: int) -> int:
    """Number of bases that distinguish the rows of all banks."""
    banks = min(max(0, (_BANKS // ((1 << len(vector)) * bits)).bit_length() - 1), dim - len(vector))
    return dim - banks - len(vector)


def _wide(
    source: Layout,
    target: Layout,
    registers: tuple[Bases, Bases],
    pair: tuple[Access, Access],
    bits: int,
    dim: int,
) -> tuple[int, int] | None:
    """Bank conflicts of two wide accesses, and the bases converted in passes; None if they do not fit."""
    a, b = registers
    for lane, access in zip((source.lane, target.lane), pair, strict=True):
        if max(access.contiguous + access.address) >= len(lane):
            return None  # a warp with fewer lanes than any GPU has
    vector = _shared_row(
        (a, source.lane, pair[0].contiguous),
        (b, target.lane, pair[1].contiguous),
        (_VECTOR // bits).bit_length() - 1,
    )
    if vector is None:
        return None
    tiles = []
    for own, lane, access in ((a, source.lane, pair[0]), (b, target.lane, pair[1])):
        needed = 3 - len(access.address)
        spare = [basis for basis in own if basis not in vector][:needed]
        if len(spare) < needed:
            return None
        tiles.append([*spare, *(lane[bit] for bit in access.address)])
    segment = _segment([*vector, *tiles[0]], [*vector, *tiles[1]], dim, _rows(vector, bits, dim))
    conflicts = sum((1 << sum(1 for basis in segment if basis in tile)) - 1 for tile in tiles)
    kept = min(len(access.contiguous) + len(access.address) - 3 for access in pair)
    turns = sum(1 for basis in segment if basis in a and basis in b)
    return conflicts, max(0, turns - kept)


def _shared_row(
    a: tuple[Bases, Bases, tuple[int, ...]], b: tuple[Bases, Bases, tuple[int, ...]], row: int
) -> list[int] | None:
    """Bases of a row of 128 bits that both accesses can move; None if there is none."""
    if len(a[2]) > len(b[2]):
        a, b = b, a  # `a` has more of the row in registers
    (registers_a, lanes_a, contiguous_a), (registers_b, lanes_b, contiguous_b) = a, b
    if len(contiguous_b) > row:
        return None
    common = [basis for basis in registers_a if basis in registers_b]
    if len(common) < row - len(contiguous_b):
        return None
    shared = [lanes_b[bit] for bit in contiguous_b]
    if 0 in shared or any(lanes_a[bit] == 0 for bit in contiguous_a):
        return None
    apart = len(contiguous_b) - len(contiguous_a)
    if any(basis not in registers_a for basis in shared[:apart]):
        return None
    if shared[apart:] != [lanes_a[bit] for bit in contiguous_a]:
        return None
    return [*common[: row - len(contiguous_b)], *shared]


def _vector(a: Bases, b: Bases, lane_a: Bases, lane_b: Bases, bits: int) -> list[int]:
    """Bases of the elements that one access moves together."""
    found = [basis for basis in a if basis in b][: (_VECTOR // bits).bit_length() - 1]
    first = a
    other = lane_b
    if (1 << len(found)) * bits < 32:
        word = (32 // bits).bit_length() - 1
        lead_a = [*found, *(x for x in a if x not in found)]
        lead_b = [*found, *(x for x in b if x not in found)]
        if a[: len(found)] == tuple(found) and b[: len(found)] != tuple(found):
            filled, first, other = lead_a[:word], a, lane_b
        elif b[: len(found)] == tuple(found) and a[: len(found)] != tuple(found):
            filled, first, other = lead_b[:word], b, lane_a
        else:
            more_a = _also(lead_a, lead_a[:word], lane_b, bits)
            more_b = _also(lead_b, lead_b[:word], lane_a, bits)
            if more_a >= more_b:
                filled, first, other = lead_a[:word], tuple(lead_a), lane_b
            else:
                filled, first, other = lead_b[:word], tuple(lead_b), lane_a
        found = filled if len(filled) > len(found) else found
    return [*found, *_also(first, found, other, bits)]


def _also(registers: Sequence[int], used: list[int], lanes: Bases, bits: int) -> list[int]:
    """Register bases that the other side has among its lanes, as many as one access allows."""
    most = (_VECTOR // max(bits, 32)).bit_length() - 1
    found: list[int] = []
    for basis in registers:
        if basis in used:
            continue
        if basis in lanes:
            found.append(basis)
        if len(found) == most:
            break
    return found


def _bank(registers: Bases, lanes: Bases, vector: list[int], bits: int) -> list[int]:
    """Lanes that access the banks at once: fewer for wider accesses."""
    width = 0
    while width < len(vector) and width < len(registers) and registers[width] == vector[width]:
        width += 1
    wide = ((1 << width) * bits // 32).bit_length() - 1 if (1 << width) * bits > 32 else 0
    return [basis for basis in lanes[: len(lanes) - wide] if basis not in vector]


def _segment(bank_a: list[int], bank_b: list[int], dim: int, length: int) -> list[int]:
    a, b = set(bank_a) - {0}, set(bank_b) - {0}
    found = [1 << bit for bit in range(dim) if 1 << bit not in a and 1 << bit not in b]
    if len(found) >= length:
        return found[:length]
    small, large = sorted((sorted(a - b), sorted(b - a)), key=len)
    conflicts = min(max(0, length - len(small) - len(found)), len(small))
    found += [x ^ y for x, y in zip(small[conflicts:], large[conflicts:], strict=False)]
    found += small[:conflicts] + large[:conflicts]
    return found[:length]


class Reach(Enum):
    """How far the data of a conversion moves."""

    THREAD = "thread"
    WARP = "warp"
    BLOCK = "block"


@lru_cache(maxsize=512)
def reach(source: Layout, target: Layout, *, is_handed_on: bool = True) -> Reach:
    """The distance between the threads that a conversion moves data between.

    Args:
        is_handed_on: of warps with the same data, one passes it to the others, as Triton usually does.
    """

    def covers(own: Bases, pairs: Sequence[tuple[int, int]], rest: Bases) -> bool:
        """True if `rest`, and the differences of the pairs, are in the span of `own`."""
        space = span(own)
        return all(_reduced(x ^ y, space) == 0 for x, y in pairs) and all(
            _reduced(x, space) == 0 for x in rest
        )

    lanes = list(zip(source.lane, target.lane, strict=False))
    warps = list(zip(source.warp, target.warp, strict=False))
    if is_handed_on and any(x == 0 != y for x, y in warps):
        return Reach.BLOCK
    if not any(x == 0 != y for x, y in lanes) and covers(source.register, [*lanes, *warps], target.register):
        return Reach.THREAD
    if covers((*source.register, *source.lane), warps, (*target.register, *target.lane)):
        return Reach.WARP
    return Reach.BLOCK


def swapped_bits(source: Layout, target: Layout) -> int:
    """Number of register-number bits that are exchanged with lane-number bits."""
    a, b = span(source.register), span(target.register)
    both = len(span([*a, *b]))
    return max(both - len(a), both - len(b))


def _reduced(number: int, space: list[int]) -> int:
    for basis in space:
        number = min(number, number ^ basis)
    return number


def _without_zeros(bases: Bases) -> Bases:
    """Registers that hold different elements: Triton drops broadcast copies."""
    kept: list[int] = []
    for basis in bases:
        if basis and len(span([*kept, basis])) > len(kept):
            kept.append(basis)
    return tuple(kept)
