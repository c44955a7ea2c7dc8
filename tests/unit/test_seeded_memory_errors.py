"""Errors seeded into copies of the reference kernels are named with kind and line: 5 kinds, 6 kernels, 2 targets."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from memory_cases import LAUNCH_REFERENCE, REFERENCE_SIZES, check_cache, check_rewritten, run_command
from saved import ROOT

from artifact_inspector.execution.launch import Tensor
from artifact_inspector.execution.launch_requests import LaunchRequest
from artifact_inspector.memory_checks.problems import Check, MemoryReport

TARGETS = ("sm_80", "sm_90")
PRODUCTS = ("matmul_grouped", "flash_attention", "fused_linear", "attention_backward", "matmul_persistent")
SEEDS = {
    "missing row": ("matmul_grouped", "flash_attention", "fused_linear", "layer_norm", "linear_scan", "softmax"),
    "shifted pointer": ("matmul_grouped", "flash_attention", "fused_linear", "layer_norm", "linear_scan", "softmax"),
    "half grid": ("matmul_grouped", "flash_attention", "fused_linear", "matmul_scaled", "linear_scan", "layer_norm"),
    "no barrier": (*PRODUCTS, "layer_norm"),
    "no wait": (*PRODUCTS, "grouped_gemm"),
}
EXPECTED = {
    "missing row": {Check.OUT_OF_BOUNDS},
    "shifted pointer": {Check.MISALIGNED},
    "half grid": {Check.COVERAGE},
    "no barrier": {Check.SHARED_RACE},
    "no wait": {Check.UNAWAITED_COPY, Check.UNAWAITED_PRODUCT, Check.OPERAND_IN_USE},
}
LOADS = {
    "matmul_grouped": ("a = tl.load(a_ptrs", "b = tl.load(b_ptrs"),
    "flash_attention": ("q = tl.load(q_ptr", "k = tl.load(", "v = tl.load("),
    "fused_linear": ("x = tl.load(x_ptr", "w = tl.load(w_ptr"),
    "attention_backward": ("q_block = tl.load(q_ptr", "do_block = tl.load(do_ptr", "k_block = tl.load(k_ptr"),
    "matmul_persistent": ("a = tl.load(a_ptr", "b = tl.load(b_ptr"),
    "grouped_gemm": ("a = tl.load(a_ptrs", "b = tl.load(b_ptrs"),
    "layer_norm": ("mean = tl.sum(x", "variance = tl.sum(centred"),
}
"""The lines whose data pass through shared memory; in layer_norm, the sums of several warps."""
LINES = {
    "missing row": {**LOADS, "layer_norm": ("x = tl.load(x_ptr",), "linear_scan": ("a = tl.load(a_ptr",),
                    "softmax": ("x = tl.load(x_ptr",)},
    "half grid": {"matmul_grouped": ("tl.store(c_ptrs",), "flash_attention": ("tl.store(o_ptr",),
                  "fused_linear": ("tl.store(y_ptr",), "matmul_scaled": ("tl.store(c_ptr",),
                  "linear_scan": ("tl.store(y_ptr",), "layer_norm": ("tl.store(y_ptr",)},
    "no barrier": LOADS,
    "no wait": {**LOADS, "flash_attention": LOADS["flash_attention"][1:], "matmul_persistent": ("a = tl.load(a_ptr",)},
}  # fmt: skip
"""Seed, kernel → beginnings of lines, one of which must be named; for an address, the first, and no other."""
PATTERNS = {"no barrier": r"BAR\.SYNC[^;]*", "no wait": r"(WARPGROUP\.)?DEPBAR\.LE (SB0|gsb0)[^;]*"}


@pytest.fixture(scope="module")
def captured(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, str], Path]:
    """The cache of a reference kernel for a target."""
    caches: dict[tuple[str, str], Path] = {}

    def capture(kernel: str, target: str) -> Path:
        if (kernel, target) not in caches:
            caches[kernel, target] = tmp_path_factory.mktemp(kernel) / "cache"
            program = LAUNCH_REFERENCE.format(kernel, REFERENCE_SIZES[kernel])
            keep = ("--keep", str(caches[kernel, target]))
            assert run_command("-t", target, *keep, "--", sys.executable, "-c", program).returncode == 0
        return caches[kernel, target]

    return capture


def _seed_launch(request: LaunchRequest, seed: str) -> LaunchRequest:
    if seed == "half grid":
        x, *others = request.grid
        return replace(request, grid=(x // 2, *others))
    name, tensor = max(
        ((name, value) for name, value in request.arguments.items() if isinstance(value, Tensor)),
        key=lambda row: row[1].bytes,
    )
    changed = replace(tensor, shape=(tensor.shape[0] - 1, *tensor.shape[1:]))
    if seed == "shifted pointer":
        changed = replace(tensor, pointer=(1 << 40) + tensor.bits // 8)
    return replace(request, arguments={**request.arguments, name: changed})


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(
    ("seed", "kernel"),
    [
        pytest.param(seed, kernel, marks=pytest.mark.long if kernel == "softmax" else pytest.mark.exhaustive)
        for seed, kernels in SEEDS.items()
        for kernel in kernels
    ],
)
def test_a_seeded_error_is_named(
    captured: Callable[[str, str], Path], tmp_path: Path, seed: str, kernel: str, target: str
) -> None:
    cache = captured(kernel, target)
    reports: list[MemoryReport]
    if seed in PATTERNS:
        (entry,) = {report.kernel for report in check_cache(cache)}
        reports = check_rewritten(cache, entry, tmp_path, PATTERNS[seed], "sass")
    else:
        reports = check_cache(cache, change=lambda request: _seed_launch(request, seed))
    problems = [problem for report in reports for problem in report.problems if problem.check in EXPECTED[seed]]
    assert problems, reports
    source = (ROOT / "kernels" / f"{kernel}.py").read_text().splitlines()
    sites = [site for one in problems for site in (one.site, one.other_site) if site is not None]
    lines = {source[site.source_line - 1].strip() for site in sites}
    expected = LINES["missing row" if seed == "shifted pointer" else seed][kernel]
    if seed in PATTERNS:
        assert any(line.startswith(expected) for line in lines), lines
    else:
        assert [line.startswith(expected[0]) for line in lines] == [True], lines
