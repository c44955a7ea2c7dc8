"""Runs check-memory, and checks recorded launches, also of machine code without some instructions."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from artifact_inspector.api.launches import pair_launches, recorded_launches
from artifact_inspector.api.memory_errors import check_launches
from artifact_inspector.cli._loading import make_disassembler
from artifact_inspector.execution.launch_requests import LaunchRequest
from artifact_inspector.files.cache import Artifact, open_cache
from artifact_inspector.memory_checks.problems import MemoryReport

REFERENCE_SIZES = {
    "attention_backward": {"heads": 2, "seq_len": 256}, "flash_attention": {"heads": 2, "seq_len": 256},
    "fused_linear": {"m": 256, "n": 256, "k": 256}, "gemv_int4": {"k": 512, "n": 1024},
    "gemv_loads_first": {"k": 512, "n": 1024}, "gemv_splitk": {"k": 512, "n": 1024},
    "histogram": {"length": 1 << 14}, "layer_norm": {"rows": 64}, "linear_scan": {"rows": 64, "length": 256},
    "matmul_descriptor": {"m": 256, "n": 256, "k": 256}, "matmul_grouped": {"m": 256, "n": 256, "k": 256},
    "matmul_persistent": {"m": 256, "n": 256, "k": 256},
    "matmul_persistent_descriptor": {"m": 256, "n": 256, "k": 256}, "matmul_scaled": {"m": 256, "n": 256, "k": 256},
    "matmul_splitk": {"m": 64, "n": 256, "k": 1024}, "matmul_square": {"m": 256, "n": 256, "k": 256},
    "matmul_warp_specialised": {"m": 256, "n": 256, "k": 256}, "softmax": {"rows": 64},
    "grouped_gemm": {"rows": 256, "groups": 2, "n": 256, "k": 256},
}  # fmt: skip
LAUNCH_REFERENCE = "import sys; from artifact_inspector.kernels.{0} import workload; workload(**{1!r}).launch()"


def run_command(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "artifact_inspector", "check-memory", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)


def check_cache(
    path: Path, name: str | None = None, change: Callable[[LaunchRequest], LaunchRequest] | None = None
) -> list[MemoryReport]:
    opened = open_cache(path)
    requests = [change(request) if change else request for request in recorded_launches(opened, name)]
    pairs = pair_launches(opened, name, (), requests)
    return check_launches(pairs, make_disassembler([entry for entry, _ in pairs], None, sass=True))


def _without(text: str, pattern: str, replacement: str) -> str:
    changed, count = re.subn(pattern, replacement, text)
    assert count, pattern
    return changed


def check_rewritten(captured: Path, kernel: str, destination: Path, pattern: str, suffix: str) -> list[MemoryReport]:
    """The report on a kernel whose machine code lacks some instructions."""
    opened = open_cache(captured)
    entry: Artifact = next(entry for entry in opened.entries if entry.display_name == kernel)
    (request, *_) = recorded_launches(opened, kernel)
    if suffix == "sass":
        disassemble = make_disassembler([entry], None, sass=True)
        assert disassemble is not None
        text = disassemble("cubin", entry.files["cubin"].read_bytes())
        code = _without(text, pattern, "NOP")
    else:
        code = _without(entry.files["amdgcn"].read_text(), pattern, "s_nop 0")
    target = destination / "entry"
    target.mkdir()
    for file in entry.files.values():
        if isinstance(file, Path) and file.suffix not in (".cubin", ".hsaco", ".amdgcn"):
            (target / file.name).write_bytes(file.read_bytes())
    (target / f"{kernel}.{suffix}").write_text(code)
    changed = open_cache(destination).entries[0]
    return check_launches([(changed, request)], None)
