"""How deep a loop is pipelined, and why it is not, on loops small enough to follow by eye."""

from __future__ import annotations

from dataclasses import replace

import pytest

from artifact_inspector.analysis.flow.function_code import FunctionCode
from artifact_inspector.analysis.order.placement import PreviousStage
from artifact_inspector.analysis.order.reference_regions import ReferenceRegion, find_reference
from artifact_inspector.analysis.order.region_facts import RegionFacts
from artifact_inspector.analysis.order.regions import find_regions
from artifact_inspector.analysis.order.verdict import judge_region
from artifact_inspector.analysis.overlap.loop_buffers import LoopBuffers, find_loop_buffers
from artifact_inspector.analysis.overlap.loop_properties import LoopProperties
from artifact_inspector.analysis.overlap.pipeline import Evidence, Pipeline, explain_pipeline
from artifact_inspector.formats import format_of
from artifact_inspector.hardware.targets import parse_target
from artifact_inspector.model import Queue, Stage, TritonVersion
from artifact_inspector.model.text import SourceText

HEAD = """module {
  tt.func public @kernel(%x: tensor<64x64x!tt.ptr<f16>>, %y: tensor<64x64x!tt.ptr<f16>>, %n: i32, %b: i1) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.000000e+00> : tensor<64x64xf32>
    %row = arith.constant dense<0> : tensor<64x64xi32>
"""
FOR = "    %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero) -> (tensor<64x64xf32>)  : i32 {\n"
LOADS = """      %u = tt.load %x : tensor<64x64x!tt.ptr<f16>>
      %v = tt.load %y : tensor<64x64x!tt.ptr<f16>>
"""
DOT = """      %d = tt.dot %u, %v, %acc : tensor<64x64xf16> * tensor<64x64xf16> -> tensor<64x64xf32>
      scf.yield %d : tensor<64x64xf32>
"""
TAIL = """    }
    tt.return
  }
}
"""
MATMUL = HEAD + FOR + LOADS + DOT + TAIL

MEMORY = "#shared, #smem, mutable"
TILE = f"!ttg.memdesc<64x64xf16, {MEMORY}>"
TILES = f"!ttg.memdesc<2x64x64xf16, {MEMORY}>"


def copied(pointer: str, buffer: str, slot: str, name: str) -> str:
    """An asynchronous copy into one slot of a buffer, committed as a group of its own."""
    return f"""      %{name}s = ttg.memdesc_index {buffer}[{slot}] : {TILES} -> {TILE}
      %{name}c = ttg.async_copy_global_to_local {pointer}, %{name}s : tensor<64x64x!tt.ptr<f16>> -> <64x64xf16, {MEMORY}>
      %{name}k = ttg.async_commit_group tokens %{name}c
"""


PIPELINED = (
    HEAD
    + f"    %bu = ttg.local_alloc : () -> {TILES}\n    %bv = ttg.local_alloc : () -> {TILES}\n"
    + copied("%x", "%bu", "%c0", "a")
    + copied("%y", "%bv", "%c0", "b")
    + copied("%x", "%bu", "%c1", "e")
    + copied("%y", "%bv", "%c1", "f")
    + FOR
    + f"""      %w = ttg.async_wait {{num = 2 : i32}}
      %su = ttg.memdesc_index %bu[%i] : {TILES} -> {TILE}
      %u = ttg.local_load %su token %w : {TILE} -> tensor<64x64xf16>
      %sv = ttg.memdesc_index %bv[%i] : {TILES} -> {TILE}
      %v = ttg.local_load %sv token %w : {TILE} -> tensor<64x64xf16>
      %d = tt.dot %u, %v, %acc : tensor<64x64xf16> * tensor<64x64xf16> -> tensor<64x64xf32>
"""
    + copied("%x", "%bu", "%i", "g")
    + copied("%y", "%bv", "%i", "h")
    + "      scf.yield %d : tensor<64x64xf32>\n    }\n"
    + "    %z = ttg.async_wait {num = 0 : i32}\n    tt.return\n  }\n}\n"
)

Loop = tuple[dict[Stage, RegionFacts], dict[Stage, LoopBuffers]]


