"""Number helpers shared by the instruction sets: signs, bit fields, floats, predicates."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from artifact_inspector.execution.interpreter.lanes import Known, Unknown, Value


def as_predicate(value: Value) -> Value:
    """The result of a comparison from `apply` as a predicate: each lane is known or unknown."""
    if isinstance(value, Unknown):
        return Unknown(value.data, value.bad != 0, value.why)
    return value if isinstance(value, np.ndarray) else bool(value)


def to_number(value: Known) -> Known:
    """A predicate as 0 or 1."""
    return value.astype(np.int64) if isinstance(value, np.ndarray) else int(value)


def cut(value: Known, bits: int, *, is_signed: bool) -> Known:
    """The low bits of a number, sign-extended if signed."""
    if bits >= 64:
        return value
    value = value & ((1 << bits) - 1)
    if not is_signed:
        return value
    sign = 1 << (bits - 1)
    return (value ^ sign) - sign


def wrap(value: Known) -> Known:
    """A 64-bit number wrapped to int64; arrays wrap by themselves."""
    return ((value + (1 << 63)) & ((1 << 64) - 1)) - (1 << 63) if isinstance(value, int) else value


def float_of(value: Known) -> Any:
    """The float32 in a register."""
    return np.asarray(value, np.int64).astype(np.uint32).view(np.float32)


def bits_of(value: Any) -> Known:
    """A number rounded to float32, as register bits."""
    found = np.asarray(value).astype(np.float32).view(np.uint32).astype(np.int64)
    return found if found.ndim else int(found)


def each(function: Callable[[int], int], value: Known) -> Known:
    """A function of single numbers over all lanes; each distinct number is computed once."""
    if isinstance(value, (int, np.integer)):
        return function(int(value))
    distinct, places = np.unique(value, return_inverse=True)
    made = np.array([function(int(number)) for number in distinct], np.int64)
    return made[places].reshape(np.shape(value))
