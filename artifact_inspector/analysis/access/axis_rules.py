"""For each operation of tensor-level IR, the properties of its result that follow from its operands.

**Source**: the visitors of lib/Analysis/AxisInfo.cpp of Triton (`AxisInfoAnalysis`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import gcd

from artifact_inspector.model.axes import AxisOperation, AxisRole, Hints

MOST = 1 << 30
"""The divisor of 0, and the value for "any": no larger power of two affects a width."""

PASSED_ON = frozenset({AxisRole.SAME})
"""Operations that change neither the elements nor their positions."""
REARRANGING = frozenset({AxisRole.EXPAND, AxisRole.RESHAPE, AxisRole.TRANSPOSE})
"""Operations that keep the elements but add, remove or reorder axes."""


@dataclass(frozen=True, slots=True)
class Axes:
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


def apply_rule(
    operation: AxisOperation, shapes: tuple[Shape, ...], made_of: list[Axes | None]
) -> Axes | None:
    """The proven properties of an operation's result; None while an operand is unknown.

    Args:
        shapes: the shapes in its text, the result's last.
        made_of: the properties of each operand.
    """
    rank = len(shapes[-1])
    rule, count = _RULES.get(operation.role, (None, 0))
    if rule is None or len(made_of) != count:
        return _with_hints(_nothing(rank), operation.hints)
    known = [axes for axes in made_of if axes is not None]
    if len(known) < count:
        return None
    fits = rule not in _ELEMENTWISE or all(axes.rank == rank for axes in known[-2:])
    proven = rule(operation, shapes, known) if fits else None
    return _with_hints(proven or _nothing(rank), operation.hints)


def _nothing(rank: int) -> Axes:
    return Axes((1,) * rank, (1,) * rank, (1,) * rank)


def _with_hints(axes: Axes, hints: Hints | None) -> Axes:
    """The properties with the author's hints applied."""
    if hints is None:
        return axes

    def better(proven: tuple[int, ...], promised: tuple[int, ...] | None) -> tuple[int, ...]:
        if promised is None:
            return proven
        return (
            promised * axes.rank if len(promised) == 1 else promised if len(promised) == axes.rank else proven
        )

    return Axes(
        better(axes.contiguity, hints.contiguity),
        better(axes.divisibility, hints.divisibility),
        better(axes.constancy, hints.constancy),
        axes.value,
    )


def join(one: Axes, other: Axes) -> Axes:
    """The properties that both values have."""
    divisors = []
    for a, b, run, other_run in zip(
        one.divisibility, other.divisibility, one.contiguity, other.contiguity, strict=True
    ):
        # [0, 1] and [16, 17, 18, 19]: the runs become 2 long, and 18 is not a multiple of 16.
        divisors.append(gcd(a, b) if run == other_run else gcd(a, b, run, other_run))
    return Axes(
        tuple(map(gcd, one.contiguity, other.contiguity)),
        tuple(divisors),
        tuple(map(gcd, one.constancy, other.constancy)),
        one.value if one.value == other.value else None,
    )


def _power_of_two_in(number: int) -> int:
    return min(MOST, number & -number) if number else MOST


def _of_constant(shape: Shape, value: int) -> Axes:
    return Axes((1,) * len(shape), (_power_of_two_in(value),) * len(shape), shape, value)


def _constant(operation: AxisOperation, shapes: tuple[Shape, ...], _: list[Axes]) -> Axes | None:
    return None if operation.value is None else _of_constant(shapes[-1], operation.value)


def _range(operation: AxisOperation, shapes: tuple[Shape, ...], _: list[Axes]) -> Axes:
    run = shapes[-1][0] if operation.stop is None else operation.stop - operation.start
    return Axes((run,), (_power_of_two_in(operation.start),), (1,))


def _splat(_: AxisOperation, shapes: tuple[Shape, ...], made_of: list[Axes]) -> Axes:
    shape = shapes[-1]
    return Axes((1,) * len(shape), made_of[0].divisibility[:1] * len(shape), shape, made_of[0].value)