def read(ttir: str, ttgir: str | None = None) -> dict[str, Loop]:
    """Every loop of a kernel given as text, with its facts and buffers by stage."""
    loops: dict[str, Loop] = {}
    memories: dict[str, PreviousStage] = {}
    reference: tuple[ReferenceRegion, ...] = ()
    for stage, text in ((Stage.TTIR, ttir), (Stage.TTGIR, ttgir)):
        if text is None:
            continue
        language = format_of(stage)
        module = language.parse(SourceText("kernel", text), stage)
        (function,) = module.functions
        exact = stage is Stage.TTIR
        code = FunctionCode(function, module, language)
        if exact:
            reference = find_reference(code)
        regions = find_regions(code, reference, exact=exact)
        for region in regions:
            facts, memory = judge_region(code, region, memories.get(region.id))
            memories[region.id] = memory
            loops.setdefault(region.id, ({}, {}))[0][stage] = facts
        for name, found in find_loop_buffers(code, regions).items():
            loops[name][1][stage] = found
    return {name: loop for name, loop in loops.items() if loop[1]}


def explained(
    loop: Loop, *, num_stages: int | None = 3, target: str = "sm_80", version: str | None = "3.6.0"
) -> Pipeline:
    found = explain_pipeline(
        num_stages=num_stages,
        target=parse_target(target),
        version=version and TritonVersion(version),
        facts=loop[0],
        buffers=loop[1],
    )
    assert found is not None
    return found


def only(ttir: str, ttgir: str | None = None) -> Loop:
    (loop,) = read(ttir, ttgir).values()
    return loop


def line_of(text: str, words: str) -> int:
    (number,) = (n for n, line in enumerate(text.split("\n"), 1) if words in line)
    return number


def form_of(text: str) -> LoopProperties:
    form = only(text)[1][Stage.TTIR].properties
    assert form is not None
    return form


# -- how deep ----------------------------------------------------------------------------------


def test_a_wait_depth_divided_by_the_groups_of_an_iteration_is_its_iterations_in_flight() -> None:
    """Two tiles each of A and B; A and B are committed apart, the wait leaves two groups in flight.

    Two iterations are copied in front of the loop, so the loads run two ahead (d = 3 - 1). The wait
    completes the older of them and leaves 2 groups ÷ 2 per iteration = 1 = 3 - 2 in flight.
    """
    found = explained(only(MATMUL, PIPELINED))
    assert (found.kind, found.num_stages, found.buffers) == ("cp.async groups", 3, 2)
    assert (found.commits_per_iteration, found.wait_depth, found.iterations_in_flight) == (2, 2, 1)
    assert (found.distance, found.prologue) == (2, 2)
    assert found.epilogue_line == line_of(PIPELINED, "num = 0")
    assert (found.unpipelined_reason, found.notes) == (None, ())


def test_copies_into_the_buffers_of_another_loop_are_no_prologue() -> None:
    # As the printer does, the second loop uses the names of the first again: %gs is a slot of %bu in the
    # first, and the address that the second copies from.
    second = PIPELINED[PIPELINED.index("    %bu =") : PIPELINED.index("    %z =")]
    for name in ("bu", "bv", "ac", "bc", "ec", "fc", "r"):
        second = second.replace(f"%{name} ", f"%{name}2 ").replace(f"%{name}[", f"%{name}2[")
    second = second.replace("%x, %gs", "%gs, %gt").replace("%gs = ttg", "%gt = ttg")
    second = second.replace("      %gt =", "      %gs = arith.addi %x, %row : tensor<64x64x!tt.ptr<f16>>\n      %gt =")
    ttgir = PIPELINED.replace("    %z =", second + "    %z =")
    ttir = MATMUL.replace(TAIL, "    }\n" + (FOR + LOADS + DOT).replace("%r =", "%r2 =") + TAIL)
    assert [explained(loop).prologue for loop in read(ttir, ttgir).values()] == [2, 2]


