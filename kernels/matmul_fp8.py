"""A block matmul in 8-bit floats: `c = (a @ b.T) * scale`, with one scale for the whole product."""

from typing import TYPE_CHECKING

import triton
import triton.language as tl

from artifact_inspector.compiling.reference import Reference, Workload

if TYPE_CHECKING:
    import torch


@triton.jit
def matmul_fp8_kernel(
    a_ptr,
    b_ptr,
    c_ptr,
    scale,
    M,
    N,
    K,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    offs_m = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    offs_n = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    offs_k = tl.arange(0, BLOCK_K)
    a_ptrs = a_ptr + (offs_m % M)[:, None] * K + offs_k[None, :]
    # both operands lie along K, the order that 8-bit matrix instructions read
    b_ptrs = b_ptr + (offs_n % N)[None, :] * K + offs_k[:, None]

    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for k in range(0, K, BLOCK_K):
        a = tl.load(a_ptrs, mask=offs_k[None, :] < K - k, other=0.0)
        b = tl.load(b_ptrs, mask=offs_k[:, None] < K - k, other=0.0)
        acc = tl.dot(a, b, acc)
        a_ptrs += BLOCK_K
        b_ptrs += BLOCK_K

    c_mask = (offs_m[:, None] < M) & (offs_n[None, :] < N)
    tl.store(c_ptr + offs_m[:, None] * N + offs_n[None, :], (acc * scale).to(tl.bfloat16), mask=c_mask)


def matmul_fp8(
    a: "torch.Tensor",
    b: "torch.Tensor",
    scale: float,
    out: "torch.Tensor | None" = None,
    **config: int,
) -> "torch.Tensor":
    """(a @ b.T) * scale in bfloat16, accumulated in float32.

    Args:
        a: (M, K), float8_e4m3fn, contiguous.
        b: (N, K), float8_e4m3fn, contiguous.
        scale: product of the two scales.
        out: where the result goes, else a new tensor.
        config: blocks, warps and stages other than those of `REFERENCE`.

    Returns:
        (M, N), bfloat16.
    """
    import torch

    m, k = a.shape
    n = b.shape[0]
    c = a.new_empty((m, n), dtype=torch.bfloat16) if out is None else out
    options = REFERENCE.launch_options(config)
    grid = (triton.cdiv(m, options["BLOCK_M"]), triton.cdiv(n, options["BLOCK_N"]))
    matmul_fp8_kernel[grid](a, b, c, scale, m, n, k, **options)
    return c


def workload(device: str = "cuda", m: int = 8192, n: int = 8192, k: int = 4096) -> Workload:
    """A product of large matrices: bound by the matrix units."""
    import torch

    a = torch.randn((m, k), device=device).to(torch.float8_e4m3fn)
    b = torch.randn((n, k), device=device).to(torch.float8_e4m3fn)
    c = torch.empty((m, n), device=device, dtype=torch.bfloat16)
    return Workload(
        launch=lambda **config: matmul_fp8(a, b, 0.25, c, **config),
        result=c,
        expected=lambda: (a.float() @ b.float().T) * 0.25,
        # sm_90's wgmma keeps fewer bits of a sum of 8-bit products than float32 has
        tolerance=5e-3,
        size=f"{m}×{n}×{k} fp8",
        flop=2 * m * n * k,
        bytes=m * k + k * n + 2 * m * n,
        unit="fp8",
        configs=[
            {"BLOCK_M": block_m, "BLOCK_N": block_n, "BLOCK_K": block_k, "num_warps": warps}
            for block_m, block_n, warps in ((64, 64, 4), (128, 128, 4), (128, 128, 8), (128, 256, 8))
            for block_k in (64, 128)
        ],
    )


REFERENCE = Reference(
    kernel=matmul_fp8_kernel,
    signature={
        "a_ptr": "*fp8e4nv:16",
        "b_ptr": "*fp8e4nv:16",
        "c_ptr": "*bf16:16",
        "scale": "fp32",
        "M": "i32:16",
        "N": "i32:16",
        "K": "i32:16",
    },
    constexprs={"BLOCK_M": 128, "BLOCK_N": 128, "BLOCK_K": 64},
    num_warps=8,
    num_stages=3,
    cuda_since=89,  # for e4m3
)
