"""The matrix operations of a region, counted by hand in a few lines of text."""

from __future__ import annotations

from dataclasses import replace

from handwritten import code_of, made

from artifact_inspector.analysis.flow.function_code import FunctionCode
from artifact_inspector.analysis.matrix.matrix_work import (
    MatrixWork,
    Tiling,
    _max_along_path,
    find_matrix_work,
    warps_of,
)
from artifact_inspector.analysis.order.regions import find_regions
from artifact_inspector.model import EventKind, Issuer, MatrixOp, Stage

MMA = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%r1,%r2,%r3,%r4}, {%r5,%r6,%r7,%r8}, {%r9,%r10}, {%r1,%r2,%r3,%r4};"
PTX = """
.version 8.7
.target sm_80
.address_size 64
.visible .entry k()
.reqntid 128
{
$L__BB0_0:
@%p1 bra $L__BB0_2;
bra.uni $L__BB0_1;
$L__BB0_1:
MMA
MMA
bra.uni $L__BB0_3;
$L__BB0_2:
MMA
MMA
$L__BB0_3:
wgmma.mma_async.sync.aligned.m64n32k16.f32.f16.f16 {%r1}, %rd1, %rd2, 1, 1, 1, 0, 0;
tcgen05.mma.cta_group::1.kind::f16 [ %r2 + 0 ], %rd6, %rd7, %r99, %p14;
ret;
}
"""
TTGIR = """
#mma = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [2, 2], instrShape = [16, 8]}>
#wmma = #ttg.amd_wmma<{version = 3, isTranspose = true, ctaLayout = {warp = [[1, 0], [0, 0], [0, 1]]}, instrShape = [16, 16, 32]}>
module attributes {"ttg.num-ctas" = 2 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:80"} {
  tt.func public @k() {
    %d = tt.dot %a, %b, %c, inputPrecision = tf32x3 : tensor<64x32xf32, #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 1}>> * tensor<32x16xf32, #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 1}>> -> tensor<64x16xf32, #mma>
    %e = tt.dot %a, %b, %c : tensor<64x32xf16, #ttg.dot_op<{opIdx = 0, parent = #wmma}>> * tensor<32x16xf16, #ttg.dot_op<{opIdx = 1, parent = #wmma}>> -> tensor<64x16xf32, #wmma>
    tt.return
  }
}
"""


def works_of(text: str, stage: Stage, warps: int | None) -> tuple[MatrixWork, ...]:
    code = code_of(stage, text)
    (region,) = find_regions(code, (), exact=False)
    return find_matrix_work(code, region, warps)


def dot_of(*warps: int) -> MatrixWork:
    op = MatrixOp("tt.dot", "dot", 64, 32, 16, 1, "f16×f16→f32", Issuer.BLOCK)
    tiling = Tiling("nvidia_mma", warps, (16, 8), 1, True)
    return MatrixWork("tt.dot", op, 1, 1, 1, (1, 1), ("k.py:1",), tiling)


def test_instructions_are_counted_by_opcode_shape_and_types() -> None:
    mmas, wgmma, unread = works_of(PTX.replace("MMA", MMA), Stage.PTX, 4)
    assert (mmas.op, mmas.count, mmas.issuers) == ("mma.sync", 4, 4)
    assert mmas.matrix is not None
    assert (mmas.matrix.shape, mmas.matrix.flop) == ("m16n8k16", 2 * 16 * 8 * 16)
    assert mmas.lines == (12, 17)  # lines of the text above, which begins with an empty one
    assert (wgmma.count, wgmma.issuers) == (1, 1)  # one warpgroup of four warps
    assert unread.count == 1


def test_instructions_on_alternative_paths_are_told_from_those_in_a_row() -> None:
    mmas = works_of(PTX.replace("MMA", MMA), Stage.PTX, 4)[0]
    assert (mmas.count, mmas.along_path) == (4, 2)


def test_an_instruction_whose_shape_is_made_at_run_time_is_counted_without_work() -> None:
    # No instruction sets %r99, the descriptor with M and N.
    unread = works_of(PTX.replace("MMA", MMA), Stage.PTX, 4)[2]
    assert (unread.op, unread.matrix, unread.flop) == ("tcgen05.mma.cta_group::1.kind::f16", None, None)


