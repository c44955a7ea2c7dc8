"""40 breaks and 20 improvements of kernels that the program was not developed with, each with its cause, written beforehand.

Frozen: change the program, not this table. A change is that of `Kernel.request`; lines are parts of the source lines that
may be named, separated by `|`; empty if no line is at fault.
"""

from __future__ import annotations

from typing import NamedTuple


class Change(NamedTuple):
    """A kernel before and after."""

    kernel: str
    before: str
    after: str
    words: str = ""
    """Regular expression for the cause in the first line of `check`; empty for an improvement."""
    lines: str = ""
    target: str = "sm_80"


WIDE, LOST = r"bit operands|matrix unit|instead of", r"matrix unit|multiply-add"
NARROW, STORES = r"narrow|B per thread", r"stores are narrow|narrow.*stores|B per thread"
PIPELINE = r"pipeline|drains|in flight|pipelined"
RESOURCE = r"spill|blocks per|registers|share of warps"
EXCHANGE = r"reduction|conversion|barrier|scan"
X, DOT, LOOP = "x = tl.load(", "tl.dot(", "in range("
FP32_DOT = "tl.dot(x, w.to(tl.float16), acc) => tl.dot(x.to(tl.float32), w.to(tl.float32), acc"
MORE_SUM = "acc = tl.dot(a, b, acc) => acc = tl.dot(a, b, acc) + tl.sum(a.to(tl.float32), axis=1)[:, None]"
HOISTED = (
    "    h, d, p =",
    "        q = tl.load(q_ptr + batch * HEADS * DIM + h[:, None] * DIM + d[None, :])\n        s =",
)

BREAKS = (
    Change("causal_conv", "", "x_ptr:*fp16", NARROW, X),
    Change("causal_conv", "", "D:i32", NARROW, X + "|store|w = tl.load("),
    Change("causal_conv", "", "row[:, None] * D + d[None, :] => row[:, None] * D + d[None, :] * 2", NARROW, X),
    Change("causal_conv", "", "(d < D)[None, :], other => (d < D - 1)[None, :], other", NARROW, X, "gfx942"),
    Change("int8_gemm", "", "num_stages=1", PIPELINE, f"{LOOP}|tl.load(|{DOT}"),
    Change("int8_gemm", "", f"{FP32_DOT})", WIDE, DOT),
    Change("int8_gemm", "", f"{FP32_DOT}, input_precision='ieee')", LOST, DOT),
    Change("int8_gemm", "", "w_ptr:*i8", NARROW, "w = tl.load("),
    Change("int8_gemm", "", "BM=256 BN=256", RESOURCE),
    Change(
        "int8_gemm",
        "",
        "w = tl.load(w_at) => w = tl.load(w_at, volatile=True)",
        PIPELINE + "|volatile|cache",
        "w = tl.load(|in range(",
    ),
    Change("add_rms_norm", "", "BLOCK=32768 num_warps=4", RESOURCE),
    Change("add_rms_norm", "", "y_ptr:*fp16", STORES, "store"),
    Change("add_rms_norm", "", "stride:i32", NARROW, "tl.load(x_ptr|tl.load(r_ptr|store"),
    Change("add_rms_norm", "", "total = x + r => total = x + r; tl.debug_barrier()", EXCHANGE, "debug_barrier"),
    Change("online_loss", "", "logits_ptr:*fp16", NARROW, X),
    Change("online_loss", "", "BLOCK=256", NARROW, X),
    Change("online_loss", "", "stride:i32", NARROW, X, "sm_90"),
    Change("online_loss", "", "top = new => top = new; tl.debug_barrier()", EXCHANGE, "debug_barrier|" + LOOP),
    Change("paged_decode", "", "num_stages=1", PIPELINE, f"{LOOP}|tl.load(|{DOT}"),
    Change("paged_decode", "", "tl.dot(q, k) => tl.dot(q.to(tl.float32), k.to(tl.float32))", WIDE, DOT),
    Change("paged_decode", "", "k_ptr:*fp16", NARROW, "k = tl.load("),
    Change("paged_decode", "", "maxnreg=64", r"spill"),
    Change("bmm_nt", "", "a_ptr:*fp32:16 b_ptr:*fp32:16", WIDE, DOT),
    Change("bmm_nt", "", "num_warps=1", RESOURCE, "", "sm_90"),
    Change("bmm_nt", "", "K:i32", NARROW, "a = tl.load(|b = tl.load("),
    Change("bmm_nt", "", "num_stages=2", PIPELINE, f"{LOOP}|tl.load(|{DOT}"),
    Change("bmm_nt", "", MORE_SUM, EXCHANGE, "tl.sum"),
    Change("bmm_nt", "", "c_ptr:*fp16", STORES, "store", "gfx942"),
    Change("transpose", "", "x_ptr:*fp16", NARROW, X),
    Change("transpose", "", "M:i32", STORES, "store"),
    Change("embedding_bag", "", "emb_ptr:*fp16", NARROW, "emb_ptr", "gfx942"),
    Change("quantize_rows", "", "q_ptr:*i8", STORES, "store(q_ptr"),
    Change(
        "quantize_rows", "", "tl.abs(x), axis=0) => tl.abs(x), axis=0) + 0.0 * tl.sum(x)", EXCHANGE, "tl.sum|tl.max"
    ),
    Change("lora", "", "tl.dot(low.to(tl.float16), b) => tl.dot(low, b.to(tl.float32))", WIDE, DOT),
    Change("lora", "", "num_stages=1", PIPELINE, f"{LOOP}|tl.load(|{DOT}", "gfx942"),
    Change("decay_scan", "", "x_ptr:*fp32", NARROW, X),
    Change(
        "expert_gate",
        "",
        "tl.dot(x, w, acc) => tl.dot(x.to(tl.float32), w.to(tl.float32), acc, input_precision='tf32x3')",
        WIDE,
        DOT,
    ),
    Change("_rms_norm_forward_kernel", "", "X_row_stride:i32", NARROW, "X_row = tl.load("),
    Change("_swiglu_forward_kernel", "", "c_ptr:*bf16", STORES, "store"),
    Change("chunk_fwd_kernel_o", "", "num_stages=1", PIPELINE, f"{LOOP}|tl.load(|{DOT}"),
)

