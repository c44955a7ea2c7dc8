"""How much a conversion keeps in shared memory at a time; bases of elements worked out by hand.

Elements are numbered with the first axis fastest: of 32 × 32, 1 is the next along the first axis, 32 along
the second.
"""

from __future__ import annotations

import pytest

from artifact_inspector.analysis.shared.register_layouts import Bases, Layout
from artifact_inspector.analysis.shared.swizzling import (
    MATRIX,
    TRANSPOSED,
    VECTOR,
    ConversionReach,
    find_conversion_reach,
    padded_elements,
    swapped_bits,
    swizzled_elements,
)
from artifact_inspector.model.encoding import LayoutKind


def layout(
    register: Bases,
    lane: Bases = (),
    warp: Bases = (),
    shape: tuple[int, ...] = (32, 32),
    *,
    tile: tuple[int, ...] | None = None,
    order: tuple[int, ...] = (0, 1),
    contiguous: tuple[int, ...] = (1, 1),
    kind: LayoutKind = LayoutKind.BLOCKED,
) -> Layout:
    return Layout(shape, register, lane, warp, shape if tile is None else tile, order, contiguous, (kind,))


# -- how far -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("source", "target", "far"),
    [
        (layout((1, 2), (4, 8), (16,)), layout((1, 2), (4, 8), (16,)), ConversionReach.THREAD),
        (layout((1, 2), (4, 8), (16,)), layout((2, 1), (4, 8), (16,)), ConversionReach.THREAD),
        (layout((1, 2), (4, 8), (16,)), layout((1, 2), (5, 8), (16,)), ConversionReach.THREAD),  # 4 ^ 5 is a register's
        (layout((1, 2), (4, 8), (16,)), layout((1, 2), (4, 8), (17,)), ConversionReach.THREAD),
        (layout((1, 2), (4, 8), (16,)), layout((1, 4), (2, 8), (16,)), ConversionReach.WARP),
        (layout((1, 2), (4, 8), (16,)), layout((1, 2), (8, 4), (16,)), ConversionReach.WARP),
        (layout((1, 2), (4, 8), (16,)), layout((1, 2), (4, 8), (20,)), ConversionReach.WARP),  # 16 ^ 20 is a lane's
        (layout((1,), (4, 8), (16,)), layout((1, 2), (4, 8), (16,)), ConversionReach.BLOCK),
        (layout((1, 2), (4, 8), (16,)), layout((1, 2), (4, 16), (8,)), ConversionReach.BLOCK),
        (layout((1, 2), (4, 8), (16,)), layout((16, 2), (4, 8), (1,)), ConversionReach.BLOCK),
        (layout((1, 2), (4, 8), (0,)), layout((1, 2), (4, 8), (1,)), ConversionReach.BLOCK),  # handed on by one of them
        (layout((1, 2), (4, 8), (1,)), layout((1, 2), (4, 8), (0,)), ConversionReach.THREAD),
        (layout((1, 2), (4, 8), (0,)), layout((2, 1), (4, 8), (0,)), ConversionReach.THREAD),
    ],
)
def test_data_moves_as_far_as_what_one_holds_and_the_other_asks_for(
    source: Layout, target: Layout, far: ConversionReach
) -> None:
    assert find_conversion_reach(source, target) is far


@pytest.mark.parametrize(
    ("source", "target", "swapped"),
    [((1, 2), (2, 1), 0), ((1, 2), (1, 4), 1), ((1, 2), (4, 8), 2), ((1,), (1, 2), 1), ((1, 2), (1,), 1)],
)
def test_bits_that_trade_places_are_those_that_one_side_lacks(source: Bases, target: Bases, swapped: int) -> None:
    assert swapped_bits(layout(source), layout(target)) == swapped


# -- swizzled ------------------------------------------------------------------------------

ROWS = layout((1, 2, 4, 8, 16), (32, 64, 128, 256, 512))
COLUMNS = layout((32, 64, 128, 256, 512), (1, 2, 4, 8, 16))


def test_what_no_thread_keeps_goes_through_at_once() -> None:
    assert swizzled_elements(ROWS, COLUMNS, 32) == 32 * 32


@pytest.mark.parametrize(("kept", "elements"), [((128, 256, 512), 128), ((128, 256), 128), ((128,), 128), ((), 128)])
def test_what_both_sides_keep_in_registers_goes_through_in_turns(kept: Bases, elements: int) -> None:
    # 32-bit elements: 1 and 2 are moved together, lanes fill the banks, and each register above is a turn.
    a = layout((1, 2, *kept), (4, 8, 16, 32, 64), shape=(128 << len(kept),))
    b = layout((1, 2, *kept), (8, 4, 16, 32, 64), shape=(128 << len(kept),))
    assert swizzled_elements(a, b, 32) == elements
    assert swizzled_elements(a, b, 32, (VECTOR,), (VECTOR,)) == elements


