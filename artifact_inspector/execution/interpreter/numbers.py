"""What the languages on paper share of numbers: signs, parts, floats, predicates, one lane at a time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from artifact_inspector.execution.interpreter.lanes import Known, Unknown, Value


def as_predicate(value: Value) -> Value:
    """What `apply` made of a comparison: whole lanes are known or not."""
    if isinstance(value, Unknown):
        return Unknown(value.data, value.bad != 0, value.why)
    return value if isinstance(value, np.ndarray) else bool(value)


def to_number(value: Known) -> Known:
    """A predicate as 0 or 1."""
    return value.astype(np.int64) if isinstance(value, np.ndarray) else int(value)


def cut(value: Known, bits: int, *, is_signed: bool) -> Known:
    """The lower bits of a number, with their sign where it has one."""
    if bits >= 64:
        return value
    value = value & ((1 << bits) - 1)
    if not is_signed:
        return value
    sign = 1 << (bits - 1)
    return (value ^ sign) - sign


def wrap(value: Known) -> Known:
    """A 64-bit number as int64 has it; arrays wrap by themselves."""
    return ((value + (1 << 63)) & ((1 << 64) - 1)) - (1 << 63) if isinstance(value, int) else value


def float_of(value: Known) -> Any:
    """The float32 that a register holds."""
    return np.asarray(value, np.int64).astype(np.uint32).view(np.float32)


def bits_of(value: Any) -> Known:
    """A number rounded to float32, as a register holds it."""
    found = np.asarray(value).astype(np.float32).view(np.uint32).astype(np.int64)
    return found if found.ndim else int(found)


def each(function: Callable[[int], int], value: Known) -> Known:
    """A function of one number for all lanes; each distinct number is computed once."""
    if isinstance(value, (int, np.integer)):
        return function(int(value))
    distinct, places = np.unique(value, return_inverse=True)
    made = np.array([function(int(number)) for number in distinct], np.int64)
    return made[places].reshape(np.shape(value))
