"""Kernels whose stored values are compared with those of Triton's interpreter."""

import torch
import triton
import triton.language as tl


@triton.jit
def product(a, b, c, rows: tl.constexpr, columns: tl.constexpr, depth: tl.constexpr, tile: tl.constexpr):
    m, n, k = tl.arange(0, rows), tl.arange(0, columns), tl.arange(0, tile)
    acc = tl.zeros((rows, columns), tl.float32)
    for first in range(0, depth, tile):
        x = tl.load(a + m[:, None] * depth + first + k[None, :])
        acc = tl.dot(x, tl.load(b + (first + k)[:, None] * columns + n[None, :]), acc)
    tl.store(c + m[:, None] * columns + n[None, :], acc.to(c.dtype.element_ty))


@triton.jit
def normalize(x, out, n, block: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, block)
    values = tl.load(x + row * n + at, mask=at < n, other=-float("inf")).to(tl.float32)
    powers = tl.exp(values - tl.max(values, axis=0))
    tl.store(out + row * n + at, (powers / tl.sum(powers, axis=0)).to(out.dtype.element_ty), mask=at < n)


@triton.jit
def mix(x, y, out, order, total, block: tl.constexpr):
    at = tl.program_id(0) * block + tl.arange(0, block)
    a, b = tl.load(x + at), tl.load(y + at)
    tl.store(out + at, tl.cumsum(a * b + a, 0) + tl.sqrt(tl.abs(a)))
    tl.store(order + at, tl.sort(b))
    tl.atomic_add(total + at % 4, a)


if __name__ == "__main__":
    for dtype in (torch.float16, torch.bfloat16, torch.float32):
        a, b = torch.randn(64, 96, device="cuda").to(dtype), torch.randn(96, 64, device="cuda").to(dtype)
        product[(1,)](a, b, torch.empty(64, 64, device="cuda", dtype=dtype), 64, 64, 96, 32)
        x = torch.randn(3, 100, device="cuda").to(dtype)
        normalize[(3,)](x, torch.empty_like(x), 100, 128)
    x, y = torch.randn(512, device="cuda"), torch.randn(512, device="cuda")
    mix[(4,)](x, y, torch.empty_like(x), torch.empty_like(y), torch.zeros(4, device="cuda"), 128)
