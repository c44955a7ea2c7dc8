# ruff: noqa: N803, N806, ANN, S101
"""Kernels whose authors order copies and matrix operations themselves, in Gluon: the sources of `schedules.tar.xz`.

`capture -t H100,B200,MI350X -o schedules -- python schedules.py` makes the entries with Triton 3.9.0; each target
compiles its own kernels. Their distances follow from BUFFERS: see `test_schedules.py`.
"""

import sys

import torch
import triton
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.amd.cdna4 import async_copy, buffer_store, mfma
from triton.experimental.gluon.language.nvidia import hopper
from triton.experimental.gluon.language.nvidia.blackwell import (
    TensorMemoryLayout,
    allocate_tensor_memory,
    tcgen05_commit,
    tcgen05_mma,
)
from triton.experimental.gluon.language.nvidia.hopper import mbarrier, tma
from triton.experimental.gluon.nvidia.hopper import TensorDescriptor


@gluon.jit
def fetch(a_desc, b_desc, k, ready, a_tiles, b_tiles, slot):
    bar = ready.index(slot)
    mbarrier.expect(bar, a_desc.block_type.nbytes + b_desc.block_type.nbytes)
    tma.async_load(a_desc, [0, k], bar, a_tiles.index(slot))
    tma.async_load(b_desc, [k, 0], bar, b_tiles.index(slot))


@gluon.jit
def ring_matmul(a_desc, b_desc, c_desc, K, BUFFERS: gl.constexpr, AHEAD: gl.constexpr, num_warps: gl.constexpr):
    """A ring of BUFFERS tiles; tile k + AHEAD is copied before tile k is multiplied, and its wgmma stays in flight."""
    M: gl.constexpr = a_desc.block_type.shape[0]
    STEP: gl.constexpr = a_desc.block_type.shape[1]
    N: gl.constexpr = b_desc.block_type.shape[1]
    a_tiles = gl.allocate_shared_memory(gl.float16, [BUFFERS, M, STEP], a_desc.layout)
    b_tiles = gl.allocate_shared_memory(gl.float16, [BUFFERS, STEP, N], b_desc.layout)
    ready = gl.allocate_shared_memory(gl.int64, [BUFFERS, 1], mbarrier.MBarrierLayout())
    for slot in gl.static_range(BUFFERS):
        mbarrier.init(ready.index(slot), count=1)
    layout: gl.constexpr = gl.NVMMADistributedLayout(
        version=[3, 0], warps_per_cta=[num_warps, 1], instr_shape=[16, N, 16]
    )
    total = hopper.warpgroup_mma_init(gl.zeros([M, N], gl.float32, layout))
    for step in gl.static_range(AHEAD):
        fetch(a_desc, b_desc, step * STEP, ready, a_tiles, b_tiles, step)
    write = AHEAD
    read = 0
    phase = 0
    for k in range(AHEAD * STEP, K, STEP):
        fetch(a_desc, b_desc, k, ready, a_tiles, b_tiles, write)
        mbarrier.wait(ready.index(read), phase)
        total = hopper.warpgroup_mma_wait(0, deps=(total,))
        total = hopper.warpgroup_mma(a_tiles.index(read), b_tiles.index(read), total, is_async=True)
        wraps = read == BUFFERS - 1
        read = gl.where(wraps, 0, read + 1)
        phase = gl.where(wraps, phase ^ 1, phase)
        write = gl.where(write == BUFFERS - 1, 0, write + 1)
    total = hopper.warpgroup_mma_wait(0, deps=(total,))
    staged = gl.allocate_shared_memory(gl.float16, [M, N], c_desc.layout, total.to(gl.float16))
    hopper.fence_async_shared()
    tma.async_store(c_desc, [0, 0], staged)
    tma.store_wait(0)


