"""The block matmul of Triton's tutorial: `c = a @ b`.

A 1-D grid whose programs walk over the output in groups of rows, so that neighbours share their
loads in L2. Rows and columns past the end wrap around (`% M`, `% N`), so only K needs a mask.
"""

from functools import cache
from typing import TYPE_CHECKING

import triton
import triton.language as tl

from artifact_inspector.compiling.reference import Reference, Workload

if TYPE_CHECKING:
    import torch


def _config(block_m, block_n, block_k, num_stages, num_warps):
    blocks = {"BLOCK_SIZE_M": block_m, "BLOCK_SIZE_N": block_n, "BLOCK_SIZE_K": block_k, "GROUP_SIZE_M": 8}
    return triton.Config(blocks, num_stages=num_stages, num_warps=num_warps)


AUTOTUNE_CONFIGS = [
    _config(128, 256, 64, 3, 8),
    _config(64, 256, 32, 4, 4),
    _config(128, 128, 32, 4, 4),
    _config(128, 64, 32, 4, 4),
    _config(64, 128, 32, 4, 4),
    _config(128, 32, 32, 4, 4),
    _config(64, 32, 32, 5, 2),
    _config(32, 64, 32, 5, 2),
    _config(64, 64, 32, 4, 4),
    _config(128, 256, 128, 3, 8),
    _config(256, 128, 128, 3, 8),
    _config(256, 64, 128, 4, 4),
    _config(64, 256, 128, 4, 4),
    _config(128, 128, 128, 4, 4),
    _config(128, 64, 64, 4, 4),
    _config(64, 128, 64, 4, 4),
    _config(128, 32, 64, 4, 4),
]


@triton.jit
def matmul_kernel(
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
    BLOCK_SIZE_M: tl.constexpr,
    BLOCK_SIZE_N: tl.constexpr,
    BLOCK_SIZE_K: tl.constexpr,
    GROUP_SIZE_M: tl.constexpr,
):
    pid = tl.program_id(axis=0)
    num_pid_m = tl.cdiv(M, BLOCK_SIZE_M)
    num_pid_n = tl.cdiv(N, BLOCK_SIZE_N)
    num_pid_in_group = GROUP_SIZE_M * num_pid_n
    group_id = pid // num_pid_in_group
    first_pid_m = group_id * GROUP_SIZE_M
    group_size_m = min(num_pid_m - first_pid_m, GROUP_SIZE_M)
    pid_m = first_pid_m + ((pid % num_pid_in_group) % group_size_m)
    pid_n = (pid % num_pid_in_group) // group_size_m

    offs_am = (pid_m * BLOCK_SIZE_M + tl.arange(0, BLOCK_SIZE_M)) % M
    offs_bn = (pid_n * BLOCK_SIZE_N + tl.arange(0, BLOCK_SIZE_N)) % N
    offs_k = tl.arange(0, BLOCK_SIZE_K)
    a_ptrs = a_ptr + (offs_am[:, None] * stride_am + offs_k[None, :] * stride_ak)
    b_ptrs = b_ptr + (offs_k[:, None] * stride_bk + offs_bn[None, :] * stride_bn)

    accumulator = tl.zeros((BLOCK_SIZE_M, BLOCK_SIZE_N), dtype=tl.float32)
    for k in range(tl.cdiv(K, BLOCK_SIZE_K)):
        a = tl.load(a_ptrs, mask=offs_k[None, :] < K - k * BLOCK_SIZE_K, other=0.0)
        b = tl.load(b_ptrs, mask=offs_k[:, None] < K - k * BLOCK_SIZE_K, other=0.0)
        # `+=`, not `tl.dot(a, b, accumulator)`, which Triton 2.1 does not know
        accumulator += tl.dot(a, b)
        a_ptrs += BLOCK_SIZE_K * stride_ak
        b_ptrs += BLOCK_SIZE_K * stride_bk
    c = accumulator.to(tl.float16)

    offs_cm = pid_m * BLOCK_SIZE_M + tl.arange(0, BLOCK_SIZE_M)
    offs_cn = pid_n * BLOCK_SIZE_N + tl.arange(0, BLOCK_SIZE_N)
    c_ptrs = c_ptr + stride_cm * offs_cm[:, None] + stride_cn * offs_cn[None, :]
    tl.store(c_ptrs, c, mask=(offs_cm[:, None] < M) & (offs_cn[None, :] < N))


@cache
def autotuned_matmul_kernel():
    """The kernel behind its autotuner, made on first use because some Tritons ask for a GPU there."""
    return triton.autotune(configs=AUTOTUNE_CONFIGS, key=["M", "N", "K"])(matmul_kernel)


def matmul(
    a: "torch.Tensor",
    b: "torch.Tensor",
    out: "torch.Tensor | None" = None,
    *,
    autotune: bool = False,
    **config: int,
) -> "torch.Tensor":
    """A @ b in float16, accumulated in float32.

    Args:
        a: (M, K), float16.
        b: (K, N), float16.
        out: where the result goes, else a new tensor.
        autotune: time all of `AUTOTUNE_CONFIGS` on the first call for a shape and take the fastest.
        config: blocks, warps and stages other than those of `REFERENCE`.

    Returns:
        (M, N), float16.
    """
    m, k = a.shape
    n = b.shape[1]
    c = a.new_empty((m, n)) if out is None else out
    arguments = (a, b, c, m, n, k, *a.stride(), *b.stride(), *c.stride())

    def grid(meta):
        return (triton.cdiv(m, meta["BLOCK_SIZE_M"]) * triton.cdiv(n, meta["BLOCK_SIZE_N"]),)

    if autotune:
        autotuned_matmul_kernel()[grid](*arguments)
    else:
        matmul_kernel[grid](*arguments, **REFERENCE.launch_options(config))
    return c


def workload(device: str = "cuda", m: int = 8192, n: int = 8192, k: int = 4096) -> Workload:
    """A product of large matrices: bound by the matrix units."""
    import torch

    a = torch.randn((m, k), device=device, dtype=torch.float16)
    b = torch.randn((k, n), device=device, dtype=torch.float16)
    c = torch.empty((m, n), device=device, dtype=torch.float16)
    return Workload(
        launch=lambda **config: matmul(a, b, c, **config),
        result=c,
        expected=lambda: a.float() @ b.float(),
        tolerance=2e-3,
        size=f"{m}×{n}×{k} fp16",
        flop=2 * m * n * k,
        bytes=2 * (m * k + k * n + m * n),
        unit="fp16",
        configs=[
            {**config.kwargs, "num_warps": config.num_warps, "num_stages": config.num_stages}
            for config in AUTOTUNE_CONFIGS
        ],
    )


REFERENCE = Reference(
    kernel=matmul_kernel,
    signature={
        "a_ptr": "*fp16:16",
        "b_ptr": "*fp16:16",
        "c_ptr": "*fp16:16",
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
    constexprs={"BLOCK_SIZE_M": 128, "BLOCK_SIZE_N": 32, "BLOCK_SIZE_K": 32, "GROUP_SIZE_M": 8},
    num_warps=4,
    num_stages=4,
    configs=AUTOTUNE_CONFIGS,
)
