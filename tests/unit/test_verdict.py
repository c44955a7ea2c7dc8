"""The verdict on a region and what is remembered of it, on programs of a few lines and stages made of letters."""

from __future__ import annotations

from dataclasses import replace

import pytest
from handwritten import made, tensor_code

from artifact_inspector.analysis.flow.function_code import FunctionCode
from artifact_inspector.analysis.order.placement import PreviousStage
from artifact_inspector.analysis.order.reference_regions import ReferenceRegion, find_reference
from artifact_inspector.analysis.order.region_facts import RegionFacts
from artifact_inspector.analysis.order.regions import find_regions
from artifact_inspector.analysis.order.verdict import judge_region
from artifact_inspector.model import CopyPosition, OrderVerdict

T, P = "tensor<8xf32>", "tensor<8x!tt.ptr<f32>>"
HEAD = f"%q: {P}, %n: i32, %z: {T}, %o: {P}, %k: {P}"
# two rounds: lines 3 and 4, 6 and 7
TWO = f"""
    %a = tt.load %q : {P} @3
    %c = arith.mulf %a, %a : {T} @4
    tt.store %o, %c : {P} @5
    %b = tt.load %k : {P} @6
    %d = arith.mulf %b, %b : {T} @7
    tt.store %o, %d : {P} @8
"""
LOOP = f"""
    %r = scf.for %j = %n to %n step %n iter_args(%acc = %z) -> ({T})  : i32 {{
      %a = tt.load %q : {P} @22
      %b = tt.load %k : {P} @23
      %c = arith.mulf %a, %b : {T} @24
      %d = arith.addf %acc, %c : {T} @25
      scf.yield %d : {T}
    }} @21
    tt.store %o, %r : {P} @27
"""


def program(body: str = TWO) -> tuple[ReferenceRegion, ...]:
    return find_reference(tensor_code(body, head=HEAD))


def judged(
    code: FunctionCode,
    reference: tuple[ReferenceRegion, ...],
    before: PreviousStage | None = None,
    name: str = "straight",
) -> tuple[RegionFacts, PreviousStage]:
    (region,) = [found for found in find_regions(code, reference, exact=False) if found.id == name]
    return judge_region(code, region, before)


def facts(
    *blocks: str, body: str = TWO, name: str = "straight", to: dict[int, tuple[int, ...]] | None = None
) -> RegionFacts:
    return judged(made(*blocks, to=to), program(body), name=name)[0]


@pytest.mark.parametrize(
    ("letters", "verdict"),
    [
        ("L3 F4 S5 L6 F7 S8", OrderVerdict.INTERLEAVED),
        ("L3 L6 F4 S5 F7 S8", OrderVerdict.CLUSTERED),
        ("L3 L3 F4 L6 F4 L6 S5 F7 S8", OrderVerdict.MIXED),
        ("L3 F4 S5", OrderVerdict.UNKNOWN),
        ("I90 S5", OrderVerdict.GONE),
        ("L3 L6 S5 S8", OrderVerdict.GONE),
    ],
)
def test_two_rounds_are_judged_by_how_loads_and_computes_stand(letters: str, verdict: OrderVerdict) -> None:
    assert facts(letters).verdict is verdict


def test_what_is_missing_is_said_by_round_and_line() -> None:
    found = facts("L3 F4 S5")
    assert "round 2 (k.py:6): no load found at this stage" in found.notes
    assert "no compute" in facts("L3 F4 S5 L6").notes[-1]


def test_one_round_is_no_order() -> None:
    one = TWO.partition("%b =")[0]
    assert facts("L3 F4 S5", body=one).verdict is OrderVerdict.SINGLE
    loop = facts(".", "L22 L23 F24 F25 b21", "S27", to={1: (1, 2)}, body=LOOP, name="loop@21")
    assert (loop.verdict, loop.distance, loop.copy_position) == (OrderVerdict.SERIAL, None, None)


def test_code_without_loads_or_computes_is_told_as_that() -> None:
    stored = f"%a = tt.load %q : {P} @3\ntt.store %o, %a : {P} @5"
    assert facts("L3 S5", body=stored).verdict is OrderVerdict.NO_COMPUTE
    assert (
        facts("F3 S5", body=f"%a = arith.mulf %z, %z : {T} @3\ntt.store %o, %a : {P} @5").verdict
        is OrderVerdict.NO_LOADS
    )
    # loads that the program does not have there may be of other regions; without a program they are its own
    assert facts("L9", body=f"tt.store %o, %z : {P} @5").verdict is OrderVerdict.NO_LOADS
    assert judged(made("L9"), ())[0].verdict is OrderVerdict.NO_COMPUTE