def test_what_fills_a_loop_for_the_next_time_around_is_counted_where_it_was_filled_first() -> None:
    front = PIPELINED.index(FOR)
    behind = PIPELINED.index("    %z =")
    outer = "    scf.for %o = %c0 to %n step %c1  : i32 {\n"
    refill = copied("%x", "%bu", "%c0", "p") + copied("%y", "%bv", "%c0", "q")
    refill += copied("%x", "%bu", "%c1", "s") + copied("%y", "%bv", "%c1", "t")
    ttgir = PIPELINED[:front] + outer + PIPELINED[front:behind] + refill + "    }\n" + PIPELINED[behind:]
    ttir = HEAD + outer + FOR + LOADS + DOT + "    }\n" + TAIL
    inner = max(read(ttir, ttgir).values(), key=lambda loop: loop[0][Stage.TTGIR].depth)
    # Four copies in front of the outer loop, two in an iteration of the inner one.
    assert explained(inner).prologue == 2


def test_a_wait_of_zero_leaves_no_iteration_in_flight() -> None:
    drained = PIPELINED.replace("num = 2", "num = 0", 1)
    found = explained(only(MATMUL, drained), num_stages=2)
    assert (found.wait_depth, found.iterations_in_flight) == (0, 0)
    assert found.notes == (
        "num_stages 2 leaves 2 - 2 = 0 iterations in flight at the wait",
        "its wait is stricter than the computes after it need: of 2 iterations ahead, 1 are already in shared memory",
    )


def test_a_distance_is_the_iterations_in_flight_and_one_or_says_why_not() -> None:
    usual = explained(only(MATMUL, PIPELINED))
    assert (usual.distance, usual.iterations_in_flight, usual.notes) == (2, 1, ())
    # The same copies in front of the wait: it leaves those of its own iteration in flight too.
    copies = copied("%x", "%bu", "%i", "g") + copied("%y", "%bv", "%i", "h")
    wait = "      %w = ttg.async_wait {num = 2 : i32}\n"
    early = PIPELINED.replace(copies, "").replace(wait, copies + wait.replace("num = 2", "num = 4"))
    found = explained(only(MATMUL, early))
    assert (found.distance, found.iterations_in_flight) == (2, 2)
    assert found.notes == ("its copies are before the wait, so one more iteration is in flight after it",)


def test_groups_committed_for_two_copies_at_once_count_once() -> None:
    together = PIPELINED.replace("      %gk = ttg.async_commit_group tokens %gc\n", "")
    assert explained(only(MATMUL, together)).commits_per_iteration == 1


def test_copies_without_a_target_have_no_vendors_name() -> None:
    facts, buffers = only(MATMUL, PIPELINED)
    found = explain_pipeline(num_stages=3, target=None, version=None, facts=facts, buffers=buffers)
    assert found is not None
    assert found.kind == "groups of copies"


def test_the_same_copies_go_direct_to_lds_on_amd() -> None:
    assert explained(only(MATMUL, PIPELINED), target="gfx950").kind == "direct to LDS"


def test_an_allocation_that_is_not_indexed_is_one_tile_whatever_its_extents() -> None:
    batch = f"!ttg.memdesc<8x64x64xf16, {MEMORY}>"
    staged = MATMUL.replace(
        "      %d = tt.dot",
        f"      %s = ttg.local_alloc %u : (tensor<8x64x64xf16>) -> {batch}\n"
        f"      %t = ttg.local_load %s : {batch} -> tensor<8x64x64xf16>\n      %d = tt.dot",
    )
    (buffer,) = only(MATMUL, staged)[1][Stage.TTGIR].buffers
    assert (buffer.tiles, buffer.bytes) == (1, 8 * 64 * 64 * 2)


def test_a_barrier_is_no_buffer() -> None:
    """`2x1xi64` in shared memory is two mbarriers, of eight bytes each."""
    barriers = f"!ttg.memdesc<2x1xi64, {MEMORY}>"
    text = PIPELINED.replace("    %bu = ", f"    %bars = ttg.local_alloc : () -> {barriers}\n    %bu = ")
    assert [buffer.name for buffer in only(MATMUL, text)[1][Stage.TTGIR].buffers] == ["%bu", "%bv"]


def test_nothing_is_said_before_the_pipeliner_has_run() -> None:
    facts, buffers = only(MATMUL)
    target = parse_target("sm_80")
    assert explain_pipeline(num_stages=3, target=target, version=None, facts=facts, buffers=buffers) is None