def test_work_of_warps_is_unknown_where_their_number_is() -> None:
    found = {work.op: work for work in works_of(PTX.replace("MMA", MMA), Stage.PTX, None)}
    assert found["mma.sync"].flop is None
    assert found["wgmma.mma_async"].flop is None


def test_a_dot_bears_its_layout_and_precision() -> None:
    first, second = works_of(TTGIR, Stage.TTGIR, None)
    assert (first.tiling, first.precision) == (Tiling("nvidia_mma", (2, 2), (16, 8), 2, True), "tf32x3")
    assert first.flop == second.flop == 2 * 64 * 16 * 32


def test_warps_of_a_linear_layout_are_counted_along_what_their_bases_move() -> None:
    # [1, 0] doubles the rows, [0, 1] the columns, and [0, 0] copies: counted with the rows.
    second = works_of(TTGIR, Stage.TTGIR, None)[1]
    assert second.tiling == Tiling("amd_wmma", (4, 2), (16, 16, 32), 2, True)
    assert second.precision is None


def test_the_module_says_how_many_warps_run_it_and_the_metadata_only_where_it_does_not() -> None:
    code = code_of(Stage.TTGIR, TTGIR)
    assert warps_of(code, (), 12) == 4
    silent = FunctionCode(code.function, replace(code.module, attributes={}), code.language)
    assert warps_of(silent, (), 12) == 12


def test_warps_of_a_partition_are_those_of_its_layouts_and_never_those_of_the_block() -> None:
    code = code_of(Stage.TTGIR, TTGIR)
    function = replace(code.function, partitions=(object(),))  # type: ignore[arg-type]
    specialised = FunctionCode(function, code.module, code.language)
    assert warps_of(specialised, (dot_of(8, 1),), 12) == 8
    assert warps_of(specialised, (), 12) is None
    differing = (dot_of(8, 1), dot_of(4, 1))
    assert warps_of(specialised, differing, 12) is None


ARMS = """
module {
  tt.func public @k(%p: i1) {
    %r = scf.if %p -> (tensor<64x16xf32>) {
      %d = tt.dot %a, %b, %c : tensor<64x32xf16> * tensor<32x16xf16> -> tensor<64x16xf32> loc("k.py":7:1)
      scf.yield %d : tensor<64x16xf32>
    } else {
      %e = tt.dot %a, %f, %c : tensor<64x32xf16> * tensor<32x16xf16> -> tensor<64x16xf32> loc("k.py":8:1)
      scf.yield %e : tensor<64x16xf32>
    }
    %g = tt.dot %a, %b, %r : tensor<64x32xf16> * tensor<32x16xf16> -> tensor<64x16xf32> loc("k.py":9:1)
    tt.return
  }
}
"""


def test_dots_in_the_arms_of_an_if_are_told_from_those_on_every_path() -> None:
    dots = {work.sources: work.exclusive_sources for work in works_of(ARMS, Stage.TTGIR, 4)}
    assert dots == {("k.py:7",): ("k.py:8",), ("k.py:8",): ("k.py:7",), ("k.py:9",): ()}


def test_a_layout_with_extents_of_nothing_is_passed_over() -> None:
    text = TTGIR.replace("warpsPerCTA = [2, 2], instrShape = [16, 8]", "warpsPerCTA = [0, 2], instrShape = [, ]")
    asked = works_of(text, Stage.TTGIR, None)[0]
    assert asked.tiling == Tiling("nvidia_mma", (), (), 2, True)


def test_the_longest_path_is_that_through_the_larger_of_two_arms() -> None:
    code = made("M", "M", "M M", "M", to={0: (1, 2), 1: (3,), 2: (3,)})
    assert _max_along_path(code, code.find(frozenset({EventKind.MATRIX}))) == 4
    assert _max_along_path(code, [1, 2]) == 1
    assert _max_along_path(code, [2, 3]) == 2


def test_what_a_loop_repeats_stands_on_the_path_once() -> None:
    code = made("M", "M", "M", to={1: (1, 2)})
    assert _max_along_path(code, [0, 1, 2]) == 3
