"""Attention that never writes the score matrix (forward pass, no mask).

Each program holds 64 queries and walks over the keys in blocks of 32. One iteration has two
rounds: load K and multiply, then load V and multiply.
"""

from typing import TYPE_CHECKING

import triton
import triton.language as tl

from artifact_inspector.compiling.reference import Reference, Workload

if TYPE_CHECKING:
    import torch

BLOCK_M, BLOCK_N = 64, 32


@triton.jit
def flash_attention_kernel(
    q_ptr,
    k_ptr,
    v_ptr,
    o_ptr,
    stride_head,
    stride_seq,
    seq_len,
    scale,
    HEAD_DIM: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
):
    start_m = tl.program_id(0) * BLOCK_M
    head = tl.program_id(1) * stride_head
    offs_m = start_m + tl.arange(0, BLOCK_M)
    offs_n = tl.arange(0, BLOCK_N)
    offs_d = tl.arange(0, HEAD_DIM)
    q_offsets = head + offs_m[:, None] * stride_seq + offs_d[None, :]
    q = tl.load(q_ptr + q_offsets, mask=offs_m[:, None] < seq_len, other=0.0)

    row_max = tl.full((BLOCK_M,), -float("inf"), dtype=tl.float32)
    row_sum = tl.zeros((BLOCK_M,), dtype=tl.float32)
    acc = tl.zeros((BLOCK_M, HEAD_DIM), dtype=tl.float32)
    # exp2 is the instruction that GPUs have; log2(e) turns exp into it
    qk_scale = scale * 1.4426950408889634
    for start_n in range(0, seq_len, BLOCK_N):
        keys = start_n + offs_n
        in_range = keys < seq_len
        k = tl.load(
            k_ptr + head + keys[None, :] * stride_seq + offs_d[:, None], mask=in_range[None, :], other=0.0
        )
        scores = tl.where(in_range[None, :], tl.dot(q, k) * qk_scale, -float("inf"))
        new_max = tl.maximum(row_max, tl.max(scores, axis=1))
        p = tl.exp2(scores - new_max[:, None])
        correction = tl.exp2(row_max - new_max)
        row_sum = row_sum * correction + tl.sum(p, axis=1)
        acc = acc * correction[:, None]
        v = tl.load(
            v_ptr + head + keys[:, None] * stride_seq + offs_d[None, :], mask=in_range[:, None], other=0.0
        )
        acc += tl.dot(p.to(v.dtype), v)
        row_max = new_max

    o = acc / row_sum[:, None]
    tl.store(o_ptr + q_offsets, o.to(o_ptr.dtype.element_ty), mask=offs_m[:, None] < seq_len)


def flash_attention(
    q: "torch.Tensor",
    k: "torch.Tensor",
    v: "torch.Tensor",
    scale: float,
    out: "torch.Tensor | None" = None,
    **config: int,
) -> "torch.Tensor":
    """softmax(scale * q @ k.T) @ v for every head.

    Args:
        q: (heads, sequence, head size), contiguous; head size a power of two from 16 on.
        k: like `q`.
        v: like `q`.
        scale: factor on the scores.
        out: where the result goes, else a new tensor.
        config: blocks, warps and stages other than those of `REFERENCE`.

    Returns:
        (heads, sequence, head size), in the type of `q`.
    """
    heads, seq_len, head_dim = q.shape
    o = q.new_empty(q.shape) if out is None else out
    options = REFERENCE.launch_options({"HEAD_DIM": head_dim, **config})
    grid = (triton.cdiv(seq_len, options["BLOCK_M"]), heads)
    flash_attention_kernel[grid](q, k, v, o, q.stride(0), q.stride(1), seq_len, scale, **options)
    return o


def workload(device: str = "cuda", heads: int = 64, seq_len: int = 4096, head_dim: int = 64) -> Workload:
    """Long sequences with the usual head size: bound by the matrix units and the exponentials."""
    import torch

    q, k, v = (torch.randn((heads, seq_len, head_dim), device=device, dtype=torch.float16) for _ in range(3))
    o = torch.empty_like(q)
    scale = head_dim**-0.5
    return Workload(
        launch=lambda **config: flash_attention(q, k, v, scale, o, **config),
        result=o,
        expected=lambda: torch.stack(
            [
                torch.softmax(scale * q1.float() @ k1.float().T, dim=1) @ v1.float()
                for q1, k1, v1 in zip(q, k, v, strict=True)
            ]
        ),
        tolerance=5e-3,
        size=f"{heads} heads, {seq_len}×{head_dim} fp16",
        flop=4 * heads * seq_len * seq_len * head_dim,
        bytes=2 * 4 * heads * seq_len * head_dim,
        unit="fp16",
        configs=[
            {"BLOCK_M": block_m, "BLOCK_N": block_n, "num_warps": warps, "num_stages": stages}
            for block_m, block_n, warps in (
                (64, 32, 4),
                (64, 64, 4),
                (128, 64, 4),
                (128, 64, 8),
                (128, 128, 8),
            )
            for stages in (2, 3)
        ],
    )


REFERENCE = Reference(
    kernel=flash_attention_kernel,
    signature={
        "q_ptr": "*fp16:16",
        "k_ptr": "*fp16:16",
        "v_ptr": "*fp16:16",
        "o_ptr": "*fp16:16",
        "stride_head": "i32:16",
        "stride_seq": "i32:16",
        "seq_len": "i32:16",
        "scale": "fp32",
    },
    constexprs={"HEAD_DIM": 16, "BLOCK_M": BLOCK_M, "BLOCK_N": BLOCK_N},
    num_warps=4,
    num_stages=2,
)