def test_a_back_end_that_waits_for_all_loses_what_ttgir_leaves_in_flight() -> None:
    """The last stage here is TTGIR read again as AMDGCN, with every copy waited for."""
    facts, buffers = only(MATMUL, PIPELINED)
    above = buffers[Stage.TTGIR]
    below = replace(above, waits=tuple(w._replace(depth=0, queue=Queue.LOADS) for w in above.waits), commits={})
    loop = ({**facts, Stage.AMDGCN: facts[Stage.TTGIR]}, {**buffers, Stage.AMDGCN: below})
    found = explained(loop, num_stages=3, target="gfx950")
    assert found.iterations_in_flight == 0
    assert (
        found.unpipelined_reason
        == "TTGIR leaves 2 ÷ 2 = 1 iterations in flight at its wait, but amdgcn waits for all of them"
    )
    line = line_of(PIPELINED, "num = 2")
    assert found.evidence == (Evidence(Stage.TTGIR, line), Evidence(Stage.AMDGCN, line))


def test_copies_that_became_loads_below_are_a_register_prefetch() -> None:
    """Triton 2.x writes asynchronous copies for sm_75 too; PTX has loads and shared stores for them."""
    facts, buffers = only(MATMUL, PIPELINED)
    below = replace(buffers[Stage.TTGIR], copies=(), loads=(1, 2), stores=(3, 4), commits={}, waits=())
    loop = ({**facts, Stage.PTX: facts[Stage.TTGIR]}, {**buffers, Stage.PTX: below})
    found = explained(loop, target="sm_75", version="2.1")
    assert (found.kind, found.buffers, found.distance) == ("register prefetch", 2, 2)
    assert (found.commits_per_iteration, found.wait_depth, found.unpipelined_reason) == (None, None, None)


BARRIER = f"!ttg.memdesc<1xi64, {MEMORY}>"
SQUARE = MATMUL.replace("      %v = tt.load %y : tensor<64x64x!tt.ptr<f16>>\n", "").replace("%v", "%u")
BARRIERS = f"!ttg.memdesc<2x1xi64, {MEMORY}>"


def tma_copy(name: str, slot: str) -> str:
    """A copy by TMA into one slot, for which one phase of the slot's barrier is armed."""
    return f"""      %{name}b = ttg.memdesc_index %bars[{slot}] : {BARRIERS} -> {BARRIER}
      ttng.barrier_expect %{name}b, 8192, %b : {BARRIER}
      %{name}s = ttg.memdesc_index %bu[{slot}] : {TILES} -> {TILE}
      ttng.async_tma_copy_global_to_local %x[%n, %n] %{name}s, %{name}b, %b : \
!tt.tensordesc<tensor<64x64xf16>>, {BARRIER} -> {TILE}
"""


def phased(*, over: bool = False, late: bool = False) -> str:
    """A loop that TMA fills one iteration ahead.

    Args:
        over: it waits for its matrix operations too, by a barrier of their own.
        late: its wait for the copies stands behind the dot.
    """
    wait = f"      ttng.wait_barrier %bar, %n : {BARRIER}\n"
    return (
        HEAD
        + f"    %bu = ttg.local_alloc : () -> {TILES}\n    %bars = ttg.local_alloc : () -> {BARRIERS}\n"
        + f"    %done = ttg.local_alloc : () -> {BARRIERS}\n"
        + f"    %over = ttg.memdesc_index %done[%c0] : {BARRIERS} -> {BARRIER}\n"
        + tma_copy("f", "%c0")
        + FOR
        + f"      %bar = ttg.memdesc_index %bars[%i] : {BARRIERS} -> {BARRIER}\n"
        + (f"      ttng.wait_barrier %over, %n : {BARRIER}\n" if over else "")
        + ("" if late else wait)
        + f"      %s = ttg.memdesc_index %bu[%i] : {TILES} -> {TILE}\n"
        + f"      %u = ttg.local_load %s : {TILE} -> tensor<64x64xf16>\n"
        + DOT.replace("%v", "%u").replace("      scf.yield", (wait if late else "") + "      scf.yield")
    ).replace("      scf.yield", tma_copy("g", "%c1") + "      scf.yield") + TAIL


def test_a_phase_leaves_in_flight_what_was_copied_behind_it() -> None:
    """One copy in front, one at the end of each iteration: at the wait nothing younger is under way."""
    found = explained(only(SQUARE, phased()), target="sm_90")
    assert (found.kind, found.buffers, found.commits_per_iteration) == ("TMA + mbarrier", 2, 1)
    assert (found.wait_depth, found.distance, found.prologue, found.iterations_in_flight) == (None, 1, 1, 0)


