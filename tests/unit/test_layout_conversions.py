"""Layout conversions of TTGIR: what moves, and how far."""

from __future__ import annotations

from artifact_inspector.analysis.flow.function_code import FunctionCode
from artifact_inspector.analysis.order.regions import find_regions
from artifact_inspector.analysis.shared.layout_conversions import LayoutConversion, find_conversions
from artifact_inspector.formats.mlir.parser import FORMAT
from artifact_inspector.model import Stage, TritonVersion
from artifact_inspector.model.text import SourceText

LAYOUTS = """
#rows = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#pairs = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [8, 4], warpsPerCTA = [4, 1], order = [1, 0]}>
#columns = #ttg.blocked<{sizePerThread = [4, 1], threadsPerWarp = [8, 4], warpsPerCTA = [1, 4], order = [0, 1]}>
#mma = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 8]}>
"""
OPERAND = "#ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>"


def conversion(shape: str, before: str, after: str, triton: str | None = "3.6.0") -> LayoutConversion:
    text = f"""{LAYOUTS}module attributes {{"ttg.num-warps" = 4 : i32, ttg.target = "cuda:80", "ttg.threads-per-warp" = 32 : i32}} {{
  tt.func public @k(%x: tensor<{shape}, {before}>) {{
    %y = ttg.convert_layout %x : tensor<{shape}, {before}> -> tensor<{shape}, {after}> loc("k.py":7:1)
    tt.return
  }}
}}
"""
    module = FORMAT.parse(SourceText("k.ttgir", text), Stage.TTGIR)
    code = FunctionCode(module.functions[0], module, FORMAT)
    (region,) = find_regions(code, (), exact=False)
    (found,) = find_conversions(code, region, triton and TritonVersion(triton))
    return found


def test_a_conversion_moves_the_whole_tile_of_the_block() -> None:
    found = conversion("128x32xf16", "#mma", "#rows")
    assert (found.bytes, found.source, found.change) == (128 * 32 * 2, "k.py:7", "mma → blocked")


def test_an_address_is_eight_bytes() -> None:
    assert conversion("16x32x!tt.ptr<f16>", "#rows", "#columns").bytes == 16 * 32 * 8


def test_until_2_3_a_conversion_to_shared_memory_is_a_store() -> None:
    text = """#rows = #triton_gpu.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#shared = #triton_gpu.shared<{vec = 8, perPhase = 1, maxPhase = 8, order = [1, 0], hasLeadingOffset = false}>
module attributes {"triton_gpu.num-warps" = 4 : i32} {
  tt.func public @k(%x: tensor<16x32xf16, #rows>) {
    %y = triton_gpu.convert_layout %x : (tensor<16x32xf16, #rows>) -> tensor<16x32xf16, #shared>
    tt.return
  }
}
"""
    module = FORMAT.parse(SourceText("k.ttgir", text), Stage.TTGIR)
    code = FunctionCode(module.functions[0], module, FORMAT)
    (region,) = find_regions(code, (), exact=False)
    (found,) = find_conversions(code, region, TritonVersion("2.1.0"))
    assert (found.crosses_warps, found.through_shared) == (None, True)


def test_rows_to_columns_crosses_warps_through_shared_memory() -> None:
    found = conversion("64x64xf32", "#rows", "#columns")
    assert (found.crosses_warps, found.through_shared) == (True, True)


def test_the_result_of_a_dot_becomes_the_next_ones_operand_in_registers() -> None:
    # Both give a thread columns 2(l % 4) and the next of rows l / 4 and l / 4 + 8 (PTX ISA, mma.m16n8k16).
    found = conversion("64x16xf16", "#mma", OPERAND)
    assert (found.crosses_warps, found.through_shared, found.change) == (False, False, "mma → dot operand")


def test_lanes_of_one_warp_trade_by_shuffles_from_3_3_on() -> None:
    # A warp has 4 rows of 32 columns in both: 8 lanes along a row, or 4 lanes with two registers more.
    inside = "#ttg.linear<{register = [[0, 1], [0, 2]], lane = [[1, 0], [2, 0], [0, 4], [0, 8], [0, 16]], warp = [[4, 0], [8, 0]], block = []}>"
    assert conversion("16x32xf32", "#rows", inside).through_shared is False
    assert conversion("16x32xf32", "#rows", inside, "3.2.0").through_shared is True


def test_nothing_is_said_of_a_layout_that_is_not_modelled() -> None:
    found = conversion("64x64xf32", "#rows", "#ttg.later_idea<{}>")
    assert (found.crosses_warps, found.through_shared, found.change) == (None, None, "blocked → later idea")


def test_a_conversion_that_does_not_say_its_types_costs_no_other_one() -> None:
    text = f"""{LAYOUTS}module attributes {{"ttg.num-warps" = 4 : i32, ttg.target = "cuda:80", "ttg.threads-per-warp" = 32 : i32}} {{
  tt.func public @k(%x: tensor<16x32xf16, #rows>) {{
    %y = ttg.convert_layout %x
    %z = ttg.convert_layout %x : tensor<16x32xf16, #rows> -> tensor<16x32xf16, #columns>
    tt.return
  }}
}}
"""
    module = FORMAT.parse(SourceText("k.ttgir", text), Stage.TTGIR)
    code = FunctionCode(module.functions[0], module, FORMAT)
    (region,) = find_regions(code, (), exact=False)
    (found,) = find_conversions(code, region, TritonVersion("3.6.0"))
    assert found.change == "blocked → blocked"