@gluon.jit
def loader(a_desc, b_desc, K, a_tiles, b_tiles, ready, free):
    BUFFERS: gl.constexpr = a_tiles.shape[0]
    for step in range(K // a_desc.block_type.shape[1]):
        slot = step % BUFFERS
        mbarrier.wait(free.index(slot), (step // BUFFERS & 1) ^ 1)
        fetch(a_desc, b_desc, step * a_desc.block_type.shape[1], ready, a_tiles, b_tiles, slot)


@gluon.jit
def multiplier(a_desc, K, a_tiles, b_tiles, ready, free, total, done):
    BUFFERS: gl.constexpr = a_tiles.shape[0]
    for step in range(K // a_desc.block_type.shape[1]):
        slot = step % BUFFERS
        mbarrier.wait(ready.index(slot), step // BUFFERS & 1)
        tcgen05_mma(a_tiles.index(slot), b_tiles.index(slot), total, use_acc=step > 0)
        tcgen05_commit(free.index(slot))
    tcgen05_commit(done)


@gluon.jit
def writer(c_desc, total, done):
    mbarrier.wait(done, 0)
    staged = gl.allocate_shared_memory(gl.float16, c_desc.block_type.shape, c_desc.layout)
    staged.store(total.load().to(gl.float16))
    hopper.fence_async_shared()
    tma.async_store(c_desc, [0, 0], staged)
    tma.store_wait(0)


@gluon.jit
def specialised_matmul(a_desc, b_desc, c_desc, K, BUFFERS: gl.constexpr, num_warps: gl.constexpr):
    """One warp copies into BUFFERS tiles, one multiplies, the others store the result."""
    M: gl.constexpr = a_desc.block_type.shape[0]
    STEP: gl.constexpr = a_desc.block_type.shape[1]
    N: gl.constexpr = b_desc.block_type.shape[1]
    a_tiles = gl.allocate_shared_memory(gl.float16, [BUFFERS, M, STEP], a_desc.layout)
    b_tiles = gl.allocate_shared_memory(gl.float16, [BUFFERS, STEP, N], b_desc.layout)
    ready = gl.allocate_shared_memory(gl.int64, [BUFFERS, 1], mbarrier.MBarrierLayout())
    free = gl.allocate_shared_memory(gl.int64, [BUFFERS, 1], mbarrier.MBarrierLayout())
    for slot in gl.static_range(BUFFERS):
        mbarrier.init(ready.index(slot), count=1)
        mbarrier.init(free.index(slot), count=1)
    done = gl.allocate_shared_memory(gl.int64, [1], mbarrier.MBarrierLayout())
    mbarrier.init(done, count=1)
    total = allocate_tensor_memory(gl.float32, [M, N], TensorMemoryLayout([M, N], col_stride=1))
    gl.warp_specialize(
        [
            (writer, (c_desc, total, done)),
            (loader, (a_desc, b_desc, K, a_tiles, b_tiles, ready, free)),
            (multiplier, (a_desc, K, a_tiles, b_tiles, ready, free, total, done)),
        ],
        [1, 1],
        [24, 24],
    )


@gluon.jit
def lds_matmul(a, b, c, K, M: gl.constexpr, N: gl.constexpr, STEP: gl.constexpr, BUFFERS: gl.constexpr):
    """Copies go straight to LDS; tile k + BUFFERS - 1 is copied while tile k is multiplied."""
    wide: gl.constexpr = gl.BlockedLayout([1, 8], [8, 8], [4, 1], [1, 0])
    shared: gl.constexpr = gl.SwizzledSharedLayout(1, 1, 1, [1, 0])
    product: gl.constexpr = gl.amd.AMDMFMALayout(
        version=4, instr_shape=[16, 16, 32], transposed=True, warps_per_cta=[2, 2]
    )
    rows = gl.arange(0, M, gl.SliceLayout(1, wide))[:, None]
    inner = gl.arange(0, STEP, gl.SliceLayout(0, wide))[None, :]
    a_at = rows * K + inner
    deep = gl.arange(0, STEP, gl.SliceLayout(1, wide))[:, None]
    columns = gl.arange(0, N, gl.SliceLayout(0, wide))[None, :]
    b_at = deep * N + columns
    a_tiles = gl.allocate_shared_memory(gl.float16, [BUFFERS, M, STEP], shared)
    b_tiles = gl.allocate_shared_memory(gl.float16, [BUFFERS, STEP, N], shared)
    for step in gl.static_range(BUFFERS - 1):
        async_copy.buffer_load_to_shared(a_tiles.index(step), a, a_at + step * STEP)
        async_copy.buffer_load_to_shared(b_tiles.index(step), b, b_at + step * STEP * N)
        async_copy.commit_group()
    total = gl.zeros([M, N], gl.float32, product)
    for step in range(K // STEP - BUFFERS + 1):
        async_copy.wait_group(BUFFERS - 2)
        later = step + BUFFERS - 1
        a_part = async_copy.load_shared_relaxed(a_tiles.index(step % BUFFERS), gl.DotOperandLayout(0, product, 8))
        b_part = async_copy.load_shared_relaxed(b_tiles.index(step % BUFFERS), gl.DotOperandLayout(1, product, 8))
        async_copy.buffer_load_to_shared(a_tiles.index(later % BUFFERS), a, a_at + later * STEP)
        async_copy.buffer_load_to_shared(b_tiles.index(later % BUFFERS), b, b_at + later * STEP * N)
        async_copy.commit_group()
        total = mfma(a_part, b_part, total)
    result_rows = gl.arange(0, M, gl.SliceLayout(1, product))[:, None]
    result_columns = gl.arange(0, N, gl.SliceLayout(0, product))[None, :]
    buffer_store(total.to(gl.float16), c, result_rows * N + result_columns)


def main() -> None:
    target = triton.runtime.driver.active.get_current_target()
    a, b, c = (torch.zeros(shape, dtype=torch.float16, device="cuda") for shape in ((64, 2048), (2048, 64), (64, 64)))
    if target.backend == "hip":
        for buffers in (2, 3):
            lds_matmul[(1,)](a, b, c, 2048, M=64, N=64, STEP=64, BUFFERS=buffers, num_warps=4)
        return
    m = 64 if target.arch == 90 else 128
    a, c = (torch.zeros(shape, dtype=torch.float16, device="cuda") for shape in ((m, 2048), (m, 64)))
    described = []
    for tensor, block in ((a, [m, 64]), (b, [64, 64]), (c, [m, 64])):
        layout = gl.NVMMASharedLayout.get_default_for(block, gl.float16)
        described.append(TensorDescriptor.from_tensor(tensor, block, layout))
    if target.arch == 90:
        for buffers, ahead in ((2, 0), (3, 1), (4, 2)):
            ring_matmul[(1,)](*described, 2048, BUFFERS=buffers, AHEAD=ahead, num_warps=4)
    else:
        for buffers in (2, 4):
            specialised_matmul[(1,)](*described, 2048, BUFFERS=buffers, num_warps=4)


if __name__ == "__main__":
    sys.exit(main())
