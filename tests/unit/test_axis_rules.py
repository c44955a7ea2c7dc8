"""What each operation makes of runs, divisors and constants: worked out by hand, element by element."""

from __future__ import annotations

import pytest

from artifact_inspector.analysis.access.axis_rules import Axes, apply_rule, has_rule, intersect, sources_of_axes
from artifact_inspector.model.axes import AxisOperation, AxisRole, Hints

MOST = 1 << 30
NOTHING = Axes((1,), (1,), (1,))


def one(run: int = 1, divisor: int = 1, same: int = 1, value: int | None = None) -> Axes:
    """What is proven along the one axis of a value."""
    return Axes((run,), (divisor,), (same,), value)


def constant(value: int, extent: int = 64) -> Axes:
    found = apply_rule(AxisOperation(AxisRole.CONSTANT, value), ((extent,),), [])
    assert found is not None
    return found


def result(role: AxisRole, *made_of: Axes | None, extent: int = 64, **more: object) -> Axes | None:
    return apply_rule(AxisOperation(role, **more), ((extent,),), list(made_of))  # type: ignore[arg-type]


@pytest.mark.parametrize(("value", "divisor"), [(48, 16), (-8, 8), (7, 1), (0, MOST), (1 << 30, MOST), (1 << 31, MOST)])
def test_a_constant_is_as_divisible_as_its_lowest_bit(value: int, divisor: int) -> None:
    assert constant(value) == one(1, divisor, 64, value)


def test_a_constant_that_is_no_integer_proves_nothing() -> None:
    assert result(AxisRole.CONSTANT) == NOTHING


def test_a_range_runs_from_its_start_to_its_end() -> None:
    assert result(AxisRole.RANGE, start=32, stop=96) == one(64, 32)
    assert result(AxisRole.RANGE) == one(64, MOST)


def test_a_splat_is_the_same_everywhere_and_as_divisible_as_the_number() -> None:
    found = apply_rule(AxisOperation(AxisRole.SPLAT), ((8, 4),), [one(1, 16, 1, 48)])
    assert found == Axes((1, 1), (16, 16), (8, 4), 48)


def test_a_broadcast_is_constant_along_the_axes_that_it_repeats() -> None:
    axes = Axes((8, 1), (16, 2), (1, 1))
    found = apply_rule(AxisOperation(AxisRole.BROADCAST), ((8, 1), (8, 32)), [axes])
    assert found == Axes((8, 1), (16, 2), (1, 32))
    misfit = apply_rule(AxisOperation(AxisRole.BROADCAST), ((8,), (8, 32)), [axes])
    assert misfit == Axes((1, 1), (1, 1), (1, 1))


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [
        (one(64, 64), one(1, 16, 64), one(64, 16)),  # i + s: [64k …] and a multiple of 16
        (one(1, 16, 64), one(64, 64), one(64, 16)),  # s + i
        (one(8, 4), one(1, 4, 12), one(4, 4)),  # runs of 8 with steps every 12: pieces of 4
        (one(1, 8, 8), one(1, 4, 12), one(1, 4, 4)),  # the same for 8 and for 12: for 4
        (constant(12), constant(4), constant(16)),
        (one(2, 2, 1), constant(4), one(2, 2)),
    ],
)
def test_a_sum_runs_where_one_side_runs_and_the_other_stays(left: Axes, right: Axes, expected: Axes) -> None:
    assert result(AxisRole.ADD, left, right) == expected


def test_a_difference_runs_only_where_what_is_taken_away_stays() -> None:
    assert result(AxisRole.SUBTRACT, one(64, 64), one(1, 16, 64)) == one(64, 16)
    assert result(AxisRole.SUBTRACT, one(1, 16, 64), one(64, 64)) == one(1, 16)
    assert result(AxisRole.SUBTRACT, constant(12), constant(4)) == constant(8)


@pytest.mark.parametrize(("pointee", "divisor"), [(1, 4), (2, 8), (4, 16), (8, 16)])
def test_a_pointer_moves_by_the_bytes_it_points_at(pointee: int, divisor: int) -> None:
    found = result(AxisRole.ADD_POINTER, one(1, 16, 64), one(64, 4), pointee=pointee)
    assert found == one(64, divisor)


