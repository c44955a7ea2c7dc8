"""What tensor-level IR proves of addresses and masks; expectations worked out by hand, element by element."""

from textwrap import dedent

import pytest
from handwritten import code_of

from artifact_inspector.analysis.access.axis_analysis import Axes, AxisAnalysis
from artifact_inspector.model import Stage

HEAD = "%p: !tt.ptr<f16>, %q: !tt.ptr<f16>, %n: i32, %odd: i32"
DIVISIBILITY = {"%p": 16, "%n": 16}


def axes(body: str, name: str = "%x") -> Axes:
    """What is proven of the value that the last operation of a name defines."""
    text = f"module {{\n  tt.func public @k({HEAD}) {{\n{dedent(body)}\n    tt.return\n  }}\n}}\n"
    code = code_of(Stage.TTIR, text)
    dataflow = AxisAnalysis(code, DIVISIBILITY)
    uses = [i for i, instruction in enumerate(code.instructions) if instruction.opcode == "tt.use"]
    value = dataflow.value_read(uses[-1], name)
    assert value is not None
    found = dataflow.axes(value)
    assert found is not None
    return found


RANGE = "%r = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32>\n"
PID = "%pid = tt.get_program_id x : i32\n%c64 = arith.constant 64 : i32\n%o = arith.muli %pid, %c64 : i32\n"
OFFSETS = RANGE + PID + "%s = tt.splat %o : i32 -> tensor<64xi32>\n%i = arith.addi %s, %r : tensor<64xi32>\n"


def test_a_range_is_one_run() -> None:
    found = axes(RANGE + "tt.use %r : tensor<64xi32>", "%r")
    assert (found.contiguity, found.constancy) == ((64,), (1,))


def test_a_block_of_a_program_starts_at_a_multiple_of_its_size() -> None:
    # pid · 64 + [0 … 63]
    found = axes(OFFSETS + "tt.use %i : tensor<64xi32>", "%i")
    assert (found.contiguity, found.divisibility) == ((64,), (64,))


def test_an_address_of_an_aligned_pointer_is_as_aligned_as_the_pointer() -> None:
    body = """
    %b = tt.splat %p : !tt.ptr<f16> -> tensor<64x!tt.ptr<f16>>
    %x = tt.addptr %b, %i : tensor<64x!tt.ptr<f16>>, tensor<64xi32>
    tt.use %x : tensor<64x!tt.ptr<f16>>"""
    # bytes: gcd(16 of the pointer, 64 elements of 2 bytes)
    assert axes(OFFSETS + dedent(body)).divisibility == (16,)


def test_a_stride_breaks_the_run() -> None:
    body = """
    %t = tt.splat %n : i32 -> tensor<64xi32>
    %x = arith.muli %i, %t : tensor<64xi32>
    tt.use %x : tensor<64xi32>"""
    assert axes(OFFSETS + dedent(body)).contiguity == (1,)


def test_a_stride_of_one_keeps_the_run() -> None:
    body = """
    %t = arith.constant dense<1> : tensor<64xi32>
    %x = arith.muli %i, %t : tensor<64xi32>
    tt.use %x : tensor<64xi32>"""
    assert axes(OFFSETS + dedent(body)).contiguity == (64,)


@pytest.mark.parametrize(("bound", "run"), [("%n", 16), ("%odd", 1)])
def test_a_remainder_leaves_runs_as_long_as_the_divisor_of_its_bound(bound: str, run: int) -> None:
    # [64k … 64k + 63] mod 16m: a run of 16 never wraps inside, and starts at a multiple of 16.
    body = f"""
    %t = tt.splat {bound} : i32 -> tensor<64xi32>
    %x = arith.remsi %i, %t : tensor<64xi32>
    tt.use %x : tensor<64xi32>"""
    found = axes(OFFSETS + dedent(body))
    assert (found.contiguity, found.divisibility) == ((run,), (run,))


@pytest.mark.parametrize(("bound", "run"), [("%n", 16), ("%odd", 1)])
def test_a_mask_is_the_same_for_runs_as_long_as_the_divisor_of_its_bound(bound: str, run: int) -> None:
    body = f"""
    %t = tt.splat {bound} : i32 -> tensor<64xi32>
    %x = arith.cmpi slt, %i, %t : tensor<64xi32>
    tt.use %x : tensor<64xi1>"""
    assert axes(OFFSETS + dedent(body)).constancy == (run,)


def test_a_compare_for_equality_may_differ_between_neighbours() -> None:
    body = """
    %t = tt.splat %n : i32 -> tensor<64xi32>
    %x = arith.cmpi eq, %i, %t : tensor<64xi32>
    tt.use %x : tensor<64xi1>"""
    assert axes(OFFSETS + dedent(body)).constancy == (1,)