def test_waits_for_other_barriers_are_no_waits_for_copies() -> None:
    above = only(SQUARE, phased(over=True))[1][Stage.TTGIR]
    assert len(above.waits) == 2
    assert above.phases == (line_of(phased(over=True), "wait_barrier %bar,"),)


def test_a_phase_waited_for_behind_the_computes_tells_no_number_in_flight() -> None:
    assert explained(only(SQUARE, phased(late=True)), target="sm_90").iterations_in_flight is None


@pytest.mark.parametrize(("bounds", "trips"), [((0, 4096, 64), 64), ((0, 100, 32), 4), ((5, 5, 1), 0)])
def test_constant_bounds_tell_how_often_a_loop_runs(bounds: tuple[int, int, int], trips: int) -> None:
    """Like Python's len(range(0, 100, 32)) = 4."""
    constants = "".join(f"    %k{i} = arith.constant {value} : i32\n" for i, value in enumerate(bounds))
    text = MATMUL.replace("%c0 to %n step %c1", "%k0 to %k1 step %k2")
    text = text.replace("    %r = scf.for", constants + "    %r = scf.for")
    assert form_of(text).trip_count == trips
    assert form_of(MATMUL).trip_count is None


# -- why not -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("asked", "target", "version", "cause"),
    [
        (1, "sm_80", "3.6.0", "num_stages 1 requests no pipelining"),
        (3, "sm_75", "3.6.0", "sm_75 has no asynchronous copy (cp.async requires sm_80)"),
        (3, "gfx942", "3.0/3.1", "Triton 3.0/3.1 pipelines for AMD only at num_stages 0, requested were 3"),
        (0, "gfx942", "3.6.0", "num_stages 0 requests no pipelining"),
    ],
)
def test_options_and_targets_that_allow_no_pipeline_are_told(asked: int, target: str, version: str, cause: str) -> None:
    found = explained(only(MATMUL, MATMUL), num_stages=asked, target=target, version=version)
    assert (found.kind, found.unpipelined_reason) == (None, cause)


@pytest.mark.parametrize(("target", "version"), [("sm_80", "3.6.0"), ("gfx942", "3.6.0"), ("sm_90", None)])
def test_a_loop_that_meets_every_condition_has_no_known_cause(target: str, version: str | None) -> None:
    found = explained(only(MATMUL, MATMUL), target=target, version=version)
    assert (found.unpipelined_reason, found.notes) == (None, ("no cause was found in the IR",))


def test_the_loop_s_own_number_of_stages_wins_over_the_compile_s() -> None:
    facts, buffers = only(MATMUL, MATMUL)
    program = buffers[Stage.TTIR]
    assert program.properties is not None
    asking = replace(program, properties=replace(program.properties, requested_stages=1))
    found = explained((facts, {**buffers, Stage.TTIR: asking}), num_stages=4)
    assert (found.num_stages, found.unpipelined_reason) == (
        1,
        "the loop itself requests no pipelining: tt.num_stages = 1",
    )
    assert found.evidence == (Evidence(Stage.TTIR, line_of(MATMUL, "scf.for")),)


def test_a_number_that_a_pass_wrote_into_ttgir_is_not_what_was_asked() -> None:
    """Automatic warp specialisation leaves `tt.num_stages = 0` on the loops that it made."""
    facts, buffers = only(MATMUL, MATMUL)
    above = buffers[Stage.TTGIR]
    assert above.properties is not None
    written = replace(above, properties=replace(above.properties, requested_stages=0))
    assert explained((facts, {**buffers, Stage.TTGIR: written}), num_stages=4).num_stages == 4


def test_loads_without_a_dot_are_pipelined_only_where_the_loop_asks() -> None:
    text = MATMUL.replace("tt.dot %u, %v, %acc :", "arith.mulf %u, %v :")
    loop = only(text, text)
    told = explained(loop)
    assert told.unpipelined_reason is not None
    assert told.unpipelined_reason.startswith("no dot in the loop")
    facts, buffers = loop
    program = buffers[Stage.TTIR]
    assert program.properties is not None
    asking = replace(program, properties=replace(program.properties, requested_stages=3))
    assert explained((facts, {**buffers, Stage.TTIR: asking})).unpipelined_reason is None


