"""A schedule of copies, executed: who fills a buffer, and when its data is used."""

from __future__ import annotations

import pytest
from handwritten import code_of, indices_of, tensor_code

from artifact_inspector.analysis.flow.schedule_trace import trace_schedule
from artifact_inspector.formats.mlir.schedule import integer_value
from artifact_inspector.model import Stage
from artifact_inspector.model.schedule import ScheduleRole, ScheduleTrace

TILE = "!ttg.memdesc<64x64xf16, #shared, #smem, mutable>"
HEAD = "%d: !tt.tensordesc<64x64xf16>, %n: i32, %x: i32"


def ring(buffers: int, *body: str, prologue: tuple[str, ...] = ()) -> ScheduleTrace:
    """The trace of a loop over %k that carries %slot and %phase, with a ring of buffers."""
    many = f"!ttg.memdesc<{buffers}x64x64xf16, #shared, #smem, mutable>"
    text = "\n".join(
        (
            *(f"%c{n} = arith.constant {n} : i32" for n in range(9)),
            f"%wrap = arith.constant {buffers} : i32",
            f"%last = arith.constant {buffers - 1} : i32",
            f"%tiles = ttg.local_alloc : () -> {many}",
            *prologue,
            "%r:2 = scf.for %k = %c0 to %n step %c1 iter_args(%slot = %c0, %phase = %c0) -> (i32, i32) : i32 {",
            *body,
            "%next = arith.addi %slot, %c1 : i32",
            "%wraps = arith.cmpi eq, %slot, %last : i32",
            "%new = arith.select %wraps, %c0, %next : i32",
            "%flip = arith.xori %phase, %c1 : i32",
            "%turn = arith.select %wraps, %flip, %phase : i32",
            "scf.yield %new, %turn : i32, i32",
            "}",
        )
    ).replace("MANY", many)
    trace = trace_schedule(tensor_code(text, Stage.TTGIR, HEAD))
    assert trace is not None
    return trace


def copy(index: str, name: str = "a") -> tuple[str, str]:
    return (
        f"%{name} = ttg.memdesc_index %tiles[{index}] : MANY -> {TILE}",
        f"ttg.async_copy_global_to_local %d, %{name} : tensor<64x64x!tt.ptr<f16>> -> {TILE}",
    )


def use(index: str) -> tuple[str, str]:
    return (
        f"%u = ttg.memdesc_index %tiles[{index}] : MANY -> {TILE}",
        f"%acc = ttng.warp_group_dot %u, %u, %cst {{isAsync = true}} : {TILE} * {TILE} -> tensor<64x64xf32>",
    )


def only(trace: ScheduleTrace) -> set[int]:
    (distances,) = trace.distances.values()
    return distances


def test_a_tile_that_is_read_in_the_trip_that_copies_it_is_no_trip_ahead() -> None:
    assert only(ring(2, *copy("%slot"), *use("%slot"))) == {0}


@pytest.mark.parametrize(("buffers", "ahead"), [(2, 1), (3, 1), (4, 3), (8, 5)])
def test_the_distance_follows_an_index_that_wraps_by_remainder(buffers: int, ahead: int) -> None:
    later = (f"%far = arith.addi %k, %c{ahead} : i32", "%there = arith.remsi %far, %wrap : i32")
    before = tuple(line for n in range(ahead) for line in copy(f"%c{n}", f"p{n}"))
    assert only(ring(buffers, *later, *copy("%there"), *use("%slot"), prologue=before)) == {ahead}


def test_a_copy_into_the_buffer_that_was_just_read_is_as_far_ahead_as_there_are_buffers() -> None:
    before = tuple(line for n in range(3) for line in copy(f"%c{n}", f"p{n}"))
    assert only(ring(3, *use("%slot"), *copy("%slot"), prologue=before)) == {3}


def test_data_held_in_a_register_is_used_where_it_is_multiplied() -> None:
    text = (
        f"%u = ttg.memdesc_index %tiles[%slot] : MANY -> {TILE}",
        f"%part = ttg.local_load %u : {TILE} -> tensor<64x64xf16>",
        "%acc = tt.dot %part, %part, %cst : tensor<64x64xf16> * tensor<64x64xf16> -> tensor<64x64xf32>",
    )
    assert only(ring(2, *copy("%slot"), *text)) == {0}


