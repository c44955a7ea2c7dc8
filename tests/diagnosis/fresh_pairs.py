"""How the kernels of `fresh.py` are compiled and launched; the first entry is what the first sentence should name."""

from __future__ import annotations

from pathlib import Path

from blind_pairs import kernel
from pairs import Variant

FILE = Path(__file__).with_name("fresh.py")
T = 8192
_ATTENTION = {
    "q_ptr": ("fp16", 32, 4096, 64), "k_ptr": ("fp16", 32, 4096, 64), "v_ptr": ("fp16", 32, 4096, 64),
    "o_ptr": ("fp16", 32, 4096, 64), "scale": 0.125, "T": 4096, "H": 32,
}  # fmt: skip
_ROPE = {"x_ptr": ("fp16", T, 24, 160), "cos_ptr": ("fp32", T, 80), "sin_ptr": ("fp32", T, 80), "y_ptr": ("fp16", T, 24, 160),
         "heads": 24, "half": 80}  # fmt: skip
_ROPE_ROWS = {"x_ptr": ("fp16", T, 32, 128), "cos_ptr": ("fp32", T, 64), "sin_ptr": ("fp32", T, 64),
              "y_ptr": ("fp16", T, 32, 128), "heads": 32, "half": 64}  # fmt: skip
_QUANT = {"q_ptr": ("i8", 4096, 16384), "s_ptr": ("fp32", 128, 16384), "z_ptr": ("fp32", 128, 16384),
          "y_ptr": ("fp16", 4096, 16384), "K": 4096, "N": 16384}  # fmt: skip
_INT8 = {"a_ptr": ("i8", 4096, 4096), "b_ptr": ("i8", 4096, 4096), "s_ptr": ("fp32", 4096), "c_ptr": ("fp16", 4096, 4096),
         "M": 4096, "N": 4096, "K": 4096}  # fmt: skip
_STENCIL = {
    "u_ptr": ("fp32", 8192, 8192),
    "f_ptr": ("fp32", 8192, 8192),
    "v_ptr": ("fp32", 8192, 8192),
    "H": 8192,
    "W": 8192,
}
_DROPOUT = {"x_ptr": ("fp32", 1 << 25), "m_ptr": ("i8", 1 << 25), "y_ptr": ("fp32", 1 << 25), "n1": 120, "n2": 72,
            "s0": 8640, "s1": 72, "s2": 1}  # fmt: skip
_SCAN = {"a_ptr": ("fp16", 16, 2048, 2048), "x_ptr": ("fp16", 16, 2048, 2048), "h_ptr": ("fp32", 16, 2048), "T": 2048,
         "C": 2048}  # fmt: skip
_LINEAR = {"q_ptr": ("fp32", 528, 2048, 64), "k_ptr": ("fp32", 528, 2048, 64), "v_ptr": ("fp32", 528, 2048, 64),
           "o_ptr": ("fp32", 528, 2048, 64), "T": 2048}  # fmt: skip
_POOL = {"x_ptr": ("i8", 4106 * 8202), "y_ptr": ("i8", 4096, 8192), "H": 4096, "W": 8192}
_TABLES = {"x_ptr": ("i8", 32768, 4096), "b_ptr": ("fp32", 4096), "s_ptr": ("fp32", 4096), "t_ptr": ("fp32", 4096),
           "y_ptr": ("i8", 32768, 4096)}  # fmt: skip


def layer_norm(lanes: bool) -> Variant:
    arguments = {"x_ptr": ("fp16", 2048, 32768), "w_ptr": ("fp16", 32768), "b_ptr": ("fp16", 32768),
                 "y_ptr": ("fp32", 2048 * 32768), "N": 32768, "eps": 1e-5}  # fmt: skip
    return kernel("layer_norm_wide", arguments, {"BLOCK": 1024, "LANES": lanes}, [2048], num_warps=4)


def attention(wide: bool, stages: int = 3) -> Variant:
    constants = {"D": 64, "BM": 128, "BN": 64, "WIDE": wide}
    return kernel("flash_forward", _ATTENTION, constants, [32, 32], num_warps=8 if wide else 4, num_stages=stages)


