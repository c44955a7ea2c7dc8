"""Twelve pairs of kernels of public packages that nothing else here uses, each with its decisive fact.

The expectations were written from PTX, AMDGCN and the registers of cubins, before the program was run on them. Frozen:
change the program, not this table. The words are those of `test_decisive.describe` (`does worse`: it does not fit).
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from unseen_comparisons import Pair
from unseen_requests import Kernel


class PublicKernel(NamedTuple):
    """A kernel in a file of a wheel, with the types and constants of its wrapper."""

    wheel: str
    """`name==version`."""
    file: str
    signature: str
    constants: str
    options: str

    def unpacked(self, packages: Path) -> Kernel:
        """The kernel with its file."""
        return Kernel(packages / self.file, self.signature, self.constants, self.options)


def _lightning(signature: str, constants: str, options: str) -> PublicKernel:
    file = "lightning_attn/ops/triton/lightning_attn2.py"
    return PublicKernel("lightning-attn==0.0.5", file, signature, constants, options)


def _kmeans(file: str, signature: str, constants: str, options: str) -> PublicKernel:
    return PublicKernel("flash-kmeans==0.3.1", f"flash_kmeans/{file}.py", signature, constants, options)


def _moe(file: str, signature: str, constants: str, options: str) -> PublicKernel:
    return PublicKernel("moe-ops==0.1.0", f"moe_ops/{file}.py", signature, constants, options)


def _mlstm(file: str, signature: str, constants: str, options: str) -> PublicKernel:
    return PublicKernel("mlstm-kernels==2.0.6", f"mlstm_kernels/triton/{file}.py", signature, constants, options)


FOURTH_KERNELS = {
    "_euclid_assign_kernel": _kmeans(
        "assign_euclid_triton",
        "x_ptr:*fp16:16 c_ptr:*fp16:16 x_sq_ptr:*fp32:16 c_sq_ptr:*fp32:16 out_ptr:*i32:16",
        "B=1 N=65536 K=1024 D=128 stride_x_b=8388608 stride_x_n=128 stride_x_d=1 stride_c_b=131072 stride_c_k=128 "
        "stride_c_d=1 stride_xsq_b=65536 stride_xsq_n=1 stride_csq_b=1024 stride_csq_k=1 stride_out_b=65536 "
        "stride_out_n=1 BLOCK_N=128 BLOCK_K=64 D_PAD=128",
        "num_warps=4 num_stages=2",
    ),
    "_centroid_update_chunk_kernel": _kmeans(
        "centroid_update_triton",
        "x_ptr:*fp16:16 sorted_idx_ptr:*i32:16 sorted_cluster_ptr:*i32:16 sum_ptr:*fp32:16 count_ptr:*i32:16 "
        "stride_x_b:i32:16 stride_x_n:i32:16 stride_x_d:i32:1 stride_idx_b:i32:16 stride_idx_n:i32:1 "
        "stride_cluster_b:i32:16 stride_cluster_n:i32:1 stride_sum_b:i32:16 stride_sum_k:i32:16 stride_sum_d:i32:1 "
        "stride_count_b:i32:16 stride_count_k:i32:1",
        "B=1 N=65536 D=128 K=1024 BLOCK_N=256 D_PAD=128",
        "num_warps=4 num_stages=3",
    ),
    "gmm_forward_kernel": _moe(
        "grouped_gemm_ops",
        "a_ptr:*bf16:16 b_ptr:*bf16:16 c_ptr:*bf16:16 offsets:*i32:16",
        "N=2048 K=2048 lda=2048 ldc=2048 BLOCK_SIZE_M=64 BLOCK_SIZE_N=128 BLOCK_SIZE_K=64 TRANS_B=False "
        "BLOCK_DTYPE=tl.bfloat16",
        "num_warps=4 num_stages=4",
    ),
    "_fused_topk_softmax_fwd_kernel_2d": _moe(
        "fused_topk_softmax_ops",
        "logits_ptr:*fp32:16 weights_ptr:*fp32:16 indices_ptr:*i32:16 num_tokens:i32:16 E:i32:16",
        "K=4 BLOCK_M=64 BLOCK_E=64 BLOCK_K=4",
        "num_warps=4 num_stages=3",
    ),
    "_fwd_kernel": _lightning(
        "Q:*bf16:16 K:*bf16:16 V:*bf16:16 Out:*bf16:16 S:*fp32:16",
        "b=2 h=16 n=4096 d=128 e=128 BLOCK=64 NUM_BLOCK=64 BLOCK_MODEL=32",
        "num_warps=4 num_stages=3",
    ),
    "_bwd_inter_kernel": _lightning(
        "Q:*bf16:16 K:*bf16:16 V:*bf16:16 S:*fp32:16 DO:*bf16:16 DQ:*bf16:16 DK:*bf16:16 DV:*bf16:16",
        "b=2 h=16 n=4096 d=64 e=64 BLOCK=64 NUM_BLOCK=64 CBLOCK=32 NUM_CBLOCK=2",
        "num_warps=4 num_stages=3",
    ),
    "_bwd_intra_kernel": _lightning(
        "Q:*bf16:16 K:*bf16:16 V:*bf16:16 S:*fp32:16 DO:*bf16:16 DQ:*bf16:16 DK:*bf16:16 DV:*bf16:16",
        "b=2 h=16 n=4096 d=64 e=64 BLOCK=64 NUM_BLOCK=64 CBLOCK=32 NUM_CBLOCK=2",
        "num_warps=4 num_stages=3",
    ),
    "_fwd_entmax": PublicKernel(
        "adasplash==0.2.2",
        "adasplash/triton_entmax.py",
        "X:*fp32:16 Y:*fp32:16 ALPHA:fp32",
        "N_ITER=3 SIZE_N=32768 FAST_MATH=True BLOCK_N=1024",
        "num_warps=4 num_stages=3",
    ),
    "srms_norm_fw": PublicKernel(
        "lightning-attn==0.0.5",
        "lightning_attn/ops/triton/srmsnorm.py",
        "X:*bf16:16 Y:*bf16:16 V:*fp32:16 stride:i32:16 N:i32:16 eps:fp32",
        "BLOCK_SIZE_N=4096",
        "num_warps=16 num_stages=3",
    ),
    "mlstm_chunkwise__parallel_fw_Hintra_kernel": _mlstm(
        "chunkwise/xl_chunk/fw_kernel_parallel",
        "matQ:*bf16:16 matK:*bf16:16 matV:*bf16:16 matC_states:*fp32:16 vecN_states:*fp32:16 scaMinter_states:*fp32:16 "
        "vecI:*fp32:16 vecB:*fp32:16 matHout:*bf16:16 vecNout:*fp32:16 vecMout:*fp32:16",
        "qk_scale=0.088 str_matQK_B_NH=524288 str_matQK_S=128 str_matQK_DHQK=1 str_matHV_B_NH=1048576 str_matHV_S=256 "
        "str_matHV_DHHV=1 str_matCstates_B_NH=1081344 str_matCstates_NCDHQK=256 str_matCstates_DHHV=1 "
        "str_vecNstates_B_NH=4224 str_vecNstates_NCDHQK=1 str_scaMinterstates_B_NH=33 str_vecBI_B_NH=4096 "
        "str_vecBI_NC=128 str_vecBI_L=1 str_vecMN_B_NH=4096 str_vecMN_S=1 B=1 NH=8 S=4096 DHQK=128 DHHV=256 NC=32 "
        "L=128 siz_b_LQ=64 siz_b_LKV=32 siz_b_DHQK=64 siz_b_DHHV=128 DTYPE=tl.bfloat16 OUTPUT_DTYPE=tl.bfloat16 EPS=0.000001 "
        "MINIMUM_MAX_VAL=-10.0",
        "num_warps=4 num_stages=2",
    ),
    "mlstm_chunkwise__recurrent_fw_C_kernel": _mlstm(
        "chunkwise/xl_chunk/fw_kernel_recurrent",
        "matK:*bf16:16 matV:*bf16:16 vecF:*fp32:16 vecI:*fp32:16 matC_initial:*fp32:16 vecN_initial:*fp32:16 "
        "scaMinter_initial:*fp32:16 matC_states:*fp32:16 vecN_states:*fp32:16 scaMinter_states:*fp32:16",
        "str_matK_B_NH=524288 str_matK_S=128 str_matK_DHQK=1 str_matV_B_NH=1048576 str_matV_S=256 str_matV_DHHV=1 "
        "str_vecFI_B_NH=4096 str_matCstates_B_NH=1081344 str_matCstates_NCDHQK=256 str_matCstates_DHHV=1 "
        "str_vecNstates_B_NH=4224 str_vecNstates_NCDHQK=1 str_scaMinterstates_B_NH=33 str_scaMinterstates_NC=1 "
        "str_matCinitial_B_NH=0 str_matCinitial_DHQK=0 str_matCinitial_DHHV=0 str_vecNinitial_B_NH=0 "
        "str_vecNinitial_DHQK=0 str_scaMinterinitial_B_NH=0 B=1 NH=8 S=4096 DHQK=128 DHHV=256 NC=32 L=128 "
        "siz_b_DHQK=64 siz_b_DHHV=64 save_states_every_nth_chunk=1 USE_INITIAL_STATE=False DTYPE=tl.bfloat16",
        "num_warps=4 num_stages=1",
    ),
    "recurrent_step_fw_kernel": _mlstm(
        "recurrent/fw_step_fused",
        "matC_old:*fp32:16 vecN_old:*fp32:16 scaM_old:*fp32:16 vecQ:*bf16:16 vecK:*bf16:16 vecV:*bf16:16 "
        "scaI:*fp32:16 scaF:*fp32:16 vecH:*bf16:16 matC_new:*fp32:16 vecN_new:*fp32:16 scaM_new:*fp32:16",
        "qk_scale=0.088 str_matC_B_NH=32768 str_matC_DHQK=256 str_matC_DHHV=1 str_vecN_B_NH=128 str_vecN_DHQK=1 "
        "str_scaM_B_NH=1 str_vecQK_NH=128 str_vecQK_DHQK=1 str_vecVH_B_NH=256 str_vecVH_DHHV=1 str_scaIF_B_NH=1 B=1 "
        "NH=8 DHQK=128 DHHV=256 siz_b_DHQK=64 siz_b_DHHV=32 EPS=0.000001 DTYPE=tl.float32 DTYPE_STATE=tl.float32",
        "num_warps=4 num_stages=1",
    ),
}

A, M, H = "sm_80", "gfx942", "sm_90"
FOURTH_PAIRS = (
    Pair("_euclid_assign_kernel", A, M, "pipeline worse", "operands worse,matrix neutral"),  # cp.async → registers
    Pair("_centroid_update_chunk_kernel", A, M, "occupancy better", "none neutral,barriers better,exchange better"),
    Pair("_fwd_kernel", A, M, "does worse", "spills worse"),  # 72 KB of shared memory; 400 registers spill
    Pair(
        "mlstm_chunkwise__parallel_fw_Hintra_kernel",
        "3.6.0 sm_80",
        "3.6.0 gfx942",
        "pipeline worse",
        "operands worse,matrix neutral",
    ),
    Pair("gmm_forward_kernel", A, H, "matrix better"),
    Pair("_bwd_intra_kernel", A, H, "matrix better"),  # and 64 shared loads of 2 B
    Pair("mlstm_chunkwise__recurrent_fw_C_kernel", "3.6.0 sm_80", "3.6.0 sm_90", "matrix better"),
    Pair("_fwd_entmax", A, H, "none neutral"),  # the same PTX
    Pair("_bwd_inter_kernel", "3.4.0 sm_80", A, "spills better"),  # 1296 → 904 B
    Pair(
        "recurrent_step_fw_kernel",  # registers 56 → 64, barriers 10 → 8
        "3.2.0 sm_80",
        "3.6.0 sm_80",
        "occupancy worse",
        "barriers better,none neutral",
    ),
    Pair("srms_norm_fw", "3.2.0 gfx942", "3.6.0 gfx942", "none neutral", "exchange better"),  # shuffles by DPP
    Pair("_fused_topk_softmax_fwd_kernel_2d", "3.6.0 gfx942", M, "none neutral"),  # 81 → 80 registers
)
