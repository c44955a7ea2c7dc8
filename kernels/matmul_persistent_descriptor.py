"""A persistent block matmul through descriptors made by the host: `c = a @ b.T`.

On NVIDIA from sm_90 on, the descriptors are TMA's own and come as arguments; elsewhere Triton expands
their loads and stores into ordinary ones.
"""

from typing import TYPE_CHECKING

import triton
import triton.language as tl
from artifact_inspector.kernels.matmul_persistent import multiprocessors

from artifact_inspector.compiling.reference import Reference, Workload

if TYPE_CHECKING:
    import torch


@triton.jit
def matmul_persistent_descriptor_kernel(
    a_desc,
    b_desc,
    c_desc,
    M,
    N,
    K,
    programs,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    GROUP_M: tl.constexpr,
):
    tiles_m = tl.cdiv(M, BLOCK_M)
    tiles_n = tl.cdiv(N, BLOCK_N)
    blocks_k = tl.cdiv(K, BLOCK_K)
    for tile in tl.range(tl.program_id(0), tiles_m * tiles_n, programs, flatten=True):
        group = tile // (GROUP_M * tiles_n)
        rows = min(tiles_m - group * GROUP_M, GROUP_M)
        off_m = (group * GROUP_M + tile % rows) * BLOCK_M
        off_n = (tile % (GROUP_M * tiles_n)) // rows * BLOCK_N

        acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
        for block_k in range(blocks_k):
            a = a_desc.load([off_m, block_k * BLOCK_K])
            b = b_desc.load([off_n, block_k * BLOCK_K])
            acc = tl.dot(a, b.T, acc)

        c_desc.store([off_m, off_n], acc.to(tl.float16))


def matmul_persistent_descriptor(
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
    programs = min(multiprocessors(a), triton.cdiv(m, block_m) * triton.cdiv(n, block_n))
    matmul_persistent_descriptor_kernel[(programs,)](
        TensorDescriptor.from_tensor(a, [block_m, block_k]),
        TensorDescriptor.from_tensor(b, [block_n, block_k]),
        TensorDescriptor.from_tensor(c, [block_m, block_n]),
        m,
        n,
        k,
        programs,
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
        launch=lambda **config: matmul_persistent_descriptor(a, b, c, **config),
        result=c,
        expected=lambda: a.float() @ b.float().T,
        tolerance=2e-3,
        size=f"{m}×{n}×{k} fp16",
        flop=2 * m * n * k,
        bytes=2 * (m * k + k * n + m * n),
        unit="fp16",
        configs=[
            {"BLOCK_M": block_m, "BLOCK_N": block_n, "num_warps": warps, "num_stages": stages}
            for block_m, block_n, warps in ((64, 64, 4), (128, 128, 4), (128, 128, 8), (128, 256, 8))
            for stages in (2, 3, 4)
        ],
    )


REFERENCE = Reference(
    kernel=matmul_persistent_descriptor_kernel,
    signature={
        "a_desc": "tensordesc<fp16[128, 64]>",
        "b_desc": "tensordesc<fp16[128, 64]>",
        "c_desc": "tensordesc<fp16[128, 128]>",
        "M": "i32:16",
        "N": "i32:16",
        "K": "i32:16",
        "programs": "i32",
    },
    constexprs={"BLOCK_M": 128, "BLOCK_N": 128, "BLOCK_K": 64, "GROUP_M": 8},
    num_warps=8,
    num_stages=3,
)
