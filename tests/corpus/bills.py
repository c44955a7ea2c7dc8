"""The bill of shared memory of a few operations of TTGIR, as `test_bill` and `test_scratch` write them."""

from __future__ import annotations

from artifact_inspector.analysis.flow.function_code import FunctionCode
from artifact_inspector.analysis.shared.shared_memory_usage import SharedMemoryUsage, find_shared_memory_usage
from artifact_inspector.formats.mlir.parser import FORMAT
from artifact_inspector.model import Stage, TritonVersion
from artifact_inspector.model.text import SourceText

LAYOUTS = """
#blocked = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [8, 4], warpsPerCTA = [4, 1], order = [1, 0]}>
#wide = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [1, 32], warpsPerCTA = [4, 1], order = [1, 0]}>
#row = #ttg.blocked<{sizePerThread = [8], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
#one = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
#mma = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 8]}>
#shared = #ttg.swizzled_shared<{vec = 8, perPhase = 2, maxPhase = 4, order = [1, 0]}>
#padded = #ttg.padded_shared<[512:+8] {order = [1, 0], shape = [128, 32]}>
#nvmma = #ttg.nvmma_shared<{swizzlingByteWidth = 64, transposed = false, elementBitWidth = 16}>
#fp4 = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = true, elementBitWidth = 8, fp4Padded = true}>
#bar = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory
"""


def bill(
    body: str, *, target: str = "cuda:80", triton: str | None = "3.6.0", declared: int | None = None
) -> SharedMemoryUsage:
    warp = 64 if target.startswith("hip:gfx9") else 32
    header = f'"ttg.num-warps" = 4 : i32, ttg.target = "{target}", "ttg.threads-per-warp" = {warp} : i32'
    text = f"{LAYOUTS}module attributes {{{header}}} {{\n  tt.func public @k(%p: !tt.ptr<i32>) {{\n{body}\n    tt.return\n  }}\n}}\n"
    return bill_of(text, triton, declared)


def bill_of(text: str, triton: str | None, declared: int | None) -> SharedMemoryUsage:
    module = FORMAT.parse(SourceText("k.ttgir", text), Stage.TTGIR)
    codes = [FunctionCode(f, module, FORMAT) for f in module.functions]
    found = find_shared_memory_usage(codes, declared, triton and TritonVersion(triton))
    assert found is not None
    return found