def test_wide_accesses_need_the_lanes_of_a_warp() -> None:
    whole = layout((1, 2), (4, 8, 16), (32, 64, 128, 256, 512))
    plain = swizzled_elements(whole, whole, 32)
    assert swizzled_elements(whole, whole, 32, [MATRIX], [MATRIX, TRANSPOSED]) == plain


def test_copies_of_an_element_are_no_turns() -> None:
    a = layout((0, 1, 2, 128, 0), (4, 8, 16, 32, 64), shape=(256,))
    b = layout((1, 2, 128, 3), (8, 4, 16, 32, 64), shape=(256,))
    assert swizzled_elements(a, b, 32) == 128


# -- padded --------------------------------------------------------------------------------


def blocked(
    tile: tuple[int, ...],
    contiguous: tuple[int, ...],
    order: tuple[int, ...],
    *,
    shape: tuple[int, ...] = (64, 64),
    kind: LayoutKind = LayoutKind.BLOCKED,
) -> Layout:
    # From 3.3 on the order is that of the bases, here of one register along the fastest axis, and the tile ends
    # where the last lane does.
    strides = (1, shape[0])
    last = tuple(extent // 2 * stride for extent, stride in zip(tile, strides, strict=True))
    return layout((strides[order[0]],), last, (), shape, tile=tile, order=order, contiguous=contiguous, kind=kind)


@pytest.mark.parametrize("release", [(2, 1), (3, 1), (3, 2), (3, 3)])
def test_rows_are_padded_by_the_wider_access(release: tuple[int, int]) -> None:
    rows = blocked((16, 32), (1, 8), (1, 0))
    narrow = blocked((32, 16), (1, 4), (1, 0))
    # Both fastest along the last axis: 32 × 32, rows longer by 8 for the writer's accesses.
    assert padded_elements(rows, narrow, 16, release) == 32 * (32 + 8)
    assert padded_elements(narrow, rows, 16, release) == 32 * (32 + 8)


def test_a_side_that_is_fastest_along_another_axis_is_read_one_by_one() -> None:
    rows, columns = blocked((16, 32), (1, 8), (1, 0)), blocked((32, 16), (4, 1), (0, 1))
    # The reader's fastest axis is padded: 32 by 1 more of each, for nothing is wide along it.
    assert padded_elements(rows, columns, 16, (3, 2)) == (32 + 1) * 32
    assert padded_elements(columns, rows, 16, (3, 2)) == 32 * (32 + 8)


def test_padding_is_no_more_than_one_access_from_3_3_on() -> None:
    wide = blocked((16, 32), (1, 16), (1, 0))
    assert padded_elements(wide, wide, 16, (3, 3)) == 16 * (32 + 8)
    assert padded_elements(wide, wide, 32, (3, 3)) == 16 * (32 + 4)
    assert padded_elements(wide, wide, 256, (3, 3)) == 16 * (32 + 1)
    assert padded_elements(wide, wide, 16, (3, 2)) == 16 * (32 + 16)


def test_a_tile_is_no_larger_than_the_tensor() -> None:
    rows = blocked((16, 128), (1, 8), (1, 0), shape=(8, 64))
    assert padded_elements(rows, rows, 16, (3, 2)) == 8 * (64 + 8)


def test_a_single_row_is_not_padded() -> None:
    row = blocked((1, 32), (1, 8), (1, 0), shape=(1, 64))
    assert padded_elements(row, row, 16, (3, 2)) == 32
    line = layout((1,), shape=(64,), tile=(32,), order=(0,), contiguous=(8,))
    assert padded_elements(line, line, 16, (3, 2)) == 32


def test_the_order_of_a_matrix_result_is_that_of_the_other_side_until_3_1() -> None:
    result = blocked((32, 32), (1, 2), (1, 0), kind=LayoutKind.MMA)
    columns = blocked((32, 32), (4, 1), (0, 1))
    # 3.1: columns are padded, by the result's 1 or what the reader has along its own fastest axis, 4.
    assert padded_elements(result, columns, 16, (3, 1)) == (32 + 4) * 32
    assert padded_elements(columns, result, 16, (3, 1)) == (32 + 2) * 32
