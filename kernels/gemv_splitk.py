"""A matrix-vector product split along K: `c += a @ b` with one row in `a`.

Each program takes 256 columns and twice 64 rows of `b`: load, multiply and reduce, then load, multiply
and reduce again, in straight-line code. The programs of one column block add up in `c` by atomics.
"""

from typing import TYPE_CHECKING

import triton
import triton.language as tl

from artifact_inspector.compiling.reference import Reference

if TYPE_CHECKING:
    import torch

BLOCK_N, BLOCK_K = 256, 64


@triton.jit
def gemv_splitk(a_ptr, b_ptr, c_ptr, stride_bk, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr):
    pid_n = tl.program_id(0)
    pid_k = tl.program_id(1) * 2
    offs_n = pid_n * BLOCK_N + tl.arange(0, BLOCK_N)
    offs_k = pid_k * BLOCK_K + tl.arange(0, BLOCK_K)
    a_ptrs = a_ptr + offs_k[None, :]
    b_ptrs = b_ptr + offs_k[:, None] * stride_bk + offs_n[None, :]

    a = tl.load(a_ptrs).reshape((BLOCK_K, 1))
    b = tl.load(b_ptrs, eviction_policy="evict_first")
    acc = tl.sum(a.to(tl.float32) * b.to(tl.float32), axis=0)

    a_ptrs += BLOCK_K
    b_ptrs += BLOCK_K * stride_bk
    a = tl.load(a_ptrs).reshape((BLOCK_K, 1))
    b = tl.load(b_ptrs, eviction_policy="evict_first")
    acc += tl.sum(a.to(tl.float32) * b.to(tl.float32), axis=0)

    tl.atomic_add(c_ptr + offs_n, acc, sem="relaxed")


def gemv(a: "torch.Tensor", b: "torch.Tensor") -> "torch.Tensor":
    """A @ b for one row, accumulated in float32 in no fixed order.

    Args:
        a: (1, K), contiguous; K a multiple of 128.
        b: (K, N), contiguous; N a multiple of 256.

    Returns:
        (1, N), float32.
    """
    k, n = b.shape
    c = a.new_zeros((1, n)).float()
    grid = (n // BLOCK_N, k // (2 * BLOCK_K))
    gemv_splitk[grid](a, b, c, b.stride(0), BLOCK_N, BLOCK_K, num_warps=REFERENCE.num_warps)
    return c


REFERENCE = Reference(
    kernel=gemv_splitk,
    signature={"a_ptr": "*fp16:16", "b_ptr": "*fp16:16", "c_ptr": "*fp32:16", "stride_bk": "i32:16"},
    constexprs={"BLOCK_N": BLOCK_N, "BLOCK_K": BLOCK_K},
    num_warps=4,
)
