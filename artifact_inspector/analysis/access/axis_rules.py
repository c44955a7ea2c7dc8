"""For each operation of tensor-level IR, the properties of its result that follow from its operands.

**Source**: the visitors of lib/Analysis/AxisInfo.cpp of Triton (`AxisInfoAnalysis`).
"""

from __future__ import annotations

from collections.abc import Callable
from math import gcd
from typing import NamedTuple

from artifact_inspector.model.axes import AxisOperation, AxisRole, Hints

MAX_DIVISOR = 1 << 30
"""The divisor of 0, and the value for "any": no larger power of two affects a width."""

IDENTITY_ROLES = frozenset({AxisRole.SAME})
"""Operations that change neither the elements nor their positions."""
REARRANGING_ROLES = frozenset({AxisRole.EXPAND, AxisRole.RESHAPE, AxisRole.TRANSPOSE})
"""Operations that keep the elements but add, remove or reorder axes."""


class Axes(NamedTuple):
    """Proven properties of a value, one number per axis. A scalar has one axis."""

    contiguity: tuple[int, ...]
    """Length of the runs x, x+1, x+2 … (in elements for a pointer)."""
    divisibility: tuple[int, ...]
    """A power of two that divides the first element of every such run (in bytes for a pointer)."""
    constancy: tuple[int, ...]
    """Length of the runs of equal elements."""
    value: int | None = None
    """The value itself, if it is a known constant."""

    @property
    def rank(self) -> int:
        """Number of axes."""
        return len(self.contiguity)


Shape = tuple[int, ...]
Rule = Callable[[AxisOperation, tuple[Shape, ...], list[Axes]], Axes | None]
"""Maps an operation, the shapes in its text (result last) and its operands to its result."""


def has_rule(operation: AxisOperation) -> bool:
    """True for an operation with a rule."""
    return operation.role in _RULES


def apply_rule(operation: AxisOperation, shapes: tuple[Shape, ...], operands: list[Axes | None]) -> Axes | None:
    """The proven properties of an operation's result; None while an operand is unknown.

    Args:
        shapes: the shapes in its text, the result's last.
        operands: the properties of each operand.
    """
    rank = len(shapes[-1])
    rule, count = _RULES.get(operation.role, (None, 0))
    if rule is None or len(operands) != count:
        return _with_hints(_unproven(rank), operation.hints)
    known_axes = [axes for axes in operands if axes is not None]
    if len(known_axes) < count:
        return None
    fits = rule not in _ELEMENTWISE or all(axes.rank == rank for axes in known_axes[-2:])
    proven = rule(operation, shapes, known_axes) if fits else None
    return _with_hints(proven or _unproven(rank), operation.hints)


def _unproven(rank: int) -> Axes:
    return Axes((1,) * rank, (1,) * rank, (1,) * rank)


def _with_hints(axes: Axes, hints: Hints | None) -> Axes:
    """The properties with the author's hints applied."""
    if hints is None:
        return axes

    def better(proven: tuple[int, ...], promised: tuple[int, ...] | None) -> tuple[int, ...]:
        promised = promised or proven
        return promised * axes.rank if len(promised) == 1 else promised if len(promised) == axes.rank else proven

    runs, divisors = better(axes.contiguity, hints.contiguity), better(axes.divisibility, hints.divisibility)
    return Axes(runs, divisors, better(axes.constancy, hints.constancy), axes.value)


def intersect(left_axes: Axes, right_axes: Axes) -> Axes:
    """The properties that both values have."""
    lhs, rhs = left_axes, right_axes
    # [0, 1] and [16, 17, 18, 19]: the runs become 2 long, and 18 is not a multiple of 16.
    divisors = tuple(
        gcd(a, b) if run == other_run else gcd(a, b, run, other_run)
        for a, b, run, other_run in zip(lhs.divisibility, rhs.divisibility, lhs.contiguity, rhs.contiguity, strict=True)
    )
    runs, constancy = map(gcd, lhs.contiguity, rhs.contiguity), map(gcd, lhs.constancy, rhs.constancy)
    return Axes(tuple(runs), divisors, tuple(constancy), lhs.value if lhs.value == rhs.value else None)


