"""An affine value: a register that is a number per CTA plus a number per lane.

If the CTAs of a launch differ only by the origin of their tile, so do nearly all of its registers. Then one
computation for the lanes and one for the CTAs replaces one for every thread. Every operation gives exactly
what numpy would give for the whole array; a result that is not affine is computed as an array.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias, TypeGuard, overload

import numpy as np
from numpy.typing import NDArray

FULL = 0xFFFFFFFF
"""All bits of a register."""
FEWEST_LANES = 1 << 12
"""With fewer lanes, arrays are as fast."""
_LANES_PER_COMPARISON = 1 << 15
_SIGN_BIT = 0x80000000
_SAFE_MAGNITUDE = 1 << 61
"""Two numbers of smaller magnitude can be added without leaving int64."""
_UNBOUNDED = 1 << 65

IntArray: TypeAlias = NDArray[np.int64]
"""Shape (CTAs or 1, threads or 1)."""
BoolArray: TypeAlias = NDArray[np.bool_]
Mask: TypeAlias = "bool | BoolArray"
"""Lanes that take part."""
Word: TypeAlias = "int | IntArray"
Number: TypeAlias = "Word | AffineValue"
"""The number in a register."""
Plain: TypeAlias = "Word | BoolArray"
Known: TypeAlias = "Number | BoolArray"
"""A register or predicate; `bool` is an `int`."""


def is_affine_worthwhile(ctas: int, threads: int) -> bool:
    """Whether there are enough lanes for affine values to pay off."""
    return ctas > 1 and ctas * threads > FEWEST_LANES


@overload
def as_plain_array(value: Number) -> Word: ...
@overload
def as_plain_array(value: Known) -> Plain: ...
def as_plain_array(value: Known) -> Plain:
    """A value as a number or array: affine values become arrays."""
    return value.to_array() if value.__class__ is AffineValue else value  # type: ignore[return-value]


def as_word(value: Known) -> Word:
    """A value as one number or an array of numbers."""
    plain = as_plain_array(value)
    return plain if not isinstance(plain, np.ndarray) or is_int_array(plain) else plain.astype(np.int64)


def as_mask(value: Known) -> Mask:
    """A value as a mask; a number counts as true if it is not 0."""
    if isinstance(value, bool):
        return value
    plain = as_plain_array(value)
    if not isinstance(plain, np.ndarray):
        return bool(plain)
    return plain if is_bool_array(plain) else plain != 0


def to_affine(value: IntArray | BoolArray) -> Known:
    """The simplest form of an array: affine, uniform in lanes or CTAs, or itself."""
    if is_bool_array(value):
        if (value[-1] == value[0]).all() and (value == value[:1]).all():
            return simplest_mask(value[:1])
        return value[:, :1] if (value[:, -1] == value[:, 0]).all() and (value == value[:, :1]).all() else value
    if not is_int_array(value):
        return value
    rows, lanes = value[:, :1], value[:1] - value[0, 0]
    if any(not np.array_equal(value[row] - value[row, 0], lanes[0]) for row in (len(value) - 1, len(value) // 2)):
        return value
    step = max(1, _LANES_PER_COMPARISON // value.shape[1])
    for first in range(0, len(value), step):  # a part fits in the processor's cache
        if not (value[first : first + step] == rows[first : first + step] + lanes).all():
            return value
    return _simplify_affine(rows, lanes)


def is_bool_array(value: object) -> TypeGuard[BoolArray]:
    """Whether a value is a predicate of each lane."""
    return isinstance(value, np.ndarray) and value.dtype == np.bool_


def is_int_array(value: object) -> TypeGuard[IntArray]:
    """Whether a value is a number of each lane."""
    return isinstance(value, np.ndarray) and value.dtype == np.int64


def simplest_mask(predicate: BoolArray) -> Mask:
    """A predicate of CTAs or of lanes; one boolean if all agree."""
    return bool(predicate[0, 0]) if (predicate == predicate[0, 0]).all() else predicate


def _simplify_affine(rows: Word, lanes: Word) -> Number:
    """The simplest form of an affine value."""
    uniform_rows: Word | np.int64 = rows
    # the first and the last number mostly decide, which costs a tenth of a comparison of all
    if isinstance(rows, np.ndarray) and rows.item(0) == rows.item(-1) and (rows == rows[0, 0]).all():
        uniform_rows = rows[0, 0]
    uniform_lanes: Word | np.int64 = lanes
    if isinstance(lanes, np.ndarray) and lanes.item(0) == lanes.item(-1) and (lanes == lanes[0, 0]).all():
        uniform_lanes = lanes[0, 0]
    if isinstance(uniform_rows, np.ndarray) and isinstance(uniform_lanes, np.ndarray):
        return AffineValue(uniform_rows, uniform_lanes)
    total = uniform_rows + uniform_lanes
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

    def __init__(self, rows: IntArray, lanes: IntArray) -> None:
        self.rows, self.lanes = rows, lanes

    @property
    def shape(self) -> tuple[int, int]:
        """CTAs and lanes."""
        return self.rows.shape[0], self.lanes.shape[1]

    def to_array(self) -> IntArray:
        """The value as an array of all lanes."""
        return self.rows + self.lanes

    def __array__(self, dtype: np.dtype[Any] | None = None, copy: bool | None = None) -> NDArray[Any]:
        return self.to_array() if dtype is None else self.to_array().astype(dtype)

    def keep(self, rows: IntArray) -> Number:
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

    def __add__(self, operand: Known) -> Number:
        if operand.__class__ is AffineValue:
            return _simplify_affine(self.rows + operand.rows, self.lanes + operand.lanes)
        if _is_one(operand):
            return AffineValue(self.rows + operand, self.lanes)
        if is_int_array(operand) and operand.ndim == 2 and 1 in operand.shape:
            if operand.shape[0] == 1:
                return AffineValue(self.rows, self.lanes + operand)
            return AffineValue(self.rows + operand, self.lanes)
        return self.to_array() + operand

    __radd__ = __add__

    def __neg__(self) -> AffineValue:
        return AffineValue(-self.rows, -self.lanes)

    def __invert__(self) -> AffineValue:
        return AffineValue(~self.rows, -self.lanes)

    def __abs__(self) -> IntArray:
        return np.abs(self.to_array())

    def __bool__(self) -> bool:
        raise ValueError("an affine value has no truth value")

    def __sub__(self, operand: Number) -> Number:
        return self + -operand if _is_affine_operand(operand) else self.to_array() - as_plain_array(operand)

    def __rsub__(self, operand: Known) -> Number:
        return -self + operand

    def __mul__(self, operand: Known) -> Number:
        if _is_one(operand):
            return AffineValue(self.rows * operand, self.lanes * operand)
        if not self.lanes.any():
            return self.rows * (
                operand.rows if isinstance(operand, AffineValue) and not operand.lanes.any() else operand
            )
        return self.to_array() * as_plain_array(operand)

    __rmul__ = __mul__

    def __lshift__(self, amount: Known) -> Number:
        if _is_one(amount):
            return AffineValue(self.rows << amount, self.lanes << amount)
        return self.to_array() << as_plain_array(amount)

    def __rlshift__(self, operand: Known) -> Number:
        return as_plain_array(operand) << self.to_array()

    # ── Bits ─────────────────────────────────────────────────────────────────────────────────────

    def __rshift__(self, amount: Known) -> Number:
        if not _is_one(amount) or self.bounds()[1] == _UNBOUNDED:
            return self.to_array() >> as_plain_array(amount)
        lowest: IntArray = (self.rows + self.lanes.min()) >> amount
        if ((self.rows + self.lanes.max()) >> amount == lowest).all():
            return lowest
        low_bits = int(self.rows[0, 0]) & ((1 << amount) - 1)
        rows = self.rows - low_bits
        if not (rows & ((1 << amount) - 1)).any():
            return _simplify_affine(rows >> amount, (self.lanes + low_bits) >> amount)
        return self.to_array() >> amount

    def __rrshift__(self, operand: Known) -> Number:
        return as_plain_array(operand) >> self.to_array()

    def __and__(self, operand: Known) -> Number:
        if operand.__class__ is int and operand == FULL:
            return self._truncate_32()
        return self._bitwise(operator.and_, operand)

    __rand__ = __and__

    def __or__(self, operand: Known) -> Number:
        if _is_affine_operand(operand) and (_has_no_bits_below(self, operand) or _has_no_bits_below(operand, self)):
            return self + operand
        return self._bitwise(operator.or_, operand)

    __ror__ = __or__

    def __xor__(self, operand: Known) -> Number:
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

    def _truncate_32(self) -> Number:
        """The lowest 32 bits."""
        low, high = self.bounds()
        if low >= 0 and high <= FULL:
            return _simplify_affine(self.rows, self.lanes)
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

    def _bitwise(self, function: Callable[[Word, Word], Word], operand: Known) -> Number:
        """A bitwise operation, if CTAs have some bits and lanes the others."""
        if (
            _is_affine_operand(operand)
            and _operand_bounds(self)[1] < _UNBOUNDED
            and _operand_bounds(operand)[1] < _UNBOUNDED
        ):
            split = min(_uniform_low_bits(self), _uniform_low_bits(operand))
            own_split, operand_split = _split_bits(self, split), _split_bits(operand, split)
            if own_split is not None and operand_split is not None:
                return _simplify_affine(*map(function, own_split, operand_split))
        return function(self.to_array(), as_word(operand))

    # ── Comparisons ──────────────────────────────────────────────────────────────────────────────

    def __lt__(self, operand: Number) -> Mask:
        return self._compare(operator.lt, operand)

    def __le__(self, operand: Number) -> Mask:
        return self._compare(operator.le, operand)

    def __gt__(self, operand: Number) -> Mask:
        return self._compare(operator.gt, operand)

    def __ge__(self, operand: Number) -> Mask:
        return self._compare(operator.ge, operand)

    def __eq__(self, operand: Number) -> Mask:  # type: ignore[override]
        return self._compare(operator.eq, operand)

    def __ne__(self, operand: Number) -> Mask:  # type: ignore[override]
        return self._compare(operator.ne, operand)

    def _compare(self, function: Callable[[Number, Number], Mask], operand: Number) -> Mask:
        """A predicate of each lane, or of each CTA if its lanes agree."""
        is_per_cta = is_int_array(operand) and operand.ndim == 2 and operand.shape[0] > 1 == operand.shape[1]
        if is_per_cta or _is_one(operand):
            if self.bounds()[1] < _UNBOUNDED:
                low, high = self.rows + self.lanes.min(), self.rows + self.lanes.max()
                is_order = function not in (operator.eq, operator.ne)
                if not is_order and ((high < operand) | (low > operand)).all():
                    return function is operator.ne
                if is_order or low[0, 0] == high[0, 0]:
                    first, last = function(low, operand), function(high, operand)
                    if is_bool_array(first) and (first == last).all():  # lanes between the extremes agree, too
                        return simplest_mask(first)
        elif _is_affine_operand(operand) and max(_operand_bounds(self)[1], _operand_bounds(operand)[1]) < _UNBOUNDED:
            return function(self - operand, 0)
        comparison = np.asarray(function(self.to_array(), as_plain_array(operand)))
        return as_mask(to_affine(comparison)) if comparison.shape == self.shape else comparison

    # ── numpy ────────────────────────────────────────────────────────────────────────────────────

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Known, **options: Any) -> Any:
        names = _OPERATORS.get(ufunc)
        if names is not None and method == "__call__" and not options:
            first, second = inputs
            if first.__class__ is AffineValue:
                return getattr(first, names[0])(second)
            return getattr(second, names[1])(first)
        return getattr(ufunc, method)(*map(as_plain_array, inputs), **options)

    def __array_function__(
        self, function: Callable[..., Any], _types: Any, arguments: Sequence[Any], options: Mapping[str, Any]
    ) -> Any:
        if function is np.where and len(arguments) == 3:
            return _select_affine(*arguments)
        return function(
            *map(as_plain_array, arguments), **{name: as_plain_array(value) for name, value in options.items()}
        )


_OPERATORS: Mapping[np.ufunc, tuple[str, str]] = {
    np.add: ("__add__", "__radd__"), np.subtract: ("__sub__", "__rsub__"),
    np.multiply: ("__mul__", "__rmul__"), np.left_shift: ("__lshift__", "__rlshift__"),
    np.right_shift: ("__rshift__", "__rrshift__"), np.bitwise_and: ("__and__", "__rand__"),
    np.bitwise_or: ("__or__", "__ror__"), np.bitwise_xor: ("__xor__", "__rxor__"),
    np.less: ("__lt__", "__gt__"), np.less_equal: ("__le__", "__ge__"), np.greater: ("__gt__", "__lt__"),
    np.greater_equal: ("__ge__", "__le__"), np.equal: ("__eq__", "__eq__"), np.not_equal: ("__ne__", "__ne__"),
}  # fmt: skip
"""numpy function → methods for an affine first operand and for an affine second operand."""


def _is_one(operand: Known) -> TypeGuard[int]:
    """Whether an operand is the same small number in all lanes."""
    if isinstance(operand, int):
        return -_SAFE_MAGNITUDE < operand < _SAFE_MAGNITUDE
    return isinstance(operand, np.int64)


def _is_affine_operand(operand: Known) -> TypeGuard[Number]:
    """Whether an operand is affine: one number, or numbers per CTA, per lane, or both."""
    if isinstance(operand, np.ndarray):
        return operand.dtype == np.int64 and operand.ndim == 2 and 1 in operand.shape
    return operand.__class__ is AffineValue or _is_one(operand)


def _operand_bounds(value: Number) -> tuple[int, int]:
    """Minimum and maximum of an operand of any shape."""
    if isinstance(value, AffineValue):
        return value.bounds()
    if isinstance(value, np.ndarray):
        low, high = int(value.min()), int(value.max())
        return (low, high) if low > -_SAFE_MAGNITUDE and high < _SAFE_MAGNITUDE else (-_UNBOUNDED, _UNBOUNDED)
    return int(value), int(value)


def _has_no_bits_below(value: Number, operand: Number) -> bool:
    """Whether `operand` has bits only above the highest bit of `value`."""
    low, high = _operand_bounds(value)
    if low < 0 or high == _UNBOUNDED:
        return False
    below = (1 << high.bit_length()) - 1
    parts = (operand.rows, operand.lanes) if isinstance(operand, AffineValue) else (np.asarray(operand),)
    return not any((part & below).any() for part in parts)


def _uniform_low_bits(value: Number) -> int:
    """Number of low bits that are the same in all CTAs."""
    rows = value.rows if isinstance(value, AffineValue) else value
    if not isinstance(rows, np.ndarray) or len(rows) == 1:
        return 62
    differ = int(np.bitwise_or.reduce(rows ^ rows[0, 0], axis=None))
    return 62 if not differ else (differ & -differ).bit_length() - 1


def _split_bits(value: Number, split: int) -> tuple[Word, Word] | None:
    """The bits from `split` on, per CTA, and the others, per lane; None if they do not separate."""
    low = (1 << split) - 1
    if isinstance(value, AffineValue):
        low_bits = int(value.rows[0, 0]) & low
        lanes = value.lanes + low_bits
        return None if int(lanes.min()) < 0 or int(lanes.max()) > low else (value.rows - low_bits, lanes)
    if not isinstance(value, np.ndarray):
        return int(value) & ~low, int(value) & low
    if value.shape[0] == 1:
        high = value & ~low
        return (int(high[0, 0]), value & low) if (high == high[0, 0]).all() else None
    low_bits = int(value[0, 0]) & low
    return value - low_bits, low_bits


def _select_affine(mask: Mask, yes: Known, no: Known) -> Known:
    """`np.where` of affine values, by lanes or by CTAs."""
    lanes = np.asarray(mask)
    if lanes.ndim == 2 and 1 in lanes.shape and (selected := select_one_affine(lanes, yes, no)) is not None:
        return selected
    return np.where(lanes, as_plain_array(yes), as_plain_array(no))


def select_one_affine(mask: BoolArray, yes: Known, no: Known) -> Number | None:
    """One affine value selected from two by a mask of lanes or CTAs; None if the result is not affine."""
    parts, other_parts = _affine_parts(yes), _affine_parts(no)
    if parts is None or other_parts is None:
        return None
    (rows, lanes), (other_rows, other_lanes) = parts, other_parts
    if mask.shape[0] == 1 and ((rows - rows[0, 0]) == (other_rows - other_rows[0, 0])).all():
        return _simplify_affine(rows, np.where(mask, lanes, other_lanes + (other_rows[0, 0] - rows[0, 0])))
    if mask.shape[1] == 1 and ((lanes - lanes[0, 0]) == (other_lanes - other_lanes[0, 0])).all():
        return _simplify_affine(np.where(mask, rows, other_rows + (other_lanes[0, 0] - lanes[0, 0])), lanes)
    return None


def _affine_parts(value: object, *, allows_lanes: bool = False) -> tuple[IntArray, IntArray] | None:
    """The numbers of CTAs and of lanes whose sum a value is; None if it is another array."""
    if isinstance(value, AffineValue):
        return value.rows, value.lanes
    if is_int_array(value) and value.shape[1] == 1:
        return value, _NO_LANES
    if allows_lanes and is_int_array(value) and value.shape[0] == 1:
        return _NO_LANES, value
    if isinstance(value, int) and not isinstance(value, bool) and -_SAFE_MAGNITUDE < value < _SAFE_MAGNITUDE:
        return np.array([[value]], np.int64), _NO_LANES
    return None


_NO_LANES = np.zeros((1, 1), np.int64)
"""The lane part of a value that is the same in all lanes."""


def pair_operands(first: Number, second: Number) -> tuple[Number, Number]:
    """Two operands; if one is of CTAs and one of lanes, as affine values, so that no array of all lanes results."""
    if first.__class__ is second.__class__ is np.ndarray and first.size * second.size > FEWEST_LANES:
        if first.shape[1] == 1 == second.shape[0]:
            return AffineValue(first, _NO_LANES), second
        if first.shape[0] == 1 == second.shape[1]:
            return first, AffineValue(second, _NO_LANES)
    return first, second


def stack_affine(registers: Sequence[object], counts: Sequence[int]) -> Number | None:
    """Registers of consecutive CTAs as one affine value; None if the result is not affine.

    Args:
        counts: CTAs of each.
    """
    lanes: IntArray | None = None
    rows = []
    for register, count in zip(registers, counts, strict=True):
        parts = _affine_parts(register, allows_lanes=True)
        if parts is None:
            return None
        cta_values, lane_values = parts
        lanes = lane_values if lanes is None else lanes
        lane_offset = lane_values[0, 0] - lanes[0, 0]
        if lane_values is not lanes and not (lane_values - lane_offset == lanes).all():
            return None
        rows.append(np.broadcast_to(cta_values + lane_offset, (count, 1)))
    return None if lanes is None else _simplify_affine(np.concatenate(rows), lanes)
