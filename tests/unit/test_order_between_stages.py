"""Every verdict, on pairs of small modules: the program, and what a later stage made of it.

Each operation stands at a line of its own, given as `@n`; the second module is judged by the rounds of
the first.
"""

import re

import pytest
from handwritten import code_of, prepared

from artifact_inspector.analysis.order.placement import PreviousStage
from artifact_inspector.analysis.order.reference_regions import find_reference
from artifact_inspector.analysis.order.region_facts import RegionFacts, signature_of
from artifact_inspector.analysis.order.regions import find_regions
from artifact_inspector.analysis.order.verdict import judge_region
from artifact_inspector.formats.mlir.parser import FORMAT
from artifact_inspector.model import Function, Stage
from artifact_inspector.model.text import SourceText

T, P = "tensor<64xf32>", "tensor<64x!tt.ptr<f32>>"
LOAD_A, LOAD_B = f"%a = tt.load %p : {P} @1", f"%b = tt.load %q : {P} @3"
DOT_A, DOT_B = f"%x = tt.dot %a, %a, %z : {T} @2", f"%y = tt.dot %b, %b, %z : {T} @4"
COPY = f"ttg.async_copy_global_to_local %p, %z : {P} @1"
INNER = ("scf.for %j = %n to %n step %n : i32 {", LOAD_A, DOT_A, "scf.yield @8", "} @8")
TWO_ROUNDS = (LOAD_A, DOT_A, LOAD_B, DOT_B)


def module(lines: tuple[str, ...], stage: Stage) -> Function:
    body = "\n".join(re.sub(r" @(\d+)$", r' loc("k.py":\1:1)', line) for line in lines)
    text = f'module {{\n tt.func public @k(%p: {P}, %q: {P}, %z: {T}, %n: i32) {{\n{body}\n tt.return\n }} loc("k.py":90:1)\n}}\n'
    return FORMAT.parse(SourceText("k", text), stage).functions[0]


def looped(*lines: str, before: tuple[str, ...] = (), after: tuple[str, ...] = ()) -> tuple[str, ...]:
    return (*before, "scf.for %i = %n to %n step %n : i32 {", *lines, "scf.yield @9", "} @9", *after)


def partitions(*bodies: tuple[str, ...]) -> tuple[str, ...]:
    """A warp-specialised kernel of these partitions, the default one first."""
    first, *others = bodies
    lines = ["ttg.warp_specialize(%p)", "default {", *first, "ttg.warp_yield", "}"]
    for number, body in enumerate(others):
        end = "}" if number < len(others) - 1 else "} : (i32) -> ()"
        lines += [f"partition{number}(%p: i32) num_warps(1) {{", *body, "ttg.warp_return", end]
    return tuple(lines)


def facts(program: tuple[str, ...], later: tuple[str, ...] | None = None) -> dict[str, RegionFacts]:
    """Facts of every region at the later stage (at the first, when there is no later one)."""
    first = module(program, Stage.TTIR)
    reference = find_reference(prepared(first, Stage.TTIR))
    memories: dict[str, PreviousStage] = {}
    found: dict[str, RegionFacts] = {}
    for function in (first,) if later is None else (first, module(later, Stage.TTGIR)):
        exact = function is first
        code = prepared(function, Stage.TTIR if exact else Stage.TTGIR)
        found = {}
        for region in find_regions(code, reference, exact=exact):
            found[region.id], memories[region.id] = judge_region(code, region, memories.get(region.id))
    return found


def straight(program: tuple[str, ...], later: tuple[str, ...] | None = None) -> RegionFacts:
    return facts(program, later)["straight"]


def loop(program: tuple[str, ...], later: tuple[str, ...] | None = None) -> RegionFacts:
    return facts(program, later)["loop@9"]


def test_load_compute_load_compute_is_interleaved() -> None:
    found = straight(TWO_ROUNDS)
    assert (found.verdict, [(p.issued_before, p.issued_after) for p in found.pairs], found.basis) == (
        "interleaved",
        [(0, 1)],
        "source",
    )


def test_load_load_compute_compute_is_clustered() -> None:
    found = straight(TWO_ROUNDS, (LOAD_A, LOAD_B, DOT_A, DOT_B))
    assert (found.verdict, [(p.issued_before, p.issued_after) for p in found.pairs]) == ("clustered", [(1, 0)])


def test_a_statement_that_became_several_loads_counts_with_their_share() -> None:
    halves = (f"%b = tt.load %q : {P} @3", LOAD_A, DOT_A, f"%c = tt.load %q : {P} @3", DOT_B)
    found = straight(TWO_ROUNDS, halves)
    assert (found.verdict, [(p.issued_before, p.issued_after) for p in found.pairs]) == ("mixed", [(0.5, 0.5)])
    assert found.phrase == "mixed (f=0.5 g=0.5)"


