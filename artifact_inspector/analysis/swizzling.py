"""How many elements a layout conversion keeps in shared memory at a time.

Two generations of one step. Until Triton 3.3, and on AMD, a tile of the two layouts goes through at a
time and its rows are padded; from 3.4 on NVIDIA's conversions swizzle, and what both sides hold
in registers alike is left out and goes through in turns.

Source: getScratchConfigForCvt in Triton's lib/Analysis/Allocation.cpp (2.1 to 3.3; for AMD still in
third_party/amd/lib/Analysis); optimalSwizzlingLdSt in lib/Tools/GenericSwizzling.cpp.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum

from artifact_inspector.analysis.layouts import Bases, Layout, span

__all__ = ["Reach", "padded_elements", "reach", "swizzled_elements"]

_BANKS = 32 * 32
"""Bits that all banks deliver at once."""
_VECTOR = 128
"""Bits of the widest access of one thread."""


def padded_elements(source: Layout, target: Layout) -> int:
    """Elements, padding included, of one padded tile."""
    shape = [
        max(min(extent, a), min(extent, b))
        for extent, a, b in zip(source.shape, source.tile, target.tile, strict=True)
    ]
    fastest = target.order[0]
    if len(shape) > 1 and _product(shape) != shape[fastest]:
        last = len(shape) - 1
        write = source.contiguous if fastest == last == source.order[0] else 1
        read = target.contiguous if fastest == last else 1
        shape[fastest] += max(write, read)
    return _product(shape)


def swizzled_elements(source: Layout, target: Layout, bits: int) -> int:
    """Elements of one turn of a swizzled conversion."""
    a, b = _without_zeros(source.register), _without_zeros(target.register)
    dim = _product(source.shape).bit_length() - 1
    vector = _vector(a, b, source.lane, target.lane, bits)
    bank_a = [*vector, *_bank(a, source.lane, vector, bits)]
    bank_b = [*vector, *_bank(b, target.lane, vector, bits)]
    banks = min(max(0, (_BANKS // ((1 << len(vector)) * bits)).bit_length() - 1), dim - len(vector))
    segment = _segment(bank_a, bank_b, dim, dim - banks - len(vector))
    turns = sum(1 for basis in segment if basis in a and basis in b)
    return 1 << (dim - turns)


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
    """Register bases that the other side has among its lanes, as many as one access may take."""
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


def reach(source: Layout, target: Layout) -> Reach:
    """How far apart the threads are that a conversion moves data between."""

    def covers(own: Bases, pairs: Sequence[tuple[int, int]], rest: Bases) -> bool:
        """True when all of `rest`, and how each pair differs, lie within what `own` spans."""
        space = span(own)
        return all(_reduced(x ^ y, space) == 0 for x, y in pairs) and all(
            _reduced(x, space) == 0 for x in rest
        )

    lanes = list(zip(source.lane, target.lane, strict=False))
    warps = list(zip(source.warp, target.warp, strict=False))
    if covers(source.register, [*lanes, *warps], target.register):
        return Reach.THREAD
    if covers((*source.register, *source.lane), warps, (*target.register, *target.lane)):
        return Reach.WARP
    return Reach.BLOCK


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


def _product(numbers: Sequence[int]) -> int:
    product = 1
    for number in numbers:
        product *= number
    return product
