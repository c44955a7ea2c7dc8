"""How the kernels of `blind.py` are compiled and launched; the first entry is what the first sentence should name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pairs import Variant

FILE = Path(__file__).with_name("blind.py")


def kernel(
    name: str,
    arguments: dict[str, tuple[Any, ...] | int | float],
    constants: dict[str, Any],
    grid: list[int],
    **options: Any,
) -> Variant:
    """A variant whose signature follows from its arguments: tensors are (dtype, *shape), 16-byte aligned."""
    types, values = [], {}
    for argument, value in arguments.items():
        if isinstance(value, tuple):
            types.append(f"*{value[0]}:16")
            values[argument] = {"dtype": value[0], "shape": list(value[1:])}
        else:
            types.append("fp32" if isinstance(value, float) else "i32:16" if value % 16 == 0 else "i32")
            values[argument] = value
    return Variant(name, ",".join(types), constants, [*grid, 1, 1][:3], values, options)


K, N, T = 4096, 11008, 8192
_GEMV = {"x_ptr": ("fp16", K), "qw_ptr": ("i32", N, K // 8), "scale_ptr": ("fp16", N, K // 128), "y_ptr": ("fp16", N),
         "K": K, "N": N}  # fmt: skip
_SKINNY = {"x_ptr": ("fp16", 16, 16384), "w_ptr": ("fp16", 16384, 4096), "out_ptr": ("fp32", 16, 4096), "M": 16, "N": 4096,
           "K": 16384, "stride_xm": 16384, "stride_wk": 4096, "stride_om": 4096}  # fmt: skip
_CONV = {"x_ptr": ("bf16", T, 2048), "w_ptr": ("bf16", 2048, 4), "y_ptr": ("bf16", T, 2048), "T": T, "C": 2048}
_ROPE = {
    "q_ptr": ("bf16", T, 32, 128),
    "cos_ptr": ("fp32", T, 64),
    "sin_ptr": ("fp32", T, 64),
    "T": T,
    "stride_t": 4096,
}
_LOSS = {"logits_ptr": ("fp16", 4096, 128256), "label_ptr": ("i32", 4096), "loss_ptr": ("fp32", 4096), "stride": 128256,
         "V": 128256}  # fmt: skip
_NORM = {
    "x_ptr": ("fp16", 32, 4096, 320),
    "w_ptr": ("fp32", 320),
    "y_ptr": ("fp16", 32, 4096, 320),
    "HW": 4096,
    "C": 320,
}
_BAG = {"idx_ptr": ("i32", 16384, 32), "table_ptr": ("fp16", 1 << 20, 128), "out_ptr": ("fp16", 16384, 128)}
_PAGED = {"q_ptr": ("fp16", 64, 8, 16, 128), "k_ptr": ("fp16", 8192, 8, 64, 128), "v_ptr": ("fp16", 8192, 8, 64, 128),
          "table_ptr": ("i32", 64, 128), "o_ptr": ("fp16", 64, 8, 16, 128), "seq_len": 4096, "scale": 0.088,
          "stride_page": 8 * 64 * 128, "MAX_PAGES": 128}  # fmt: skip
_MLP = {"x_ptr": ("fp32", 2048, 2048), "w1_ptr": ("fp32", 2048, 8192), "w3_ptr": ("fp32", 2048, 8192),
        "h_ptr": ("fp32", 2048, 8192), "M": 2048, "N": 8192, "K": 2048}  # fmt: skip
_BMM = {"a_ptr": ("fp16", 16, 2048, 2048), "b_ptr": ("fp16", 16, 2048, 2048), "c_ptr": ("fp16", 16, 2048, 2048), "M": 2048,
        "N": 2048, "K": 2048}  # fmt: skip
_STEP = {"p_ptr": ("fp32", 1 << 26), "m_ptr": ("fp32", 1 << 26), "g_ptr": ("fp32", 1 << 26), "n": 1 << 26, "lr": 0.1}
_PACK = {"x_ptr": ("fp32", 1 << 26), "y_ptr": ("fp32", 1 << 26), "D1": 100, "D2": 60, "D3": 48, "s0": 288000, "s1": 2880,
         "s2": 48, "s3": 1}  # fmt: skip


def pixels(planes: bool) -> Variant:
    n = 1 << 24
    arguments = {"x_ptr": ("fp32", 4 * n), "y_ptr": ("fp32", n), "n": n}
    return kernel("interleaved_gelu", arguments, {"BLOCK": 1024, "PLANES": planes}, [n // 1024])


def batched(m: int, n: int, k: int, warps: int, stages: int) -> Variant:
    constants = {"BLOCK_M": m, "BLOCK_N": n, "BLOCK_K": k}
    return kernel("bmm", _BMM, constants, [2048 // m, 2048 // n, 16], num_warps=warps, num_stages=stages)


def packed(wide: bool) -> Variant:
    constants = {"TRIPS": 8, "BLOCK": 1024, "WIDE": wide}
    return kernel("strided_copy_4d", _PACK, constants, [8000])


_TILE = {"BLOCK_M": 16, "BLOCK_N": 128, "BLOCK_K": 128}
_SQUARE = {"BLOCK_M": 128, "BLOCK_N": 64, "BLOCK_K": 32}

PAIRS: dict[str, tuple[tuple[str, ...], Variant, Variant]] = {
    "gemv-w4": (
        ("redundant-load",),
        kernel("gemv_w4", _GEMV, {"GROUP": 128, "BLOCK_N": 16, "BLOCK_K": 128}, [N // 16]),
        kernel("gemv_w4_words", _GEMV, {"GROUP": 128, "BLOCK_N": 16, "BLOCK_K": 128}, [N // 16]),
    ),
    "skinny": (
        ("idle-sms",),
        kernel("linear_skinny", _SKINNY, {**_TILE, "SPLIT": 1}, [32], num_warps=4, num_stages=4),
        kernel("linear_skinny", _SKINNY, {**_TILE, "SPLIT": 16}, [32, 16], num_warps=4, num_stages=4),
    ),
    "conv": (
        ("uncoalesced",),
        kernel("causal_conv1d", _CONV, {"WIDTH": 4, "BLOCK_T": 256}, [2048, T // 256]),
        kernel("causal_conv1d_channels", _CONV, {"WIDTH": 4, "BLOCK_T": 8, "BLOCK_C": 256}, [8, T // 8]),
    ),
    "rope": (
        ("invariant-load",),
        kernel("rope_heads", _ROPE, {"HEADS": 32, "HALF": 64, "KEEP": False}, [T], num_warps=1),
        kernel("rope_heads", _ROPE, {"HEADS": 32, "HALF": 64, "KEEP": True}, [T], num_warps=1),
    ),
    "cross-entropy": (
        ("reduction-per-trip",),
        kernel("cross_entropy_fwd", _LOSS, {"BLOCK": 1024}, [4096]),
        kernel("cross_entropy_fwd_lanes", _LOSS, {"BLOCK": 1024}, [4096]),
    ),
    "group-norm": (
        ("division",),
        kernel("group_norm_nhwc", {**_NORM, "cpg": 10, "eps": 1e-5}, {"BLOCK": 1024}, [32, 32]),
        kernel("group_norm_nhwc_tiled", {**_NORM, "eps": 1e-5}, {"ROWS": 64, "CPG": 32}, [32, 10]),
    ),
    "embedding": (
        ("dependent-loads",),
        kernel("embedding_bag", {**_BAG, "L": 32, "D": 128}, {"BLOCK_D": 128}, [16384], num_warps=1),
        kernel("embedding_bag_rows", {**_BAG, "D": 128}, {"LEN": 32, "BLOCK_D": 128}, [16384], num_warps=2),
    ),
    "paged": (
        ("wide-dot", "fp32-dot"),
        kernel("paged_decode", _PAGED, {"PAGE": 64, "D": 128, "QH": 16, "WIDE": True}, [64, 8]),
        kernel("paged_decode", _PAGED, {"PAGE": 64, "D": 128, "QH": 16, "WIDE": False}, [64, 8]),
    ),
    "cumsum": (
        ("more-threads",),
        kernel("cumsum_rows", {"x_ptr": ("fp32", 8192, 4096), "y_ptr": ("fp32", 8192, 4096), "cols": 4096}, {"BLOCK": 128},
               [8192], num_warps=16),
        kernel("cumsum_rows", {"x_ptr": ("fp32", 8192, 4096), "y_ptr": ("fp32", 8192, 4096), "cols": 4096}, {"BLOCK": 4096},
               [8192], num_warps=8),
    ),
    "histogram": (
        ("atomic-contention",),
        kernel("histogram_bins", {"x_ptr": ("i32", 1 << 24), "bins_ptr": ("i32", 16), "n": 1 << 24},
               {"BINS": 16, "BLOCK": 1024}, [1 << 14]),
        kernel("histogram_private", {"x_ptr": ("i32", 1 << 24), "parts_ptr": ("i32", 1 << 14, 16), "n": 1 << 24},
               {"BINS": 16, "BLOCK": 1024}, [1 << 14]),
    ),
    "transpose": (
        ("uncoalesced",),
        kernel("transpose_rows", {"x_ptr": ("fp32", 8192, 4096), "y_ptr": ("fp32", 4096, 8192), "R": 8192, "C": 4096},
               {"BLOCK": 512}, [8192, 8]),
        kernel("transpose_tiles", {"x_ptr": ("fp32", 8192, 4096), "y_ptr": ("fp32", 4096, 8192), "R": 8192, "C": 4096},
               {"TILE": 64}, [128, 64]),
    ),
    "top-k": (
        ("spills",),
        kernel("top_k_mask", {"x_ptr": ("bf16", 4096, 16384), "y_ptr": ("bf16", 4096, 16384), "cols": 16384},
               {"K": 8, "BLOCK": 16384}, [4096], num_warps=1),
        kernel("top_k_mask", {"x_ptr": ("bf16", 4096, 16384), "y_ptr": ("bf16", 4096, 16384), "cols": 16384},
               {"K": 8, "BLOCK": 16384}, [4096], num_warps=16),
    ),
    "swiglu": (
        ("fp32-dot",),
        kernel("swiglu_mlp", _MLP, {**_SQUARE, "PRECISION": "ieee"}, [16, 128], num_warps=8, num_stages=3),
        kernel("swiglu_mlp", _MLP, {**_SQUARE, "PRECISION": "tf32"}, [16, 128], num_warps=8, num_stages=3),
    ),
    "columns": (
        ("uncoalesced",),
        kernel("column_sums", {"x_ptr": ("fp32", 16384, 4096), "y_ptr": ("fp32", 4096), "M": 16384, "N": 4096},
               {"BLOCK_M": 256}, [4096]),
        kernel("column_sums_tiled", {"x_ptr": ("fp32", 16384, 4096), "y_ptr": ("fp32", 16, 4096), "M": 16384, "N": 4096},
               {"BLOCK_M": 16, "BLOCK_N": 128}, [32, 16]),
    ),
    "scatter": (
        ("compare-and-swap",),
        kernel("scatter_max", {"x_ptr": ("i32", 1 << 22), "slot_ptr": ("i32", 1 << 22), "out_ptr": ("i32", 1 << 16),
                               "n": 1 << 22}, {"BLOCK": 256}, [1 << 14]),
        kernel("scatter_max_native", {"x_ptr": ("i32", 1 << 22), "slot_ptr": ("i32", 1 << 22), "out_ptr": ("i32", 1 << 16),
                                      "n": 1 << 22}, {"BLOCK": 256}, [1 << 14]),
    ),
    "lists": (
        ("dependent-loads",),
        kernel("walk_lists", {"head_ptr": ("i32", 1 << 20), "next_ptr": ("i32", 1 << 24), "value_ptr": ("fp32", 1 << 24),
                              "out_ptr": ("fp32", 1 << 20)}, {"STEPS": 32, "BLOCK": 256}, [4096]),
        kernel("walk_arrays", {"value_ptr": ("fp32", 32, 1 << 20), "out_ptr": ("fp32", 1 << 20), "n": 1 << 20},
               {"STEPS": 32, "BLOCK": 256}, [4096]),
    ),
    "pack-64": (("int64",), packed(True), packed(False)),
    "bmm-drained": (("drained-pipeline", "serial-loop"), batched(128, 128, 32, 8, 1), batched(128, 128, 64, 8, 4)),
    "bmm-tile": (("small-tile",), batched(16, 16, 16, 1, 3), batched(128, 128, 64, 8, 4)),
    "barriers": (
        ("barrier-per-trip",),
        kernel("momentum_step", _STEP, {"TRIPS": 16, "BLOCK": 1024, "SYNC": True}, [4096]),
        kernel("momentum_step", _STEP, {"TRIPS": 16, "BLOCK": 1024, "SYNC": False}, [4096]),
    ),
    "pixels": (("uncoalesced",), pixels(False), pixels(True)),
}  # fmt: skip
