"""36 pairs of kernels that the program was not developed with, each with its decisive fact, written from PTX and AMDGCN
before the program was run on them.

Frozen: change the program, not this table. The words are those of `test_decisive.describe`.
"""

from __future__ import annotations

from typing import NamedTuple


class Pair(NamedTuple):
    """One kernel, compiled twice."""

    kernel: str
    left: str
    """GPU, or release and GPU."""
    right: str
    decisive: str
    accepted: str = ""
    """Further right answers, separated by commas."""
    change: str = ""
    """That of both sides, as in `Kernel.request`."""


A, M, H, PIPELINE = "sm_80", "gfx942", "sm_90", "operands worse,matrix neutral"
PAIRS = (
    Pair("transpose", A, M, "exchange worse", "none neutral"),  # 4 vectors → 16 ds_read_u16
    Pair("_swiglu_forward_kernel", A, M, "none neutral", "occupancy better"),
    Pair("paged_decode", A, M, "pipeline worse", PIPELINE),  # cp.async → registers
    Pair("bmm_nt", A, M, "pipeline worse", PIPELINE),
    Pair("_rms_norm_forward_kernel", A, M, "none neutral", "occupancy better"),
    Pair("lora", A, M, "pipeline worse", PIPELINE),  # and 128 ds_read_u16
    Pair("online_loss", A, M, "access worse", "none neutral"),  # 16 → 8 B per thread
    Pair("causal_conv", A, M, "access better", "exchange better"),  # weights 2 → 16 B, no exchange
    Pair("embedding_bag", A, M, "access worse", "none neutral"),  # 16 → 8 B
    Pair("chunk_fwd_kernel_o", A, M, "pipeline worse", PIPELINE),
    Pair("int8_gemm", A, M, "pipeline worse", PIPELINE),
    Pair("add_rms_norm", A, M, "none neutral", "occupancy better"),
    Pair("decay_scan", A, M, "none neutral", "exchange better,barriers better"),
    Pair("quantize_rows", A, M, "none neutral", "occupancy better"),
    Pair("expert_gate", A, M, "pipeline worse", PIPELINE),
    Pair("bmm_nt", A, M, "matrix neutral", "none neutral", "num_stages=1"),
    Pair("online_loss", A, M, "none neutral", "", "BLOCK=256"),  # 2 B on both
    Pair("transpose", A, M, "access worse", "none neutral", "BM=16 BN=16"),  # 4 → 2 B
    Pair("int8_gemm", A, H, "matrix better"),
    Pair("expert_gate", A, H, "matrix better"),
    Pair("chunk_fwd_kernel_o", A, H, "matrix better"),
    Pair("lora", A, H, "matrix better"),
    Pair("bmm_nt", A, H, "matrix better"),
    Pair("paged_decode", A, H, "finding worse", "none neutral"),  # 16 heads: no wgmma
    Pair("online_loss", A, H, "none neutral"),
    Pair("transpose", A, H, "none neutral"),
    Pair("causal_conv", A, H, "exchange better", "none neutral"),  # shared loads 16 → 8
    Pair("bmm_nt", "3.4.0 gfx942", M, "occupancy better", "pipeline better"),  # 204 → 132 VGPR
    Pair("bmm_nt", "3.6.0 gfx942", M, "occupancy better", "pipeline better"),  # 260 → 132 VGPR
    Pair("lora", "3.6.0 gfx942", M, "occupancy better", "barriers better"),  # 116 → 96 VGPR
    Pair("transpose", "3.4.0 gfx942", M, "exchange worse", "operands worse"),  # 2 ds_read_b128 → 16 ds_read_u16
    Pair("paged_decode", "3.4.0 sm_90", H, "pipeline worse"),  # wait_group 2 → 0
    Pair("causal_conv", "3.4.0 sm_80", A, "exchange worse", "none neutral"),  # shared loads 4 → 16
    Pair("decay_scan", "3.6.0 sm_80", A, "barriers worse", "exchange better"),  # 5 → 6
    Pair("expert_gate", "3.4.0 sm_90", H, "barriers better", "exchange better"),  # 6 → 4
    Pair("online_loss", "3.6.0 gfx942", M, "barriers better", "exchange better"),  # 6 → 4
)

