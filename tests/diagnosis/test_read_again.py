"""Causes in kernels of several passes over rows: what is read again, and accesses of one element."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from artifact_inspector.compiling import KernelRequest, compile_kernels
from artifact_inspector.diagnosis.arithmetic_causes import find_arithmetic_causes
from artifact_inspector.diagnosis.attribution import join_lines
from artifact_inspector.diagnosis.cause import CauseKind
from artifact_inspector.diagnosis.latency_causes import find_latency_causes
from artifact_inspector.diagnosis.launch_model import LaunchModel, model_launch
from artifact_inspector.diagnosis.memory_causes import find_memory_causes
from artifact_inspector.diagnosis.source_operations import read_source_operations
from artifact_inspector.execution.launch_requests import LaunchRequest, parse_argument
from artifact_inspector.execution.timing.candidates import RankingCandidate
from artifact_inspector.files.cache import open_cache
from artifact_inspector.files.disassembly import find_disassembler
from artifact_inspector.files.objdump import binary_disassembler

KERNEL = """import triton, triton.language as tl

@triton.jit
def centre(x_ptr, y_ptr, COLS, BLOCK: tl.constexpr):
    x_ptr += tl.program_id(0) * COLS
    y_ptr += tl.program_id(0) * COLS
    total = tl.zeros([BLOCK], tl.float32)
    for start in range(0, COLS, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        total += tl.load(x_ptr + cols, mask=cols < COLS, other=0.0)
    mean = (tl.sum(total) - tl.load(x_ptr + 7)) / COLS
    for start in range(0, COLS, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + cols, mask=cols < COLS)
        tl.store(y_ptr + cols, (x - mean).to(y_ptr.dtype.element_ty), mask=cols < COLS)
"""
FIRST_PASS, SECOND_PASS = "centre.py:10", "centre.py:14"


def model_centre(
    directory: Path,
    element: str,
    rows: int,
    columns: int,
    fetched: Callable[..., Mapping[str, float]] | None = None,
    kernel: str = KERNEL,
) -> LaunchModel:
    """The model of a launch on sm_90."""
    (directory / "centre.py").write_text(kernel)
    count = "i32:16" if columns % 16 == 0 else "i32"
    types = {"x_ptr": f"*{element}:16", "y_ptr": f"*{element}:16", "COLS": count}
    request = KernelRequest(f"{directory}/centre.py:centre", types, {"BLOCK": 2048}, {"num_warps": 8})
    compile_kernels([request], ["sm_90"], directory / "cache")
    (entry,) = open_cache(directory / "cache").entries
    tensor = f"{element}[{rows * columns}]"
    arguments = (f"x_ptr={tensor}", f"y_ptr={tensor}", f"COLS={columns}")
    candidate = RankingCandidate(
        entry, LaunchRequest((str(rows),), dict(map(parse_argument, arguments))), entry.constants
    )
    disassemble = binary_disassembler(find_disassembler(None))
    return model_launch(candidate, disassemble, **({} if fetched is None else {"fetched": fetched}))


@pytest.mark.long
@pytest.mark.parametrize("times", [1.0, 1.2, 2.0])
def test_any_excess_is_named_at_the_second_pass(tmp_path: Path, times: float) -> None:
    """CTAs that share a tensor must fetch it half again before it counts; what a CTA reads again is certain."""
    rows, columns = 4096, 16384
    model = model_centre(tmp_path, "fp32", rows, columns, lambda *_: {"x_ptr": times * 4 * rows * columns})
    found = [cause for cause in find_memory_causes(model) if cause.kind is CauseKind.REFETCHED and cause.share]
    assert [cause.line for cause in found] == [SECOND_PASS] * (times > 1)  # not that of the scalar
    # all of it is read and written once, and read again
    assert sum(cause.share or 0 for cause in found) == pytest.approx((times - 1) / (times + 1), abs=0.05)
    assert all("read it in one pass" in cause.reason for cause in found)


@pytest.mark.long
@pytest.mark.parametrize(("columns", "narrow"), [(50257, True), (50272, False)])
def test_rows_of_an_odd_number_of_halves_are_to_be_padded(tmp_path: Path, columns: int, narrow: bool) -> None:
    """Each thread loads one element at a time, also without a dot; asynchronous copies cannot help."""
    model = model_centre(tmp_path, "bf16", 512, columns, lambda *_: {})
    found = {cause.line: cause.reason for cause in find_memory_causes(model) if cause.kind is CauseKind.NARROW_ACCESS}
    assert found.keys() == ({FIRST_PASS, SECOND_PASS, "centre.py:15"} if narrow else set())
    padding = "pad them to a stride of a multiple of 16 elements, and COLS is 50257: make it a multiple of 16; both are needed"
    assert all(reason.endswith(padding) for reason in found.values())
    serial = [cause.reason for cause in find_latency_causes(model) if cause.kind is CauseKind.SERIAL_LOOP]
    remedy = (
        "asynchronous copies take 4 B of a thread at least, and it loads 2" if narrow else "set num_stages in tl.range"
    )
    assert [reason.partition("; ")[2] for reason in serial] == [remedy]


@pytest.mark.long
def test_fp64_in_a_loop_is_named_at_its_own_line(tmp_path: Path) -> None:
    """Beside a line that converts halves, as most kernels do: one sentence for both would be false of one."""
    kernel = KERNEL.replace(
        "cols < COLS)\n        tl", "cols < COLS)\n        x = (x.to(tl.float64) * 1.1).to(tl.float32)\n        tl"
    )
    model = model_centre(tmp_path, "bf16", 512, 16384, lambda *_: {}, kernel)
    found = [cause for cause in find_arithmetic_causes(model) if cause.kind is CauseKind.TYPE_CONVERSION]
    joined = {cause.line: (cause.reason, cause.more_lines) for cause in join_lines(model, found)}
    reason, more_lines = joined["centre.py:15"]
    assert reason == "every iteration converts to fp64 or back; compute in fp32"
    assert more_lines == ()
    assert all("fp64" not in reason for line, (reason, _) in joined.items() if line != "centre.py:15")


@pytest.mark.long
def test_an_operand_that_is_loaded_is_not_computed(tmp_path: Path) -> None:
    """Without copies past the registers, AMD's loads are stored to LDS: in the TTGIR, a load of another dialect."""
    request = KernelRequest("matmul_grouped", options={"num_stages": 1})
    compile_kernels([request], ["gfx942"], tmp_path)
    (entry,) = open_cache(tmp_path).entries
    text = entry.files["ttgir"].read_text()
    assert "buffer_load" in text
    assert "ttg.local_alloc %" in text
    assert read_source_operations(entry).stores_operand == set()
