"""What a pipeliner asks of a loop, read by eye from tensor-level IR."""

from __future__ import annotations

import pytest
from handwritten import made, tensor_code

from artifact_inspector.analysis.order.reference_regions import find_reference
from artifact_inspector.analysis.order.regions import find_regions
from artifact_inspector.analysis.overlap.loop_properties import LoopProperties, find_loop_properties

T, P = "tensor<16x16xf16>", "tensor<16x16x!tt.ptr<f16>>"
ACC = "tensor<16x16xf32>"
HEAD = f"%x: {P}, %y: {P}, %n: i32, %b: i1, %z: {ACC}, %t: {T}, %f: tensor<16x16xi32>"
DOT = f"%d = tt.dot %u, %v, %acc : {T} * {T} -> {ACC}"


def forms(body: str, *, exact: bool = True) -> list[LoopProperties | None]:
    """Of each loop, in execution order; the first operation stands in line 3."""
    code = tensor_code(body, head=HEAD)
    reference = find_reference(code)
    regions = find_regions(code, reference, exact=exact)
    return [find_loop_properties(code, region) for region in regions if region.loop is not None]


def form(body: str, *, exact: bool = True) -> LoopProperties:
    (found,) = forms(body, exact=exact)
    assert found is not None
    return found


def loop(body: str, bounds: str = "%n to %n step %n", attributes: str = "") -> str:
    return f"""
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c3 = arith.constant 3 : i32
    %c10 = arith.constant 10 : i32
    %m2 = arith.constant -2 : i32
    %r = scf.for %i = {bounds} iter_args(%acc = %z) -> ({ACC})  : i32 {{
{body}
      scf.yield %d : {ACC}
    }}{attributes}
"""


MATMUL = f"      %u = tt.load %x : {P}\n      %v = tt.load %y : {P}\n      {DOT}"


def test_a_counted_loop_is_told_with_the_line_where_it_begins() -> None:
    found = form(loop(MATMUL))
    assert (found.line, found.is_counted, found.inner_loop_line, found.unchanged_value_line) == (8, True, None, None)
    assert found.requested_stages is None


def test_the_stages_that_a_loop_asks_for_itself_are_read() -> None:
    assert form(loop(MATMUL, attributes=" {tt.num_stages = 4 : i32}")).requested_stages == 4


@pytest.mark.parametrize(
    ("bounds", "trips"),
    [
        ("%c0 to %c10 step %c1", 10), ("%c0 to %c10 step %c3", 4), ("%c1 to %c10 step %c3", 3),
        ("%c10 to %c10 step %c1", 0), ("%c10 to %c0 step %c1", 0), ("%c0 to %n step %c1", None),
        ("%n to %c10 step %c1", None), ("%c0 to %c10 step %c0", None), ("%c0 to %c10 step %m2", None),
        ("%c0 to %c10 step %n", None), ("%m2 to %c10 step %c3", 4),
    ],
)  # fmt: skip
def test_trips_are_counted_where_the_bounds_are_constants(bounds: str, trips: int | None) -> None:
    assert form(loop(MATMUL, bounds)).trip_count == trips


def test_a_while_loop_has_no_bounds() -> None:
    found = form(f"""
        %r = scf.while (%acc = %z) : ({ACC}) -> {ACC} {{
          scf.condition(%b) %acc : {ACC}
        }} do {{
        ^bb0(%acc: {ACC}):
          %u = tt.load %x : {P}
          %v = tt.load %y : {P}
          {DOT}
          scf.yield %d : {ACC}
        }}
    """)
    assert (found.is_counted, found.trip_count) == (False, None)


def test_a_loop_inside_is_told_by_its_line() -> None:
    outer, inner = forms(f"""
        scf.for %j = %n to %n step %n  : i32 {{
          %e = arith.addi %n, %n : i32
          %r = scf.for %i = %n to %n step %n iter_args(%acc = %z) -> ({ACC})  : i32 {{
            %u = tt.load %x : {P}
            {DOT.replace("%v", "%t")}
            scf.yield %d : {ACC}
          }}
        }}
    """)
    assert outer is not None
    assert inner is not None
    assert (outer.line, outer.inner_loop_line, inner.line, inner.inner_loop_line) == (3, 5, 5, None)


