"""The buffers, groups and waits of a loop of TTGIR, read by eye."""

from __future__ import annotations

import pytest
from handwritten import code_of, tensor_code

from artifact_inspector.analysis.order.reference_regions import find_reference
from artifact_inspector.analysis.order.regions import find_regions
from artifact_inspector.analysis.overlap.loop_buffers import LoopBuffers, _access_width, find_loop_buffers
from artifact_inspector.model import Queue, Stage

MEMORY = "#shared, #smem, mutable"
TILE, TILES = f"!ttg.memdesc<8x8xf16, {MEMORY}>", f"!ttg.memdesc<3x8x8xf16, {MEMORY}>"
BARRIERS, BARRIER = f"!ttg.memdesc<3x1xi64, {MEMORY}>", f"!ttg.memdesc<1xi64, {MEMORY}>"
T, P = "tensor<8x8xf16>", "tensor<8x8x!tt.ptr<f16>>"
HEAD = f"%x: {P}, %n: i32, %t: {T}, %desc: !tt.tensordesc<tensor<8x8xf16>>, %b: i1"


def copied(slot: str, name: str, buffer: str = "%m") -> str:
    """A copy into one slot of a buffer, closed as a group of its own: three lines."""
    return f"""
    %{name}s = ttg.memdesc_index {buffer}[{slot}] : {TILES} -> {TILE}
    %{name}c = ttg.async_copy_global_to_local %x, %{name}s : {P} -> <8x8xf16, {MEMORY}>
    %{name}k = ttg.async_commit_group tokens %{name}c"""


def loop(body: str) -> str:
    return f"    scf.for %i = %n to %n step %n  : i32 {{{body}\n    }}"


def found(body: str) -> LoopBuffers:
    """What the last loop of a kernel does; the first operation stands in line 3."""
    body = "\n".join(line.strip() for line in body.splitlines() if line.strip())
    code = tensor_code(body, Stage.TTGIR, head=HEAD)
    regions = find_regions(code, find_reference(code), exact=True)
    *_, last = find_loop_buffers(code, regions).values()
    return last


ALLOCATED = f"%m = ttg.local_alloc : () -> {TILES}\n"
WAIT = "%w = ttg.async_wait %w {num = 2 : i32}"
BODY = f"""
    {WAIT}
    %v = ttg.memdesc_index %m[%n] : {TILES} -> {TILE}
    %a = ttg.local_load %v : {TILE} -> {T}
    %d = arith.addf %a, %a : {T}{copied("%n", "q")}"""
DRAIN = "\n%e = ttg.async_wait {num = 0 : i32}"


def test_the_buffer_of_copies_has_as_many_tiles_as_slots() -> None:
    (buffer,) = found(ALLOCATED + loop(BODY)).buffers
    assert (buffer.line, buffer.name, buffer.tiles, buffer.bytes) == (3, "%m", 3, 128)


def test_copies_loads_of_shared_memory_groups_and_waits_are_told_with_their_lines() -> None:
    seen = found(ALLOCATED + loop(BODY))
    assert (seen.copies, seen.reads, seen.stores, seen.loads, seen.matrix) == ((10,), (7,), (), (), ())
    assert seen.commits == {Queue.GROUP: 1}
    assert [(wait.line, wait.depth, wait.queue) for wait in seen.waits] == [(5, 2, Queue.GROUP)]
    assert (seen.queue, seen.members, seen.wait_lines) == (Queue.GROUP, 1, (5,))


def test_copies_right_in_front_of_the_loop_are_its_first() -> None:
    seen = found(ALLOCATED + copied("%n", "p") + copied("%n", "o") + "\n" + loop(BODY))
    assert seen.copies_before_loop == (5, 8)


def test_copies_into_another_buffer_are_none_of_the_loops() -> None:
    other = f"%other = ttg.local_alloc : () -> {TILES}\n"
    assert found(ALLOCATED + other + copied("%n", "p", "%other") + "\n" + loop(BODY)).copies_before_loop == ()


def test_a_loop_around_may_fill_the_buffers_for_its_next_turn() -> None:
    seen = found(ALLOCATED + copied("%n", "p") + "\n" + loop("\n" + loop(BODY)))
    assert seen.copies_before_loop == (5,)


def test_the_first_wait_for_all_behind_the_loop_drains_it() -> None:
    assert found(ALLOCATED + loop(BODY) + DRAIN).drain_line == 13
    assert found(ALLOCATED + loop(BODY)).drain_line is None
    assert found(ALLOCATED + loop(BODY) + "\n%e = ttg.async_wait {num = 1 : i32}").drain_line is None
    assert found(ALLOCATED + loop(BODY) + copied("%n", "z") + DRAIN).drain_line is None
    assert found(ALLOCATED + DRAIN.strip() + "\n" + loop(BODY)).drain_line is None


