"""Many products in one launch: rows of `a` in groups, each with a matrix of its own (mixture of experts).

A fixed number of programs walks over the tiles of all groups together; how many rows a group has is read
from memory, so that the host need not know.
"""

from typing import TYPE_CHECKING

import triton
import triton.language as tl
from artifact_inspector.kernels.matmul_persistent import multiprocessors

from artifact_inspector.compiling.reference import Reference, Workload

if TYPE_CHECKING:
    import torch


@triton.jit
def grouped_gemm_kernel(
    a_ptr,
    b_ptr,
    c_ptr,
    starts_ptr,
    groups,
    N,
    K,
    programs,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    tiles_n = tl.cdiv(N, BLOCK_N)
    tile = tl.program_id(0)
    first_tile = 0
    b_group = b_ptr
    for group in range(groups):
        start = tl.load(starts_ptr + group)
        end = tl.load(starts_ptr + group + 1)
        past_tile = first_tile + tl.cdiv(end - start, BLOCK_M) * tiles_n
        while tile < past_tile:
            offs_m = start + (tile - first_tile) // tiles_n * BLOCK_M + tl.arange(0, BLOCK_M)
            offs_n = (tile - first_tile) % tiles_n * BLOCK_N + tl.arange(0, BLOCK_N)
            offs_k = tl.arange(0, BLOCK_K)
            a_ptrs = a_ptr + offs_m[:, None] * K + offs_k[None, :]
            b_ptrs = b_group + offs_k[:, None] * N + offs_n[None, :]
            a_mask = offs_m[:, None] < end
            b_mask = offs_n[None, :] < N

            acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
            for k in range(0, K, BLOCK_K):
                a = tl.load(a_ptrs, mask=a_mask & (offs_k[None, :] < K - k), other=0.0)
                b = tl.load(b_ptrs, mask=b_mask & (offs_k[:, None] < K - k), other=0.0)
                acc = tl.dot(a, b, acc)
                a_ptrs += BLOCK_K
                b_ptrs += BLOCK_K * N

            tl.store(c_ptr + offs_m[:, None] * N + offs_n[None, :], acc.to(tl.float16), mask=a_mask & b_mask)
            tile += programs
        first_tile = past_tile
        b_group += K * N


def grouped_gemm(
    a: "torch.Tensor",
    b: "torch.Tensor",
    starts: "torch.Tensor",
    out: "torch.Tensor | None" = None,
    **config: int,
) -> "torch.Tensor":
    """a[start:end] @ b[group] for every group, in float16, accumulated in float32.

    Args:
        a: (rows, K), float16, contiguous, sorted by group.
        b: (groups, K, N), float16, contiguous.
        starts: (groups + 1,), int32: where each group starts, and after the last the number of rows.
        out: where the result goes, else a new tensor.
        config: blocks, warps and stages other than those of `REFERENCE`.

    Returns:
        (rows, N), float16.
    """
    rows, k = a.shape
    groups, _, n = b.shape
    c = a.new_empty((rows, n)) if out is None else out
    options = REFERENCE.launch_options(config)
    programs = multiprocessors(a)
    grouped_gemm_kernel[(programs,)](a, b, c, starts, groups, n, k, programs, **options)
    return c


def workload(
    device: str = "cuda", rows: int = 16384, groups: int = 16, n: int = 4096, k: int = 4096
) -> Workload:
    """Tokens of 16 experts, some with many and some with few: bound by the matrix units."""
    import torch

    a = torch.randn((rows, k), device=device, dtype=torch.float16)
    b = torch.randn((groups, k, n), device=device, dtype=torch.float16)
    # the groups decide addresses and the number of blocks: the same in every run
    seeded = torch.Generator().manual_seed(0)
    inner = torch.randperm(rows - 1, generator=seeded)[: groups - 1].sort().values + 1
    starts = torch.cat([torch.tensor([0]), inner, torch.tensor([rows])]).to(torch.int32)
    c = torch.empty((rows, n), device=device, dtype=torch.float16)
    on_device = starts.to(device)

    def expected():
        ends = zip(starts[:-1], starts[1:], b, strict=True)
        return torch.cat([a[start:end].float() @ matrix.float() for start, end, matrix in ends])

    return Workload(
        launch=lambda **config: grouped_gemm(a, b, on_device, c, **config),
        result=c,
        expected=expected,
        tolerance=2e-3,
        size=f"{rows} rows in {groups} groups, {n}×{k} fp16",
        flop=2 * rows * n * k,
        bytes=2 * (rows * k + groups * k * n + rows * n),
        unit="fp16",
        configs=[
            {"BLOCK_M": block_m, "BLOCK_N": block_n, "num_warps": warps, "num_stages": stages}
            for block_m, block_n, warps in ((64, 64, 4), (128, 64, 4), (128, 128, 4), (128, 128, 8))
            for stages in (2, 3)
        ],
    )


REFERENCE = Reference(
    kernel=grouped_gemm_kernel,
    signature={
        "a_ptr": "*fp16:16",
        "b_ptr": "*fp16:16",
        "c_ptr": "*fp16:16",
        "starts_ptr": "*i32:16",
        "groups": "i32:16",
        "N": "i32:16",
        "K": "i32:16",
        "programs": "i32",
    },
    constexprs={"BLOCK_M": 128, "BLOCK_N": 128, "BLOCK_K": 64},
    num_warps=8,
    num_stages=3,
)