def test_a_loop_with_an_index_that_cannot_be_computed_is_not_followed() -> None:
    trace = ring(2, *copy("%x"), *use("%slot"))
    assert trace.distances == {}
    assert trace.unfollowed == {0: "the buffer that an operation reads is not known"}
    assert ring(2, *copy("%slot"), *use("%x")).unfollowed == {0: "the buffer that an operation reads is not known"}


def test_a_matrix_operation_is_in_flight_until_its_wait() -> None:
    wait = "ttg.async_wait {num = 0 : i32}"
    drain = "%w = ttng.warp_group_dot_wait %acc {pendings = 0 : i32} : tensor<64x64xf32>"
    assert ring(2, *copy("%slot"), wait, *use("%slot")).matrix_in_flight[0] > 1
    assert ring(2, *copy("%slot"), wait, *use("%slot"), drain).matrix_in_flight == {0: 0}
    assert ring(2, *copy("%slot"), wait, *use("%slot"), drain.replace("0 :", "1 :")).matrix_in_flight == {0: 1}


def test_code_without_buffers_has_no_schedule() -> None:
    code = tensor_code("%v = tt.load %p : !tt.ptr<f32>")
    assert indices_of(code, "tt.load")
    assert trace_schedule(code) is None


def test_a_problem_is_larger_than_any_constant_it_is_compared_with() -> None:
    first = ("%any = arith.cmpi sgt, %x, %c0 : i32", "%begun = arith.extui %any : i1 to i32")
    later = ("%far = arith.addi %k, %begun : i32", "%there = arith.remsi %far, %wrap : i32")
    assert only(ring(2, *later, *copy("%there"), *use("%slot"), prologue=(*first, *copy("%c0", "p")))) == {1}
    unknown = first[0].replace("sgt", "eq")
    lost = ring(2, *later, *copy("%there"), *use("%slot"), prologue=(unknown, first[1], *copy("%c0", "p")))
    assert lost.distances == {}


BARRIER = "!ttg.memdesc<1xi64, #s, #smem, mutable>"
ARRIVE = f"ttng.arrive_barrier %f, 1 : {BARRIER}"


def remote(rank: str) -> tuple[str, str]:
    return (
        f"%r = ttng.map_to_remote_buffer %f, {rank} : {BARRIER} -> {BARRIER}",
        f"ttng.arrive_barrier %r, 1 : {BARRIER}",
    )


