"""A block matmul whose inner dimension is split over programs: `c += a @ b`.

For products with few tiles and a long K: `SPLIT_K` programs share a tile, each takes every
`SPLIT_K`-th block of K, and all add up in `c` by atomics.
"""

from typing import TYPE_CHECKING

import triton
import triton.language as tl

from artifact_inspector.compiling.reference import Reference, Workload

if TYPE_CHECKING:
    import torch


@triton.jit
def matmul_splitk_kernel(
    a_ptr,
    b_ptr,
    c_ptr,
    M,
    N,
    K,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    SPLIT_K: tl.constexpr,
):
    tile = tl.program_id(0)
    split = tl.program_id(1)
    tiles_n = tl.cdiv(N, BLOCK_N)
    offs_m = (tile // tiles_n) * BLOCK_M + tl.arange(0, BLOCK_M)
    offs_n = (tile % tiles_n) * BLOCK_N + tl.arange(0, BLOCK_N)
    offs_k = split * BLOCK_K + tl.arange(0, BLOCK_K)
    a_ptrs = a_ptr + (offs_m % M)[:, None] * K + offs_k[None, :]
    b_ptrs = b_ptr + offs_k[:, None] * N + (offs_n % N)[None, :]

    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for k in range(split * BLOCK_K, K, BLOCK_K * SPLIT_K):
        left = K - k
        inside = tl.arange(0, BLOCK_K) < left
        a = tl.load(a_ptrs, mask=inside[None, :], other=0.0)
        b = tl.load(b_ptrs, mask=inside[:, None], other=0.0)
        acc = tl.dot(a, b, acc)
        a_ptrs += BLOCK_K * SPLIT_K
        b_ptrs += BLOCK_K * SPLIT_K * N

    c_ptrs = c_ptr + offs_m[:, None] * N + offs_n[None, :]
    tl.atomic_add(c_ptrs, acc, mask=(offs_m[:, None] < M) & (offs_n[None, :] < N), sem="relaxed")


def matmul_splitk(
    a: "torch.Tensor", b: "torch.Tensor", out: "torch.Tensor | None" = None, **config: int
) -> "torch.Tensor":
    """A @ b, accumulated in float32 in no fixed order.

    Args:
        a: (M, K), float16, contiguous.
        b: (K, N), float16, contiguous.
        out: (M, N), float32, to add to; zeros without it.
        config: blocks, splits, warps and stages other than those of `REFERENCE`.

    Returns:
        (M, N), float32.
    """
    m, k = a.shape
    n = b.shape[1]
    c = a.new_zeros((m, n)).float() if out is None else out
    options = REFERENCE.launch_options(config)
    tiles = triton.cdiv(m, options["BLOCK_M"]) * triton.cdiv(n, options["BLOCK_N"])
    matmul_splitk_kernel[(tiles, options["SPLIT_K"])](a, b, c, m, n, k, **options)
    return c


def workload(device: str = "cuda", m: int = 64, n: int = 8192, k: int = 32768) -> Workload:
    """Few rows and a long inner dimension, as in decoding: bound by memory."""
    import torch

    a = torch.randn((m, k), device=device, dtype=torch.float16)
    b = torch.randn((k, n), device=device, dtype=torch.float16)
    c = torch.zeros((m, n), device=device)
    return Workload(
        launch=lambda **config: matmul_splitk(a, b, c, **config),
        result=c,
        expected=lambda: a.float() @ b.float(),
        tolerance=1e-3,
        adds=True,
        size=f"{m}×{n}×{k} fp16",
        flop=2 * m * n * k,
        bytes=2 * (m * k + k * n) + 4 * m * n,
        unit="fp16",
        configs=[
            {"BLOCK_N": block_n, "BLOCK_K": block_k, "SPLIT_K": split, "num_stages": stages}
            for block_n, block_k in ((64, 64), (128, 64), (64, 128))
            for split in (1, 2, 4, 8)
            for stages in (2, 4)
        ],
    )


REFERENCE = Reference(
    kernel=matmul_splitk_kernel,
    signature={
        "a_ptr": "*fp16:16",
        "b_ptr": "*fp16:16",
        "c_ptr": "*fp32:16",
        "M": "i32:16",
        "N": "i32:16",
        "K": "i32:16",
    },
    constexprs={"BLOCK_M": 64, "BLOCK_N": 64, "BLOCK_K": 64, "SPLIT_K": 4},
    num_warps=4,
    num_stages=3,
)
