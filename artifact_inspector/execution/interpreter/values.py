"""Values of registers and predicates over all lanes of some CTAs.

A value that is the same in all lanes is one Python number. Otherwise it is an array of shape (CTAs or 1,
threads or 1), which numpy broadcasts. Register values are unsigned, in int64, so that sums do not wrap before
they are truncated to 32 bits; predicates are booleans. An unknown value is `UnknownValue`; it carries the missing
inputs that it depends on as a bit set (`InputNames`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias, TypeGuard

import numpy as np
from numpy.typing import NDArray

from artifact_inspector.execution.interpreter.affine import AffineValue, as_plain_array, to_affine

FULL = 0xFFFFFFFF
"""All bits of a register."""

Known: TypeAlias = Any
"""A number or an array: `int | bool | NDArray`. mypy cannot follow its operators in a union."""
Mask: TypeAlias = Any
"""Lanes that take part: `bool | NDArray[np.bool_]`."""


class UnknownValue(NamedTuple):
    """A value with unknown bits in some lanes."""

    data: Known
    """Valid where `unknown_bits` has no bit set."""
    unknown_bits: Known
    """Unknown bits of each lane; a boolean for predicates."""
    missing_inputs: int
    """Missing inputs, one bit each."""


Value: TypeAlias = Any
"""`Known | Unknown`."""


class InputNames:
    """The registry of missing inputs: each has a bit."""

    def __init__(self) -> None:
        self._names: list[str] = []
        self._bits: dict[str, int] = {}

    def bit_of(self, name: str) -> int:
        """The bit of a name."""
        bit = self._bits.get(name)
        if bit is None:
            bit = self._bits[name] = 1 << len(self._names)
            self._names.append(name)
        return bit

    def count(self) -> int:
        """Number of names."""
        return len(self._names)

    def truncate(self, count: int) -> None:
        """Keep only the first `count` names."""
        for name in self._names[count:]:
            del self._bits[name]
        del self._names[count:]

    def unknown_value(self, name: str) -> UnknownValue:
        """A register with no known bit."""
        return UnknownValue(0, FULL, self.bit_of(name))

    def names_in(self, bits: int) -> tuple[str, ...]:
        """The names in a bit set."""
        return tuple(name for at, name in enumerate(self._names) if bits >> at & 1)


def data_of(value: Value) -> Known:
    """The data of a value, valid where it is known."""
    return value.data if value.__class__ is UnknownValue else value


def unknown_bits_of(value: Value) -> Known:
    """The unknown bits of a value; 0 or False if all are known."""
    return value.unknown_bits if value.__class__ is UnknownValue else 0


def apply(function: Callable[..., Known], *values: Value) -> Value:
    """A function of whole registers; a lane is unknown if any of its inputs is."""
    for value in values:
        if value.__class__ is UnknownValue:
            return _apply_unknown(function, values)
    try:
        return function(*values)
    except (AttributeError, TypeError, ValueError):
        if not any(value.__class__ is AffineValue for value in values):
            raise
        return function(*map(as_plain_array, values))  # the function needs an array


def join_words(low: Value, high: Value) -> Value:
    """A 64-bit number from two registers; arrays are signed, as int64."""
    return apply(_join_known_words, low, high)


def _join_known_words(low: Known, high: Known) -> Known:
    return low | ((as_signed(high) if isinstance(high, int) else high) << 32)


def _apply_unknown(function: Callable[..., Known], values: tuple[Value, ...]) -> Value:
    missing_inputs, unknown_lanes = 0, False
    for value in values:
        if isinstance(value, UnknownValue):
            missing_inputs |= value.missing_inputs
            if isinstance(value.unknown_bits, np.ndarray):
                unknown_lanes = unknown_lanes | (value.unknown_bits != 0)
            elif value.unknown_bits:
                return UnknownValue(0, FULL, missing_inputs | _all_missing_inputs(values))
    if isinstance(unknown_lanes, np.ndarray) and unknown_lanes.all():
        return UnknownValue(0, FULL, missing_inputs)
    with np.errstate(all="ignore"):
        data = function(*(as_plain_array(data_of(value)) for value in values))
    return UnknownValue(data, _select_known(unknown_lanes, FULL, 0), missing_inputs)


def _all_missing_inputs(values: tuple[Value, ...]) -> int:
    missing_inputs = 0
    for value in values:
        if isinstance(value, UnknownValue):
            missing_inputs |= value.missing_inputs
    return missing_inputs


def select_lanes(mask: Value, yes: Value, no: Value) -> Value:
    """`yes` in the lanes of a mask, `no` in the others; unknown where the mask is."""
    if mask is True:
        return yes
    if mask is False:
        return no
    if isinstance(mask, UnknownValue):
        selected = select_lanes(mask.data, yes, no)
        all_bits: Known = True if isinstance(data_of(yes), (bool, np.bool_)) else FULL
        unknown_bits = _select_known(mask.unknown_bits, all_bits, unknown_bits_of(selected))
        return UnknownValue(data_of(selected), unknown_bits, mask.missing_inputs | _all_missing_inputs((yes, no)))
    if yes.__class__ is not UnknownValue and no.__class__ is not UnknownValue:
        if yes is no:
            return yes
        return _select_known(mask, yes, no)
    if is_entirely_unknown(yes) and is_entirely_unknown(no):
        return UnknownValue(0, FULL, _all_missing_inputs((yes, no)))
    data = _select_known(mask, data_of(yes), data_of(no))
    unknown_bits = _select_known(mask, unknown_bits_of(yes), unknown_bits_of(no))
    return (
        collapse_unknown(UnknownValue(data, unknown_bits, _all_missing_inputs((yes, no))))
        if np.any(unknown_bits)
        else data
    )


def collapse_unknown(value: UnknownValue) -> UnknownValue:
    """The same as one number if no lane has a known bit, which is cheaper to compute with."""
    if isinstance(value.unknown_bits, np.ndarray):
        all_bits = True if value.unknown_bits.dtype == np.bool_ else FULL
        if (value.unknown_bits == all_bits).all():
            return UnknownValue(0 if all_bits is FULL else False, all_bits, value.missing_inputs)
    return value


def _select_known(mask: Known, yes: Known, no: Known) -> Known:
    selected: Any = np.where(mask, yes, no)
    return selected.item() if isinstance(selected, np.ndarray) and not selected.ndim else selected


def is_entirely_unknown(value: Value) -> TypeGuard[UnknownValue]:
    """Whether no bit of a register is known in any lane."""
    return isinstance(value, UnknownValue) and value.unknown_bits.__class__ is int and value.unknown_bits == FULL


def invert(value: Value) -> Value:
    """The negation of a predicate."""
    if isinstance(value, UnknownValue):
        return UnknownValue(np.logical_not(value.data), value.unknown_bits, value.missing_inputs)
    return (not value) if isinstance(value, bool) else np.logical_not(value)


def as_signed(value: Known) -> Known:
    """A register as a signed number."""
    return (value ^ 0x80000000) - 0x80000000


def has_lanes(mask: Mask) -> bool:
    """Whether a mask has any lane."""
    return mask if isinstance(mask, bool) else bool(mask.any())


def broadcast_value(value: Known, shape: tuple[int, int]) -> NDArray[Any]:
    """A value as an array of all lanes."""
    return np.broadcast_to(np.asarray(value), shape)


def distinct_values(value: Any, mask: Mask) -> NDArray[np.int64]:
    """The distinct numbers in the lanes of a nonempty mask."""
    if np.size(value) == 1 or (np.shape(value)[1] == 1 and np.shape(mask)[:1] in ((), (1,))):
        return np.unique(value)  # every CTA has such a lane
    shape = np.broadcast_shapes(np.shape(value), np.shape(mask))
    return np.unique(np.broadcast_to(value, shape)[np.broadcast_to(mask, shape)])


def widen_to_warps(mask: Mask, warp: int) -> Mask:
    """All lanes of every warp with a lane in a mask."""
    if isinstance(mask, bool) or mask.shape[1] == 1:
        return mask
    rows, lanes = mask.shape
    warps = mask.reshape(rows, lanes // warp, warp).any(axis=2)
    return np.repeat(warps, warp, axis=1)


def select_rows(value: Value, rows: NDArray[Any]) -> Value:
    """A value for some of the CTAs."""
    if isinstance(value, UnknownValue):
        return UnknownValue(select_rows(value.data, rows), select_rows(value.unknown_bits, rows), value.missing_inputs)
    if hasattr(value, "keep"):  # an affine value, or a lane partition
        return value.keep(rows)
    if isinstance(value, np.ndarray):
        if value.ndim < 2:
            return value.item()
        selected = value[rows] if value.shape[0] > 1 else value
        return selected.item() if selected.size == 1 else selected
    return value


def select_mask_rows(mask: Mask, rows: NDArray[Any]) -> Mask:
    """A mask for some of the CTAs."""
    if isinstance(mask, bool) or mask.shape[0] == 1:
        return mask
    selected: NDArray[np.bool_] = mask[rows]
    return True if selected.all() else selected


def in_affine_form(value: Value, shape: tuple[int, int]) -> Value:
    """A value in affine form if it has one; otherwise an array."""
    if value.__class__ is AffineValue:
        return value if value.lanes.any() else value.rows
    if value.__class__ is UnknownValue and value.data.__class__ is AffineValue:
        return UnknownValue(value.data.to_array(), value.unknown_bits, value.missing_inputs)
    return to_affine(value) if value.__class__ is np.ndarray and value.shape == shape else value