SECOND_PAIRS = (
    Pair("conv2d_gemm", A, M, "pipeline worse", "operands worse,matrix neutral"),
    Pair("moe_gather_gemm", A, M, "pipeline worse", "matrix neutral"),
    Pair("splitk_gemm", A, M, "pipeline worse", "matrix neutral"),
    Pair("kv8_attention", A, M, "pipeline worse", "operands worse,matrix neutral"),
    Pair("gemm_f32", A, M, "pipeline worse", "matrix neutral"),
    Pair("sort_rows", A, M, "barriers better", "exchange better,none neutral"),
    Pair("norm_backward", A, M, "barriers better", "exchange better,none neutral"),
    Pair("token_counts", A, M, "none neutral", "occupancy better"),
    Pair("nchw_to_nhwc_bias", A, M, "none neutral", "occupancy better"),
    Pair("rotary", A, M, "access worse", "none neutral"),
    Pair("chunk_gated_delta_rule_fwd_kernel_h_blockdim64", A, M, "pipeline worse", "operands worse,matrix neutral"),
    Pair("chunk_scaled_dot_kkt_fwd_kernel", A, M, "pipeline worse", "matrix neutral,barriers better"),
    Pair("parallel_based_fwd_kernel", A, M, "pipeline worse", "operands worse,matrix neutral"),
    Pair("merge_16x16_to_64x64_inverse_kernel", A, M, "matrix better"),
    Pair("fused_recurrent_fwd_kernel", A, M, "none neutral", "occupancy better"),
    Pair("_layer_norm_forward_kernel", A, M, "occupancy better", "none neutral"),
    Pair("_group_norm_forward_kernel", A, M, "none neutral", "occupancy better"),
    Pair("_dyt_fwd_kernel", A, M, "access worse", "none neutral"),
    Pair("conv2d_gemm", A, H, "matrix better"),
    Pair("kv8_attention", A, H, "matrix better"),
    Pair("gemm_f32", A, H, "matrix better"),
    Pair("parallel_based_fwd_kernel", A, H, "matrix better", "spills better"),
    Pair("chunk_gla_fwd_A_kernel_intra_sub_intra", A, H, "none neutral"),
    Pair("_group_norm_forward_kernel", A, H, "occupancy worse", "none neutral"),
    Pair("merge_16x16_to_64x64_inverse_kernel", A, H, "spills worse", "none neutral"),
    Pair("chunk_gated_delta_rule_fwd_kernel_h_blockdim64", A, H, "finding worse", "none neutral,exchange better"),
    Pair("rotary", A, H, "none neutral"),
    Pair("splitk_gemm", "3.4.0 sm_90", H, "barriers better", "exchange better,none neutral"),
    Pair("conv2d_gemm", "3.4.0 gfx942", M, "barriers better", "occupancy better,access better"),
    Pair("moe_gather_gemm", "3.6.0 sm_90", H, "barriers better", "none neutral"),
    Pair("kv8_attention", "3.6.0 sm_90", H, "access better"),
    Pair("kv8_attention", "3.6.0 gfx942", M, "none neutral"),
    Pair("norm_backward", "3.4.0 sm_80", A, "barriers worse", "exchange worse,occupancy worse"),
    Pair("gemm_f32", "3.6.0 gfx942", M, "barriers better", "pipeline better,in flight better,access better"),
    Pair("token_counts", "3.4.0 sm_80", A, "barriers worse", "exchange worse"),
    Pair("rotary", "3.4.0 gfx942", M, "none neutral", "access better"),
)
"""Frozen later, and compared after the mends that the first table led to."""

THIRD_PAIRS = (
    Pair("geglu_gemm", A, M, "pipeline worse", "operands worse,matrix neutral"),
    Pair("mla_decode", A, M, "operands worse", "pipeline worse,matrix neutral"),  # 256 ds_read_u16 beside 96 MFMA
    Pair("chunk_state", A, M, "pipeline worse", "operands worse,matrix neutral"),
    Pair("topk_router", A, M, "none neutral", "occupancy better,exchange better"),
    Pair(
        "cumsum_rows", A, M, "exchange better", "access worse,barriers better,none neutral"
    ),  # no conversion: 16 B of LDS
    Pair("group_quantize", A, M, "none neutral", "occupancy better"),
    Pair("gemv_rows", A, M, "none neutral", "occupancy better,exchange better"),
    Pair("gemm_tn", A, M, "pipeline worse", "operands worse,matrix neutral"),
    Pair("loss_backward", A, M, "none neutral", "occupancy better"),
    Pair("csr_sum", A, M, "none neutral", "barriers better,exchange better"),
    Pair("w8a8_gemm", A, M, "pipeline worse", "matrix neutral"),
    Pair("geglu_gemm", A, H, "matrix better"),
    Pair("mla_decode", A, H, "finding worse", "none neutral"),  # 16 heads: no wgmma
    Pair("chunk_state", A, H, "matrix better"),
    Pair("w8a8_gemm", A, H, "matrix better"),
    Pair("gemm_tn", A, H, "matrix better"),
    Pair("gemv_rows", A, H, "none neutral"),
    Pair("cumsum_rows", A, H, "none neutral"),
    Pair("topk_router", A, H, "none neutral"),
    Pair("geglu_gemm", "3.4.0 sm_90", H, "barriers better", "exchange better,access better,none neutral"),
    Pair("gemm_tn", "3.4.0 sm_90", H, "barriers better", "exchange better,none neutral"),
    Pair("chunk_state", "3.4.0 sm_90", H, "barriers better", "exchange better,access better,none neutral"),
    Pair("geglu_gemm", "3.6.0 gfx942", M, "barriers better", "none neutral"),  # 64 KB of LDS: one block with both
    Pair("csr_sum", "3.6.0 gfx942", M, "barriers worse", "exchange worse"),  # 5 → 10
    Pair("mla_decode", "3.6.0 gfx942", M, "occupancy worse"),  # 160 → 254 VGPR: 3 → 2 blocks
    Pair("gemv_rows", "3.2.0 gfx942", M, "occupancy better"),  # 98 → 78 VGPR
    Pair(
        "chunk_state", "3.2.0 gfx942", M, "operands better", "occupancy better,pipeline better"
    ),  # 144 → 48 ds_read_u16
    Pair(
        "topk_router", "3.4.0 sm_80", A, "exchange better", "barriers worse,none neutral"
    ),  # shared 72 → 24, barriers 21 → 23
    Pair("w8a8_gemm", "3.4.0 sm_80", A, "barriers better", "exchange better,access better,none neutral"),
    Pair("cumsum_rows", "3.4.0 sm_80", A, "barriers better", "exchange better"),  # 7 → 6 per iteration
)
"""Frozen before the first run, on kernels of their own file."""