def test_a_while_loop_is_no_counted_loop() -> None:
    text = (
        HEAD
        + """    %r:2 = scf.while (%i = %c0, %acc = %zero) : (i32, tensor<64x64xf32>) -> (i32, tensor<64x64xf32>) {
      %go = arith.cmpi slt, %i, %n : i32
      scf.condition(%go) %i, %acc : i32, tensor<64x64xf32>
    } do {
    ^bb0(%i: i32, %acc: tensor<64x64xf32>):
"""
        + LOADS
        + DOT.replace("scf.yield %d :", "%j = arith.addi %i, %c1 : i32\n      scf.yield %j, %d : i32,")
        + TAIL
    )
    found = explained(only(text, text))
    assert found.unpipelined_reason == "not a counted loop: only `for` loops are pipelined"
    assert found.evidence == (Evidence(Stage.TTIR, line_of(text, "scf.while")),)


def test_only_the_inner_of_two_loops_is_pipelined() -> None:
    inner = FOR.replace("%r", "%q").replace("%i =", "%j =").replace("%acc = %zero", "%in = %acc")
    body = LOADS + DOT
    for old, new in (("%u", "%m"), ("%v", "%o"), ("%d", "%p"), ("%acc", "%in")):
        body = body.replace(old, new)
    text = HEAD + FOR + LOADS + inner + body + "    }\n" + DOT.replace("%acc", "%q") + TAIL
    outer = explained(read(text, text)["loop#1"])
    assert outer.unpipelined_reason == "contains another loop: only innermost loops are pipelined"
    assert outer.evidence == (Evidence(Stage.TTIR, line_of(text, "%q = scf.for")),)


def test_a_load_under_a_branch_is_not_pipelined() -> None:
    text = MATMUL.replace(
        "      %v = tt.load %y : tensor<64x64x!tt.ptr<f16>>\n",
        """      %v = scf.if %b -> (tensor<64x64xf16>) {
        %l = tt.load %y : tensor<64x64x!tt.ptr<f16>>
        scf.yield %l : tensor<64x64xf16>
      } else {
        scf.yield %u : tensor<64x64xf16>
      }
""",
    )
    loads = [load for item in form_of(text).rounds for load in item]
    assert [load.is_conditional for load in loads] == [False, True]
    # The value still reaches the dot, through what the branch yields.
    assert [load.levels for load in loads] == [frozenset({0}), frozenset({0})]


def test_a_load_that_addresses_a_dot_s_load_is_one_level_up() -> None:
    text = MATMUL.replace(
        "      %v = tt.load %y",
        """      %k = tt.load %y : tensor<64x64x!tt.ptr<i32>>
      %at = tt.addptr %y, %k : tensor<64x64x!tt.ptr<f16>>, tensor<64x64xi32>
      %v = tt.load %at""",
    )
    levels = {load.line: load.levels for item in form_of(text).rounds for load in item}
    assert levels == {
        line_of(text, "%u = tt.load"): frozenset({0}),
        line_of(text, "%k = tt.load"): frozenset({1}),
        line_of(text, "%v = tt.load"): frozenset({0}),
    }


def test_the_causes_of_some_loads_are_noted_where_others_have_none() -> None:
    """With two stages there is none between an index and the load that it addresses."""
    text = MATMUL.replace(
        "      %v = tt.load %y",
        """      %k = tt.load %y : tensor<64x64x!tt.ptr<i32>>
      %at = tt.addptr %y, %k : tensor<64x64x!tt.ptr<f16>>, tensor<64x64xi32>
      %v = tt.load %at""",
    )
    found = explained(only(text, text), num_stages=2)
    assert found.unpipelined_reason is None
    assert found.notes == (
        "k addresses loads of a dot, and num_stages 2 has no stage for it",
        "no cause was found in the IR",
    )


