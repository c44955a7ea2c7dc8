"""The split matrix-vector product of `gemv_splitk` in the other source order: both loads, then both computes.

The two kernels do the same work on the same blocks. Comparing them shows whether the source order
survives in the machine code, and what it costs.
"""

from typing import TYPE_CHECKING

import triton
import triton.language as tl

from artifact_inspector.compiling.reference import Reference, Workload
from artifact_inspector.kernels import gemv_splitk

if TYPE_CHECKING:
    import torch


@triton.jit
def gemv_loads_first(a_ptr, b_ptr, c_ptr, stride_bk, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr):
    pid_n = tl.program_id(0)
    pid_k = tl.program_id(1) * 2
    offs_n = pid_n * BLOCK_N + tl.arange(0, BLOCK_N)
    offs_k = pid_k * BLOCK_K + tl.arange(0, BLOCK_K)
    a_ptrs = a_ptr + offs_k[None, :]
    b_ptrs = b_ptr + offs_k[:, None] * stride_bk + offs_n[None, :]

    a1 = tl.load(a_ptrs).reshape((BLOCK_K, 1))
    b1 = tl.load(b_ptrs, eviction_policy="evict_first")
    a_ptrs += BLOCK_K
    b_ptrs += BLOCK_K * stride_bk
    a2 = tl.load(a_ptrs).reshape((BLOCK_K, 1))
    b2 = tl.load(b_ptrs, eviction_policy="evict_first")

    acc = tl.sum(a1.to(tl.float32) * b1.to(tl.float32), axis=0)
    acc += tl.sum(a2.to(tl.float32) * b2.to(tl.float32), axis=0)

    tl.atomic_add(c_ptr + offs_n, acc, sem="relaxed")


def gemv(
    a: "torch.Tensor", b: "torch.Tensor", out: "torch.Tensor | None" = None, **config: int
) -> "torch.Tensor":
    """What `gemv_splitk.gemv` computes, with the same arguments."""
    return gemv_splitk.launch(gemv_loads_first, a, b, out, config)


def workload(device: str = "cuda", k: int = 16384, n: int = 16384) -> Workload:
    """The workload of `gemv_splitk`, so that the two can be compared."""
    return gemv_splitk.workload(device, k, n, gemv)


REFERENCE = Reference(
    kernel=gemv_loads_first,
    signature=gemv_splitk.REFERENCE.signature,
    constexprs=gemv_splitk.REFERENCE.constexprs,
    num_warps=gemv_splitk.REFERENCE.num_warps,
)
