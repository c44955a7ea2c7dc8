"""What a matrix product must move, and what a measured time makes of it: no GPU's answer, a reader's.

The usual count: each operand read once, the result written once. Caches may save none of it; what a kernel
really loads (tiles read by several blocks, split-K partial sums) is more.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from artifact_inspector.errors import UsageError

__all__ = ["Traffic", "parse_product"]

_PRODUCT = re.compile(r"(\d+)[x×·*](\d+)\s*@\s*(\d+)[x×·*](\d+)")
_BITS = re.compile(r"(?:fp|bf|tf|f|i|u|int|uint)(\d+)\w*")


@dataclass(frozen=True, slots=True)
class Traffic:
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
        """Bytes moved, each operand and the result once.

        Example:
            >>> Traffic(1, 7168, 4096, (16, 16, 16)).total
            58742784
        """
        return sum(self.bytes)

    @property
    def flop(self) -> int:
        """A multiplication and an addition for each step of each element."""
        return 2 * self.m * self.n * self.k

    def bandwidth(self, seconds: float) -> float:
        """Bytes per second."""
        return self.total / seconds


def parse_product(text: str, types: Sequence[str]) -> Traffic:
    """`1x4096@4096x7168` with types of a, b and the result; one type stands for all three.

    Raises:
        UsageError: it is no product, its inner extents differ, or a type has no known size.
    """
    found = _PRODUCT.fullmatch(text.strip())
    if found is None:
        raise UsageError(f"{text!r} is no product.", "Write it as MxK@KxN, for instance 1x4096@4096x7168.")
    m, k, inner, n = (int(part) for part in found.groups())
    if not m * k * n:
        raise UsageError(f"{text!r} has an extent of 0.", "Every extent must be at least 1.")
    if k != inner:
        raise UsageError(f"{m}×{k} and {inner}×{n} cannot be multiplied: {k} is not {inner}.")
    if len(types) not in (1, 3):
        raise UsageError(f"{len(types)} types for three matrices.", "Name one, or three: fp16,int4,fp16.")
    bits = [_bits(word) for word in (types if len(types) == 3 else [types[0]] * 3)]
    return Traffic(m, n, k, (bits[0], bits[1], bits[2]))


def _bits(word: str) -> int:
    found = _BITS.fullmatch(word.strip().lower())
    if found is None or not int(found[1]):
        raise UsageError(f"{word!r} is no type.", "Types are fp16, bf16, fp32, fp8, int8, int4 …")
    bits = int(found[1])
    return 32 if word.strip().lower().startswith("tf") else bits
