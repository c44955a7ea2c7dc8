"""A block matmul in microscaled 4-bit floats: `c = a @ b.T`, with a scale for every 32 values along K.

`tl.dot_scaled` is one instruction on targets that have it (sm_100, sm_120, gfx950, gfx1250); elsewhere
Triton widens the operands to bfloat16 first.
"""

from typing import TYPE_CHECKING

import triton
import triton.language as tl

from artifact_inspector.compiling.reference import Reference, Workload

if TYPE_CHECKING:
    import torch

PER_SCALE = 32
VALUES = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0)


@triton.jit
def matmul_scaled_kernel(
    a_ptr,
    a_scale_ptr,
    b_ptr,
    b_scale_ptr,
    c_ptr,
    M,
    N,
    K,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    offs_m = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    offs_n = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    offs_byte = tl.arange(0, BLOCK_K // 2)
    offs_scale = tl.arange(0, BLOCK_K // 32)
    a_ptrs = a_ptr + offs_m[:, None] * (K // 2) + offs_byte[None, :]
    b_ptrs = b_ptr + offs_n[None, :] * (K // 2) + offs_byte[:, None]
    a_scale_ptrs = a_scale_ptr + offs_m[:, None] * (K // 32) + offs_scale[None, :]
    b_scale_ptrs = b_scale_ptr + offs_n[:, None] * (K // 32) + offs_scale[None, :]

    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for _ in range(0, K, BLOCK_K):
        a = tl.load(a_ptrs)
        b = tl.load(b_ptrs)
        a_scale = tl.load(a_scale_ptrs)
        b_scale = tl.load(b_scale_ptrs)
        acc = tl.dot_scaled(a, a_scale, "e2m1", b, b_scale, "e2m1", acc)
        a_ptrs += BLOCK_K // 2
        b_ptrs += BLOCK_K // 2
        a_scale_ptrs += BLOCK_K // 32
        b_scale_ptrs += BLOCK_K // 32

    tl.store(c_ptr + offs_m[:, None] * N + offs_n[None, :], acc.to(tl.bfloat16))


def matmul_scaled(
    a: "torch.Tensor",
    a_scale: "torch.Tensor",
    b: "torch.Tensor",
    b_scale: "torch.Tensor",
    out: "torch.Tensor | None" = None,
    **config: int,
) -> "torch.Tensor":
    """A @ b.T in bfloat16, accumulated in float32.

    Args:
        a: (M, K // 2), uint8: two values of a row in a byte, the first in its lower half; M and K
            multiples of a block.
        a_scale: (M, K // 32), uint8: exponents, 127 is a factor of 1.
        b: (N, K // 2), like `a`.
        b_scale: (N, K // 32), like `a_scale`.
        out: where the result goes, else a new tensor.
        config: blocks, warps and stages other than those of `REFERENCE`.

    Returns:
        (M, N), bfloat16.
    """
    import torch

    m, k = a.shape[0], 2 * a.shape[1]
    n = b.shape[0]
    c = a.new_empty((m, n), dtype=torch.bfloat16) if out is None else out
    options = REFERENCE.launch_options(config)
    grid = (m // options["BLOCK_M"], n // options["BLOCK_N"])
    matmul_scaled_kernel[grid](a, a_scale, b, b_scale, c, m, n, k, **options)
    return c


def widen(packed: "torch.Tensor", scales: "torch.Tensor") -> "torch.Tensor":
    """What bytes of two 4-bit floats and their scales stand for.

    Args:
        packed: (rows, K // 2), uint8.
        scales: (rows, K // 32), uint8.

    Returns:
        (rows, K), float32.
    """
    import torch

    table = torch.tensor(VALUES + tuple(-value for value in VALUES), device=packed.device)
    values = torch.stack([table[(packed & 0xF).int()], table[(packed >> 4).int()]], dim=2)
    factors = torch.exp2(scales.float() - 127).repeat_interleave(PER_SCALE, dim=1)
    return values.reshape(packed.shape[0], -1) * factors


def workload(device: str = "cuda", m: int = 8192, n: int = 8192, k: int = 4096) -> Workload:
    """A product of large matrices: bound by the matrix units."""
    import torch

    a, b = (torch.randint(0, 256, (rows, k // 2), device=device, dtype=torch.uint8) for rows in (m, n))
    a_scale, b_scale = (
        torch.randint(124, 131, (rows, k // PER_SCALE), device=device, dtype=torch.uint8) for rows in (m, n)
    )
    c = torch.empty((m, n), device=device, dtype=torch.bfloat16)
    return Workload(
        launch=lambda **config: matmul_scaled(a, a_scale, b, b_scale, c, **config),
        result=c,
        expected=lambda: widen(a, a_scale) @ widen(b, b_scale).T,
        tolerance=5e-3,
        size=f"{m}×{n}×{k} mxfp4",
        flop=2 * m * n * k,
        bytes=(m + n) * (k // 2 + k // PER_SCALE) + 2 * m * n,
        unit="fp4",
        configs=[
            {"BLOCK_M": block_m, "BLOCK_N": block_n, "BLOCK_K": block_k, "num_warps": warps}
            for block_m, block_n, warps in ((64, 64, 4), (128, 64, 4), (128, 128, 4), (128, 128, 8))
            for block_k in (64, 128)
        ],
    )


REFERENCE = Reference(
    kernel=matmul_scaled_kernel,
    signature={
        "a_ptr": "*u8:16",
        "a_scale_ptr": "*u8:16",
        "b_ptr": "*u8:16",
        "b_scale_ptr": "*u8:16",
        "c_ptr": "*bf16:16",
        "M": "i32:16",
        "N": "i32:16",
        "K": "i32:16",
    },
    constexprs={"BLOCK_M": 128, "BLOCK_N": 64, "BLOCK_K": 128},
    num_warps=8,
    num_stages=2,
)