def test_three_rounds_of_which_two_were_gathered_are_grouped() -> None:
    third = (f"%c = tt.load %q : {P} @5", f"%w = tt.dot %c, %c, %z : {T} @6")
    found = straight((*TWO_ROUNDS, *third), (LOAD_A, LOAD_B, DOT_A, DOT_B, *third))
    assert found.phrase == "grouped {1 2}{3}"


def test_one_round_in_a_straight_line_is_single() -> None:
    assert straight((LOAD_A, DOT_A)).verdict == "single"


def test_one_round_in_a_loop_is_serial() -> None:
    assert loop(looped(LOAD_A, DOT_A)).verdict == "serial"


def test_several_rounds_of_one_iteration_are_judged_as_in_a_straight_line() -> None:
    assert loop(looped(*TWO_ROUNDS)).verdict == "interleaved"
    assert loop(looped(*TWO_ROUNDS), looped(LOAD_A, LOAD_B, DOT_A, DOT_B)).verdict == "clustered"


def test_copies_in_front_of_a_loop_are_iterations_ahead() -> None:
    found = loop(looped(LOAD_A, DOT_A), looped(DOT_A, LOAD_A, before=(LOAD_A, LOAD_A)))
    assert (found.phrase, found.copy_position) == ("pipelined(2)", "after")


def test_what_an_iteration_loads_for_itself_does_not_say_where_copies_stand() -> None:
    both = f"%x = tt.dot %a, %b, %z : {T} @2"
    found = loop(looped(LOAD_A, LOAD_B, both), looped(LOAD_B, both, LOAD_A, before=(LOAD_A,)))
    assert (found.phrase, found.copy_position) == ("partly pipelined(1)", "after")


def test_a_compute_peeled_in_front_takes_one_iteration_off() -> None:
    found = loop(looped(LOAD_A, DOT_A), looped(DOT_A, LOAD_A, before=(LOAD_A, LOAD_A, DOT_A)))
    assert found.phrase == "pipelined(1)"


def test_a_peeled_iteration_counts_once_for_every_round_of_a_line_that_the_program_unrolled() -> None:
    # A convolution on sm_100: its taps (`tl.static_range`) are rounds of one line, all peeled once.
    taps = [(f"%a{n} = tt.load %p : {P} @1", f"%x{n} = tt.dot %a{n}, %a{n}, %z : {T} @2") for n in range(3)]
    loads, dots = tuple(load for load, _ in taps), tuple(dot for _, dot in taps)
    program = tuple(line for tap in taps for line in tap)
    found = loop(looped(*program), looped(*dots, *loads, before=(*loads, *loads, *dots, *loads)))
    assert found.phrase == "pipelined(2)"


def test_a_loop_is_partly_pipelined_when_one_load_stays_behind() -> None:
    both = f"%x = tt.dot %a, %b, %z : {T} @4"
    found = loop(looped(LOAD_A, LOAD_B, both), looped(LOAD_B, both, LOAD_A, before=(LOAD_A,)))
    assert found.phrase == "partly pipelined(1)"
    assert any("k.py:3" in note for note in found.notes)


def test_distances_that_differ_are_printed_as_a_range() -> None:
    both = f"%x = tt.dot %a, %b, %z : {T} @4"
    found = loop(looped(LOAD_A, LOAD_B, both), looped(both, LOAD_A, LOAD_B, before=(LOAD_A, LOAD_A, LOAD_B)))
    assert (found.phrase, found.distance) == ("pipelined(1–2)", (1, 2))


def test_a_body_of_equal_copies_is_judged_as_one() -> None:
    found = loop(looped(*TWO_ROUNDS), looped(*TWO_ROUNDS, *TWO_ROUNDS))
    assert found.phrase == "interleaved ×2"
    assert [(p.issued_before, p.issued_after) for p in found.pairs] == [(0, 1)]


def test_a_loop_that_is_gone_from_the_stage_was_unrolled() -> None:
    found = loop(looped(LOAD_A, DOT_A), (LOAD_A, DOT_A, LOAD_A, DOT_A))
    assert (found.verdict, found.signature) == ("unrolled", "L1 M1 L1 M1")


def test_a_region_without_computes_left_is_gone() -> None:
    found = straight((LOAD_A, f"%m = arith.mulf %a, %a : {T} @2", f"tt.store %q, %m : {P} @3"), (f"{LOAD_A}",))
    assert found.verdict == "gone"