def test_loads_of_a_loop_whose_dot_takes_none_of_them_feed_no_dot() -> None:
    text = MATMUL.replace("tt.dot %u, %v, %acc :", "tt.dot %x, %x, %acc :").replace(
        "scf.yield %d :",
        "%e = arith.mulf %u, %v : tensor<64x64xf16>\n"
        "      %g = arith.extf %e : tensor<64x64xf16> to tensor<64x64xf32>\n"
        "      %h = arith.addf %d, %g : tensor<64x64xf32>\n      scf.yield %h :",
    )
    found = explained(only(text, text))
    assert (
        found.unpipelined_reason
        == "u feeds no operand A or B of a dot in the loop; v feeds no operand A or B of a dot in the loop"
    )
    lines = [line_of(text, "%u = tt.load"), line_of(text, "%v = tt.load")]
    assert found.evidence == tuple(Evidence(Stage.TTIR, line) for line in lines)


def test_more_buffers_than_a_block_can_have_are_noted() -> None:
    """Two allocations of two tiles of 256 · 64 · 8 bytes are 512 KiB; a block of sm_80 has 163."""
    wide = PIPELINED.replace("64x64xf16, #shared", "256x64xf64, #shared").replace(
        "2x64x64xf16, #shared", "2x256x64xf64, #shared"
    )
    size = 2 * 2 * 256 * 64 * 8
    found = explained(only(MATMUL, wide))
    assert found.notes == (f"its buffers take {size} bytes, but a block of sm_80 has {163 * 1024}",)


def test_a_load_added_to_the_sum_feeds_no_dot() -> None:
    """The accumulator is a dot's operand too, but no load is pipelined for it."""
    text = MATMUL.replace(
        "      scf.yield %d",
        "      %z = tt.load %x : tensor<64x64x!tt.ptr<f32>>\n"
        "      %e = arith.addf %d, %z : tensor<64x64xf32>\n      scf.yield %e",
    )
    found = {load.line: load.levels for item in form_of(text).rounds for load in item}
    assert found[line_of(text, "%z = tt.load")] == frozenset()


def test_a_value_handed_on_as_it_came_reaches_over_two_iterations() -> None:
    """%old takes what %new was: in the next iteration it is two iterations old."""
    text = (
        MATMUL.replace("iter_args(%acc = %zero) -> (tensor<64x64xf32>)",
                       "iter_args(%acc = %zero, %old = %zero, %new = %zero) -> "
                       "(tensor<64x64xf32>, tensor<64x64xf32>, tensor<64x64xf32>)")
        .replace("%r = scf.for", "%r:3 = scf.for")
        .replace("scf.yield %d :", "%s = arith.addf %d, %old : tensor<64x64xf32>\n"
                 "      scf.yield %s, %new, %d : tensor<64x64xf32>, tensor<64x64xf32>,")
    )  # fmt: skip
    assert form_of(text).unchanged_value_line == line_of(text, "scf.yield")
    assert form_of(MATMUL).unchanged_value_line is None
    assert (
        explained(only(text, text)).unpipelined_reason
        == "a loop-carried value is passed on unchanged, so a dependence spans two iterations"
    )


@pytest.mark.parametrize(("per_thread", "cause"), [(1, True), (2, False)])
def test_a_thread_that_holds_less_than_four_bytes_side_by_side_cannot_copy(per_thread: int, cause: bool) -> None:
    """f16: one element is 16 bits, two are the 32 that the smallest cp.async moves."""
    layout = f"#ttg.blocked<{{sizePerThread = [1, {per_thread}], threadsPerWarp = [1, 32], order = [1, 0]}}>"
    place = 'loc("k.py":{}:3)'
    lines = MATMUL.split("\n")
    located = "\n".join(f"{text} {place.format(n)}" if " = t" in text else text for n, text in enumerate(lines))
    laid_out = f"#b = {layout}\n" + located.replace("x!tt.ptr<f16>> loc", "x!tt.ptr<f16>, #b> loc")
    found = explained(only(located, laid_out))
    if cause:
        assert found.unpipelined_reason is not None
        assert "is 16 bits wide, but an asynchronous copy needs at least 32" in found.unpipelined_reason
        assert found.evidence[1] == Evidence(Stage.TTGIR, line_of(laid_out, "%u = tt.load"))
    else:
        assert (found.unpipelined_reason, found.notes) == (None, ("no cause was found in the IR",))


LOCATIONS = """#loc1 = loc("k.py":5:8)
#loc2 = loc("k.py":6:8)
#loc3 = loc("k.py":7:8)
#loc4 = loc("k.py":4:4)
"""


