"""Kernels that leave their tensors for some sizes; the launches here do not."""

import torch
import triton
import triton.language as tl


@triton.jit
def masked(x, out, n, block: tl.constexpr):
    at = tl.program_id(0) * block + tl.arange(0, block)
    tl.store(out + at, tl.load(x + at, mask=at < n) * 2, mask=at < n)


@triton.jit
def unmasked(x, out, n, block: tl.constexpr):
    at = tl.program_id(0) * block + tl.arange(0, block)
    tl.store(out + at, tl.load(x + at) * 2)


@triton.jit
def unmasked_depth(a, b, c, m, n, k, bm: tl.constexpr, bn: tl.constexpr, bk: tl.constexpr):
    rows, columns = tl.program_id(0) * bm + tl.arange(0, bm), tl.program_id(1) * bn + tl.arange(0, bn)
    total = tl.zeros((bm, bn), tl.float32)
    for first in range(0, k, bk):
        depth = first + tl.arange(0, bk)
        left = tl.load(a + rows[:, None] * k + depth, mask=(rows[:, None] < m) & (depth < k), other=0.0)
        total = tl.dot(left, tl.load(b + depth[:, None] * n + columns, mask=columns < n, other=0.0), total)
    tl.store(c + rows[:, None] * n + columns, total, mask=(rows[:, None] < m) & (columns < n))


if __name__ == "__main__":
    x = torch.randn(1024, device="cuda")
    masked[(4,)](x, torch.empty_like(x), 1024, 256)
    unmasked[(4,)](x, torch.empty_like(x), 1024, 256)
    a, b = torch.randn(130, 96, device="cuda").half(), torch.randn(96, 70, device="cuda").half()
    unmasked_depth[(3, 3)](a, b, torch.empty(130, 70, device="cuda"), 130, 70, 96, bm=64, bn=32, bk=32)
