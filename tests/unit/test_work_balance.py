"""The identity between the dots of a program and the matrix instructions that do them."""

from __future__ import annotations

from dataclasses import replace

import pytest
from works import dot, mma, replace_op, tiled

from artifact_inspector.analysis.matrix.matrix_work import MatrixWork, Tiling
from artifact_inspector.analysis.matrix.work_balance import BalanceReason, WorkBalance, check_work_balance
from artifact_inspector.model import MatrixOp


def judge(asked: MatrixWork, found: MatrixWork, **more: object) -> WorkBalance:
    return check_work_balance({"r": (asked,)}, {"r": (found,)}, **more)["r"]  # type: ignore[arg-type]


def test_the_identity_is_written_out_where_it_holds() -> None:
    # 128·32·32: 2 rows × 4 columns × 2 steps of m16n8k16 for each of 4 warps.
    found = judge(dot(128, 32, 32), mma(16))
    assert (found.is_balanced, found.reason, found.ratio) == (True, BalanceReason.EXACT, 1.0)
    assert found.explanation == "16 × 4096 × 4 warps = 2·128·32·32"


def test_work_that_nothing_explains_is_shown_with_its_ratio() -> None:
    found = judge(dot(128, 32, 32), mma(40))
    assert (found.is_balanced, found.reason, found.explanation) == (
        False,
        BalanceReason.UNEXPLAINED,
        "unexplained ×2.5",
    )


def test_instructions_without_any_dot_are_shown() -> None:
    found = check_work_balance({}, {"r": (mma(4),)})["r"]
    assert (found.reason, found.expected, found.ratio) == (BalanceReason.UNEXPLAINED, 0, None)


def test_a_region_without_matrix_work_has_no_identity() -> None:
    assert check_work_balance({"r": ()}, {"r": ()}) == {}


def test_unknown_warps_leave_the_identity_open() -> None:
    found = judge(dot(128, 32, 32), mma(16, None))
    assert (found.is_balanced, found.actual, found.reason) == (None, None, BalanceReason.UNKNOWN)


def test_one_instruction_of_unknown_work_leaves_the_identity_open() -> None:
    unread = replace(mma(3), op="tcgen05.mma.kind::f16", matrix=None)
    found = check_work_balance({"r": (dot(128, 32, 32),)}, {"r": (mma(16), unread)})["r"]
    assert (found.is_balanced, found.explanation) == (None, "unknown amount of work in tcgen05.mma.kind::f16 ×3")


def test_iterations_in_one_pass_are_expected_where_the_loop_is_known_to_be_unrolled() -> None:
    assert judge(dot(128, 32, 32), mma(32), unrolled={"r": 2}).reason is BalanceReason.UNROLLED
    assert judge(dot(128, 32, 32), mma(32)).explanation == "unexplained ×2"


def test_a_loop_that_is_gone_holds_as_often_as_its_iterations_stand_in_a_row() -> None:
    found = judge(dot(128, 32, 32), mma(48), dissolved={"r"})
    assert (found.reason, found.explanation) == (BalanceReason.UNROLLED, "the loop was removed: 3 iterations in a row")


@pytest.mark.parametrize(("precision", "products"), [("tf32x3", 3), ("bf16x3", 3), ("bf16x6", 6), ("bf16x9", 9)])
def test_precision_made_of_several_products_explains_as_many_times_the_work(precision: str, products: int) -> None:
    found = judge(dot(128, 32, 32, precision=precision), mma(16 * products))
    assert (found.reason, found.ratio) == (BalanceReason.EMULATED, products)
    assert judge(dot(128, 32, 32, precision=precision), mma(16 * 5)).reason is BalanceReason.UNEXPLAINED


def test_warps_beyond_the_tile_repeat_each_other() -> None:
    # 4 warps along 16 rows: each does the 2 columns of 16×16×16.
    found = judge(dot(16, 16, 16, tiling=tiled(4, 1)), mma(2))
    assert (found.reason, found.ratio) == (BalanceReason.REDUNDANT, 4.0)
    assert found.explanation == "4×1 warps of 16×8 cover 64×16, but the tile is 16×16: ×4 the work"