IMPROVEMENTS = (
    Change("int8_gemm", "num_stages=2", "num_stages=4"),
    Change(
        "bmm_nt", "tl.dot(a, b, acc) => tl.dot(a.to(tl.float32), b.to(tl.float32), acc, input_precision='tf32x3')", ""
    ),
    Change("online_loss", "BLOCK=256", "BLOCK=2048"),
    Change("causal_conv", "tl.program_id(0) => tl.program_id(0).to(tl.int64)", ""),
    Change("add_rms_norm", "total = x + r => total = x + r; tl.debug_barrier()", ""),
    Change("add_rms_norm", "/ n_cols => / n_cols + tl.sum(total, axis=0) * 0.0", ""),
    Change("paged_decode", "weight.to(tl.float16), v, acc => weight, v.to(tl.float32), acc", ""),
    Change("paged_decode", "        s = tl.dot( => " + HOISTED[1] + " tl.dot(", ""),
    Change("transpose", "BM=16 BN=16", "BM=64 BN=64"),
    Change("quantize_rows", "BLOCK=8192 num_warps=1", "BLOCK=8192 num_warps=8"),
    Change("embedding_bag", "mask=d < D, other => mask=d < D - 1, other", ""),
    Change("lora", "m[:, None] * K + k[None, :] => m[:, None] * K + k[None, :] * 2", "", target="gfx942"),
    Change("decay_scan", "y_ptr:*fp32", ""),
    Change("_rms_norm_forward_kernel", "W_ptr:*fp16", ""),
    Change("_swiglu_forward_kernel", "num_warps=2", ""),
    Change("chunk_fwd_kernel_o", "num_stages=1", "num_stages=3"),
    Change("bmm_nt", "num_stages=1", "num_stages=2", target="gfx942"),
    Change("int8_gemm", "w_ptr:*i8", "", target="gfx942"),
    Change("online_loss", "mask=cols < V, other => mask=cols < V, volatile=True, other", "", target="sm_90"),
    Change("expert_gate", "x_ptr:*bf16", "", target="sm_90"),
)

F32 = "a.to(tl.float32), b.to(tl.float32)"
SECOND_BREAKS = (
    Change("splitk_gemm", "", "num_stages=1", PIPELINE, f"{LOOP}|tl.load(|{DOT}"),
    Change("splitk_gemm", "", "a_ptr:*fp16", NARROW, "a = tl.load("),
    Change("splitk_gemm", "", f"acc += tl.dot(a, b) => acc += tl.dot({F32})", WIDE, DOT),
    Change("conv2d_gemm", "", "C:i32", NARROW, X),
    Change("conv2d_gemm", "", "BM=256 BN=128", RESOURCE),
    Change("moe_gather_gemm", "", "w_ptr:*bf16", NARROW, "tl.load(w_at)"),
    Change("moe_gather_gemm", "", "num_stages=2", PIPELINE, f"{LOOP}|{DOT}"),
    Change("moe_gather_gemm", "", "num_warps=2", r"mma\.sync|AI005|matrix", DOT, "sm_90"),
    Change("kv8_attention", "", "k_ptr:*i8", NARROW, "k = tl.load("),
    Change("kv8_attention", "", "tl.dot(q, k) => tl.dot(q.to(tl.float32), k.to(tl.float32))", WIDE, DOT),
    Change("kv8_attention", "", "num_stages=1", PIPELINE, f"{LOOP}|tl.load(|{DOT}"),
    Change("gemm_f32", "", "tl.dot(a, b, acc) => tl.dot(a, b, acc, input_precision='ieee')", LOST, DOT),
    Change("gemm_f32", "", "K:i32", NARROW, "a = tl.load(|b = tl.load("),
    Change("gemm_f32", "", "num_warps=2", RESOURCE),
    Change("sort_rows", "", "x_ptr:*fp32", NARROW, "tl.load(x_ptr"),
    Change("norm_backward", "", "cols:i32", NARROW, "tl.load("),
    Change(
        "norm_backward",
        "",
        "acc += tl.sum(dy * x, 0) => acc += tl.sum(dy * x, 0) + tl.max(x, 0)",
        EXCHANGE,
        "tl.sum|tl.max",
    ),
    Change("token_counts", "", "x_ptr:*i32", NARROW, "v = tl.load("),
    Change("nchw_to_nhwc_bias", "", "C:i32", STORES, "store", "gfx942"),
    Change("rotary", "", "at = s * H * HALF * 2 => at = s * H * HALF * 2 + 1", NARROW, "tl.load(x_ptr|store"),
)

SECOND_IMPROVEMENTS = (
    Change("gemm_f32", "num_warps=2", ""),
    Change("kv8_attention", "k_ptr:*i8", ""),
    Change("moe_gather_gemm", "num_stages=2", ""),
    Change("norm_backward", "acc += tl.sum(dy * x, 0) => acc += tl.sum(dy * x, 0) + tl.max(x, 0)", ""),
    Change("rotary", "at = s * H * HALF * 2 => at = s * H * HALF * 2 + 1", ""),
)