def test_rows_of_a_stride_are_constant_along_the_columns() -> None:
    body = """
    %e = tt.expand_dims %r {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
    %t = tt.splat %n : i32 -> tensor<64x1xi32>
    %m = arith.muli %e, %t : tensor<64x1xi32>
    %x = tt.broadcast %m : tensor<64x1xi32> -> tensor<64x32xi32>
    tt.use %x : tensor<64x32xi32>"""
    found = axes(RANGE + dedent(body))
    # row · 16k: every element a multiple of 16, the same in all 32 columns, no two rows the same.
    assert found == Axes((1, 1), (16, 16), (1, 32))


def test_a_promise_of_the_author_overrules_what_is_proven() -> None:
    body = """
    %t = tt.splat %odd : i32 -> tensor<64xi32>
    %x = arith.remsi %i, %t {tt.contiguity = dense<64> : tensor<1xi32>, tt.divisibility = dense<64> : tensor<1xi32>} : tensor<64xi32>
    tt.use %x : tensor<64xi32>"""
    found = axes(OFFSETS + dedent(body))
    assert (found.contiguity, found.divisibility) == ((64,), (64,))


@pytest.mark.parametrize(("step", "divisor"), [("%c64", 16), ("%odd", 1)])
def test_a_pointer_that_a_loop_moves_is_as_aligned_as_its_step(step: str, divisor: int) -> None:
    # 16 bytes of %p, and 64 elements of 2 bytes a turn; or an unknown number of elements: 2 bytes.
    body = f"""
    %b = tt.splat %p : !tt.ptr<f16> -> tensor<64x!tt.ptr<f16>>
    %a = tt.addptr %b, %i : tensor<64x!tt.ptr<f16>>, tensor<64xi32>
    %t = tt.splat {step} : i32 -> tensor<64xi32>
    %z = arith.constant 0 : i32
    %l = scf.for %k = %z to %n step %c64 iter_args(%x = %a) -> (tensor<64x!tt.ptr<f16>>)  : i32 {{
      tt.use %x : tensor<64x!tt.ptr<f16>>
      %y = tt.addptr %x, %t : tensor<64x!tt.ptr<f16>>, tensor<64xi32>
      scf.yield %y : tensor<64x!tt.ptr<f16>>
    }} loc(#loc)"""
    found = axes(OFFSETS + dedent(body))
    assert (found.contiguity, found.divisibility) == ((64,), (16 if divisor == 16 else 2,))


def test_the_variable_of_a_loop_is_as_divisible_as_its_start_and_step() -> None:
    body = """
    %z = arith.constant 32 : i32
    scf.for %k = %z to %odd step %c64  : i32 {
      tt.use %k : i32
    } loc(#loc)"""
    assert axes(OFFSETS + dedent(body), "%k").divisibility == (32,)


def test_what_is_loaded_proves_nothing() -> None:
    body = """
    %b = tt.splat %p : !tt.ptr<f16> -> tensor<64x!tt.ptr<f16>>
    %a = tt.addptr %b, %i : tensor<64x!tt.ptr<f16>>, tensor<64xi32>
    %x = tt.load %a : tensor<64x!tt.ptr<f16>>
    tt.use %x : tensor<64xf16>"""
    assert axes(OFFSETS + dedent(body)) == Axes((1,), (1,), (1,))


@pytest.mark.parametrize(
    "operation", ["tt.expand_dims %r {axis = 0 : i32}", "tt.reshape %r", "tt.view %r"], ids=lambda text: text[:9]
)
def test_a_new_axis_of_one_element_leaves_the_run_along_the_other(operation: str) -> None:
    body = f"%x = {operation} : tensor<64xi32> -> tensor<1x64xi32>\ntt.use %x : tensor<1x64xi32>"
    assert axes(RANGE + body).contiguity == (1, 64)


def test_a_reshape_that_cuts_a_run_proves_nothing() -> None:
    body = "%x = tt.reshape %r : tensor<64xi32> -> tensor<8x8xi32>\ntt.use %x : tensor<8x8xi32>"
    assert axes(RANGE + body) == Axes((1, 1), (1, 1), (1, 1))


def test_a_transposition_moves_the_run_to_the_other_axis() -> None:
    body = """
    %e = tt.expand_dims %r {axis = 0 : i32} : tensor<64xi32> -> tensor<1x64xi32>
    %x = tt.trans %e {order = array<i32: 1, 0>} : tensor<1x64xi32> -> tensor<64x1xi32>
    tt.use %x : tensor<64x1xi32>"""
    assert axes(RANGE + dedent(body)).contiguity == (64, 1)


def test_an_operation_without_its_operands_proves_nothing() -> None:
    assert axes("%x = arith.addi : tensor<64xi32>\ntt.use %x : tensor<64xi32>") == Axes((1,), (1,), (1,))
