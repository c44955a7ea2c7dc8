"""An affine value: a register that is a number per CTA plus a number per lane.

If the CTAs of a launch differ only by the origin of their tile, so do nearly all of its registers. Then one
computation for the lanes and one for the CTAs replaces one for every thread. Every operation gives exactly
what numpy would give for the whole array; a result that is not affine is computed as an array.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

FULL = 0xFFFFFFFF
FEWEST_LANES = 1 << 12
"""With fewer lanes, arrays are as fast."""
_TOP = 0x80000000
_SAFE = 1 << 61
"""Two numbers of smaller magnitude can be added without leaving int64."""
_UNSAFE = 1 << 65


def is_worth_it(ctas: int, threads: int) -> bool:
    """Whether there are enough lanes for affine values to pay off."""
    return ctas > 1 and ctas * threads > FEWEST_LANES


def whole(value: Any) -> Any:
    """A value as a number or array: affine values become arrays."""
    return value.array() if value.__class__ is Shifted else value


def as_shifted(value: NDArray[Any]) -> Any:
    """The simplest form of an array: affine, uniform in lanes or CTAs, or itself."""
    if value.dtype == np.bool_:
        if (value[-1] == value[0]).all() and (value == value[:1]).all():
            return _simplest(value[:1])
        if (value[:, -1] == value[:, 0]).all() and (value == value[:, :1]).all():
            return value[:, :1]
        return value
    if value.dtype != np.int64:
        return value
    rows, lanes = value[:, :1], value[:1] - value[0, 0]
    middle = len(value) // 2
    for row in (len(value) - 1, middle):
        if not np.array_equal(value[row] - value[row, 0], lanes[0]):
            return value
    if not (value == rows + lanes).all():
        return value
    return _made(rows, lanes)


def _simplest(predicate: NDArray[np.bool_]) -> Any:
    """A predicate of CTAs or of lanes; one boolean if all agree."""
    return bool(predicate[0, 0]) if (predicate == predicate[0, 0]).all() else predicate


def _made(rows: Any, lanes: Any) -> Any:
    """The simplest form of an affine value."""
    rows_differ = isinstance(rows, np.ndarray) and not (rows == rows[0, 0]).all()
    lanes_differ = isinstance(lanes, np.ndarray) and not (lanes == lanes[0, 0]).all()
    if rows_differ and lanes_differ:
        return Shifted(rows, lanes)
    if not rows_differ and isinstance(rows, np.ndarray):
        rows = rows[0, 0]
    if not lanes_differ and isinstance(lanes, np.ndarray):
        lanes = lanes[0, 0]
    found = rows + lanes
    return found if isinstance(found, np.ndarray) else int(found)


class Shifted:
    """`rows + lanes`, modulo 2⁶⁴ as in int64.

    Args:
        rows: of each CTA, shape (CTAs, 1).
        lanes: of each lane, shape (1, lanes).
    """

    __slots__ = ("lanes", "rows")
    __hash__ = None  # type: ignore[assignment]
    ndim = 2
    dtype = np.dtype(np.int64)

    def __init__(self, rows: NDArray[np.int64], lanes: NDArray[np.int64]) -> None:
        self.rows, self.lanes = rows, lanes

    @property
    def shape(self) -> tuple[int, int]:
        """CTAs and lanes."""
        return self.rows.shape[0], self.lanes.shape[1]

    def array(self) -> NDArray[np.int64]:
        """The value as an array of all lanes."""
        found: NDArray[np.int64] = self.rows + self.lanes
        return found

    def __array__(self, dtype: Any = None, copy: Any = None) -> NDArray[Any]:
        return self.array() if dtype is None else self.array().astype(dtype)

    def keep(self, rows: NDArray[Any]) -> Any:
        """The value for some of the CTAs."""
        return _made(self.rows[rows], self.lanes)

    def bounds(self) -> tuple[int, int]:
        """Minimum and maximum; beyond the range of int64 if a sum could overflow."""
        low, high = int(self.rows.min()), int(self.rows.max())
        least, most = int(self.lanes.min()), int(self.lanes.max())
        if min(low, least) < -_SAFE or max(high, most) > _SAFE:
            return -_UNSAFE, _UNSAFE
        return low + least, high + most

    # ── Sums and products ────────────────────────────────────────────────────────────────────────

    def __add__(self, other: Any) -> Any:
        match _side(other):
            case "one" | "rows":
                return Shifted(self.rows + other, self.lanes)
            case "lanes":
                return Shifted(self.rows, self.lanes + other)
            case "both":
                return _made(self.rows + other.rows, self.lanes + other.lanes)
        return self.array() + other

    __radd__ = __add__

    def __neg__(self) -> Any:
        return Shifted(-self.rows, -self.lanes)

    def __invert__(self) -> Any:
        return Shifted(~self.rows, -self.lanes)

    def __bool__(self) -> bool:
        raise ValueError("an affine value has no truth value")

    def __sub__(self, other: Any) -> Any:
        return self + -other if _side(other) else self.array() - other

    def __rsub__(self, other: Any) -> Any:
        return -self + other

    def __mul__(self, other: Any) -> Any:
        if _side(other) == "one":
            return Shifted(self.rows * other, self.lanes * other)
        if not self.lanes.any():
            return self.rows * (other if other.__class__ is not Shifted or other.lanes.any() else other.rows)
        return self.array() * whole(other)

    __rmul__ = __mul__

    def __lshift__(self, by: Any) -> Any:
        if _side(by) == "one":
            return Shifted(self.rows << by, self.lanes << by)
        return self.array() << whole(by)

    def __rlshift__(self, other: Any) -> Any:
        return whole(other) << self.array()

    # ── Bits ─────────────────────────────────────────────────────────────────────────────────────

    def __rshift__(self, by: Any) -> Any:
        if _side(by) != "one" or self.bounds()[1] == _UNSAFE:
            return self.array() >> whole(by)
        lowest = (self.rows + self.lanes.min()) >> by
        if ((self.rows + self.lanes.max()) >> by == lowest).all():
            return lowest
        rest = int(self.rows[0, 0]) & ((1 << by) - 1)
        rows = self.rows - rest
        if not (rows & ((1 << by) - 1)).any():
            return _made(rows >> by, (self.lanes + rest) >> by)
        return self.array() >> by

    def __rrshift__(self, other: Any) -> Any:
        return whole(other) >> self.array()

    def __and__(self, other: Any) -> Any:
        if other.__class__ is int and other == FULL:
            return self._cut()
        return self._bits(operator.and_, other)

    __rand__ = __and__

    def __or__(self, other: Any) -> Any:
        if _side(other) and (_fits_below(self, other) or _fits_below(other, self)):
            return self + other
        return self._bits(operator.or_, other)

    __ror__ = __or__

    def __xor__(self, other: Any) -> Any:
        if other.__class__ is int and other in (FULL, _TOP):
            low, high = self.bounds()
            if low >= 0 and high <= FULL:
                if other == FULL:
                    return Shifted(FULL - self.rows, -self.lanes)
                lowest = (self.rows + self.lanes.min()) & _TOP
                if (((self.rows + self.lanes.max()) & _TOP) == lowest).all():
                    return _made(self.rows + (_TOP - 2 * lowest), self.lanes)
        return self._bits(operator.xor, other)

    __rxor__ = __xor__

    def _cut(self) -> Any:
        """The lowest 32 bits."""
        rows, lanes = self.rows & FULL, self.lanes & FULL
        least, most = lanes.min(), lanes.max()
        if ((rows + least) >> 32 == (rows + most) >> 32).all():  # the lanes of a CTA lose the same
            return _made(rows - ((rows + least) & ~FULL), lanes)
        apart = (lanes - lanes[0, 0] ^ _TOP) & FULL
        apart = apart - _TOP  # signed differences to the first lane
        rows = (rows + lanes[0, 0] + apart.min()) & FULL
        lanes = apart - apart.min()
        if int(rows.max()) + int(lanes.max()) > FULL:
            return self.array() & FULL
        return _made(rows, lanes)

    def _bits(self, function: Callable[[Any, Any], Any], other: Any) -> Any:
        """A bitwise operation, if CTAs have some bits and lanes the others."""
        if _side(other) and _bounds(self)[1] < _UNSAFE and _bounds(other)[1] < _UNSAFE:
            split = min(_split(self), _split(other))
            mine, its = _divided(self, split), _divided(other, split)
            if mine is not None and its is not None:
                return _made(function(mine[0], its[0]), function(mine[1], its[1]))
        return function(self.array(), whole(other))

    # ── Comparisons ──────────────────────────────────────────────────────────────────────────────

    def __lt__(self, other: Any) -> Any:
        return self._compare(np.less, other)

    def __le__(self, other: Any) -> Any:
        return self._compare(np.less_equal, other)

    def __gt__(self, other: Any) -> Any:
        return self._compare(np.greater, other)

    def __ge__(self, other: Any) -> Any:
        return self._compare(np.greater_equal, other)

    def __eq__(self, other: object) -> Any:
        return self._compare(np.equal, other)

    def __ne__(self, other: object) -> Any:
        return self._compare(np.not_equal, other)

    def _compare(self, function: Callable[[Any, Any], Any], other: Any) -> Any:
        """A predicate of each lane, or of each CTA if its lanes agree."""
        side = _side(other)
        if side in ("lanes", "both") and max(_bounds(self)[1], _bounds(other)[1]) < _UNSAFE:
            return function(self - other, 0)
        if side in ("one", "rows") and self.bounds()[1] < _UNSAFE:
            low, high = self.rows + self.lanes.min(), self.rows + self.lanes.max()
            if function in (np.equal, np.not_equal):
                if ((high < other) | (low > other)).all():
                    return function is np.not_equal
            else:
                first, last = function(low, other), function(high, other)
                if (first == last).all():  # lanes between the extremes agree, too
                    return _simplest(first)
        found = function(self.array(), whole(other))
        return as_shifted(found) if found.shape == self.shape else found

    # ── numpy ────────────────────────────────────────────────────────────────────────────────────

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **how: Any) -> Any:
        names = _OPERATORS.get(ufunc)
        if names is not None and method == "__call__" and not how:
            first, second = inputs
            if first.__class__ is Shifted:
                return getattr(first, names[0])(second)
            return getattr(second, names[1])(first)
        return getattr(ufunc, method)(*map(whole, inputs), **how)

    def __array_function__(self, function: Any, _types: Any, given: Any, how: Any) -> Any:
        if function is np.where and len(given) == 3:
            return _chosen(*given)
        return function(*map(whole, given), **{name: whole(value) for name, value in how.items()})


_OPERATORS: Mapping[Any, tuple[str, str]] = {
    np.add: ("__add__", "__radd__"),
    np.subtract: ("__sub__", "__rsub__"),
    np.multiply: ("__mul__", "__rmul__"),
    np.left_shift: ("__lshift__", "__rlshift__"),
    np.right_shift: ("__rshift__", "__rrshift__"),
    np.bitwise_and: ("__and__", "__rand__"),
    np.bitwise_or: ("__or__", "__ror__"),
    np.bitwise_xor: ("__xor__", "__rxor__"),
    np.less: ("__lt__", "__gt__"),
    np.less_equal: ("__le__", "__ge__"),
    np.greater: ("__gt__", "__lt__"),
    np.greater_equal: ("__ge__", "__le__"),
    np.equal: ("__eq__", "__eq__"),
    np.not_equal: ("__ne__", "__ne__"),
}
"""numpy function → methods for an affine first operand and for an affine second operand."""


def _side(other: Any) -> str:
    """The shape of an operand: `one`, `rows` (per CTA), `lanes`, `both` (affine); empty if another array."""
    if other.__class__ is int:
        return "one" if -_SAFE < other < _SAFE else ""
    if other.__class__ is Shifted:
        return "both"
    if isinstance(other, np.ndarray):
        if other.dtype != np.int64 or other.ndim != 2:
            return ""
        return "lanes" if other.shape[0] == 1 else "rows" if other.shape[1] == 1 else ""
    return "one" if isinstance(other, (bool, np.int64)) else ""


def _bounds(value: Any) -> tuple[int, int]:
    """Minimum and maximum of an operand of any shape."""
    if value.__class__ is Shifted:
        found: tuple[int, int] = value.bounds()
        return found
    if isinstance(value, np.ndarray):
        low, high = int(value.min()), int(value.max())
        return (low, high) if low > -_SAFE and high < _SAFE else (-_UNSAFE, _UNSAFE)
    return int(value), int(value)


def _fits_below(value: Any, other: Any) -> bool:
    """Whether `other` has bits only above the highest bit of `value`."""
    low, high = _bounds(value)
    if low < 0 or high == _UNSAFE:
        return False
    below = (1 << high.bit_length()) - 1
    if other.__class__ is Shifted:
        return not ((other.rows & below).any() or (other.lanes & below).any())
    return not np.any(other & below)


def _split(value: Any) -> int:
    """Number of low bits that are the same in all CTAs."""
    rows = value.rows if value.__class__ is Shifted else value if _side(value) == "rows" else None
    if rows is None:
        return 62
    differ = int(np.bitwise_or.reduce(rows ^ rows[0, 0], axis=None))
    return 62 if not differ else (differ & -differ).bit_length() - 1


def _divided(value: Any, split: int) -> tuple[Any, Any] | None:
    """The bits from `split` on, per CTA, and the others, per lane; None if they do not separate."""
    low = (1 << split) - 1
    if value.__class__ is int or isinstance(value, (bool, np.int64)):
        return int(value) & ~low, int(value) & low
    if value.__class__ is not Shifted:
        if value.shape[0] == 1:
            high = value & ~low
            return (int(high[0, 0]), value & low) if (high == high[0, 0]).all() else None
        rest = int(value[0, 0]) & low
        return value - rest, rest
    rest = int(value.rows[0, 0]) & low
    lanes = value.lanes + rest
    if int(lanes.min()) < 0 or int(lanes.max()) > low:
        return None
    return value.rows - rest, lanes


def _chosen(mask: Any, yes: Any, no: Any) -> Any:
    """`np.where` of affine values, by lanes or by CTAs."""
    mask = np.asarray(mask)
    if mask.ndim == 2 and 1 in mask.shape and (found := join(mask, yes, no)) is not None:
        return found
    return np.where(mask, whole(yes), whole(no))


def join(mask: NDArray[np.bool_], yes: Any, no: Any) -> Any | None:
    """One affine value selected from two by a mask of lanes or CTAs; None if the result is not affine."""
    parts = [_parts(yes), _parts(no)]
    if None in parts:
        return None
    (rows, lanes), (other_rows, other_lanes) = parts  # type: ignore[misc]
    if mask.shape[0] == 1 and ((rows - rows[0, 0]) == (other_rows - other_rows[0, 0])).all():
        return _made(rows, np.where(mask, lanes, other_lanes + (other_rows[0, 0] - rows[0, 0])))
    if mask.shape[1] == 1 and ((lanes - lanes[0, 0]) == (other_lanes - other_lanes[0, 0])).all():
        return _made(np.where(mask, rows, other_rows + (other_lanes[0, 0] - lanes[0, 0])), lanes)
    return None


def _parts(value: Any) -> tuple[Any, Any] | None:
    if value.__class__ is np.ndarray and value.dtype == np.int64 and value.shape[1] == 1:
        return value, _NO_LANES
    if value.__class__ is int and -_SAFE < value < _SAFE:
        return np.array([[value]], np.int64), _NO_LANES
    return (value.rows, value.lanes) if value.__class__ is Shifted else None


_NO_LANES = np.zeros((1, 1), np.int64)
"""The lane part of a value that is the same in all lanes."""


def stacked_sums(parts: Sequence[Any], counts: Sequence[int]) -> Any | None:
    """Registers of consecutive CTAs as one affine value; None if the result is not affine.

    Args:
        parts: the registers.
        counts: CTAs of each.
    """
    sums = [_parts_of_lanes(part) for part in parts]
    if None in sums:
        return None
    lanes = sums[0][1]  # type: ignore[index]
    rows = []
    for (own, its), count in zip(sums, counts, strict=True):  # type: ignore[misc]
        apart = its[0, 0] - lanes[0, 0]
        if its is not lanes and not (its - apart == lanes).all():
            return None
        rows.append(np.broadcast_to(own + apart, (count, 1)))
    return _made(np.concatenate(rows), lanes)


def _parts_of_lanes(value: Any) -> tuple[Any, Any] | None:
    """Like `_parts`, and also for values per lane."""
    if value.__class__ is np.ndarray and value.dtype == np.int64 and value.shape[0] == 1:
        return _NO_LANES, value
    return _parts(value)
