"""Autotuners of eleven kernels on a GPU: with every configuration timed, and with those that `prune_configs` leaves.

    python tests/bench/pruning.py [--pruned] [KERNEL …]

One line of JSON per kernel: elapsed seconds of both tuners, of them the pruner and the compiles, and the time of its
choice over that of the other's choice (medians, measured in turns). Each tuner begins with an empty compile cache.
`--pruned` measures that tuner only. The last three kernels were written after the pruner, and not changed since.
"""

from __future__ import annotations

import itertools
import json
import os
import sys
import tempfile
import time

import torch
import triton
import triton.language as tl
from triton.testing import do_bench

from artifact_inspector import prune_configs


def product_of(warps, stages=(3,), **blocks):
    """A configuration for each combination of blocks, warps and stages."""
    return [
        triton.Config(dict(zip(blocks, values, strict=True)), num_warps=w, num_stages=s)
        for *values, w, s in itertools.product(*blocks.values(), warps, stages)
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


@triton.jit
def attention(q, k, v, out, length, scale, D: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    head = tl.program_id(1).to(tl.int64) * length * D
    row = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    column, depth = tl.arange(0, BLOCK_N), tl.arange(0, D)
    queries = tl.load(q + head + row[:, None] * D + depth[None, :])
    top = tl.full((BLOCK_M,), float("-inf"), tl.float32)
    weight = tl.zeros((BLOCK_M,), tl.float32)
    total = tl.zeros((BLOCK_M, D), tl.float32)
    for start in range(0, length, BLOCK_N):
        keys = tl.load(k + head + (start + column)[None, :] * D + depth[:, None])
        scores = tl.dot(queries, keys) * scale
        new_top = tl.maximum(top, tl.max(scores, 1))
        shares = tl.exp2(scores - new_top[:, None])
        fade = tl.exp2(top - new_top)
        weight = weight * fade + tl.sum(shares, 1)
        values = tl.load(v + head + (start + column)[:, None] * D + depth[None, :])
        total = tl.dot(shares.to(tl.float16), values, total * fade[:, None])
        top = new_top
    tl.store(out + head + row[:, None] * D + depth[None, :], (total / weight[:, None]).to(tl.float16))


@triton.jit
def layer_norm(x, scale, out, columns, BLOCK_R: tl.constexpr, BLOCK_C: tl.constexpr):
    row = tl.program_id(0) * BLOCK_R + tl.arange(0, BLOCK_R)
    column = tl.arange(0, BLOCK_C)
    values = tl.load(x + row[:, None] * columns + column[None, :]).to(tl.float32)
    centred = values - tl.sum(values, 1)[:, None] / columns
    deviation = tl.sqrt(tl.sum(centred * centred, 1) / columns + 1e-5)
    result = centred / deviation[:, None] * tl.load(scale + column)[None, :]
    tl.store(out + row[:, None] * columns + column[None, :], result.to(tl.float16))


@triton.jit
def gather_rows(table, index, out, columns, BLOCK_R: tl.constexpr, BLOCK_C: tl.constexpr):
    row = tl.program_id(0) * BLOCK_R + tl.arange(0, BLOCK_R)
    column = tl.program_id(1) * BLOCK_C + tl.arange(0, BLOCK_C)
    source = tl.load(index + row)
    values = tl.load(table + source[:, None] * columns + column[None, :])
    tl.store(out + row[:, None] * columns + column[None, :], values)


@triton.jit
def transpose(x, out, M, N, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    row = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    column = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    block = tl.load(x + row[:, None] * N + column[None, :])
    tl.store(out + column[:, None] * M + row[None, :], tl.trans(block))


@triton.jit
def nearest_centre(x, centres, out, count, D: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_C: tl.constexpr):
    row = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    depth = tl.arange(0, D)
    points = tl.load(x + row[:, None] * D + depth[None, :])
    best = tl.full((BLOCK_N,), float("inf"), tl.float32)
    label = tl.zeros((BLOCK_N,), tl.int32)
    for start in range(0, count, BLOCK_C):
        centre = start + tl.arange(0, BLOCK_C)
        block = tl.load(centres + centre[None, :] * D + depth[:, None])
        norms = tl.sum(block.to(tl.float32) * block.to(tl.float32), 0)
        distance = norms[None, :] - 2 * tl.dot(points, block)
        least, position = tl.min(distance, 1, return_indices=True)
        label = tl.where(least < best, start + position, label)
        best = tl.minimum(least, best)
    tl.store(out + row, label)


@triton.jit
def gemv(a, x, out, N, K, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr):
    row = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    total = tl.zeros((BLOCK_N,), tl.float32)
    for start in range(0, K, BLOCK_K):
        inner = start + tl.arange(0, BLOCK_K)
        block = tl.load(a + row[:, None] * K + inner[None, :]).to(tl.float32)
        total += tl.sum(block * tl.load(x + inner)[None, :].to(tl.float32), 1)
    tl.store(out + row, total.to(tl.float16))


@triton.jit
def dual_matmul(x, gate, up, out, N, K, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr):
    row = tl.program_id(1) * BLOCK_M + tl.arange(0, BLOCK_M)
    column = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    inner = tl.arange(0, BLOCK_K)
    gated = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    total = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for start in range(0, K, BLOCK_K):
        rows = tl.load(x + row[:, None] * K + (start + inner)[None, :])
        weights = (start + inner)[:, None] * N + column[None, :]
        gated = tl.dot(rows, tl.load(gate + weights), gated)
        total = tl.dot(rows, tl.load(up + weights), total)
    result = gated * tl.sigmoid(gated) * total
    tl.store(out + row[:, None] * N + column[None, :], result.to(tl.float16))


@triton.jit
def embedding_bag(table, index, out, columns, COUNT: tl.constexpr, BLOCK_B: tl.constexpr, BLOCK_C: tl.constexpr):
    bag = tl.program_id(0) * BLOCK_B + tl.arange(0, BLOCK_B)
    column = tl.program_id(1) * BLOCK_C + tl.arange(0, BLOCK_C)
    total = tl.zeros((BLOCK_B, BLOCK_C), tl.float32)
    for number in range(COUNT):
        source = tl.load(index + bag * COUNT + number)
        total += tl.load(table + source[:, None] * columns + column[None, :])
    tl.store(out + bag[:, None] * columns + column[None, :], total.to(tl.float16))


@triton.jit
def causal_conv(x, weight, out, length, channels, BLOCK_L: tl.constexpr, BLOCK_C: tl.constexpr):
    place = tl.program_id(0) * BLOCK_L + tl.arange(0, BLOCK_L)
    channel = tl.program_id(1) * BLOCK_C + tl.arange(0, BLOCK_C)
    base = tl.program_id(2).to(tl.int64) * length * channels
    total = tl.zeros((BLOCK_L, BLOCK_C), tl.float32)
    for tap in tl.static_range(4):
        source = place - 3 + tap
        values = tl.load(x + base + source[:, None] * channels + channel[None, :], mask=source[:, None] >= 0, other=0.0)
        total += values.to(tl.float32) * tl.load(weight + channel * 4 + tap).to(tl.float32)[None, :]
    tl.store(out + base + place[:, None] * channels + channel[None, :], (total * tl.sigmoid(total)).to(tl.float16))


def half(*shape):
    return torch.randn(shape, device="cuda", dtype=torch.float16)


def blocks(size, name):
    return lambda meta: triton.cdiv(size, meta[name])


def grid_of(*extents):
    return lambda meta: tuple(extent(meta) if callable(extent) else extent for extent in extents)


def cases():
    """Name → kernel, configurations, grid, arguments, key."""
    square, n = half(4096, 4096), 4096
    yield (
        matmul,
        product_of((4, 8), (2, 3), BLOCK_M=(64, 128), BLOCK_N=(64, 128, 256), BLOCK_K=(32, 64)),
        grid_of(blocks(n, "BLOCK_M"), blocks(n, "BLOCK_N")),
        (square, half(n, n), torch.empty_like(square), n, n, n),
    )
    yield (
        column_sum,
        product_of((2, 4, 8), BLOCK_R=(8, 16, 32, 64, 128), BLOCK_C=(16, 32, 64, 128, 256)),
        grid_of(blocks(6000, "BLOCK_C"), 32),
        (half(16384, 6000), torch.zeros(6000, device="cuda"), 16384, 6000),
    )
    head = [half(64, 4096, 64) for _ in range(4)]
    yield (
        attention,
        product_of((4, 8), (2, 3), BLOCK_M=(64, 128), BLOCK_N=(32, 64, 128)),
        grid_of(blocks(4096, "BLOCK_M"), 64),
        (*head, 4096, 0.18, 64),
    )
    rows = half(16384, 4096)
    yield (
        layer_norm,
        product_of((1, 2, 4, 8, 16, 32), BLOCK_R=(1, 2, 4, 8), BLOCK_C=(4096,)),
        grid_of(blocks(16384, "BLOCK_R")),
        (rows, half(4096), torch.empty_like(rows), 4096),
    )
    index = torch.randint(0, 50000, (32768,), device="cuda")
    yield (
        gather_rows,
        product_of((1, 2, 4), BLOCK_R=(1, 2, 4, 8), BLOCK_C=(256, 512, 1024)),
        grid_of(blocks(32768, "BLOCK_R"), blocks(1024, "BLOCK_C")),
        (half(50000, 1024), index, half(32768, 1024), 1024),
    )
    wide = half(8192, 8192)
    yield (
        transpose,
        product_of((4, 8), BLOCK_M=(16, 32, 64, 128), BLOCK_N=(16, 32, 64, 128)),
        grid_of(blocks(8192, "BLOCK_M"), blocks(8192, "BLOCK_N")),
        (wide, torch.empty_like(wide), 8192, 8192),
    )
    yield (
        nearest_centre,
        product_of((4, 8), (2, 3), BLOCK_N=(32, 64, 128), BLOCK_C=(32, 64)),
        grid_of(blocks(262144, "BLOCK_N")),
        (half(262144, 64), half(256, 64), torch.empty(262144, device="cuda", dtype=torch.int32), 256, 64),
    )
    yield (
        gemv,
        product_of((2, 4, 8), BLOCK_N=(2, 4, 8, 16), BLOCK_K=(256, 512, 1024)),
        grid_of(blocks(16384, "BLOCK_N")),
        (half(16384, 8192), half(8192), half(16384), 16384, 8192),
    )
    yield (
        dual_matmul,
        product_of((4, 8), BLOCK_M=(64, 128), BLOCK_N=(32, 64, 128), BLOCK_K=(32, 64)),
        grid_of(blocks(4096, "BLOCK_N"), blocks(4096, "BLOCK_M")),
        (half(4096, 2048), half(2048, 4096), half(2048, 4096), half(4096, 4096), 4096, 2048),
    )
    yield (
        embedding_bag,
        product_of((1, 2, 4), BLOCK_B=(1, 2, 4, 8), BLOCK_C=(128, 256, 512)),
        grid_of(blocks(16384, "BLOCK_B"), blocks(512, "BLOCK_C")),
        (half(200000, 512), torch.randint(0, 200000, (16384, 16), device="cuda"), half(16384, 512), 512, 16),
    )
    yield (
        causal_conv,
        product_of((2, 4, 8), BLOCK_L=(16, 32, 64, 128), BLOCK_C=(32, 64, 128)),
        grid_of(blocks(4096, "BLOCK_L"), blocks(2048, "BLOCK_C"), 8),
        (half(8, 4096, 2048), half(2048, 4), half(8, 4096, 2048), 4096, 2048),
    )


@triton.jit
def first_kernel(x):
    tl.store(x, 0.0)


def tune(kernel, configs, grid, arguments, prune):
    """The autotuned kernel, the seconds of its first launch, and those of the compiles in this process."""
    seconds = []
    with tempfile.TemporaryDirectory() as cache:
        os.environ["TRITON_CACHE_DIR"] = cache
        kernel.device_caches.clear()
        by = None if prune is None else {"early_config_prune": prune}
        tuned = triton.autotune(configs, [], prune_configs_by=by)(kernel)
        triton.knobs.compilation.listener = lambda *, times, **_: seconds.append(times.total / 1e6)
        start = time.perf_counter()
        tuned[grid](*arguments)
        torch.cuda.synchronize()
        return tuned, time.perf_counter() - start, sum(seconds)


def compare(kernel, configs, grid, arguments, is_pruned_only):
    """Both tuners of one kernel."""
    prune = prune_configs()
    pruned, pruned_seconds, _ = tune(kernel, configs, grid, arguments, prune)
    row = {"kernel": kernel.__name__, "configurations": len(configs), "failed": len(prune.failed)}
    row |= {"pruned_seconds": round(pruned_seconds, 2), "pruner": prune.seconds, "choice": str(pruned.best_config)}
    row |= {"timed": len(getattr(pruned, "configs_timings", ()))}
    tuners = [pruned]
    if not is_pruned_only:
        timed, all_seconds, compile_seconds = tune(kernel, configs, grid, arguments, None)
        tuners.append(timed)
        row |= {"all_seconds": round(all_seconds, 2), "compile_seconds": round(compile_seconds, 2)}
        row |= {"share": round(pruned_seconds / all_seconds, 3), "choice_of_all": str(timed.best_config)}
        times = {str(config): values[0] for config, values in timed.configs_timings.items()}
        ranks = [str(configs[x.launch]) for x in prune.ranked]
        row |= {"place": ranks.index(row["choice_of_all"]) if row["choice_of_all"] in ranks else None}
        row |= {"first": round(times[ranks[0]] / min(times.values()), 3) if ranks else None}
    medians = {tuned: [] for tuned in tuners}
    for tuned in tuners * 2:
        tuned[grid](*arguments)
        medians[tuned].append(do_bench(lambda t=tuned: t[grid](*arguments), rep=100, return_mode="median"))
    row["milliseconds"] = round(min(medians[pruned]), 4)
    if not is_pruned_only:
        is_same = str(pruned.best_config) == str(timed.best_config)
        row["regret"] = 1.0 if is_same else round(min(medians[pruned]) / min(medians[timed]), 3)
    return row


def main():
    first_kernel[(1,)](torch.zeros(1, device="cuda"))  # Triton's own start counts for neither
    names = [word for word in sys.argv[1:] if not word.startswith("-")]
    for kernel, *case in cases():
        if not names or kernel.__name__ in names:
            print(json.dumps(compare(kernel, *case, "--pruned" in sys.argv)), flush=True)


if __name__ == "__main__":
    main()
