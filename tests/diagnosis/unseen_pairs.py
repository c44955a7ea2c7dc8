"""How the kernels of `unseen.py` are compiled and launched; the first entry is what the first sentence should name."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from blind_pairs import kernel
from pairs import Variant

FILE = Path(__file__).with_name("unseen.py")
MULTIPROCESSORS = {"sm_80": 108, "sm_90": 132, "gfx942": 304}
NOT_PLANTED = {
    # two stages are the usual depth there
    "gfx942": {"w8a8-drained"}
}

_CONV = {"x_ptr": ("fp16", 64, 66, 66, 256), "w_ptr": ("fp16", 9, 256, 256), "y_ptr": ("fp16", 64, 64, 64, 256), "H": 64,
         "W": 64, "C": 256, "F": 256}  # fmt: skip
_DQ = {"q_ptr": ("bf16", 64, 4096, 64), "k_ptr": ("bf16", 64, 4096, 64), "v_ptr": ("bf16", 64, 4096, 64),
       "do_ptr": ("bf16", 64, 4096, 64), "lse_ptr": ("fp32", 64, 4096), "delta_ptr": ("fp32", 64, 4096),
       "dq_ptr": ("bf16", 64, 4096, 64), "scale": 0.125, "T": 4096}  # fmt: skip
_W8A8 = {"x_ptr": ("i8", 8192, 4096), "w_ptr": ("i8", 4096, 4096), "sx_ptr": ("fp32", 8192), "sw_ptr": ("fp32", 4096),
         "y_ptr": ("bf16", 8192, 4096), "M": 8192, "N": 4096, "K": 4096}  # fmt: skip
_KEYS = {"key_ptr": ("i32", 1 << 22), "first_ptr": ("i32", 1 << 22), "next_ptr": ("i32", 1 << 22),
         "node_ptr": ("i32", 1 << 22), "out_ptr": ("i32", 1 << 22), "buckets": 1 << 22}  # fmt: skip
_GRAM = {"x_ptr": ("fp32", 4096, 8192), "g_ptr": ("fp32", 4096, 4096), "T": 8192, "C": 4096}
_RETENTION = {"q_ptr": ("bf16", 128, 4096, 64), "k_ptr": ("bf16", 128, 4096, 64), "v_ptr": ("bf16", 128, 4096, 64),
              "o_ptr": ("bf16", 128, 4096, 64), "T": 4096, "decay": -0.01}  # fmt: skip
_LORA = {"x_ptr": ("bf16", 16384, 4096), "a_ptr": ("bf16", 1024, 4096), "y_ptr": ("bf16", 16384, 1024), "M": 16384,
         "K": 4096, "R": 1024}  # fmt: skip
_NORM = {"x_ptr": ("fp16", 64, 256, 4096), "w_ptr": ("fp32", 256), "y_ptr": ("fp16", 64, 256, 4096), "P": 4096,
         "eps": 1e-6}  # fmt: skip
_TERNARY = {"w_ptr": ("i32", 32768, 512), "x_ptr": ("fp16", 8192), "y_ptr": ("fp32", 32768), "K": 8192}
_BIAS = {"s_ptr": ("i8", 32, 4096, 4096), "b_ptr": ("fp32", 32, 8192), "y_ptr": ("i8", 32, 4096, 4096), "slope": 0.5,
         "T": 4096}  # fmt: skip
_REQUANTIZE = {
    "q_ptr": ("i8", 65536, 4096),
    "s_ptr": ("fp32", 4096),
    "z_ptr": ("fp32", 4096),
    "y_ptr": ("i8", 65536, 4096),
}
_COSINE = {"a_ptr": ("fp16", 4096, 32768), "b_ptr": ("fp16", 4096, 32768), "y_ptr": ("fp32", 4096), "N": 32768}
_LSTM = {"x_ptr": ("fp32", 4, 1 << 22), "c_ptr": ("fp32", 1 << 22), "h_ptr": ("fp32", 1 << 22)}
_INT4 = {"w_ptr": ("i8", 32768, 4096), "x_ptr": ("i8", 8192), "s_ptr": ("fp32", 32768), "y_ptr": ("fp32", 32768),
         "K": 8192}  # fmt: skip


def product(name: str, arguments: dict[str, Any], tile: dict[str, int], grid: list[int], **options: int) -> Variant:
    return kernel(name, arguments, tile, grid, **options)


def conv(stages: int) -> Variant:
    return product("conv3x3_nhwc", _CONV, {"BP": 64, "BF": 128, "BC": 64}, [64, 2, 64], num_warps=4, num_stages=stages)


def query_gradient(stages: int) -> Variant:
    return product("attention_dq", _DQ, {"D": 64, "BM": 128, "BN": 64}, [32, 64], num_warps=8, num_stages=stages)


def w8a8(stages: int) -> Variant:
    tile = {"BM": 128, "BN": 128, "BK": 128}
    return product("w8a8_linear", _W8A8, tile, [64, 32], num_warps=8, num_stages=stages)


def moved(tile: bool) -> Variant:
    rows = {"x_ptr": ("fp16", 1 << 20, 64), "y_ptr": ("fp16", 1 << 20, 64)}
    slots = {"slot_ptr": ("i32", 1 << 20)}
    if tile:
        return kernel("gather_tokens_tile", {**slots, **rows}, {"ROWS": 64, "D": 64}, [1 << 14])
    order = {"order_ptr": ("i32", 1 << 20), **slots, **rows}
    return kernel("gather_tokens", order, {"TRIPS": 64, "D": 64}, [1 << 14], num_warps=1)


def lookup(probing: bool) -> Variant:
    constants = {"DEPTH": 8, "BLOCK": 256}
    if probing:
        arguments = {name: value for name, value in _KEYS.items() if name not in ("first_ptr", "next_ptr")}
        return kernel("find_keys_probing", arguments, constants, [1 << 14])
    return kernel("find_keys", _KEYS, constants, [1 << 14])


def rolled(rows: bool) -> Variant:
    if rows:
        x = {"x_ptr": ("fp16", 64, 56, 56, 1024), "y_ptr": ("fp16", 64, 56, 56, 1024)}
        sizes = {"n1": 56, "n2": 56, "n3": 1024, "by": 3}
        return kernel("roll_rows", {**x, **sizes}, {"BLOCK": 1024}, [56, 56, 64])
    x = {"x_ptr": ("fp16", 64, 56, 56, 1000), "y_ptr": ("fp16", 64, 56, 56, 1000)}
    sizes = {"n1": 56, "n2": 56, "n3": 1000, "by": 3}
    return kernel("roll_4d", {**x, **sizes}, {"TRIPS": 8, "BLOCK": 1024}, [64 * 56 * 56 * 1000 // 8192])


def patches(rows: bool) -> Variant:
    if rows:
        arguments = {"x_ptr": ("fp16", 514, 514, 128), "y_ptr": ("fp16", 512 * 512, 1152), "W": 514, "out_w": 512}
        return kernel("im2col_rows", arguments, {"C": 128, "KW": 3}, [512, 512], num_warps=1)
    arguments = {"x_ptr": ("fp16", 514, 514, 120), "y_ptr": ("fp16", 512 * 512, 1080), "W": 514, "C": 120, "KW": 3,
                 "out_w": 512}  # fmt: skip
    return kernel("im2col_flat", arguments, {"TRIPS": 8, "BLOCK": 1024}, [512 * 512 * 1080 // 8192])


def hadamard(products: bool) -> Variant:
    x = {"x_ptr": ("fp16", 16384, 4096)}
    y = {"y_ptr": ("fp16", 16384, 4096)}
    if products:
        return kernel("hadamard_products", {**x, "h_ptr": ("fp16", 64, 64), **y}, {"S": 64}, [16384])
    return kernel("hadamard_butterflies", {**x, **y}, {"N": 4096, "ROUNDS": 12}, [16384])


def covariance(precision: str, stages: int) -> Variant:
    constants = {"BC": 128, "BT": 32, "PRECISION": precision}
    return kernel("gram", _GRAM, constants, [32, 32], num_warps=8, num_stages=stages)


def retained(wide: bool, stages: int) -> Variant:
    constants = {"D": 64, "BM": 64, "WIDE": wide}
    return kernel("retention", _RETENTION, constants, [64, 128], num_warps=4, num_stages=stages)


def adapters(tile: tuple[int, int, int], warps: int, stages: int) -> Variant:
    constants = dict(zip(("BM", "BR", "BK"), tile, strict=True))
    return kernel(
        "lora_down", _LORA, constants, [16384 // tile[0], 1024 // tile[1]], num_warps=warps, num_stages=stages
    )


def reversed_bits(keep: int) -> Variant:
    arguments = {"x_ptr": ("fp32", 32768, 4096), "y_ptr": ("fp32", 32768, 4096)}
    return kernel("bit_reversal", arguments, {"ROUNDS": 8, "BITS": 12, "KEEP": keep}, [32768])


def normed(tile: bool) -> Variant:
    if tile:
        return kernel("channel_norm_tile", _NORM, {"C": 256, "BP": 64}, [64, 64], num_warps=8)
    return kernel("channel_norm", _NORM, {"C": 256}, [4096, 64], num_warps=2)


def losses(vocabulary_outer: bool) -> Variant:
    v, t = 32768, 8192
    strides = {"V": v, "T": t, "stride_v": t if vocabulary_outer else 1, "stride_t": 1 if vocabulary_outer else v}
    arguments = {"logits_ptr": ("fp16", v * t), "label_ptr": ("i32", t), "loss_ptr": ("fp32", t), **strides}
    variant = kernel("token_loss", arguments, {"BLOCK": 1024}, [t])
    if vocabulary_outer:
        return variant
    types = variant.signature.split(",")
    return replace(variant, signature=",".join([*types[:5], "1", *types[6:]]))


def weights(name: str, bk: int) -> Variant:
    return kernel(name, _TERNARY, {"BN": 16, "BK": bk}, [2048], num_warps=4)


def biased(loaded: bool) -> Variant:
    return kernel("relative_bias", _BIAS, {"BM": 64, "BN": 128, "LOADED": loaded}, [32, 64], num_warps=8)


def requantized(again: bool) -> Variant:
    return kernel("requantize_rows", _REQUANTIZE, {"N": 4096, "ROWS": 16, "AGAIN": again}, [4096], num_warps=8)


def cosine(lanes: bool) -> Variant:
    return kernel("cosine_similarity", _COSINE, {"BLOCK": 1024, "LANES": lanes}, [4096])


def filtered(bisect: bool) -> Variant:
    rows = {"p_ptr": ("fp16", 16384, 8192), "y_ptr": ("fp16", 16384, 8192)}
    if bisect:
        return kernel("top_p_bisect", {**rows, "top_p": 0.9}, {"V": 8192, "STEPS": 24}, [16384], num_warps=8)
    return kernel("min_p", {**rows, "fraction": 0.1}, {"V": 8192}, [16384], num_warps=8)


def state(target: str, warps: int) -> Variant:
    dv = 256 if target.startswith("gfx") else 128
    arguments = {"k_ptr": ("fp32", 2432, 256, 128), "v_ptr": ("fp32", 2432, 256, dv), "s_ptr": ("fp32", 2432, 128, dv),
                 "T": 256}  # fmt: skip
    return kernel("fast_weights", arguments, {"DK": 128, "DV": dv}, [2432], num_warps=warps)


def gates(target: str, capped: bool) -> Variant:
    options = ({"waves_per_eu": 8} if target.startswith("gfx") else {"maxnreg": 40}) if capped else {}
    constants = {"STEPS": 64, "H": 1 << 22, "BLOCK": 2048 if target.startswith("gfx") else 1024}
    return kernel("lstm_cell", _LSTM, constants, [(1 << 22) // constants["BLOCK"]], num_warps=2, **options)


def decoded(heads: int, splits: int) -> Variant:
    cache = ("bf16", heads, 32768, 128)
    arguments = {"q_ptr": ("bf16", heads, 128), "k_ptr": cache, "v_ptr": cache, "o_ptr": ("fp32", heads, splits, 128),
                 "lse_ptr": ("fp32", heads, splits), "scale": 0.127, "T": 32768}  # fmt: skip
    return kernel("decode_attention", arguments, {"SPLITS": splits, "D": 128, "BN": 64}, [heads, splits])


def gradients(n: int, splits: int, stages: int) -> Variant:
    arguments = {"x_ptr": ("fp16", 65536, 512), "dy_ptr": ("fp16", 65536, n), "dw_ptr": ("fp32", splits, n, 512),
                 "T": 65536, "N": n, "K": 512}  # fmt: skip
    constants = {"SPLITS": splits, "BN": 128, "BK": 128, "BT": 64}
    return kernel("weight_gradient", arguments, constants, [n // 128, 4, splits], num_warps=8, num_stages=stages)


def integrals(ctas: int) -> Variant:
    arguments = {"x_ptr": ("fp32", ctas * 1024), "y_ptr": ("fp32", ctas * 1024), "STEPS": 4096}
    return kernel("integrate", arguments, {"BLOCK": 1024}, [ctas], num_warps=16 if ctas < 1000 else 4)


def scanned(states: int, block: int, warps: int) -> Variant:
    arguments = {"u_ptr": ("fp32", 64, 512, 4096), "dt_ptr": ("fp32", 64, 512, 4096), "b_ptr": ("fp32", 64, 512, states),
                 "y_ptr": ("fp32", 64, 512, 4096), "T": 512, "C": 4096}  # fmt: skip
    constants = {"STATES": states, "BLOCK": block}
    return kernel("selective_scan", arguments, constants, [4096 // block, 64], num_warps=warps)


def column_sums(rows: int) -> Variant:
    arguments = {"dy_ptr": ("fp16", 1 << 18, 512), "db_ptr": ("fp32", 512)}
    return kernel("bias_sums", arguments, {"N": 512, "ROWS": rows}, [(1 << 18) // rows])


def skinny(locked: bool) -> Variant:
    arguments = {"x_ptr": ("fp16", 16, 16384), "w_ptr": ("fp16", 2048, 16384),
                 "y_ptr": ("fp32", 16 if locked else 1024, 2048), "lock_ptr": ("i32", 16), "N": 2048, "K": 16384}  # fmt: skip
    constants = {"BM": 16, "BN": 128, "BK": 64, "SPLITS": 64, "LOCKED": locked}
    return kernel("splitk_locked", arguments, constants, [16, 64], num_warps=4, num_stages=3 if locked else 2)


def gated(tokens: int, warps: int) -> Variant:
    arguments = {
        "logits_ptr": ("fp16", 1 << 19, 16),
        "weight_ptr": ("fp32", 1 << 19, 2),
        "index_ptr": ("i32", 1 << 19, 2),
    }
    return kernel("gate_experts", arguments, {"E": 16, "TOKENS": tokens}, [(1 << 19) // tokens], num_warps=warps)


def scaled_logits(n: int) -> Variant:
    arguments = {"x_ptr": ("fp16", n), "y_ptr": ("fp16", n), "n": n, "temperature": 0.7}
    return kernel("scale_logits", arguments, {"BLOCK": 1024}, [n // 1024])


def nibbles(floats: bool) -> Variant:
    constants = {"BN": 16, "BK": 256, "GROUP": 128, "FLOATS": floats}
    return kernel("dot_int4", _INT4, constants, [2048], num_warps=4)


def pairs_on(target: str) -> dict[str, tuple[tuple[str, ...], Variant, Variant]]:
    """The pairs; depths, tiles of state and a grid follow the target."""
    deep = 2 if target.startswith("gfx") else 4
    multiprocessors = MULTIPROCESSORS[target]
    return {
        "conv-serial": (("serial-loop",), conv(1), conv(deep)),
        "dq-serial": (("serial-loop", "drained-pipeline"), query_gradient(1), query_gradient(min(deep, 3))),
        "w8a8-drained": (("drained-pipeline",), w8a8(2), w8a8(deep)),
        "gather": (("dependent-loads",), moved(False), moved(True)),
        "hash": (("dependent-loads",), lookup(False), lookup(True)),
        "roll-64": (("int64", "division"), rolled(False), rolled(True)),
        "im2col": (("division",), patches(False), patches(True)),
        "hadamard": (("layout-conversion",), hadamard(False), hadamard(True)),
        "gram": (("fp32-dot",), covariance("ieee", 2), covariance("tf32", min(deep, 3))),
        "retention": (("wide-dot",), retained(True, 2), retained(False, min(deep, 3))),
        "lora-tile": (
            ("small-tile",),
            adapters((16, 32, 16), 1, min(deep, 3)),
            adapters((128, 128, 64), 8, min(deep, 3)),
        ),
        "bit-reversal": (("bank-conflicts",), reversed_bits(0), reversed_bits(6)),
        "channel-norm": (("uncoalesced",), normed(False), normed(True)),
        "token-loss": (("uncoalesced",), losses(True), losses(False)),
        "ternary": (("redundant-load",), weights("ternary_gemv", 128), weights("ternary_gemv_words", 2048)),
        "bias": (("redundant-load",), biased(True), biased(False)),
        "requantize": (("invariant-load",), requantized(True), requantized(False)),
        "cosine": (("reduction-per-trip",), cosine(False), cosine(True)),
        "top-p": (("reduction-per-trip", "barrier-per-trip"), filtered(True), filtered(False)),
        "fast-weights": (("spills",), state(target, 1), state(target, 8)),
        "lstm": (("spills",), gates(target, True), gates(target, False)),
        "decode": (("idle-sms",), decoded(16, 1), decoded(64, 64)),
        "weight-gradient": (("idle-sms",), gradients(512, 1, min(deep, 3)), gradients(4096, 16, min(deep, 3))),
        "integrate": (("tail-wave",), integrals(multiprocessors * 2 + 8), integrals(multiprocessors * 64)),
        "selective-scan": (("occupancy",), scanned(128, 128, 4), scanned(16, 64, 2)),
        "bias-sums": (("atomic-contention",), column_sums(1), column_sums(128)),
        "lock": (("compare-and-swap", "atomic-contention"), skinny(True), skinny(False)),
        "gating": (("more-threads",), gated(1, 4), gated(128, 4)),
        "logits": (("small-launch",), scaled_logits(1 << 14), scaled_logits(1 << 26)),
        "int4-floats": (("type-conversion",), nibbles(True), nibbles(False)),
    }
