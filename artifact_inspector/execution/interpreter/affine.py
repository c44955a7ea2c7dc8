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
_SIGN_BIT = 0x80000000
_SAFE_MAGNITUDE = 1 << 61
"""Two numbers of smaller magnitude can be added without leaving int64."""
_UNBOUNDED = 1 << 65


def is_affine_worthwhile(ctas: int, threads: int) -> bool:
    """Whether there are enough lanes for affine values to pay off."""
    return ctas > 1 and ctas * threads > FEWEST_LANES


def as_plain_array(value: Any) -> Any:
    """A value as a number or array: affine values become arrays."""
    return value.to_array() if value.__class__ is AffineValue else value


def to_affine(value: NDArray[Any]) -> Any:
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
    middle_row = len(value) // 2
    for row in (len(value) - 1, middle_row):
        if not np.array_equal(value[row] - value[row, 0], lanes[0]):
            return value
    if not (value == rows + lanes).all():
        return value
    return _simplify_affine(rows, lanes)


def _simplest(predicate: NDArray[np.bool_]) -> Any:
    """A predicate of CTAs or of lanes; one boolean if all agree."""
    return bool(predicate[0, 0]) if (predicate == predicate[0, 0]).all() else predicate


def _simplify_affine(rows: Any, lanes: Any) -> Any:
    """The simplest form of an affine value."""
    rows_differ = isinstance(rows, np.ndarray) and not (rows == rows[0, 0]).all()
    lanes_differ = isinstance(lanes, np.ndarray) and not (lanes == lanes[0, 0]).all()
    if rows_differ and lanes_differ:
        return AffineValue(rows, lanes)
    if not rows_differ and isinstance(rows, np.ndarray):
        rows = rows[0, 0]
    if not lanes_differ and isinstance(lanes, np.ndarray):
        lanes = lanes[0, 0]
    total = rows + lanes
    return total if isinstance(total, np.ndarray) else int(total)


