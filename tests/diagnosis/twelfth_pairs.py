"""How the kernels of `twelfth.py` are compiled and launched, and what the first sentence about a plant must say."""

from __future__ import annotations

from pathlib import Path

from blind_pairs import kernel
from eighth_pairs import Plant
from pairs import Variant

FILE = Path(__file__).with_name("twelfth.py")


def routed(stages: int) -> Variant:
    tokens, slots, experts, n, k = 4096, 4224, 8, 2048, 2048
    arguments = {"x_ptr": ("bf16", tokens, k), "w_ptr": ("bf16", experts, k, n), "order_ptr": ("i32", slots),
                 "expert_ptr": ("i32", slots // 128), "y_ptr": ("bf16", slots, n), "TOKENS": tokens, "N": n, "K": k}  # fmt: skip
    constants = {"EXPERTS": experts, "BM": 128, "BN": 128, "BK": 64}
    return kernel("routed_gemm", arguments, constants, [slots // 128, n // 128], num_warps=8, num_stages=stages)


def linear8(stages: int) -> Variant:
    m, n, k = 1408, 1536, 16384
    arguments = {"a_ptr": ("i8", m, k), "w_ptr": ("i8", n, k), "sa_ptr": ("fp32", m), "sw_ptr": ("fp32", n),
                 "c_ptr": ("fp16", m, n), "N": n, "K": k}  # fmt: skip
    constants = {"BM": 128, "BN": 128, "BK": 64}
    return kernel("int8_linear", arguments, constants, [m // 128, n // 128], num_warps=8, num_stages=stages)


def dispatched(chunk: int) -> Variant:
    slots, tokens, d, rows = 1 << 17, 1 << 14, 256, 64
    arguments = {"order_ptr": ("i32", slots), "token_ptr": ("i32", slots), "x_ptr": ("bf16", tokens, d),
                 "out_ptr": ("bf16", slots, d), "SLOTS": slots, "TOKENS": tokens}  # fmt: skip
    constants = {"ROWS": rows, "D": d, "CHUNK": chunk}
    return kernel("dispatch_tokens", arguments, constants, [slots // rows], num_warps=4)


def cells(is_sorted: bool) -> Variant:
    slots, n = 1 << 20, 132 * 128
    arguments = {"px_ptr": ("fp32", slots), "py_ptr": ("fp32", slots), "head_ptr": ("i32", n), "next_ptr": ("i32", slots),
                 "fx_ptr": ("fp32", n), "fy_ptr": ("fp32", n), "SLOTS": slots}  # fmt: skip
    constants = {"STEPS": 128, "BLOCK": 128, "SORTED": is_sorted}
    return kernel("cell_forces", arguments, constants, [132], num_warps=4)


def norm(block: int, warps: int) -> Variant:
    part = 1 << 18
    arguments = {"g_ptr": ("bf16", 132, part), "out_ptr": ("fp32", 132), "PART": part}
    return kernel("gradient_norm", arguments, {"BLOCK": block}, [132], num_warps=warps)


def hashes(wide: bool) -> Variant:
    docs, length = 1 << 20, 16
    arguments = {"token_ptr": ("i32", length, docs), "out_ptr": ("i32", 6, docs), "DOCS": docs}
    constants = {"LENGTH": length, "BLOCK": 512, "WIDE": wide}
    return kernel("minhash", arguments, constants, [docs // 512], num_warps=4)


def torus(wrapped: bool) -> Variant:
    h, w = 4096, 1000
    arguments = {"x_ptr": ("fp32", h, w), "y_ptr": ("fp32", h, w), "H": h, "W": w}
    return kernel("torus_blur", arguments, {"R": 3, "BLOCK": 1024, "WRAPPED": wrapped}, [h * w // 1024], num_warps=4)


def depthwise(padded: bool) -> Variant:
    planes, side, r = 512, 128, 3
    edge = side + 2 * r if padded else side
    arguments = {
        "x_ptr": ("fp32", planes, edge, edge),
        "w_ptr": ("fp32", planes, 49),
        "y_ptr": ("fp32", planes, side, side),
    }
    constants = {"H": side, "W": side, "R": r, "BLOCK": 1024, "PADDED": padded}
    return kernel("depthwise_conv", arguments, constants, [side * side // 1024, planes], num_warps=4)


def hadamard(product: bool) -> Variant:
    rows, d = 1 << 16, 256
    x, y = ("fp16", rows, d), ("fp16", rows, d)
    if product:
        arguments = {"x_ptr": x, "h_ptr": ("fp16", d, d), "y_ptr": y}
        constants = {"ROWS": 128, "D": d, "BK": 64}
        return kernel("hadamard_product", arguments, constants, [rows // 128], num_warps=8, num_stages=3)
    constants = {"ROWS": 16, "D": d, "LOG": 8}
    return kernel("hadamard_butterflies", {"x_ptr": x, "y_ptr": y}, constants, [rows // 16], num_warps=4)


def density(double: bool) -> Variant:
    queries, samples = 16896, 8192
    arguments = {"q_ptr": ("fp32", queries), "s_ptr": ("fp32", samples), "out_ptr": ("fp32", queries), "SAMPLES": samples,
                 "bandwidth": 1.5}  # fmt: skip
    constants = {"BQ": 16, "BS": 64, "DOUBLE": double}
    return kernel("kernel_density", arguments, constants, [queries // 16], num_warps=4)


def distances(precision: str, bk: int = 16, warps: int = 4) -> Variant:
    m, n, k = 4224, 4096, 512
    arguments = {"x_ptr": ("fp32", m, k), "y_ptr": ("fp32", n, k), "d_ptr": ("fp32", m, n), "N": n, "K": k}
    constants = {"BM": 64, "BN": 64, "BK": bk, "PRECISION": precision}
    return kernel("squared_distances", arguments, constants, [m // 64, n // 64], num_warps=warps, num_stages=3)


def backward(wide: bool) -> Variant:
    t, k, n = 4096, 2048, 4224
    arguments = {"x_ptr": ("bf16", t, k), "dy_ptr": ("bf16", t, n), "dw_ptr": ("fp32", k, n), "T": t, "K": k, "N": n}
    constants = {"BM": 128, "BN": 128, "BT": 32, "WIDE": wide}
    return kernel("weight_gradient", arguments, constants, [k // 128, n // 128], num_warps=8, num_stages=3)


def conv(bm: int, bn: int, bk: int, warps: int) -> Variant:
    images, h, w, c, out = 4, 64, 128, 128, 256
    arguments = {"x_ptr": ("fp16", images, h + 2, w + 2, c), "w_ptr": ("fp16", 9 * c, out),
                 "y_ptr": ("fp16", images, h, w, out), "H": h, "W": w}  # fmt: skip
    constants = {"C": c, "OUT": out, "BM": bm, "BN": bn, "BK": bk}
    return kernel("conv3x3", arguments, constants, [images * h, w // bm, out // bn], num_warps=warps, num_stages=3)


def reversal(tiled: bool) -> Variant:
    rows, n = 4096, 4096
    arguments = {"x_ptr": ("fp32", rows, n), "y_ptr": ("fp32", rows, n)}
    if tiled:
        return kernel("bit_reversal_tiled", arguments, {"SIDE": 64, "BITS": 6}, [rows], num_warps=8)
    return kernel("bit_reversal", arguments, {"N": n, "BITS": 12}, [rows], num_warps=32)


def channels(pixels: int, warps: int) -> Variant:
    images, c, hw = 4, 1024, 4096
    arguments = {"x_ptr": ("fp32", images, c, hw), "g_ptr": ("fp32", c), "b_ptr": ("fp32", c),
                 "y_ptr": ("fp32", images, c, hw), "HW": hw, "eps": 1e-6}  # fmt: skip
    return kernel("channel_norm", arguments, {"C": c, "PIXELS": pixels}, [hw // pixels, images], num_warps=warps)


def cropped(width: int, left: int) -> Variant:
    frames, h, w, oh = 8, 2160, 4096, 2048
    arguments = {"x_ptr": ("i8", frames, h, w), "y_ptr": ("i8", frames, oh, width), "H": h, "W": w, "OH": oh, "OW": width,
                 "top": 48, "left": left}  # fmt: skip
    return kernel("crop", arguments, {"BLOCK": 2048}, [oh, frames], num_warps=4)


def binary(by_word: bool) -> Variant:
    n, k = 16896, 8192
    arguments = {"x_ptr": ("fp32", k), "w_ptr": ("i32", n, k // 32), "y_ptr": ("fp32", n), "K": k}
    if by_word:
        return kernel("binary_gemv_words", arguments, {"BN": 16, "WORDS": 64}, [n // 16], num_warps=4)
    return kernel("binary_gemv", arguments, {"BN": 4, "BK": 512}, [n // 4], num_warps=4)


def splines(kept: bool) -> Variant:
    n, steps = 1 << 19, 64
    arguments = {"coef_ptr": ("fp32", 7, n), "out_ptr": ("i8", steps, n), "N": n, "dt": 0.015625}
    constants = {"STEPS": steps, "BLOCK": 512, "KEPT": kept}
    return kernel("sample_splines", arguments, constants, [n // 512], num_warps=4)


def instances(one_pass: bool) -> Variant:
    rows, cols = 528, 1 << 17
    arguments = {"x_ptr": ("fp32", rows, cols), "mean_ptr": ("fp32", rows), "var_ptr": ("fp32", rows), "COLS": cols}
    return kernel("instance_stats", arguments, {"BLOCK": 4096, "ONE_PASS": one_pass}, [rows], num_warps=8)


def greedy(lanes: bool) -> Variant:
    rows, words = 264, 131072
    arguments = {
        "logit_ptr": ("bf16", rows, words),
        "token_ptr": ("i32", rows),
        "logprob_ptr": ("fp32", rows),
        "V": words,
    }
    return kernel("greedy_sample_lanes" if lanes else "greedy_sample", arguments, {"BLOCK": 1024}, [rows], num_warps=8)


def gated(warps: int) -> Variant:
    m, n, k = 2048, 4224, 2048
    arguments = {"x_ptr": ("bf16", m, k), "w1_ptr": ("bf16", k, n), "w3_ptr": ("bf16", k, n), "h_ptr": ("bf16", m, n),
                 "N": n, "K": k}  # fmt: skip
    constants = {"BM": 128, "BN": 128, "BK": 32}
    return kernel("swiglu", arguments, constants, [m // 128, n // 128], num_warps=warps, num_stages=3)


def bias(splits: int) -> Variant:
    t, n = 16384, 4096
    arguments = {"dy_ptr": ("bf16", t, n), "part_ptr": ("fp32", splits, n), "N": n, "ROWS": t // splits}
    return kernel("bias_gradient", arguments, {"BT": 64, "BN": 128}, [n // 128, splits], num_warps=8)


def tail(split: int) -> Variant:
    m, n, k = 1792, 2560, 16384
    arguments = {"a_ptr": ("bf16", m, k), "b_ptr": ("bf16", k, n), "c_ptr": ("fp32", m, n), "N": n, "K": k}
    constants = {"BM": 128, "BN": 256, "BK": 64, "SPLIT": split}
    return kernel("split_gemm", arguments, constants, [m // 128, n // 256, split], num_warps=8, num_stages=3)


def encoder(stages: int) -> Variant:
    heads, t, d = 66, 2048, 64
    shape = ("fp16", heads, t, d)
    arguments = {"q_ptr": shape, "k_ptr": shape, "v_ptr": shape, "o_ptr": shape, "T": t, "scale": 0.18}
    constants = {"D": d, "BM": 64, "BN": 128}
    return kernel("encoder_attention", arguments, constants, [t // 64, heads], num_warps=4, num_stages=stages)


def pooled(reduced: bool) -> Variant:
    nodes, d, graphs = 1 << 18, 32, 4
    arguments = {"x_ptr": ("fp32", nodes, d), "graph_ptr": ("i32", nodes), "out_ptr": ("fp32", graphs, d)}
    constants = {"GRAPHS": graphs, "D": d, "ROWS": 128, "REDUCED": reduced}
    return kernel("pool_graphs", arguments, constants, [nodes // 128], num_warps=4)


def moments(lock: bool) -> Variant:
    parts, part = 528, 1 << 16
    arguments = {"x_ptr": ("bf16", parts, part), "moment_ptr": ("fp32", parts, 4), "lock_ptr": ("i32", 1), "PART": part}
    return kernel("merged_moments", arguments, {"BLOCK": 4096, "LOCKED": lock}, [parts], num_warps=4)


def router(tokens: int) -> Variant:
    count, e = 1 << 14, 16
    arguments = {"logit_ptr": ("bf16", count, e), "prob_ptr": ("fp32", count, e), "choice_ptr": ("i32", count, 2)}
    return kernel("route_tokens", arguments, {"E": e, "TOKENS": tokens}, [count // tokens], num_warps=4)


def appended(tokens: int) -> Variant:
    slots, heads, half = 1 << 15, 8, 64
    arguments = {"k_ptr": ("bf16", tokens, heads, 2 * half), "cos_ptr": ("fp32", tokens, half),
                 "sin_ptr": ("fp32", tokens, half), "slot_ptr": ("i32", tokens),
                 "cache_ptr": ("bf16", slots, heads, 2 * half), "SLOTS": slots}  # fmt: skip
    return kernel("append_keys", arguments, {"HEADS": heads, "HALF": half}, [tokens], num_warps=4)


def decode(stages: int) -> Variant:
    heads, g, t, d = 132, 16, 4096, 128
    arguments = {"q_ptr": ("bf16", heads, g, d), "k_ptr": ("bf16", heads, t, d), "v_ptr": ("bf16", heads, t, d),
                 "o_ptr": ("bf16", heads, g, d), "T": t, "scale": 0.127}  # fmt: skip
    constants = {"G": g, "D": d, "BN": 64}
    return kernel("grouped_decode", arguments, constants, [heads], num_warps=4, num_stages=stages)


def particles(records: bool) -> Variant:
    n = 1 << 21
    arguments = {"p_ptr": ("fp32", n, 8) if records else ("fp32", 8, n), "n": n, "dt": 0.001}
    return kernel("move_particles", arguments, {"BLOCK": 1024, "RECORDS": records}, [n // 1024], num_warps=4)


PLANTS = {
    "routed": Plant(
        ("serial-loop",), ("x = tl.load(x_ptrs)", "w = tl.load(w_ptrs)"),
        "one stage: each trip of the expert product waits for its own loads (not pipelined)", routed(1), routed(4),
    ),
    "linear8": Plant(
        ("drained-pipeline",), ("a = tl.load(a_ptr + rows", "w = tl.load(w_ptr + cols"),
        "two stages for one CTA per SM: the pipeline drains each trip", linear8(2), linear8(5),
    ),
    "dispatched": Plant(
        ("dependent-loads", "serial-loop"),
        ("slot = tl.load(order_ptr + r)", "token = tl.load(token_ptr + slot)", "row = tl.load(x_ptr + token"),
        "slot, then token, then features: three dependent loads for each row, one row at a time",
        dispatched(1), dispatched(16),
    ),
    "cells": Plant(
        ("dependent-loads", "dependent-loads"), ("j = tl.load(next_ptr + j)",),
        "the next particle's index is loaded by way of this one's (linked list)", cells(False), cells(True),
    ),
    "norm": Plant(
        ("few-bytes", "serial-loop"), ("g = tl.load(g_ptr + pid",),
        "one CTA per SM reads 2 KB at a time (too few bytes in flight)", norm(1024, 8), norm(16384, 16),
    ),
    "minhash": Plant(
        ("int64",), ("return (x.to(tl.int64) * (A", "tl.minimum(h"),
        "64-bit products, shifts and minima for each token", hashes(True), hashes(False),
    ),
    "torus": Plant(
        ("division",), ("r = (row + dy + H) % H", "c = (col + dx + W) % W"),
        "two remainders by arguments for each tap", torus(False), torus(True),
    ),
    "depthwise": Plant(
        ("masks",), ("inside = (r >= 0)", "mask=inside, other=0.0"),
        "each tap computes a boundary mask", depthwise(False), depthwise(True),
    ),
    "hadamard": Plant(
        ("layout-conversion",), ("pairs = tl.permute(", "a, b = tl.split(pairs)", "x = tl.reshape(tl.permute(tl.join("),
        "each of eight stages rearranges the tile between layouts", hadamard(False), hadamard(True),
    ),
    "density": Plant(
        ("type-conversion",), ("acc += weight.to(acc.dtype)",),
        "each weight is converted to fp64", density(True), density(False),
    ),
    "distances": Plant(
        ("fp32-dot",), ("cross = tl.dot(x, tl.trans(y)",),
        "fp32 products on the FMA pipe (no tf32)", distances("ieee"), distances("tf32", 32, 4),
    ),
    "backward": Plant(
        ("wide-dot",), ("acc += tl.dot(tl.trans(x).to(tl.float32), dy.to(tl.float32))",),
        "bf16 operands are multiplied as fp32 (dot wider than its loads)", backward(True), backward(False),
    ),
    "conv": Plant(
        ("small-tile",), ("acc = tl.dot(x, w, acc)",),
        "a 32 x 32 x 32 tile is too small for the MMA and reuses its operands too little",
        conv(32, 32, 32, 4), conv(128, 128, 64, 8),
    ),
    "reversal": Plant(
        ("bank-conflicts",), ("y = tl.gather(x, reversed_bits",),
        "bit-reversed lanes read one bank of shared memory", reversal(False), reversal(True),
    ),
    "channels": Plant(
        ("uncoalesced",), ("x = tl.load(x_ptr + at)", "tl.store(y_ptr + at"),
        "neighbouring lanes access channels, 16 KB apart (uncoalesced)", channels(1, 4), channels(16, 16),
    ),
    "cropped": Plant(
        ("narrow-access",), ("x = tl.load(source + cols", "tl.store(target + cols"),
        "odd width and offset: one byte per thread and access", cropped(3845, 37), cropped(3840, 48),
    ),
    "binary": Plant(
        ("redundant-load",), ("word = tl.load(w_ptr + rows[:, None] * (K // 32) + (k // 32)",),
        "each word is loaded by 32 elements", binary(False), binary(True),
    ),
    "splines": Plant(
        ("invariant-load",), tuple(f"c{i} = tl.load(coef_ptr" for i in range(7)),
        "seven coefficients that do not change are loaded in each step", splines(False), splines(True),
    ),
    "instances": Plant(
        ("refetched",), ("centred = tl.load(x_ptr + row", "x = tl.load(x_ptr + row * COLS + start + offs)"),
        "the second pass reads each row from device memory again", instances(False), instances(True),
    ),
    "greedy": Plant(
        ("reduction-per-trip",), ("top, where = tl.max(x, 0", "total = total * tl.exp(best - new) + tl.sum("),
        "each block's maximum and sum are reduced across the CTA", greedy(False), greedy(True),
    ),
    "gated": Plant(
        ("spills",), (), "two 128 x 128 accumulators over 128 threads spill in each trip", gated(4), gated(8),
    ),
    "bias": Plant(("idle-sms",), (), "32 CTAs leave most SMs idle", bias(1), bias(16)),
    "tail": Plant(("tail-wave", "idle-sms"), (), "140 CTAs, one per SM: eight run in a second wave", tail(1), tail(4)),
    "encoder": Plant(
        ("occupancy",), (), "six stages take the shared memory of a whole SM: one CTA of four warps", encoder(6), encoder(2),
    ),
    "pooled": Plant(
        ("atomic-contention",), ("tl.atomic_add(out_ptr + graphs[:, None]",),
        "eight million additions meet at 128 addresses", pooled(False), pooled(True),
    ),
    "moments": Plant(
        ("compare-and-swap", "atomic-contention"), ("while tl.atomic_cas(lock_ptr, 0, 1) == 1:",),
        "all CTAs wait for one lock (a compare-and-swap loop)", moments(True), moments(False),
    ),
    "router": Plant(("more-threads",), (), "128 threads share 16 elements", router(1), router(64)),
    "appended": Plant(("small-launch",), (), "eight CTAs, microseconds: too small to matter", appended(8), appended(16384)),
    "decode": Plant(
        ("serial-loop",), ("k = tl.load(k_ptr + at)", "v = tl.load(v_ptr + at)"),
        "one stage: each trip waits for its own keys and values (not pipelined)", decode(1), decode(3),
    ),
    "particles": Plant(
        ("uncoalesced",),
        ("x = tl.load(at)", "y = tl.load(at + step)", "z = tl.load(at + 2", "tl.load(at + ", "tl.store(at"),
        "neighbouring lanes access records, 32 bytes apart (uncoalesced)", particles(True), particles(False),
    ),
}  # fmt: skip


def pairs_on(target: str) -> dict[str, tuple[tuple[str, ...], Variant, Variant]]:
    """Name → (expected kinds, plant, twin)."""
    return {name: (one.kinds, one.plant, one.twin) for name, one in PLANTS.items()}
