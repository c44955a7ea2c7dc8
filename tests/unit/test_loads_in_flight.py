"""Loads in flight: five saved kernels worked out by hand, and each rule on a few lines of its own.

`n` between two instructions means n instructions that stand strictly between them, as they run.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from artifact_inspector.analysis.flow.function_code import FunctionCode
from artifact_inspector.analysis.order.regions import find_regions
from artifact_inspector.analysis.overlap.loads_in_flight import LoadsInFlight, find_in_flight
from artifact_inspector.analysis.overlap.steady_state import walk_function
from artifact_inspector.formats import format_of
from artifact_inspector.model import Instruction, Module, Queue, Stage, Transfer
from artifact_inspector.model.text import SourceText

FIXTURES = Path(__file__).parents[2] / "fixtures"


def in_flight(
    text: str, stage: Stage, threads: int | None = 128, unrolled: dict[str, int] | None = None
) -> dict[str, LoadsInFlight]:
    language = format_of(stage)
    module = language.parse(SourceText("k", text), stage)
    (function,) = module.functions
    code = FunctionCode(function, module, language)
    walk = walk_function(code, find_regions(code, (), exact=False), threads)
    return find_in_flight(walk, unrolled=unrolled or {})


def saved(kernel: str, stage: Stage) -> dict[str, LoadsInFlight]:
    (path,) = (FIXTURES / kernel).glob(f"*/*.{stage.value}")
    return in_flight(path.read_text(encoding="utf-8"), stage)


def loop_of(found: dict[str, LoadsInFlight]) -> LoadsInFlight:
    """The only loop."""
    (loop,) = (facts for name, facts in found.items() if name.startswith("loop"))
    return loop


def ptx(*body: str) -> str:
    lines = "\n".join(line if line.endswith(":") else f"\t{line};" for line in body)
    return f".version 8.7\n.target sm_80\n.visible .entry k(\n\t.param .u64 k_0\n)\n{{\n{lines}\n\tret;\n}}\n"


def amdgcn(*body: str, target: str = "gfx942") -> str:
    lines = "\n".join(line if line.endswith(":") else f"\t{line}" for line in body)
    return (
        f'\t.amdgcn_target "amdgcn-amd-amdhsa--{target}"\n\t.text\n\t.type\tk,@function\n'
        f"k:\n{lines}\n\ts_endpgm\n.Lfunc_end0:\n"
    )


def llir(*body: str) -> str:
    lines = "\n".join(line if line.endswith(":") else f"  {line}" for line in body)
    return f"define ptx_kernel void @k(ptr addrspace(1) %p, i1 %c) {{\n{lines}\n}}\n"


# -- five kernels by hand ----------------------------------------------------------------------------


def test_a_matmul_of_four_stages_keeps_two_iterations_in_flight_at_its_wait() -> None:
    # num_stages 4. In front of the loop three iterations are copied; one is four copies of A and a group,
    # one copy of B and a group: 15 copies of 16 bytes, 6 groups. `wait_group 4` leaves 4 groups, that is
    # 2 iterations or 10 copies; behind it one iteration is copied: 15 again.
    loop = loop_of(saved("3.6.0/sm_80/matmul_grouped", Stage.PTX))
    (wait,) = loop.waits
    assert (wait.op, wait.depth, wait.queue) == ("cp.async.wait_group", 4, Queue.GROUP)
    assert (wait.in_flight_before, wait.in_flight_after, wait.groups, wait.iterations) == (15, 10, 4, 2)
    assert (loop.max_loads, loop.max_bytes_per_thread) == (15, 15 * 16)
    # The copies behind the wait of a trip are done at the wait three trips later. The body has 75
    # instructions; counted from the wait (1), the copies are numbers 47, 49, 51, 53 and 61:
    # 3·75 + 1 - 47 - 1 = 178 for the first, 3·75 + 1 - 61 - 1 = 164 for the last.
    assert loop.distance == (164, 178)
    assert loop.compute_overlap == 1  # the 16 mma stand behind the wait, which leaves 10 copies
    assert loop.drains == ()
    # Lines of the wait and of the five copies.
    assert loop.levels == ((347, 10), (431, 11), (435, 12), (439, 13), (443, 14), (455, 15))


def test_registers_loaded_for_the_next_iteration_are_in_flight_across_the_back_edge() -> None:
    # Each trip loads 16 bytes of A and of B, which it unpacks and moves to the registers that the next
    # trip packs again and stores to shared memory: only the two st.shared use them. So at the second load
    # four are in flight, and two at the mma.
    found = saved("3.6.0/sm_80/manual_prefetch", Stage.PTX)
    loop = loop_of(found)
    assert (loop.max_loads, loop.max_bytes_per_thread, loop.compute_overlap) == (4, 64, 1)
    assert loop.levels == ((148, 3), (160, 4), (172, 3), (181, 2))  # two ld.global, two st.shared
    # 57 instructions in the body. From its label on the loads are numbers 6 and 15, the stores 25 and 33:
    # 57 + 25 - 6 - 1 = 75, 57 + 33 - 15 - 1 = 74.
    assert loop.distance == (74, 75)
    assert found["straight"].max_loads == 2  # the loads in front of the loop


def test_a_loop_of_vmcnt_waits_drains_at_vmcnt_0() -> None:
    # Two loads of 16 bytes and one of 8; then the four mfma; `vmcnt(1)` lets only the youngest fly on, which
    # `vmcnt(0)` waits for. Lines as in the file.
    loop = loop_of(saved("3.6.0/gfx942/matmul_grouped", Stage.AMDGCN))
    assert [(w.line, w.op, w.depth, w.in_flight_before, w.in_flight_after) for w in loop.waits] == [
        (570, "s_waitcnt vmcnt", 1, 3, 1),
        (574, "s_waitcnt vmcnt", 0, 1, 0),
    ]
    assert loop.drains == (574,)
    assert (loop.max_loads, loop.max_bytes_per_thread, loop.compute_overlap) == (3, 40, 1)
    assert loop.levels == ((488, 1), (489, 2), (519, 3), (570, 1), (574, 0))
    # Of the lines from the first load on, less the two `; sched_barrier`: the wait for the first load is 60
    # instructions behind it (59 between), that for the third 38 behind it (37 between).
    assert loop.distance == (37, 59)


def test_copies_of_two_buffers_fly_while_the_third_is_computed_on() -> None:
    # num_stages 3 on sm_90: two phases of two copies (A, B) are begun in front of the loop. The wait in the
    # loop ends the elder phase, wgmma runs on it, and two copies begin the next phase.
    found = saved("3.6.0/sm_90/matmul_descriptor", Stage.PTX)
    loop = loop_of(found)
    assert [(w.op, w.queue, w.in_flight_before, w.in_flight_after, w.groups) for w in loop.waits] == [
        ("mbarrier.try_wait", Queue.PHASE, 4, 2, 1),
        # two wgmma a trip in one group; that of the trip before is waited for
        ("wgmma.wait_group", Queue.MATRIX, 4, 2, 1),
    ]
    assert (loop.max_loads, loop.compute_overlap) == (4, 1)
    assert loop.levels == ((394, 2), (454, 3), (463, 4))  # the wait, the copies of A and of B
    # 61 instructions in the body; from its bar.sync on the wait is number 2, the copies are 43 and 49.
    # They are done at the wait two trips later: 2·61 + 2 - 43 - 1 = 80, 2·61 + 2 - 49 - 1 = 74.
    assert loop.distance == (74, 80)


def test_a_gemv_has_all_loads_of_a_round_in_flight() -> None:
    # A round: one load of 2 bytes of the vector and 16 of 16 bytes of the matrix (grep: 34 ld.global in two
    # rounds). The first arithmetic on them stands behind the last conversion, the first use of each.
    facts = saved("3.2.0/sm_75/gemv_splitk", Stage.PTX)["straight"]
    assert (facts.max_loads, facts.max_bytes_per_thread) == (17, 2 + 16 * 16)
    assert facts.compute_overlap == 0
    assert facts.waits == ()


# -- cp.async ------------------------------------------------------------------------------------------

COPY = "cp.async.cg.shared.global [ %r1 + 0 ], [ %rd1 + 0 ], 0x10"
COMMIT = "cp.async.commit_group"
FMA = "fma.rn.f32 %r9, %r8, %r7, %r9"


def ptx_loop(*body: str, before: tuple[str, ...] = ()) -> LoadsInFlight:
    return loop_of(in_flight(ptx(*before, "$L__BB0_1:", *body, "@%p1 bra $L__BB0_1"), Stage.PTX))


@pytest.mark.parametrize("stages", [2, 3, 4, 7])
def test_a_pipeline_of_n_stages_settles_whatever_stood_in_front_of_it(stages: int) -> None:
    # Nothing is copied in front: the loop fills the pipeline itself, one copy and one group a trip.
    loop = ptx_loop(COPY, COMMIT, f"cp.async.wait_group {stages - 1}", FMA)
    assert loop.max_loads == stages
    assert (loop.waits[0].in_flight_before, loop.waits[0].in_flight_after) == (stages, stages - 1)
    assert loop.waits[0].iterations == stages - 1


def test_a_wait_of_zero_drains_the_pipeline() -> None:
    loop = ptx_loop(COPY, COMMIT, "cp.async.wait_group 0", FMA)
    assert (loop.waits[0].in_flight_after, loop.drains, loop.compute_overlap) == (0, (loop.waits[0].line,), 0)


def test_a_wait_that_empties_one_counter_drains_no_pipeline_of_another() -> None:
    # gfx1250 counts copies to LDS and loads to registers apart: behind s_wait_loadcnt 0 the copy flies on.
    body = (
        ".LBB0_1:",
        "global_load_b32 v1, v[2:3], off",
        "global_load_async_to_lds_b128 v4, v[6:7], off",
        "s_wait_loadcnt 0x0",
        "v_add_f32_e32 v9, v9, v1",
        "s_wait_asynccnt 0x0",
        "s_cbranch_scc0 .LBB0_1",
    )
    loop = loop_of(in_flight(amdgcn(*body, target="gfx1250"), Stage.AMDGCN))
    loads, copies = loop.waits
    assert [(w.op, w.in_flight_before, w.in_flight_after) for w in loop.waits] == [
        ("s_wait_loadcnt", 1, 0),
        ("s_wait_asynccnt", 1, 0),
    ]
    assert loop.drains == (copies.line,) != (loads.line,)


def test_what_was_loaded_in_front_of_a_loop_to_be_used_behind_it_keeps_no_drain_from_being_one() -> None:
    text = ptx(
        "ld.global.b32 %r20, [%rd9]",
        "$L__BB0_1:",
        COPY,
        COMMIT,
        "cp.async.wait_group 0",
        FMA,
        "@%p1 bra $L__BB0_1",
        "add.f32 %f9, %r20, %r20",
    )
    loop = loop_of(in_flight(text, Stage.PTX))
    (wait,) = loop.waits
    assert (wait.in_flight_before, wait.in_flight_after, wait.drains, loop.drains) == (1, 0, True, (wait.line,))
    assert loop.levels[-1] == (wait.line, 1)  # that load flies on


def test_a_load_of_the_loop_that_flies_on_behind_a_wait_is_a_pipeline_not_drained() -> None:
    loop = ptx_loop("ld.global.b32 %r20, [%rd9]", COPY, COMMIT, "cp.async.wait_group 0", "add.f32 %f9, %r20, %r20")
    (wait,) = loop.waits
    assert (wait.in_flight_before, wait.in_flight_after, wait.drains) == (1, 0, False)


def test_a_wait_that_finds_nothing_in_flight_drains_nothing() -> None:
    # The first waits for what stood in front of the loop, which no later trip has.
    loop = ptx_loop("cp.async.wait_group 0", COPY, COMMIT, "cp.async.wait_group 0", FMA)
    first, last = loop.waits
    assert (first.in_flight_before, first.drains, last.drains) == (0, False, True)


def test_iterations_left_are_those_of_the_source_where_the_compiler_copied_the_body() -> None:
    text = ptx("$L__BB0_1:", COPY, COMMIT, COPY, COMMIT, "cp.async.wait_group 2", "@%p1 bra $L__BB0_1")
    name, by_trip = next((n, f) for n, f in in_flight(text, Stage.PTX).items() if n.startswith("loop"))
    by_iteration = in_flight(text, Stage.PTX, unrolled={name: 2})[name]
    assert (by_trip.waits[0].iterations, by_iteration.waits[0].iterations) == (1, 2)


def test_a_wait_outside_loops_drains_no_pipeline() -> None:
    facts = in_flight(ptx(COPY, COMMIT, "cp.async.wait_group 0"), Stage.PTX)["straight"]
    assert (facts.waits[0].in_flight_before, facts.waits[0].in_flight_after, facts.drains) == (1, 0, ())


def test_a_commit_of_nothing_is_a_group_too() -> None:
    # PTX ISA 9.7.9.25.3.2: with no copies before it, commit_group makes an empty group.
    facts = in_flight(ptx(COPY, COMMIT, COMMIT, COMMIT, "cp.async.wait_group 2"), Stage.PTX)["straight"]
    assert (facts.waits[0].in_flight_before, facts.waits[0].in_flight_after) == (1, 0)


def test_copies_of_no_group_are_waited_for_by_wait_all_only() -> None:
    after = {
        wait: in_flight(ptx(COPY, wait), Stage.PTX)["straight"].waits[0].in_flight_after
        for wait in ("cp.async.wait_group 0", "cp.async.wait_all")
    }
    assert after == {"cp.async.wait_group 0": 1, "cp.async.wait_all": 0}


def test_commits_of_stores_and_matrix_operations_close_no_group_of_copies() -> None:
    body = (COPY, COMMIT, "wgmma.commit_group.sync.aligned", "cp.async.bulk.commit_group")
    loop = ptx_loop(*body, "cp.async.wait_group 1", "wgmma.wait_group.sync.aligned 0")
    assert [(w.op, w.in_flight_before, w.in_flight_after, w.iterations) for w in loop.waits] == [
        ("cp.async.wait_group", 2, 1, 1)
    ]


def test_a_wait_for_matrix_operations_leaves_as_many_groups_as_it_says() -> None:
    # Two operations and one commit a trip: in the steady state the group of the trip before and this one's
    # are pending at the wait, 2 + 2 operations, and 1 leaves the younger group with its 2.
    multiply = "wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 { %r1 }, %rd1, %rd2, 1, 1, 1, 0, 0"
    loop = ptx_loop(multiply, multiply, "wgmma.commit_group.sync.aligned", "wgmma.wait_group.sync.aligned 1")
    assert [(w.queue, w.in_flight_before, w.in_flight_after, w.groups) for w in loop.waits] == [(Queue.MATRIX, 4, 2, 1)]
    assert (loop.max_loads, loop.drains) == (0, ())


def test_bytes_are_unknown_where_a_width_is() -> None:
    facts = in_flight(ptx("cp.async.cg.shared.global [%r1], [%rd1], %r5", COPY), Stage.PTX)["straight"]
    assert (facts.max_loads, facts.max_bytes_per_thread) == (2, None)


# -- registers -----------------------------------------------------------------------------------------

LOAD = "ld.global.v2.b32 { %r1, %r2 }, [ %rd1 + 0 ]"


def levels(*body: str) -> list[int]:
    return [level for _, level in in_flight(ptx(*body), Stage.PTX)["straight"].levels]


def test_a_part_of_what_is_loaded_is_a_use() -> None:
    assert levels(LOAD, "add.f32 %r5, %r2, %r2", "add.f32 %r6, %r1, %r1") == [1, 0]


@pytest.mark.parametrize(
    "move", ["mov.b32 %r5, %r2", "mov.b32 {%rs1, %rs2}, %r2", "mov.b64 %rd5, {%r1, %r2}", "@%p3 mov.b32 %r5, %r2"]
)
def test_a_move_is_no_use(move: str) -> None:
    source = "%rs2" if "rs2" in move else "%rd5" if "rd5" in move else "%r5"
    found = in_flight(ptx(LOAD, move, FMA, f"cvt.f32.f16 %r6, {source}"), Stage.PTX)["straight"]
    assert (found.distance, found.compute_overlap) == ((2, 2), 1)


def test_the_value_for_a_mask_that_is_off_ends_no_load() -> None:
    # Triton up to 3.2 writes the other value behind the load, under the opposite predicate.
    body = ("@%p1 ld.global.b32 { %r1 }, [ %rd1 + 0 ]", "@!%p1 mov.u32 %r1, %r3", FMA, "add.f32 %r5, %r1, %r1")
    assert in_flight(ptx(*body), Stage.PTX)["straight"].distance == (2, 2)


def test_a_register_that_is_overwritten_ends_its_load() -> None:
    body = (LOAD, "mov.u32 %r1, 0x0", "mov.u32 %r2, 0x0", "add.f32 %r5, %r1, %r2")
    facts = in_flight(ptx(*body), Stage.PTX)["straight"]
    assert (len(facts.levels), facts.distance) == (2, None)  # it ends, but at no use


def test_a_load_that_nothing_uses_is_left_out() -> None:
    facts = in_flight(ptx(LOAD, "ld.global.b32 { %r3 }, [ %rd2 + 0 ]", "add.f32 %r5, %r1, %r2"), Stage.PTX)
    assert facts["straight"].max_loads == 1
    assert facts["straight"].notes == ("loads with unused results are not counted: 1",)


def test_a_load_through_a_loaded_address_waits_for_it() -> None:
    body = ("ld.global.b64 { %rd5 }, [ %rd1 + 0 ]", "ld.global.b32 { %r1 }, [ %rd5 + 0 ]", "add.f32 %r2, %r1, %r1")
    assert in_flight(ptx(*body), Stage.PTX)["straight"].max_loads == 1


def test_a_phi_hands_a_load_over_the_back_edge() -> None:
    facts = in_flight(
        llir(
            "%first = load float, ptr addrspace(1) %p, align 4",
            "br label %loop",
            "loop:",
            "%held = phi float [ %first, %0 ], [ %next, %loop ]",
            "%next = load float, ptr addrspace(1) %p, align 4",
            "%used = fadd float %held, %held",
            "br i1 %c, label %loop, label %end",
            "end:",
            "ret void",
        ),
        Stage.LLIR,
    )
    # Issue at number 2 of four, use at number 3 of the next trip: br, phi, load between.
    assert (loop_of(facts).max_loads, loop_of(facts).distance) == (2, (4, 4))


def test_phis_of_one_block_move_all_at_once() -> None:
    # Two registers in a row: what is loaded is used two trips later, whichever phi stands first.
    old, new = ("%old = phi float [ 0.0, %0 ], [ %new, %loop ]", "%new = phi float [ 0.0, %0 ], [ %next, %loop ]")
    for phis in ((old, new), (new, old)):
        body = ("%next = load float, ptr addrspace(1) %p, align 4", "%used = fadd float %old, %old")
        text = llir("br label %loop", "loop:", *phis, *body, "br i1 %c, label %loop, label %end", "end:", "ret void")
        assert loop_of(in_flight(text, Stage.LLIR)).max_loads == 3


# -- AMD's counters ------------------------------------------------------------------------------------

GLOBAL = "global_load_dwordx4 v[0:3], v[8:9], off"
STORE = "global_store_dword v[8:9], v7, off"


@pytest.mark.parametrize(("target", "after"), [("gfx90a", 0), ("gfx942", 0), ("gfx1030", 1), ("gfx1100", 1)])
def test_a_store_takes_a_place_in_vmcnt_up_to_gfx9(target: str, after: int) -> None:
    # One load, one store, vmcnt(1): where stores count the load must be done (CDNA 3 ISA 4.4); from gfx10
    # on they have vscnt (RDNA 2 ISA 4.4).
    found = in_flight(amdgcn(GLOBAL, STORE, "s_waitcnt vmcnt(1)", target=target), Stage.AMDGCN)["straight"]
    assert (found.waits[0].in_flight_before, found.waits[0].in_flight_after) == (1, after)


def test_registers_of_amdgcn_are_complete_at_the_wait_not_at_the_use() -> None:
    found = in_flight(amdgcn(GLOBAL, "v_add_f32_e32 v5, v0, v0", "s_waitcnt vmcnt(0)"), Stage.AMDGCN)
    assert (found["straight"].distance, found["straight"].compute_overlap) == ((1, 1), 1)


def test_a_load_behind_a_branch_around_it_is_read_in_line() -> None:
    body = ("s_cbranch_execz .LBB0_2", GLOBAL, ".LBB0_2:", "s_waitcnt vmcnt(0)")
    assert in_flight(amdgcn(*body), Stage.AMDGCN)["straight"].waits[0].in_flight_before == 1


def test_a_wait_behind_a_branch_around_it_is_read_in_line() -> None:
    body = (GLOBAL, "s_cbranch_execz .LBB0_2", "s_waitcnt vmcnt(0)", ".LBB0_2:", GLOBAL)
    assert in_flight(amdgcn(*body), Stage.AMDGCN)["straight"].max_loads == 1


def test_of_two_arms_the_one_that_leaves_more_in_flight_counts() -> None:
    arms = ("s_cbranch_scc1 .LBB0_2", GLOBAL, GLOBAL, "s_branch .LBB0_3", ".LBB0_2:", GLOBAL, ".LBB0_3:")
    assert in_flight(amdgcn(*arms, "s_waitcnt vmcnt(0)"), Stage.AMDGCN)["straight"].waits[0].in_flight_before == 2


def test_the_order_of_blocks_in_the_text_does_not_matter() -> None:
    straight = amdgcn(
        GLOBAL, "s_branch .LBB0_1", ".LBB0_1:", GLOBAL, "s_branch .LBB0_2", ".LBB0_2:", "s_waitcnt vmcnt(1)"
    )
    turned = amdgcn(
        GLOBAL, "s_branch .LBB0_1", ".LBB0_2:", "s_waitcnt vmcnt(1)", "s_endpgm", ".LBB0_1:", GLOBAL, "s_branch .LBB0_2"
    )
    waits = [in_flight(text, Stage.AMDGCN)["straight"].waits[0] for text in (straight, turned)]
    assert [(w.in_flight_before, w.in_flight_after) for w in waits] == [(2, 1), (2, 1)]


def test_a_loop_that_never_waits_is_not_guessed_at() -> None:
    loop = loop_of(in_flight(amdgcn(".LBB0_1:", GLOBAL, "s_cbranch_scc1 .LBB0_1"), Stage.AMDGCN))
    assert (loop.max_loads, loop.max_bytes_per_thread, loop.distance, loop.levels) == (None, None, None, ())
    assert loop.notes == ("the number of loads in flight does not reach a steady state",)


def test_an_inner_loop_begins_with_what_the_outer_one_leaves() -> None:
    # The inner loop has one load in flight behind its wait and issues two: 3. So has the outer one at its
    # end, and its next trip goes on from there.
    body = (".LBB0_1:", "s_nop 0", ".LBB0_2:", GLOBAL, GLOBAL, "s_waitcnt vmcnt(1)", "s_cbranch_scc1 .LBB0_2")
    found = in_flight(amdgcn(*body, "s_cbranch_vccz .LBB0_1"), Stage.AMDGCN)
    assert [facts.max_loads for name, facts in found.items() if name.startswith("loop")] == [1, 3]


def test_many_nested_loops_cost_no_more_than_a_few_trips_each() -> None:
    heads = [f".LBB0_{n}:" for n in range(12)]
    tails = [f"s_cbranch_scc1 .LBB0_{n}" for n in reversed(range(12))]
    found = in_flight(amdgcn(*heads, GLOBAL, "s_waitcnt vmcnt(2)", *tails), Stage.AMDGCN)
    assert {facts.max_loads for facts in found.values()} == {2, 3}


# -- barriers ------------------------------------------------------------------------------------------

TMA = "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%rd1, {%r2, %r3}], "


def tma(*body: str, slots: int = 2) -> tuple[str, ...]:
    """A loop over an array of barriers at byte 4096 (%r11), with one more array at byte 8192 (%r12)."""
    initialised = [
        line
        for slot in range(slots)
        for line in (f"add.s32 %r2{slot}, %r10, {4096 + 8 * slot}", f"mbarrier.init.shared::cta.b64 [%r2{slot}], 1")
    ]
    turn = ("shl.b32 %r13, %r14, 3", "add.s32 %r15, %r10, %r13", "add.s32 %r11, %r15, 4096", "add.s32 %r12, %r15, 8192")
    return ("mov.b32 %r10, global_smem", *initialised, "$L__BB0_1:", *turn, *body, "@%p1 bra $L__BB0_1")


def wait_for(barrier: str) -> str:
    return f"mbarrier.try_wait.parity.shared.b64 complete, [{barrier}], %r9"


def expect(barrier: str) -> str:
    return f"mbarrier.arrive.expect_tx.shared.b64 _, [{barrier}], 4096"


def test_a_wait_for_another_array_of_barriers_completes_no_copy() -> None:
    # The second wait is for matrix operations: no copy arrives at its barriers, so it is no wait for loads.
    body = tma(expect("%r11"), TMA + "[%r11]", wait_for("%r12"), FMA, wait_for("%r11"))
    loop = loop_of(in_flight(ptx(*body), Stage.PTX))
    assert [(w.in_flight_before, w.in_flight_after) for w in loop.waits] == [(1, 0)]
    assert (loop.max_loads, loop.compute_overlap) == (1, 1)


def test_copies_of_one_phase_are_complete_together() -> None:
    body = tma(expect("%r11"), TMA + "[%r11]", TMA + "[%r11]", wait_for("%r11"))
    assert loop_of(in_flight(ptx(*body), Stage.PTX)).waits[0].in_flight_before == 2


def test_an_array_of_barriers_holds_no_more_phases_than_it_has_barriers() -> None:
    # A producer: another partition waits for its copies, so all that is known is that a barrier begins no
    # phase before its last is over. Two barriers, two copies a phase.
    body = tma(wait_for("%r12"), expect("%r11"), TMA + "[%r11]", TMA + "[%r11]")
    loop = loop_of(in_flight(ptx(*body), Stage.PTX))
    assert (loop.max_loads, loop.distance, loop.waits) == (4, None, ())
    assert loop.notes == ("copies complete in other code: at most one phase of each of their barriers is in flight",)


def test_a_barrier_of_unknown_place_leaves_the_loads_in_flight_unknown() -> None:
    body = tma("ld.param.b32 %r30, [k_0]", expect("%r30"), TMA + "[%r30]", wait_for("%r11"))
    loop = loop_of(in_flight(ptx(*body), Stage.PTX))
    assert (loop.max_loads, loop.compute_overlap) == (None, None)
    assert "unknown which copies a barrier waits for" in loop.notes[0]


def test_a_phase_bears_the_bytes_that_its_barrier_expects() -> None:
    # Neither copy says what it moves; the barrier expects 4096 bytes for both, and 128 threads share them.
    language = format_of(Stage.PTX)

    def transfer(instruction: Instruction, module: Module) -> Transfer | None:
        if "expect_tx" in instruction.opcode:
            return Transfer(4096, Queue.PHASE, is_per_block=True, barrier="%r11")
        return language.transfer(instruction, module)

    body = tma(expect("%r11"), TMA + "[%r11]", TMA + "[%r11]", wait_for("%r11"))
    module = language.parse(SourceText("k", ptx(*body)), Stage.PTX)
    code = FunctionCode(module.functions[0], module, replace(language, transfer=transfer))
    regions = find_regions(code, (), exact=False)
    found = find_in_flight(walk_function(code, regions, 128))
    assert (loop_of(found).max_loads, loop_of(found).max_bytes_per_thread) == (2, 4096 / 128)


def test_a_barrier_behind_an_array_is_not_one_of_it() -> None:
    # The array has two barriers, at 4096 and 4104. One more stands at 4120, behind a gap: a wait for it
    # ends no phase of the array.
    single = ("mov.b32 %r10, global_smem", "add.s32 %r40, %r10, 4120", "mbarrier.init.shared::cta.b64 [%r40], 1")
    body = tma(expect("%r11"), TMA + "[%r11]", wait_for("%r40"), FMA, wait_for("%r11"))
    loop = loop_of(in_flight(ptx(*single, *body), Stage.PTX))
    assert [(w.in_flight_before, w.in_flight_after) for w in loop.waits] == [(1, 0)]


def test_a_barrier_at_a_constant_address_is_one_of_the_array_it_lies_in() -> None:
    # In front of the loop the second barrier of the array gets a copy, which the loop waits for.
    prologue = ("mov.b32 %r10, global_smem", "add.s32 %r41, %r10, 4104", TMA + "[%r41]")
    found = in_flight(ptx(*prologue, *tma(wait_for("%r11"), expect("%r11"), TMA + "[%r11]")), Stage.PTX)
    assert found["straight"].max_loads == 1
    assert [(w.in_flight_before, w.in_flight_after) for w in loop_of(found).waits] == [(1, 0)]


@pytest.mark.parametrize(
    ("kernel", "stage"),
    [
        ("3.6.0/sm_90/tma_warp_specialized", Stage.TTGIR),
        ("3.6.0/sm_90/tma_warp_specialized", Stage.LLIR),
        ("3.6.0/sm_90/tma_warp_specialized", Stage.PTX),
        ("3.9.0/sm_100/tma_warp_specialized", Stage.TTGIR),
        ("3.9.0/sm_100/tma_warp_specialized", Stage.LLIR),
        ("3.9.0/sm_100/tma_warp_specialized", Stage.PTX),
    ],
)
def test_a_producer_fills_its_buffers_and_a_consumer_waits_for_copies_of_others(kernel: str, stage: Stage) -> None:
    # Three buffers, copies of A and of B into each: at most 6. The other partitions only wait.
    loops = [facts for name, facts in saved(kernel, stage).items() if name.startswith("loop")]
    producers = [facts for facts in loops if facts.max_loads]
    consumers = [facts for facts in loops if facts.max_loads is None]
    assert [facts.max_loads for facts in producers] == [6]
    assert len(consumers) == {"3.6.0": 2, "3.9.0": 1 if stage is Stage.TTGIR else 2}[kernel[:5]]
    assert all("waits for copies that other code issues" in facts.notes[0] for facts in consumers)


def test_the_stages_of_a_kernel_agree_on_the_iterations_in_flight() -> None:
    # One operation of TTGIR becomes four (A) or one (B) below; groups and iterations stay.
    found = {s: loop_of(saved("3.6.0/sm_80/matmul_grouped", s)) for s in (Stage.TTGIR, Stage.LLIR, Stage.PTX)}
    assert {stage: (f.max_loads, f.waits[0].groups, f.waits[0].iterations) for stage, f in found.items()} == {
        Stage.TTGIR: (6, 4, 2),
        Stage.LLIR: (15, 4, 2),
        Stage.PTX: (15, 4, 2),
    }
    assert {facts.max_bytes_per_thread for facts in found.values()} == {240}
