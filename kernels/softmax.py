"""Softmax of every row of a matrix; a row fits into one block."""

from typing import TYPE_CHECKING

import triton
import triton.language as tl

from artifact_inspector.compiling.reference import Reference, Workload

if TYPE_CHECKING:
    import torch


@triton.jit
def softmax_kernel(x_ptr, y_ptr, stride_x, stride_y, n_cols, BLOCK_SIZE: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK_SIZE)
    mask = cols < n_cols
    x = tl.load(x_ptr + row * stride_x + cols, mask=mask, other=-float("inf")).to(tl.float32)
    numerator = tl.exp(x - tl.max(x, axis=0))
    y = numerator / tl.sum(numerator, axis=0)
    tl.store(y_ptr + row * stride_y + cols, y.to(y_ptr.dtype.element_ty), mask=mask)


def softmax(x: "torch.Tensor", out: "torch.Tensor | None" = None, **config: int) -> "torch.Tensor":
    """Softmax over the last dimension.

    Args:
        x: (rows, columns), columns contiguous.
        out: where the result goes, else a new tensor.
        config: warps other than those of `REFERENCE`.

    Returns:
        (rows, columns), in the type of `x`.
    """
    rows, cols = x.shape
    y = x.new_empty((rows, cols)) if out is None else out
    options = REFERENCE.launch_options({"BLOCK_SIZE": triton.next_power_of_2(cols), **config})
    softmax_kernel[(rows,)](x, y, x.stride(0), y.stride(0), cols, **options)
    return y


def workload(device: str = "cuda", rows: int = 131072, cols: int = 1024) -> Workload:
    """Short rows, many of them: bound by memory."""
    import torch

    x = torch.randn((rows, cols), device=device, dtype=torch.float16)
    y = torch.empty_like(x)
    return Workload(
        launch=lambda **config: softmax(x, y, **config),
        result=y,
        expected=lambda: torch.softmax(x.float(), dim=1),
        tolerance=2e-3,
        size=f"{rows}×{cols} fp16",
        flop=5 * rows * cols,
        bytes=2 * 2 * rows * cols,
        unit="fp32",
        configs=[{"num_warps": warps} for warps in (1, 2, 4, 8, 16)],
    )


REFERENCE = Reference(
    kernel=softmax_kernel,
    signature={
        "x_ptr": "*fp16:16",
        "y_ptr": "*fp16:16",
        "stride_x": "i32:16",
        "stride_y": "i32:16",
        "n_cols": "i32:16",
    },
    constexprs={"BLOCK_SIZE": 1024},
    num_warps=4,
)