def test_a_tile_smaller_than_the_instruction_is_filled_up() -> None:
    # 4 rows of 16.
    found = judge(dot(4, 8, 16, tiling=tiled(1, 1)), mma(1, 1))
    assert found.explanation == "1×1 warps of 16×8 cover 16×8, but the tile is 4×8: ×4 the work"
    # And along K: 8 of 16.
    found = judge(dot(16, 8, 8, tiling=tiled(1, 1)), mma(1, 1))
    assert found.explanation == "1×1 warps of 16×8×16 cover 16×8×16, but the tile is 16×8×8: ×2 the work"


def test_warps_along_a_batch_that_is_too_small_repeat_each_other() -> None:
    found = judge(dot(16, 8, 16, tiling=Tiling("nvidia_mma", (4, 1, 1), (1, 16, 8), 1, True)), mma(1))
    assert found.explanation == "4×1×1 warps of 16×8×1 cover 16×8×4, but the tile is 16×8×1: ×4 the work"


def test_warps_that_the_layout_does_not_name_do_the_work_again() -> None:
    # sm_70: a layout of 2 warps in a block of 8, and no instruction is guarded by the warp.
    found = judge(dot(32, 8, 16, tiling=tiled(2, 1)), mma(1, 8))
    assert found.explanation == "4 times 2×1 warps of 16×8 cover 32×8, but the tile is 32×8: ×4 the work"


def test_a_layout_that_covers_more_does_not_excuse_any_other_ratio() -> None:
    assert judge(dot(16, 16, 16, tiling=tiled(4, 1)), mma(6)).reason is BalanceReason.UNEXPLAINED


def test_each_dot_is_cut_by_the_instruction_that_its_layout_names() -> None:
    # 64×32×16 by 4 wavefronts of 32×32×8 (twice the work), 64×16×32 by 4 of 16×16×16 (exactly).
    large = MatrixOp("v_mfma", "mfma", 32, 32, 8, 1, "f16×f16→f32", "wavefront")
    small = MatrixOp("v_mfma", "mfma", 16, 16, 16, 1, "f16×f16→f32", "wavefront")
    found = check_work_balance(
        {
            "r": (
                dot(64, 32, 16, tiling=Tiling("amd_mfma", (4, 1), (32, 32), 1, True)),
                dot(64, 16, 32, tiling=Tiling("amd_mfma", (4, 1), (16, 16), 1, True)),
            )
        },
        {"r": (mma(2, matrix=large), mma(2, matrix=small))},
    )["r"]
    assert found.explanation == "4×1 warps of 32×32 cover 128×32, but the tile is 64×32: ×2 the work"


def test_products_side_by_side_are_cut_as_the_layout_says() -> None:
    # v_mfma_f32_4x4x4_16b as 4×64: 16 products of 2·4·4·4, K = 2048 / (2·4·64) = 4, 16 steps of 64.
    side = MatrixOp("v_mfma", "mfma", 4, 4, 4, 16, "f16×f16→f32", "wavefront")
    asked = dot(4, 64, 64, tiling=Tiling("amd_mfma", (2, 1), (4, 64), 1, True))
    found = judge(asked, mma(16, 2, matrix=side))
    assert found.explanation == "2×1 warps of 4×64 cover 8×64, but the tile is 4×64: ×2 the work"


def test_four_products_of_a_quarter_warp_are_one_square() -> None:
    # sm_70: m8n8k4 four times is 16×16×4; the layout of Triton 2.1 names no instruction.
    quarter = MatrixOp("mma.sync", "mma", 8, 8, 4, 4, "f16×f16→f32", "warp")
    asked = dot(16, 16, 4, tiling=Tiling("mma", (2, 1), (), 1, True))
    assert judge(asked, mma(1, 2, matrix=quarter)).reason is BalanceReason.REDUNDANT


