"""Which value a name stands for, where sibling regions use the same names."""

from __future__ import annotations

from artifact_inspector.analysis.flow.ssa_values import SsaValues, number_values
from artifact_inspector.formats.mlir.parser import FORMAT
from artifact_inspector.model import Function, Stage
from artifact_inspector.model.text import SourceText

TILE = "!ttg.memdesc<8x8xf16, #shared, #smem, mutable>"


def read(body: str) -> tuple[Function, SsaValues]:
    text = f"module {{\n  tt.func public @k(%x: i32, %n: i32) {{\n{body}\n    tt.return\n  }}\n}}\n"
    (function,) = FORMAT.parse(SourceText("k.ttgir", text), Stage.TTGIR).functions
    return function, number_values(function, FORMAT.traits)


def users(function: Function, values: SsaValues, value: int) -> list[str]:
    """The opcodes of the instructions that read a value."""
    return [
        instruction.opcode
        for instruction, reads in zip(function.instructions, values.reads, strict=True)
        if value in reads.values()
    ]


def first_argument(values: SsaValues) -> int:
    """The value of the argument that the first loop is handed."""
    return next(target for handed in values.flows for _, target, _, _ in handed)


FIRST_LOOP = """    %c = arith.constant 0 : i32
    %r = scf.for %i = %c to %n step %c iter_args(%arg3 = %x) -> (i32)  : i32 {
      %y = arith.addi %arg3, %c : i32
      scf.yield %y : i32
    }
"""


def test_an_argument_that_a_sibling_loop_names_alike_is_another_value() -> None:
    function, values = read(
        FIRST_LOOP
        + """    %s = scf.for %i = %c to %n step %c iter_args(%arg3 = %c) -> (i32)  : i32 {
      %z = arith.muli %arg3, %c : i32
      scf.yield %z : i32
    }"""
    )
    # Read by the addition of the first loop; neither the second loop nor its multiplication sees it.
    assert users(function, values, first_argument(values)) == ["arith.addi"]


def test_the_variable_of_a_sibling_loop_is_not_an_argument_of_the_first() -> None:
    function, values = read(
        FIRST_LOOP
        + """    scf.for %arg3 = %c to %n step %c  : i32 {
      %z = arith.muli %arg3, %c : i32
    }"""
    )
    assert users(function, values, first_argument(values)) == ["arith.addi"]


def test_an_argument_of_a_reductions_body_is_not_one_of_a_loop_in_front() -> None:
    function, values = read(
        FIRST_LOOP
        + """    %t = arith.constant dense<0.0> : tensor<8x8xf32>
    %m = "tt.reduce"(%t) <{axis = 1 : i32}> ({
    ^bb0(%arg3: f32, %arg4: f32):
      %z = arith.maxnumf %arg3, %arg4 : f32
      tt.reduce.return %z : f32
    }) : (tensor<8x8xf32>) -> tensor<8xf32>"""
    )
    assert users(function, values, first_argument(values)) == ["arith.addi"]


def test_an_argument_of_a_partition_is_what_it_was_handed_whatever_the_default_region_calls_so() -> None:
    function, values = read(
        f"""    %a = ttg.local_alloc : () -> {TILE}
    ttg.warp_specialize(%a)
    default {{
      %p = ttg.local_alloc : () -> {TILE}
      ttg.local_dealloc %p : {TILE}
      ttg.warp_yield
    }}
    partition0(%p: {TILE}) num_warps(4) {{
      %v = ttg.local_load %p : {TILE} -> tensor<8x8xf16>
      ttg.warp_return
    }} : ({TILE}) -> ()"""
    )
    opcodes = [instruction.opcode for instruction in function.instructions]
    (inner,) = values.results[[n for n, opcode in enumerate(opcodes) if opcode == "ttg.local_alloc"][1]]
    assert users(function, values, inner) == ["ttg.local_dealloc"]
    assert users(function, values, first_argument(values)) == ["ttg.local_load"]


def test_the_results_of_a_loop_outlive_it() -> None:
    function, values = read(FIRST_LOOP + "    %z = arith.muli %r, %c : i32")
    (product,) = (n for n, found in enumerate(function.instructions) if found.opcode == "arith.muli")
    assert set(values.reads[product]) == {"%r", "%c"}


def test_a_loop_that_is_handed_what_no_text_defines_hides_a_name_from_its_body_all_the_same() -> None:
    function, values = read(
        """    %r = scf.for %i = %n to %n step %n iter_args(%x = %gone) -> (i32)  : i32 {
      %y = arith.addi %x, %n : i32
      scf.yield %y : i32
    }"""
    )
    opcodes = [instruction.opcode for instruction in function.instructions]
    assert opcodes[0] == "scf.for"
    inside = values.reads[opcodes.index("arith.addi")]
    assert ("%x" in inside, "%n" in inside) == (False, True)
