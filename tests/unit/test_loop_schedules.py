"""The verdict that a schedule of copies gives a loop. tests/cases has whole kernels."""

from __future__ import annotations

from handwritten import tensor_code

from artifact_inspector.analysis.order.loop_schedules import LoopSchedule, find_loop_schedules
from artifact_inspector.model import OrderVerdict, Stage

TILE = "!ttg.memdesc<64x64xf16, #shared, #smem, mutable>"
HEAD = "%d: !tt.tensordesc<64x64xf16>, %n: i32, %x: i32"
MANY = "!ttg.memdesc<2x64x64xf16, #shared, #smem, mutable>"


def schedule(*body: str) -> LoopSchedule | None:
    text = "\n".join(
        (
            "%c0 = arith.constant 0 : i32",
            "%c1 = arith.constant 1 : i32",
            "%c2 = arith.constant 2 : i32",
            f"%tiles = ttg.local_alloc : () -> {MANY}",
            "scf.for %k = %c0 to %n step %c1 : i32 {",
            "%slot = arith.remsi %k, %c2 : i32",
            "%far = arith.addi %k, %c1 : i32",
            "%there = arith.remsi %far, %c2 : i32",
            f"%u = ttg.memdesc_index %tiles[%slot] : {MANY} -> {TILE}",
            f"%near = ttg.memdesc_index %tiles[%slot] : {MANY} -> {TILE}",
            f"%ahead = ttg.memdesc_index %tiles[%there] : {MANY} -> {TILE}",
            f"%lost = ttg.memdesc_index %tiles[%x] : {MANY} -> {TILE}",
            *body,
            f"%acc = ttng.warp_group_dot %u, %u, %cst : {TILE} * {TILE} -> tensor<64x64xf32>",
            "}",
        )
    )
    return find_loop_schedules(tensor_code(text, Stage.TTGIR, HEAD)).get(0)


def copy(target: str) -> str:
    return f"ttg.async_copy_global_to_local %d, %{target} : tensor<64x64x!tt.ptr<f16>> -> {TILE}"


def test_copies_for_a_later_trip_are_pipelined() -> None:
    assert schedule(copy("ahead")) == LoopSchedule(
        OrderVerdict.PIPELINED, 1, 0, ("its copies go round 2 buffers",), {12: 1}
    )


def test_copies_for_the_same_trip_leave_the_verdict_to_the_order() -> None:
    found = schedule(copy("near"))
    assert found is not None
    assert (found.verdict, list(found.distances.values())) == (None, [0])


def test_a_copy_that_is_lost_is_unknown() -> None:
    found = schedule(copy("lost"))
    assert found is not None
    assert found.verdict is OrderVerdict.UNKNOWN
    assert found.notes[0].startswith("the order of its copies is not known")


def test_a_loop_without_copies_has_no_schedule() -> None:
    assert schedule() is None