def located(text: str) -> str:
    """The same with places: loads and copies of a and b at lines of their own, dot and scaling at one."""
    marks = {"%x": "#loc1", "%y": "#loc2", "tt.dot": "#loc3", "arith.mulf": "#loc3", "scf.for": "#loc4"}
    lines = []
    for line in text.splitlines():
        mark = next((place for word, place in marks.items() if word in line), None)
        plain = mark is None or line.endswith("{") or "tt.func" in line
        lines.append(line if plain else f"{line} loc({mark})")
    return "\n".join(lines).replace("    }\n    tt.return", "    } loc(#loc4)\n    tt.return", 1) + "\n" + LOCATIONS


def test_a_matrix_operation_peeled_in_front_of_the_loop_takes_one_off_though_its_line_also_scales() -> None:
    """sm_100: three tiles are copied in front of the loop, and the first product is begun there.

    `acc = dot(a, b) * scale` is one line. Behind the pipeliner the scaling of a product stands in front of the
    next one, so program order would take the one for the other.
    """
    scaled = """      %d = tt.dot %u, %v, %zero : tensor<64x64xf16> * tensor<64x64xf16> -> tensor<64x64xf32>
      %e = arith.mulf %d, %acc : tensor<64x64xf32>
      scf.yield %e : tensor<64x64xf32>
"""
    ttir = located(HEAD + FOR + LOADS + scaled + TAIL)
    front = "".join(
        copied("%x", "%bu", slot, f"a{n}") + copied("%y", "%bv", slot, f"b{n}")
        for n, slot in enumerate(("%c0", "%c1", "%n"))
    )
    tiles = TILES.replace("<2x", "<3x")
    products = "%{0} = tt.dot %{1}u, %{1}v, %zero : tensor<64x64xf16> * tensor<64x64xf16> -> tensor<64x64xf32>\n"

    def read_tiles(name: str, slot: str) -> str:
        return "".join(
            f"      %{name}s{v} = ttg.memdesc_index %b{v}[{slot}] : {tiles} -> {TILE}\n"
            f"      %{name}{v} = ttg.local_load %{name}s{v} : {TILE} -> tensor<64x64xf16>\n"
            for v in "uv"
        )

    ttgir = located(
        HEAD
        + f"    %bu = ttg.local_alloc : () -> {tiles}\n    %bv = ttg.local_alloc : () -> {tiles}\n"
        + front.replace(TILES, tiles)
        + read_tiles("p", "%c0")
        + "      "
        + products.format("first", "p")
        + FOR.replace("%acc = %zero", "%acc = %first")
        + "      %e = arith.mulf %acc, %acc : tensor<64x64xf32>\n"
        + "      %w = ttg.async_wait {num = 2 : i32}\n"
        + read_tiles("q", "%i")
        + "      "
        + products.format("d", "q")
        + (copied("%x", "%bu", "%i", "g") + copied("%y", "%bv", "%i", "h")).replace(TILES, tiles)
        + "      scf.yield %d : tensor<64x64xf32>\n    }\n"
        + "    tt.return\n  }\n}\n"
    )
    found = explained(only(ttir, ttgir))
    assert (found.distance, found.iterations_in_flight, found.prologue) == (2, 1, 3)
    assert not any("differ by one" in note for note in found.notes)


@pytest.mark.parametrize(("tiles", "is_told"), [(4, False), (5, True)])
def test_buffers_that_just_fit_a_block_are_not_told_of(tiles: int, is_told: bool) -> None:
    # 2 allocations × 4 tiles × 64×64 f16 of 8192 bytes: the 65536 that a block of sm_75 has
    wider = PIPELINED.replace("<2x64x64xf16", f"<{tiles}x64x64xf16")
    found = explained(only(MATMUL, wider), target="sm_75")
    assert any("a block of" in note for note in found.notes) is is_told


def test_allocations_of_unequal_numbers_of_tiles_are_told() -> None:
    """%bu has two tiles and %bv three."""
    three = TILES.replace("<2x", "<3x")
    lines = [line.replace(TILES, three) if "%bv" in line else line for line in PIPELINED.split("\n")]
    found = explained(only(MATMUL, "\n".join(lines)))
    assert (found.buffers, found.notes) == (3, ("its buffers hold 2 to 3 tiles",))
