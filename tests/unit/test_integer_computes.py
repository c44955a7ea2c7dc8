"""Rounds of integer work: what is a compute on integers, read by hand from a few operations."""

from __future__ import annotations

import pytest
from handwritten import indices_of, tensor_code

from artifact_inspector.analysis.flow.function_code import FunctionCode
from artifact_inspector.analysis.order.integer_computes import body_of, is_integer_reduction
from artifact_inspector.analysis.order.rounds import ProgramRound, find_rounds

T = "tensor<8xi32>"
P = "tensor<8x!tt.ptr<i32>>"
HEAD = f"%q: {P}, %n: i32, %z: {T}, %o: {P}"


def rounds(body: str) -> tuple[FunctionCode, tuple[ProgramRound, ...]]:
    code = tensor_code(body, head=HEAD)
    found = find_rounds(code)
    assert found is not None
    return code, found.rounds


COUNTED = f"""
    %r = scf.for %i = %n to %n step %n iter_args(%x = %z) -> ({T})  : i32 {{
      %a = tt.load %q : {P}
      %m = arith.cmpi eq, %a, %z : {T}
      %w = arith.extui %m : tensor<8xi1> to {T}
      %y = arith.addi %x, %w : {T}
      scf.yield %y : {T}
    }}
    tt.store %o, %r : {P}
"""


def test_a_count_that_a_loop_carries_on_is_an_anchor_and_the_comparison_takes_the_data_first() -> None:
    code, (only,) = rounds(COUNTED)
    assert [only.anchor] == indices_of(code, "addi")
    assert list(only.computes) == indices_of(code, "cmpi")
    assert [statement.index for statement in only.statements] == indices_of(code, "tt.load")


def test_a_count_that_nothing_stores_is_none() -> None:
    _, found = rounds(COUNTED.replace(f"tt.store %o, %r : {P}", ""))
    assert found == ()


def test_a_comparison_that_is_stored_is_a_compute() -> None:
    code, (only,) = rounds(f"""
        %a = tt.load %q : {P}
        %m = arith.cmpi eq, %a, %z : {T}
        %w = arith.extui %m : tensor<8xi1> to {T}
        tt.store %o, %w : {P}
    """)
    assert list(only.computes) == indices_of(code, "cmpi")
    assert [only.anchor] == indices_of(code, "tt.store")


def test_integers_that_are_only_added_are_moves() -> None:
    _, found = rounds(f"""
        %a = tt.load %q : {P}
        %w = arith.addi %a, %z : {T}
        tt.store %o, %w : {P}
    """)
    assert found == ()


def test_what_a_float_takes_is_no_work_of_integers() -> None:
    code, (only,) = rounds(f"""
        %a = tt.load %q : {P}
        %f = arith.sitofp %a : {T} to tensor<8xf32>
        %g = arith.mulf %f, %f : tensor<8xf32>
        %m = arith.cmpi eq, %a, %z : {T}
        %w = arith.extui %m : tensor<8xi1> to {T}
        tt.store %o, %g : tensor<8x!tt.ptr<f32>>
        tt.store %o, %w : {P}
    """)
    assert list(only.computes) == indices_of(code, "mulf")


REDUCTION = """
    %s = "tt.reduce"(%t) <{axis = 0 : i32}> ({
    ^bb0(%x: KIND, %y: KIND):
      %w = COMBINE %x, %y : KIND
      tt.reduce.return %w : KIND
    }) : (tensor<8xKIND>) -> KIND
"""


@pytest.mark.parametrize(("kind", "combine", "expected"), [("i32", "arith.addi", True), ("f32", "arith.addf", False)])
def test_a_reduction_is_one_of_integers_by_what_combines_two_elements(kind: str, combine: str, expected: bool) -> None:
    text = REDUCTION.replace("KIND", kind).replace("COMBINE", combine)
    code = tensor_code(text, head=f"%t: tensor<8x{kind}>")
    (reduction,) = indices_of(code, "tt.reduce")
    assert [code.function.instructions[i].opcode for i in body_of(code, reduction)] == [combine]
    assert is_integer_reduction(code, reduction) is expected


def test_an_operation_without_a_body_has_none() -> None:
    code, _ = rounds(COUNTED)
    (add,) = indices_of(code, "addi")
    assert body_of(code, add) == []
    assert not is_integer_reduction(code, add)


def test_a_sum_of_integers_is_its_own_compute() -> None:
    code, (only,) = rounds(f"""
        %a = tt.load %q : {P}
        %s = "tt.reduce"(%a) <{{axis = 0 : i32}}> ({{
        ^bb0(%x: i32, %y: i32):
          %w = arith.addi %x, %y : i32
          tt.reduce.return %w : i32
        }}) : ({T}) -> i32
        tt.store %o, %s : !tt.ptr<i32>
    """)
    assert [only.anchor] == list(only.computes) == indices_of(code, "tt.reduce")


TWO_COUNTS = f"""
    %r:2 = scf.for %i = %n to %n step %n iter_args(%x = %z, %v = %z) -> ({T}, {T})  : i32 {{
      %a = tt.load %q : {P}
      %m = arith.cmpi eq, %a, %z : {T}
      %w = arith.extui %m : tensor<8xi1> to {T}
      %y = arith.addi %x, %w : {T}
      %k = arith.cmpi sgt, %a, %z : {T}
      %l = arith.extui %k : tensor<8xi1> to {T}
      %u = arith.muli %v, %l : {T}
      scf.yield %y, %u : {T}, {T}
    }}
    tt.store %o, %r#0 : {P}
    tt.store %o, %r#1 : {P}
"""


def test_a_load_of_two_counts_is_of_the_first_with_its_comparison_alone_and_shared() -> None:
    code, (only,) = rounds(TWO_COUNTS)
    assert [only.anchor] == indices_of(code, "addi")
    assert list(only.computes) == indices_of(code, "cmpi")[:1]
    assert [statement.is_shared for statement in only.statements] == [True]


@pytest.mark.parametrize(("operand", "anchor"), [("%f", "tt.reduce"), ("%b", "addi")])
def test_what_a_float_of_an_inner_loop_takes_is_no_work_of_integers(operand: str, anchor: str) -> None:
    code, (only,) = rounds(f"""
        %r = scf.for %i = %n to %n step %n iter_args(%x = %z) -> ({T})  : i32 {{
          %a = tt.load %q : {P}
          scf.for %j = %n to %n step %n  : i32 {{
            %f = arith.sitofp %a : {T} to tensor<8xf32>
            %e = arith.mulf {operand}, {operand} : tensor<8xf32>
          }}
          %m = arith.cmpi eq, %a, %z : {T}
          %w = arith.extui %m : tensor<8xi1> to {T}
          %y = arith.addi %x, %w : {T}
          %s = "tt.reduce"(%a) <{{axis = 0 : i32}}> ({{
          ^bb0(%u: i32, %v: i32):
            %k = arith.maxsi %u, %v : i32
            tt.reduce.return %k : i32
          }}) : ({T}) -> i32
          tt.store %h, %s : !tt.ptr<i32>
          scf.yield %y : {T}
        }}
        tt.store %o, %r : {P}
    """)
    assert [only.anchor] == indices_of(code, anchor)


def test_a_comparison_that_only_chooses_among_other_data_is_no_work_of_a_round() -> None:
    _, found = rounds(f"""
        %a = tt.load %q : {P}
        %m = arith.cmpi eq, %a, %z : {T}
        %w = arith.select %m, %z, %b : tensor<8xi1>, {T}
        tt.store %o, %w : {P}
    """)
    assert found == ()