def test_loads_in_one_partition_and_computes_in_another_are_warp_specialised() -> None:
    found = facts(looped(LOAD_A, DOT_A), partitions(looped(DOT_A), looped(COPY)))
    assert found["loop@9"].verdict == found["loop@9/loads"].verdict == "warp-specialised"
    assert found["loop@9"].matrix == 1
    assert found["loop@9/loads"].signature == "A1"


def test_the_loops_of_partitions_have_the_same_names_in_whatever_order_they_stand() -> None:
    scale = f"%m = arith.mulf %a, %a : {T} @2"
    shift = f"%s = arith.addf %a, %m : {T} @3"
    dot = f"%x = tt.dot %s, %a, %z : {T} @4"
    program = looped(LOAD_A, scale, shift, dot)
    parts = [looped(scale), looped(COPY), looped(dot), looped(shift)]
    for order in ((0, 1, 2, 3), (2, 3, 1, 0), (3, 0, 2, 1)):
        later = partitions(*(parts[place] for place in order))
        found = facts(program, later)
        signatures = {name: region.signature for name, region in found.items() if region.kind == "loop"}
        assert signatures == {"loop@9": "M1", "loop@9/2": "F1", "loop@9/3": "F1", "loop@9/loads": "A1"}
        # In the order of the lines that they compute on: the multiply at 2 before the add at 3.
        first, last = found["loop@9/2"].lines
        assert first <= later.index(scale) + 3 <= last  # the body begins at the third line of the text


def test_a_flattened_loop_is_specialised_where_its_loads_and_computes_stand_in_different_partitions() -> None:
    # The inner loop at 8 is flattened into the one at 9, and all that is left closes at 9.
    program = looped(*INNER, f"tt.store %q, %z : {P} @5")
    store = f"tt.store %q, %z : {P} @5"
    wait = f"ttng.wait_barrier %p, %n : {P} @5"
    apart = facts(program, partitions(looped(wait, store), looped(DOT_A), looped(COPY)))
    assert apart["loop@8"].verdict == apart["loop@8/loads"].verdict == "warp-specialised"
    assert (apart["loop@8"].signature, apart["loop@9"].signature) == ("M1", "W1 S1")
    with_store = facts(program, partitions(looped(DOT_A, store), looped(COPY)))
    assert with_store["loop@8"].verdict == with_store["loop@8/loads"].verdict == "warp-specialised"
    assert with_store["loop@8"].matrix == 1


def test_a_loop_dissolved_into_loops_apart_is_not_called_unrolled() -> None:
    # The loop around it has a round of its own, so that nothing tells which of the two loops was whose.
    program = looped(LOAD_B, DOT_B, *INNER)
    copy_b = COPY.replace("@1", "@3")
    apart = facts(program, partitions(looped(DOT_A, DOT_B), looped(COPY, copy_b)))
    assert apart["loop@8"].verdict == "unknown"
    assert any("its loads and computes are in different loops" in note for note in apart["loop@8"].notes)
    together = facts(program, looped(LOAD_B, DOT_B, LOAD_A, DOT_A))
    assert together["loop@8"].verdict == "unrolled"


PTX_OF_A_HISTOGRAM = """
.version 8.7
.target sm_90
.address_size 64
.visible .entry k()
.reqntid 128
{
.loc 1 1 1
ld.global.b32 %r1, [%rd1];
.loc 1 3 1
atom.shared.add.u32 %r2, [%r3], %r1;
bar.sync 0;
ld.shared.b32 %r4, [%r5];
st.global.b32 [%rd2], %r4;
ret;
}
.file 1 "k.py"
"""


def test_a_histogram_made_by_atomics_in_shared_memory_is_not_gone() -> None:
    program = (LOAD_A, f"%h = tt.histogram %a : {T} -> {T} @2", f"tt.store %q, %h : {P} @3")
    first = module(program, Stage.TTIR)
    reference = find_reference(prepared(first, Stage.TTIR))
    for text, verdict in (
        (PTX_OF_A_HISTOGRAM, "single"),
        (PTX_OF_A_HISTOGRAM.replace("atom.shared", "atom.global"), "gone"),
    ):
        code = code_of(Stage.PTX, text)
        (region,) = find_regions(code, reference, exact=False)
        found, _ = judge_region(code, region, None)
        assert found.verdict == verdict


def test_copies_and_code_without_loads_have_no_order() -> None:
    copy = straight((LOAD_A, f"tt.store %q, %a : {P} @2"))
    assert (copy.verdict, copy.unassigned) == ("no-compute", ("k.py:1",))
    assert straight((f"tt.store %q, %z : {P} @2",)).verdict == "no-loads"


