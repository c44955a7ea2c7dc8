"""Layer normalisation of every row of a matrix; a row fits into one block."""

from typing import TYPE_CHECKING

import triton
import triton.language as tl

from artifact_inspector.compiling.reference import Reference, Workload

if TYPE_CHECKING:
    import torch


@triton.jit
def layer_norm_kernel(x_ptr, y_ptr, weight_ptr, bias_ptr, stride, n_cols, eps, BLOCK_SIZE: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK_SIZE)
    mask = cols < n_cols
    x = tl.load(x_ptr + row * stride + cols, mask=mask, other=0.0).to(tl.float32)
    mean = tl.sum(x, axis=0) / n_cols
    centred = tl.where(mask, x - mean, 0.0)
    variance = tl.sum(centred * centred, axis=0) / n_cols
    normalised = centred / tl.sqrt(variance + eps)
    weight = tl.load(weight_ptr + cols, mask=mask, other=0.0).to(tl.float32)
    bias = tl.load(bias_ptr + cols, mask=mask, other=0.0).to(tl.float32)
    y = normalised * weight + bias
    tl.store(y_ptr + row * stride + cols, y.to(y_ptr.dtype.element_ty), mask=mask)


def layer_norm(
    x: "torch.Tensor",
    weight: "torch.Tensor",
    bias: "torch.Tensor",
    eps: float = 1e-5,
    out: "torch.Tensor | None" = None,
    **config: int,
) -> "torch.Tensor":
    """Layer normalisation over the last dimension.

    Args:
        x: (rows, columns), contiguous.
        weight: (columns,).
        bias: (columns,).
        eps: added to the variance.
        out: where the result goes, else a new tensor.
        config: warps other than those of `REFERENCE`.

    Returns:
        (rows, columns), in the type of `x`.
    """
    rows, cols = x.shape
    y = x.new_empty((rows, cols)) if out is None else out
    options = REFERENCE.launch_options({"BLOCK_SIZE": triton.next_power_of_2(cols), **config})
    layer_norm_kernel[(rows,)](x, y, weight, bias, x.stride(0), cols, eps, **options)
    return y


def workload(device: str = "cuda", rows: int = 131072, cols: int = 1024) -> Workload:
    """Short rows, many of them: bound by memory."""
    import torch

    x = torch.randn((rows, cols), device=device, dtype=torch.float16)
    weight, bias = torch.randn((2, cols), device=device, dtype=torch.float16)
    y = torch.empty_like(x)
    return Workload(
        launch=lambda **config: layer_norm(x, weight, bias, out=y, **config),
        result=y,
        expected=lambda: torch.nn.functional.layer_norm(x.float(), (cols,), weight.float(), bias.float()),
        tolerance=2e-3,
        size=f"{rows}×{cols} fp16",
        flop=8 * rows * cols,
        bytes=2 * (2 * rows * cols + 2 * cols),
        unit="fp32",
        configs=[{"num_warps": warps} for warps in (1, 2, 4, 8, 16)],
    )


REFERENCE = Reference(
    kernel=layer_norm_kernel,
    signature={
        "x_ptr": "*fp16:16",
        "y_ptr": "*fp16:16",
        "weight_ptr": "*fp16:16",
        "bias_ptr": "*fp16:16",
        "stride": "i32:16",
        "n_cols": "i32:16",
        "eps": "fp32",
    },
    constexprs={"BLOCK_SIZE": 1024},
    num_warps=4,
)
