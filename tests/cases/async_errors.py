"""Kernels with mbarriers, tensor copies and matrix products, right ones and with one planted error; BUG marks it."""

import sys

import torch
from triton.experimental import gluon
from triton.experimental.gluon import language as ttgl
from triton.experimental.gluon.language.nvidia import blackwell, hopper
from triton.experimental.gluon.language.nvidia.hopper import mbarrier, tma
from triton.experimental.gluon.nvidia.hopper import TensorDescriptor

TILE = ttgl.constexpr(ttgl.NVMMASharedLayout(128, 16, rank=2))
ROWS = ttgl.constexpr(ttgl.BlockedLayout([1, 64], [32, 1], [4, 1], [1, 0]))


@gluon.jit
def store_tile(out_ptr, tile):
    m = ttgl.arange(0, 64, ttgl.SliceLayout(1, ROWS))
    n = ttgl.arange(0, 64, ttgl.SliceLayout(0, ROWS))
    ttgl.store(out_ptr + m[:, None] * 64 + n[None, :], tile)


@gluon.jit
def awaited_load(x, out_ptr):
    tile = ttgl.allocate_shared_memory(ttgl.float16, [64, 64], TILE)
    barrier = mbarrier.allocate_mbarrier()
    mbarrier.init(barrier, count=1)
    mbarrier.expect(barrier, x.nbytes_per_cta)
    tma.async_load(x, [0, 0], barrier, tile)
    mbarrier.wait(barrier, 0)
    store_tile(out_ptr, tile.load(ROWS))


@gluon.jit
def unawaited_load(x, out_ptr):
    tile = ttgl.allocate_shared_memory(ttgl.float16, [64, 64], TILE)
    barrier = mbarrier.allocate_mbarrier()
    mbarrier.init(barrier, count=1)
    mbarrier.expect(barrier, x.nbytes_per_cta)
    tma.async_load(x, [0, 0], barrier, tile)
    value = tile.load(ROWS)  # BUG unawaited copy
    mbarrier.wait(barrier, 0)
    store_tile(out_ptr, value)


@gluon.jit
def too_many_bytes(x, out_ptr):
    tile = ttgl.allocate_shared_memory(ttgl.float16, [64, 64], TILE)
    barrier = mbarrier.allocate_mbarrier()
    mbarrier.init(barrier, count=1)
    mbarrier.expect(barrier, x.nbytes_per_cta + 16)
    tma.async_load(x, [0, 0], barrier, tile)
    mbarrier.wait(barrier, 0)  # BUG deadlock
    store_tile(out_ptr, tile.load(ROWS))


@gluon.jit
def wrong_phase(x, out_ptr):
    tile = ttgl.allocate_shared_memory(ttgl.float16, [64, 64], TILE)
    barrier = mbarrier.allocate_mbarrier()
    mbarrier.init(barrier, count=1)
    mbarrier.expect(barrier, x.nbytes_per_cta)
    tma.async_load(x, [0, 0], barrier, tile)
    mbarrier.wait(barrier, 1)  # BUG deadlock
    store_tile(out_ptr, tile.load(ROWS))


@gluon.jit
def uninitialized_barrier(x, out_ptr):
    tile = ttgl.allocate_shared_memory(ttgl.float16, [64, 64], TILE)
    barriers = mbarrier.allocate_mbarrier(batch=2)
    mbarrier.init(barriers.index(0), count=1)
    mbarrier.expect(barriers.index(0), x.nbytes_per_cta)
    tma.async_load(x, [0, 0], barriers.index(0), tile)
    mbarrier.wait(barriers.index(0), 0)
    mbarrier.wait(barriers.index(1), 0)  # BUG mbarrier error
    store_tile(out_ptr, tile.load(ROWS))


