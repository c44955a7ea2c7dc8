"""`.mlir` files: each function of each module of a lit test is a kernel on its own lines."""

from __future__ import annotations

from pathlib import Path

import pytest
from saved import FIXTURES
from typer.testing import CliRunner

from artifact_inspector.cli import app
from artifact_inspector.errors import CacheError
from artifact_inspector.facts.inspection import inspect_cache
from artifact_inspector.files.cache import open_cache
from artifact_inspector.files.mlir_tests import split_functions

LIT = """\
// RUN: triton-opt %s -split-input-file | FileCheck %s
// CHECK: tt.func @commented {
tt.func @bare(%p: !tt.ptr<f32>, %n: i32) -> (i32) {
  // a brace in a comment {
  %c = arith.constant 1 : i32
  tt.return %c : i32
}

// -----

#blocked = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:80"} {
tt.func private @declared(%x: i32) -> i32
tt.func public @first(%p: !tt.ptr<f32> {tt.divisibility = 16 : i32},
                      %q: !tt.ptr<f32> {tt.divisibility = 16 : i32}) attributes {noinline = false} {
  %r = tt.make_range {end = 128 : i32, start = 0 : i32} : tensor<128xi32, #blocked>
  %s = tt.splat %p : !tt.ptr<f32> -> tensor<128x!tt.ptr<f32>, #blocked>
  %a = tt.addptr %s, %r : tensor<128x!tt.ptr<f32>, #blocked>, tensor<128xi32, #blocked>
  %v = tt.load %a : tensor<128x!tt.ptr<f32>, #blocked>
  tt.store %a, %v : tensor<128x!tt.ptr<f32>, #blocked>
  tt.return
}
tt.func @second(%n: index) {
  scf.for %i = %n to %n step %n {
  }
  tt.return
}
}
"""


def test_each_function_is_a_kernel_on_its_lines(tmp_path: Path) -> None:
    functions = list(split_functions(LIT))
    assert [(f.name, f.suffix) for f in functions] == [("bare", "ttir"), ("first", "ttgir"), ("second", "ttgir")]
    lines = LIT.splitlines()
    for function in functions:
        own = function.text.splitlines()
        assert all(
            new.startswith(old[: len(new)].partition("//")[0].rstrip()) or not new
            for new, old in zip(own, lines, strict=False)
        )
        assert sum("tt.func" in line and "@" + function.name in line for line in own) == 1
    assert "@second" not in functions[1].text
    assert functions[1].text.count("{") == functions[1].text.count("}")
    (tmp_path / "lit.mlir").write_text(LIT)
    cache = open_cache(tmp_path / "lit.mlir")
    kernels = {kernel.artifact.display_name: kernel for kernel in inspect_cache(cache)}
    assert kernels.keys() == {"bare", "first", "second"}
    assert all(kernel.stages and not kernel.problems for kernel in kernels.values())
    load = next(number for number, line in enumerate(lines, 1) if "tt.load" in line)
    (region,) = kernels["first"].last.regions
    assert region.lines[0] <= load <= region.lines[1]
    assert kernels["first"].program.signature == ("*fp32:16", "*fp32:16")
    assert kernels["first"].artifact.target.arch == "sm_80"


def test_a_stage_renamed_to_mlir_reads_as_the_stage(tmp_path: Path) -> None:
    for stage in ("ttir", "ttgir"):
        original = next((FIXTURES / "3.6.0" / "sm_80" / "matmul_grouped").rglob(f"*.{stage}"))
        (tmp_path / "k.mlir").write_bytes(original.read_bytes())
        (function,) = split_functions(original.read_text())
        assert (function.name, function.suffix) == (original.stem, stage)
        assert function.text.rstrip() == original.read_text().rstrip()
        done = CliRunner().invoke(app, [str(tmp_path / "k.mlir"), "--no-index"])
        assert done.exit_code == 0
        assert original.stem in done.stdout


@pytest.mark.parametrize("text", ["", "module {\n}\n", "// tt.func @k() {\n", "func.func @k() {\n}\n", "tt.func @k("])
def test_a_file_without_a_kernel_is_an_error(tmp_path: Path, text: str) -> None:
    (tmp_path / "k.mlir").write_text(text)
    with pytest.raises(CacheError, match="holds no Triton kernel"):
        open_cache(tmp_path / "k.mlir")


def test_operations_over_several_lines_and_odd_spaces_read(tmp_path: Path) -> None:
    (tmp_path / "lit.mlir").write_text(
        """\
#l = #ttg.linear<{register = [[0, 1]], lane = [], warp = [], block = []}>
#b = #ttg.blocked<{sizePerThread = [1, 2], threadsPerWarp = [1, 1], warpsPerCTA = [1, 1], order = [0, 1]}>
module attributes {"ttg.num-warps" = 1 : i32, "ttg.threads-per-warp" = 1 : i32} {
tt.func public
  @wrapped(%p: tensor<1x2x!tt.ptr<f32>, #b>, %c: tensor<1x2xf32, #b>, %n: i32)
    -> tensor<1x2xf32, #b> {
  %c0  = arith.constant 0 : i32
  %c1 =  arith.constant 1 : i32
  %r = scf.for %i = %c0 to %n step %c1
      iter_args(%a = %c) -> (tensor<1x2xf32, #b>) : i32 {
    %v = tt.load %p {loop.stage = 0 : i32}
        : tensor<1x2x!tt.ptr<f32>, #b>
    %m = "tt.reduce"(%v) <{axis = 0 : i32}> ({
    ^bb0(%x: f32, %y: f32):
      %z = arith.addf %x, %y : f32
      tt.reduce.return %z : f32
    }) : (tensor<1x2xf32, #b>) -> tensor<2xf32, #ttg.slice<{dim = 0, parent = #b}>>
    %s = arith.addf %a, %v :
      tensor<1x2xf32, #b>
    scf.yield %s : tensor<1x2xf32, #b>
  }
  {tt.num_stages = 3 : i32}
  %o = ttg.convert_layout %r : tensor<1x2xf32, #b> -> tensor<1x2xf32, #l>
  tt.return %r : tensor<1x2xf32, #b>
}
}
"""
    )
    (kernel,) = inspect_cache(open_cache(tmp_path / "lit.mlir"))
    assert not kernel.problems
    assert [region.id for region in kernel.last.regions if region.id.startswith("loop")] == ["loop#1"]
