"""How often each byte occurs: a histogram of every block, added up over all programs by atomics."""

from typing import TYPE_CHECKING

import triton
import triton.language as tl

from artifact_inspector.compiling.reference import Reference, Workload

if TYPE_CHECKING:
    import torch

BINS = 256


@triton.jit
def histogram_kernel(x_ptr, counts_ptr, length, BINS: tl.constexpr, BLOCK: tl.constexpr, TURNS: tl.constexpr):
    first = tl.program_id(0) * BLOCK * TURNS
    counts = tl.zeros((BINS,), dtype=tl.int32)
    for turn in range(TURNS):
        offs = first + turn * BLOCK + tl.arange(0, BLOCK)
        inside = offs < length
        values = tl.load(x_ptr + offs, mask=inside, other=0).to(tl.int32)
        counts += tl.histogram(values, BINS, mask=inside)
    tl.atomic_add(counts_ptr + tl.arange(0, BINS), counts, sem="relaxed")


def histogram(x: "torch.Tensor", out: "torch.Tensor | None" = None, **config: int) -> "torch.Tensor":
    """How often each of 256 values occurs.

    Args:
        x: (length,), uint8, contiguous.
        out: (256,), int32, to add to; zeros without it.
        config: blocks, iterations and warps other than those of `REFERENCE`.

    Returns:
        (256,), int32.
    """
    import torch

    counts = x.new_zeros(BINS, dtype=torch.int32) if out is None else out
    options = REFERENCE.launch_options(config)
    grid = (triton.cdiv(x.numel(), options["BLOCK"] * options["TURNS"]),)
    histogram_kernel[grid](x, counts, x.numel(), **options)
    return counts


def workload(device: str = "cuda", length: int = 1 << 28) -> Workload:
    """A quarter of a gigabyte: bound by memory, if the counting keeps up."""
    import torch

    x = torch.randint(0, BINS, (length,), device=device, dtype=torch.uint8)
    counts = torch.zeros(BINS, device=device, dtype=torch.int32)
    return Workload(
        launch=lambda **config: histogram(x, counts, **config),
        result=counts,
        expected=lambda: torch.bincount(x.int(), minlength=BINS),
        tolerance=0.0,
        adds=True,
        size=f"{length} bytes, {BINS} bins",
        bytes=length + 4 * BINS,
        configs=[
            {"BLOCK": block, "TURNS": turns, "num_warps": warps}
            for block in (1024, 4096)
            for turns in (4, 16, 64)
            for warps in (4, 8)
        ],
    )


REFERENCE = Reference(
    kernel=histogram_kernel,
    signature={"x_ptr": "*u8:16", "counts_ptr": "*i32:16", "length": "i32:16"},
    constexprs={"BINS": BINS, "BLOCK": 1024, "TURNS": 16},
    num_warps=4,
)
