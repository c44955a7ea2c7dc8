"""Kernels with one planted memory error each, and the nearest kernels without; BUG marks the line."""
# ruff: noqa: N803 - with the naming of Triton

import torch
import triton
import triton.language as tl
from triton.experimental import gluon
from triton.experimental.gluon import language as ttgl
from triton.experimental.gluon.language.nvidia.ampere import async_copy


@triton.jit
def add(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, x, mask=mask)


@triton.jit
def add_without_mask(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets)  # BUG out-of-bounds
    tl.store(out_ptr + offsets, x, mask=offsets < n)


@triton.jit
def store_without_mask(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n)
    tl.store(out_ptr + offsets, x)  # BUG out-of-bounds


@triton.jit
def gather(x_ptr, index_ptr, out_ptr, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    index = tl.load(index_ptr + offsets)
    x = tl.load(x_ptr + index)
    tl.store(out_ptr + offsets, x)


@triton.jit
def gather_too_far(x_ptr, index_ptr, out_ptr, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    index = tl.load(index_ptr + offsets)
    x = tl.load(x_ptr + index)  # BUG out-of-bounds
    tl.store(out_ptr + offsets, x)


@triton.jit
def sum_with_atomics(x_ptr, out_ptr, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.atomic_add(out_ptr, tl.sum(tl.load(x_ptr + offsets)))


@triton.jit
def sum_without_atomics(x_ptr, out_ptr, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    total = tl.load(out_ptr) + tl.sum(tl.load(x_ptr + offsets))
    tl.store(out_ptr, total)  # BUG race


@triton.jit
def count_without_atomics(x_ptr, count_ptr, BLOCK: tl.constexpr):
    value = tl.load(x_ptr + tl.program_id(0) * BLOCK + tl.arange(0, BLOCK))
    count = tl.load(count_ptr + value)
    tl.store(count_ptr + value, count + 1)  # BUG race


@triton.jit
def overlapping_rows(x_ptr, out_ptr, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    target = (tl.program_id(0) // 2) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + target, tl.load(x_ptr + offsets))  # BUG race


@triton.jit
def double_in_place(x_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n)
    tl.store(x_ptr + offsets, 2 * x, mask=offsets < n)


@triton.jit
def shift_in_place(x_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets + 1, mask=offsets + 1 < n)
    tl.store(x_ptr + offsets, x, mask=offsets < n)  # BUG race


@triton.jit
def strided_rows(x_ptr, out_ptr, stride, BLOCK: tl.constexpr):
    row = tl.multiple_of(tl.program_id(0) * stride, 16)
    x = tl.load(x_ptr + row + tl.arange(0, BLOCK))
    tl.store(out_ptr + tl.program_id(0) * BLOCK + tl.arange(0, BLOCK), x)


@triton.jit
def falsely_aligned_rows(x_ptr, out_ptr, stride, BLOCK: tl.constexpr):
    row = tl.multiple_of(tl.program_id(0) * stride, 16)
    x = tl.load(x_ptr + row + tl.arange(0, BLOCK))  # BUG misaligned
    tl.store(out_ptr + tl.program_id(0) * BLOCK + tl.arange(0, BLOCK), x)


@triton.jit
def wrapped_offset(x_ptr, out_ptr, row, stride, BLOCK: tl.constexpr):
    x = tl.load(x_ptr + row * stride + tl.arange(0, BLOCK))  # BUG offset-overflow
    tl.store(out_ptr + tl.arange(0, BLOCK), x)


@triton.jit
def matmul(a_ptr, b_ptr, c_ptr, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    n = tl.program_id(1) * BN + tl.arange(0, BN)
    k = tl.arange(0, BK)
    total = tl.zeros((BM, BN), tl.float32)
    for start in range(0, K, BK):
        a = tl.load(a_ptr + m[:, None] * K + start + k[None, :])
        b = tl.load(b_ptr + (start + k)[:, None] * N + n[None, :])
        total += tl.dot(a, b)
    tl.store(c_ptr + m[:, None] * N + n[None, :], total)


@gluon.jit
def awaited_copy(x_ptr, out_ptr, N: ttgl.constexpr):
    wide: ttgl.constexpr = ttgl.BlockedLayout([4], [32], [4], [0])
    narrow: ttgl.constexpr = ttgl.BlockedLayout([1], [32], [4], [0])
    buffer = ttgl.allocate_shared_memory(ttgl.float32, [N], ttgl.SwizzledSharedLayout(1, 1, 1, [0]))
    async_copy.async_load(buffer, x_ptr + ttgl.arange(0, N, wide))
    async_copy.commit_group()
    async_copy.wait_group(0)
    ttgl.store(out_ptr + ttgl.arange(0, N, narrow), buffer.load(narrow))


@gluon.jit
def unawaited_copy(x_ptr, out_ptr, N: ttgl.constexpr):
    wide: ttgl.constexpr = ttgl.BlockedLayout([4], [32], [4], [0])
    narrow: ttgl.constexpr = ttgl.BlockedLayout([1], [32], [4], [0])
    buffer = ttgl.allocate_shared_memory(ttgl.float32, [N], ttgl.SwizzledSharedLayout(1, 1, 1, [0]))
    async_copy.async_load(buffer, x_ptr + ttgl.arange(0, N, wide))
    async_copy.commit_group()
    x = buffer.load(narrow)  # BUG unawaited copy
    ttgl.store(out_ptr + ttgl.arange(0, N, narrow), x)


@gluon.jit
def wrong_buffer(x_ptr, out_ptr, N: ttgl.constexpr):
    narrow: ttgl.constexpr = ttgl.BlockedLayout([1], [32], [4], [0])
    buffers = ttgl.allocate_shared_memory(ttgl.float32, [2, N], ttgl.SwizzledSharedLayout(1, 1, 1, [0]))
    offsets = ttgl.arange(0, N, narrow)
    buffers.index(0).store(ttgl.load(x_ptr + offsets))
    x = buffers.index(1).load(narrow)  # BUG uninitialized shared memory
    ttgl.store(out_ptr + offsets, x)


def launch_all(has_async_copies: bool) -> None:
    """Launch every kernel; all tensors exist before the first launch, so that their integers are recorded."""
    x, y, scalar = torch.zeros(1000), torch.zeros(4096), torch.zeros(1)
    index, far_index = torch.arange(1024) % 100, torch.arange(1024) % 100 + 2
    small, half, block = torch.zeros(100), torch.zeros(512), torch.zeros(1024)
    a, c = torch.zeros(512, 256, dtype=torch.float16), torch.zeros(512, 512)
    b = torch.zeros(256, 512, dtype=torch.float16)
    add[(4,)](x, torch.zeros(1000), 1000, BLOCK=256)
    add_without_mask[(4,)](x, torch.zeros(1000), 1000, BLOCK=256)
    store_without_mask[(4,)](x, torch.zeros(1000), 1000, BLOCK=256)
    gather[(4,)](small, index, block, BLOCK=256)
    gather_too_far[(4,)](small, far_index, block, BLOCK=256)
    sum_with_atomics[(4,)](block, scalar, BLOCK=256)
    sum_without_atomics[(4,)](block, scalar, BLOCK=256)
    count_without_atomics[(4,)](index, torch.zeros(100, dtype=torch.int64), BLOCK=256)
    overlapping_rows[(4,)](block, half, BLOCK=256)
    double_in_place[(4,)](x, 1000, BLOCK=256)
    shift_in_place[(4,)](x, 1000, BLOCK=256)
    strided_rows[(4,)](y, block, 272, BLOCK=256)
    falsely_aligned_rows[(4,)](y, block, 257, BLOCK=256)
    wrapped_offset[(1,)](y, torch.zeros(256), 2, 272, BLOCK=256)
    matmul[(8, 4)](a, b, c, 512, 256, BM=64, BN=128, BK=32)
    matmul[(4, 1)](a, b, torch.empty_like(c), 512, 256, BM=64, BN=128, BK=32)
    if has_async_copies:
        awaited_copy[(1,)](block, torch.zeros(1024), 1024)
        unawaited_copy[(1,)](block, torch.zeros(1024), 1024)
        wrong_buffer[(1,)](block, torch.zeros(1024), 1024)


if __name__ == "__main__":
    import sys

    launch_all(has_async_copies="--async" in sys.argv)
