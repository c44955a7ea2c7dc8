"""Rows that each CTA reads again after the L2 has dropped them."""

from __future__ import annotations

from pathlib import Path

import pytest

from artifact_inspector.compiling import KernelRequest, compile_kernels
from artifact_inspector.diagnosis.cause import CauseKind
from artifact_inspector.diagnosis.launch_model import model_launch
from artifact_inspector.diagnosis.memory_causes import find_memory_causes
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
        total += tl.load(x_ptr + start + tl.arange(0, BLOCK))
    mean = tl.sum(total) / COLS
    for start in range(0, COLS, BLOCK):
        x = tl.load(x_ptr + start + tl.arange(0, BLOCK))
        tl.store(y_ptr + start + tl.arange(0, BLOCK), x - mean)
"""
SECOND_PASS = "centre.py:12"
ROWS, COLS = 4096, 16384


@pytest.mark.long
def test_any_excess_is_named_at_the_second_pass(tmp_path: Path) -> None:
    """CTAs that share a tensor must fetch it half again before it counts; what a CTA reads again is certain."""
    (tmp_path / "centre.py").write_text(KERNEL)
    types = {"x_ptr": "*fp32:16", "y_ptr": "*fp32:16", "COLS": "i32:16"}
    request = KernelRequest(f"{tmp_path}/centre.py:centre", types, {"BLOCK": 2048}, {"num_warps": 8})
    compile_kernels([request], ["sm_90"], tmp_path / "cache")
    (entry,) = open_cache(tmp_path / "cache").entries
    tensor = f"fp32[{ROWS * COLS}]"
    launch = LaunchRequest(
        (str(ROWS),), dict(map(parse_argument, (f"x_ptr={tensor}", f"y_ptr={tensor}", f"COLS={COLS}")))
    )
    for times in (1.0, 1.2, 2.0):
        model = model_launch(
            RankingCandidate(entry, launch, entry.constants),
            binary_disassembler(find_disassembler(None)),
            fetched=lambda *_, times=times: {"x_ptr": times * 4 * ROWS * COLS},
        )
        found = [cause for cause in find_memory_causes(model) if cause.kind is CauseKind.REFETCHED and cause.share]
        assert [cause.line for cause in found] == [SECOND_PASS] * (times > 1)
        # all of it is read and written once, and read again
        assert sum(cause.share or 0 for cause in found) == pytest.approx((times - 1) / (times + 1), abs=0.05)
        assert all("read it in one pass" in cause.reason for cause in found)
