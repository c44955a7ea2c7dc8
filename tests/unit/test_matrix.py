"""Matrix work of a region, the identity between dots and instructions, and generations."""

from __future__ import annotations

from dataclasses import replace

import pytest

from artifact_inspector.analysis.flow.code import Code
from artifact_inspector.analysis.matrix.generation import Generation, count_packed_dots, describe_generation
from artifact_inspector.analysis.matrix.identity import Identity, Reason, check_identity
from artifact_inspector.analysis.matrix.work import MatrixWork, Tiling, find_matrix_work, warps_of
from artifact_inspector.analysis.order.regions import find_regions
from artifact_inspector.formats import format_of
from artifact_inspector.hardware.targets import parse_target
from artifact_inspector.model import MatrixOp, Module, Stage
from artifact_inspector.model.text import SourceText

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


def read(text: str, stage: Stage) -> tuple[Code, Module]:
    module = format_of(stage).parse(SourceText("k", text), stage)
    (function,) = module.functions
    return Code(function, format_of(stage)), module


def works_of(text: str, stage: Stage, warps: int | None) -> tuple[MatrixWork, ...]:
    code, module = read(text, stage)
    (region,) = find_regions(code, (), exact=False)
    return find_matrix_work(code, region, module, format_of(stage), warps)


def dot(m: int, n: int, k: int, count: int = 1, **more: object) -> MatrixWork:
    """Dots of m×n×k, by default without layout."""
    op = MatrixOp("tt.dot", "dot", m, n, k, 1, "f16×f16→f32", "block")
    return replace(MatrixWork("tt.dot", op, count, count, 1, (1, 1), ("k.py:1",)), **more)


def mma(count: int, issuers: int | None = 4, **more: object) -> MatrixWork:
    """m16n8k16 instructions: 4096 operations each."""
    op = MatrixOp("mma.sync", "mma", 16, 8, 16, 1, "f16×f16→f32", "warp")
    return replace(MatrixWork("mma.sync", op, count, count, issuers, (10, 20), ("k.py:1",)), **more)


def tiled(*warps: int, ctas: int = 1) -> Tiling:
    return Tiling("nvidia_mma", warps, (16, 8), ctas, True)


def judge(asked: MatrixWork, found: MatrixWork, **more: object) -> Identity:
    return check_identity({"r": (asked,)}, {"r": (found,)}, **more)["r"]  # type: ignore[arg-type]


# -- counting ------------------------------------------------------------------------------


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
    code, module = read(TTGIR, Stage.TTGIR)
    assert warps_of(code, (), module, 12) == 4
    assert warps_of(code, (), replace(module, attributes={}), 12) == 12


def test_warps_of_a_partition_are_those_of_its_layouts_and_never_those_of_the_block() -> None:
    code, module = read(TTGIR, Stage.TTGIR)
    function = replace(code.function, partitions=(object(),))  # type: ignore[arg-type]
    specialised = Code(function, code.language)
    assert warps_of(specialised, (dot(64, 32, 16, tiling=tiled(8, 1)),), module, 12) == 8
    assert warps_of(specialised, (), module, 12) is None
    differing = (dot(64, 32, 16, tiling=tiled(8, 1)), dot(64, 32, 16, tiling=tiled(4, 1)))
    assert warps_of(specialised, differing, module, 12) is None


# -- the identity --------------------------------------------------------------------------


def test_the_identity_is_written_out_where_it_holds() -> None:
    # 128·32·32: 2 rows × 4 columns × 2 steps of m16n8k16 for each of 4 warps.
    found = judge(dot(128, 32, 32), mma(16))
    assert (found.holds, found.reason, found.ratio) == (True, Reason.EXACT, 1.0)
    assert found.words == "16 × 4096 × 4 warps = 2·128·32·32"


def test_work_that_nothing_explains_is_shown_with_its_ratio() -> None:
    found = judge(dot(128, 32, 32), mma(40))
    assert (found.holds, found.is_explained, found.words) == (False, False, "unexplained ×2.5")


def test_instructions_without_any_dot_are_shown() -> None:
    found = check_identity({}, {"r": (mma(4),)})["r"]
    assert (found.reason, found.expected, found.ratio) == (Reason.UNEXPLAINED, 0, None)