@pytest.mark.parametrize(
    ("expected", "arrivals"),
    [
        (1, (ARRIVE,)),
        (256, (ARRIVE.replace("1 :", "1 {perThread} :"),)),  # eight warps
        (2, remote("%zero")),  # both CTAs arrive at the first one
        (2, (ARRIVE, *remote("%arg1"))),  # each CTA at its own, and at that of the other
        (3, (ARRIVE,)),
    ],
)
def test_a_barrier_counts_threads_and_the_ctas_of_a_cluster(expected: int, arrivals: tuple[str, ...]) -> None:
    many, array = "!ttg.memdesc<3x64x64xf16, #shared, #smem, mutable>", "!ttg.memdesc<3xi64, #s, #smem, mutable>"
    loop = ("%zero = arith.constant 0 : i32", "%one = arith.constant 1 : i32", "%three = arith.constant 3 : i32")
    loop += ("scf.for %k = %zero to %arg0 step %one : i32 {", "%slot = arith.remsi %k, %three : i32")
    loop += ("%turn = arith.divsi %k, %three : i32", "%phase = arith.andi %turn, %one : i32")
    text = "\n".join(
        (
            'module attributes {"ttg.num-warps" = 4 : i32, "ttg.cluster-dim-x" = 2 : i32} {',
            "tt.func public @k(%d: !tt.tensordesc<64x64xf16>, %n: i32, %x: i32) {",
            *(f"%c{n} = arith.constant {n} : i32" for n in range(3)),
            f"%tiles = ttg.local_alloc : () -> {many}",
            f"%full = ttg.local_alloc : () -> {array}",
            f"%free = ttg.local_alloc : () -> {array}",
            *(f"%full{n} = ttg.memdesc_index %full[%c{n}] : {array} -> {BARRIER}" for n in range(3)),
            *(f"%free{n} = ttg.memdesc_index %free[%c{n}] : {array} -> {BARRIER}" for n in range(3)),
            *(f"ttng.init_barrier %full{n}, 1 : {BARRIER}" for n in range(3)),
            *(f"ttng.init_barrier %free{n}, {expected} : {BARRIER}" for n in range(3)),
            "ttg.warp_specialize(%n, %x, %tiles, %full, %free, %d)",
            "default {",
            "ttg.warp_yield",
            "}",
            f"partition0(%arg0: i32, %arg1: i32, %arg2: {many}, %arg3: {array}, %arg4: {array}, "
            "%arg5: !tt.tensordesc<64x64xf16>) num_warps(1) {",
            *loop,
            "%other = arith.xori %phase, %one : i32",
            f"%f = ttg.memdesc_index %arg4[%slot] : {array} -> {BARRIER}",
            f"%b = ttg.memdesc_index %arg3[%slot] : {array} -> {BARRIER}",
            f"%t = ttg.memdesc_index %arg2[%slot] : {many} -> {TILE}",
            f"ttng.wait_barrier %f, %other : {BARRIER}",
            f"ttng.barrier_expect %b, 8192, %true : {BARRIER}",
            f"ttng.async_tma_copy_global_to_local %arg5[%k, %k] %t, %b, %true : !tt.tensordesc<64x64xf16>, {BARRIER} -> {TILE}",
            "}",
            "ttg.warp_return",
            "}",
            f"partition1(%arg0: i32, %arg1: i32, %arg2: {many}, %arg3: {array}, %arg4: {array}, "
            "%arg5: !tt.tensordesc<64x64xf16>) num_warps(8) {",
            *loop,
            f"%f = ttg.memdesc_index %arg4[%slot] : {array} -> {BARRIER}",
            f"%b = ttg.memdesc_index %arg3[%slot] : {array} -> {BARRIER}",
            f"%t = ttg.memdesc_index %arg2[%slot] : {many} -> {TILE}",
            "ttng.wait_barrier_named %one, %three : i32, i32",  # orders warps only
            f"ttng.wait_barrier %b, %phase : {BARRIER}",
            f"%acc = ttng.warp_group_dot %t, %t, %cst : {TILE} * {TILE} -> tensor<64x64xf32>",
            *arrivals,
            "}",
            "ttg.warp_return",
            f"}} : (i32, i32, {many}, {array}, {array}, !tt.tensordesc<64x64xf16>) -> ()",
            "tt.return",
            "}",
            "}",
        )
    )
    trace = trace_schedule(code_of(Stage.TTGIR, text))
    assert trace is not None
    assert trace.is_concurrency_known is (expected != 3)
    if trace.is_concurrency_known:
        assert list(trace.partition_distances.values()) == [2]  # three buffers
        waits = [event for event in trace.events if event.role is ScheduleRole.PHASE_WAIT and event.cause is not None]
        assert {(event.lane, trace.events[event.cause or 0].lane) for event in waits} == {
            ("partition0", "partition1"),
            ("partition1", "partition0"),
        }


def test_a_copy_of_gfx1250_names_the_barrier_at_which_each_warp_arrives() -> None:
    text = f"%t = amdg.async_tdm_copy_global_to_local %d into %u, barrier = %b : !tt.tensordesc<64x64xf16>, {BARRIER} -> {TILE}"
    code = tensor_code(f"{text}\n%a = amdg.arrive_barrier %b, 1 : {BARRIER} -> i32", Stage.TTGIR, HEAD)
    copy_step, arrival = (code.language.schedule_step(x, code.module) for x in code.instructions[:2])
    assert (copy_step.role, copy_step.barrier, copy_step.is_per_thread) == (ScheduleRole.COPY, "%b", True)
    assert (arrival.role, arrival.number, arrival.is_per_thread) == (ScheduleRole.ARRIVAL, 1, True)


def test_an_unknown_number_of_trips_is_the_same_wherever_it_is_counted() -> None:
    many = "!ttg.memdesc<2x64x64xf16, #shared, #smem, mutable>"
    text = "\n".join(
        (
            *(f"%c{n} = arith.constant {n} : i32" for n in range(3)),
            "%steps = arith.divsi %n, %x : i32",
            f"%tiles = ttg.local_alloc : () -> {many}",
            "%first = arith.addi %steps, %c1 : i32",  # the second consumer of a ping-pong starts after the first one
            "%r = scf.for %k = %c0 to %steps step %c1 iter_args(%tile = %first) -> (i32) : i32 {",
            "%slot = arith.remsi %tile, %c2 : i32",
            *(line.replace("MANY", many) for line in (*copy("%slot"), *use("%slot"))),
            "%next = arith.addi %tile, %c1 : i32",
            "scf.yield %next : i32",
            "}",
        )
    )
    trace = trace_schedule(tensor_code(text, Stage.TTGIR, HEAD))
    assert trace is not None
    assert (trace.unfollowed, only(trace)) == ({}, {0})


