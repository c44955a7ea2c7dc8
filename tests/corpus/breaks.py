"""Deliberate breaks of reference kernels: what is changed, and which words and lines name the cause.

A line is given by a part of its text; several are separated by `|`. No line is at fault for an option that concerns the
whole kernel.
"""

from __future__ import annotations

from typing import NamedTuple


class Break(NamedTuple):
    """One change of a reference kernel that makes it worse."""

    kernel: str
    change: str
    """`OLD => NEW` in the source, `NAME:TYPE` of an argument, or `NAME=VALUE` of an option or constant."""
    words: str
    """Regular expression for the cause in the first line of `check`."""
    lines: str = ""
    """Parts of the source lines that may be named; empty if no line is at fault."""


WIDE, LOST = r"bit operands|matrix unit|instead of|wider", r"matrix unit|multiply-add"
NARROW, STORES = r"narrow|B per thread|bits wide", r"stores.*narrow|narrow.*stores|B per thread"
PIPELINE = r"pipeline|drains|in flight|pipelined"
SPILLS = r"spill"
RESOURCE = r"spill|blocks per|registers|share of warps"
EXCHANGE = r"reduction|conversion|barrier|scan"
X, W, DOT, LOOP = "x = tl.load(", "w = tl.load(", "tl.dot(", "for k in"
BREAKS = (
    Break("fused_linear", "x_ptr:*fp32:16 w_ptr:*fp32:16", WIDE, DOT),
    Break("fused_linear", "tl.dot(x, w, acc=z) => tl.dot(x.to(tl.float32), w.to(tl.float32), acc=z)", WIDE, DOT),
    Break(
        "fused_linear",
        "tl.dot(x, w, acc=z) => tl.dot(x.to(tl.float32), w.to(tl.float32), acc=z, input_precision='ieee')",
        LOST,
        DOT,
    ),
    Break("fused_linear", "num_stages=1", PIPELINE, f"{LOOP}|{X}|{W}|{DOT}"),
    Break("fused_linear", "num_stages=2", PIPELINE, f"{LOOP}|{X}|{W}|{DOT}"),
    Break("fused_linear", "N:i32", NARROW, f"{W}|store|b_ptr"),
    Break("fused_linear", "K:i32", NARROW, X),
    Break("fused_linear", "x_ptr:*fp16", NARROW, X),
    Break("fused_linear", "w_ptr:*fp16", NARROW, W),
    Break("fused_linear", "y_ptr:*fp16", STORES, "store"),
    Break("fused_linear", "(offs_n < N), other => (offs_n < N - 1), other", NARROW, W),
    Break("fused_linear", "w_ptr + w_k * N + offs_n, => w_ptr + w_k * N + offs_n * 2,", NARROW, W),
    Break("fused_linear", "maxnreg=32", SPILLS),
    Break("fused_linear", "BLOCK_M=256 BLOCK_N=256", RESOURCE),
    Break("fused_linear", "acc=z) => acc=z) + tl.sum(x.to(tl.float32), axis=1)[:, None]", EXCHANGE, "tl.sum"),
    Break("fused_linear", "acc=z) => acc=z); tl.debug_barrier()", EXCHANGE, "debug_barrier|" + LOOP),
    Break("flash_attention", "tl.dot(p.to(v.dtype), v) => tl.dot(p, v.to(tl.float32))", WIDE, DOT),
    Break("flash_attention", "stride_seq:i32", NARROW, "tl.load(|k_ptr|v_ptr|store"),
    Break("flash_attention", "num_stages=1", PIPELINE, "for start_n|tl.load(|k_ptr|v_ptr|" + DOT),
    Break("flash_attention", "maxnreg=32", SPILLS),
    Break("flash_attention", "k_ptr:*fp16", NARROW, "k = tl.load(|k_ptr"),
    Break("flash_attention", "v_ptr:*fp16", NARROW, "v = tl.load(|v_ptr"),
    Break("flash_attention", "o_ptr:*fp16", STORES, "store"),
    Break("softmax", "x_ptr:*fp16", NARROW, X),
    Break("softmax", "stride_x:i32", NARROW, X),
    Break("softmax", "y_ptr:*fp16", STORES, "store"),
    Break("softmax", "row * stride_x + cols => row * stride_x + cols * 2", NARROW, X),
    Break("softmax", "row * stride_y + cols => row * stride_y + cols * 3", STORES, "store"),
    Break("softmax", "BLOCK_SIZE=32768", RESOURCE),
    Break("layer_norm", "weight_ptr:*fp16", NARROW, "weight = tl.load("),
    Break("layer_norm", "bias_ptr + cols => bias_ptr + cols * 2", NARROW, "bias = tl.load("),
    Break("layer_norm", "y_ptr:*fp16", STORES, "store"),
    Break("layer_norm", "stride:i32", NARROW, X + "|store"),
    Break("gemv_splitk", "stride_bk:i32", NARROW, "b = tl.load("),
    Break("gemv_splitk", "b_ptr:*fp16", NARROW, "b = tl.load("),
    Break("matmul_splitk", "N:i32", NARROW, "b = tl.load("),
    Break("matmul_splitk", "a_ptr:*fp32:16 b_ptr:*fp32:16", WIDE, DOT),
    Break("matmul_splitk", "num_stages=1", PIPELINE, "for k in|tl.load(|" + DOT),
    Break("matmul_splitk", "maxnreg=64", SPILLS),
    Break("linear_scan", "x_ptr:*fp32", NARROW, X),
)