def test_a_region_without_matrix_work_has_no_identity() -> None:
    assert check_identity({"r": ()}, {"r": ()}) == {}


def test_unknown_warps_leave_the_identity_open() -> None:
    found = judge(dot(128, 32, 32), mma(16, None))
    assert (found.holds, found.found, found.reason) == (None, None, Reason.UNKNOWN)


def test_one_instruction_of_unknown_work_leaves_the_identity_open() -> None:
    unread = replace(mma(3), op="tcgen05.mma.kind::f16", matrix=None)
    found = check_identity({"r": (dot(128, 32, 32),)}, {"r": (mma(16), unread)})["r"]
    assert (found.holds, found.words) == (None, "what tcgen05.mma.kind::f16 ×3 computes is not known")


def test_iterations_in_one_pass_are_expected_where_the_loop_is_known_to_be_unrolled() -> None:
    assert judge(dot(128, 32, 32), mma(32), unrolled={"r": 2}).reason is Reason.UNROLLED
    assert judge(dot(128, 32, 32), mma(32)).words == "unexplained ×2"


def test_a_loop_that_is_gone_holds_as_often_as_its_iterations_stand_in_a_row() -> None:
    found = judge(dot(128, 32, 32), mma(48), left_over={"r"})
    assert (found.reason, found.words) == (Reason.UNROLLED, "the loop is gone: 3 iterations in a row")


@pytest.mark.parametrize(
    ("precision", "products"), [("tf32x3", 3), ("bf16x3", 3), ("bf16x6", 6), ("bf16x9", 9)]
)
def test_precision_made_of_several_products_explains_as_many_times_the_work(
    precision: str, products: int
) -> None:
    found = judge(dot(128, 32, 32, precision=precision), mma(16 * products))
    assert (found.reason, found.ratio) == (Reason.EMULATED, products)
    assert judge(dot(128, 32, 32, precision=precision), mma(16 * 5)).reason is Reason.UNEXPLAINED


def test_warps_beyond_the_tile_repeat_each_other() -> None:
    # 4 warps along 16 rows: each does the 2 columns of 16×16×16.
    found = judge(dot(16, 16, 16, tiling=tiled(4, 1)), mma(2))
    assert (found.reason, found.ratio) == (Reason.REDUNDANT, 4.0)
    assert found.words == "4×1 warps of 16×8 cover 64×16, the tile is 16×16: ×4 the work"


def test_a_tile_smaller_than_the_instruction_is_filled_up() -> None:
    # 4 rows of 16.
    found = judge(dot(4, 8, 16, tiling=tiled(1, 1)), mma(1, 1))
    assert found.words == "1×1 warps of 16×8 cover 16×8, the tile is 4×8: ×4 the work"
    # And along K: 8 of 16.
    found = judge(dot(16, 8, 8, tiling=tiled(1, 1)), mma(1, 1))
    assert found.words == "1×1 warps of 16×8×16 cover 16×8×16, the tile is 16×8×8: ×2 the work"


def test_warps_along_a_batch_that_is_too_small_repeat_each_other() -> None:
    found = judge(dot(16, 8, 16, tiling=Tiling("nvidia_mma", (4, 1, 1), (1, 16, 8), 1, True)), mma(1))
    assert found.words == "4×1×1 warps of 16×8×1 cover 16×8×4, the tile is 16×8×1: ×4 the work"


def test_warps_that_the_layout_does_not_name_do_the_work_again() -> None:
    # sm_70: a layout of 2 warps in a block of 8, and no instruction is guarded by the warp.
    found = judge(dot(32, 8, 16, tiling=tiled(2, 1)), mma(1, 8))
    assert found.words == "4 times 2×1 warps of 16×8 cover 32×8, the tile is 32×8: ×4 the work"


def test_a_layout_that_covers_more_does_not_excuse_any_other_ratio() -> None:
    assert judge(dot(16, 16, 16, tiling=tiled(4, 1)), mma(6)).reason is Reason.UNEXPLAINED