def _rearrange(operation: AxisOperation, shapes: tuple[Shape, ...], made_of: list[Axes]) -> Axes | None:
    """Adds, removes or reorders axes. Each existing axis keeps its properties."""
    axes = made_of[0]
    sources = sources_of_axes(operation, shapes)
    if (
        sources is None
        or axes.rank != len(shapes[0])
        or any(d is not None and d >= axes.rank for d in sources)
    ):
        return None
    if axes.value is not None:
        divisor = _power_of_two_in(axes.value)
    else:
        # Only the first element of a run is a multiple.
        divisor = gcd(
            *(1 if run > 1 else d for run, d in zip(axes.contiguity, axes.divisibility, strict=True))
        )
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
    before, after = shapes[0], shapes[-1]
    if operation.role is AxisRole.EXPAND:
        at = operation.axis or 0
        return tuple(None if d == at else d - (d > at) for d in range(len(after)))
    if operation.role is AxisRole.TRANSPOSE:
        order = operation.order or tuple(reversed(range(len(after))))
        return order if sorted(order) == list(range(len(before))) else None
    wide = [d for d, extent in enumerate(before) if extent > 1]
    if [before[d] for d in wide] != [extent for extent in after if extent > 1]:
        return None
    rest = iter(wide)
    return tuple(None if extent == 1 else next(rest) for extent in after)


def _broadcast(_: AxisOperation, shapes: tuple[Shape, ...], made_of: list[Axes]) -> Axes | None:
    axes, before, shape = made_of[0], shapes[0], shapes[-1]
    if not axes.rank == len(before) == len(shape):
        return None
    constancy = tuple(
        extent if one == 1 else same for extent, one, same in zip(shape, before, axes.constancy, strict=True)
    )
    return Axes(axes.contiguity, axes.divisibility, constancy, axes.value)


def _same(_: AxisOperation, __: tuple[Shape, ...], made_of: list[Axes]) -> Axes:
    return made_of[0]


def _add(operation: AxisOperation, shapes: tuple[Shape, ...], made_of: list[Axes]) -> Axes | None:
    left, right = made_of
    subtracts = operation.role is AxisRole.SUBTRACT
    size = operation.pointee or 1
    if left.value is not None and right.value is not None and size == 1:
        return _of_constant(shapes[-1], left.value - right.value if subtracts else left.value + right.value)
    runs = tuple(map(gcd, left.contiguity, right.constancy))
    if not subtracts:
        runs = tuple(map(max, runs, map(gcd, left.constancy, right.contiguity)))
    divisors = tuple(
        gcd(a, min(MOST, b * size)) for a, b in zip(left.divisibility, right.divisibility, strict=True)
    )
    return Axes(runs, divisors, tuple(map(gcd, left.constancy, right.constancy)))


def _multiply(_: AxisOperation, shapes: tuple[Shape, ...], made_of: list[Axes]) -> Axes:
    left, right = made_of
    if left.value is not None and right.value is not None:
        return _of_constant(shapes[-1], left.value * right.value)
    runs = tuple(
        max(a if right.value == 1 else 1, b if left.value == 1 else 1)
        for a, b in zip(left.contiguity, right.contiguity, strict=True)
    )
    divisors = tuple(
        min(MOST, a * b)
        for a, b in zip(_divisors(left, right.value == 1), _divisors(right, left.value == 1), strict=True)
    )
    return Axes(runs, divisors, tuple(map(gcd, left.constancy, right.constancy)))


def _divisors(axes: Axes, kept: bool) -> tuple[int, ...]:
    """Divisors of every element, not only of the first of a run, unless the run is kept."""
    pairs = zip(axes.contiguity, axes.divisibility, strict=True)
    return tuple(1 if run > 1 and not kept else divisor for run, divisor in pairs)


def _shift_left(_: AxisOperation, shapes: tuple[Shape, ...], made_of: list[Axes]) -> Axes | None:
    left, right = made_of
    if right.value is None or not 0 <= right.value < 31:
        return None
    if left.value is not None:
        return _of_constant(shapes[-1], left.value << right.value)
    divisors = tuple(min(MOST, d << right.value) for d in _divisors(left, right.value == 0))
    runs = left.contiguity if right.value == 0 else (1,) * left.rank
    return Axes(runs, divisors, tuple(map(gcd, left.constancy, right.constancy)))


