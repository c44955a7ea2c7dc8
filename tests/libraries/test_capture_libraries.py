"""Public libraries' own wrappers run untouched, and their kernels are compiled for two vendors with no GPU."""

from __future__ import annotations

import textwrap
from importlib.util import find_spec
from pathlib import Path

import pytest

from artifact_inspector.compiling import capture_program
from artifact_inspector.facts.inspection import inspect_cache
from artifact_inspector.files.cache import open_cache

PROGRAMS = {
    "liger_kernel": """
        import torch
        from liger_kernel.ops.cross_entropy import LigerCrossEntropyFunction
        from liger_kernel.ops.rms_norm import LigerRMSNormFunction

        x = torch.randn(4, 256, 1024, device="cuda", dtype=torch.bfloat16, requires_grad=True)
        weight = torch.ones(1024, device="cuda", dtype=torch.bfloat16, requires_grad=True)
        LigerRMSNormFunction.apply(x, weight, 1e-6).sum().backward()
        scores = torch.randn(8, 32000, device="cuda", dtype=torch.bfloat16)
        LigerCrossEntropyFunction.apply(scores, torch.zeros(8, dtype=torch.long, device="cuda"), None)
    """,
    "fla": """
        import torch
        from fla.ops.gla import chunk_gla

        q, k, v, g = (torch.randn(1, 128, 2, 64, device="cuda", dtype=torch.bfloat16) for _ in range(4))
        chunk_gla(q, k, v, torch.nn.functional.logsigmoid(g))
    """,
    "gemlite": """
        import torch
        from gemlite import DType, GemLiteLinear

        layer = GemLiteLinear(4, group_size=64, in_features=1024, out_features=1024,
                              input_dtype=DType.FP16, output_dtype=DType.FP16)
        scales, zeros = torch.ones(2, 1024 * 1024 // 64, 1, device="cuda", dtype=torch.float16)
        layer.pack(torch.randint(0, 16, (1024, 1024), device="cuda", dtype=torch.uint8), scales, zeros, None)
        for rows in (1, 128):
            layer(torch.randn(rows, 1024, device="cuda", dtype=torch.float16))
    """,
}
KERNELS = {
    "liger_kernel": {"_rms_norm_forward_kernel", "_rms_norm_backward_kernel", "liger_cross_entropy_kernel"},
    "fla": {"chunk_local_cumsum_vector_kernel", "chunk_fwd_kernel_h", "chunk_gla_fwd_kernel_o"},
    "gemlite": {"gemv_INT_revsplitK_kernel", "gemm_INT_kernel"},
}


@pytest.mark.exhaustive
@pytest.mark.parametrize("library", PROGRAMS)
def test_a_library_is_captured_for_two_vendors(library: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("triton", "torch", library):
        if find_spec(name) is None:
            pytest.skip(f"{name} is not installed; the test extra has it, on Linux.")
    monkeypatch.chdir(tmp_path)
    Path("program.py").write_text(textwrap.dedent(PROGRAMS[library]))
    runs = capture_program(["python", "program.py"], ["sm_80", "gfx942"], tmp_path / "out", configs=1)
    assert [(run.target.arch, run.status) for run in runs] == [("sm_80", 0), ("gfx942", 0)], runs[1].output
    for run in runs:
        assert [kernel.message for kernel in run.kernels if kernel.message is not None] == []
        assert {kernel.name for kernel in run.kernels} >= KERNELS[library]
        for kernel in run.kernels:
            assert kernel.launches
            assert {launch.caller.partition(":")[0] for launch in kernel.launches} == {"program.py"}
            assert {launch.location.partition("/")[0] for launch in kernel.launches} == {library}
    if library == "liger_kernel":
        # 1024 threads either way: its cross_entropy.py takes 16 warps where a warp has 64 lanes
        chosen = [k.options["num_warps"] for run in runs for k in run.kernels if "cross" in k.name]
        assert chosen == [32, 16]
    cache = open_cache(tmp_path / "out")
    captured = {kernel.hash for run in runs for kernel in run.kernels}
    assert {entry.hash for entry in cache.entries} == captured
    found = list(inspect_cache(cache))
    assert len(found) == len(captured)
    assert [problem for facts in found for problem in facts.problems] == []
