"""Loads that read past an end which the mask of another access names; each kernel says where its tensors end."""

from __future__ import annotations

import pytest
from handwritten import OFFSETS, address, tensors

from artifact_inspector.analysis.access.missing_masks import MissingMask, find_missing_masks
from artifact_inspector.model import Stage

POINTERS = "tensor<1024x!tt.ptr<f16>>"
ENDS = """
%e = tt.splat %odd : i32 -> tensor<1024xi32>
%m = arith.cmpi slt, %i, %e : tensor<1024xi32>
"""
STORE = f"tt.store %a, %x, %m : {POINTERS}"


def unmasked(*parts: str) -> tuple[MissingMask, ...]:
    return find_missing_masks(tensors(Stage.TTIR, "\n".join(parts)))


def load(mask: str = "", name: str = "%x") -> str:
    return f'{name} = tt.load %a{mask} : {POINTERS} loc("k.py":5:1)'


def test_a_load_without_the_mask_that_the_store_of_its_index_has_reads_past_the_end() -> None:
    (found,) = unmasked(OFFSETS, address("%p"), load(), ENDS, STORE)
    assert (found.name, found.source, found.ends, found.masked) == ("x", "k.py:5", ("odd",), False)


def test_a_mask_of_its_own_that_asks_for_something_else_does_not_help() -> None:
    other = """
    %f = tt.splat %n : i32 -> tensor<1024xi32>
    %t = arith.constant dense<7> : tensor<1024xi32>
    %j = arith.addi %r, %t : tensor<1024xi32>
    %u = arith.cmpi slt, %j, %f : tensor<1024xi32>
    """
    (found,) = unmasked(OFFSETS, address("%p"), other, load(", %u"), ENDS, STORE)
    assert (found.ends, found.masked) == (("odd",), True)


def test_a_load_with_that_mask_or_a_part_of_it_reads_no_further() -> None:
    assert unmasked(OFFSETS, address("%p"), ENDS, load(", %m"), STORE) == ()
    both = "%u = arith.andi %m, %m : tensor<1024xi1>"
    assert unmasked(OFFSETS, address("%p"), ENDS, both, load(", %u"), STORE) == ()


def test_a_mask_that_asks_for_the_same_end_by_an_index_of_its_own_is_enough() -> None:
    again = """
    %w = arith.extsi %o : i32 to i64
    %q1 = arith.trunci %w : i64 to i32
    %s1 = tt.splat %q1 : i32 -> tensor<1024xi32>
    %i1 = arith.addi %s1, %r : tensor<1024xi32>
    %u = arith.cmpi slt, %i1, %e : tensor<1024xi32>
    """
    assert unmasked(OFFSETS, address("%p"), ENDS, again, load(", %u"), STORE) == ()


@pytest.mark.parametrize("end", ["1000", "2048"])
def test_an_end_that_is_a_number_is_the_authors_own(end: str) -> None:
    number = f"""
    %e = arith.constant dense<{end}> : tensor<1024xi32>
    %m = arith.cmpi slt, %i, %e : tensor<1024xi32>
    """
    assert unmasked(OFFSETS, address("%p"), load(), number, STORE) == ()


def test_an_end_that_is_a_multiple_of_the_tile_is_not_passed() -> None:
    whole = """
    %w = arith.muli %odd, %c : i32
    %e = tt.splat %w : i32 -> tensor<1024xi32>
    %m = arith.cmpi slt, %i, %e : tensor<1024xi32>
    """
    assert unmasked(OFFSETS, address("%p"), load(), whole, STORE) == ()


def test_an_index_taken_modulo_the_end_stays_in_front_of_it() -> None:
    wrapped = """
    %e = tt.splat %odd : i32 -> tensor<1024xi32>
    %j = arith.remsi %i, %e : tensor<1024xi32>
    """
    out = f"{address('%q').replace('%a', '%d').replace('%b', '%g')}\n{STORE.replace('%a', '%d')}"
    bound = "%m = arith.cmpi slt, %i, %e : tensor<1024xi32>"
    assert unmasked(OFFSETS, wrapped, address("%p", "%j"), load(), bound, out) == ()
    assert len(unmasked(OFFSETS, wrapped, address("%p"), load(), bound, out)) == 1


@pytest.mark.parametrize(("predicate", "is_end"), [("sge", False), ("sgt", False), ("eq", False), ("ule", True)])
def test_a_lower_bound_is_no_end(predicate: str, is_end: bool) -> None:
    ends = ENDS.replace("slt", predicate)
    assert bool(unmasked(OFFSETS, address("%p"), load(), ends, STORE)) is is_end


def test_an_end_may_stand_on_the_left() -> None:
    turned = ENDS.replace("slt, %i, %e", "sgt, %e, %i")
    assert len(unmasked(OFFSETS, address("%p"), load(), turned, STORE)) == 1


def test_a_full_tile_that_a_branch_takes_apart_is_left_alone() -> None:
    apart = f"""
    %k = arith.cmpi sle, %o, %odd : i32
    scf.if %k {{
      {load()}
      tt.store %a, %x : {POINTERS}
    }} else {{
      {load(", %m", "%y")}
      tt.store %a, %y, %m : {POINTERS}
    }}
    """
    assert unmasked(OFFSETS, address("%p"), ENDS, apart) == ()


def test_a_load_of_a_loop_is_held_against_the_store_behind_it() -> None:
    loop = f"""
    %l = arith.constant 0 : i32
    %h = arith.constant 1 : i32
    scf.for %v = %l to %n step %h : i32 {{
      {load()}
      tt.store %a, %x : {POINTERS}
    }}
    %z = arith.constant dense<0.0> : tensor<1024xf16>
    tt.store %a, %z, %m : {POINTERS}
    """
    (found,) = unmasked(OFFSETS, address("%p"), ENDS, loop)
    assert found.ends == ("odd",)


def test_an_end_that_another_loop_sets_is_not_that_of_a_load() -> None:
    loops = f"""
    %l = arith.constant 0 : i32
    %h = arith.constant 1 : i32
    scf.for %v = %l to %n step %h : i32 {{
      {load()}
      tt.store %a, %x : {POINTERS}
    }}
    scf.for %w = %l to %n step %h : i32 {{
      %left = arith.subi %odd, %w : i32
      %e = tt.splat %left : i32 -> tensor<1024xi32>
      %m = arith.cmpi slt, %i, %e : tensor<1024xi32>
      {load(", %m", "%y")}
      tt.store %a, %y, %m : {POINTERS}
    }}
    """
    assert unmasked(OFFSETS, address("%p"), loops) == ()


def test_an_end_is_one_of_the_parts_of_the_mask_that_names_it() -> None:
    parts = """
    %t = arith.constant dense<7> : tensor<1024xi32>
    %k = arith.cmpi ne, %i, %t : tensor<1024xi32>
    %u = arith.andi %k, %m : tensor<1024xi1>
    """
    (found,) = unmasked(OFFSETS, address("%p"), load(), ENDS, parts, STORE.replace("%m", "%u"))
    assert found.ends == ("odd",)