@gluon.jit
def fenced_store(x, out_ptr):
    tile = ttgl.allocate_shared_memory(ttgl.float16, [64, 64], TILE)
    tile.store(ttgl.full([64, 64], 1.0, ttgl.float16, ROWS))
    hopper.fence_async_shared()
    tma.async_store(x, [0, 0], tile)
    tma.store_wait(0)


@gluon.jit
def overwritten_source(x, out_ptr):
    tile = ttgl.allocate_shared_memory(ttgl.float16, [64, 64], TILE)
    tile.store(ttgl.full([64, 64], 1.0, ttgl.float16, ROWS))
    hopper.fence_async_shared()
    tma.async_store(x, [0, 0], tile)
    tile.store(ttgl.full([64, 64], 2.0, ttgl.float16, ROWS))  # BUG operand in use
    tma.store_wait(0)


@gluon.jit
def wgmma(out_ptr, waits_first: ttgl.constexpr):
    layout: ttgl.constexpr = ttgl.NVMMADistributedLayout([3, 0], [4, 1], [16, 64, 16])
    a = ttgl.allocate_shared_memory(ttgl.float16, [64, 64], TILE)
    a.store(ttgl.full([64, 64], 1.0, ttgl.float16, ROWS))
    hopper.fence_async_shared()
    total = ttgl.zeros([64, 64], ttgl.float32, layout)
    token = hopper.warpgroup_mma(a, a, total, is_async=True)
    if waits_first:
        token = hopper.warpgroup_mma_wait(0, deps=(token,))
    a.store(ttgl.full([64, 64], 2.0, ttgl.float16, ROWS))  # BUG operand in use
    if not waits_first:
        token = hopper.warpgroup_mma_wait(0, deps=(token,))
    store_tile(out_ptr, ttgl.convert_layout(token, ROWS).to(ttgl.float16))


@gluon.jit
def tcgen05(out_ptr, waits_first: ttgl.constexpr):
    layout: ttgl.constexpr = blackwell.TensorMemoryLayout([128, 64], col_stride=1)
    wide: ttgl.constexpr = ttgl.BlockedLayout([1, 64], [32, 1], [4, 1], [1, 0])
    a = ttgl.allocate_shared_memory(ttgl.float16, [128, 64], TILE)
    a.store(ttgl.full([128, 64], 1.0, ttgl.float16, wide))
    b = ttgl.allocate_shared_memory(ttgl.float16, [64, 64], TILE)
    b.store(ttgl.full([64, 64], 1.0, ttgl.float16, ROWS))
    barrier = mbarrier.allocate_mbarrier()
    mbarrier.init(barrier, count=1)
    total = blackwell.allocate_tensor_memory(ttgl.float32, [128, 64], layout)
    hopper.fence_async_shared()
    blackwell.tcgen05_mma(a, b, total, use_acc=False)
    blackwell.tcgen05_commit(barrier)
    if waits_first:
        mbarrier.wait(barrier, 0)
    value = total.load(wide)  # BUG unawaited product
    if not waits_first:
        mbarrier.wait(barrier, 0)
    m = ttgl.arange(0, 128, ttgl.SliceLayout(1, wide))
    n = ttgl.arange(0, 64, ttgl.SliceLayout(0, wide))
    ttgl.store(out_ptr + m[:, None] * 64 + n[None, :], value.to(ttgl.float16))


if __name__ == "__main__":
    x, out = torch.zeros(64, 64, dtype=torch.float16), torch.zeros(128, 64, dtype=torch.float16)
    descriptor = TensorDescriptor.from_tensor(x, [64, 64], TILE.value)
    for kernel in (awaited_load, unawaited_load, too_many_bytes, wrong_phase, uninitialized_barrier, fenced_store,
                   overwritten_source):  # fmt: skip
        kernel[(1,)](descriptor, out[:64])
    for waits_first in (True, False):
        if "--blackwell" in sys.argv:
            tcgen05[(1,)](out, waits_first)
        else:
            wgmma[(1,)](out[:64], waits_first)
