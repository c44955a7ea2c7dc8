"""How the kernels of `seventh.py` are compiled and launched; the first entry is what the first sentence should name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from blind_pairs import kernel
from pairs import Variant

FILE = Path(__file__).with_name("seventh.py")


def local(stages: int) -> Variant:
    heads, length, window, d = 64, 8192, 1024, 128
    long = heads * length + window
    arguments = {"q_ptr": ("fp16", long, d), "k_ptr": ("fp16", long, d), "v_ptr": ("fp16", long, d),
                 "o_ptr": ("fp16", long, d), "T": length, "scale": 0.125}  # fmt: skip
    constants = {"BM": 128, "BN": 64, "D": d, "W": window}
    return kernel("local_attention", arguments, constants, [length // 128, heads], num_warps=8, num_stages=stages)


def keys(chained: bool) -> Variant:
    buckets, slots, queries = 1 << 16, 64, 132 * 256
    arguments = {"query_ptr": ("i32", queries), "head_ptr": ("i32", buckets), "key_ptr": ("i32", buckets * slots),
                 "link_ptr": ("i32", buckets * slots), "value_ptr": ("fp32", buckets * slots),
                 "out_ptr": ("fp32", queries), "buckets": buckets}  # fmt: skip
    return kernel("find_keys", arguments, {"SLOTS": slots, "BLOCK": 256, "CHAINED": chained}, [queries // 256])


def backward(atomic: bool) -> Variant:
    tokens, c, rows = 65536, 1024, 16
    arguments = {"dy_ptr": ("fp16", tokens, c), "x_ptr": ("fp16", tokens, c), "w_ptr": ("fp32", c), "rstd_ptr": ("fp32", tokens),
                 "dx_ptr": ("fp16", tokens, c), "dw_ptr": ("fp32", tokens // rows, c)}  # fmt: skip
    return kernel("norm_backward", arguments, {"C": c, "ROWS": rows, "ATOMIC": atomic}, [tokens // rows], num_warps=4)


def greedy(once: bool) -> Variant:
    rows, words = 132, 131072
    arguments = {"logit_ptr": ("fp16", rows, words), "noise_ptr": ("fp32", words), "token_ptr": ("i32", rows),
                 "score_ptr": ("fp32", rows), "V": words, "temperature": 0.7}  # fmt: skip
    return kernel("sample_greedy", arguments, {"BLOCK": 2048, "ONCE": once}, [rows], num_warps=4)


def lanes(turned: bool) -> Variant:
    n, k = 131072, 1024
    arguments = {
        "w_ptr": ("fp32", n, k),
        "x_ptr": ("fp32", k),
        "bias_ptr": ("fp32", n),
        "y_ptr": ("fp32", n),
        "N": n,
        "K": k,
    }
    return kernel("gemv_lanes", arguments, {"BLOCK": 128, "TURNED": turned}, [n // 128], num_warps=4)


def bodies(double: bool) -> Variant:
    n = 16384
    arguments: dict[str, Any] = {f"{one}_ptr": ("fp32", n) for one in ("x", "y", "z", "m", "ax", "ay", "az")}
    return kernel("attract", {**arguments, "n": n}, {"BI": 16, "BJ": 128, "DOUBLE": double}, [n // 16], num_warps=4)


def spins(flat: bool) -> Variant:
    h, w = 8192, 8192
    arguments = {
        "spin_ptr": ("i8", h, w),
        "noise_ptr": ("i8", h, w),
        "out_ptr": ("i8", h, w),
        "H": h,
        "W": w,
        "beta": 0.44,
    }
    grid = [h * w // 1024] if flat else [w // 1024, h]
    return kernel("flip_spins", arguments, {"BLOCK": 1024, "FLAT": flat}, grid)


def area(wide: bool) -> Variant:
    n = 1 << 22
    arguments = {"seed_ptr": ("i32", n), "out_ptr": ("fp32", n)}
    return kernel("estimate_area", arguments, {"STEPS": 256, "BLOCK": 512, "WIDE": wide}, [n // 512])


def experts(wide: bool) -> Variant:
    tokens, count, n, k = 16384, 16, 4096, 2048
    arguments = {"x_ptr": ("bf16", tokens, k), "w_ptr": ("bf16", count, n, k), "order_ptr": ("i32", tokens),
                 "expert_ptr": ("i32", tokens // 128), "y_ptr": ("fp16", tokens, n), "N": n, "K": k}  # fmt: skip
    constants = {"BM": 128, "BN": 128, "BK": 64, "WIDE": wide}
    return kernel("expert_gemm", arguments, constants, [tokens // 128, n // 128], num_warps=8, num_stages=3)


def spectrum(precision: str) -> Variant:
    frames, bins, size = 32768, 512, 1024
    arguments = {"x_ptr": ("fp32", frames, size), "cos_ptr": ("fp32", bins, size), "sin_ptr": ("fp32", bins, size),
                 "p_ptr": ("fp32", frames, bins), "F": bins, "SIZE": size}  # fmt: skip
    constants = {"BM": 64, "BF": 64, "BK": 32, "PRECISION": precision}
    return kernel("power_spectrum", arguments, constants, [frames // 64, bins // 64], num_warps=4, num_stages=3)


def channels(tile: tuple[int, int, int], warps: int) -> Variant:
    pixels, c = 65536, 512
    arguments = {"x_ptr": ("fp16", pixels, c), "w_ptr": ("fp16", c, c), "bias_ptr": ("fp16", c), "y_ptr": ("fp16", pixels, c),
                 "CIN": c, "COUT": c}  # fmt: skip
    constants = {"BM": tile[0], "BN": tile[1], "BK": tile[2]}
    return kernel(
        "mix_channels", arguments, constants, [pixels // tile[0], c // tile[1]], num_warps=warps, num_stages=3
    )


def gradient(turned: bool) -> Variant:
    n = 4096
    arguments = {"dy_ptr": ("fp32", n, n), "x_ptr": ("fp32", n, n), "dw_ptr": ("fp32", n, n), "N": n, "K": n, "T": n}
    constants = {"BN": 128, "BK": 128, "BT": 32, "TURNED": turned}
    return kernel("weight_gradient", arguments, constants, [n // 128, n // 128], num_warps=8, num_stages=3)


def transformed(staged: bool) -> Variant:
    rows, size = 1 << 19, 128
    arguments = {"x_ptr": ("fp16", rows, size), "h_ptr": ("fp16", size, size), "y_ptr": ("fp16", rows, size)}
    return kernel("hadamard", arguments, {"ROWS": 32, "SIZE": size, "STAGED": staged}, [rows // 32], num_warps=4)


def latent(warps: int) -> Variant:
    parts, length, heads, d = 132, 2048, 64, 512
    arguments = {"q_ptr": ("fp16", heads, d), "c_ptr": ("fp16", parts * length, d), "o_ptr": ("fp32", parts, heads, d),
                 "T": length, "scale": 0.06}  # fmt: skip
    constants = {"HEADS": heads, "D": d, "BN": 32}
    return kernel("latent_decode", arguments, constants, [parts], num_warps=warps, num_stages=2)


def recurrence(each: int) -> Variant:
    heads, length, d = 16, 1024, 128
    arguments: dict[str, Any] = {f"{one}_ptr": ("bf16", heads, length, d) for one in "qkvgo"}
    constants = {"D": d, "BV": each}
    return kernel("gated_recurrence", {**arguments, "T": length}, constants, [heads, d // each], num_warps=4)


def causal(peeled: bool) -> Variant:
    heads, length, d = 64, 4096, 64
    arguments: dict[str, Any] = {f"{one}_ptr": ("fp16", heads, length, d) for one in "qkvo"}
    arguments |= {"T": length, "window": length, "scale": 0.18}
    constants = {"BM": 128, "BN": 64, "D": d, "PEELED": peeled}
    return kernel("causal_attention", arguments, constants, [length // 128, heads], num_warps=8, num_stages=3)


def smoothed(summed: bool) -> Variant:
    n = 1 << 26
    arguments = {"x_ptr": ("fp32", n + 64), "y_ptr": ("fp32", n), "n": n}
    return kernel("smooth_signal", arguments, {"WIDTH": 32, "BLOCK": 1024, "SUMMED": summed}, [n // 1024])


def neurons(hoisted: bool) -> Variant:
    n, steps = 1 << 20, 64
    arguments: dict[str, Any] = {f"{one}_ptr": ("fp32", n) for one in ("decay", "level", "reset")}
    arguments = {"current_ptr": ("i8", steps, n), **arguments, "spike_ptr": ("i8", steps, n), "n": n}
    return kernel("fire_neurons", arguments, {"T": steps, "BLOCK": 1024, "HOISTED": hoisted}, [n // 1024])


def routed(each: int, warps: int) -> Variant:
    tokens, count = 1 << 20, 32
    arguments = {"logit_ptr": ("fp32", tokens, count), "gate_ptr": ("fp32", tokens), "expert_ptr": ("i32", tokens)}
    return kernel("route_tokens", arguments, {"E": count, "TOKENS": each}, [tokens // each], num_warps=warps)


def vocabulary(stride: int) -> Variant:
    rows, k, words = 1024, 2048, 32000
    arguments = {"h_ptr": ("fp16", rows, k), "w_ptr": ("fp16", k, stride), "y_ptr": ("fp16", rows, words), "K": k,
                 "stride_k": stride, "V": words, "cap": 30.0}  # fmt: skip
    constants = {"BM": 128, "BN": 128, "BK": 64}
    return kernel("vocabulary_logits", arguments, constants, [rows // 128, words // 128], num_warps=8, num_stages=3)


def pairs_on(target: str) -> dict[str, tuple[tuple[str, ...], Variant, Variant]]:
    """Name → (expected kinds, plant, twin)."""
    three = 2 if target.startswith("gfx") else 3
    return {
        "local": (("serial-loop",), local(1), local(three)),
        "keys": (("dependent-loads",), keys(True), keys(False)),
        "backward": (("atomic-contention",), backward(True), backward(False)),
        "greedy": (("reduction-per-trip", "barrier-per-trip"), greedy(False), greedy(True)),
        "lanes": (("uncoalesced",), lanes(False), lanes(True)),
        "bodies": (("type-conversion",), bodies(True), bodies(False)),
        "spins": (("division",), spins(True), spins(False)),
        "area": (("int64",), area(True), area(False)),
        "experts": (("wide-dot",), experts(True), experts(False)),
        "spectrum": (("fp32-dot",), spectrum("ieee"), spectrum("tf32")),
        "channels": (("small-tile",), channels((16, 16, 32), 1), channels((128, 128, 64), 8)),
        "gradient": (("bank-conflicts",), gradient(False), gradient(True)),
        "transformed": (("layout-conversion",), transformed(True), transformed(False)),
        "latent": (("spills",), latent(4), latent(8)),
        "recurrence": (("idle-sms",), recurrence(128), recurrence(16)),
        "causal": (("masks",), causal(False), causal(True)),
        "smoothed": (("redundant-load",), smoothed(False), smoothed(True)),
        "neurons": (("invariant-load",), neurons(False), neurons(True)),
        "routed": (("more-threads", "cta-launches"), routed(1, 8), routed(128, 4)),
        "vocabulary": (("narrow-access",), vocabulary(32001), vocabulary(32000)),
    }