def _power_of_two_in(number: int) -> int:
    return min(MAX_DIVISOR, number & -number) if number else MAX_DIVISOR


def _of_constant(shape: Shape, value: int) -> Axes:
    return Axes((1,) * len(shape), (_power_of_two_in(value),) * len(shape), shape, value)


def _constant(operation: AxisOperation, shapes: tuple[Shape, ...], _: list[Axes]) -> Axes | None:
    return None if operation.value is None else _of_constant(shapes[-1], operation.value)


def _range(operation: AxisOperation, shapes: tuple[Shape, ...], _: list[Axes]) -> Axes:
    run = shapes[-1][0] if operation.stop is None else operation.stop - operation.start
    return Axes((run,), (_power_of_two_in(operation.start),), (1,))


def _splat(_: AxisOperation, shapes: tuple[Shape, ...], operands: list[Axes]) -> Axes:
    shape = shapes[-1]
    return Axes((1,) * len(shape), operands[0].divisibility[:1] * len(shape), shape, operands[0].value)


def _rearrange(operation: AxisOperation, shapes: tuple[Shape, ...], operands: list[Axes]) -> Axes | None:
    """Adds, removes or reorders axes. Each existing axis keeps its properties."""
    axes = operands[0]
    sources = sources_of_axes(operation, shapes)
    if sources is None or axes.rank != len(shapes[0]) or any(d is not None and d >= axes.rank for d in sources):
        return None
    if axes.value is not None:
        divisor = _power_of_two_in(axes.value)
    else:
        # Only the first element of a run is a multiple.
        divisor = gcd(*(1 if run > 1 else d for run, d in zip(axes.contiguity, axes.divisibility, strict=True)))
    return Axes(
        tuple(1 if d is None else axes.contiguity[d] for d in sources),
        tuple(divisor if d is None else axes.divisibility[d] for d in sources),
        tuple(1 if d is None else axes.constancy[d] for d in sources),
        axes.value,
    )


def sources_of_axes(operation: AxisOperation, shapes: tuple[Shape, ...]) -> tuple[int | None, ...] | None:
    """For each axis of a result, the operand's axis; None for a new axis of extent 1.

    Returns None if a reshape does more than add and remove such axes.
    """
    operand_shape, result_shape = shapes[0], shapes[-1]
    if operation.role is AxisRole.EXPAND:
        at = operation.axis or 0
        return tuple(None if d == at else d - (d > at) for d in range(len(result_shape)))
    if operation.role is AxisRole.TRANSPOSE:
        order = operation.order or tuple(reversed(range(len(result_shape))))
        return order if sorted(order) == list(range(len(operand_shape))) else None
    wide = [d for d, extent in enumerate(operand_shape) if extent > 1]
    if [operand_shape[d] for d in wide] != [extent for extent in result_shape if extent > 1]:
        return None
    remaining_axes = iter(wide)
    return tuple(None if extent == 1 else next(remaining_axes) for extent in result_shape)


def _broadcast(_: AxisOperation, shapes: tuple[Shape, ...], operands: list[Axes]) -> Axes | None:
    axes, operand_shape, shape = operands[0], shapes[0], shapes[-1]
    if not axes.rank == len(operand_shape) == len(shape):
        return None
    constancy = tuple(
        extent if operand_extent == 1 else same
        for extent, operand_extent, same in zip(shape, operand_shape, axes.constancy, strict=True)
    )
    return Axes(axes.contiguity, axes.divisibility, constancy, axes.value)


def _same(_: AxisOperation, __: tuple[Shape, ...], operands: list[Axes]) -> Axes:
    return operands[0]