class AffineValue:
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

    def to_array(self) -> NDArray[np.int64]:
        """The value as an array of all lanes."""
        total: NDArray[np.int64] = self.rows + self.lanes
        return total

    def __array__(self, dtype: Any = None, copy: Any = None) -> NDArray[Any]:
        return self.to_array() if dtype is None else self.to_array().astype(dtype)

    def keep(self, rows: NDArray[Any]) -> Any:
        """The value for some of the CTAs."""
        return _simplify_affine(self.rows[rows], self.lanes)

    def bounds(self) -> tuple[int, int]:
        """Minimum and maximum; beyond the range of int64 if a sum could overflow."""
        low, high = int(self.rows.min()), int(self.rows.max())
        lane_minimum, lane_maximum = int(self.lanes.min()), int(self.lanes.max())
        if min(low, lane_minimum) < -_SAFE_MAGNITUDE or max(high, lane_maximum) > _SAFE_MAGNITUDE:
            return -_UNBOUNDED, _UNBOUNDED
        return low + lane_minimum, high + lane_maximum

    # ── Sums and products ────────────────────────────────────────────────────────────────────────

    def __add__(self, operand: Any) -> Any:
        match _operand_shape(operand):
            case "one" | "rows":
                return AffineValue(self.rows + operand, self.lanes)
            case "lanes":
                return AffineValue(self.rows, self.lanes + operand)
            case "both":
                return _simplify_affine(self.rows + operand.rows, self.lanes + operand.lanes)
        return self.to_array() + operand

    __radd__ = __add__

    def __neg__(self) -> Any:
        return AffineValue(-self.rows, -self.lanes)

    def __invert__(self) -> Any:
        return AffineValue(~self.rows, -self.lanes)

    def __bool__(self) -> bool:
        raise ValueError("an affine value has no truth value")

    def __sub__(self, operand: Any) -> Any:
        return self + -operand if _operand_shape(operand) else self.to_array() - operand

    def __rsub__(self, operand: Any) -> Any:
        return -self + operand

    def __mul__(self, operand: Any) -> Any:
        if _operand_shape(operand) == "one":
            return AffineValue(self.rows * operand, self.lanes * operand)
        if not self.lanes.any():
            return self.rows * (
                operand if operand.__class__ is not AffineValue or operand.lanes.any() else operand.rows
            )
        return self.to_array() * as_plain_array(operand)

    __rmul__ = __mul__

    def __lshift__(self, amount: Any) -> Any:
        if _operand_shape(amount) == "one":
            return AffineValue(self.rows << amount, self.lanes << amount)
        return self.to_array() << as_plain_array(amount)

    def __rlshift__(self, operand: Any) -> Any:
        return as_plain_array(operand) << self.to_array()

    # ── Bits ─────────────────────────────────────────────────────────────────────────────────────

    def __rshift__(self, amount: Any) -> Any:
        if _operand_shape(amount) != "one" or self.bounds()[1] == _UNBOUNDED:
            return self.to_array() >> as_plain_array(amount)
        lowest = (self.rows + self.lanes.min()) >> amount
        if ((self.rows + self.lanes.max()) >> amount == lowest).all():
            return lowest
        low_bits = int(self.rows[0, 0]) & ((1 << amount) - 1)
        rows = self.rows - low_bits
        if not (rows & ((1 << amount) - 1)).any():
            return _simplify_affine(rows >> amount, (self.lanes + low_bits) >> amount)
        return self.to_array() >> amount

    def __rrshift__(self, operand: Any) -> Any:
        return as_plain_array(operand) >> self.to_array()

    def __and__(self, operand: Any) -> Any:
        if operand.__class__ is int and operand == FULL:
            return self._truncate_32()
        return self._bitwise(operator.and_, operand)

    __rand__ = __and__

    def __or__(self, operand: Any) -> Any:
        if _operand_shape(operand) and (_has_no_bits_below(self, operand) or _has_no_bits_below(operand, self)):
            return self + operand
        return self._bitwise(operator.or_, operand)

    __ror__ = __or__

    def __xor__(self, operand: Any) -> Any:
        if operand.__class__ is int and operand in (FULL, _SIGN_BIT):
            low, high = self.bounds()
            if low >= 0 and high <= FULL:
                if operand == FULL:
                    return AffineValue(FULL - self.rows, -self.lanes)
                lowest = (self.rows + self.lanes.min()) & _SIGN_BIT
                if (((self.rows + self.lanes.max()) & _SIGN_BIT) == lowest).all():
                    return _simplify_affine(self.rows + (_SIGN_BIT - 2 * lowest), self.lanes)
        return self._bitwise(operator.xor, operand)

    __rxor__ = __xor__

    def _truncate_32(self) -> Any:
        """The lowest 32 bits."""
        rows, lanes = self.rows & FULL, self.lanes & FULL
        lane_minimum, lane_maximum = lanes.min(), lanes.max()
        if ((rows + lane_minimum) >> 32 == (rows + lane_maximum) >> 32).all():  # the lanes of a CTA lose the same
            return _simplify_affine(rows - ((rows + lane_minimum) & ~FULL), lanes)
        lane_differences = (lanes - lanes[0, 0] ^ _SIGN_BIT) & FULL
        lane_differences = lane_differences - _SIGN_BIT  # signed differences to the first lane
        rows = (rows + lanes[0, 0] + lane_differences.min()) & FULL
        lanes = lane_differences - lane_differences.min()
        if int(rows.max()) + int(lanes.max()) > FULL:
            return self.to_array() & FULL
        return _simplify_affine(rows, lanes)

    def _bitwise(self, function: Callable[[Any, Any], Any], operand: Any) -> Any:
        """A bitwise operation, if CTAs have some bits and lanes the others."""
        if (
            _operand_shape(operand)
            and _operand_bounds(self)[1] < _UNBOUNDED
            and _operand_bounds(operand)[1] < _UNBOUNDED
        ):
            split = min(_uniform_low_bits(self), _uniform_low_bits(operand))
            own_split, operand_split = _split_bits(self, split), _split_bits(operand, split)
            if own_split is not None and operand_split is not None:
                return _simplify_affine(
                    function(own_split[0], operand_split[0]), function(own_split[1], operand_split[1])
                )
        return function(self.to_array(), as_plain_array(operand))

    # ── Comparisons ──────────────────────────────────────────────────────────────────────────────

    def __lt__(self, operand: Any) -> Any:
        return self._compare(np.less, operand)

    def __le__(self, operand: Any) -> Any:
        return self._compare(np.less_equal, operand)

    def __gt__(self, operand: Any) -> Any:
        return self._compare(np.greater, operand)

    def __ge__(self, operand: Any) -> Any:
        return self._compare(np.greater_equal, operand)

    def __eq__(self, operand: object) -> Any:
        return self._compare(np.equal, operand)

    def __ne__(self, operand: object) -> Any:
        return self._compare(np.not_equal, operand)

    def _compare(self, function: Callable[[Any, Any], Any], operand: Any) -> Any:
        """A predicate of each lane, or of each CTA if its lanes agree."""
        operand_shape = _operand_shape(operand)
        if (
            operand_shape in ("lanes", "both")
            and max(_operand_bounds(self)[1], _operand_bounds(operand)[1]) < _UNBOUNDED
        ):
            return function(self - operand, 0)
        if operand_shape in ("one", "rows") and self.bounds()[1] < _UNBOUNDED:
            low, high = self.rows + self.lanes.min(), self.rows + self.lanes.max()
            if function in (np.equal, np.not_equal):
                if ((high < operand) | (low > operand)).all():
                    return function is np.not_equal
            else:
                first, last = function(low, operand), function(high, operand)
                if (first == last).all():  # lanes between the extremes agree, too
                    return _simplest(first)
        comparison = function(self.to_array(), as_plain_array(operand))
        return to_affine(comparison) if comparison.shape == self.shape else comparison

    # ── numpy ────────────────────────────────────────────────────────────────────────────────────

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        names = _OPERATORS.get(ufunc)
        if names is not None and method == "__call__" and not options:
            first, second = inputs
            if first.__class__ is AffineValue:
                return getattr(first, names[0])(second)
            return getattr(second, names[1])(first)
        return getattr(ufunc, method)(*map(as_plain_array, inputs), **options)

    def __array_function__(self, function: Any, _types: Any, arguments: Any, options: Any) -> Any:
        if function is np.where and len(arguments) == 3:
            return _select_affine(*arguments)
        return function(
            *map(as_plain_array, arguments), **{name: as_plain_array(value) for name, value in options.items()}
        )


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


