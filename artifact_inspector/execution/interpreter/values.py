"""Values of registers and predicates over all lanes of some CTAs.

A value that is the same in all lanes is one Python number. Otherwise it is an array of shape (CTAs or 1,
threads or 1), which numpy broadcasts, or an affine value. Register values are unsigned, in int64, so that sums do not
wrap before they are truncated to 32 bits; predicates are booleans. An unknown value is `UnknownValue`; it carries the
missing inputs that it depends on as a bit set (`InputNames`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeAlias, TypeGuard, overload

import numpy as np

from artifact_inspector.execution.interpreter.affine import FULL as FULL
from artifact_inspector.execution.interpreter.affine import AffineValue, to_affine
from artifact_inspector.execution.interpreter.affine import BoolArray as BoolArray
from artifact_inspector.execution.interpreter.affine import IntArray as IntArray
from artifact_inspector.execution.interpreter.affine import Known as Known
from artifact_inspector.execution.interpreter.affine import Mask as Mask
from artifact_inspector.execution.interpreter.affine import Number as Number
from artifact_inspector.execution.interpreter.affine import Plain as Plain
from artifact_inspector.execution.interpreter.affine import Word as Word
from artifact_inspector.execution.interpreter.affine import as_mask as as_mask
from artifact_inspector.execution.interpreter.affine import as_plain_array as as_plain_array
from artifact_inspector.execution.interpreter.affine import as_word as as_word
from artifact_inspector.execution.interpreter.intervals import sorted_distinct


class UnknownValue(NamedTuple):
    """A value with unknown bits in some lanes."""

    data: Known
    """Valid where `unknown_bits` has no bit set."""
    unknown_bits: Plain
    """Unknown bits of each lane; a boolean for predicates."""
    missing_inputs: int
    """Missing inputs, one bit each."""


Value: TypeAlias = "Known | UnknownValue"


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
    return value.data if isinstance(value, UnknownValue) else value


def unknown_bits_of(value: Value) -> Plain:
    """The unknown bits of a value; 0 or False if all are known."""
    return value.unknown_bits if isinstance(value, UnknownValue) else 0


def missing_inputs_of(*values: Value) -> int:
    """The missing inputs that any of the values depends on."""
    missing_inputs = 0
    for value in values:
        if isinstance(value, UnknownValue):
            missing_inputs |= value.missing_inputs
    return missing_inputs


def with_unknown_bits(data: Known, unknown_bits: Plain, *sources: Value) -> Value:
    """A value computed from others; it is known if no bit is unknown."""
    is_unknown = unknown_bits.any() if isinstance(unknown_bits, np.ndarray) else unknown_bits
    return UnknownValue(data, unknown_bits, missing_inputs_of(*sources)) if is_unknown else data


def move_lanes(function: Callable[[Known], Known], value: Value) -> Value:
    """A function that moves lanes, applied to the data and the unknown bits of a value."""
    if not isinstance(value, UnknownValue):
        return function(value)
    unknown_bits = as_plain_array(function(value.unknown_bits))
    return UnknownValue(function(value.data), unknown_bits, value.missing_inputs)


@overload
def apply(function: Callable[[Number], Known], value: Value, /) -> Value: ...
@overload
def apply(function: Callable[[Number, Number], Known], first: Value, second: Value, /) -> Value: ...
@overload
def apply(function: Callable[[Number, Number, Number], Known], a: Value, b: Value, c: Value, /) -> Value: ...
@overload
def apply(function: Callable[..., Known], /, *values: Value) -> Value: ...
def apply(function: Callable[..., Known], /, *values: Value) -> Value:
    """A function of whole registers; a lane is unknown if any of its inputs is."""
    for value in values:
        if value.__class__ is UnknownValue:
            return _apply_unknown(function, values)
    return function(*values)


def apply_to_low_bits(function: Callable[..., Known], /, *values: Value) -> Value:
    """A sum or product, whose bits below the first unknown bit of its inputs are known."""
    for value in values:
        if value.__class__ is UnknownValue:
            break
    else:  # nearly always, and much faster than `any`
        return function(*values)
    unknown_bits: Word = 0
    for value in values:
        unknown_bits = unknown_bits | as_word(unknown_bits_of(value))
    if np.all(unknown_bits & 1):
        return UnknownValue(0, FULL, missing_inputs_of(*values))
    with np.errstate(all="ignore"):
        data = function(*(as_plain_array(data_of(value)) for value in values))
    return with_unknown_bits(data, -(unknown_bits & -unknown_bits), *values)


def apply_to_bits(function: Callable[..., Known], /, *values: Value) -> Value:
    """A function that only moves bits, and fills with zeros or copies: so it moves the unknown bits."""
    if not any(value.__class__ is UnknownValue for value in values):
        return function(*values)
    data = function(*(as_plain_array(data_of(value)) for value in values))
    return with_unknown_bits(data, as_plain_array(function(*map(unknown_bits_of, values))), *values)


def join_words(low: Value, high: Value) -> Value:
    """A 64-bit number from two registers; arrays are signed, as int64. A sum is cheaper than a union of bits."""
    return apply(lambda a, b: a + ((as_signed(b) if isinstance(b, int) else b) << 32), low, high)


def _apply_unknown(function: Callable[..., Known], values: tuple[Value, ...]) -> Value:
    unknown_lanes: Mask = False
    for value in values:
        if isinstance(value, UnknownValue):
            if isinstance(value.unknown_bits, np.ndarray):
                unknown_lanes = unknown_lanes | (value.unknown_bits != 0)
            elif value.unknown_bits:
                return UnknownValue(0, FULL, missing_inputs_of(*values))
    missing_inputs = missing_inputs_of(*values)
    if isinstance(unknown_lanes, np.ndarray) and unknown_lanes.all():
        return UnknownValue(0, FULL, missing_inputs)
    with np.errstate(all="ignore"):
        data = function(*(as_plain_array(data_of(value)) for value in values))
    return UnknownValue(data, as_plain_array(_select_known(unknown_lanes, FULL, 0)), missing_inputs)


def select_lanes(mask: Value, yes: Value, no: Value) -> Value:
    """`yes` in the lanes of a mask, `no` in the others; unknown where the mask is."""
    if mask is True:
        return yes
    if mask is False:
        return no
    if isinstance(mask, UnknownValue):
        selected = select_lanes(mask.data, yes, no)
        all_bits = True if isinstance(data_of(yes), (bool, np.bool_)) else FULL
        unknown_bits = as_plain_array(_select_known(mask.unknown_bits, all_bits, unknown_bits_of(selected)))
        return UnknownValue(data_of(selected), unknown_bits, mask.missing_inputs | missing_inputs_of(yes, no))
    if not isinstance(yes, UnknownValue) and not isinstance(no, UnknownValue):
        return yes if yes is no else _select_known(mask, yes, no)
    if is_entirely_unknown(yes) and is_entirely_unknown(no):
        return UnknownValue(0, FULL, missing_inputs_of(yes, no))
    data = _select_known(mask, data_of(yes), data_of(no))
    unknown_bits = as_plain_array(_select_known(mask, unknown_bits_of(yes), unknown_bits_of(no)))
    return collapse_unknown(with_unknown_bits(data, unknown_bits, yes, no))


def collapse_unknown(value: Value) -> Value:
    """The same as one number if no lane has a known bit, which is cheaper to compute with."""
    if isinstance(value, UnknownValue) and isinstance(value.unknown_bits, np.ndarray):
        all_bits = True if value.unknown_bits.dtype == np.bool_ else FULL
        if (value.unknown_bits == all_bits).all():
            return UnknownValue(0 if all_bits is FULL else False, all_bits, value.missing_inputs)
    return value


def _select_known(mask: Known, yes: Known, no: Known) -> Known:
    selected: Known = np.where(mask, yes, no)
    return selected.item() if isinstance(selected, np.ndarray) and not selected.ndim else selected


def is_entirely_unknown(value: object) -> TypeGuard[UnknownValue]:
    """Whether no bit of a register is known in any lane."""
    return isinstance(value, UnknownValue) and value.unknown_bits.__class__ is int and value.unknown_bits == FULL


def invert(value: Value) -> Value:
    """The negation of a predicate."""
    if isinstance(value, UnknownValue):
        return UnknownValue(invert_mask(value.data), value.unknown_bits, value.missing_inputs)
    return invert_mask(value)


def invert_mask(mask: Known) -> Mask:
    """The lanes that are not in a mask."""
    return not mask if isinstance(mask, bool) else np.logical_not(as_plain_array(mask))


@overload
def as_signed(value: int) -> int: ...
@overload
def as_signed(value: Number) -> Number: ...
def as_signed(value: Number) -> Number:
    """A register as a signed number."""
    return (value ^ 0x80000000) - 0x80000000


def absolute(value: Number) -> Word:
    """The absolute value of a signed number."""
    return abs(value) if isinstance(value, int) else np.abs(as_word(value))


def has_lanes(mask: Mask) -> bool:
    """Whether a mask has any lane."""
    return mask if isinstance(mask, bool) else bool(mask.any())


def broadcast_value(value: Known, shape: tuple[int, int]) -> IntArray:
    """A value as an array of all lanes."""
    return np.broadcast_to(np.asarray(value), shape)


def broadcast_mask(mask: Known, shape: tuple[int, int]) -> BoolArray:
    """A mask as an array of all lanes."""
    return np.broadcast_to(np.asarray(mask, bool), shape)


def distinct_values(value: Known, mask: Mask) -> IntArray:
    """The distinct numbers in the lanes of a nonempty mask."""
    if np.size(value) == 1 or (np.shape(value)[1] == 1 and np.shape(mask)[:1] in ((), (1,))):
        return sorted_distinct(np.asarray(value))  # every CTA has such a lane
    lanes = np.atleast_2d(mask)
    shape = np.broadcast_shapes(np.shape(value), lanes.shape)
    values = np.broadcast_to(np.asarray(value), shape)
    if lanes.shape == (1, shape[1]):
        return sorted_distinct(values[:, lanes[0]])
    return sorted_distinct(values[np.broadcast_to(lanes, shape)])


def widen_to_warps(mask: Mask, warp: int) -> Mask:
    """All lanes of every warp with a lane in a mask."""
    if isinstance(mask, bool) or mask.shape[1] == 1:
        return mask
    rows, lanes = mask.shape
    return np.repeat(mask.reshape(rows, lanes // warp, warp).any(axis=2), warp, axis=1)


def select_mask_rows(mask: Mask, rows: IntArray) -> Mask:
    """A mask for some of the CTAs."""
    if isinstance(mask, bool) or mask.shape[0] == 1:
        return mask
    selected: BoolArray = mask[rows]
    return True if selected.all() else selected


def in_affine_form(value: Value, shape: tuple[int, int]) -> Value:
    """A value in affine form if it has one; otherwise an array."""
    if isinstance(value, AffineValue):
        return value if value.lanes.item(-1) or value.lanes.any() else value.rows
    if isinstance(value, UnknownValue):
        return value._replace(data=value.data.to_array()) if isinstance(value.data, AffineValue) else value
    return to_affine(value) if isinstance(value, np.ndarray) and value.shape == shape else value