def levels(body: str) -> list[set[int]]:
    (loads,) = form(loop(body)).rounds
    return [set(load.levels) for load in loads]


def test_a_load_that_feeds_a_dot_is_at_level_0_and_one_that_addresses_it_at_1() -> None:
    found = form(
        loop(f"""      %k = tt.load %y : {P}
      %o = arith.extui %k : {T} to tensor<16x16xi32>
      %a = tt.addptr %x, %o : {P}, tensor<16x16xi32>
      %u = tt.load %a : {P}
      {DOT.replace("%v", "%t")}""")
    )
    by_line = {load.line: set(load.levels) for item in found.rounds for load in item}
    assert by_line == {9: {1}, 12: {0}}


def test_the_accumulator_is_no_operand_that_loads_are_pipelined_for() -> None:
    assert levels(f"""      %u = tt.load %x : {P}
      %q = tt.load %y : {P}
      %w = arith.extf %q : {T} to {ACC}
      %d = tt.dot %u, %t, %w : {T} * {T} -> {ACC}""") == [{0}, set()]


def test_an_operand_comes_through_the_result_of_a_branch() -> None:
    found = form(
        loop(f"""      %s = scf.if %b -> ({T}) {{
        %u = tt.load %x : {P}
        scf.yield %u : {T}
      }} else {{
        scf.yield %t : {T}
      }}
      %d = tt.dot %s, %t, %acc : {T} * {T} -> {ACC}""")
    )
    ((load,),) = found.rounds
    assert (set(load.levels), load.is_conditional) == ({0}, True)


def test_a_load_of_the_body_itself_runs_in_every_iteration() -> None:
    loads = [load for item in form(loop(MATMUL)).rounds for load in item]
    assert [load.is_conditional for load in loads] == [False, False]
    assert [load.line for load in loads] == [9, 10]
    assert [load.label for load in loads] == ["u", "v"]


def test_a_load_behind_a_branch_that_closes_again_runs_in_every_iteration() -> None:
    found = form(
        loop(f"""      scf.if %b {{
        tt.store %y, %t : {P}
      }}
      %u = tt.load %x : {P}
      {DOT.replace("%v", "%t")}""")
    )
    ((load,),) = found.rounds
    assert not load.is_conditional


def test_rounds_are_told_at_the_stage_that_they_were_read_from_alone() -> None:
    assert form(loop(MATMUL), exact=False).rounds == ()


def carrying(yielded: str) -> LoopProperties:
    return form(f"""
        %r:2 = scf.for %i = %n to %n step %n iter_args(%acc = %z, %old = %t) -> ({ACC}, {T})  : i32 {{
          %u = tt.load %x : {P}
          %d = tt.dot %u, %old, %acc : {T} * {T} -> {ACC}
          scf.yield {yielded} : {ACC}, {T}
        }}
    """)


def test_a_value_handed_on_as_it_came_is_older_than_one_iteration() -> None:
    assert carrying("%d, %u").unchanged_value_line is None
    assert carrying("%d, %old").unchanged_value_line is None  # in its own place it never changes
    swapped = form(f"""
        %r:3 = scf.for %i = %n to %n step %n iter_args(%acc = %z, %one = %t, %two = %t) -> ({ACC}, {T}, {T})  : i32 {{
          %u = tt.load %x : {P}
          %d = tt.dot %two, %t, %acc : {T} * {T} -> {ACC}
          scf.yield %d, %u, %one : {ACC}, {T}, {T}
        }}
    """)
    assert swapped.unchanged_value_line == 6


def test_blocks_that_go_round_without_an_operation_of_their_own_have_no_form() -> None:
    code = made("L3 F4", "L5 F6", "S7", to={1: (1, 2)})
    (region,) = (region for region in find_regions(code, (), exact=False) if region.loop is not None)
    assert find_loop_properties(code, region) is None