def _operand_shape(operand: Any) -> str:
    """The shape of an operand: `one`, `rows` (per CTA), `lanes`, `both` (affine); empty if another array."""
    if operand.__class__ is int:
        return "one" if -_SAFE_MAGNITUDE < operand < _SAFE_MAGNITUDE else ""
    if operand.__class__ is AffineValue:
        return "both"
    if isinstance(operand, np.ndarray):
        if operand.dtype != np.int64 or operand.ndim != 2:
            return ""
        return "lanes" if operand.shape[0] == 1 else "rows" if operand.shape[1] == 1 else ""
    return "one" if isinstance(operand, (bool, np.int64)) else ""


def _operand_bounds(value: Any) -> tuple[int, int]:
    """Minimum and maximum of an operand of any shape."""
    if value.__class__ is AffineValue:
        bounds: tuple[int, int] = value.bounds()
        return bounds
    if isinstance(value, np.ndarray):
        low, high = int(value.min()), int(value.max())
        return (low, high) if low > -_SAFE_MAGNITUDE and high < _SAFE_MAGNITUDE else (-_UNBOUNDED, _UNBOUNDED)
    return int(value), int(value)


def _has_no_bits_below(value: Any, operand: Any) -> bool:
    """Whether `operand` has bits only above the highest bit of `value`."""
    low, high = _operand_bounds(value)
    if low < 0 or high == _UNBOUNDED:
        return False
    below = (1 << high.bit_length()) - 1
    if operand.__class__ is AffineValue:
        return not ((operand.rows & below).any() or (operand.lanes & below).any())
    return not np.any(operand & below)