def test_each_dot_is_cut_by_the_instruction_that_its_layout_names() -> None:
    # 64×32×16 by 4 wavefronts of 32×32×8 (twice the work), 64×16×32 by 4 of 16×16×16 (exactly).
    large = MatrixOp("v_mfma", "mfma", 32, 32, 8, 1, "f16×f16→f32", "wavefront")
    small = MatrixOp("v_mfma", "mfma", 16, 16, 16, 1, "f16×f16→f32", "wavefront")
    found = check_identity(
        {
            "r": (
                dot(64, 32, 16, tiling=Tiling("amd_mfma", (4, 1), (32, 32), 1, True)),
                dot(64, 16, 32, tiling=Tiling("amd_mfma", (4, 1), (16, 16), 1, True)),
            )
        },
        {"r": (mma(2, matrix=large), mma(2, matrix=small))},
    )["r"]
    assert found.words == "4×1 warps of 32×32 cover 128×32, the tile is 64×32: ×2 the work"


def test_products_side_by_side_are_cut_as_the_layout_says() -> None:
    # v_mfma_f32_4x4x4_16b as 4×64: 16 products of 2·4·4·4, K = 2048 / (2·4·64) = 4, 16 steps of 64.
    side = MatrixOp("v_mfma", "mfma", 4, 4, 4, 16, "f16×f16→f32", "wavefront")
    asked = dot(4, 64, 64, tiling=Tiling("amd_mfma", (2, 1), (4, 64), 1, True))
    found = judge(asked, mma(16, 2, matrix=side))
    assert found.words == "2×1 warps of 4×64 cover 8×64, the tile is 4×64: ×2 the work"


def test_four_products_of_a_quarter_warp_are_one_square() -> None:
    # sm_70: m8n8k4 four times is 16×16×4; the layout of Triton 2.1 names no instruction.
    quarter = MatrixOp("mma.sync", "mma", 8, 8, 4, 4, "f16×f16→f32", "warp")
    asked = dot(16, 16, 4, tiling=Tiling("mma", (2, 1), (), 1, True))
    assert judge(asked, mma(1, 2, matrix=quarter)).reason is Reason.REDUNDANT


def test_blocks_of_a_cluster_share_the_tile_and_a_pair_of_them_an_instruction() -> None:
    alone = MatrixOp("tcgen05.mma", "tcgen05", 64, 128, 16, 1, "f16×f16→f32", "CTA")
    asked = dot(128, 128, 64, tiling=Tiling("tensor_memory_encoding", (), (), 2, True))
    found = judge(asked, mma(4, 1, matrix=alone))
    assert (found.holds, found.words) == (True, "4 × 262144 × 2 CTAs = 2·128·128·64")
    pair = replace_op(alone, m=128, issuer="CTA pair")
    assert judge(asked, mma(4, 1, matrix=pair)).words == "4 × 524288 × 1 CTA pair = 2·128·128·64"
    warps = judge(dot(256, 32, 32, tiling=tiled(4, 1, ctas=2)), mma(16))
    assert warps.words == "16 × 4096 × 8 warps of 2 CTAs = 2·256·32·32"


def replace_op(op: MatrixOp, **more: object) -> MatrixOp:
    return op._replace(**more)  # type: ignore[arg-type]


def test_a_dot_without_instructions_is_scalar_only_where_its_layout_says_so() -> None:
    scalar = dot(64, 64, 16, tiling=Tiling("blocked", (4, 1), (), 1, False))
    found = check_identity({"r": (scalar,)}, {"r": ()})["r"]
    assert (found.reason, found.holds, found.found) == (Reason.SCALAR, None, 0)
    lost = dot(64, 64, 16, tiling=tiled(4, 1))
    assert check_identity({"r": (lost,)}, {"r": ()})["r"].reason is Reason.UNEXPLAINED


def test_copies_on_alternative_paths_are_one_copy_for_each_warp() -> None:
    found = judge(dot(128, 32, 32), mma(32, along_path=16))
    assert found.reason is Reason.ALTERNATIVES


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
    dots = {work.sources: work.instead_of for work in works_of(ARMS, Stage.TTGIR, 4)}
    assert dots == {("k.py:7",): ("k.py:8",), ("k.py:8",): ("k.py:7",), ("k.py:9",): ()}