def test_blocks_of_a_cluster_share_the_tile_and_a_pair_of_them_an_instruction() -> None:
    alone = MatrixOp("tcgen05.mma", "tcgen05", 64, 128, 16, 1, "f16×f16→f32", "CTA")
    asked = dot(128, 128, 64, tiling=Tiling("tensor_memory_encoding", (), (), 2, True))
    found = judge(asked, mma(4, 1, matrix=alone))
    assert (found.is_balanced, found.explanation) == (True, "4 × 262144 × 2 CTAs = 2·128·128·64")
    pair = replace_op(alone, m=128, issuer="CTA pair")
    assert judge(asked, mma(4, 1, matrix=pair)).explanation == "4 × 524288 × 1 CTA pair = 2·128·128·64"
    warps = judge(dot(256, 32, 32, tiling=tiled(4, 1, ctas=2)), mma(16))
    assert warps.explanation == "16 × 4096 × 8 warps of 2 CTAs = 2·256·32·32"


def test_a_dot_without_instructions_is_scalar_only_where_its_layout_says_so() -> None:
    scalar = dot(64, 64, 16, tiling=Tiling("blocked", (4, 1), (), 1, False))
    found = check_work_balance({"r": (scalar,)}, {"r": ()})["r"]
    assert (found.reason, found.is_balanced, found.actual) == (BalanceReason.SCALAR, None, 0)
    lost = dot(64, 64, 16, tiling=tiled(4, 1))
    assert check_work_balance({"r": (lost,)}, {"r": ()})["r"].reason is BalanceReason.UNEXPLAINED


def test_copies_on_alternative_paths_are_one_copy_for_each_warp() -> None:
    found = judge(dot(128, 32, 32), mma(32, along_path=16))
    assert found.reason is BalanceReason.ALTERNATIVES


def test_arms_that_were_merged_into_one_run_of_instructions_are_alternatives() -> None:
    arms = (
        dot(128, 32, 32, exclusive_sources=("k.py:7",)),
        dot(128, 32, 32, sources=("k.py:7",), exclusive_sources=("k.py:1",)),
    )
    for sources in (("k.py:1",), ()):  # whichever line was kept, or none
        found = check_work_balance({"r": arms}, {"r": (mma(16, sources=sources),)})["r"]
        assert found.reason is BalanceReason.ALTERNATIVES
        assert found.explanation == "only one dot of k.py:1, k.py:7 runs in a pass, and they share their instructions"
    # A third dot, on every path, has no instruction: that is no alternative.
    more = {"r": (*arms, dot(128, 32, 32, sources=("k.py:9",)))}
    assert check_work_balance(more, {"r": (mma(16),)})["r"].reason is not BalanceReason.ALTERNATIVES


def test_what_a_loop_of_one_iteration_had_fetched_ahead_is_never_reached() -> None:
    # A pipelined loop that runs once: two of its dots stand in front of it, and one iteration is left.
    dots = {"straight": (dot(128, 32, 32, 2),), "loop": (dot(128, 32, 32),)}
    left = {"straight": (mma(16),), "loop": (mma(16),)}
    found = check_work_balance(dots, left, dissolved={"loop"}, parents={"straight": None, "loop": "straight"})
    assert found["loop"].is_balanced is True
    assert found["straight"].reason is BalanceReason.REMOVED
    assert found["straight"].explanation == "only 1 iteration of loop can be reached, and its loop was removed"


def test_it_is_looked_for_behind_a_loop_that_is_still_one() -> None:
    dots = {"straight": (dot(128, 32, 32, 2),), "kept": (dot(128, 32, 32),), "loop": (dot(128, 32, 32),)}
    left = {"straight": (mma(16),), "kept": (mma(16),), "loop": (mma(16),)}
    parents = {"straight": None, "kept": "straight", "loop": "straight"}
    found = check_work_balance(dots, left, dissolved={"loop"}, parents=parents)
    assert found["straight"].explanation == "only 1 iteration of loop can be reached, and its loop was removed"


def test_a_peeled_iteration_belongs_to_a_loop_inside_the_region() -> None:
    dots = {"straight": (), "loop": (dot(128, 32, 32),)}
    works = {"straight": (mma(16),), "loop": (mma(16),)}
    inside = check_work_balance(dots, works, parents={"straight": None, "loop": "straight"})
    assert inside["straight"].explanation == "also contains 1 iteration of loop (peeled)"
    beside = check_work_balance(dots, works, parents={"straight": None, "loop": None})
    assert beside["straight"].reason is BalanceReason.COPIED


