"""A matrix-vector product split along K: `c += a @ b` with one row in `a`.

Each program takes 256 columns and twice 64 rows of `b`: load, multiply and reduce, then load, multiply
and reduce again, in straight-line code. The programs of one column block add up in `c` by atomics.
"""

from typing import TYPE_CHECKING

import triton
import triton.language as tl

from artifact_inspector.compiling.reference import Reference, Workload

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


def gemv(
    a: "torch.Tensor", b: "torch.Tensor", out: "torch.Tensor | None" = None, **config: int
) -> "torch.Tensor":
    """A @ b for one row, accumulated in float32 in no fixed order.

    Args:
        a: (1, K), contiguous; K a multiple of 128.
        b: (K, N), contiguous; N a multiple of 256.
        out: (1, N), float32, to add to; zeros without it.
        config: blocks, warps and stages other than those of `REFERENCE`.

    Returns:
        (1, N), float32.
    """
    return launch(gemv_splitk, a, b, out, config)


def launch(kernel, a, b, out, config):
    """Launch a kernel with the arguments of `gemv_splitk`; returns what it added to."""
    k, n = b.shape
    options = REFERENCE.launch_options(config)
    c = a.new_zeros((1, n)).float() if out is None else out
    grid = (n // options["BLOCK_N"], k // (2 * options["BLOCK_K"]))
    kernel[grid](a, b, c, b.stride(0), **options)
    return c


def workload(device: str = "cuda", k: int = 16384, n: int = 16384, product=gemv) -> Workload:
    """One row times a matrix of half a gigabyte: bound by memory."""
    import torch

    a = torch.randn((1, k), device=device, dtype=torch.float16)
    b = torch.randn((k, n), device=device, dtype=torch.float16)
    c = torch.zeros((1, n), device=device)
    blocks = [(32, 64), (64, 64), (64, 32), (128, 32), (128, 64), (256, 16), (256, 32), (256, 64), (512, 16)]
    return Workload(
        launch=lambda **config: product(a, b, c, **config),
        result=c,
        expected=lambda: a.float() @ b.float(),
        tolerance=1e-4,
        adds=True,
        size=f"1×{k} · {k}×{n} fp16",
        flop=2 * k * n,
        bytes=2 * (k * n + k) + 4 * n,
        unit="fp32",
        configs=[
            {"BLOCK_N": block_n, "BLOCK_K": block_k, "num_warps": warps}
            for block_n, block_k in blocks
            for warps in (1, 2, 4, 8)
        ],
    )


REFERENCE = Reference(
    kernel=gemv_splitk,
    signature={"a_ptr": "*fp16:16", "b_ptr": "*fp16:16", "c_ptr": "*fp32:16", "stride_bk": "i32:16"},
    constexprs={"BLOCK_N": BLOCK_N, "BLOCK_K": BLOCK_K},
    num_warps=4,
)