@pytest.mark.parametrize("buffers", [2, 3, 4, 5])
def test_a_loop_that_restarts_its_buffers_in_each_tile_makes_whole_passes(buffers: int) -> None:
    many = f"!ttg.memdesc<{buffers}x64x64xf16, #shared, #smem, mutable>"
    text = "\n".join(
        (
            *(f"%c{n} = arith.constant {n} : i32" for n in range(2)),
            f"%wrap = arith.constant {buffers} : i32",
            f"%tiles = ttg.local_alloc : () -> {many}",
            "%o = scf.for %tile = %c0 to %n step %c1 iter_args(%all = %c0) -> (i32) : i32 {",
            "%r = scf.for %k = %c0 to %x step %c1 iter_args(%count = %all) -> (i32) : i32 {",
            "%write = arith.remsi %count, %wrap : i32",
            "%read = arith.remsi %k, %wrap : i32",  # the copies go on where the last tile ended
            *(line.replace("MANY", many) for line in (*copy("%write"), *use("%read"))),
            "%next = arith.addi %count, %c1 : i32",
            "scf.yield %next : i32",
            "}",
            "scf.yield %r : i32",
            "}",
        )
    )
    trace = trace_schedule(tensor_code(text, Stage.TTGIR, HEAD))
    assert trace is not None
    assert (trace.unfollowed, only(trace)) == ({}, {0})


def test_a_loop_with_a_single_buffer_is_followed() -> None:
    body = (f"%one = ttg.local_alloc : () -> {TILE}", "scf.for %k = %c0 to %n step %c1 : i32 {")
    body += (copy("%k")[1].replace("%a ", "%one "), use("%k")[1].replace("%u", "%one"), "}")
    text = "\n".join((*(f"%c{n} = arith.constant {n} : i32" for n in range(2)), *body))
    trace = trace_schedule(tensor_code(text, Stage.TTGIR, HEAD))
    assert trace is not None
    assert only(trace) == {0}


def test_code_after_a_loop_uses_the_number_that_its_unknown_end_is_computed_from() -> None:
    many = "!ttg.memdesc<2x64x64xf16, #shared, #smem, mutable>"
    text = "\n".join(
        (
            *(f"%c{n} = arith.constant {n} : i32" for n in range(3)),
            f"%tiles = ttg.local_alloc : () -> {many}",
            "%steps = arith.subi %n, %c2 : i32",
            "scf.for %k = %c0 to %steps step %c1 : i32 {",
            "%slot = arith.remsi %k, %c2 : i32",
            *(line.replace("MANY", many) for line in (*copy("%slot"), *use("%slot"))),
            "}",
            "scf.for %j = %c0 to %x step %c1 : i32 {",
            "%drained = arith.remsi %n, %c2 : i32",  # the trips of the first loop, and two
            *(line.replace("MANY", many) for line in use("%drained")),
            "}",
        )
    )
    trace = trace_schedule(tensor_code(text, Stage.TTGIR, HEAD))
    assert trace is not None
    assert (trace.unfollowed, only(trace)) == ({}, {0})


@pytest.mark.parametrize(
    ("predicate", "expected"),
    [
        ("eq", (0, 1, 0)),
        ("ne", (1, 0, 1)),
        ("slt", (1, 0, 0)),
        ("sle", (1, 1, 0)),
        ("sgt", (0, 0, 1)),
        ("sge", (0, 1, 1)),
    ],
)
def test_a_comparison_of_integers_is_computed(predicate: str, expected: tuple[int, int, int]) -> None:
    code = tensor_code(f"%p = arith.cmpi {predicate}, %a, %b : i32", Stage.TTGIR, HEAD)
    (instruction, *_) = code.instructions
    assert tuple(integer_value(instruction, pair) for pair in ((1, 2), (2, 2), (3, 2))) == expected