def test_a_part_of_an_iteration_may_be_peeled_off() -> None:
    # Each dot is 65536 operations: 4 m16n8k16 for each of 4 warps.
    inner = (dot(64, 32, 16), dot(64, 16, 32))
    works = {"straight": (mma(4),), "loop": (mma(8),)}
    found = check_work_balance({"loop": inner}, works, parents={"straight": None, "loop": "straight"})
    assert found["loop"].is_balanced is True
    assert found["straight"].explanation == "also contains parts of iterations of loop (peeled)"


def test_what_is_left_of_a_loop_stands_in_the_region_it_was_dissolved_into() -> None:
    dots = {"straight": (), "loop": (dot(128, 32, 32),)}
    works = {"straight": (mma(48),), "loop": (mma(48),)}
    found = check_work_balance(dots, works, dissolved={"loop"}, parents={"straight": None, "loop": "straight"})
    assert found["straight"].explanation == "also contains the iterations of loop (the loop was removed)"


def test_an_excess_on_other_lines_is_no_peeled_iteration() -> None:
    works = {"straight": (mma(16, sources=("k.py:9",)),), "loop": (mma(16),)}
    found = check_work_balance({"loop": (dot(128, 32, 32),)}, works)
    assert found["straight"].reason is BalanceReason.UNEXPLAINED


def test_work_that_moved_to_another_partition_is_found_there() -> None:
    # Half of the rows each: 128×128 became twice 64×128.
    dots = {"one": (dot(128, 128, 16),)}
    works = {"one": (dot(64, 128, 16),), "two": (dot(64, 128, 16),)}
    found = check_work_balance(dots, works, parents={"one": None, "two": None})
    assert (found["one"].reason, found["one"].explanation) == (BalanceReason.ELSEWHERE, "some of it is in two")
    assert found["two"].explanation == "also contains some of one"


def test_a_loop_is_unrolled_where_the_iteration_left_over_stands_around_it() -> None:
    # gfx950: twice the instructions of a pass in the loop, and once more behind it.
    parents = {"straight": None, "loop": "straight"}
    dots = {"straight": (), "loop": (dot(128, 32, 32),)}
    found = check_work_balance(dots, {"straight": (mma(16),), "loop": (mma(32),)}, parents=parents)
    assert (found["loop"].reason, found["loop"].is_balanced, found["loop"].ratio) == (BalanceReason.UNROLLED, True, 1.0)
    assert found["straight"].explanation == "also contains 1 iteration of loop (remainder of unrolling)"
    alone = check_work_balance(dots, {"straight": (), "loop": (mma(32),)}, parents=parents)
    assert alone["loop"].reason is BalanceReason.UNEXPLAINED


def test_a_redundant_loop_that_is_gone_is_still_redundant() -> None:
    found = judge(dot(16, 16, 16, tiling=tiled(4, 1)), mma(6), dissolved={"r"})
    assert (found.reason, found.ratio) == (BalanceReason.REDUNDANT, 4.0)
    assert found.explanation == (
        "the loop was removed: 3 iterations in a row; 4×1 warps of 16×8 cover 64×16, but the tile is 16×16: ×4 the work"
    )


def test_a_loop_under_another_name_is_not_taken_for_gone() -> None:
    # Everything on the line is counted for the loop that was not found: its own instructions are in b.
    dots = {"straight": (), "a": (dot(128, 32, 32),)}
    works = {"straight": (), "a": (mma(16), mma(16)), "b": (mma(16),)}
    parents = {"straight": None, "a": "straight", "b": "straight"}
    found = check_work_balance(dots, works, dissolved={"a"}, parents=parents)
    assert (found["a"].explanation, found["b"].explanation) == ("all of it is in b", "contains all of a")
    assert found["a"].actual == 0


