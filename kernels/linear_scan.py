"""A linear recurrence along every row: `y[t] = a[t] * y[t - 1] + x[t]`, as state-space models have it.

A row is taken in blocks; inside a block the recurrence is an associative scan, and its last state is
carried into the next block.
"""

from typing import TYPE_CHECKING

import triton
import triton.language as tl

from artifact_inspector.compiling.reference import Reference, Workload

if TYPE_CHECKING:
    import torch


@triton.jit
def _then(a1, x1, a2, x2):
    """Two steps y -> a * y + x, one after the other, are one step of the same form."""
    return a1 * a2, a2 * x1 + x2


@triton.jit
def linear_scan_kernel(a_ptr, x_ptr, y_ptr, length, BLOCK: tl.constexpr):
    row = tl.program_id(0) * length
    offs = tl.arange(0, BLOCK)
    state = 0.0
    for start in range(0, length, BLOCK):
        inside = start + offs < length
        a = tl.load(a_ptr + row + start + offs, mask=inside, other=1.0)
        x = tl.load(x_ptr + row + start + offs, mask=inside, other=0.0)
        factors, sums = tl.associative_scan((a, x), 0, _then)
        y = factors * state + sums
        tl.store(y_ptr + row + start + offs, y, mask=inside)
        state = tl.sum(tl.where(offs == BLOCK - 1, y, 0.0), axis=0)


def linear_scan(
    a: "torch.Tensor", x: "torch.Tensor", out: "torch.Tensor | None" = None, **config: int
) -> "torch.Tensor":
    """y[t] = a[t] * y[t - 1] + x[t] for every row, with y[-1] = 0.

    Args:
        a: (rows, length), float32, contiguous.
        x: (rows, length), float32, contiguous.
        out: where the result goes, else a new tensor.
        config: blocks, warps and stages other than those of `REFERENCE`.

    Returns:
        (rows, length), float32.
    """
    rows, length = x.shape
    y = x.new_empty((rows, length)) if out is None else out
    linear_scan_kernel[(rows,)](a, x, y, length, **REFERENCE.launch_options(config))
    return y


def workload(device: str = "cuda", rows: int = 8192, length: int = 8192) -> Workload:
    """Many long rows: bound by memory, if the scan keeps up."""
    import torch

    a = torch.rand((rows, length), device=device)
    x = torch.randn((rows, length), device=device)
    y = torch.empty_like(x)

    def expected():
        state = torch.zeros(rows, device=device, dtype=torch.float64)
        states = torch.empty_like(x)
        for step in range(length):
            state = a[:, step] * state + x[:, step]
            states[:, step] = state
        return states

    return Workload(
        launch=lambda **config: linear_scan(a, x, y, **config),
        result=y,
        expected=expected,
        tolerance=1e-5,
        size=f"{rows}×{length} fp32",
        flop=2 * rows * length,
        bytes=3 * 4 * rows * length,
        unit="fp32",
        configs=[
            {"BLOCK": block, "num_warps": warps} for block in (256, 512, 1024, 2048) for warps in (1, 2, 4, 8)
        ],
    )


REFERENCE = Reference(
    kernel=linear_scan_kernel,
    signature={"a_ptr": "*fp32:16", "x_ptr": "*fp32:16", "y_ptr": "*fp32:16", "length": "i32:16"},
    constexprs={"BLOCK": 1024},
    num_warps=4,
)
