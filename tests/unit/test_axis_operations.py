"""What the texts of operations say of the numbers that addresses are made of."""

from __future__ import annotations

import pytest

from artifact_inspector.formats.mlir.axes import axis_operation
from artifact_inspector.model import EventKind, Instruction, Operands
from artifact_inspector.model.axes import AxisOperation, AxisRole, Hints


def operation(text: str, *reads: str) -> AxisOperation:
    opcode = (text.partition(" = ")[2] or text).split(" ")[0] if not text.startswith("scf") else "scf.for"
    return axis_operation(Instruction(1, opcode, EventKind.INTEGER, None, None, text, lambda _: Operands((), reads)))


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("%c = arith.constant 64 : i32", 64),
        ("%c = arith.constant dense<-16> : tensor<8xi32>", -16),
        ("%c = arith.constant true", 1),
        ("%c = arith.constant false", 0),
        ("%c = arith.constant 1.5 : f32", None),
        ("%c = arith.constant dense<0.000000e+00> : tensor<8xf32>", None),
    ],
)
def test_an_integer_constant_has_its_value(text: str, value: int | None) -> None:
    assert operation(text)[:2] == (AxisRole.CONSTANT, value)


def test_a_range_begins_and_ends_where_it_says() -> None:
    found = operation("%r = tt.make_range {end = 96 : i32, start = 32 : i32} : tensor<64xi32>")
    assert (found.role, found.start, found.stop) == (AxisRole.RANGE, 32, 96)


def test_an_expansion_names_the_new_axis() -> None:
    assert operation("%e = tt.expand_dims %x {axis = 1 : i32} : tensor<8xi32> -> tensor<8x1xi32>").axis == 1


@pytest.mark.parametrize("order", ["array<i32: 1, 0>", "dense<[1, 0]> : tensor<2xi32>"], ids=["since 3.0", "until 2.3"])
def test_a_transposition_names_the_order(order: str) -> None:
    assert operation(f"%t = tt.trans %x {{order = {order}}} : tensor<2x8xi32>").order == (1, 0)


def test_a_pointer_steps_by_the_bytes_that_it_points_at() -> None:
    assert operation("%q = tt.addptr %p, %o : !tt.ptr<f16>, i32").pointee == 2
    assert operation("%q = tt.addptr %p, %o : !tt.ptr<i1>, i32").pointee == 1


@pytest.mark.parametrize(
    ("predicate", "grows"), [("sgt", True), ("ule", True), ("slt", False), ("uge", False), ("eq", None)]
)
def test_a_compare_says_which_way_it_turns(predicate: str, grows: bool | None) -> None:
    assert operation(f"%m = arith.cmpi {predicate}, %a, %b : tensor<8xi32>").grows_with_left is grows


def test_a_loop_counts_its_variable_from_the_start_by_the_step() -> None:
    found = operation("scf.for %i = %lo to %hi step %by  : i32 {", "%i", "%lo", "%hi", "%by")
    assert (found.role, found.variable, found.loop_operands) == (AxisRole.LOOP, "%i", ("%lo", "%by"))


def test_promises_of_the_author_are_read_in_every_version() -> None:
    text = "%o = arith.muli %a, %b {tt.divisibility = dense<16> : tensor<1xi32>, tt.contiguity = 8 : i32} : i32"
    assert operation(text).hints == Hints((8,), (16,), None)
    assert operation("%o = arith.muli %a, %b {tt.constancy = dense<[4, 2]> : tensor<2xi32>} : i32").hints == (
        None,
        None,
        (4, 2),
    )
    assert operation("%o = arith.muli %a, %b : i32").hints is None


def test_an_operation_that_says_nothing_of_numbers_has_no_role() -> None:
    assert operation("%o = arith.mulf %a, %b : f32").role is AxisRole.NONE