def test_lines_signature_and_words_are_those_of_the_region() -> None:
    found = facts("L3 F4 S5 L6 F7 S8")
    assert (found.lines, found.signature, found.named_signature) == ((1, 6), "L1 F1 S1 L1 F1 S1", "L(a) F L(b) F")
    assert (found.matrix, found.fused_multiply_adds, found.unroll_factor, found.is_in_program) == (0, 0, 1, True)
    first, second = found.rounds
    assert (first.first_load, first.last_load, first.first_compute, first.last_compute) == (1, 1, 2, 2)
    assert (second.sources, second.names, second.distances) == (("k.py:6",), ("b",), (0,))


def test_an_empty_region_stands_at_the_line_of_its_function() -> None:
    assert judged(made(""), ())[0].lines == (1, 1)


AHEAD = {1: (1, 2)}


def test_a_loop_whose_loads_all_run_ahead_is_pipelined_and_one_with_some_partly() -> None:
    body = ("A22 A23", "F24 F25 A22 A23 b21", "S27")
    whole = facts(*body, to=AHEAD, body=LOOP, name="loop@21")
    assert (whole.verdict, whole.distance, whole.copy_position) == (OrderVerdict.PIPELINED, 1, CopyPosition.AFTER)
    assert [item.distances for item in whole.rounds] == [(1, 1)]
    part = facts("A22", "A23 F24 F25 A22 b21", "S27", to=AHEAD, body=LOOP, name="loop@21")
    assert (part.verdict, part.distance) == (OrderVerdict.PARTLY_PIPELINED, 1)
    assert part.notes == ("loaded in the iteration that uses it: b (k.py:23)",)


def test_copies_that_fit_no_iteration_leave_it_unknown() -> None:
    found = facts("A22", "F24 F25 A22 A22 A23 b21", "S27", to=AHEAD, body=LOOP, name="loop@21")
    assert (found.verdict, found.distance) == (OrderVerdict.UNKNOWN, None)


def test_a_loop_that_is_none_here_was_unrolled_or_is_gone() -> None:
    assert facts("L22 L23 F24 F25 S27", body=LOOP, name="loop@21").verdict is OrderVerdict.UNROLLED
    assert facts("I90 S27", body=LOOP, name="loop@21").verdict is OrderVerdict.GONE
    assert facts("S", body=LOOP, name="loop@21").verdict is OrderVerdict.UNROLLED  # no lines, and no loop at all


def test_without_lines_a_loop_that_is_not_matched_is_unknown() -> None:
    found = facts(".", "I b", ".", "I b", ".", to={1: (1, 2), 3: (3, 4)}, body=LOOP, name="loop#1".replace("#1", "@21"))
    assert found.verdict is OrderVerdict.UNKNOWN
    assert "no source lines to match by" in found.notes[0]


def test_a_loop_whose_loads_and_computes_stand_in_two_is_specialised() -> None:
    to = {1: (1, 2), 3: (3, 4)}
    found = facts(".", "A22 A23 b21", ".", "F24 F25 b21", "S27", to=to, body=LOOP, name="loop@21")
    assert found.verdict is OrderVerdict.WARP_SPECIALISED


# -- what changed since the stage before ---------------------------------------------------


def then(first: str, second: str) -> RegionFacts:
    reference = program()
    _, memory = judged(made(first), reference)
    return judged(made(second), reference, memory)[0]


def test_a_change_of_order_is_told_of_the_same_loads_and_computes() -> None:
    assert then("L3 F4 S5 L6 F7 S8", "L3 L6 F4 S5 F7 S8").order_changed is True
    assert then("L3 F4 S5 L6 F7 S8", "L3 F4 S5 L6 F7 S8").order_changed is False
    assert facts("L3 L6 F4 S5 F7 S8").order_changed is False  # nothing came before