def test_arms_that_were_merged_into_one_run_of_instructions_are_alternatives() -> None:
    arms = (
        dot(128, 32, 32, instead_of=("k.py:7",)),
        dot(128, 32, 32, sources=("k.py:7",), instead_of=("k.py:1",)),
    )
    for sources in (("k.py:1",), ()):  # whichever line was kept, or none
        found = check_identity({"r": arms}, {"r": (mma(16, sources=sources),)})["r"]
        assert found.reason is Reason.ALTERNATIVES
        assert (
            found.words
            == "one of the dots of k.py:1, k.py:7 runs in a pass, and they share their instructions"
        )
    # A third dot, on every path, has no instruction: that is no alternative.
    more = {"r": (*arms, dot(128, 32, 32, sources=("k.py:9",)))}
    assert check_identity(more, {"r": (mma(16),)})["r"].reason is not Reason.ALTERNATIVES


def test_what_a_loop_of_one_iteration_had_fetched_ahead_is_never_reached() -> None:
    # A pipelined loop that runs once: two of its dots stand in front of it, and one iteration is left.
    dots = {"straight": (dot(128, 32, 32, 2),), "loop": (dot(128, 32, 32),)}
    left = {"straight": (mma(16),), "loop": (mma(16),)}
    found = check_identity(dots, left, left_over={"loop"}, parents={"straight": None, "loop": "straight"})
    assert found["loop"].holds is True
    assert found["straight"].reason is Reason.REMOVED
    assert found["straight"].words == "of loop, which is no loop any more, only 1 iteration can be reached"


def test_a_peeled_iteration_belongs_to_a_loop_inside_the_region() -> None:
    dots = {"straight": (), "loop": (dot(128, 32, 32),)}
    works = {"straight": (mma(16),), "loop": (mma(16),)}
    inside = check_identity(dots, works, parents={"straight": None, "loop": "straight"})
    assert inside["straight"].words == "here too: 1 iteration of loop (peeled off)"
    beside = check_identity(dots, works, parents={"straight": None, "loop": None})
    assert beside["straight"].reason is Reason.COPIED


def test_a_part_of_an_iteration_may_be_peeled_off() -> None:
    # Each dot is 65536 operations: 4 m16n8k16 for each of 4 warps.
    inner = (dot(64, 32, 16), dot(64, 16, 32))
    works = {"straight": (mma(4),), "loop": (mma(8),)}
    found = check_identity({"loop": inner}, works, parents={"straight": None, "loop": "straight"})
    assert found["loop"].holds is True
    assert found["straight"].words == "here too: parts of iterations of loop (peeled off)"


def test_what_is_left_of_a_loop_stands_in_the_region_it_was_dissolved_into() -> None:
    dots = {"straight": (), "loop": (dot(128, 32, 32),)}
    works = {"straight": (mma(48),), "loop": (mma(48),)}
    found = check_identity(dots, works, left_over={"loop"}, parents={"straight": None, "loop": "straight"})
    assert found["straight"].words == "here too: the iterations of loop (no loop any more)"


def test_an_excess_on_other_lines_is_no_peeled_iteration() -> None:
    works = {"straight": (mma(16, sources=("k.py:9",)),), "loop": (mma(16),)}
    found = check_identity({"loop": (dot(128, 32, 32),)}, works)
    assert found["straight"].reason is Reason.UNEXPLAINED


def test_work_that_moved_to_another_partition_is_found_there() -> None:
    # Half of the rows each: 128×128 became twice 64×128.
    dots = {"one": (dot(128, 128, 16),)}
    works = {"one": (dot(64, 128, 16),), "two": (dot(64, 128, 16),)}
    found = check_identity(dots, works, parents={"one": None, "two": None})
    assert (found["one"].reason, found["one"].words) == (Reason.ELSEWHERE, "some of it is in two")
    assert found["two"].words == "here too: some of one"


