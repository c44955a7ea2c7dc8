"""How the kernels of `tenth.py` are compiled and launched, and what the first sentence about a plant must say."""

from __future__ import annotations

from pathlib import Path

from blind_pairs import kernel
from eighth_pairs import Plant
from pairs import Variant

FILE = Path(__file__).with_name("tenth.py")


def logsumexp(stages: int) -> Variant:
    tokens, words, d = 16896, 2048, 1024
    arguments = {"h_ptr": ("bf16", tokens, d), "w_ptr": ("bf16", words, d), "out_ptr": ("fp32", tokens), "V": words,
                 "D": d}  # fmt: skip
    constants = {"BM": 128, "BV": 128, "BK": 64}
    return kernel("linear_logsumexp", arguments, constants, [tokens // 128], num_warps=8, num_stages=stages)


def complex_product(stages: int) -> Variant:
    m, n, k = 2048, 4224, 2048
    arguments = {"ar_ptr": ("fp16", m, k), "ai_ptr": ("fp16", m, k), "br_ptr": ("fp16", k, n), "bi_ptr": ("fp16", k, n),
                 "cr_ptr": ("fp16", m, n), "ci_ptr": ("fp16", m, n), "N": n, "K": k}  # fmt: skip
    constants = {"BM": 128, "BN": 64, "BK": 32}
    return kernel("complex_gemm", arguments, constants, [m // 128, n // 64], num_warps=4, num_stages=stages)


def beams(reordered: bool) -> Variant:
    width, steps = 1 << 16, 256
    arguments = {"parent_ptr": ("i32", steps, width), "token_ptr": ("i32", steps, width),
                 "out_ptr": ("i32", steps, width), "W": width, "STEPS": steps}  # fmt: skip
    return kernel("trace_beams", arguments, {"BLOCK": 128, "REORDERED": reordered}, [width // 128], num_warps=4)


def clip(block: int, warps: int) -> Variant:
    n = 132 * (1 << 19)
    arguments = {"x_ptr": ("fp16", n), "y_ptr": ("fp16", n), "n": n, "limit": 2.0, "scale": 0.5}
    return kernel("clip_and_scale", arguments, {"BLOCK": block}, [132], num_warps=warps)


def filters(wide: bool) -> Variant:
    channels, steps = 1 << 17, 64
    arguments = {"x_ptr": ("i32", steps, channels), "k_ptr": ("i32", channels), "y_ptr": ("i32", steps, channels),
                 "C": channels, "T": steps}  # fmt: skip
    constants = {"SECTIONS": 4, "BLOCK": 128, "WIDE": wide}
    return kernel("fixed_point_filters", arguments, constants, [channels // 128], num_warps=4)


def fold(stride: int) -> Variant:
    planes, out, taps = 256, 127, 3
    side = 256
    arguments = {"col_ptr": ("fp32", planes, taps * taps, out, out), "out_ptr": ("fp32", planes, side, side), "H": side,
                 "W": side, "OH": out, "OW": out, "stride": 2}  # fmt: skip
    constants = {"TAPS": taps, "STRIDE": stride, "BLOCK": 256}
    return kernel("fold_windows", arguments, constants, [side * side // 256, planes], num_warps=4)


def fir(padded: bool) -> Variant:
    n, taps = 1 << 24, 64
    arguments = {"x_ptr": ("fp32", n + taps), "h_ptr": ("fp32", taps), "y_ptr": ("fp32", n), "n": n}
    constants = {"TAPS": taps, "BLOCK": 1024, "PADDED": padded}
    return kernel("convolve_signal", arguments, constants, [n // 1024], num_warps=4)


def traces(turned: bool) -> Variant:
    size, count = 64, 256
    arguments = {"a_ptr": ("fp32", 4224, size, size), "b_ptr": ("fp32", count, size, size),
                 "out_ptr": ("fp32", 4224, size, size)}  # fmt: skip
    constants = {"B": size, "MATRICES": count, "TURNED": turned}
    return kernel("trace_products", arguments, constants, [4224], num_warps=4)


def layers(bits: bool) -> Variant:
    n, count = 1 << 21, 32
    arguments = {"layer_ptr": ("i32", count, n), "out_ptr": ("fp32", 3, n), "n": n}
    return kernel("composite_layers", arguments, {"LAYERS": count, "BLOCK": 512, "BITS": bits}, [n // 512], num_warps=4)


def kalman(precision: str) -> Variant:
    batch, d = 4224, 64
    arguments = {"f_ptr": ("fp32", d, d), "p_ptr": ("fp32", batch, d, d), "q_ptr": ("fp32", d, d), "STEPS": 8}
    return kernel("covariance_steps", arguments, {"D": d, "PRECISION": precision}, [batch], num_warps=4)


def patches(wide: bool) -> Variant:
    side, c, n = 512, 256, 512
    arguments = {"x_ptr": ("bf16", side, side, c), "w_ptr": ("bf16", 4 * c, n), "y_ptr": ("bf16", side // 2, side // 2, n),
                 "SIDE": side, "N": n}  # fmt: skip
    constants = {"C": c, "BM": 128, "BN": 128, "BK": 32, "WIDE": wide}
    grid = [side // 2 // 128, n // 128, side // 2]
    return kernel("merge_patches", arguments, constants, grid, num_warps=8, num_stages=3)


def prompt(bm: int, warps: int) -> Variant:
    heads, t, d = 66, 2048, 128
    arguments = {"q_ptr": ("bf16", heads, t, d), "k_ptr": ("bf16", heads, t, d), "v_ptr": ("bf16", heads, t, d),
                 "o_ptr": ("bf16", heads, t, d), "T": t, "scale": 0.127}  # fmt: skip
    constants = {"D": d, "BM": bm, "BN": 64}
    return kernel("prefill_attention", arguments, constants, [t // bm, heads], num_warps=warps, num_stages=3)


def returns(time_first: bool) -> Variant:
    envs, steps = 1 << 16, 512
    shape = (steps, envs) if time_first else (envs, steps)
    arguments = {"reward_ptr": ("fp32", *shape), "value_ptr": ("fp32", *shape), "out_ptr": ("fp32", *shape),
                 "discount": 0.99, "E": envs}  # fmt: skip
    constants = {"T": steps, "BE": 1, "TIME_FIRST": time_first}
    return kernel("advantages", arguments, constants, [envs], num_warps=4)


def city(once: bool) -> Variant:
    m, n, d = 4224, 4096, 128
    arguments = {"x_ptr": ("fp32", m, d), "y_ptr": ("fp32", d, n), "out_ptr": ("fp32", m, n), "N": n, "D": d}
    return kernel("city_block", arguments, {"BM": 64, "BN": 64, "ONCE": once}, [m // 64, n // 64], num_warps=4)


def rollout(kept: bool) -> Variant:
    n, steps = 1 << 21, 64
    arguments = {"x_ptr": ("fp32", n), "rate_ptr": ("fp32", n), "limit_ptr": ("fp32", n), "noise_ptr": ("fp32", n),
                 "out_ptr": ("fp16", steps, n), "n": n, "dt": 0.01, "STEPS": steps}  # fmt: skip
    return kernel("logistic_rollout", arguments, {"BLOCK": 1024, "KEPT": kept}, [n // 1024], num_warps=4)


def peaks(at_end: bool) -> Variant:
    series, t = 528, 1 << 16
    arguments = {"x_ptr": ("fp32", series, t), "count_ptr": ("i32", series), "T": t}
    return kernel("count_peaks", arguments, {"BLOCK": 1024, "AT_END": at_end}, [series], num_warps=8)


def median(block: int) -> Variant:
    pixels, frames = 1 << 20, 8
    arguments = {"x_ptr": ("fp32", frames + 8, pixels), "y_ptr": ("fp32", frames, pixels), "pixels": pixels,
                 "FRAMES": frames}  # fmt: skip
    return kernel("temporal_median", arguments, {"BLOCK": block}, [pixels // block], num_warps=4)


def correlation(parts: int) -> Variant:
    n = 1 << 26
    arguments = {"x_ptr": ("fp16", n), "y_ptr": ("fp16", n), "out_ptr": ("fp32", parts, 2), "PART": n // parts}
    return kernel("correlate_series", arguments, {"BLOCK": 4096}, [parts], num_warps=8)


def steps(summed: bool) -> Variant:
    m, n = 2048, 4096
    arguments = {"x_ptr": ("fp16", m, n), "dy_ptr": ("fp16", m, n), "step_ptr": ("fp32", m // 64),
                 "out_ptr": ("fp32", m // 64), "N": n}  # fmt: skip
    constants = {"ROWS": 16, "BLOCK": 256, "SUMMED": summed}
    return kernel("step_gradients", arguments, constants, [m // 16, n // 256], num_warps=4)


def heads(rows: int, warps: int) -> Variant:
    count, d = 1 << 19, 64
    arguments = {"x_ptr": ("bf16", count, d), "w_ptr": ("fp32", d), "y_ptr": ("bf16", count, d), "eps": 1e-6}
    return kernel("normalise_heads", arguments, {"D": d, "ROWS": rows}, [count // rows], num_warps=warps)


PLANTS = {
    "logsumexp": Plant(
        ("serial-loop",), ("h = tl.load(h_ptr", "w = tl.load(w_ptr + (first"),
        "one stage: no load runs ahead of its product (not pipelined)", logsumexp(1), logsumexp(4),
    ),
    "complex": Plant(
        ("drained-pipeline",),
        ("ar = tl.load(ar_ptr", "ai = tl.load(ai_ptr", "br = tl.load(br_ptr", "bi = tl.load(bi_ptr"),
        "two stages: each trip waits for its copies (the pipeline drains)", complex_product(2), complex_product(4),
    ),
    "beams": Plant(
        ("dependent-loads",), ("beam = tl.load(parent_ptr + at * W + beam)", "token = tl.load(token_ptr + at * W + beam)"),
        "each step's address is the value of the step before (pointer chasing)", beams(False), beams(True),
    ),
    "clip": Plant(
        ("few-bytes", "serial-loop"), ("x = tl.load(x_ptr + offs).to(tl.float32)",),
        "one CTA of four warps per SM with 1 KB in flight (too few bytes in flight)", clip(512, 4), clip(16384, 16),
    ),
    "filters": Plant(
        ("int64",), ("s0 +=", "s1 +=", "s2 +=", "s3 +="),
        "64-bit products in each section", filters(True), filters(False),
    ),
    "fold": Plant(
        ("division",), ("at_row = down // by", "at_column = across // by"),
        "divisions by an argument for each tap", fold(0), fold(2),
    ),
    "fir": Plant(
        ("masks",), ("x = tl.load(x_ptr + offs - tap, mask=",),
        "each tap computes a mask", fir(False), fir(True),
    ),
    "traces": Plant(
        ("layout-conversion",), ("b = tl.trans(b)", "acc = acc * 0.5 + a * b"),
        "each matrix is transposed by way of shared memory", traces(False), traces(True),
    ),
    "layers": Plant(
        ("type-conversion",),
        ("r = (word & 255).to(", "g = ((word >> 8) & 255).to(", "b = ((word >> 16) & 255).to(", "a = ((word >> 24) & 255).to("),
        "each byte of each layer is converted to float", layers(False), layers(True),
    ),
    "kalman": Plant(
        ("fp32-dot",), ("fp = tl.dot(f, p", "p = tl.dot(fp, tl.trans(f)"),
        "fp32 products on the FMA pipe (no tf32)", kalman("ieee"), kalman("tf32"),
    ),
    "patches": Plant(
        ("wide-dot",), ("acc = tl.dot(x.to(tl.float32), w.to(tl.float32), acc)",),
        "bf16 operands are multiplied as fp32 (dot wider than its loads)", patches(True), patches(False),
    ),
    "prompt": Plant(
        ("small-tile",), ("s = tl.dot(q, k) * scale", "acc = tl.dot(p.to(tl.bfloat16), v"),
        "16 queries per CTA reuse keys and values too little", prompt(16, 4), prompt(128, 8),
    ),
    "returns": Plant(
        ("uncoalesced",), ("delta = tl.load(reward_ptr + place)", "tl.store(out_ptr + place, total)"),
        "neighbouring lanes access steps, 256 KB apart (uncoalesced)", returns(True), returns(False),
    ),
    "city": Plant(
        ("redundant-load",), ("x = tl.load(x_ptr + of_x + d)", "y = tl.load(y_ptr + d * N + of_y)"),
        "each coordinate is loaded by 64 elements of the tile", city(False), city(True),
    ),
    "rollout": Plant(
        ("invariant-load",),
        ("rate = tl.load(rate_ptr + offs)", "limit = tl.load(limit_ptr + offs)", "noise = tl.load(noise_ptr + offs)"),
        "three parameters do not change, and are loaded in each step", rollout(False), rollout(True),
    ),
    "peaks": Plant(
        ("reduction-per-trip",), ("count += tl.sum(is_peak.to(tl.int32), 0)",),
        "each block is counted across the CTA", peaks(False), peaks(True),
    ),
    "median": Plant(
        ("spills",), (), "nine tiles of 64 elements per thread spill", median(8192), median(1024)
    ),
    "correlation": Plant(("idle-sms",), (), "32 CTAs leave most SMs idle", correlation(32), correlation(1056)),
    "steps": Plant(
        ("atomic-contention",), ("tl.atomic_add(out_ptr + rows[:, None] // 64",),
        "eight million additions meet at 32 addresses", steps(False), steps(True),
    ),
    "heads": Plant(("more-threads",), (), "256 threads share 64 elements", heads(1, 8), heads(32, 4)),
}  # fmt: skip


def pairs_on(target: str) -> dict[str, tuple[tuple[str, ...], Variant, Variant]]:
    """Name → (expected kinds, plant, twin)."""
    return {name: (one.kinds, one.plant, one.twin) for name, one in PLANTS.items()}
