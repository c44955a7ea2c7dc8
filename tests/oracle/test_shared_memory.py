"""Triton's own allocator judges size and place of every entry of the bill, for its own version's files."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from saved import Saved, saved_kernels

from artifact_inspector.analysis.flow.function_code import FunctionCode
from artifact_inspector.analysis.shared.shared_memory_usage import SharedMemoryUsage, find_shared_memory_usage
from artifact_inspector.formats.mlir.parser import FORMAT
from artifact_inspector.model import Stage, TritonVersion
from artifact_inspector.model.text import SourceText

triton = pytest.importorskip("triton")
_PLACE = re.compile(r"allocation\.offset = (\d+)")
_SIZE = re.compile(r"allocation\.size = (\d+)")
_TAKEN = re.compile(r"ttg\.shared = (\d+)")

FILES = [pytest.param(kernel, id=kernel.path) for kernel in saved_kernels() if kernel.version == triton.__version__]


@pytest.fixture(scope="module")
def library() -> Any:
    return pytest.importorskip("triton._C.libtriton")


def allocated(library: Any, path: str, target: str) -> str:
    """The module with `allocation.offset` and `allocation.size` on everything that takes shared memory."""
    context = library.ir.context()
    library.ir.load_dialects(context)
    library.nvidia.load_dialects(context)
    library.amd.load_dialects(context)
    module = library.ir.parse_mlir_module(path, context)
    module.context = context
    manager = library.ir.pass_manager(context)
    if target.startswith("sm_"):
        library.passes.ttgpuir.add_allocate_warp_groups(manager, False)
        library.passes.convert.add_scf_to_cf(manager)
        library.nvidia.passes.ttgpuir.add_allocate_shared_memory_nv(manager, int(target[3:]), 87)
    else:
        library.passes.convert.add_scf_to_cf(manager)
        library.amd.passes.ttgpuir.add_allocate_shared_memory(manager, target)
    manager.run(module, "judge")
    return str(module)


def judged(text: str, name: str) -> SharedMemoryUsage:
    """The bill of a module that Triton has allocated."""
    taken = _TAKEN.search(text)
    assert taken is not None
    parsed = FORMAT.parse(SourceText(name, text), Stage.TTGIR)
    codes = [FunctionCode(f, parsed, FORMAT) for f in parsed.functions]
    bill = find_shared_memory_usage(codes, int(taken[1]), TritonVersion(triton.__version__))
    assert bill is not None
    return bill


def agree(text: str, bill: SharedMemoryUsage) -> None:
    """Every entry has the place, and where it is told the size, that Triton gave it, and none is missing."""
    assert bill.is_accounted, bill.note
    lines = text.split("\n")
    assert len(bill.entries) == sum(1 for line in lines if _PLACE.search(line) is not None)
    for entry in bill.entries:
        at = entry.line - 1
        while _PLACE.search(lines[at]) is None:  # an operation with a body has them behind it
            at += 1
        place, size = _PLACE.search(lines[at]), _SIZE.search(lines[at])
        assert place is not None
        assert entry.offset == int(place[1]), lines[at]
        if size is not None:
            assert entry.bytes == int(size[1]), lines[at]


@pytest.mark.parametrize("kernel", FILES)
def test_triton_places_everything_where_the_bill_says(library: Any, kernel: Saved) -> None:
    text = allocated(library, str(kernel.artifact.files["ttgir"]), kernel.target)
    bill = judged(text, kernel.path)
    if bill.peak is None:
        pytest.skip(bill.note)
    agree(text, bill)


BLOCKED = "#ttg.blocked<{{sizePerThread = {}, threadsPerWarp = {}, warpsPerCTA = {}, order = {}}}>"
NVIDIA = (
    BLOCKED.format([1, 8], [8, 4], [4, 1], [1, 0]),
    BLOCKED.format([1, 1], [1, 32], [4, 1], [1, 0]),
    BLOCKED.format([1, 4], [4, 8], [2, 2], [1, 0]),
    BLOCKED.format([8, 1], [4, 8], [1, 4], [0, 1]),
    BLOCKED.format([4, 4], [8, 4], [4, 1], [1, 0]),
    BLOCKED.format([1, 2], [1, 32], [1, 4], [1, 0]),
    "#ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [2, 2], instrShape = [16, 8]}>",
    "#ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 32, 16]}>",
)
AMD = (
    BLOCKED.format([1, 8], [16, 4], [4, 1], [1, 0]),
    BLOCKED.format([4, 4], [8, 8], [4, 1], [1, 0]),
    BLOCKED.format([1, 1], [1, 64], [4, 1], [1, 0]),
    BLOCKED.format([4, 1], [8, 8], [1, 4], [0, 1]),
    "#ttg.amd_mfma<{version = 3, warpsPerCTA = [2, 2], instrShape = [32, 32, 8], isTransposed = true}>",
    "#ttg.amd_mfma<{version = 3, warpsPerCTA = [4, 1], instrShape = [16, 16, 16], isTransposed = false}>",
)


def scratch_module(layouts: tuple[str, ...], target: str) -> str:
    """A module with every conversion between the layouts, and reductions and scans of each."""
    warp = 64 if target.startswith("hip") else 32
    arguments, body = [], []
    for tensor in ("128x64xf16", "64x32xf32", "128x128xi8"):
        for i, before in enumerate(layouts):
            value = f"%x{len(arguments)}"
            arguments.append(f"{value}: tensor<{tensor}, {before}>")
            body += [
                f"ttg.convert_layout {value} : tensor<{tensor}, {before}> -> tensor<{tensor}, {after}>"
                for j, after in enumerate(layouts)
                if i != j
            ]
            rows, columns, element = tensor.split("x")
            add = "arith.addi" if element == "i8" else "arith.addf"
            for axis, left in enumerate((columns, rows)):
                result = f"tensor<{left}x{element}, #ttg.slice<{{dim = {axis}, parent = {before}}}>>"
                body.append(
                    f'"tt.reduce"({value}) <{{axis = {axis} : i32}}> ({{\n^bb0(%p: {element}, %q: {element}):\n'
                    f"%s = {add} %p, %q : {element}\ntt.reduce.return %s : {element}\n"
                    f"}}) : (tensor<{tensor}, {before}>) -> {result}"
                )
    numbered = "\n".join(f"%y{number} = {line}" for number, line in enumerate(body))
    header = f'"ttg.num-warps" = 4 : i32, ttg.target = "{target}", "ttg.threads-per-warp" = {warp} : i32'
    header += ', "ttg.num-ctas" = 1 : i32'
    return f"module attributes {{{header}}} {{\ntt.func public @k({', '.join(arguments)}) {{\n{numbered}\ntt.return\n}}\n}}\n"


@pytest.mark.parametrize(
    ("layouts", "target", "architecture"),
    [(NVIDIA, "cuda:80", "sm_80"), (NVIDIA, "cuda:90", "sm_90"), (AMD, "hip:gfx942", "gfx942")],
    ids=["sm_80", "sm_90", "gfx942"],
)
def test_conversions_and_reductions_take_what_triton_takes(
    library: Any, tmp_path: Path, layouts: tuple[str, ...], target: str, architecture: str
) -> None:
    path = tmp_path / "k.ttgir"
    path.write_text(scratch_module(layouts, target))
    text = allocated(library, str(path), architecture)
    bill = judged(text, "k.ttgir")
    assert len(bill.entries) > 50
    agree(text, bill)
