"""What tells one specialisation of a kernel from another: its arguments, and the tiles that it moves."""

from __future__ import annotations

from dataclasses import replace

from artifact_inspector.analysis.flow.kernel_program import KernelProgram, find_program
from artifact_inspector.formats.mlir.parser import FORMAT
from artifact_inspector.model import Frame, Module, Stage
from artifact_inspector.model.text import SourceText

PRODUCT = "tensor<16x32xf16> * tensor<32x8xf16> -> tensor<16x8xf32>"
BATCHED = "tensor<4x16x32xf16> * tensor<4x32x8xf16> -> tensor<4x16x8xf32>"
TEXT = f"""module {{
  tt.func private @helper(%x: tensor<16x64x!tt.ptr<f16>>) {{
    %a = tt.load %x : tensor<16x64x!tt.ptr<f16>>
    tt.return
  }} loc("k.py":3:1)
  tt.func public @k(%p: !tt.ptr<f16> {{tt.divisibility = 16 : i32}}, %n: i32) {{
    %a = tt.load %v : tensor<16x32x!tt.ptr<f16>>
    %b = tt.load %w : tensor<16x32x!tt.ptr<f16>>
    %c = tt.dot %a, %b, %z : {PRODUCT}
    %d = tt.dot %a, %b, %z : {BATCHED}
    %s = tt.load %p : !tt.ptr<f16>
    tt.store %q, %c : tensor<16x8x!tt.ptr<f32>>
    %r = tt.atomic_rmw fadd, acq_rel, gpu, %q, %c, %m : (tensor<16x8x!tt.ptr<f32>>, tensor<16x8xf32>, tensor<16x8xi1>) -> tensor<16x8xf32>
    tt.return
  }} loc("k.py":30:1)
}}
"""


def read(text: str = TEXT) -> Module:
    return FORMAT.parse(SourceText("k.ttir", text), Stage.TTIR)


def program(kernel: str = "k", text: str = TEXT) -> KernelProgram:
    found = find_program(read(text), FORMAT, kernel)
    assert found is not None
    return found


def test_tiles_are_told_once_in_the_order_of_the_text_and_of_every_function() -> None:
    assert program().tiles == ("load 16×64", "load 16×32", "dot 16×8×32", "dot 4×16×8×32", "store 16×8", "atomic 16×8")


def test_arguments_and_place_are_those_of_the_kernel_by_its_name() -> None:
    assert program().signature == ("*fp16:16", "i32")
    assert program().location == Frame("k.py", 30, 1)
    assert program("helper").location == Frame("k.py", 3, 1)


def test_without_one_of_that_name_the_first_function_is_meant() -> None:
    assert program("renamed").location == Frame("k.py", 3, 1)


def test_a_function_without_a_line_has_no_place() -> None:
    assert program(text=TEXT.replace(' loc("k.py":30:1)', "")).location is None


def test_a_module_without_functions_is_no_program() -> None:
    assert find_program(replace(read(), functions=()), FORMAT, "k") is None