def test_a_loop_is_unrolled_where_the_iteration_left_over_stands_around_it() -> None:
    # gfx950: twice the instructions of a pass in the loop, and once more behind it.
    parents = {"straight": None, "loop": "straight"}
    dots = {"straight": (), "loop": (dot(128, 32, 32),)}
    found = check_identity(dots, {"straight": (mma(16),), "loop": (mma(32),)}, parents=parents)
    assert (found["loop"].reason, found["loop"].holds, found["loop"].ratio) == (Reason.UNROLLED, True, 1.0)
    assert found["straight"].words == "here too: 1 iteration of loop (left over by unrolling)"
    alone = check_identity(dots, {"straight": (), "loop": (mma(32),)}, parents=parents)
    assert alone["loop"].reason is Reason.UNEXPLAINED


def test_a_redundant_loop_that_is_gone_is_still_redundant() -> None:
    found = judge(dot(16, 16, 16, tiling=tiled(4, 1)), mma(6), left_over={"r"})
    assert (found.reason, found.ratio) == (Reason.REDUNDANT, 4.0)
    assert found.words == (
        "the loop is gone: 3 iterations in a row; "
        "4×1 warps of 16×8 cover 64×16, the tile is 16×16: ×4 the work"
    )


def test_a_loop_under_another_name_is_not_taken_for_gone() -> None:
    # Everything on the line is counted for the loop that was not found: its own instructions are in b.
    dots = {"straight": (), "a": (dot(128, 32, 32),)}
    works = {"straight": (), "a": (mma(16), mma(16)), "b": (mma(16),)}
    parents = {"straight": None, "a": "straight", "b": "straight"}
    found = check_identity(dots, works, left_over={"a"}, parents=parents)
    assert (found["a"].words, found["b"].words) == ("all of it is in b", "here: all of a")
    assert found["a"].found == 0


def test_a_dot_whose_line_has_no_instruction_was_removed() -> None:
    dots = {"r": (dot(128, 32, 32), dot(64, 64, 64, sources=("k.py:7",)))}
    found = check_identity(dots, {"r": (mma(16),)})["r"]
    assert (found.reason, found.words) == (Reason.REMOVED, "the dot of k.py:7 has no instruction")
    # Without lines nothing tells which it is.
    blind = {"r": tuple(replace(work, sources=()) for work in dots["r"])}
    assert check_identity(blind, {"r": (mma(16, sources=()),)})["r"].reason is Reason.UNEXPLAINED


def test_all_the_work_of_a_loop_may_stand_in_another() -> None:
    found = check_identity({"a": (dot(128, 32, 32),), "b": ()}, {"a": (), "b": (mma(16),)})
    assert (found["a"].words, found["b"].words) == ("all of it is in b", "here too: all of a")


def test_what_another_region_lacks_explains_an_excess_before_peeled_iterations_do() -> None:
    # One dot of the partition and one iteration of the loop are the same number of operations.
    dots = {"dispatch": (), "partition": (dot(128, 32, 32),), "loop": (dot(128, 32, 32),)}
    works = {"dispatch": (mma(16),), "partition": (), "loop": (mma(16),)}
    parents = {"dispatch": None, "partition": None, "loop": "dispatch"}
    found = check_identity(dots, works, parents=parents)
    assert found["dispatch"].words == "here too: all of partition"


# -- generations ---------------------------------------------------------------------------


def generation(target: str, works: list[MatrixWork], **more: object) -> Generation:
    return describe_generation(parse_target(target), works, 0, **more)  # type: ignore[arg-type]


def with_types(work: MatrixWork, types: str, **more: object) -> MatrixWork:
    assert work.matrix is not None
    return replace(work, matrix=replace_op(work.matrix, types=types), **more)


def test_an_older_generation_is_named_beside_the_newest() -> None:
    found = generation("sm_90", [mma(4)])
    assert (found.words, found.reason, found.is_newest) == ("mma.sync, where sm_90 has wgmma", "", False)
    assert found.lines == (10, 20)


def test_mma_is_the_newest_of_sm_120_which_has_no_tcgen05() -> None:
    assert generation("sm_120", [mma(4)]).is_newest is True


