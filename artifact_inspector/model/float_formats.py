"""Floating-point formats: their bits as numbers, and numbers rounded to them.

All arithmetic on data is done in float64 and then rounded once. Sums of float64 are exact for the products and sums
that one instruction makes, apart from float32 operands whose exponents differ by more than 29.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

Doubles: TypeAlias = NDArray[np.float64]
Bits: TypeAlias = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class FloatFormat:
    """A format with a sign, an exponent and a mantissa."""

    bits: int
    mantissa: int
    """Stored bits of the mantissa."""
    least_exponent: int
    """Of normal numbers."""
    largest: float
    has_infinity: bool = True


FLOAT64 = FloatFormat(64, 52, -1022, float(np.finfo(np.float64).max))
FLOAT32 = FloatFormat(32, 23, -126, float(np.finfo(np.float32).max))
FLOAT16 = FloatFormat(16, 10, -14, 65504.0)
BFLOAT16 = FloatFormat(16, 7, -126, float.fromhex("0x1.fep127"))
TF32 = FloatFormat(32, 10, -126, float.fromhex("0x1.ffcp127"))
E4M3 = FloatFormat(8, 3, -6, 448.0, has_infinity=False)
E5M2 = FloatFormat(8, 2, -14, 57344.0)
FORMATS = {"F32": FLOAT32, "F16": FLOAT16, "BF16": BFLOAT16, "TF32": TF32, "E4M3": E4M3, "E5M2": E5M2}
"""Name of an instruction's modifier → format."""


class Rounding:
    """Rounds results to nearest, or at random to one of both neighbours.

    Random rounding shows how far a result depends on the order of operations and on approximations: an exact result
    never changes.

    Args:
        seed: of the random numbers; None rounds to nearest.

    **Source** D. S. Parker, "Monte Carlo Arithmetic" (1997).
    """

    def __init__(self, seed: int | None = None) -> None:
        self._random = None if seed is None else np.random.default_rng(seed)

    @property
    def is_random(self) -> bool:
        """Whether results are rounded at random."""
        return self._random is not None

    def to_format(
        self, values: Doubles, target: FloatFormat, *, direction: Callable[[Doubles], Doubles] | None = None
    ) -> Doubles:
        """Numbers rounded to a format, with infinities where they overflow it.

        Args:
            direction: rounds to integers in a fixed direction; None means as this rounding does.
        """
        with np.errstate(all="ignore"):
            _, exponents = np.frexp(values)
            scale = np.maximum(exponents - 1, target.least_exponent) - target.mantissa
            scaled = np.ldexp(values, -scale)
            if direction is not None:
                rounded = direction(scaled)
            elif self._random is None:
                rounded = np.rint(scaled)
            else:
                rounded = np.where(self._random.integers(0, 2, scaled.shape) == 0, np.floor(scaled), np.ceil(scaled))
                rounded = np.where(rounded == 0, np.copysign(rounded, scaled), rounded)
            result = np.ldexp(rounded, scale)
            return np.asarray(np.where(np.abs(result) > target.largest, np.copysign(np.inf, result), result))

    def split_fused(self, operands: Sequence[Doubles], target: FloatFormat) -> Sequence[Doubles]:
        """The operands of a·b + c; rounded at random, with one rounded product, because others may round it."""
        if self._random is None or len(operands) != 3:
            return operands
        return (self.to_format(np.asarray(operands[0] * operands[1]), target), np.ones(()), operands[2])

    def approximate(self, values: Doubles, relative_error: float, absolute_error: float | Doubles = 0.0) -> Doubles:
        """Results of an approximation that is off by at most an error."""
        if self._random is None:
            return values
        error = np.abs(values) * relative_error + absolute_error
        with np.errstate(all="ignore"):
            return np.asarray(
                values + np.where(np.isfinite(error), error, 0) * (2 * self._random.random(np.shape(values)) - 1)
            )


NEAREST = Rounding()


@lru_cache(maxsize=2)
def _numbers_of_bytes(source: FloatFormat) -> Doubles:
    """The number of each byte of an 8-bit format."""
    codes = np.arange(256)
    exponent_bits = 7 - source.mantissa
    exponents, mantissas = codes >> source.mantissa & (1 << exponent_bits) - 1, codes & (1 << source.mantissa) - 1
    is_normal = exponents > 0
    numbers = np.ldexp(
        (mantissas + (is_normal << source.mantissa)).astype(float),
        np.maximum(exponents, 1) - 1 + source.least_exponent - source.mantissa,
    )
    if source.has_infinity:
        numbers[exponents == (1 << exponent_bits) - 1] = np.nan
        numbers[codes & 127 == 124] = np.inf
    else:
        numbers[codes & 127 == 127] = np.nan
    return np.asarray(np.where(codes >> 7, -numbers, numbers))


def numbers_of(words: ArrayLike, source: FloatFormat) -> Doubles:
    """The numbers in the low bits of words."""
    bits = np.asarray(words, np.int64)
    with np.errstate(invalid="ignore"):  # signaling NaNs
        if source.bits == 32:
            return (bits & 0xFFFFFFFF).astype(np.uint32).view(np.float32).astype(np.float64)
        if source is BFLOAT16:
            return ((bits & 0xFFFF) << 16).astype(np.uint32).view(np.float32).astype(np.float64)
        if source is FLOAT16:
            return (bits & 0xFFFF).astype(np.uint16).view(np.float16).astype(np.float64)
    return np.asarray(_numbers_of_bytes(source)[bits & 0xFF])


def bits_of(values: Doubles, target: FloatFormat) -> Bits:
    """The bits of numbers that were rounded to a format; an 8-bit format saturates."""
    with np.errstate(all="ignore"):
        if target.bits == 32:
            return np.asarray(values.astype(np.float32)).view(np.uint32).astype(np.int64)
        if target is BFLOAT16:
            return np.asarray(values.astype(np.float32)).view(np.uint32).astype(np.int64) >> 16
        if target is FLOAT16:
            return np.asarray(values.astype(np.float16)).view(np.uint16).astype(np.int64)
    table = _numbers_of_bytes(target)
    positive = np.flatnonzero(np.isfinite(table[:128]))
    at = np.minimum(np.searchsorted(table[positive], np.abs(values)), len(positive) - 1)
    codes: Bits = np.where(np.isnan(values), 127, positive[at]) | (np.signbit(values).astype(np.int64) << 7)
    return codes
