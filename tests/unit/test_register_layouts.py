"""Register layouts as linear maps: which thread holds which element, worked out by hand."""

from __future__ import annotations

import pytest

from artifact_inspector.analysis.shared.register_layouts import Layout, extent_along, read_layout, span
from artifact_inspector.formats.mlir.types import parse_types
from artifact_inspector.model.encoding import LayoutKind

ROWS = "#ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>"
MMA = "#ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 8]}>"
WGMMA = "#ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 64, 16]}>"
MFMA = "#ttg.amd_mfma<{version = 3, warpsPerCTA = [2, 2], instrShape = [32, 32], isTransposed = true}>"
WMMA = "#ttg.amd_wmma<{version = 1, warpsPerCTA = [2, 2]}>"


def layout(shape: str, text: str, threads: int = 32) -> Layout | None:
    (tensor,) = parse_types(f"tensor<{shape}, #x>", {"#x": text})
    return read_layout(tensor, threads)


def known(shape: str, text: str, threads: int = 32) -> Layout:
    found = layout(shape, text, threads)
    assert found is not None
    return found


def owners(found: Layout) -> int:
    """Bits of all registers of the block, held against the bits of the tensor by the caller."""
    return len(found.register) + len(found.lane) + len(found.warp)


def test_a_layout_has_each_element_once() -> None:
    found = known("64x64xf16", ROWS)
    # 64 · 64 elements over 128 threads: 32 registers, 5 bits; nothing is held twice.
    assert (len(found.register), found.is_one_to_one) == (5, True)


def test_a_small_tensor_is_held_by_several_threads() -> None:
    text = "#ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>"
    assert not known("64xf32", text).is_one_to_one


def test_the_registers_of_a_thread_lie_along_the_fastest_axis_first() -> None:
    found = known("16x32xf16", ROWS)
    # The first axis is fastest in the numbers, so one column on is 16.
    assert found.register == (16, 32)
    assert found.lane == (64, 128, 256, 1, 2)
    assert found.warp == (4, 8)
    assert (found.order, found.tile, found.contiguous) == ((1, 0), (16, 32), (1, 4))


def test_the_result_of_mma_is_laid_out_as_the_manual_draws_it() -> None:
    # PTX ISA, mma.m16n8k16: a lane has columns 2(l % 4) and the next, of rows l / 4 and l / 4 + 8.
    found = known("64x8xf32", MMA)
    assert [(found.moves(b, 0), found.moves(b, 1)) for b in found.register] == [(0, 1), (8, 0)]
    assert [(found.moves(b, 0), found.moves(b, 1)) for b in found.lane] == [
        (0, 2), (0, 4), (1, 0), (2, 0), (4, 0),
    ]  # fmt: skip
    assert [found.moves(b, 0) for b in found.warp] == [16, 32]


@pytest.mark.parametrize(
    ("shape", "text", "threads"),
    [
        ("64x64xf32", WGMMA, 32),
        ("64x64xf32", MFMA, 64),
        ("32x32xf32", WMMA, 32),
        ("64x64xf16", f"#ttg.dot_op<{{opIdx = 0, parent = {ROWS}}}>", 32),
    ],
)
def test_all_threads_together_hold_the_whole_tensor(shape: str, text: str, threads: int) -> None:
    found = known(shape, text, threads)
    rows, columns = found.shape
    assert len(span((*found.register, *found.lane, *found.warp))) == (rows * columns).bit_length() - 1


@pytest.mark.parametrize(("operand", "shape", "copies"), [(0, "64x16xf16", False), (1, "16x8xf16", True)])
def test_warps_along_the_rows_hold_the_right_operand_alike(operand: int, shape: str, copies: bool) -> None:
    found = known(shape, f"#ttg.dot_op<{{opIdx = {operand}, parent = {MMA}, kWidth = 2}}>")
    assert (found.warp == (0, 0)) is copies


def test_a_slice_has_the_layout_of_its_parent_without_one_axis() -> None:
    found = known("16xf32", f"#ttg.slice<{{dim = 1, parent = {ROWS}}}>")
    assert found.register == ()
    assert found.lane == (0, 0, 0, 1, 2)
    assert (found.warp, found.kind) == ((4, 8), LayoutKind.SLICE)


def test_slices_of_slices_take_the_axes_away_from_the_inside_out() -> None:
    deep = "#ttg.blocked<{sizePerThread = [1, 2, 4], threadsPerWarp = [2, 4, 4], warpsPerCTA = [4, 1, 1], order = [2, 1, 0]}>"
    found = known("8xf32", f"#ttg.slice<{{dim = 0, parent = #ttg.slice<{{dim = 2, parent = {deep}}}>}}>")
    assert (found.register, found.lane, found.warp) == ((1,), (0, 0, 2, 4, 0), (0, 0))


def test_the_bits_of_a_linear_layout_are_its_own() -> None:
    text = "#ttg.linear<{register = [[0, 1], [0, 2]], lane = [[1, 0], [2, 0], [0, 4], [0, 8], [0, 16]], warp = [[4, 0], [8, 0]], block = []}>"
    found = known("16x32xf32", text)
    assert found.register == (16, 32)
    assert found.lane[:2] == (1, 2)
    assert found.contiguous == (1, 4)


@pytest.mark.parametrize(
    "text",
    [
        "#ttg.later_idea<{}>",
        "#ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], order = [1, 0]}>",
        "#ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>",
        "#ttg.nvidia_mma<{versionMajor = 1, warpsPerCTA = [4, 1], instrShape = [16, 8]}>",
        "#ttg.amd_mfma<{version = 3, warpsPerCTA = [2, 2], instrShape = [4, 4]}>",
        f"#ttg.dot_op<{{opIdx = 0, parent = {MMA}}}>",
        f"#ttg.slice<{{parent = {ROWS}}}>",
        "#ttg.linear<{register = [[1]], lane = [[1, 0]], warp = []}>",
    ],
)
def test_nothing_is_said_of_a_layout_that_cannot_be(text: str) -> None:
    assert layout("64x64xf32", text) is None


def test_nothing_is_said_of_a_tensor_with_an_extent_that_is_no_power_of_two() -> None:
    assert layout("48x64xf32", ROWS) is None


def test_bases_span_as_many_places_as_are_independent() -> None:
    assert [basis.bit_length() for basis in span([3, 1, 2])] == [2, 1]
    assert extent_along((1, 2, 3, 16), (16, 4), 0) == 4
    assert extent_along((1, 2, 3, 16), (16, 4), 1) == 2
