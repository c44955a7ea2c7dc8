"""The minimum data movement of a matrix product, and the bandwidth for a measured time.

Each operand is read once and the result written once. Caches cannot reduce this. A real kernel loads more (tiles read
by several blocks, split-K partial sums).
"""

from __future__ import annotations

import string
from collections.abc import Sequence
from dataclasses import dataclass

from artifact_inspector.errors import UsageError

_MULTIPLICATION_SIGNS = "×·*"
"""Separators between two extents, besides `x`."""
_MAX_DIGITS = 18
_KINDS = frozenset({"fp", "bf", "tf", "f", "i", "u", "int", "uint"})


@dataclass(frozen=True, slots=True)
class MatrixTraffic:
    """One product `a @ b` of M×K by K×N."""

    m: int
    n: int
    k: int
    bits: tuple[int, int, int]
    """Of one element of a, b and the result."""

    @property
    def bytes(self) -> tuple[int, int, int]:
        """Of a, b and the result."""
        sizes = (self.m * self.k, self.k * self.n, self.m * self.n)
        a, b, c = ((size * bits + 7) // 8 for size, bits in zip(sizes, self.bits, strict=True))
        return a, b, c

    @property
    def total(self) -> int:
        """Bytes moved: each operand and the result once.

        Example:
            >>> MatrixTraffic(1, 7168, 4096, (16, 16, 16)).total
            58742784
        """
        return sum(self.bytes)

    @property
    def flop(self) -> int:
        """Operations: a multiplication and an addition for each step of each element."""
        return 2 * self.m * self.n * self.k

    def bandwidth(self, seconds: float) -> float:
        """Bytes per second."""
        return self.total / seconds


def parse_product(text: str, types: Sequence[str]) -> MatrixTraffic:
    """Parse `1x4096@4096x7168` with the types of a, b and the result. One type applies to all three.

    Raises:
        UsageError: it is not a product, its inner extents differ, or a type has no known size.
    """
    expression = text.strip()
    for sign in _MULTIPLICATION_SIGNS:
        expression = expression.replace(sign, "x")
    sides = [side.strip().split("x") for side in expression.split("@")]
    extents = [extent for side in sides for extent in side]
    if [len(side) for side in sides] != [2, 2] or not all(_is_extent(extent) for extent in extents):
        raise UsageError(f"{text!r} is not a product.", "Write it as MxK@KxN, for example 1x4096@4096x7168.")
    m, k, inner, n = map(int, extents)
    if not m * k * n:
        raise UsageError(f"{text!r} has an extent of 0.", "Every extent must be at least 1.")
    if k != inner:
        raise UsageError(f"{m}×{k} and {inner}×{n} cannot be multiplied: {k} is not {inner}.")
    if len(types) not in (1, 3):
        raise UsageError(f"{len(types)} types for three matrices.", "Expected one or three: fp16,int4,fp16.")
    bits = [_bits(type_name) for type_name in (types if len(types) == 3 else [types[0]] * 3)]
    return MatrixTraffic(m, n, k, (bits[0], bits[1], bits[2]))


def _is_extent(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) <= _MAX_DIGITS


def _bits(type_name: str) -> int:
    lowered = type_name.strip().lower()
    kind = lowered[: len(lowered) - len(lowered.lstrip(string.ascii_lowercase))]
    suffix = lowered[len(kind) :]
    digits = suffix[: len(suffix) - len(suffix.lstrip(string.digits))]
    if kind not in _KINDS or not _is_extent(digits) or not int(digits):
        raise UsageError(f"Unknown type {type_name!r}.", "Expected one of fp16, bf16, fp32, fp8, int8, int4 …")
    return 32 if kind == "tf" else int(digits)
