"""A block matmul through tensor descriptors: `c = a @ b.T`.

On NVIDIA from sm_90 on, a descriptor's load is one TMA copy into shared memory; elsewhere Triton
expands it into ordinary loads.
"""

from typing import TYPE_CHECKING

import triton
import triton.language as tl

from artifact_inspector.compiling.reference import Reference, Workload

if TYPE_CHECKING:
    import torch

BLOCK_M, BLOCK_N, BLOCK_K = 64, 64, 32


@triton.jit
def matmul_descriptor_kernel(
    a_ptr,
    b_ptr,
    c_ptr,
    M,
    N,
    K,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    off_m = tl.program_id(0) * BLOCK_M
    off_n = tl.program_id(1) * BLOCK_N
    a_desc = tl.make_tensor_descriptor(a_ptr, shape=[M, K], strides=[K, 1], block_shape=[BLOCK_M, BLOCK_K])
    b_desc = tl.make_tensor_descriptor(b_ptr, shape=[N, K], strides=[K, 1], block_shape=[BLOCK_N, BLOCK_K])
    c_desc = tl.make_tensor_descriptor(c_ptr, shape=[M, N], strides=[N, 1], block_shape=[BLOCK_M, BLOCK_N])

    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for off_k in range(0, K, BLOCK_K):
        a = a_desc.load([off_m, off_k])
        b = b_desc.load([off_n, off_k])
        acc = tl.dot(a, b.T, acc)
    c_desc.store([off_m, off_n], acc.to(tl.float16))


def matmul_descriptor(
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
    m, k = a.shape
    n = b.shape[0]
    c = a.new_empty((m, n)) if out is None else out
    # the descriptors made in the kernel live in memory that the host provides
    triton.set_allocator(lambda size, alignment, stream: a.new_empty(size, dtype=_byte_type()))
    options = REFERENCE.launch_options(config)
    grid = (triton.cdiv(m, options["BLOCK_M"]), triton.cdiv(n, options["BLOCK_N"]))
    matmul_descriptor_kernel[grid](a, b, c, m, n, k, **options)
    return c


def workload(device: str = "cuda", m: int = 8192, n: int = 8192, k: int = 4096) -> Workload:
    """A product of large matrices: bound by the matrix units."""
    import torch

    a = torch.randn((m, k), device=device, dtype=torch.float16)
    b = torch.randn((n, k), device=device, dtype=torch.float16)
    c = torch.empty((m, n), device=device, dtype=torch.float16)
    return Workload(
        launch=lambda **config: matmul_descriptor(a, b, c, **config),
        result=c,
        expected=lambda: a.float() @ b.float().T,
        tolerance=2e-3,
        size=f"{m}×{n}×{k} fp16",
        flop=2 * m * n * k,
        bytes=2 * (m * k + k * n + m * n),
        unit="fp16",
        configs=[
            {"BLOCK_M": block_m, "BLOCK_N": block_n, "BLOCK_K": block_k, "num_warps": warps, "num_stages": 3}
            for block_m, block_n, warps in ((64, 64, 4), (128, 128, 4), (128, 128, 8), (128, 256, 8))
            for block_k in (32, 64)
        ],
    )


def _byte_type() -> "torch.dtype":
    import torch

    return torch.int8


REFERENCE = Reference(
    kernel=matmul_descriptor_kernel,
    signature={
        "a_ptr": "*fp16:16",
        "b_ptr": "*fp16:16",
        "c_ptr": "*fp16:16",
        "M": "i32:16",
        "N": "i32:16",
        "K": "i32:16",
    },
    constexprs={"BLOCK_M": BLOCK_M, "BLOCK_N": BLOCK_N, "BLOCK_K": BLOCK_K},
    num_warps=4,
    num_stages=3,
)
