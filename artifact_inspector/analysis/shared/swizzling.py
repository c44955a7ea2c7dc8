"""The number of elements that a layout conversion keeps in shared memory at a time.

There are two generations. Until Triton 3.3, and on AMD, one tile of both layouts is converted at a time and its rows
are padded. From 3.4 on, NVIDIA's conversions swizzle. The part that both sides hold in the same registers is converted
in several passes.

Source: getScratchConfigForCvt in Triton's lib/Analysis/Allocation.cpp (2.1 to 3.3; for AMD still in
third_party/amd/lib/Analysis); optimalSwizzlingLdSt in lib/Tools/GenericSwizzling.cpp.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from enum import Enum
from functools import lru_cache
from typing import NamedTuple

from artifact_inspector.analysis.shared.register_layouts import Bases, Layout, span
from artifact_inspector.model.encoding import LayoutKind

_BANKS = 32 * 32
"""Bits that all banks deliver in one cycle."""
_VECTOR = 128
"""Bits of the widest access of one thread."""


def padded_elements(source: Layout, target: Layout, bits: int, release: tuple[int, int]) -> int:
    """Elements, including padding, of one padded tile, as Triton up to 3.5 computes it."""
    tiles = zip(source.shape, _tile(source, release), _tile(target, release), strict=True)
    shape = [max(min(extent, a), min(extent, b)) for extent, a, b in tiles]
    inner, outer = _order(source, release), _order(target, release)
    if release < (3, 2):  # a matrix operation's result has the order of the other side
        if source.kind is LayoutKind.MMA:
            inner = outer
        elif target.kind is LayoutKind.MMA:
            outer = inner
    fastest, last = outer[0], len(shape) - 1
    if len(shape) > 1 and (release < (3, 2) or math.prod(shape) != shape[fastest]):
        store_run = source.contiguous[last] if fastest == last == inner[0] else 1
        odd = source.kind is LayoutKind.MMA or (target.kind is LayoutKind.MMA and release < (3, 2))
        load_run = target.contiguous[_order(target, release)[0]] if fastest == last or odd else 1
        max_padding = max(1, _VECTOR // bits) if release >= (3, 3) else max(store_run, load_run)
        shape[fastest] += min(max_padding, max(store_run, load_run))
    return math.prod(shape)


def _tile(layout: Layout, release: tuple[int, int]) -> tuple[int, ...]:
    """The tile. From 3.3 on it ends, along each axis, with the farthest lane or warp."""
    if release < (3, 3):
        return layout.tile
    bases = (*layout.lane, *layout.warp)
    return tuple(max((1, *(2 * layout.moves(basis, axis) for basis in bases))) for axis in range(len(layout.shape)))


def _order(layout: Layout, release: tuple[int, int]) -> tuple[int, ...]:
    """Axes, fastest first. From 3.3 on this is the order of the registers, not the layout's own.

    Until 3.2 the axes of AMD's matrix operations are reversed.
    """
    if release < (3, 3):
        return layout.order[::-1] if layout.kind is LayoutKind.MFMA else layout.order
    axes = [layout.axis_of(basis) for basis in layout.register if basis]
    return tuple(dict.fromkeys([*axes, *reversed(range(len(layout.shape)))]))


class WideAccess(NamedTuple):
    """A store to or load from shared memory of 128 bits for each of 8 threads."""

    contiguous: tuple[int, ...]
    """Bits of the lane number that move along one row."""
    address: tuple[int, ...]
    """Bits of the lane number that select the row."""


VECTOR = WideAccess((), (0, 1, 2))
"""`ld.shared.v4.b32`: each thread accesses its own row."""
MATRIX = WideAccess((0, 1), (2, 3, 4))
"""`ldmatrix`, `stmatrix`: four threads share a row."""
TRANSPOSED = WideAccess((2, 3, 4), (0, 1))
"""The same with `.trans`, for 16 bits only."""


def swizzled_elements(
    source: Layout, target: Layout, bits: int, stores: Sequence[WideAccess] = (), loads: Sequence[WideAccess] = ()
) -> int:
    """Elements of one pass of a swizzled conversion.

    Args:
        stores: wide stores of the GPU. If none fits the layouts, plain ones are used.
        loads: wide loads of the GPU.
    """
    a, b = _without_zeros(source.register), _without_zeros(target.register)
    dim = math.prod(source.shape).bit_length() - 1
    pairs = ((store, load) for store in stores for load in loads)
    wide = [_wide(source, target, (a, b), pair, bits, dim) for pair in pairs]
    options = [option for option in wide if option is not None]
    if options:  # the fewest bank conflicts, then the most passes
        return 1 << (dim + min((conflicts, -passes) for conflicts, passes in options)[1])
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
    pair: tuple[WideAccess, WideAccess],
    bits: int,
    dim: int,
) -> tuple[int, int] | None:
    """Bank conflicts of two wide accesses, and the bases converted in passes; None if they do not fit."""
    a, b = registers
    for lane, access in zip((source.lane, target.lane), pair, strict=True):
        if max(access.contiguous + access.address) >= len(lane):
            return None  # a warp with fewer lanes than any GPU has
    vector = _shared_row(
        (a, source.lane, pair[0].contiguous), (b, target.lane, pair[1].contiguous), (_VECTOR // bits).bit_length() - 1
    )
    if vector is None:
        return None
    tiles = []
    for side_registers, lane, access in ((a, source.lane, pair[0]), (b, target.lane, pair[1])):
        needed = 3 - len(access.address)
        spare = [basis for basis in side_registers if basis not in vector][:needed]
        if len(spare) < needed:
            return None
        tiles.append([*spare, *(lane[bit] for bit in access.address)])
    segment = _segment([*vector, *tiles[0]], [*vector, *tiles[1]], dim, _rows(vector, bits, dim))
    conflicts = sum((1 << sum(1 for basis in segment if basis in tile)) - 1 for tile in tiles)
    kept_bits = min(len(access.contiguous) + len(access.address) - 3 for access in pair)
    passes = sum(1 for basis in segment if basis in a and basis in b)
    return conflicts, max(0, passes - kept_bits)


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
    lane_difference = len(contiguous_b) - len(contiguous_a)
    if any(basis not in registers_a for basis in shared[:lane_difference]):
        return None
    if shared[lane_difference:] != [lanes_a[bit] for bit in contiguous_a]:
        return None
    return [*common[: row - len(contiguous_b)], *shared]


def _vector(a: Bases, b: Bases, lane_a: Bases, lane_b: Bases, bits: int) -> list[int]:
    """Bases of the elements that one access moves together."""
    vector_bases = [basis for basis in a if basis in b][: (_VECTOR // bits).bit_length() - 1]
    row = tuple(vector_bases)
    first, other_lanes = a, lane_b
    if (1 << len(row)) * bits < 32:
        word_bases = (32 // bits).bit_length() - 1
        lead_a = (*row, *(x for x in a if x not in row))
        lead_b = (*row, *(x for x in b if x not in row))
        leads_a, leads_b = a[: len(row)] == row, b[: len(row)] == row
        if leads_a == leads_b:
            more_a = _shared_bases(lead_a, lead_a[:word_bases], lane_b, bits)
            leads_a = more_a >= _shared_bases(lead_b, lead_b[:word_bases], lane_a, bits)
            a, b = lead_a, lead_b
        filled = (lead_a if leads_a else lead_b)[:word_bases]
        first, other_lanes = (a, lane_b) if leads_a else (b, lane_a)
        row = filled if len(filled) > len(row) else row
    return [*row, *_shared_bases(first, row, other_lanes, bits)]


def _shared_bases(registers: Bases, used: Bases, lanes: Bases, bits: int) -> list[int]:
    """Register bases that the other side has among its lanes, as many as one access allows."""
    max_bases = (_VECTOR // max(bits, 32)).bit_length() - 1
    return [basis for basis in registers if basis not in used and basis in lanes][:max_bases]


def _bank(registers: Bases, lanes: Bases, vector: list[int], bits: int) -> list[int]:
    """Lanes that access the banks at once: fewer for wider accesses."""
    width = 0
    while width < len(vector) and width < len(registers) and registers[width] == vector[width]:
        width += 1
    wide = ((1 << width) * bits // 32).bit_length() - 1 if (1 << width) * bits > 32 else 0
    return [basis for basis in lanes[: len(lanes) - wide] if basis not in vector]


def _segment(bank_a: list[int], bank_b: list[int], dim: int, length: int) -> list[int]:
    a, b = set(bank_a) - {0}, set(bank_b) - {0}
    segment = [1 << bit for bit in range(dim) if 1 << bit not in a and 1 << bit not in b]
    if len(segment) >= length:
        return segment[:length]
    small, large = sorted((sorted(a - b), sorted(b - a)), key=len)
    conflicts = min(max(0, length - len(small) - len(segment)), len(small))
    segment += [x ^ y for x, y in zip(small[conflicts:], large[conflicts:], strict=False)]
    segment += small[:conflicts] + large[:conflicts]
    return segment[:length]


class ConversionReach(Enum):
    """How far the data of a conversion moves."""

    THREAD = "thread"
    WARP = "warp"
    BLOCK = "block"


@lru_cache(maxsize=512)
def find_conversion_reach(source: Layout, target: Layout, *, passes_copies: bool = True) -> ConversionReach:
    """The distance between the threads that a conversion moves data between.

    Args:
        passes_copies: of warps with the same data, one passes it to the others, as Triton usually does.
    """

    def covers(basis_set: Bases, pairs: Sequence[tuple[int, int]], remaining: Bases) -> bool:
        """True if `remaining`, and the differences of the pairs, are in the span of `basis_set`."""
        space = span(basis_set)
        return all(_reduced(x ^ y, space) == 0 for x, y in pairs) and all(_reduced(x, space) == 0 for x in remaining)

    lanes = list(zip(source.lane, target.lane, strict=False))
    warps = list(zip(source.warp, target.warp, strict=False))
    if passes_copies and any(x == 0 != y for x, y in warps):
        return ConversionReach.BLOCK
    if not any(x == 0 != y for x, y in lanes) and covers(source.register, [*lanes, *warps], target.register):
        return ConversionReach.THREAD
    if covers((*source.register, *source.lane), warps, (*target.register, *target.lane)):
        return ConversionReach.WARP
    return ConversionReach.BLOCK


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
    independent: list[int] = []
    for basis in bases:
        if basis and len(span([*independent, basis])) > len(independent):
            independent.append(basis)
    return tuple(independent)