def test_a_round_whose_load_is_nowhere_is_unknown_and_says_so() -> None:
    found = straight(TWO_ROUNDS, (LOAD_A, DOT_A, DOT_B.replace("%b", "%a")))
    assert found.verdict == "unknown"
    assert any("no load found" in note for note in found.notes)


def test_a_load_after_the_loop_that_its_round_needs_not_is_interleaved_with_it() -> None:
    inside = f"%x = tt.dot %a, %a, %z : {T} @5"
    bias = (f"%b = tt.load %q : {P} @7", f"%y = tt.dot %b, %b, %z : {T} @8")
    program = (LOAD_A, *looped(inside, after=bias))
    assert straight(program).verdict == "interleaved"
    assert straight(program, (bias[0], LOAD_A, *looped(inside), bias[1])).verdict == "clustered"


def test_contracted_computes_stand_at_their_consumers_place() -> None:
    multiply, add = f"%m = arith.mulf %a, %a : {T} @2", f"%s = arith.addf %m, %z : {T} @5"
    program = (LOAD_A, multiply, add, f"tt.store %q, %s : {P} @6", LOAD_B, DOT_B)
    fused = (LOAD_A, f"%s = math.fma %a, %a, %z : {T} @5", f"tt.store %q, %s : {P} @6", LOAD_B, DOT_B)
    found = straight(program, fused)
    assert found.verdict == "interleaved"
    assert any("contracted" in note for note in found.notes)


def test_statements_that_share_a_line_are_told_apart_by_what_takes_their_data() -> None:
    # Two rounds of one source line, as `tl.static_range` leaves them.
    def step(n: int) -> tuple[str, str]:
        return f"%a{n} = tt.load %p : {P} @1", f"%x{n} = tt.dot %a{n}, %a{n}, %z : {T} @2"

    (first, dot), (second, other) = step(1), step(2)
    assert straight((first, dot, second, other)).verdict == "interleaved"
    assert straight((first, dot, second, other), (first, second, dot, other)).verdict == "clustered"


@pytest.mark.parametrize("lines", [(), (" @0",)])
def test_without_lines_dataflow_decides_and_the_basis_says_so(lines: tuple[str, ...]) -> None:
    bare = tuple(re.sub(r" @\d+$", "", line) for line in TWO_ROUNDS)
    later = tuple(line + "".join(lines) for line in bare)
    found = straight(bare, later)
    assert (found.verdict, found.basis) == ("interleaved", "dataflow")


def test_the_signature_counts_runs_of_events() -> None:
    function = module((LOAD_A, LOAD_B, "%i = arith.addi %n, %n : i32", DOT_A), Stage.TTIR)
    assert signature_of(list(function.instructions)) == "L2 M1"


def test_each_round_loses_only_what_it_consumes_in_front_itself() -> None:
    # Attention on sm_100: two products of K are peeled, one of V.
    product_a, product_b = f"%x = tt.dot %a, %a, %z : {T} @2", f"%y = tt.dot %b, %b, %z : {T} @4"
    front = (LOAD_A, LOAD_B, product_a, LOAD_A, LOAD_B, LOAD_A, product_a, product_b)
    found = loop(looped(*TWO_ROUNDS), looped(product_a, product_b, LOAD_A, LOAD_B, before=front))
    assert found.phrase == "pipelined(1)"


def test_a_loop_without_loads_has_none_though_an_inner_loop_begins_in_it() -> None:
    inner = ("scf.for %j = %n to %n step %n : i32 {", LOAD_A, DOT_A, "scf.yield @8", "} @8")
    pipelined = (LOAD_A, "scf.for %j = %n to %n step %n : i32 {", DOT_A, LOAD_A, "scf.yield @8", "} @8")
    assert facts(looped(*inner))["loop@9"].verdict == "no-loads"
    found = facts(looped(*inner), looped(*pipelined))
    assert (found["loop@9"].verdict, found["loop@8"].phrase) == ("no-loads", "pipelined(1)")


def test_a_copy_that_bears_the_line_of_another_operation_is_taken_for_the_one_that_is_missing() -> None:
    # A pass that lowers `b.T` may put the copy of b at the line of the transposition.
    both, turned = f"%x = tt.dot %a, %t, %z : {T} @4", f"%t = tt.trans %b : {T} @5"
    program = looped(LOAD_A, LOAD_B, turned, both)
    found = loop(program, looped(LOAD_A, LOAD_B.replace("@3", "@5"), both.replace("%t", "%b")))
    assert (found.verdict, found.rounds[0].loads) == ("serial", 2)