def _uniform_low_bits(value: Any) -> int:
    """Number of low bits that are the same in all CTAs."""
    rows = value.rows if value.__class__ is AffineValue else value if _operand_shape(value) == "rows" else None
    if rows is None:
        return 62
    differ = int(np.bitwise_or.reduce(rows ^ rows[0, 0], axis=None))
    return 62 if not differ else (differ & -differ).bit_length() - 1


def _split_bits(value: Any, split: int) -> tuple[Any, Any] | None:
    """The bits from `split` on, per CTA, and the others, per lane; None if they do not separate."""
    low = (1 << split) - 1
    if value.__class__ is int or isinstance(value, (bool, np.int64)):
        return int(value) & ~low, int(value) & low
    if value.__class__ is not AffineValue:
        if value.shape[0] == 1:
            high = value & ~low
            return (int(high[0, 0]), value & low) if (high == high[0, 0]).all() else None
        low_bits = int(value[0, 0]) & low
        return value - low_bits, low_bits
    low_bits = int(value.rows[0, 0]) & low
    lanes = value.lanes + low_bits
    if int(lanes.min()) < 0 or int(lanes.max()) > low:
        return None
    return value.rows - low_bits, lanes


def _select_affine(mask: Any, yes: Any, no: Any) -> Any:
    """`np.where` of affine values, by lanes or by CTAs."""
    mask = np.asarray(mask)
    if mask.ndim == 2 and 1 in mask.shape and (selected := select_one_affine(mask, yes, no)) is not None:
        return selected
    return np.where(mask, as_plain_array(yes), as_plain_array(no))


def select_one_affine(mask: NDArray[np.bool_], yes: Any, no: Any) -> Any | None:
    """One affine value selected from two by a mask of lanes or CTAs; None if the result is not affine."""
    affine_parts = [_affine_parts(yes), _affine_parts(no)]
    if None in affine_parts:
        return None
    (rows, lanes), (other_rows, other_lanes) = affine_parts  # type: ignore[misc]
    if mask.shape[0] == 1 and ((rows - rows[0, 0]) == (other_rows - other_rows[0, 0])).all():
        return _simplify_affine(rows, np.where(mask, lanes, other_lanes + (other_rows[0, 0] - rows[0, 0])))
    if mask.shape[1] == 1 and ((lanes - lanes[0, 0]) == (other_lanes - other_lanes[0, 0])).all():
        return _simplify_affine(np.where(mask, rows, other_rows + (other_lanes[0, 0] - lanes[0, 0])), lanes)
    return None


def _affine_parts(value: Any) -> tuple[Any, Any] | None:
    if value.__class__ is np.ndarray and value.dtype == np.int64 and value.shape[1] == 1:
        return value, _NO_LANES
    if value.__class__ is int and -_SAFE_MAGNITUDE < value < _SAFE_MAGNITUDE:
        return np.array([[value]], np.int64), _NO_LANES
    return (value.rows, value.lanes) if value.__class__ is AffineValue else None


_NO_LANES = np.zeros((1, 1), np.int64)
"""The lane part of a value that is the same in all lanes."""


def stack_affine(registers: Sequence[Any], counts: Sequence[int]) -> Any | None:
    """Registers of consecutive CTAs as one affine value; None if the result is not affine.

    Args:
        registers: the registers.
        counts: CTAs of each.
    """
    affine_parts = [_affine_parts_or_lanes(register) for register in registers]
    if None in affine_parts:
        return None
    lanes = affine_parts[0][1]  # type: ignore[index]
    rows = []
    for (cta_values, lane_values), count in zip(affine_parts, counts, strict=True):  # type: ignore[misc]
        lane_offset = lane_values[0, 0] - lanes[0, 0]
        if lane_values is not lanes and not (lane_values - lane_offset == lanes).all():
            return None
        rows.append(np.broadcast_to(cta_values + lane_offset, (count, 1)))
    return _simplify_affine(np.concatenate(rows), lanes)


def _affine_parts_or_lanes(value: Any) -> tuple[Any, Any] | None:
    """Like `_affine_parts`, and also for values per lane."""
    if value.__class__ is np.ndarray and value.dtype == np.int64 and value.shape[0] == 1:
        return _NO_LANES, value
    return _affine_parts(value)