def test_a_dot_whose_line_has_no_instruction_was_removed() -> None:
    dots = {"r": (dot(128, 32, 32), dot(64, 64, 64, sources=("k.py:7",)))}
    found = check_work_balance(dots, {"r": (mma(16),)})["r"]
    assert (found.reason, found.explanation) == (BalanceReason.REMOVED, "the dot of k.py:7 has no instruction")
    # Without lines nothing tells which it is.
    blind = {"r": tuple(replace(work, sources=()) for work in dots["r"])}
    assert check_work_balance(blind, {"r": (mma(16, sources=()),)})["r"].reason is BalanceReason.UNEXPLAINED


def test_all_the_work_of_a_loop_may_stand_in_another() -> None:
    found = check_work_balance({"a": (dot(128, 32, 32),), "b": ()}, {"a": (), "b": (mma(16),)})
    assert (found["a"].explanation, found["b"].explanation) == ("all of it is in b", "also contains all of a")


def test_what_another_region_lacks_explains_an_excess_before_peeled_iterations_do() -> None:
    # One dot of the partition and one iteration of the loop are the same number of operations.
    dots = {"dispatch": (), "partition": (dot(128, 32, 32),), "loop": (dot(128, 32, 32),)}
    works = {"dispatch": (mma(16),), "partition": (), "loop": (mma(16),)}
    parents = {"dispatch": None, "partition": None, "loop": "dispatch"}
    found = check_work_balance(dots, works, parents=parents)
    assert found["dispatch"].explanation == "also contains all of partition"


def test_a_layout_without_extents_explains_nothing() -> None:
    asked = dot(64, 16, 32, tiling=Tiling("nvidia_mma", (), (), 2, True))
    assert judge(asked, mma(3)).reason is BalanceReason.UNEXPLAINED


def test_one_scalar_dot_beside_others_is_named_by_its_line() -> None:
    laid_out = dot(64, 64, 16, tiling=tiled(4, 1))
    scalar = dot(64, 64, 16, tiling=Tiling("blocked", (4, 1), (), 1, False), sources=("k.py:2",))
    found = check_work_balance({"r": (laid_out, scalar)}, {"r": (mma(8),)})["r"]
    assert (found.reason, found.is_balanced) == (BalanceReason.SCALAR, None)
    assert found.explanation == "the dot of k.py:2 became multiply-adds"


def test_work_beside_a_dot_that_is_no_iteration_of_it_is_no_copy() -> None:
    dots = {"straight": (), "loop": (dot(128, 32, 32),)}
    works = {"straight": (mma(12),), "loop": (mma(16),)}
    beside = check_work_balance(dots, works, parents={"straight": None, "loop": None})
    assert beside["straight"].reason is BalanceReason.UNEXPLAINED


def test_peeled_parts_may_be_of_several_sizes() -> None:
    # 4 and 8 instructions of each of 4 warps in an iteration; beside it once the first and twice the second.
    inner = (dot(64, 32, 16), dot(128, 32, 16))
    works = {"straight": (mma(20),), "loop": (mma(12),)}
    found = check_work_balance({"loop": inner}, works, parents={"straight": None, "loop": "straight"})
    assert found["straight"].explanation == "also contains parts of iterations of loop (peeled)"


def test_a_part_is_peeled_off_as_often_as_llvm_peels() -> None:
    inner = (dot(64, 32, 16), dot(128, 64, 32))  # 4 and 32 instructions
    works = {"straight": (mma(7 * 4),), "loop": (mma(36),)}
    found = check_work_balance({"loop": inner}, works, parents={"straight": None, "loop": "straight"})
    assert found["straight"].explanation == "also contains parts of iterations of loop (peeled)"
    works["straight"] = (mma(10 * 4),)
    more = check_work_balance({"loop": inner}, works, parents={"straight": None, "loop": "straight"})
    assert more["straight"].explanation == "also contains parts of iterations of loop (peeled)"
    works["straight"] = (mma(8 * 4 - 1),)
    odd = check_work_balance({"loop": inner}, works, parents={"straight": None, "loop": "straight"})
    assert odd["straight"].reason is BalanceReason.UNEXPLAINED
