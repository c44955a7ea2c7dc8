"""The gradients of attention: dQ, dK and dV from the scores that are computed again.

Each program owns a block of positions of one head. As keys, they meet all queries and gather dK and dV;
as queries, they meet all keys and gather dQ: two loops, and no atomics.
"""

from typing import TYPE_CHECKING

import triton
import triton.language as tl

from artifact_inspector.compiling.reference import Reference, Workload

if TYPE_CHECKING:
    import torch

LOG2E = tl.constexpr(1.4426950408889634)


@triton.jit
def attention_backward_kernel(
    q_ptr,
    k_ptr,
    v_ptr,
    do_ptr,
    lse_ptr,
    delta_ptr,
    dq_ptr,
    dk_ptr,
    dv_ptr,
    stride_head,
    seq_len,
    scale,
    HEAD_DIM: tl.constexpr,
    BLOCK_OWN: tl.constexpr,
    BLOCK_LOOP: tl.constexpr,
):
    own = tl.program_id(0) * BLOCK_OWN + tl.arange(0, BLOCK_OWN)
    head = tl.program_id(1) * stride_head
    rows = tl.program_id(1) * seq_len
    offs_d = tl.arange(0, HEAD_DIM)
    own_offsets = head + own[:, None] * HEAD_DIM + offs_d[None, :]
    own_mask = own[:, None] < seq_len

    # as keys: scores are transposed, so that dV and dK add up without a transposition
    k = tl.load(k_ptr + own_offsets, mask=own_mask, other=0.0)
    v = tl.load(v_ptr + own_offsets, mask=own_mask, other=0.0)
    dk = tl.zeros((BLOCK_OWN, HEAD_DIM), dtype=tl.float32)
    dv = tl.zeros((BLOCK_OWN, HEAD_DIM), dtype=tl.float32)
    for start in range(0, seq_len, BLOCK_LOOP):
        queries = start + tl.arange(0, BLOCK_LOOP)
        inside = queries < seq_len
        query_offsets = head + queries[:, None] * HEAD_DIM + offs_d[None, :]
        q_block = tl.load(q_ptr + query_offsets, mask=inside[:, None], other=0.0)
        do_block = tl.load(do_ptr + query_offsets, mask=inside[:, None], other=0.0)
        # a query past the end has an infinite sum to divide by: nothing of it remains
        lse_block = tl.load(lse_ptr + rows + queries, mask=inside, other=float("inf"))
        delta_block = tl.load(delta_ptr + rows + queries, mask=inside, other=0.0)
        pt = tl.exp2((tl.dot(k, tl.trans(q_block)) * scale - lse_block[None, :]) * LOG2E)
        dv += tl.dot(pt.to(do_block.dtype), do_block)
        dst = pt * (tl.dot(v, tl.trans(do_block)) - delta_block[None, :])
        dk += tl.dot(dst.to(q_block.dtype), q_block)
    tl.store(dk_ptr + own_offsets, (dk * scale).to(dk_ptr.dtype.element_ty), mask=own_mask)
    tl.store(dv_ptr + own_offsets, dv.to(dv_ptr.dtype.element_ty), mask=own_mask)

    # as queries
    q = tl.load(q_ptr + own_offsets, mask=own_mask, other=0.0)
    do = tl.load(do_ptr + own_offsets, mask=own_mask, other=0.0)
    lse = tl.load(lse_ptr + rows + own, mask=own < seq_len, other=float("inf"))
    delta = tl.load(delta_ptr + rows + own, mask=own < seq_len, other=0.0)
    dq = tl.zeros((BLOCK_OWN, HEAD_DIM), dtype=tl.float32)
    for start in range(0, seq_len, BLOCK_LOOP):
        keys = start + tl.arange(0, BLOCK_LOOP)
        # keys past the end are zeros, and add nothing to dQ
        key_offsets = head + keys[:, None] * HEAD_DIM + offs_d[None, :]
        k_block = tl.load(k_ptr + key_offsets, mask=keys[:, None] < seq_len, other=0.0)
        v_block = tl.load(v_ptr + key_offsets, mask=keys[:, None] < seq_len, other=0.0)
        p = tl.exp2((tl.dot(q, tl.trans(k_block)) * scale - lse[:, None]) * LOG2E)
        ds = p * (tl.dot(do, tl.trans(v_block)) - delta[:, None])
        dq += tl.dot(ds.to(k_block.dtype), k_block)
    tl.store(dq_ptr + own_offsets, (dq * scale).to(dq_ptr.dtype.element_ty), mask=own_mask)


