"""A linear layer with its bias and activation in one kernel: `y = silu(x @ w + b)`.

A 2-D grid, one program per tile of the output, in no particular order; every load is masked in both
dimensions.
"""

from typing import TYPE_CHECKING

import triton
import triton.language as tl

from artifact_inspector.compiling.reference import Reference, Workload

if TYPE_CHECKING:
    import torch

BLOCK_M, BLOCK_N, BLOCK_K = 64, 64, 32


@triton.jit
def _fused_linear_kernel_fwd(
    x_ptr,
    w_ptr,
    b_ptr,
    y_ptr,
    M,
    N,
    K,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    pid_m = tl.program_id(0)
    pid_n = tl.program_id(1)
    offs_m = (pid_m * BLOCK_M + tl.arange(0, BLOCK_M))[:, None]
    offs_n = (pid_n * BLOCK_N + tl.arange(0, BLOCK_N))[None, :]

    z = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for k in range(0, K, BLOCK_K):
        x_k = k + tl.arange(0, BLOCK_K)[None, :]
        x = tl.load(x_ptr + offs_m * K + x_k, mask=(offs_m < M) & (x_k < K), other=0.0)
        w_k = k + tl.arange(0, BLOCK_K)[:, None]
        w = tl.load(w_ptr + w_k * N + offs_n, mask=(w_k < K) & (offs_n < N), other=0.0)
        z = tl.dot(x, w, acc=z)

    z += tl.load(b_ptr + offs_n, mask=offs_n < N, other=0.0).to(tl.float32)
    z = z * tl.sigmoid(z)
    tl.store(y_ptr + offs_m * N + offs_n, z.to(y_ptr.dtype.element_ty), mask=(offs_m < M) & (offs_n < N))


def fused_linear(
    x: "torch.Tensor",
    w: "torch.Tensor",
    b: "torch.Tensor",
    out: "torch.Tensor | None" = None,
    **config: int,
) -> "torch.Tensor":
    """silu(x @ w + b), with silu(z) = z * sigmoid(z).

    Args:
        x: (M, K), contiguous.
        w: (K, N), contiguous.
        b: (N,).
        out: where the result goes, else a new tensor.
        config: blocks, warps and stages other than those of `REFERENCE`.

    Returns:
        (M, N), in the type of `x`.
    """
    m, k = x.shape
    n = w.shape[1]
    y = x.new_empty((m, n)) if out is None else out
    options = REFERENCE.launch_options(config)
    grid = (triton.cdiv(m, options["BLOCK_M"]), triton.cdiv(n, options["BLOCK_N"]))
    _fused_linear_kernel_fwd[grid](x, w, b, y, m, n, k, **options)
    return y


def workload(device: str = "cuda", m: int = 8192, n: int = 4096, k: int = 4096) -> Workload:
    """A layer of a transformer: bound by the matrix units."""
    import torch

    x = torch.randn((m, k), device=device, dtype=torch.float16)
    w = torch.randn((k, n), device=device, dtype=torch.float16) / k**0.5
    b = torch.randn(n, device=device, dtype=torch.float16)
    y = torch.empty((m, n), device=device, dtype=torch.float16)
    return Workload(
        launch=lambda **config: fused_linear(x, w, b, y, **config),
        result=y,
        expected=lambda: torch.nn.functional.silu(x.float() @ w.float() + b.float()),
        tolerance=2e-3,
        size=f"{m}×{n}×{k} fp16",
        flop=2 * m * n * k,
        bytes=2 * (m * k + k * n + n + m * n),
        unit="fp16",
        configs=[
            {"BLOCK_M": block_m, "BLOCK_N": block_n, "BLOCK_K": block_k, "num_warps": warps, "num_stages": 3}
            for block_m, block_n, warps in (
                (64, 64, 4),
                (128, 64, 4),
                (128, 128, 4),
                (128, 128, 8),
                (128, 256, 8),
            )
            for block_k in (32, 64)
        ],
    )


REFERENCE = Reference(
    kernel=_fused_linear_kernel_fwd,
    signature={
        "x_ptr": "*fp16:16",
        "w_ptr": "*fp16:16",
        "b_ptr": "*fp16:16",
        "y_ptr": "*fp16:16",
        "M": "i32:16",
        "N": "i32:16",
        "K": "i32:16",
    },
    constexprs={"BLOCK_M": BLOCK_M, "BLOCK_N": BLOCK_N, "BLOCK_K": BLOCK_K},
    num_warps=4,
    num_stages=3,
)