def experts(name: str) -> Variant:
    n = 1 << 22
    counts = 64 if name == "count_experts" else (n // 1024) * 64
    arguments = {"ids_ptr": ("i32", n), "count_ptr": ("i32", counts), "n": n}
    return kernel(name, arguments, {"E": 64, "BLOCK": 1024}, [n // 1024])


def pixels(tile: tuple[int, int, int], warps: int, stages: int) -> Variant:
    arguments = {"x_ptr": ("fp16", 50176, 512), "w_ptr": ("fp16", 512, 512), "y_ptr": ("fp16", 50176, 512), "P": 50176,
                 "CI": 512, "CO": 512}  # fmt: skip
    constants = dict(zip(("BP", "BC", "BK"), tile, strict=True))
    return kernel(
        "conv2d_1x1", arguments, constants, [50176 // tile[0], 512 // tile[1]], num_warps=warps, num_stages=stages
    )


def gradient(locked: bool) -> Variant:
    rows = 64 if locked else 16384
    arguments = {"dy_ptr": ("fp16", 16384, 2048), "db_ptr": ("fp32", rows, 2048), "lock_ptr": ("i32", 64), "N": 2048}
    return kernel("bias_gradient", arguments, {"BLOCK": 2048, "GROUPS": 64, "LOCKED": locked}, [16384])


def combine(is_sorted: bool) -> Variant:
    rows = {"w_ptr": ("fp32", 8192, 8), "x_ptr": ("fp16", 65536, 256), "y_ptr": ("fp16", 8192, 256), "D": 256}
    indices = {"ids_ptr": ("i32", 8192, 8), "slot_ptr": ("i32", 65536)}
    if is_sorted:
        return kernel("moe_combine_sorted", rows, {"K": 8, "BLOCK": 256}, [8192], num_warps=4)
    return kernel("moe_combine", {**indices, **rows}, {"K": 8, "BLOCK": 256}, [8192], num_warps=1)


def int8(columns: bool, wide: bool) -> Variant:
    constants = {"BM": 128, "BN": 128, "BK": 64, "COLUMNS": columns, "WIDE": wide}
    return kernel("int8_gemm", _INT8, constants, [32, 32], num_warps=8, num_stages=3)


def sparse(rows: int, warps: int) -> Variant:
    arguments = {"col_ptr": ("i32", 1 << 20, 16), "val_ptr": ("fp32", 1 << 20, 16), "x_ptr": ("fp32", 1 << 20),
                 "y_ptr": ("fp32", 1 << 20), "rows": 1 << 20}  # fmt: skip
    return kernel("spmv_ell", arguments, {"WIDTH": 16, "ROWS": rows}, [(1 << 20) // rows], num_warps=warps)


def stencil(down: bool) -> Variant:
    return kernel("jacobi", _STENCIL, {"BLOCK": 512, "DOWN": down}, [8190, 16])


def dropout(flat: bool) -> Variant:
    return kernel("mask_strided", _DROPOUT, {"TRIPS": 8, "BLOCK": 1024, "FLAT": flat}, [4000])


def tiles(count: int) -> Variant:
    rows = -(-count // 4) * 128
    arguments = {"a_ptr": ("fp16", rows, 8192), "b_ptr": ("fp16", 8192, 1024), "c_ptr": ("fp16", rows, 1024), "N": 1024,
                 "K": 8192, "tiles_n": 4}  # fmt: skip
    constants = {"BM": 128, "BN": 256, "BK": 64}
    return kernel("grouped_gemm", arguments, constants, [count], num_warps=8, num_stages=3)


def averages(warps: int) -> Variant:
    arguments = {"x_ptr": ("fp32", 4096, 32768), "y_ptr": ("fp32", 64, 32768), "T": 4096, "C": 32768}
    return kernel("ema_rows", arguments, {"BT": 64, "BC": 64}, [512], num_warps=warps)


def streamed(rows: int, warps: int) -> Variant:
    arguments = {"a_ptr": ("fp32", 2112, 32768), "b_ptr": ("fp32", 2112, 32768), "y_ptr": ("fp32", 2112), "N": 32768}
    return kernel("stream_dot", arguments, {"BLOCK": 128, "ROWS": rows}, [2112], num_warps=warps)


def tables(again: bool) -> Variant:
    return kernel("bias_gelu_rows", _TABLES, {"ROWS": 16, "N": 4096, "AGAIN": again}, [2048], num_warps=8)


def pooled(padded: bool) -> Variant:
    return kernel("pool_rows", _POOL, {"BLOCK": 512, "TAPS": 5, "PADDED": padded}, [4096, 16])


def decoded(dtype: str) -> Variant:
    arguments = {"k_ptr": (dtype, 64, 16384, 128), "q_ptr": ("fp16", 64, 128), "o_ptr": ("fp32", 64, 16384), "T": 16384}
    return kernel("decode_fp8", arguments, {"D": 128, "BT": 32}, [64, 16])


def norm(rows: int) -> Variant:
    arguments = {
        "x_ptr": ("fp16", rows, 2048),
        "w_ptr": ("fp16", 2048),
        "y_ptr": ("fp16", rows, 2048),
        "N": 2048,
        "eps": 1e-6,
    }
    return kernel("rms_norm", arguments, {"BLOCK": 2048}, [rows])


def greedy(parts: int, rows: int) -> Variant:
    arguments = {"logits_ptr": ("fp16", rows, 131072), "best_ptr": ("fp32", rows, parts), "at_ptr": ("i32", rows, parts),
                 "V": 131072}  # fmt: skip
    return kernel("greedy_token", arguments, {"PART": 131072 // parts, "BLOCK": 1024}, [rows, parts])


def chunks(precision: str) -> Variant:
    return kernel("linear_attention", _LINEAR, {"D": 64, "BT": 64, "PRECISION": precision}, [528], num_warps=4)


def turned(turn: bool) -> Variant:
    arguments = {"x_ptr": ("fp32", 65536, 1024), "y_ptr": ("fp32", 65536, 64), "R": 65536, "C": 1024}
    return kernel("softmax_columns", arguments, {"BR": 64, "BC": 64, "TURN": turn}, [1024])


def pairs_on(multiprocessors: int) -> dict[str, tuple[tuple[str, ...], Variant, Variant]]:
    """The pairs; one has a CTA more than the GPU has multiprocessors."""
    return {
        "layer-norm": (("reduction-per-trip",), layer_norm(False), layer_norm(True)),
        "attention-fp32": (("wide-dot",), attention(True), attention(False)),
        "attention-serial": (("serial-loop", "drained-pipeline"), attention(False, 1), attention(False)),
        "rope-flat": (
            ("division",),
            kernel("rope_flat", _ROPE, {"TRIPS": 8, "BLOCK": 512}, [T * 24 * 80 // 4096]),
            kernel("rope_rows", _ROPE_ROWS, {"HEADS": 32, "HALF": 64}, [T]),
        ),
        "dequantize": (
            ("redundant-load",),
            kernel("dequantize_groups", _QUANT, {"BK": 32, "BN": 128, "GROUP": 32}, [128]),
            kernel("dequantize_group", _QUANT, {"BK": 32, "BN": 128, "GROUP": 32}, [128]),
        ),
        "scan": (
            ("serial-loop",),
            kernel("linear_scan", _SCAN, {"BLOCK": 128, "STAGES": 1}, [16, 16]),
            kernel("linear_scan", _SCAN, {"BLOCK": 128, "STAGES": 5}, [16, 16]),
        ),
        "experts": (("atomic-contention",), experts("count_experts"), experts("count_experts_blocks")),
        "conv-tile": (("small-tile",), pixels((16, 16, 16), 1, 3), pixels((128, 128, 64), 8, 3)),
        "lock": (("compare-and-swap", "atomic-contention"), gradient(True), gradient(False)),
        "moe": (("dependent-loads",), combine(False), combine(True)),
        "int8-rows": (("bank-conflicts", "layout-conversion"), int8(False, False), int8(True, False)),
        "int8-wide": (("wide-dot", "type-conversion"), int8(True, True), int8(True, False)),
        "spmv": (("more-threads",), sparse(4, 8), sparse(64, 4)),
        "stencil": (("uncoalesced",), stencil(True), stencil(False)),
        "dropout-64": (("int64", "division"), dropout(False), dropout(True)),
        "tail": (("tail-wave",), tiles(multiprocessors + 4), tiles(multiprocessors * 4)),
        "averages": (("spills",), averages(1), averages(8)),
        "occupancy": (("occupancy",), streamed(64, 4), streamed(8, 4)),
        "tables": (("invariant-load",), tables(True), tables(False)),
        "pool": (("masks",), pooled(False), pooled(True)),
        "fp8": (("type-conversion",), decoded("fp8e5"), decoded("fp16")),
        "few-rows": (("small-launch",), norm(8), norm(32768)),
        "greedy": (("idle-sms",), greedy(1, 8), greedy(32, 64)),
        "linear-fp32": (("fp32-dot",), chunks("ieee"), chunks("tf32")),
        "transposed": (("layout-conversion",), turned(True), turned(False)),
    }


_N = 1 << 26
CLEAN: dict[str, Variant] = {
    # nothing stands out
    "add": kernel("add", {"x_ptr": ("fp32", _N), "y_ptr": ("fp32", _N), "z_ptr": ("fp32", _N), "n": _N}, {"BLOCK": 1024},
                  [_N // 1024]),
    "softmax": kernel("softmax", {"x_ptr": ("fp16", 32768, 4096), "y_ptr": ("fp16", 32768, 4096), "N": 4096}, {"BLOCK": 4096},
                      [32768], num_warps=8),
    "transpose": kernel("transpose", {"x_ptr": ("fp32", 8192, 8192), "y_ptr": ("fp32", 8192, 8192), "R": 8192, "C": 8192},
                        {"B": 64}, [128, 128], num_warps=8),
    "swiglu": kernel("swiglu_gate", {"g_ptr": ("fp16", 8192, 11264), "u_ptr": ("fp16", 8192, 11264),
                                     "y_ptr": ("fp16", 8192, 11264), "N": 11264}, {"BLOCK": 1024}, [8192]),
    "rms-norm": kernel("rms_norm", {"x_ptr": ("fp16", 32768, 4096), "w_ptr": ("fp16", 4096), "y_ptr": ("fp16", 32768, 4096),
                                    "N": 4096, "eps": 1e-6}, {"BLOCK": 4096}, [32768], num_warps=8),
    "conv": pixels((128, 128, 64), 8, 4),
}  # fmt: skip