def test_a_pointer_to_two_bytes_is_no_sum_of_constants() -> None:
    found = result(AxisRole.ADD_POINTER, constant(16), constant(4), pointee=2)
    assert found == one(1, 8, 64)


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [
        (constant(3), constant(4), constant(12)),
        (one(8, 16), constant(1), one(8, 16)),  # times one: the same
        (constant(1), one(8, 16), one(8, 16)),
        (one(8, 16), constant(2), one(1, 2)),  # 16k, 16k + 1 …: of a run only the first divides by 16
        (one(1, 16), one(1, 8, 4), one(1, 128)),
        (one(1, 16, 8), one(1, 8, 12), one(1, 128, 4)),
        (one(1, MOST), one(1, 2), one(1, MOST)),
    ],
)
def test_a_product_divides_by_what_its_factors_do(left: Axes, right: Axes, expected: Axes) -> None:
    assert result(AxisRole.MULTIPLY, left, right) == expected


@pytest.mark.parametrize(
    ("left", "by", "expected"),
    [
        (constant(3), constant(2), constant(12)),
        (one(1, 4, 2), constant(3), one(1, 32, 2)),
        (one(8, 4), constant(3), one(1, 8)),
        (one(8, 4), constant(0), one(8, 4)),
        (one(1, 1), constant(30), one(1, MOST)),
        (one(1, 2), constant(30), one(1, MOST)),
        (one(1, 4), constant(31), NOTHING),
        (one(1, 4), constant(-1), NOTHING),
        (one(1, 4), one(1, 4), NOTHING),
    ],
)
def test_a_shift_to_the_left_multiplies_by_a_power_of_two(left: Axes, by: Axes, expected: Axes) -> None:
    assert result(AxisRole.SHIFT_LEFT, left, by) == expected


QUOTIENTS = [
    (one(8, 4), 1, one(8, 4)),
    (constant(17), 4, constant(4)),
    (constant(0), 4, constant(0)),
    (constant(-4), 2, one(1, 2, 64)),  # rounding of what is below 0 is not gone into
    (one(64, 64), 16, one(1, 1, 16)),  # 64k … 64k + 63 by 16: the same 16 times
    (one(64, 8), 16, one(1, 1, 8)),  # may begin at 8: 8 to the next multiple of 16
    (one(32, 64), 16, NOTHING),  # half of the elements prove nothing of the whole
    (one(1, 32), 8, one(1, 4)),
    (one(1, 32), 32, one(1, 1)),
    (one(1, 32), 64, one(1, 1)),  # 32 by 64 is 0 or worse
    (one(2, 32), 8, NOTHING),
    (one(1, 32, 4), 8, one(1, 4, 4)),
]


@pytest.mark.parametrize(("left", "by", "expected"), QUOTIENTS)
def test_a_quotient_stays_for_as_long_as_its_divisor(left: Axes, by: int, expected: Axes) -> None:
    assert result(AxisRole.DIVIDE, left, constant(by)) == expected


@pytest.mark.parametrize(("left", "by", "expected"), QUOTIENTS)
def test_a_shift_to_the_right_divides_by_a_power_of_two(left: Axes, by: int, expected: Axes) -> None:
    assert result(AxisRole.SHIFT_RIGHT, left, constant(by.bit_length() - 1)) == expected


@pytest.mark.parametrize(("by", "divisor"), [(29, 2), (30, 1), (31, 1), (-1, 1)])
def test_a_shift_to_the_right_by_more_than_a_number_has_proves_nothing(by: int, divisor: int) -> None:
    assert result(AxisRole.SHIFT_RIGHT, one(1, MOST), constant(by)) == one(1, divisor)


def test_a_quotient_by_what_is_no_power_of_two_has_no_known_divisor() -> None:
    assert result(AxisRole.DIVIDE, one(1, 32), constant(12)) == one(1, 1)


def test_a_quotient_by_an_unknown_multiple_stays_as_long_as_that() -> None:
    assert result(AxisRole.DIVIDE, one(64, 64), one(1, 16, 64)) == one(1, 1, 16)
    assert result(AxisRole.DIVIDE, one(64, 64), one(1, 16, 32)) == one(1, 1, 1)
    assert result(AxisRole.DIVIDE, one(1, 32), one(1, 8, 64)) == one(1, 1, 1)