@pytest.mark.parametrize(
    ("target", "asked", "reason"),
    [
        ("sm_90", dot(32, 64, 16), "wgmma takes 64 rows or more, the tile has 32"),
        ("sm_100", dot(128, 64, 16, tiling=tiled(2, 1)), "tcgen05.mma takes 4 warps, the dot runs on 2"),
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
        ("sm_75", "f16×f16→f32", None, "this version of Triton leaves the dots of sm_75 to FMA"),
        ("sm_75", "bf16×bf16→f32", None, "mma.sync of sm_75 does not multiply bf16"),
        (
            "sm_80",
            "f32×f32→f32",
            "ieee",
            "mma.sync takes 32-bit floats as tf32 only, and the dot asks for full precision",
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
    assert (found.words, found.reason) == ("MMA 0, FMA 0", reason)


def test_dots_laid_out_for_a_matrix_unit_are_not_scalar_where_they_have_moved_away() -> None:
    assert generation("sm_80", [], dots=[LAID_OUT]).words == ""


def test_one_scalar_dot_beside_others_is_not_hidden_by_them() -> None:
    exact = with_types(BLOCKED, "f32×f32→f32", sources=("k.py:2",))
    asked = [
        with_types(dot(64, 64, 16), "f16×f16→f32", precision="tf32"),
        with_types(dot(64, 64, 16), "f32×f32→f32", sources=("k.py:2",)),
    ]
    found = describe_generation(parse_target("sm_80"), [mma(8)], 512, dots=[LAID_OUT, exact], asked=asked)
    assert found.words == "mma.sync; 1 of 2 dots by FMA 512"
    assert found.reason == "mma.sync takes 32-bit floats as tf32 only, and the dot asks for full precision"
    identity = check_identity({"r": (LAID_OUT, exact)}, {"r": (mma(8),)})["r"]
    assert (identity.reason, identity.holds) == (Reason.SCALAR, None)
    assert identity.words == "the dot of k.py:2 became multiply-adds"


def test_the_types_that_the_program_asked_for_count_and_not_those_they_were_widened_to() -> None:
    widened = with_types(BLOCKED, "f32×f32→f32")
    asked = with_types(dot(64, 64, 16), "f16×f16→f32")
    found = generation("sm_75", [], dots=[widened], asked=[asked])
    assert found.reason == "this version of Triton leaves the dots of sm_75 to FMA"


def test_a_region_without_dots_has_no_generation_to_speak_of() -> None:
    found = generation("sm_90", [])
    assert (found.words, found.is_newest) == ("", None)


def test_a_target_without_a_row_has_no_newest() -> None:
    found = generation("sm_61", [mma(4)])
    assert (found.newest, found.words, found.is_newest) == (None, "mma.sync", None)


def test_instructions_of_unknown_work_are_no_scalar_dot() -> None:
    found = generation("sm_100", [replace(mma(1), op="tcgen05.mma.kind::f16", matrix=None)], dots=[LAID_OUT])
    assert (found.words, found.reason) == ("tcgen05.mma.kind::f16", "")


def test_dot_products_of_lanes_are_counted_apart() -> None:
    text = """
\t.amdgcn_target "amdgcn-amd-amdhsa--gfx906"
k:
\tv_dot2_f32_f16 v0, v1, v2, v0
\tv_dot4_i32_i8 v0, v1, v2, v0
\tv_fma_f32 v3, v1, v2, v3
\ts_endpgm
"""
    code, _ = read(text, Stage.AMDGCN)
    (region,) = find_regions(code, (), exact=False)
    assert count_packed_dots(code, region) == 2
    found = describe_generation(parse_target("gfx906"), (), 3, dots=[BLOCKED], packed=2)
    assert found.words == "MMA 0, FMA 3, 2 of them dot products"


def test_a_layout_with_extents_of_nothing_is_passed_over() -> None:
    text = TTGIR.replace(
        "warpsPerCTA = [2, 2], instrShape = [16, 8]", "warpsPerCTA = [0, 2], instrShape = [, ]"
    )
    asked = works_of(text, Stage.TTGIR, None)[0]
    assert asked.tiling == Tiling("nvidia_mma", (), (), 2, True)
    assert judge(asked, mma(3)).reason is Reason.UNEXPLAINED
