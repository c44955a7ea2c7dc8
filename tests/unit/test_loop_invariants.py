"""What a loop does not change, and what not every iteration runs, of what is converted in it."""

from __future__ import annotations

from artifact_inspector.analysis.flow.function_code import FunctionCode
from artifact_inspector.analysis.order.regions import find_regions
from artifact_inspector.analysis.shared.layout_conversions import find_conversions
from artifact_inspector.formats.mlir.parser import FORMAT
from artifact_inspector.model import Stage
from artifact_inspector.model.text import SourceText

LOOP = """#rows = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#columns = #ttg.blocked<{sizePerThread = [4, 1], threadsPerWarp = [8, 4], warpsPerCTA = [1, 4], order = [0, 1]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @k(%x: tensor<16x32xf16, #rows>, %p: tensor<16x32x!tt.ptr<f16>, #rows>, %n: i32, %m: i1) {
    %c = arith.constant 0 : i32
    %d = arith.constant 1 : i32
    %last = scf.for %i = %c to %n step %d iter_args(%carried = %x) -> (tensor<16x32xf16, #rows>) : i32 {
      %double = arith.addf %x, %x : tensor<16x32xf16, #rows>
      %same = ttg.convert_layout %double : tensor<16x32xf16, #rows> -> tensor<16x32xf16, #columns>
      %other = ttg.convert_layout %carried : tensor<16x32xf16, #rows> -> tensor<16x32xf16, #columns>
      %spread = tt.splat %i : i32 -> tensor<16x32xi32, #rows>
      %counted = ttg.convert_layout %spread : tensor<16x32xi32, #rows> -> tensor<16x32xi32, #columns>
      %v = tt.load %p : tensor<16x32x!tt.ptr<f16>, #rows>
      %loaded = ttg.convert_layout %v : tensor<16x32xf16, #rows> -> tensor<16x32xf16, #columns>
      scf.if %m {
        %rare = ttg.convert_layout %v : tensor<16x32xf16, #rows> -> tensor<16x32xf16, #columns>
      }
      scf.for %j = %c to %n step %d : i32 {
        %around = ttg.convert_layout %carried : tensor<16x32xf16, #rows> -> tensor<16x32xf16, #columns>
      }
      scf.yield %v : tensor<16x32xf16, #rows>
    }
    tt.return
  }
}
"""


def test_what_a_loop_does_not_change_and_what_it_does_not_always_convert_is_told() -> None:
    module = FORMAT.parse(SourceText("k.ttgir", LOOP), Stage.TTGIR)
    code = FunctionCode(module.functions[0], module, FORMAT)
    outer, inner = (region for region in find_regions(code, (), exact=False) if region.loop is not None)
    found = {
        LOOP.splitlines()[one.line - 1].split()[0]: (one.is_loop_variant, one.is_unconditional)
        for region in (outer, inner)
        for one in find_conversions(code, region)
    }
    assert found == {
        "%same": (False, True),
        "%other": (True, True),
        "%counted": (True, True),
        "%loaded": (True, True),
        "%rare": (True, False),
        "%around": (False, True),
    }