def _add(operation: AxisOperation, shapes: tuple[Shape, ...], operands: list[Axes]) -> Axes | None:
    lhs, rhs = operands
    subtracts = operation.role is AxisRole.SUBTRACT
    size = operation.pointee or 1
    if lhs.value is not None and rhs.value is not None and size == 1:
        return _of_constant(shapes[-1], lhs.value - rhs.value if subtracts else lhs.value + rhs.value)
    runs = tuple(map(gcd, lhs.contiguity, rhs.constancy))
    if not subtracts:
        runs = tuple(map(max, runs, map(gcd, lhs.constancy, rhs.contiguity)))
    pairs = zip(lhs.divisibility, rhs.divisibility, strict=True)
    divisors = tuple(gcd(a, min(MAX_DIVISOR, b * size)) for a, b in pairs)
    return Axes(runs, divisors, tuple(map(gcd, lhs.constancy, rhs.constancy)))


def _multiply(_: AxisOperation, shapes: tuple[Shape, ...], operands: list[Axes]) -> Axes:
    lhs, rhs = operands
    if lhs.value is not None and rhs.value is not None:
        return _of_constant(shapes[-1], lhs.value * rhs.value)
    pairs = zip(lhs.contiguity, rhs.contiguity, strict=True)
    runs = tuple(max(a if rhs.value == 1 else 1, b if lhs.value == 1 else 1) for a, b in pairs)
    pairs = zip(_divisors(lhs, rhs.value == 1), _divisors(rhs, lhs.value == 1), strict=True)
    divisors = tuple(min(MAX_DIVISOR, a * b) for a, b in pairs)
    return Axes(runs, divisors, tuple(map(gcd, lhs.constancy, rhs.constancy)))


def _divisors(axes: Axes, is_run_kept: bool) -> tuple[int, ...]:
    """Divisors of every element, not only of the first of a run, unless the run is kept."""
    pairs = zip(axes.contiguity, axes.divisibility, strict=True)
    return tuple(1 if run > 1 and not is_run_kept else divisor for run, divisor in pairs)


def _shift_left(_: AxisOperation, shapes: tuple[Shape, ...], operands: list[Axes]) -> Axes | None:
    lhs, rhs = operands
    if rhs.value is None or not 0 <= rhs.value < 31:
        return None
    if lhs.value is not None:
        return _of_constant(shapes[-1], lhs.value << rhs.value)
    divisors = tuple(min(MAX_DIVISOR, d << rhs.value) for d in _divisors(lhs, rhs.value == 0))
    runs = lhs.contiguity if rhs.value == 0 else (1,) * lhs.rank
    return Axes(runs, divisors, tuple(map(gcd, lhs.constancy, rhs.constancy)))