@pytest.mark.parametrize(
    ("left", "right", "extent", "expected"),
    [
        (constant(17), constant(5), 64, constant(2)),
        (constant(0), constant(5), 64, constant(0)),
        (constant(-4), constant(8), 64, one(1, 4, 64)),
        (one(64, 64), one(1, 16, 64), 64, one(16, 16)),
        (one(64, 8), one(1, 16, 64), 64, one(8, 8)),
        (one(32, 64), one(1, 16, 64), 64, one(1, 16)),
        (one(64, 64), one(1, 16, 32), 64, one(1, 16)),
        (one(1, 8), one(1, 16), 64, one(1, 1)),
        (one(1, 8), one(1, 16), 1, one(1, 8)),
        (one(1, 8), one(1, 16, 2), 64, one(1, 8)),
        (one(1, 8, 8), one(1, 16, 12), 64, one(1, 8, 4)),
    ],
)
def test_a_remainder_runs_as_long_as_the_divisor_of_both(left: Axes, right: Axes, extent: int, expected: Axes) -> None:
    assert result(AxisRole.REMAINDER, left, right, extent=extent) == expected


RUN, BOUND = one(64, 32), one(1, 16, 64)


@pytest.mark.parametrize(
    ("left", "right", "grows_with_left", "same"),
    [
        (RUN, BOUND, False, 16),  # i < n
        (RUN, BOUND, True, 1),  # i > n turns one past the multiple
        (RUN, BOUND, None, 1),
        (BOUND, RUN, True, 16),  # n > i
        (BOUND, RUN, False, 1),
        (RUN, one(1, 16, 32), False, 1),
        (one(1, 16, 32), RUN, True, 1),
        (one(1, 1, 8), one(1, 1, 12), None, 4),
        (one(4, 32), BOUND, False, 4),
        (BOUND, one(4, 32), True, 4),
        (one(64, 4), BOUND, False, 4),
        (one(1, 1, 32), BOUND, False, 32),
    ],
)
def test_a_mask_stays_where_no_bound_can_be_crossed(
    left: Axes, right: Axes, grows_with_left: bool | None, same: int
) -> None:
    assert result(AxisRole.COMPARE, left, right, grows_with_left=grows_with_left) == one(1, 1, same)


def test_a_mask_of_masks_stays_where_both_do() -> None:
    assert result(AxisRole.LOGIC, one(1, 1, 8), one(1, 1, 12)) == one(1, 1, 4)


def test_what_holds_of_either_is_what_holds_of_both() -> None:
    # [0, 1] beside [16, 17, 18, 19]: runs of 2, and 18 is no multiple of 16.
    assert intersect(one(2, 16), one(4, 16)) == one(2, 2)
    assert intersect(one(4, 16), one(4, 8)) == one(4, 8)
    assert intersect(one(1, 4, 8), one(1, 4, 12)) == one(1, 4, 4)
    assert intersect(constant(4), constant(4)).value == 4
    assert intersect(constant(4), constant(8)).value is None


def test_the_larger_of_two_is_either_but_no_constant() -> None:
    assert result(AxisRole.EITHER, constant(4), constant(4)) == one(1, 4, 64)


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        (one(1, 1, 8), one(8, 16)),
        (one(1, 1, 4), one(4, 4)),  # the run is cut, and its pieces begin anywhere in it
        (one(1, 1, 1), one(1, 1)),
    ],
)
def test_a_choice_runs_where_the_condition_stays(condition: Axes, expected: Axes) -> None:
    assert result(AxisRole.SELECT, condition, one(8, 16), one(8, 16)) == expected


def test_a_choice_of_equal_elements_is_equal_where_the_condition_is() -> None:
    assert result(AxisRole.SELECT, one(1, 1, 12), one(1, 4, 8), one(1, 4, 8)) == one(1, 4, 4)


def test_one_bit_chooses_between_whole_tensors() -> None:
    tensor = Axes((1, 8), (16, 16), (8, 1))
    found = apply_rule(AxisOperation(AxisRole.SELECT), ((8, 8),), [one(), tensor, tensor])
    assert found == tensor


@pytest.mark.parametrize(
    ("axis", "sources"), [(0, (None, 0, 1)), (1, (0, None, 1)), (2, (0, 1, None)), (None, (None, 0, 1))]
)
def test_an_expansion_moves_the_axes_behind_it(axis: int | None, sources: tuple[int | None, ...]) -> None:
    operation = AxisOperation(AxisRole.EXPAND, axis=axis)
    assert sources_of_axes(operation, ((4, 8), (1, 1, 1))) == sources