def _divide(operation: AxisOperation, shapes: tuple[Shape, ...], made_of: list[Axes]) -> Axes | None:
    left, right = made_of
    value = right.value
    if operation.role is AxisRole.SHIFT_RIGHT:
        value = None if value is None or not 0 <= value < 31 else 1 << value
    if value == 1:
        return left
    if left.value is not None and value is not None and left.value >= 0 < value:
        return _of_constant(shapes[-1], left.value // value)
    powers = right.divisibility if value is None else (_power_of_two_in(value),) * left.rank
    constancy, divisors = [], []
    for d, extent in enumerate(shapes[-1]):
        same = gcd(left.constancy[d], right.constancy[d])
        if left.contiguity[d] == extent and right.constancy[d] == extent:
            same = max(same, gcd(left.contiguity[d], left.divisibility[d], powers[d]))
        constancy.append(same)
        whole = value is not None and value > 0 and value & (value - 1) == 0 and left.contiguity[d] == 1
        divisors.append(max(1, left.divisibility[d] // value) if whole and value is not None else 1)
    return Axes((1,) * left.rank, tuple(divisors), tuple(constancy))


def _remainder(_: AxisOperation, shapes: tuple[Shape, ...], made_of: list[Axes]) -> Axes:
    left, right = made_of
    if left.value is not None and right.value is not None and left.value >= 0 < right.value:
        return _of_constant(shapes[-1], left.value % right.value)
    runs, divisors = [], []
    for d, extent in enumerate(shapes[-1]):
        divisor = gcd(left.divisibility[d], right.divisibility[d])
        whole = left.contiguity[d] == extent and right.constancy[d] == extent
        runs.append(gcd(left.contiguity[d], divisor) if whole else 1)
        divisors.append(divisor if right.constancy[d] > 1 or extent == 1 else 1)
    return Axes(tuple(runs), tuple(divisors), tuple(map(gcd, left.constancy, right.constancy)))


def _compare(operation: AxisOperation, shapes: tuple[Shape, ...], made_of: list[Axes]) -> Axes:
    left, right = made_of
    constancy = []
    for d, extent in enumerate(shapes[-1]):
        same = gcd(left.constancy[d], right.constancy[d])
        divisor = gcd(left.divisibility[d], right.divisibility[d])
        if operation.grows is True and left.constancy[d] == extent:
            same = max(same, gcd(right.contiguity[d], divisor))
        elif operation.grows is False and right.constancy[d] == extent:
            same = max(same, gcd(left.contiguity[d], divisor))
        constancy.append(same)
    return Axes((1,) * left.rank, (1,) * left.rank, tuple(constancy))


def _logic(_: AxisOperation, __: tuple[Shape, ...], made_of: list[Axes]) -> Axes:
    left, right = made_of
    return Axes((1,) * left.rank, (1,) * left.rank, tuple(map(gcd, left.constancy, right.constancy)))


def _either(_: AxisOperation, __: tuple[Shape, ...], made_of: list[Axes]) -> Axes:
    joined = join(*made_of)
    return Axes(joined.contiguity, joined.divisibility, joined.constancy)


def _select(_: AxisOperation, __: tuple[Shape, ...], made_of: list[Axes]) -> Axes:
    condition, *chosen = made_of
    joined = join(*chosen)
    if condition.rank != joined.rank:
        return joined  # one bit selects between whole tensors
    runs = tuple(map(gcd, joined.contiguity, condition.constancy))
    divisors = tuple(
        d if run == before else gcd(d, run)
        for d, run, before in zip(joined.divisibility, runs, joined.contiguity, strict=True)
    )
    return Axes(runs, divisors, tuple(map(gcd, joined.constancy, condition.constancy)), joined.value)


_ELEMENTWISE = frozenset(
    {_same, _add, _multiply, _shift_left, _divide, _remainder, _compare, _logic, _either, _select}
)
_RULES: dict[AxisRole, tuple[Rule, int]] = {
    AxisRole.CONSTANT: (_constant, 0),
    AxisRole.RANGE: (_range, 0),
    AxisRole.SPLAT: (_splat, 1),
    AxisRole.BROADCAST: (_broadcast, 1),
    **dict.fromkeys(REARRANGING, (_rearrange, 1)),
    **dict.fromkeys(PASSED_ON, (_same, 1)),
    **dict.fromkeys((AxisRole.ADD, AxisRole.SUBTRACT, AxisRole.ADD_POINTER), (_add, 2)),
    AxisRole.MULTIPLY: (_multiply, 2),
    AxisRole.SHIFT_LEFT: (_shift_left, 2),
    **dict.fromkeys((AxisRole.DIVIDE, AxisRole.SHIFT_RIGHT), (_divide, 2)),
    AxisRole.REMAINDER: (_remainder, 2),
    AxisRole.COMPARE: (_compare, 2),
    AxisRole.LOGIC: (_logic, 2),
    AxisRole.EITHER: (_either, 2),
    AxisRole.SELECT: (_select, 3),
}
"""The rule of each operation, and its number of operands."""