def test_where_other_work_was_found_a_change_cannot_be_told() -> None:
    reference = program()
    _, memory = judged(made("L3 F4 S5 L6 F7 S8"), reference)
    assert memory.identities is not None
    code = made("L3 L6 F4 S5 F7 S8")
    fewer = replace(memory, identities=memory.identities[:1])
    found = judged(code, reference, fewer)[0]
    assert found.order_changed is None
    assert found.notes[-1] == "unknown whether the order has changed: the rounds differ"
    guessed = replace(memory, identities=(None, memory.identities[1]))
    assert "the loads and computes of round 1 are uncertain" in judged(code, reference, guessed)[0].notes[-1]
    one, two = memory.identities
    assert two is not None
    other = replace(memory, identities=(one, (frozenset({99}), two[1])))
    assert (
        "the loads found for round 2 differ from those of the previous stage"
        in judged(code, reference, other)[0].notes[-1]
    )
    third = replace(memory, identities=(one, (two[0], frozenset({99}))))
    assert (
        "the computes found for round 2 differ from those of the previous stage"
        in judged(code, reference, third)[0].notes[-1]
    )


def test_the_last_verdict_that_spoke_of_an_order_is_remembered() -> None:
    reference = program()
    _, first = judged(made("L3 F4 S5 L6 F7 S8"), reference)
    assert first.verdict is OrderVerdict.INTERLEAVED
    lost, second = judged(made("S5"), reference, first)
    assert lost.order_changed is False
    assert (second.verdict, second.identities) == (first.verdict, first.identities)
    assert judged(made("S5"), reference)[1].verdict is None


def test_what_a_stage_holds_is_remembered_by_statement_and_round() -> None:
    _, memory = judged(made("L3 L3 F4 S5 L6 F7 F7 S8"), program())
    assert sorted(memory.loads.values()) == [1, 2]
    assert memory.computes == {0: 1, 1: 2}
    assert set(memory.distances.values()) == {0}
    assert memory.unroll_factor == 1


# -- a file that is cut off ------------------------------------------------------------------


def truncated(code: FunctionCode) -> FunctionCode:
    return FunctionCode(code.function, replace(code.module, is_complete=False), code.language)


def test_of_a_part_nothing_is_told_that_rests_on_a_guess() -> None:
    def cut(letters: str, reference: tuple[ReferenceRegion, ...] = program(), home: int | None = None) -> RegionFacts:
        code = made(letters, home=home)
        return judged(truncated(code), reference)[0]

    assert cut("L3 F4 S5 L6 F7 S8").verdict is OrderVerdict.INTERLEAVED
    assert cut("L3 F4 S5 L6 F7 S8").notes == ("the file is truncated: missing parts may change the result",)
    assert cut("L3 L6 S5 S8").verdict is OrderVerdict.UNKNOWN  # its computes may stand in what is missing
    guessed = cut("L3 F4 S5 L1 F7 S8", home=1)  # a load that lost its line is taken for the second
    assert guessed.verdict is OrderVerdict.UNKNOWN
    assert guessed.pairs == ()
    assert cut("L3 F4", ()).verdict is OrderVerdict.UNKNOWN  # its loop may stand in what is missing


def test_rounds_of_alternative_arms_have_no_order() -> None:
    arms = f"""
        scf.if %b {{
          %a = tt.load %q : {P} @4
          %c = arith.mulf %a, %a : {T} @5
          tt.store %o, %c : {P} @6
        }} else {{
          %e = tt.load %k : {P} @8
          %f = arith.mulf %e, %e : {T} @9
          tt.store %o, %f : {P} @10
        }} @3
    """
    reference = find_reference(tensor_code(arms, head=HEAD + ", %b: i1"))
    found, _ = judged(made("b3", "L4 F5 S6", "L8 F9 S10", ".", to={0: (1, 2), 1: (3,), 2: (3,)}), reference)
    assert (found.verdict, found.exclusive) == (OrderVerdict.SINGLE, ((1, 2),))
    assert "they have no order: 1 and 2" in found.notes[0]


def test_the_line_that_is_what_it_was_has_not_changed_unless_that_cannot_be_told() -> None:
    reference = program()
    _, memory = judged(made("L3 F4 S5 L6 F7 S8"), reference)
    assert memory.identities is not None
    same = judged(made("L3 L6 F4 S5 F7 S8"), reference, replace(memory, event_sequence=_line("L3 L6 F4 S5 F7 S8")))[0]
    assert same.notes[-1:] == ("unknown whether the order has changed: the sequence of loads and computes is the same",)


def _line(letters: str) -> str:
    line = judged(made(letters), program())[1].event_sequence
    assert line is not None
    return line


def test_a_loop_that_is_not_in_what_is_left_of_a_file_is_unknown() -> None:
    code = made("L22 L23 F24 F25 S27")
    (found, _) = judged(truncated(code), program(LOOP), name="loop@21")
    assert found.verdict is OrderVerdict.UNKNOWN
    assert "the file is truncated and does not contain this loop" in found.notes
