"""Values of registers and predicates over all lanes of some CTAs.

A value that is the same in all lanes is one Python number. Otherwise it is an array of shape (CTAs or 1,
threads or 1), which numpy broadcasts. Register values are unsigned, in int64, so that sums do not wrap before
they are truncated to 32 bits; predicates are booleans. An unknown value is `Unknown`; it carries the missing
inputs that it depends on as a bit set (`Names`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias, TypeGuard

import numpy as np
from numpy.typing import NDArray

from artifact_inspector.execution.interpreter.shifted import Shifted, as_shifted, whole

FULL = 0xFFFFFFFF
"""All bits of a register."""

Known: TypeAlias = Any
"""A number or an array: `int | bool | NDArray`. mypy cannot follow its operators in a union."""
Mask: TypeAlias = Any
"""Lanes that take part: `bool | NDArray[np.bool_]`."""


class Unknown(NamedTuple):
    """A value with unknown bits in some lanes."""

    data: Known
    """Valid where `bad` has no bit set."""
    bad: Known
    """Unknown bits of each lane; a boolean for predicates."""
    why: int
    """Missing inputs, one bit each."""


Value: TypeAlias = Any
"""`Known | Unknown`."""


class Names:
    """The registry of missing inputs: each has a bit."""

    def __init__(self) -> None:
        self._names: list[str] = []
        self._bits: dict[str, int] = {}

    def bit(self, name: str) -> int:
        """The bit of a name."""
        found = self._bits.get(name)
        if found is None:
            found = self._bits[name] = 1 << len(self._names)
            self._names.append(name)
        return found

    def count(self) -> int:
        """Number of names."""
        return len(self._names)

    def forget(self, count: int) -> None:
        """Keep only the first `count` names."""
        for name in self._names[count:]:
            del self._bits[name]
        del self._names[count:]

    def unknown(self, name: str) -> Unknown:
        """A register with no known bit."""
        return Unknown(0, FULL, self.bit(name))

    def of(self, bits: int) -> tuple[str, ...]:
        """The names in a bit set."""
        return tuple(name for at, name in enumerate(self._names) if bits >> at & 1)


def data_of(value: Value) -> Known:
    """The data of a value, valid where it is known."""
    return value.data if value.__class__ is Unknown else value


def bits_unknown(value: Value) -> Known:
    """The unknown bits of a value; 0 or False if all are known."""
    return value.bad if value.__class__ is Unknown else 0


def apply(function: Callable[..., Known], *values: Value) -> Value:
    """A function of whole registers; a lane is unknown if any of its inputs is."""
    for value in values:
        if value.__class__ is Unknown:
            return _apply_unknown(function, values)
    try:
        return function(*values)
    except (AttributeError, TypeError, ValueError):
        if not any(value.__class__ is Shifted for value in values):
            raise
        return function(*map(whole, values))  # the function needs an array


def as_wide(low: Value, high: Value) -> Value:
    """A 64-bit number from two registers; arrays are signed, as int64."""
    return apply(_join, low, high)


def _join(low: Known, high: Known) -> Known:
    return low | ((signed(high) if isinstance(high, int) else high) << 32)


def _apply_unknown(function: Callable[..., Known], values: tuple[Value, ...]) -> Value:
    why, bad = 0, False
    for value in values:
        if isinstance(value, Unknown):
            why |= value.why
            if isinstance(value.bad, np.ndarray):
                bad = bad | (value.bad != 0)
            elif value.bad:
                return Unknown(0, FULL, why | _all_why(values))
    if isinstance(bad, np.ndarray) and bad.all():
        return Unknown(0, FULL, why)
    with np.errstate(all="ignore"):
        data = function(*(whole(data_of(value)) for value in values))
    return Unknown(data, _where(bad, FULL, 0), why)


def _all_why(values: tuple[Value, ...]) -> int:
    why = 0
    for value in values:
        if isinstance(value, Unknown):
            why |= value.why
    return why


def choose(mask: Value, yes: Value, no: Value) -> Value:
    """`yes` in the lanes of a mask, `no` in the others; unknown where the mask is."""
    if mask is True:
        return yes
    if mask is False:
        return no
    if isinstance(mask, Unknown):
        picked = choose(mask.data, yes, no)
        every: Known = True if isinstance(data_of(yes), (bool, np.bool_)) else FULL
        bad = _where(mask.bad, every, bits_unknown(picked))
        return Unknown(data_of(picked), bad, mask.why | _all_why((yes, no)))
    if yes.__class__ is not Unknown and no.__class__ is not Unknown:
        if yes is no:
            return yes
        return _where(mask, yes, no)
    if is_spoiled(yes) and is_spoiled(no):
        return Unknown(0, FULL, _all_why((yes, no)))
    data = _where(mask, data_of(yes), data_of(no))
    bad = _where(mask, bits_unknown(yes), bits_unknown(no))
    return condense(Unknown(data, bad, _all_why((yes, no)))) if np.any(bad) else data


def condense(value: Unknown) -> Unknown:
    """The same as one number if no lane has a known bit, which is cheaper to compute with."""
    if isinstance(value.bad, np.ndarray):
        every = True if value.bad.dtype == np.bool_ else FULL
        if (value.bad == every).all():
            return Unknown(0 if every is FULL else False, every, value.why)
    return value


def _where(mask: Known, yes: Known, no: Known) -> Known:
    found: Any = np.where(mask, yes, no)
    return found.item() if isinstance(found, np.ndarray) and not found.ndim else found


def is_spoiled(value: Value) -> TypeGuard[Unknown]:
    """Whether no bit of a register is known in any lane."""
    return isinstance(value, Unknown) and value.bad.__class__ is int and value.bad == FULL


def invert(value: Value) -> Value:
    """The negation of a predicate."""
    if isinstance(value, Unknown):
        return Unknown(np.logical_not(value.data), value.bad, value.why)
    return (not value) if isinstance(value, bool) else np.logical_not(value)


def signed(value: Known) -> Known:
    """A register as a signed number."""
    return (value ^ 0x80000000) - 0x80000000


def is_true(mask: Mask) -> bool:
    """Whether a mask has any lane."""
    return mask if isinstance(mask, bool) else bool(mask.any())


def spread(value: Known, shape: tuple[int, int]) -> NDArray[Any]:
    """A value as an array of all lanes."""
    return np.broadcast_to(np.asarray(value), shape)


def distinct(value: Any, mask: Mask) -> NDArray[np.int64]:
    """The distinct numbers in the lanes of a nonempty mask."""
    if np.size(value) == 1 or (np.shape(value)[1] == 1 and np.shape(mask)[:1] in ((), (1,))):
        return np.unique(value)  # every CTA has such a lane
    shape = np.broadcast_shapes(np.shape(value), np.shape(mask))
    return np.unique(np.broadcast_to(value, shape)[np.broadcast_to(mask, shape)])


def widen(mask: Mask, warp: int) -> Mask:
    """All lanes of every warp with a lane in a mask."""
    if isinstance(mask, bool) or mask.shape[1] == 1:
        return mask
    rows, lanes = mask.shape
    warps = mask.reshape(rows, lanes // warp, warp).any(axis=2)
    return np.repeat(warps, warp, axis=1)


def rows_of(value: Value, rows: NDArray[Any]) -> Value:
    """A value for some of the CTAs."""
    if isinstance(value, Unknown):
        return Unknown(rows_of(value.data, rows), rows_of(value.bad, rows), value.why)
    if hasattr(value, "keep"):  # an affine value, or a lane partition
        return value.keep(rows)
    if isinstance(value, np.ndarray):
        if value.ndim < 2:
            return value.item()
        taken = value[rows] if value.shape[0] > 1 else value
        return taken.item() if taken.size == 1 else taken
    return value


def mask_rows(mask: Mask, rows: NDArray[Any]) -> Mask:
    """A mask for some of the CTAs."""
    if isinstance(mask, bool) or mask.shape[0] == 1:
        return mask
    taken: NDArray[np.bool_] = mask[rows]
    return True if taken.all() else taken


def told_apart(value: Value, shape: tuple[int, int]) -> Value:
    """A value in affine form if it has one; otherwise an array."""
    if value.__class__ is Shifted:
        return value if value.lanes.any() else value.rows
    if value.__class__ is Unknown and value.data.__class__ is Shifted:
        return Unknown(value.data.array(), value.bad, value.why)
    return as_shifted(value) if value.__class__ is np.ndarray and value.shape == shape else value