def _divide(operation: AxisOperation, shapes: tuple[Shape, ...], operands: list[Axes]) -> Axes | None:
    lhs, rhs = operands
    value = rhs.value
    if operation.role is AxisRole.SHIFT_RIGHT:
        value = None if value is None or not 0 <= value < 31 else 1 << value
    if value == 1:
        return lhs
    if lhs.value is not None and value is not None and lhs.value >= 0 < value:
        return _of_constant(shapes[-1], lhs.value // value)
    powers = rhs.divisibility if value is None else (_power_of_two_in(value),) * lhs.rank
    constancy, divisors = [], []
    for d, extent in enumerate(shapes[-1]):
        same = gcd(lhs.constancy[d], rhs.constancy[d])
        if lhs.contiguity[d] == extent and rhs.constancy[d] == extent:
            same = max(same, gcd(lhs.contiguity[d], lhs.divisibility[d], powers[d]))
        constancy.append(same)
        is_power_of_two = value is not None and value > 0 and value & (value - 1) == 0 and lhs.contiguity[d] == 1
        divisors.append(max(1, lhs.divisibility[d] // value) if is_power_of_two and value is not None else 1)
    return Axes((1,) * lhs.rank, tuple(divisors), tuple(constancy))


def _remainder(_: AxisOperation, shapes: tuple[Shape, ...], operands: list[Axes]) -> Axes:
    lhs, rhs = operands
    if lhs.value is not None and rhs.value is not None and lhs.value >= 0 < rhs.value:
        return _of_constant(shapes[-1], lhs.value % rhs.value)
    runs, divisors = [], []
    for d, extent in enumerate(shapes[-1]):
        divisor = gcd(lhs.divisibility[d], rhs.divisibility[d])
        is_whole_axis = lhs.contiguity[d] == extent and rhs.constancy[d] == extent
        runs.append(gcd(lhs.contiguity[d], divisor) if is_whole_axis else 1)
        divisors.append(divisor if rhs.constancy[d] > 1 or extent == 1 else 1)
    return Axes(tuple(runs), tuple(divisors), tuple(map(gcd, lhs.constancy, rhs.constancy)))


def _compare(operation: AxisOperation, shapes: tuple[Shape, ...], operands: list[Axes]) -> Axes:
    lhs, rhs = operands
    constancy = []
    for d, extent in enumerate(shapes[-1]):
        same = gcd(lhs.constancy[d], rhs.constancy[d])
        divisor = gcd(lhs.divisibility[d], rhs.divisibility[d])
        if operation.grows_with_left is True and lhs.constancy[d] == extent:
            same = max(same, gcd(rhs.contiguity[d], divisor))
        elif operation.grows_with_left is False and rhs.constancy[d] == extent:
            same = max(same, gcd(lhs.contiguity[d], divisor))
        constancy.append(same)
    return Axes((1,) * lhs.rank, (1,) * lhs.rank, tuple(constancy))


def _logic(_: AxisOperation, __: tuple[Shape, ...], operands: list[Axes]) -> Axes:
    lhs, rhs = operands
    return Axes((1,) * lhs.rank, (1,) * lhs.rank, tuple(map(gcd, lhs.constancy, rhs.constancy)))


def _either(_: AxisOperation, __: tuple[Shape, ...], operands: list[Axes]) -> Axes:
    joined = intersect(*operands)
    return Axes(joined.contiguity, joined.divisibility, joined.constancy)


def _select(_: AxisOperation, __: tuple[Shape, ...], operands: list[Axes]) -> Axes:
    condition, *choices = operands
    joined = intersect(*choices)
    if condition.rank != joined.rank:
        return joined  # one bit selects between whole tensors
    runs = tuple(map(gcd, joined.contiguity, condition.constancy))
    entries = zip(joined.divisibility, runs, joined.contiguity, strict=True)
    divisors = tuple(d if run == original_run else gcd(d, run) for d, run, original_run in entries)
    return Axes(runs, divisors, tuple(map(gcd, joined.constancy, condition.constancy)), joined.value)


_ELEMENTWISE = frozenset({_same, _add, _multiply, _shift_left, _divide, _remainder, _compare, _logic, _either, _select})
_RULES: dict[AxisRole, tuple[Rule, int]] = {
    AxisRole.CONSTANT: (_constant, 0), AxisRole.RANGE: (_range, 0), AxisRole.SPLAT: (_splat, 1),
    AxisRole.BROADCAST: (_broadcast, 1), **dict.fromkeys(REARRANGING_ROLES, (_rearrange, 1)),
    **dict.fromkeys(IDENTITY_ROLES, (_same, 1)),
    **dict.fromkeys((AxisRole.ADD, AxisRole.SUBTRACT, AxisRole.ADD_POINTER), (_add, 2)),
    AxisRole.MULTIPLY: (_multiply, 2), AxisRole.SHIFT_LEFT: (_shift_left, 2),
    **dict.fromkeys((AxisRole.DIVIDE, AxisRole.SHIFT_RIGHT), (_divide, 2)), AxisRole.REMAINDER: (_remainder, 2),
    AxisRole.COMPARE: (_compare, 2), AxisRole.LOGIC: (_logic, 2), AxisRole.EITHER: (_either, 2),
    AxisRole.SELECT: (_select, 3),
}  # fmt: skip
"""The rule of each operation, and its number of operands."""
