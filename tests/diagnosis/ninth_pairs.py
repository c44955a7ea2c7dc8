"""How the kernels of `ninth.py` are compiled and launched, and what the first sentence about a plant must say."""

from __future__ import annotations

from pathlib import Path

from blind_pairs import kernel
from eighth_pairs import Plant
from pairs import Variant

FILE = Path(__file__).with_name("ninth.py")


def blockwise(stages: int) -> Variant:
    m, n, k = 4096, 4096, 2048
    arguments = {"a_ptr": ("fp8e4nv", m, k), "b_ptr": ("fp8e4nv", n, k), "as_ptr": ("fp32", m, k // 128),
                 "bs_ptr": ("fp32", n // 128, k // 128), "c_ptr": ("bf16", m, n), "N": n, "K": k}  # fmt: skip
    constants = {"BM": 128, "BN": 128, "BK": 128}
    return kernel("blockwise_gemm", arguments, constants, [m // 128, n // 128], num_warps=4, num_stages=stages)


def absorbed(stages: int) -> Variant:
    tokens, heads, dn, c = 4096, 16, 512, 512
    arguments = {"q_ptr": ("bf16", tokens, heads, dn), "w_ptr": ("bf16", heads, dn, c), "y_ptr": ("bf16", tokens, heads, c),
                 "H": heads}  # fmt: skip
    constants = {"DN": dn, "C": c, "BM": 128, "BN": 128, "BK": 64}
    grid = [tokens // 128, c // 128, heads]
    return kernel("absorb_heads", arguments, constants, grid, num_warps=8, num_stages=stages)


def buckets(uniform: bool) -> Variant:
    n, edges = 1 << 24, 1 << 16
    arguments = {"x_ptr": ("fp32", n), "edge_ptr": ("fp32", edges), "out_ptr": ("i32", n)}
    constants = {"EDGES": edges, "STEPS": 16, "BLOCK": 512, "UNIFORM": uniform}
    return kernel("bucketize", arguments, constants, [n // 512], num_warps=4)


def hashes(wide: bool) -> Variant:
    n, words = 1 << 20, 32
    arguments = {"word_ptr": ("i32", words, n), "out_ptr": ("i32", n), "n": n}
    return kernel("fingerprints", arguments, {"WORDS": words, "BLOCK": 512, "WIDE": wide}, [n // 512], num_warps=4)


def digits(base: int) -> Variant:
    n = 1 << 24
    arguments = {"x_ptr": ("i32", n), "out_ptr": ("i8", 10, n), "n": n, "base": 10}
    return kernel("digits_of", arguments, {"DIGITS": 10, "BASE": base, "BLOCK": 2048}, [n // 2048], num_warps=4)


def planes(planar: bool) -> Variant:
    images, n = 256, 512 * 512
    arguments = {"x_ptr": ("i8", images, 3 * n), "y_ptr": ("fp16", images, 3, n), "n": n, "mean": 0.5, "scale": 0.25}
    constants = {"BLOCK": 4096, "PLANAR": planar}
    return kernel("pixels_to_planes", arguments, constants, [n // 4096, images], num_warps=4)


def gradient(turned: bool) -> Variant:
    heads, t, d = 64, 2048, 64
    arguments = {"q_ptr": ("fp16", heads, t, d), "k_ptr": ("fp16", heads, t, d), "lse_ptr": ("fp32", heads, t),
                 "do_ptr": ("fp16", heads, t, d), "dv_ptr": ("fp16", heads, t, d), "T": t, "scale": 0.18}  # fmt: skip
    constants = {"D": d, "BM": 64, "BN": 128, "TURNED": turned}
    return kernel("value_gradient", arguments, constants, [t // 128, heads], num_warps=4, num_stages=2)


def scales(integers: bool) -> Variant:
    groups, size, rows = 1 << 18, 128, 32
    arguments = {"w_ptr": ("fp16", groups, size), "scale_ptr": ("fp32", groups), "STEPS": 40}
    constants = {"ROWS": rows, "G": size, "INTEGERS": integers}
    return kernel("search_scales", arguments, constants, [groups // rows], num_warps=4)


def rbf(precision: str) -> Variant:
    m, n, d = 16384, 1024, 64
    arguments = {"x_ptr": ("fp32", m, d), "z_ptr": ("fp32", n, d), "xx_ptr": ("fp32", m), "zz_ptr": ("fp32", n),
                 "v_ptr": ("fp32", n, d), "y_ptr": ("fp32", m, d), "N": n, "gamma": 0.5}  # fmt: skip
    constants = {"D": d, "BM": 64, "BN": 64, "PRECISION": precision}
    return kernel("rbf_apply", arguments, constants, [m // 64], num_warps=4, num_stages=2)


def indexer(wide: bool) -> Variant:
    tokens, keys, heads, d = 2048, 4096, 32, 128
    arguments = {"q_ptr": ("fp8e4nv", tokens, heads, d), "k_ptr": ("fp8e4nv", keys, d), "w_ptr": ("fp32", tokens, heads),
                 "s_ptr": ("fp32", tokens, keys), "N": keys}  # fmt: skip
    constants = {"H": heads, "D": d, "BM": 64, "BN": 128, "WIDE": wide}
    return kernel("index_scores", arguments, constants, [tokens // 64, keys // 128], num_warps=4, num_stages=3)


def gated(m: int, n: int, warps: int) -> Variant:
    k = 1024
    arguments = {"x_ptr": ("fp16", m, k), "gate_ptr": ("fp16", k, n), "up_ptr": ("fp16", k, n), "y_ptr": ("fp16", m, n),
                 "N": n, "K": k}  # fmt: skip
    constants = {"BM": 128, "BN": 128, "BK": 64}
    return kernel("gated_linear", arguments, constants, [m // 128, n // 128], num_warps=warps, num_stages=3)


def video(bm: int, bn: int) -> Variant:
    frames, h, w, c, co = 8, 64, 128, 64, 256
    arguments = {"x_ptr": ("fp16", frames + 2, h + 2, w + 2, c), "w_ptr": ("fp16", 27, c, co),
                 "y_ptr": ("fp16", frames, h, w, co)}  # fmt: skip
    constants = {"W": w, "C": c, "CO": co, "BM": bm, "BN": bn, "BK": 64, "HP": h + 2}
    warps = 8 if bm == 128 else 4
    return kernel("conv3d", arguments, constants, [w // bm, co // bn, frames * h], num_warps=warps, num_stages=3)


def bands(gathered: bool) -> Variant:
    frames, bands, taps = 1 << 16, 32, 32
    arguments = {"x_ptr": ("fp32", frames, bands * taps), "w_ptr": ("fp32", bands * taps),
                 "y_ptr": ("fp32", frames, bands * taps)}  # fmt: skip
    constants = {"BANDS": bands, "TAPS": taps, "GATHERED": gathered}
    return kernel("split_bands", arguments, constants, [frames], num_warps=4)


def appended(tokens: int, warps: int) -> Variant:
    count, heads, places, d = 16384, 16, 16384, 128
    arguments = {"k_ptr": ("bf16", count, heads, d), "cache_ptr": ("bf16", heads, d, places), "H": heads, "S": places}
    return kernel("append_keys", arguments, {"D": d, "TOKENS": tokens}, [count // tokens, heads], num_warps=warps)


def codes(once: bool) -> Variant:
    n, k = 8192, 4096
    arguments = {"code_ptr": ("i32", n, k // 8), "book_ptr": ("fp16", 1024, 8), "x_ptr": ("fp32", k), "y_ptr": ("fp32", n),
                 "K": k}  # fmt: skip
    return kernel("codebook_gemv", arguments, {"BN": 16, "BK": 256, "ONCE": once}, [n // 16], num_warps=4)


def camera(kept: bool) -> Variant:
    frames, pixels, block = 128, 1 << 21, 2048
    arguments = {"raw_ptr": ("i16", frames, pixels), "dark_ptr": ("fp32", pixels), "gain_ptr": ("fp32", pixels),
                 "out_ptr": ("fp16", frames, pixels), "pixels": pixels}  # fmt: skip
    constants = {"FRAMES": 32, "BLOCK": block, "KEPT": kept}
    return kernel("flat_field", arguments, constants, [pixels // block, frames // 32], num_warps=4)


def pooled(tiled: bool) -> Variant:
    heads, t, d = 1056, 512, 128
    arguments = {"q_ptr": ("fp16", heads, d), "k_ptr": ("fp16", heads, t, d), "v_ptr": ("fp16", heads, t, d),
                 "o_ptr": ("fp32", heads, d), "T": t, "scale": 0.09}  # fmt: skip
    constants = {"D": d, "BT": 32, "TILED": tiled}
    return kernel("pool_tokens", arguments, constants, [heads], num_warps=4)


def moments(parts: int) -> Variant:
    groups, size = 32, 1 << 21
    arguments = {"x_ptr": ("fp16", groups, size), "out_ptr": ("fp32", 2, groups * parts), "SIZE": size // parts}
    return kernel("group_moments", arguments, {"BLOCK": 4096}, [groups * parts], num_warps=8)


def cells(count: int) -> Variant:
    n = 1 << 22
    arguments = {
        "point_ptr": ("fp32", 3, n),
        "cell_ptr": ("i32", n),
        "sum_ptr": ("fp32", 4, count),
        "n": n,
        "CELLS": count,
    }
    return kernel("add_to_cells", arguments, {"BLOCK": 1024}, [n // 1024], num_warps=4)


PLANTS = {
    "blockwise": Plant(
        ("drained-pipeline",), ("a = tl.load(a_at)", "b = tl.load(b_at)"),
        "two stages: each trip waits for its copies (the pipeline drains, exposed latency)", blockwise(2), blockwise(4),
    ),
    "absorbed": Plant(
        ("serial-loop",), ("q = tl.load(q_ptr + (rows[:, None] * H", "w = tl.load(w_ptr + (head * DN"),
        "one stage: no load runs ahead of its product (not pipelined, exposed latency)", absorbed(1), absorbed(3),
    ),
    "buckets": Plant(
        ("dependent-loads",), ("is_right = tl.load(edge_ptr + middle) <= x",),
        "16 loads per number depend on each other (dependent loads, chain, bisection)", buckets(False), buckets(True),
    ),
    "hashes": Plant(
        ("int64",), ("one = (one ^ value.to(tl.uint64))", "two = (two ^ value.to(tl.uint64))"),
        "64-bit products for each byte", hashes(True), hashes(False),
    ),
    "digits": Plant(
        ("division",), ("rest = value // base", "digit = value - rest * base"),
        "a division by an argument for each digit", digits(0), digits(10),
    ),
    "planes": Plant(
        ("narrow-access", "uncoalesced"), ("code = tl.load(x_ptr + (image * n + offs) * 3 + colour)",),
        "bytes three apart are loaded one by one (narrow, strided, uncoalesced)", planes(False), planes(True),
    ),
    "gradient": Plant(
        ("layout-conversion",),
        ("dv = tl.dot(tl.trans(p), do, dv)", "p = tl.exp2(s * scale - lse[:, None])"),
        "p is transposed by way of shared memory in each trip (layout conversion)", gradient(False), gradient(True),
    ),
    "scales": Plant(
        ("type-conversion",),
        ("code = (x + tl.where(x >= 0, 0.5, -0.5)).to(tl.int32)", "near = tl.minimum(tl.maximum(code, -8), 7).to(tl.float32)"),
        "each trial converts every weight to an integer and back", scales(True), scales(False),
    ),
    "rbf": Plant(
        ("fp32-dot",), ("inner = tl.dot(x, z, input_precision", "acc = tl.dot(kernel, v, acc, input_precision"),
        "fp32 products on the FMA pipe (no tf32)", rbf("ieee"), rbf("tf32"),
    ),
    "indexer": Plant(
        ("wide-dot",), ("total += tl.maximum(tl.dot(q, k), 0.0)", "q = q.to(tl.float16)"),
        "FP8 operands are multiplied as fp16 (dot wider than its loads)", indexer(True), indexer(False),
    ),
    "gated": Plant(
        ("spills",), (), "two 128 × 128 accumulators of four warps spill", gated(4096, 4096, 4), gated(4096, 4096, 8)
    ),
    "video": Plant(
        ("small-tile",), ("acc = tl.dot(x, w, acc)", "x = tl.load(x_ptr + (place", "w = tl.load(w_ptr + (tap * C"),
        "tiles of 32 × 32 reuse too little", video(32, 32), video(128, 128),
    ),
    "bands": Plant(
        ("bank-conflicts",), ("y = tl.gather(x, offs % TAPS * BANDS",),
        "a gather with a stride of 32 words conflicts on banks", bands(True), bands(False),
    ),
    "appended": Plant(
        ("uncoalesced",), ("tl.store(cache_ptr + (head * D + dims[None, :]) * S",),
        "neighbouring lanes store 32 KB apart (uncoalesced)", appended(1, 4), appended(64, 4),
    ),
    "codes": Plant(
        ("redundant-load",), ("code = tl.load(code_ptr + rows[:, None] * (K // 8) + k[None, :] // 8)",),
        "each code is loaded by the lanes of all its eight weights", codes(False), codes(True),
    ),
    "camera": Plant(
        ("invariant-load",), ("dark = tl.load(dark_ptr + offs)", "gain = tl.load(gain_ptr + offs)"),
        "dark level and gain do not change, and are loaded for each frame", camera(False), camera(True),
    ),
    "pooled": Plant(
        ("reduction-per-trip", "barrier-per-trip"), ("s = tl.sum(tl.load(k_ptr + place).to(tl.float32) * q, 0)",),
        "each token is reduced across the CTA", pooled(False), pooled(True),
    ),
    "moments": Plant(("idle-sms",), (), "32 CTAs leave most SMs idle", moments(1), moments(32)),
    "waves": Plant(
        ("tail-wave",), (), "144 CTAs on 132 SMs: the second wave is nearly empty", gated(1536, 1536, 8), gated(1408, 1536, 8)
    ),
    "cells": Plant(
        ("atomic-contention",), ("tl.atomic_add(sum_ptr + axis * CELLS + cell", "tl.atomic_add(sum_ptr + 3 * CELLS + cell"),
        "the additions of four million points meet at 64 cells", cells(64), cells(1 << 20),
    ),
}  # fmt: skip


def pairs_on(target: str) -> dict[str, tuple[tuple[str, ...], Variant, Variant]]:
    """Name → (expected kinds, plant, twin)."""
    return {name: (one.kinds, one.plant, one.twin) for name, one in PLANTS.items()}