def attention_backward(
    q: "torch.Tensor",
    k: "torch.Tensor",
    v: "torch.Tensor",
    do: "torch.Tensor",
    lse: "torch.Tensor",
    delta: "torch.Tensor",
    scale: float,
    out: "tuple[torch.Tensor, torch.Tensor, torch.Tensor] | None" = None,
    **config: int,
) -> "tuple[torch.Tensor, torch.Tensor, torch.Tensor]":
    """The gradients of softmax(scale * q @ k.T) @ v with respect to q, k and v.

    Args:
        q: (heads, sequence, head size), contiguous; head size a power of two from 16 on.
        k: like `q`.
        v: like `q`.
        do: gradient of the result, like `q`.
        lse: (heads, sequence), float32: logarithm of the sum of each row's exponentials.
        delta: (heads, sequence), float32: sum over the head size of `do` times the result.
        scale: factor on the scores.
        out: where dQ, dK and dV go, else new tensors.
        config: blocks, warps and stages other than those of `REFERENCE`.

    Returns:
        dQ, dK and dV, each like `q`.
    """
    heads, seq_len, head_dim = q.shape
    dq, dk, dv = (q.new_empty(q.shape) for _ in range(3)) if out is None else out
    options = REFERENCE.launch_options({"HEAD_DIM": head_dim, **config})
    grid = (triton.cdiv(seq_len, options["BLOCK_OWN"]), heads)
    attention_backward_kernel[grid](
        q, k, v, do, lse, delta, dq, dk, dv, q.stride(0), seq_len, scale, **options
    )
    return dq, dk, dv


def workload(device: str = "cuda", heads: int = 64, seq_len: int = 2048, head_dim: int = 64) -> Workload:
    """Long sequences with the usual head size: bound by the matrix units and the exponentials."""
    import torch

    q, k, v, do = (
        torch.randn((heads, seq_len, head_dim), device=device, dtype=torch.float16) for _ in range(4)
    )
    scale = head_dim**-0.5
    scores = scale * q.float() @ k.float().transpose(1, 2)
    lse = torch.logsumexp(scores, dim=2)
    delta = (do.float() * (torch.softmax(scores, dim=2) @ v.float())).sum(dim=2)
    del scores
    out = tuple(torch.empty_like(q) for _ in range(3))

    def expected():
        inputs = [tensor.float().requires_grad_() for tensor in (q, k, v)]
        result = torch.softmax(scale * inputs[0] @ inputs[1].transpose(1, 2), dim=2) @ inputs[2]
        return torch.autograd.grad(result, inputs, do.float())

    return Workload(
        launch=lambda **config: attention_backward(q, k, v, do, lse, delta, scale, out, **config),
        result=out,
        expected=expected,
        tolerance=5e-3,
        size=f"{heads} heads, {seq_len}×{head_dim} fp16",
        # five products; the two that both loops compute again are not counted twice
        flop=5 * 2 * heads * seq_len * seq_len * head_dim,
        bytes=2 * 7 * heads * seq_len * head_dim + 4 * 2 * heads * seq_len,
        unit="fp16",
        configs=[
            {"BLOCK_OWN": block_own, "BLOCK_LOOP": block_loop, "num_warps": warps, "num_stages": stages}
            for block_own, block_loop, warps in (
                (64, 32, 4),
                (64, 64, 4),
                (128, 32, 4),
                (128, 32, 8),
                (128, 64, 8),
            )
            for stages in (2, 3)
        ],
    )


REFERENCE = Reference(
    kernel=attention_backward_kernel,
    signature={
        "q_ptr": "*fp16:16",
        "k_ptr": "*fp16:16",
        "v_ptr": "*fp16:16",
        "do_ptr": "*fp16:16",
        "lse_ptr": "*fp32:16",
        "delta_ptr": "*fp32:16",
        "dq_ptr": "*fp16:16",
        "dk_ptr": "*fp16:16",
        "dv_ptr": "*fp16:16",
        "stride_head": "i32:16",
        "seq_len": "i32:16",
        "scale": "fp32",
    },
    constexprs={"HEAD_DIM": 64, "BLOCK_OWN": 64, "BLOCK_LOOP": 32},
    num_warps=4,
    num_stages=2,
)
