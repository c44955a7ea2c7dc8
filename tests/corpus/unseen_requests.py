"""How the kernels of the unseen comparisons are compiled: types, constants and options; a change of one as a request."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from artifact_inspector.compiling import KernelRequest
from artifact_inspector.compiling.ask.request import ConstantText

HERE = Path(__file__).parent
OPTIONS = ("num_warps", "num_stages", "maxnreg")


class Kernel(NamedTuple):
    """A kernel and how it is compiled."""

    source: Path
    signature: str
    constants: str
    options: str

    def request(self, name: str, changes: str, directory: Path) -> KernelRequest:
        """The request of the changed kernel, whose source is a copy in the directory.

        Args:
            changes: `OLD => NEW` in the source, `NAME:TYPE` of an argument, `NAME=VALUE` of a constant or option;
                several are separated by `;;`.
        """
        text = self.source.read_text(encoding="utf-8")
        types = dict(one.split(":", 1) for one in self.signature.split())
        constants, options = (dict(one.split("=") for one in words.split()) for words in (self.constants, self.options))
        for change in filter(None, changes.split(";;")):
            if " => " in change:
                old, new = change.split(" => ")
                assert old in text, change
                text = text.replace(old, new)
                continue
            for setting in change.split():
                key, _, value = setting.partition("=")
                if value:
                    assert key in constants or key in OPTIONS, change
                    (constants if key in constants else options)[key] = value
                else:
                    key, _, kind = setting.partition(":")
                    assert key in types, change
                    types[key] = kind
        directory.mkdir(parents=True)
        file = directory / f"{name}.py"
        file.write_text(text, encoding="utf-8")
        values = {
            key: {"True": True, "False": False, "None": None}.get(value, value) for key, value in constants.items()
        }
        typed = {key: ConstantText(value) if isinstance(value, str) else value for key, value in values.items()}
        return KernelRequest(f"{file}:{name}", types, typed, {key: int(value) for key, value in options.items()})


def _own(signature: str, constants: str, options: str) -> Kernel:
    return Kernel(HERE / "unseen_kernels.py", signature, constants, options)


def _third(signature: str, constants: str, options: str) -> Kernel:
    return Kernel(HERE / "third_kernels.py", signature, constants, options)


def _library(package: str, path: str, signature: str, constants: str, options: str) -> Kernel:
    spec = find_spec(package)
    assert spec is not None
    assert spec.submodule_search_locations
    return Kernel(Path(spec.submodule_search_locations[0]) / path, signature, constants, options)


KERNELS: Mapping[str, Kernel] = {
    "causal_conv": _own(
        "x_ptr:*fp16:16 w_ptr:*fp16:16 y_ptr:*fp16:16 T:i32:16 D:i32:16",
        "BLOCK_T=16 BLOCK_D=128 WIDTH=4",
        "num_warps=4",
    ),
    "int8_gemm": _own(
        "x_ptr:*fp16:16 w_ptr:*i8:16 s_ptr:*fp32:16 y_ptr:*fp16:16 M:i32:16 N:i32:16 K:i32:16",
        "BM=64 BN=128 BK=64",
        "num_warps=4 num_stages=3",
    ),
    "add_rms_norm": _own(
        "x_ptr:*fp16:16 r_ptr:*fp16:16 w_ptr:*fp16:16 y_ptr:*fp16:16 stride:i32:16 n_cols:i32:16 eps:fp32",
        "BLOCK=4096",
        "num_warps=8",
    ),
    "online_loss": _own(
        "logits_ptr:*fp16:16 label_ptr:*i64:16 loss_ptr:*fp32:16 stride:i32:16 V:i32:16", "BLOCK=2048", "num_warps=8"
    ),
    "paged_decode": _own(
        "q_ptr:*fp16:16 k_ptr:*fp16:16 v_ptr:*fp16:16 table_ptr:*i32:16 o_ptr:*fp16:16 length:i32:16 pages:i32:16 scale:fp32",
        "HEADS=16 DIM=128 PAGE=64",
        "num_warps=4 num_stages=3",
    ),
    "bmm_nt": _own(
        "a_ptr:*fp16:16 b_ptr:*fp16:16 c_ptr:*fp16:16 M:i32:16 N:i32:16 K:i32:16 sab:i32:16 sbb:i32:16 scb:i32:16",
        "BM=128 BN=128 BK=32",
        "num_warps=4 num_stages=4",
    ),
    "transpose": _own("x_ptr:*fp16:16 y_ptr:*fp16:16 M:i32:16 N:i32:16", "BM=64 BN=64", "num_warps=4"),
    "embedding_bag": _own(
        "emb_ptr:*fp16:16 index_ptr:*i32:16 offset_ptr:*i32:16 y_ptr:*fp16:16 D:i32:16", "BLOCK=1024", "num_warps=4"
    ),
    "quantize_rows": _own("x_ptr:*fp16:16 q_ptr:*i8:16 s_ptr:*fp32:16 n_cols:i32:16", "BLOCK=4096", "num_warps=4"),
    "lora": _own(
        "x_ptr:*fp16:16 a_ptr:*fp16:16 b_ptr:*fp16:16 y_ptr:*fp16:16 K:i32:16 N:i32:16",
        "BM=64 BN=128 BK=64 R=32",
        "num_warps=4 num_stages=3",
    ),
    "decay_scan": _own(
        "x_ptr:*fp32:16 g_ptr:*fp32:16 y_ptr:*fp32:16 T:i32:16 D:i32:16",
        "BLOCK_T=64 BLOCK_D=64",
        "num_warps=4 num_stages=3",
    ),
    "expert_gate": _own(
        "x_ptr:*bf16:16 w_ptr:*bf16:16 p_ptr:*fp32:16 D:i32:16",
        "BLOCK_M=64 BLOCK_D=64 EXPERTS=64",
        "num_warps=4 num_stages=4",
    ),
    "_rms_norm_forward_kernel": _library(
        "liger_kernel",
        "ops/rms_norm.py",
        "Y_ptr:*fp16:16 Y_row_stride:i32:16 X_ptr:*fp16:16 X_row_stride:i32:16 W_ptr:*fp16:16 W_row_stride:i32:16 "
        "RSTD_ptr:*fp32:16 RSTD_row_stride:i32 n_cols:i32:16 eps:fp32 offset:fp32",
        "casting_mode=0 elementwise_affine=True BLOCK_SIZE=4096",
        "num_warps=8",
    ),
    "_swiglu_forward_kernel": _library(
        "liger_kernel",
        "ops/swiglu.py",
        "a_ptr:*bf16:16 b_ptr:*bf16:16 c_ptr:*bf16:16 stride:i32:16 gate_multiplier:fp32",
        "n_cols=14336 BLOCK_SIZE=16384",
        "num_warps=16",
    ),
    "chunk_fwd_kernel_o": _library(
        "fla",
        "ops/common/chunk_o.py",
        "q:*bf16:16 k:*bf16:16 v:*bf16:16 h:*bf16:16 g:*fp32:16 o:*bf16:16 scale:fp32 T:i32",
        "g_gamma=None cu_seqlens=None chunk_indices=None H=16 HV=16 K=128 V=128 BT=64 BK=64 BV=64 USE_G=True "
        "USE_G_GAMMA=False STATE_V_FIRST=False IS_VARLEN=False",
        "num_warps=4 num_stages=3",
    ),
    "splitk_gemm": _own(
        "a_ptr:*fp16:16 b_ptr:*fp16:16 c_ptr:*fp32:16 M:i32:16 N:i32:16 K:i32:16",
        "BM=64 BN=64 BK=64 SPLIT=4",
        "num_warps=4 num_stages=4",
    ),
    "conv2d_gemm": _own(
        "x_ptr:*fp16:16 w_ptr:*fp16:16 y_ptr:*fp16:16 H:i32:16 W:i32:16 C:i32:16 OC:i32:16",
        "BM=128 BN=64 BK=32 KS=3",
        "num_warps=4 num_stages=3",
    ),
    "moe_gather_gemm": _own(
        "x_ptr:*bf16:16 w_ptr:*bf16:16 idx_ptr:*i32:16 e_ptr:*i32:16 y_ptr:*bf16:16 N:i32:16 K:i32:16",
        "BM=64 BN=128 BK=64",
        "num_warps=8 num_stages=3",
    ),
    "kv8_attention": _own(
        "q_ptr:*fp16:16 k_ptr:*i8:16 v_ptr:*i8:16 ks_ptr:*fp32:16 vs_ptr:*fp32:16 o_ptr:*fp16:16 L:i32:16 scale:fp32",
        "BQ=64 BKV=64 D=128",
        "num_warps=4 num_stages=2",
    ),
    "sort_rows": _own("x_ptr:*fp32:16 y_ptr:*fp32:16 stride:i32:16", "N=1024", "num_warps=4"),
    "norm_backward": _own(
        "dy_ptr:*bf16:16 x_ptr:*bf16:16 dw_ptr:*fp32:16 rows:i32:16 cols:i32:16",
        "BR=16 BC=128",
        "num_warps=4 num_stages=3",
    ),
    "gemm_f32": _own(
        "a_ptr:*fp32:16 b_ptr:*fp32:16 c_ptr:*fp32:16 M:i32:16 N:i32:16 K:i32:16",
        "BM=128 BN=128 BK=32",
        "num_warps=8 num_stages=3",
    ),
    "token_counts": _own("x_ptr:*i32:16 out_ptr:*i32:16 n:i32:16", "BLOCK=2048 BINS=256", "num_warps=4"),
    "nchw_to_nhwc_bias": _own(
        "x_ptr:*fp32:16 b_ptr:*fp32:16 y_ptr:*fp32:16 C:i32:16 HW:i32:16", "BC=64 BP=32", "num_warps=4"
    ),
    "rotary": _own("x_ptr:*bf16:16 cos_ptr:*fp32:16 sin_ptr:*fp32:16 S:i32:16", "H=32 HALF=64", "num_warps=8"),
    "chunk_gated_delta_rule_fwd_kernel_h_blockdim64": _library(
        "fla",
        "ops/common/chunk_delta_h.py",
        "k:*bf16:16 v:*bf16:16 w:*bf16:16 v_new:*bf16:16 h:*bf16:16 T:i32",
        "g=None gk=None h0=None ht=None cu_seqlens=None chunk_offsets=None H=4 HV=4 K=64 V=64 BT=64 BV=32 "
        "USE_G=False USE_GK=False USE_INITIAL_STATE=False STORE_FINAL_STATE=False SAVE_NEW_VALUE=True "
        "STATE_V_FIRST=False IS_VARLEN=False",
        "num_warps=2 num_stages=2",
    ),
    "chunk_scaled_dot_kkt_fwd_kernel": _library(
        "fla",
        "ops/common/chunk_scaled_dot_kkt.py",
        "k:*bf16:16 beta:*bf16:16 A:*fp32:16 T:i32",
        "g=None cu_seqlens=None chunk_indices=None H=4 HV=4 K=64 BT=64 BK=32 IS_VARLEN=False USE_G=False",
        "num_warps=2 num_stages=2",
    ),
    "parallel_based_fwd_kernel": _library(
        "fla",
        "ops/based/parallel.py",
        "q:*bf16:16 k:*bf16:16 v:*bf16:16 o:*fp32:16 z:*fp32:16 scale:fp32 T:i32",
        "B=1 H=4 K=16 V=64 BTL=128 BTS=32 BK=16 BV=64",
        "num_warps=4 num_stages=2",
    ),
    "merge_16x16_to_64x64_inverse_kernel": _library(
        "fla",
        "ops/utils/solve_tril.py",
        "A:*fp32:16 Ai:*bf16:16 T:i32",
        "cu_seqlens=None chunk_indices=None H=4 BT=64 USE_TMA=False IS_VARLEN=False DOT_PRECISION=ieee",
        "num_warps=2 num_stages=2",
    ),
    "fused_recurrent_fwd_kernel": _library(
        "fla",
        "ops/common/fused_recurrent.py",
        "q:*bf16:16 k:*bf16:16 v:*bf16:16 g_gamma:*fp32:16 o:*fp32:16 scale:fp32 B:i32 T:i32",
        "g=None gk=None gv=None h0=None ht=None cu_seqlens=None H=4 K=64 V=64 BK=64 BV=64 REVERSE=False "
        "USE_G=False USE_G_GAMMA=True USE_GK=False USE_GV=False USE_INITIAL_STATE=False STORE_FINAL_STATE=False "
        "IS_VARLEN=False STATE_V_FIRST=False",
        "num_warps=4 num_stages=3",
    ),
    "_layer_norm_forward_kernel": _library(
        "liger_kernel",
        "ops/layer_norm.py",
        "Y_ptr:*fp16:16 Y_row_stride:i32:16 X_ptr:*fp16:16 X_row_stride:i32:16 W_ptr:*fp16:16 W_row_stride:i32:1 "
        "B_ptr:*fp16:16 B_row_stride:i32:1 Mean_ptr:*fp32:16 Mean_row_stride:i32:1 RSTD_ptr:*fp32:16 "
        "RSTD_row_stride:i32:1 n_cols:i32:16 eps:fp32",
        "BLOCK_SIZE=4096",
        "num_warps=8 num_stages=3",
    ),
    "_group_norm_forward_kernel": _library(
        "liger_kernel",
        "ops/group_norm.py",
        "Y_ptr:*fp16:16 Y_row_stride:i32:16 Y_col_stride:i32:16 X_ptr:*fp16:16 X_row_stride:i32:16 "
        "X_col_stride:i32:16 Mean_ptr:*fp16:16 Mean_row_stride:i32 Mean_col_stride:i32:1 RSTD_ptr:*fp16:16 "
        "RSTD_row_stride:i32 RSTD_col_stride:i32:1 W_ptr:*fp16:16 B_ptr:*fp16:16 hidden_size:i32:16 "
        "channels_per_group:i32 eps:fp32",
        "BLOCK_SIZE=8192",
        "num_warps=4 num_stages=3",
    ),
    "_dyt_fwd_kernel": _library(
        "liger_kernel",
        "ops/dyt.py",
        "X:*fp16:16 Y:*fp16:16 Alpha:*fp32:16 Gamma:*fp16:16 Beta:*fp16:16",
        "HAVE_BETA=True N=4096 BLOCK_N=1024",
        "num_warps=4 num_stages=1",
    ),
    "chunk_gla_fwd_A_kernel_intra_sub_intra": _library(
        "fla",
        "ops/gla/chunk.py",
        "q:*bf16:16 k:*bf16:16 g:*fp32:16 A:*fp32:16 scale:fp32 T:i32",
        "cu_seqlens=None chunk_indices=None H=4 K=64 BT=64 BC=16 BK=64 IS_VARLEN=False",
        "num_warps=1 num_stages=2",
    ),
    "geglu_gemm": _third(
        "x_ptr:*bf16:16 g_ptr:*bf16:16 u_ptr:*bf16:16 y_ptr:*bf16:16 M:i32:16 N:i32:16 K:i32:16",
        "BM=128 BN=64 BK=64",
        "num_warps=4 num_stages=3",
    ),
    "mla_decode": _third(
        "q_ptr:*bf16:16 c_ptr:*bf16:16 o_ptr:*bf16:16 length:i32:16 scale:fp32",
        "HEADS=16 DIM=256 ROPE=64 BLOCK=32",
        "num_warps=4 num_stages=2",
    ),
    "chunk_state": _third(
        "b_ptr:*bf16:16 x_ptr:*bf16:16 a_ptr:*fp32:16 s_ptr:*fp32:16 L:i32:16",
        "BL=32 STATE=128 DIM=64",
        "num_warps=4 num_stages=3",
    ),
    "topk_router": _third(
        "logits_ptr:*fp32:16 weight_ptr:*fp32:16 index_ptr:*i32:16 tokens:i32:16",
        "BM=16 EXPERTS=128 TOP=4",
        "num_warps=4",
    ),
    "cumsum_rows": _third("x_ptr:*fp16:16 y_ptr:*fp32:16 T:i32:16", "BLOCK=1024", "num_warps=4"),
    "group_quantize": _third("x_ptr:*bf16:16 q_ptr:*i8:16 s_ptr:*fp32:16 N:i32:16", "BM=32 GROUP=128", "num_warps=4"),
    "gemv_rows": _third(
        "w_ptr:*fp16:16 x_ptr:*fp16:16 y_ptr:*fp16:16 N:i32:16 K:i32:16", "BN=16 BK=512", "num_warps=4 num_stages=2"
    ),
    "gemm_tn": _third(
        "a_ptr:*fp16:16 b_ptr:*fp16:16 c_ptr:*fp32:16 M:i32:16 N:i32:16 K:i32:16",
        "BM=128 BN=128 BK=64",
        "num_warps=8 num_stages=3",
    ),
    "loss_backward": _third(
        "logits_ptr:*bf16:16 label_ptr:*i64:16 lse_ptr:*fp32:16 V:i32:16 scale:fp32", "BLOCK=4096", "num_warps=8"
    ),
    "csr_sum": _third(
        "row_ptr:*i32:16 col_ptr:*i32:16 value_ptr:*fp32:16 x_ptr:*fp16:16 y_ptr:*fp32:16 D:i32:16",
        "BLOCK=256 NNZ=16",
        "num_warps=4 num_stages=2",
    ),
    "w8a8_gemm": _third(
        "a_ptr:*i8:16 b_ptr:*i8:16 sa_ptr:*fp32:16 sb_ptr:*fp32:16 c_ptr:*bf16:16 M:i32:16 N:i32:16 K:i32:16",
        "BM=128 BN=128 BK=64",
        "num_warps=4 num_stages=3",
    ),
}
