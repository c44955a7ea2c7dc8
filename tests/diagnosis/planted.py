"""Kernels with one planted performance problem each, and their repaired twins.

A twin is the same kernel (or launch) without the problem. Nothing here is launched: kernels are compiled, and
their machine code is simulated.
"""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def matmul(a_ptr, b_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    pid_m, pid_n = tl.program_id(0), tl.program_id(1)
    offs_m = pid_m * BM + tl.arange(0, BM)
    offs_n = pid_n * BN + tl.arange(0, BN)
    offs_k = tl.arange(0, BK)
    a_ptrs = a_ptr + offs_m[:, None] * K + offs_k[None, :]
    b_ptrs = b_ptr + offs_k[:, None] * N + offs_n[None, :]
    acc = tl.zeros((BM, BN), tl.float32)
    for _ in range(0, K, BK):
        a = tl.load(a_ptrs)
        b = tl.load(b_ptrs)
        acc = tl.dot(a, b, acc)
        a_ptrs += BK
        b_ptrs += BK * N
    tl.store(c_ptr + offs_m[:, None] * N + offs_n[None, :], acc.to(c_ptr.dtype.element_ty))


@triton.jit
def matmul_fp32(a_ptr, b_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, PREC: tl.constexpr):
    pid_m, pid_n = tl.program_id(0), tl.program_id(1)
    offs_m = pid_m * BM + tl.arange(0, BM)
    offs_n = pid_n * BN + tl.arange(0, BN)
    offs_k = tl.arange(0, BK)
    a_ptrs = a_ptr + offs_m[:, None] * K + offs_k[None, :]
    b_ptrs = b_ptr + offs_k[:, None] * N + offs_n[None, :]
    acc = tl.zeros((BM, BN), tl.float32)
    for _ in range(0, K, BK):
        a = tl.load(a_ptrs)
        b = tl.load(b_ptrs)
        acc = tl.dot(a, b, acc, input_precision=PREC)
        a_ptrs += BK
        b_ptrs += BK * N
    tl.store(c_ptr + offs_m[:, None] * N + offs_n[None, :], acc)


@triton.jit
def matmul_widened(a_ptr, b_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    pid_m, pid_n = tl.program_id(0), tl.program_id(1)
    offs_m = pid_m * BM + tl.arange(0, BM)
    offs_n = pid_n * BN + tl.arange(0, BN)
    offs_k = tl.arange(0, BK)
    a_ptrs = a_ptr + offs_m[:, None] * K + offs_k[None, :]
    b_ptrs = b_ptr + offs_k[:, None] * N + offs_n[None, :]
    acc = tl.zeros((BM, BN), tl.float32)
    for _ in range(0, K, BK):
        a = tl.load(a_ptrs).to(tl.float32)
        b = tl.load(b_ptrs).to(tl.float32)
        acc = tl.dot(a, b, acc)
        a_ptrs += BK
        b_ptrs += BK * N
    tl.store(c_ptr + offs_m[:, None] * N + offs_n[None, :], acc.to(tl.float16))


@triton.jit
def matmul_columns(a_ptr, b_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """B is stored by columns (N × K), so that tf32 products read both operands along K."""
    pid_m, pid_n = tl.program_id(0), tl.program_id(1)
    offs_m = pid_m * BM + tl.arange(0, BM)
    offs_n = pid_n * BN + tl.arange(0, BN)
    offs_k = tl.arange(0, BK)
    a_ptrs = a_ptr + offs_m[:, None] * K + offs_k[None, :]
    b_ptrs = b_ptr + offs_k[:, None] + offs_n[None, :] * K
    acc = tl.zeros((BM, BN), tl.float32)
    for _ in range(0, K, BK):
        a = tl.load(a_ptrs)
        b = tl.load(b_ptrs)
        acc = tl.dot(a, b, acc, input_precision="tf32")
        a_ptrs += BK
        b_ptrs += BK
    tl.store(c_ptr + offs_m[:, None] * N + offs_n[None, :], acc)


@triton.jit
def strided_copy(x_ptr, y_ptr, n, STRIDE: tl.constexpr, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offs * STRIDE)
    tl.store(y_ptr + offs, x + 1.0)


@triton.jit
def unpack_bits(q_ptr, s_ptr, y_ptr, K, N, BK: tl.constexpr, BN: tl.constexpr, TRIPS: tl.constexpr):
    """Eight 4-bit weights per word: each word is read eight times."""
    pid = tl.program_id(0)
    offs_n = pid * BN + tl.arange(0, BN)
    for t in range(TRIPS):
        offs_k = t * BK + tl.arange(0, BK)
        word = tl.load(q_ptr + (offs_k[:, None] // 8) * N + offs_n[None, :])
        value = (word >> ((offs_k[:, None] % 8) * 4)) & 15
        tl.store(y_ptr + offs_k[:, None] * N + offs_n[None, :], value.to(tl.float16))


@triton.jit
def unpack_once(q_ptr, s_ptr, y_ptr, K, N, BK: tl.constexpr, BN: tl.constexpr, TRIPS: tl.constexpr):
    pid = tl.program_id(0)
    offs_n = pid * BN + tl.arange(0, BN)
    shifts = tl.arange(0, 8) * 4
    for t in range(TRIPS):
        offs_w = t * (BK // 8) + tl.arange(0, BK // 8)
        word = tl.load(q_ptr + offs_w[:, None] * N + offs_n[None, :])
        value = (word[:, None, :] >> shifts[None, :, None]) & 15
        value = tl.reshape(value, (BK, BN))
        offs_k = t * BK + tl.arange(0, BK)
        tl.store(y_ptr + offs_k[:, None] * N + offs_n[None, :], value.to(tl.float16))


@triton.jit
def scale_rows(x_ptr, w_ptr, y_ptr, cols, ROWS: tl.constexpr, BLOCK: tl.constexpr, HOISTED: tl.constexpr):
    """Bytes are scaled by three vectors, which every row loads again, or which stay in registers."""
    first = tl.program_id(0) * ROWS
    c = tl.arange(0, BLOCK)
    scale = tl.load(w_ptr + c)
    shift = tl.load(w_ptr + cols + c)
    gate = tl.load(w_ptr + 2 * cols + c)
    for row in range(ROWS):
        x = tl.load(x_ptr + (first + row) * cols + c).to(tl.float32)
        if not HOISTED:
            scale = tl.load(w_ptr + c, volatile=True)
            shift = tl.load(w_ptr + cols + c, volatile=True)
            gate = tl.load(w_ptr + 2 * cols + c, volatile=True)
        tl.store(y_ptr + (first + row) * cols + c, ((x * scale + shift) * gate).to(tl.int8))


@triton.jit
def row_sums(x_ptr, y_ptr, cols, BLOCK: tl.constexpr, ONCE: tl.constexpr):
    row = tl.program_id(0)
    c = tl.arange(0, BLOCK)
    if ONCE:
        acc = tl.zeros((BLOCK,), tl.float32)
        for k in range(0, cols, BLOCK):
            acc += tl.load(x_ptr + row * cols + k + c)
        tl.store(y_ptr + row, tl.sum(acc))
    else:
        total = 0.0
        for k in range(0, cols, BLOCK):
            x = tl.load(x_ptr + row * cols + k + c)
            total += tl.sum(x)
        tl.store(y_ptr + row, total)


@triton.jit
def gather_divided(x_ptr, y_ptr, n, d, e, TRIPS: tl.constexpr, BLOCK: tl.constexpr):
    """Index arithmetic with a runtime divisor in every iteration."""
    pid = tl.program_id(0)
    acc = tl.zeros((BLOCK,), tl.float32)
    for t in range(TRIPS):
        offs = (pid * TRIPS + t) * BLOCK + tl.arange(0, BLOCK)
        row = offs // d
        col = offs % d
        acc += tl.load(x_ptr + row * e + col)
    tl.store(y_ptr + pid * BLOCK + tl.arange(0, BLOCK), acc)


@triton.jit
def gather_plain(x_ptr, y_ptr, n, d, e, TRIPS: tl.constexpr, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    acc = tl.zeros((BLOCK,), tl.float32)
    for t in range(TRIPS):
        offs = (pid * TRIPS + t) * BLOCK + tl.arange(0, BLOCK)
        acc += tl.load(x_ptr + offs)
    tl.store(y_ptr + pid * BLOCK + tl.arange(0, BLOCK), acc)


@triton.jit
def chase(next_ptr, y_ptr, n, TRIPS: tl.constexpr, BLOCK: tl.constexpr):
    """Each load's address is the value of the previous load."""
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    at = offs
    for _ in range(TRIPS):
        at = tl.load(next_ptr + at)
    tl.store(y_ptr + offs, at)


@triton.jit
def chase_not(next_ptr, y_ptr, n, TRIPS: tl.constexpr, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    at = tl.zeros((BLOCK,), tl.int32)
    for t in range(TRIPS):
        at += tl.load(next_ptr + t * n + offs)
    tl.store(y_ptr + offs, at)


@triton.jit
def count_all(x_ptr, out_ptr, n, BLOCK: tl.constexpr, REDUCED: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offs)
    if REDUCED:
        tl.store(out_ptr + tl.program_id(0), tl.sum(x))
    else:
        tl.atomic_add(out_ptr + tl.zeros((BLOCK,), tl.int32), x)


@triton.jit
def exchange(x_ptr, out_ptr, n, BLOCK: tl.constexpr, LOOPED: tl.constexpr):
    """A maximum by compare-and-swap, or by the hardware's atomic."""
    pid = tl.program_id(0)
    x = tl.max(tl.load(x_ptr + pid * BLOCK + tl.arange(0, BLOCK)))
    if LOOPED:
        old = tl.load(out_ptr + pid % 4)
        for _ in range(16):
            seen = tl.atomic_cas(out_ptr + pid % 4, old, tl.maximum(old, x))
            old = seen
    else:
        tl.atomic_max(out_ptr + pid % 4, x)


@triton.jit
def add_few(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + offs, tl.load(x_ptr + offs) + 1.0)


@triton.jit
def outer_wide(x_ptr, y_ptr, n, BR: tl.constexpr, BC: tl.constexpr, TRIPS: tl.constexpr):
    """Several tiles stay live at once: registers spill when few threads hold them."""
    r = tl.arange(0, BR)[:, None]
    c = tl.arange(0, BC)[None, :]
    base = tl.program_id(0) * BR * BC * TRIPS
    a = tl.zeros((BR, BC), tl.float32)
    b = tl.zeros((BR, BC), tl.float32)
    for t in range(TRIPS):
        x = tl.load(x_ptr + base + t * BR * BC + r * BC + c)
        a = a * 0.5 + x
        b = tl.maximum(b, a * x)
    tl.store(y_ptr + tl.program_id(0) * BR * BC + r * BC + c, a + b)


@triton.jit
def transpose_each(x_ptr, y_ptr, n, B: tl.constexpr, TRIPS: tl.constexpr, TRANSPOSED: tl.constexpr):
    """The tile changes its layout through shared memory in every iteration."""
    i = tl.arange(0, B)
    base = (tl.program_id(0) % 32) * B * B * TRIPS
    acc = tl.zeros((B, B), tl.float32)
    for t in range(TRIPS):
        x = tl.load(x_ptr + base + t * B * B + i[:, None] * B + i[None, :])
        if TRANSPOSED:
            acc += x + tl.trans(x)
        else:
            acc += x
    tl.store(y_ptr + tl.program_id(0) * B * B + i[:, None] * B + i[None, :], acc)


@triton.jit
def wide_offsets(x_ptr, y_ptr, n, s0, s1, s2, TRIPS: tl.constexpr, BLOCK: tl.constexpr, WIDE: tl.constexpr):
    """Offsets from strides, in 64 or 32 bits."""
    pid = tl.program_id(0)
    acc = tl.zeros((BLOCK,), tl.float32)
    lanes = tl.arange(0, BLOCK)
    for t in range(TRIPS):
        if WIDE:
            i = ((pid % 64) * TRIPS + t).to(tl.int64) * BLOCK + lanes.to(tl.int64)
            j = (i // s0) * s1 + i % s0
            acc += tl.load(x_ptr + j)
        else:
            i = ((pid % 64) * TRIPS + t) * BLOCK + lanes
            acc += tl.load(x_ptr + i)
    tl.store(y_ptr + pid * BLOCK + lanes, acc)
