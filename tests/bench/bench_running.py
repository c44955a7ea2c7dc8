"""Running kernels on paper: what it brings to run the trips of a loop side by side."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np

from artifact_inspector.execution.kernel_loader import LoadedKernel, load_kernel
from artifact_inspector.execution.launch import KernelLaunch, Tensor
from artifact_inspector.execution.simulation import simulate_launch
from artifact_inspector.files.cache import open_cache

FIXTURES = Path(__file__).parents[2] / "fixtures" / "3.6.0"
DEPTH = 8192
MOST = 2.0
"""Seconds of a processor for a CTA."""


def seconds(loaded: LoadedKernel, launch: KernelLaunch, *, side_by_side: bool) -> float:
    started = time.process_time()
    simulate_launch(loaded, launch, ctas=np.array([0]), runs_in_parallel=side_by_side)
    return time.process_time() - started


def bench_a_cta_whose_loop_is_long() -> None:
    half = {"a_ptr": Tensor((256, DEPTH), "fp16"), "b_ptr": Tensor((DEPTH, 256), "fp16")}
    numbers = {"M": 256, "N": 256, "K": DEPTH, "stride_am": DEPTH, "stride_bk": 256, "stride_cm": 256}
    launch = KernelLaunch((1, 1, 1), {**half, "c_ptr": Tensor((256, 256), "fp16"), **numbers})
    (entry,) = open_cache(FIXTURES / "gfx942" / "matmul_grouped").entries
    loaded = load_kernel(entry, None)
    pairs = [[seconds(loaded, launch, side_by_side=on) for on in (True, False)] for _ in range(5)]
    ratio = sorted(one / other for one, other in pairs)[2]
    least, slow = min(one for one, _ in pairs), min(other for _, other in pairs)
    print(f"side by side {least:.2f} s, one by one {slow:.2f} s; of five pairs ×{ratio:.2f}")
    assert ratio < 0.5
    assert least < MOST
