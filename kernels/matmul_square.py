"""The smallest block matmul: square tiles of 32 and a loop over K, in float32.

A version found in tutorials moves along K by `k * stride` only: its blocks are 32×1 and 1×32,
which `tl.dot` takes for AMD GPUs and refuses for NVIDIA's (K of at least 8). Here each block
spans `tl.arange(0, BLOCK_SIZE)` along K too, and the loop steps by whole blocks.
"""

from typing import TYPE_CHECKING

import triton
import triton.language as tl

from artifact_inspector.compiling.reference import Reference, Workload

if TYPE_CHECKING:
    import torch

BLOCK_SIZE = 32


@triton.jit
def matmul_square_kernel(
    a_ptr,
    b_ptr,
    c_ptr,
    M,
    N,
    K,
    stride_am,
    stride_ak,
    stride_bk,
    stride_bn,
    stride_cm,
    stride_cn,
    BLOCK_SIZE: tl.constexpr,
):
    offs_m = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    offs_n = tl.program_id(1) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)

    acc = tl.zeros((BLOCK_SIZE, BLOCK_SIZE), dtype=tl.float32)
    for k in range(0, K, BLOCK_SIZE):
        offs_k = k + tl.arange(0, BLOCK_SIZE)
        a_mask = (offs_m[:, None] < M) & (offs_k[None, :] < K)
        b_mask = (offs_k[:, None] < K) & (offs_n[None, :] < N)
        a = tl.load(a_ptr + offs_m[:, None] * stride_am + offs_k[None, :] * stride_ak, mask=a_mask, other=0.0)
        b = tl.load(b_ptr + offs_k[:, None] * stride_bk + offs_n[None, :] * stride_bn, mask=b_mask, other=0.0)
        acc += tl.dot(a, b)

    c_mask = (offs_m[:, None] < M) & (offs_n[None, :] < N)
    tl.store(c_ptr + offs_m[:, None] * stride_cm + offs_n[None, :] * stride_cn, acc, mask=c_mask)


def matmul_square(
    a: "torch.Tensor", b: "torch.Tensor", out: "torch.Tensor | None" = None, **config: int
) -> "torch.Tensor":
    """A @ b in float32 (on NVIDIA's tensor cores: in TF32).

    Args:
        a: (M, K), float32.
        b: (K, N), float32.
        out: where the result goes, else a new tensor.
        config: blocks, warps and stages other than those of `REFERENCE`.

    Returns:
        (M, N), float32.
    """
    m, k = a.shape
    n = b.shape[1]
    c = a.new_empty((m, n)) if out is None else out
    options = REFERENCE.launch_options(config)
    grid = (triton.cdiv(m, options["BLOCK_SIZE"]), triton.cdiv(n, options["BLOCK_SIZE"]))
    matmul_square_kernel[grid](a, b, c, m, n, k, *a.stride(), *b.stride(), *c.stride(), **options)
    return c


def workload(device: str = "cuda", m: int = 4096, n: int = 4096, k: int = 4096) -> Workload:
    """A square product: bound by the matrix units, if the kernel keeps them fed."""
    import torch

    a, b = torch.randn((m, k), device=device), torch.randn((k, n), device=device)
    c = torch.empty((m, n), device=device)
    return Workload(
        launch=lambda **config: matmul_square(a, b, c, **config),
        result=c,
        expected=lambda: a.double() @ b.double(),
        tolerance=2e-3,
        size=f"{m}×{n}×{k} fp32",
        flop=2 * m * n * k,
        bytes=4 * (m * k + k * n + m * n),
        unit="tf32",
        configs=[
            {"BLOCK_SIZE": block, "num_stages": stages, "num_warps": warps}
            for block in (32, 64, 128)
            for stages in (1, 3)
            for warps in (4, 8)
        ],
    )


REFERENCE = Reference(
    kernel=matmul_square_kernel,
    signature={
        "a_ptr": "*fp32:16",
        "b_ptr": "*fp32:16",
        "c_ptr": "*fp32:16",
        "M": "i32:16",
        "N": "i32:16",
        "K": "i32:16",
        "stride_am": "i32:16",
        "stride_ak": "i32:1",
        "stride_bk": "i32:16",
        "stride_bn": "i32:1",
        "stride_cm": "i32:16",
        "stride_cn": "i32:1",
    },
    constexprs={"BLOCK_SIZE": BLOCK_SIZE},
    num_warps=4,
    num_stages=1,
)
