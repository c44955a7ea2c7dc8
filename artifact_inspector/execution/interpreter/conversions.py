"""Number helpers shared by the instruction sets: signs, bit fields, floats, predicates."""

from __future__ import annotations

from collections.abc import Callable
from typing import overload

import numpy as np
from numpy.typing import NDArray

from artifact_inspector.execution.interpreter.affine import as_plain_array
from artifact_inspector.execution.interpreter.values import IntArray, Known, Number, UnknownValue, Value, Word, as_mask


def as_predicate(value: Value) -> Value:
    """The result of a comparison from `apply` as a predicate: each lane is known or unknown."""
    if isinstance(value, UnknownValue):
        return UnknownValue(value.data, as_mask(value.unknown_bits), value.missing_inputs)
    return value if isinstance(value, np.ndarray) else bool(value)


def to_number(value: Known) -> Word:
    """A predicate as 0 or 1."""
    plain = as_plain_array(value)
    return plain.astype(np.int64) if isinstance(plain, np.ndarray) else int(plain)


@overload
def truncate(value: int, bits: int, *, is_signed: bool) -> int: ...
@overload
def truncate(value: Number, bits: int, *, is_signed: bool) -> Number: ...
def truncate(value: Number, bits: int, *, is_signed: bool) -> Number:
    """The low bits of a number, sign-extended if signed."""
    if bits >= 64:
        return value
    value = value & ((1 << bits) - 1)
    if not is_signed:
        return value
    sign = 1 << (bits - 1)
    return (value ^ sign) - sign


@overload
def wrap_int64(value: int) -> int: ...
@overload
def wrap_int64(value: Number) -> Number: ...
def wrap_int64(value: Number) -> Number:
    """A 64-bit number wrapped to int64; arrays wrap by themselves."""
    return ((value + (1 << 63)) & ((1 << 64) - 1)) - (1 << 63) if isinstance(value, int) else value


def float_of(value: Known) -> NDArray[np.float32]:
    """The float32 in a register."""
    return np.asarray(value, np.int64).astype(np.uint32).view(np.float32)


def float32_bits(value: float | NDArray[np.floating]) -> Word:
    """A number rounded to float32, as register bits."""
    return without_dimensions(np.asarray(value).astype(np.float32).view(np.uint32).astype(np.int64))


def without_dimensions(words: IntArray) -> Word:
    """The number in an array without dimensions; other arrays as they are."""
    return words if words.ndim else int(words)


def apply_distinct(function: Callable[[int], int], value: Known) -> Word:
    """A function of single numbers over all lanes; each distinct number is computed once."""
    if isinstance(value, (int, np.integer)):
        return function(int(value))
    distinct_numbers, inverse = np.unique(np.asarray(value), return_inverse=True)
    results: IntArray = np.array([function(int(number)) for number in distinct_numbers], np.int64)
    return results[inverse].reshape(np.shape(value))
