"""Generations of matrix instructions, beside what targets have."""

from __future__ import annotations

from dataclasses import replace

import pytest
from handwritten import code_of
from works import dot, mma, replace_op, tiled

from artifact_inspector.analysis.matrix.generation import MatrixGeneration, count_packed_dots, describe_generation
from artifact_inspector.analysis.matrix.matrix_work import MatrixWork, Tiling
from artifact_inspector.analysis.order.regions import find_regions
from artifact_inspector.hardware.targets import parse_target
from artifact_inspector.model import Stage


def generation(target: str, works: list[MatrixWork], **more: object) -> MatrixGeneration:
    return describe_generation(parse_target(target), works, 0, **more)  # type: ignore[arg-type]


def with_types(work: MatrixWork, types: str, **more: object) -> MatrixWork:
    assert work.matrix is not None
    return replace(work, matrix=replace_op(work.matrix, types=types), **more)


def test_an_older_generation_is_named_beside_the_newest() -> None:
    found = generation("sm_90", [mma(4)])
    assert (found.description, found.reason, found.is_newest) == ("mma.sync, where sm_90 has wgmma", "", False)
    assert found.lines == (10, 20)


def test_mma_is_the_newest_of_sm_120_which_has_no_tcgen05() -> None:
    assert generation("sm_120", [mma(4)]).is_newest is True


@pytest.mark.parametrize(
    ("target", "asked", "reason"),
    [
        ("sm_90", dot(32, 64, 16), "wgmma needs at least 64 rows, but the tile has 32"),
        ("sm_100", dot(128, 64, 16, tiling=tiled(2, 1)), "tcgen05.mma needs 4 warps, but the dot runs on 2"),
        ("sm_90", with_types(dot(64, 64, 16), "f64×f64→f64"), "wgmma does not multiply f64"),
        ("sm_90", dot(64, 64, 16, tiling=tiled(4, 1)), ""),
    ],
)
def test_why_the_newest_is_not_used_is_said_where_its_shape_or_types_rule_it_out(
    target: str, asked: MatrixWork, reason: str
) -> None:
    assert generation(target, [mma(4)], dots=[asked]).reason == reason


BLOCKED = dot(64, 64, 16, tiling=Tiling("blocked", (4, 1), (), 1, False))
LAID_OUT = dot(64, 64, 16, tiling=tiled(4, 1))


@pytest.mark.parametrize(
    ("target", "types", "precision", "reason"),
    [
        ("gfx906", "f16×f16→f32", None, "gfx906 has no matrix instructions"),
        ("gfx1030", "f16×f16→f32", None, "gfx1030 has no matrix instructions"),
        ("sm_75", "f16×f16→f32", None, "this version of Triton lowers the dots of sm_75 to FMA"),
        ("sm_75", "bf16×bf16→f32", None, "mma.sync of sm_75 does not multiply bf16"),
        (
            "sm_80",
            "f32×f32→f32",
            "ieee",
            "mma.sync supports 32-bit floats only as tf32, but the dot requests full precision",
        ),
        ("sm_80", "f32×f32→f32", "tf32", ""),
        ("sm_80", "i32×i32→i32", None, "mma.sync of sm_80 does not multiply i32"),
        ("sm_80", "f8E5M2×f8E5M2→f32", None, "mma.sync of sm_80 does not multiply f8E5M2"),
        ("sm_89", "f8E5M2×f8E5M2→f32", None, ""),
        ("gfx1100", "f32×f32→f32", None, "WMMA of gfx1100 does not multiply f32"),
        ("gfx1250", "f32×f32→f32", None, ""),
        ("gfx908", "f64×f64→f64", None, "MFMA of gfx908 does not multiply f64"),
        ("gfx90a", "f64×f64→f64", None, ""),
        ("gfx942", "made_up×made_up→f32", None, ""),
        ("sm_61", "f16×f16→f32", None, ""),
    ],
)
def test_why_a_dot_is_scalar_is_said_where_a_source_says_so(
    target: str, types: str, precision: str | None, reason: str
) -> None:
    found = generation(target, [], dots=[with_types(BLOCKED, types, precision=precision)])
    assert (found.description, found.reason) == ("MMA 0, FMA 0", reason)


def test_dots_laid_out_for_a_matrix_unit_are_not_scalar_where_they_have_moved_away() -> None:
    assert generation("sm_80", [], dots=[LAID_OUT]).description == ""


def test_one_scalar_dot_beside_others_is_not_hidden_by_them() -> None:
    exact = with_types(BLOCKED, "f32×f32→f32", sources=("k.py:2",))
    asked = [
        with_types(dot(64, 64, 16), "f16×f16→f32", precision="tf32"),
        with_types(dot(64, 64, 16), "f32×f32→f32", sources=("k.py:2",)),
    ]
    found = describe_generation(parse_target("sm_80"), [mma(8)], 512, dots=[LAID_OUT, exact], program_dots=asked)
    assert found.description == "mma.sync; 1 of 2 dots by FMA 512"
    assert found.reason == "mma.sync supports 32-bit floats only as tf32, but the dot requests full precision"


def test_the_types_that_the_program_asked_for_count_and_not_those_they_were_widened_to() -> None:
    widened = with_types(BLOCKED, "f32×f32→f32")
    asked = with_types(dot(64, 64, 16), "f16×f16→f32")
    found = generation("sm_75", [], dots=[widened], program_dots=[asked])
    assert found.reason == "this version of Triton lowers the dots of sm_75 to FMA"


def test_a_region_without_dots_has_no_generation_to_speak_of() -> None:
    found = generation("sm_90", [])
    assert (found.description, found.is_newest) == ("", None)


def test_a_target_without_a_row_has_no_newest() -> None:
    found = generation("sm_61", [mma(4)])
    assert (found.newest, found.description, found.is_newest) == (None, "mma.sync", None)


def test_instructions_of_unknown_work_are_no_scalar_dot() -> None:
    found = generation("sm_100", [replace(mma(1), op="tcgen05.mma.kind::f16", matrix=None)], dots=[LAID_OUT])
    assert (found.description, found.reason) == ("tcgen05.mma.kind::f16", "")


def test_dot_products_of_lanes_are_counted_apart() -> None:
    text = """
\t.amdgcn_target "amdgcn-amd-amdhsa--gfx906"
k:
\tv_dot2_f32_f16 v0, v1, v2, v0
\tv_dot4_i32_i8 v0, v1, v2, v0
\tv_fma_f32 v3, v1, v2, v3
\ts_endpgm
"""
    code = code_of(Stage.AMDGCN, text)
    (region,) = find_regions(code, (), exact=False)
    assert count_packed_dots(code, region) == 2
    found = describe_generation(parse_target("gfx906"), (), 3, dots=[BLOCKED], packed=2)
    assert found.description == "MMA 0, FMA 3, 2 of them dot products"
