"""What compilers print is read as what they said, of which line, and how often."""

import re
from importlib.util import find_spec
from pathlib import Path

import pytest

from artifact_inspector.compiling import compile_kernel, compile_reference
from artifact_inspector.facts.inspection import inspect_cache
from artifact_inspector.files.cache import open_cache
from artifact_inspector.files.compiler_remarks import CompilerRemark, parse_remarks

needs_triton = pytest.mark.skipif(find_spec("triton") is None, reason="Compiling needs Triton (Linux).")

# as Triton 3.9 prints it for fixtures/sources/causal.py on sm_100
INLINED = """\
/src/causal.py:36:42: remark: MMA version 5 acceleration not applied due to unsupported shapes or data types.
        acc = tl.dot(p.to(tl.float16), v, acc * correction[:, None])
                                         ^
/src/causal.py:57:95: note: called from
        q, k_ptr, v_ptr, acc, row_max, row_sum, offs_m, start_m, stop, stride, True, HEAD_DIM, BLOCK_N
                                                                                              ^
/src/causal.py:36:42: note: Target compute capability (100) supports MMA v5.
        acc = tl.dot(p.to(tl.float16), v, acc * correction[:, None])
                                         ^
"""
# as ptxas of CUDA 13 prints it for a matmul of 128×256 on four warps
PTXAS = """\
ptxas-blackwell info    : (C7511) Potential Performance Loss: wgmma.mma_async instructions are serialized due to insufficient register resources for the wgmma pipeline in the function 'matmul_kernel' in line 1377
ptxas-blackwell info    : 0 bytes gmem
ptxas-blackwell info    : Compiling entry function 'matmul_kernel' for 'sm_90a'
ptxas-blackwell info    : Function properties for matmul_kernel
    792 bytes stack frame, 2008 bytes spill stores, 1496 bytes spill loads
ptxas-blackwell info    : Used 255 registers, used 1 barriers, 792 bytes cumulative stack size
ptxas-blackwell info    : Compile time = 1570.860 ms
"""


def test_a_remark_has_its_line_its_callers_and_its_notes():
    assert parse_remarks(INLINED) == (
        CompilerRemark(
            "triton",
            "remark",
            "MMA version 5 acceleration not applied due to unsupported shapes or data types.",
            source="causal.py:36",
            called_from=("causal.py:57",),
            notes=("Target compute capability (100) supports MMA v5.",),
        ),
    )


def test_what_is_said_twice_is_one_remark_with_a_count():
    (remark,) = parse_remarks(INLINED * 3)
    assert remark.count == 3


def test_ptxas_is_quoted_without_its_sizes():
    wgmma, spills = parse_remarks(PTXAS)
    assert (wgmma.tool, wgmma.kind, wgmma.code, wgmma.ptx_line) == ("ptxas", "advisory", "C7511", 1377)
    assert wgmma.message == (
        "Potential Performance Loss: wgmma.mma_async instructions are serialized due to insufficient register "
        "resources for the wgmma pipeline"
    )
    assert spills.message == "spills: 2008 bytes of stores, 1496 bytes of loads"


def test_no_spills_are_nothing_to_say():
    assert parse_remarks("    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n") == ()


@pytest.mark.parametrize("line", ["", "UserWarning: x", "  ^", "module {", "a: b: c", "x.py:3: remark: short", "ptxas"])
def test_other_lines_are_passed_over(line):
    assert parse_remarks(f"{line}\n{line}") == ()


def test_a_number_that_no_compiler_writes_is_not_known_and_costs_no_other_remark():
    long = "9" * 5000
    cut, advisory = parse_remarks(
        f"x.py:3:1: remark: kept\n    {long} bytes stack frame, {long} bytes spill stores, 0 bytes spill loads\n"
        f"ptxas info : (C7511) Potential Performance Loss: slow in line {long}\n"
    )
    assert cut.message == "kept"
    assert (advisory.code, advisory.ptx_line) == ("C7511", None)


def test_warnings_of_both_are_warnings():
    mlir, ptxas = parse_remarks(
        "loc(unknown): warning: Failed to legalize\nptxas warning : Too many maxnreg specified, will be ignored\n"
    )
    assert (mlir.kind, mlir.source, ptxas.kind, ptxas.code) == ("warning", None, "warning", None)


@pytest.mark.long
@needs_triton
def test_a_compile_keeps_what_was_said_of_a_dot_at_its_line_and_changes_no_key(tmp_path, monkeypatch):
    monkeypatch.delenv("MLIR_ENABLE_DIAGNOSTICS", raising=False)
    (result,) = compile_reference(["matmul_square"], ["sm_75"], tmp_path)
    (kernel,) = inspect_cache(open_cache(tmp_path))
    source = (result.directory / "matmul_square_kernel.remarks").read_text()
    line = re.search(r"matmul_square\.py:(\d+):\d+: remark: (Dot op using MMA.*)", source)
    (said,) = [remark for remark in kernel.remarks if remark.message == line[2]]
    assert said.source == f"matmul_square.py:{line[1]}"
    # Triton counts the variable into the key when it is set before
    assert "MLIR_ENABLE_DIAGNOSTICS" not in kernel.artifact.metadata


@pytest.mark.long
@needs_triton
def test_the_spills_that_ptxas_tells_of_are_those_that_the_cubin_has(tmp_path):
    place = Path(__file__).parents[2] / "fixtures" / "sources" / "register_spill.py"
    made = compile_kernel(str(place), "sm_80", out_dir=tmp_path)
    (kernel,) = inspect_cache(open_cache(made.directory))
    (said,) = [remark for remark in kernel.remarks if remark.message.startswith("spills")]
    resources = kernel.resources
    assert said.message == (
        f"spills: {resources.spill_bytes.value} bytes of stores, {resources.reload_bytes.value} bytes of loads"
    )
