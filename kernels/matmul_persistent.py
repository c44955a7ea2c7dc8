"""A persistent block matmul: `c = a @ b`, with as many programs as multiprocessors.

Each program walks over the tiles of the output, one loop around the other. `flatten=True` lets Triton
make one loop of the two, so that the loads of the next tile can start under the stores of this one.
"""

from typing import TYPE_CHECKING

import triton
import triton.language as tl

from artifact_inspector.compiling.reference import Reference, Workload

if TYPE_CHECKING:
    import torch


@triton.jit
def matmul_persistent_kernel(
    a_ptr,
    b_ptr,
    c_ptr,
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
        tile_m = group * GROUP_M + tile % rows
        tile_n = (tile % (GROUP_M * tiles_n)) // rows
        offs_m = tile_m * BLOCK_M + tl.arange(0, BLOCK_M)
        offs_n = tile_n * BLOCK_N + tl.arange(0, BLOCK_N)
        # past the end the last row is read again: what comes of it is not stored
        safe_m = tl.max_contiguous(tl.multiple_of(tl.where(offs_m < M, offs_m, 0), BLOCK_M), BLOCK_M)
        safe_n = tl.max_contiguous(tl.multiple_of(tl.where(offs_n < N, offs_n, 0), BLOCK_N), BLOCK_N)

        acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
        for block_k in range(blocks_k):
            offs_k = block_k * BLOCK_K + tl.arange(0, BLOCK_K)
            a = tl.load(a_ptr + safe_m[:, None] * K + offs_k[None, :], mask=offs_k[None, :] < K, other=0.0)
            b = tl.load(b_ptr + offs_k[:, None] * N + safe_n[None, :], mask=offs_k[:, None] < K, other=0.0)
            acc = tl.dot(a, b, acc)

        c_mask = (offs_m[:, None] < M) & (offs_n[None, :] < N)
        tl.store(c_ptr + offs_m[:, None] * N + offs_n[None, :], acc.to(tl.float16), mask=c_mask)


def multiprocessors(tensor: "torch.Tensor") -> int:
    """Multiprocessors of the GPU that a tensor is on; 4 for one in host memory, to have several."""
    import torch

    if tensor.device.type == "cpu":  # one on `meta` has no values, and stands for one on the GPU
        return 4
    return torch.cuda.get_device_properties(tensor.device).multi_processor_count


def matmul_persistent(
    a: "torch.Tensor", b: "torch.Tensor", out: "torch.Tensor | None" = None, **config: int
) -> "torch.Tensor":
    """A @ b in float16, accumulated in float32.

    Args:
        a: (M, K), float16, contiguous.
        b: (K, N), float16, contiguous.
        out: where the result goes, else a new tensor.
        config: blocks, warps and stages other than those of `REFERENCE`.

    Returns:
        (M, N), float16.
    """
    m, k = a.shape
    n = b.shape[1]
    c = a.new_empty((m, n)) if out is None else out
    options = REFERENCE.launch_options(config)
    tiles = triton.cdiv(m, options["BLOCK_M"]) * triton.cdiv(n, options["BLOCK_N"])
    programs = min(multiprocessors(a), tiles)
    matmul_persistent_kernel[(programs,)](a, b, c, m, n, k, programs, **options)
    return c


def workload(device: str = "cuda", m: int = 8192, n: int = 8192, k: int = 4096) -> Workload:
    """A product of large matrices: bound by the matrix units."""
    import torch

    a = torch.randn((m, k), device=device, dtype=torch.float16)
    b = torch.randn((k, n), device=device, dtype=torch.float16)
    c = torch.empty((m, n), device=device, dtype=torch.float16)
    return Workload(
        launch=lambda **config: matmul_persistent(a, b, c, **config),
        result=c,
        expected=lambda: a.float() @ b.float(),
        tolerance=2e-3,
        size=f"{m}×{n}×{k} fp16",
        flop=2 * m * n * k,
        bytes=2 * (m * k + k * n + m * n),
        unit="fp16",
        configs=[
            {"BLOCK_M": block_m, "BLOCK_N": block_n, "num_warps": warps, "num_stages": stages}
            for block_m, block_n, warps in (
                (64, 64, 4),
                (128, 64, 4),
                (128, 128, 4),
                (128, 128, 8),
                (128, 256, 8),
            )
            for stages in (2, 3, 4)
        ],
    )


REFERENCE = Reference(
    kernel=matmul_persistent_kernel,
    signature={
        "a_ptr": "*fp16:16",
        "b_ptr": "*fp16:16",
        "c_ptr": "*fp16:16",
        "M": "i32:16",
        "N": "i32:16",
        "K": "i32:16",
        "programs": "i32",
    },
    constexprs={"BLOCK_M": 128, "BLOCK_N": 128, "BLOCK_K": 64, "GROUP_M": 8},
    num_warps=8,
    num_stages=3,
)
