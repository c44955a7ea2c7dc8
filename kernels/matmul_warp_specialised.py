"""A block matmul whose loop requests warp specialisation: `c = a @ b.T`.

Where Triton and the target support it (NVIDIA from sm_90 on), some warps only load and others only
multiply. They synchronise through barriers in shared memory. Elsewhere the request is ignored and the
loop is pipelined as any other.
"""

from typing import TYPE_CHECKING

import triton
import triton.language as tl

from artifact_inspector.compiling.reference import Reference, Workload

if TYPE_CHECKING:
    import torch


@triton.jit
def matmul_warp_specialised_kernel(
    a_desc,
    b_desc,
    c_desc,
    K,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    off_m = tl.program_id(0) * BLOCK_M
    off_n = tl.program_id(1) * BLOCK_N

    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for off_k in tl.range(0, K, BLOCK_K, warp_specialize=True):
        a = a_desc.load([off_m, off_k])
        b = b_desc.load([off_n, off_k])
        acc = tl.dot(a, b.T, acc)
    c_desc.store([off_m, off_n], acc.to(tl.float16))


def matmul_warp_specialised(
    a: "torch.Tensor", b: "torch.Tensor", out: "torch.Tensor | None" = None, **config: int
) -> "torch.Tensor":
    """A @ b.T in float16, accumulated in float32.

    Args:
        a: (M, K), float16, contiguous; K a multiple of 8.
        b: (N, K), float16, contiguous; N a multiple of 8.
        out: where the result goes, else a new tensor.
        config: blocks, warps and stages other than those of `REFERENCE`.

    Returns:
        (M, N), float16.
    """
    from triton.tools.tensor_descriptor import TensorDescriptor

    m, k = a.shape
    n = b.shape[0]
    c = a.new_empty((m, n)) if out is None else out
    options = REFERENCE.launch_options(config)
    block_m, block_n, block_k = (options[name] for name in ("BLOCK_M", "BLOCK_N", "BLOCK_K"))
    matmul_warp_specialised_kernel[(triton.cdiv(m, block_m), triton.cdiv(n, block_n))](
        TensorDescriptor.from_tensor(a, [block_m, block_k]),
        TensorDescriptor.from_tensor(b, [block_n, block_k]),
        TensorDescriptor.from_tensor(c, [block_m, block_n]),
        k,
        **options,
    )
    return c


def workload(device: str = "cuda", m: int = 8192, n: int = 8192, k: int = 4096) -> Workload:
    """A product of large matrices: bound by the matrix units."""
    import torch

    a = torch.randn((m, k), device=device, dtype=torch.float16)
    b = torch.randn((n, k), device=device, dtype=torch.float16)
    c = torch.empty((m, n), device=device, dtype=torch.float16)
    return Workload(
        launch=lambda **config: matmul_warp_specialised(a, b, c, **config),
        result=c,
        expected=lambda: a.float() @ b.float().T,
        tolerance=2e-3,
        size=f"{m}×{n}×{k} fp16",
        flop=2 * m * n * k,
        bytes=2 * (m * k + k * n + m * n),
        unit="fp16",
        configs=[
            {"BLOCK_M": block_m, "BLOCK_N": block_n, "num_warps": warps, "num_stages": stages}
            for block_m, block_n, warps in (
                (64, 64, 4),
                (64, 128, 4),
                (128, 128, 8),
                (128, 256, 8),
            )
            for stages in (2, 3, 4)
        ],
    )


REFERENCE = Reference(
    kernel=matmul_warp_specialised_kernel,
    signature={
        "a_desc": "tensordesc<fp16[64, 64]>",
        "b_desc": "tensordesc<fp16[128, 64]>",
        "c_desc": "tensordesc<fp16[64, 128]>",
        "K": "i32:16",
    },
    # on sm_90, Triton 3.6 to 3.9 specialise blocks of 4 warps alone, and fail on larger tiles than this
    constexprs={"BLOCK_M": 64, "BLOCK_N": 128, "BLOCK_K": 64},
    num_warps=4,
    num_stages=3,
)
