"""Two autotuners of a matmul and of column sums: with all configurations timed, and with the six best.

    python docs/how-to/pruned_autotuner.py

Needs a GPU. Prints, for each, how long pruning (compiling and ranking) and timing took, and what the choice costs.
"""

from __future__ import annotations

import itertools
import tempfile
import time

import torch
import triton
import triton.language as tl
from triton.testing import do_bench

from artifact_inspector import prune_configs

MATMUL = [
    triton.Config({"BLOCK_M": m, "BLOCK_N": n, "BLOCK_K": k}, num_warps=warps, num_stages=stages)
    for m, n, k, warps, stages in itertools.product((64, 128), (64, 128, 256), (32, 64), (4, 8), (2, 3))
]
COLUMNS = [
    triton.Config({"BLOCK_R": r, "BLOCK_C": c}, num_warps=warps)
    for r, c, warps in itertools.product((8, 16, 32, 64, 128), (16, 32, 64, 128, 256), (2, 4, 8))
]


@triton.jit
def matmul(a, b, c, M, N, K, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr):
    row = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    column = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    inner = tl.arange(0, BLOCK_K)
    a_block = a + row[:, None] * K + inner[None, :]
    b_block = b + inner[:, None] * N + column[None, :]
    total = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for _ in range(0, K, BLOCK_K):
        total = tl.dot(tl.load(a_block), tl.load(b_block), total)
        a_block += BLOCK_K
        b_block += BLOCK_K * N
    tl.store(c + row[:, None] * N + column[None, :], total.to(tl.float16))


@triton.jit
def column_sum(x, out, rows, columns, BLOCK_R: tl.constexpr, BLOCK_C: tl.constexpr):
    column = tl.program_id(0) * BLOCK_C + tl.arange(0, BLOCK_C)
    first = tl.program_id(1) * 512
    total = tl.zeros((BLOCK_C,), tl.float32)
    for start in range(first, first + 512, BLOCK_R):
        row = start + tl.arange(0, BLOCK_R)
        inside = (row[:, None] < rows) & (column[None, :] < columns)
        block = tl.load(x + row[:, None] * columns + column[None, :], mask=inside, other=0.0)
        total += tl.sum(block.to(tl.float32), axis=0)
    tl.atomic_add(out + column, total, mask=column < columns)


def compare(name, kernel, configs, grid, arguments, key):
    """Autotune a kernel both ways and print what each took."""
    launches = {}
    for way in ("pruned", "all"):
        with tempfile.TemporaryDirectory() as cache, triton.knobs.cache.scope():
            triton.knobs.cache.dir = cache
            prune = prune_configs()
            by = {"early_config_prune": prune} if way == "pruned" else None
            kernel.device_caches.clear()
            tuned = triton.autotune(configs, key, prune_configs_by=by)(kernel)
            start = time.perf_counter()
            tuned[grid](*arguments)
            torch.cuda.synchronize()
            took = time.perf_counter() - start
            best = tuned.best_config
            milliseconds = do_bench(lambda t=tuned: t[grid](*arguments), rep=200, return_mode="median")
        launches[way] = milliseconds
        rest = took - prune.seconds
        print(f"{name} {way}: {len(configs)} configurations, pruning {prune.seconds:.1f} s, rest {rest:.1f} s")
        print(f"    chosen: {best}, {milliseconds:.4f} ms", flush=True)
        if prune.failed:
            print(f"    {len(prune.failed)} did not compile, or for too long")
    print(f"{name}: regret {launches['pruned'] / launches['all']:.3f}", flush=True)


def main():
    a, b = (torch.randn((4096, 4096), device="cuda", dtype=torch.float16) for _ in range(2))
    c = torch.empty_like(a)
    size = 4096
    compare(
        "matmul",
        matmul,
        MATMUL,
        lambda meta: (triton.cdiv(size, meta["BLOCK_M"]), triton.cdiv(size, meta["BLOCK_N"])),
        (a, b, c, size, size, size),
        ["M", "N", "K"],
    )
    x = torch.randn((16384, 6000), device="cuda", dtype=torch.float16)
    out = torch.zeros((6000,), device="cuda")
    compare(
        "column_sum",
        column_sum,
        COLUMNS,
        lambda meta: (triton.cdiv(6000, meta["BLOCK_C"]), 32),
        (x, out, 16384, 6000),
        ["rows", "columns"],
    )


if __name__ == "__main__":
    main()