def test_a_transposition_without_an_order_turns_all_axes_around() -> None:
    assert sources_of_axes(AxisOperation(AxisRole.TRANSPOSE), ((2, 4, 8), (8, 4, 2))) == (2, 1, 0)
    given = AxisOperation(AxisRole.TRANSPOSE, order=(1, 2, 0))
    assert sources_of_axes(given, ((2, 4, 8), (4, 8, 2))) == (1, 2, 0)
    damaged = AxisOperation(AxisRole.TRANSPOSE, order=(1, 1))
    assert sources_of_axes(damaged, ((2, 4), (4, 2))) is None


def test_a_reshape_may_only_add_and_take_away_axes_of_one_element() -> None:
    operation = AxisOperation(AxisRole.RESHAPE)
    assert sources_of_axes(operation, ((1, 4, 8), (4, 1, 8, 1))) == (1, None, 2, None)
    assert sources_of_axes(operation, ((4, 8), (8, 4))) is None
    assert sources_of_axes(operation, ((4, 8), (32,))) is None


@pytest.mark.parametrize(
    ("axes", "expected"),
    [
        (one(8, 16), Axes((8, 1), (16, 1), (1, 1))),  # of a run, only the first is a multiple
        (one(1, 16, 8), Axes((1, 1), (16, 16), (8, 1))),
        (one(1, 16, 8, 48), Axes((1, 1), (16, 16), (8, 1), 48)),
    ],
)
def test_a_new_axis_is_as_divisible_as_every_element(axes: Axes, expected: Axes) -> None:
    found = apply_rule(AxisOperation(AxisRole.EXPAND, axis=1), ((8,), (8, 1)), [axes])
    assert found == expected


def test_the_divisor_of_a_new_axis_is_that_of_all_axes() -> None:
    axes = Axes((1, 1), (16, 4), (1, 1))
    found = apply_rule(AxisOperation(AxisRole.EXPAND, axis=0), ((8, 8), (1, 8, 8)), [axes])
    assert found == Axes((1, 1, 1), (4, 16, 4), (1, 1, 1))


def test_a_rearrangement_of_other_axes_than_were_proven_proves_nothing() -> None:
    operation = AxisOperation(AxisRole.EXPAND, axis=0)
    assert apply_rule(operation, ((8, 8), (1, 8, 8)), [one(8)]) == Axes((1,) * 3, (1,) * 3, (1,) * 3)
    assert apply_rule(operation, ((8,), (1, 8, 8)), [one(8)]) == Axes((1,) * 3, (1,) * 3, (1,) * 3)


def test_an_operation_that_passes_on_changes_nothing() -> None:
    assert result(AxisRole.SAME, one(8, 16, 1)) == one(8, 16, 1)


def test_an_operation_on_tensors_of_another_rank_proves_nothing() -> None:
    wide = Axes((1, 8), (16, 16), (1, 1))
    assert result(AxisRole.ADD, wide, wide) == NOTHING
    assert result(AxisRole.ADD, one(8), wide) == NOTHING


def test_nothing_is_said_before_all_operands_are_known() -> None:
    assert result(AxisRole.ADD, one(8), None) is None


def test_an_operation_without_its_operands_or_without_a_rule_proves_nothing() -> None:
    assert result(AxisRole.ADD, one(8)) == NOTHING
    assert result(AxisRole.PROGRAM) == NOTHING
    assert (has_rule(AxisOperation(AxisRole.ADD)), has_rule(AxisOperation(AxisRole.PROGRAM))) == (True, False)


def test_a_promise_holds_for_all_axes_or_for_each() -> None:
    wide = Axes((2, 4), (2, 4), (1, 2), 5)

    def promised(*extents: int) -> Axes | None:
        hints = Hints(extents, None, extents)
        return apply_rule(AxisOperation(AxisRole.SAME, hints=hints), ((8, 8),), [wide])

    assert promised(16) == Axes((16, 16), (2, 4), (16, 16), 5)
    assert promised(16, 8) == Axes((16, 8), (2, 4), (16, 8), 5)
    assert promised(1, 2, 3) == wide
    assert result(AxisRole.PROGRAM, hints=Hints(None, (16,), None)) == one(1, 16)


def test_a_quotient_by_nought_proves_nothing() -> None:
    assert result(AxisRole.DIVIDE, one(1, 16), constant(0)) == one(1, 1)