def test_a_wait_in_another_loop_drains_nothing() -> None:
    code = ALLOCATED + "\n" + loop(BODY) + DRAIN.replace("%e", "%g") + "\n" + loop(BODY)
    assert found(code).drain_line is None


def test_a_tile_that_is_only_read_is_no_buffer_of_the_loop() -> None:
    queries = f"%q = ttg.local_alloc %t : ({T}) -> {TILE}\n"
    reading = f"\n%a = ttg.local_load %q : {TILE} -> {T}"
    assert found(queries + loop(reading)).buffers == ()


def test_a_tile_made_anew_in_each_iteration_is_one_where_there_is_no_other() -> None:
    made = f"\n%q = ttg.local_alloc %t : ({T}) -> {TILE}\n%a = ttg.local_load %q : {TILE} -> {T}"
    (buffer,) = found(loop(made)).buffers
    assert (buffer.name, buffer.tiles, buffer.bytes) == ("%q", 1, 128)
    assert [one.name for one in found(ALLOCATED + loop(made + BODY)).buffers] == ["%m"]


def test_what_is_stored_to_in_the_loop_is_a_buffer_of_one_tile() -> None:
    stored = f"%q = ttg.local_alloc : () -> {TILE}\n" + loop(f"\nttg.local_store %t, %q : {T} -> {TILE}")
    seen = found(stored)
    assert [(one.name, one.tiles) for one in seen.buffers] == [("%q", 1)]
    assert seen.stores == (5,)


PHASED = f"""
    %v = ttg.memdesc_index %m[%n] : {TILES} -> {TILE}
    %p = ttg.memdesc_index %bar[%n] : {BARRIERS} -> {BARRIER}
    %o = ttg.memdesc_index %rab[%n] : {BARRIERS} -> {BARRIER}
    ttng.wait_barrier %o, %n : {BARRIER}
    ttng.wait_barrier %p, %n : {BARRIER}
    ttng.barrier_expect %p, 128, %b : {BARRIER}
    ttng.async_tma_copy_global_to_local %desc[%n, %n] %v, %p, %b : !tt.tensordesc<tensor<8x8xf16>>, {BARRIER} -> {TILE}"""


def test_the_waits_for_copies_are_those_at_the_barriers_where_they_arrive() -> None:
    seen = found(
        ALLOCATED
        + f"%bar = ttg.local_alloc : () -> {BARRIERS}\n%rab = ttg.local_alloc : () -> {BARRIERS}\n"
        + loop(PHASED)
    )
    assert (seen.phases, seen.wait_lines) == ((11,), (11,))
    assert [one.name for one in seen.buffers] == ["%m"]  # barriers are no buffers
    assert seen.queue is Queue.PHASE


def test_a_plain_load_is_told_and_has_no_queue_of_copies() -> None:
    seen = found(loop(f"\n%a = tt.load %x : {P}\n%d = arith.addf %a, %a : {T}"))
    assert (seen.loads, seen.copies, seen.queue, seen.buffers) == ((4,), (), None, ())


def test_a_function_without_loops_has_nothing_to_tell() -> None:
    code = tensor_code(f"%a = tt.load %x : {P}", Stage.TTGIR, head=HEAD)
    regions = find_regions(code, (), exact=False)
    assert find_loop_buffers(code, regions) == {}


@pytest.mark.parametrize(
    ("load", "widths"),
    [
        ("ld.global.v4.b32 {%r1, %r2, %r3, %r4}, [%rd1]", [128]),
        ("ld.global.b16 %rs1, [%rd1]", [16]),
        ("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%rd1], 64, [%r2]", []),
    ],
)
def test_of_machine_code_the_width_of_a_load_is_what_a_thread_moves(load: str, widths: list[int]) -> None:
    text = f".version 8.7\n.target sm_90\n.visible .entry k()\n{{\n\t{load};\n\tret;\n}}\n"
    code = code_of(Stage.PTX, text)
    moved = [_access_width(instruction, code) for instruction in code.instructions[:1]]
    assert [width for width in moved if width] == widths


@pytest.mark.parametrize(
    ("layout", "width"),
    [
        ("#ttg.blocked<{sizePerThread = [2, 8], threadsPerWarp = [8, 4], warpsPerCTA = [4, 1], order = [1, 0]}>", 128),
        ("#ttg.blocked<{sizePerThread = [2, 8], threadsPerWarp = [8, 4], warpsPerCTA = [4, 1], order = [0, 1]}>", 32),
        ("#ttg.linear<{register = [[0, 1]], lane = [], warp = [], block = []}>", 0),
    ],
)
def test_of_tensors_it_is_what_a_thread_holds_along_the_fastest_axis(layout: str, width: int) -> None:
    pointers = f"tensor<8x8x!tt.ptr<f16>, {layout}>"
    code = tensor_code(f"%a = tt.load %x : {pointers}", Stage.TTGIR, head=f"%x: {pointers}")
    assert _access_width(code.function.instructions[0], code) == width
