"""Layout attributes as every version of Triton prints them."""

from __future__ import annotations

import pytest

from artifact_inspector.formats.mlir.encodings import parse_encoding
from artifact_inspector.model.encoding import Encoding, LayoutKind


def parsed(text: str) -> Encoding:
    found = parse_encoding(text)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("#triton_gpu.amd_mfma<{}>", "mfma"),
        ("#ttg.padded_shared<[8:+8] {}>", "padded shared"),
        ("#ttg.slice<{dim = 0, parent = #ttg.blocked<{}>}>", "slice"),
        ("#ttg.dot_op<{opIdx = 0, parent = #ttg.blocked<{}>}>", "dot operand"),
        ("#ttg.later_idea<{}>", "later idea"),
        ("#ttng.tensor_memory_encoding<blockM = 128>", "tensor memory encoding"),
    ],
)
def test_a_layout_has_a_name_that_people_read(text: str, words: str) -> None:
    assert parsed(text).display_name == words


def test_the_numbers_of_a_layout_are_its_own_and_not_those_of_its_parent() -> None:
    found = parsed(
        "#ttg.dot_op<{opIdx = 1, parent = #ttg.nvidia_mma<{versionMajor = 2, warpsPerCTA = [4, 1], instrShape = [16, 8]}>, kWidth = 2}>"
    )
    assert (found.operand, found.width, found.warps, found.version) == (1, 2, None, None)
    assert found.parent is not None
    assert (found.parent.warps, found.parent.instruction, found.parent.version) == ((4, 1), (16, 8), 2)
    assert found.root is found.parent


def test_a_layout_deep_inside_others_is_found() -> None:
    found = parsed("#ttg.slice<{dim = 0, parent = #ttg.slice<{dim = 2, parent = #ttg.blocked<{order = [2, 1, 0]}>}>}>")
    assert [made.dim for made in found.chain] == [0, 2, None]
    assert found.root.order == (2, 1, 0)


def test_memory_says_how_it_is_swizzled_and_padded() -> None:
    assert parsed("#ttg.nvmma_shared<{swizzlingByteWidth = 64, fp4Padded = true}>").swizzle == 64
    assert parsed("#ttg.nvmma_shared<{swizzlingByteWidth = 64, fp4Padded = true}>").is_fp4_padded
    assert parsed("#triton_gpu.shared<{hasLeadingOffset = true}>").has_leading_offset
    assert parsed("#ttg.padded_shared<[512:+8, 64:+4] {order = [1, 0]}>").padding == ((512, 8), (64, 4))


def test_the_warps_of_a_wmma_may_be_a_linear_layout() -> None:
    found = parsed("#ttg.amd_wmma<{version = 2, ctaLayout = {register = [[0, 1]], warp = [[1, 0], [2, 0]]}}>")
    assert (found.register, found.warp, found.version) == (((0, 1),), ((1, 0), (2, 0)), 2)


@pytest.mark.parametrize(
    ("text", "kind", "is_matrix"),
    [
        ("#triton_gpu.mma<{versionMajor = 2}>", LayoutKind.MMA, True),
        ("#ttng.tensor_memory_encoding<blockM = 128>", LayoutKind.TENSOR_MEMORY, True),
        ("#ttg.blocked<{}>", LayoutKind.BLOCKED, False),
        ("#ttg.linear<{}>", LayoutKind.LINEAR, False),
    ],
)
def test_only_results_of_matrix_units_are_of_a_matrix_unit(text: str, kind: LayoutKind, is_matrix: bool) -> None:
    assert (parsed(text).kind, parsed(text).is_matrix) == (kind, is_matrix)


@pytest.mark.parametrize("text", ["", "blocked", "#ttg.blocked<{order = [" + "9" * 5000 + "]}>"])
def test_nothing_is_read_from_a_text_that_is_no_layout(text: str) -> None:
    assert parse_encoding(text) is None


def test_layouts_nested_without_end_are_cut_off() -> None:
    text = "#ttg.slice<{dim = 0, parent = " * 400 + "#ttg.blocked<{}>" + "}>" * 400
    assert len(list(parsed(text).chain)) < 50
