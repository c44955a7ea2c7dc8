"""A loop that asks to be unrolled, and one that the same file leaves as it is written."""

import triton
import triton.language as tl


@triton.jit
def row_sums(x, out, n, block: tl.constexpr, factor: tl.constexpr):
    offsets = tl.arange(0, block)
    total = tl.zeros([block], tl.float32)
    for at in tl.range(0, n, block, loop_unroll_factor=factor):
        total += tl.load(x + at + offsets)
    tl.store(out + offsets, total)
