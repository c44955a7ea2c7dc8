"""A second set of planted problems, written before any rule was tuned to it; see `pairs.py` for the first.

Each kernel has one classic problem of real code and a repaired twin. Nothing here is launched on a GPU.
"""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def gemv_w4(x_ptr, qw_ptr, scale_ptr, y_ptr, K, N, GROUP: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr):
    """y = x @ dequant(qw): every packed word is loaded once per nibble."""
    n = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    acc = tl.zeros((BLOCK_N, BLOCK_K), dtype=tl.float32)
    for start in range(0, K, BLOCK_K):
        k = start + tl.arange(0, BLOCK_K)
        x = tl.load(x_ptr + k).to(tl.float32)
        packed = tl.load(qw_ptr + n[:, None] * (K // 8) + k[None, :] // 8)
        nibble = (packed >> ((k[None, :] % 8) * 4)) & 0xF
        scale = tl.load(scale_ptr + n * (K // GROUP) + start // GROUP)
        acc += x[None, :] * (nibble.to(tl.float32) - 8.0) * scale[:, None]
    tl.store(y_ptr + n, tl.sum(acc, axis=1).to(tl.float16))


@triton.jit
def gemv_w4_words(
    x_ptr, qw_ptr, scale_ptr, y_ptr, K, N, GROUP: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr
):
    n = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    acc = tl.zeros((BLOCK_N, BLOCK_K // 8), dtype=tl.float32)
    for start in range(0, K, BLOCK_K):
        words = start // 8 + tl.arange(0, BLOCK_K // 8)
        packed = tl.load(qw_ptr + n[:, None] * (K // 8) + words[None, :])
        scale = tl.load(scale_ptr + n * (K // GROUP) + start // GROUP)
        part = tl.zeros((BLOCK_N, BLOCK_K // 8), dtype=tl.float32)
        for nibble in tl.static_range(8):
            x = tl.load(x_ptr + words * 8 + nibble).to(tl.float32)
            part += x[None, :] * (((packed >> (nibble * 4)) & 0xF).to(tl.float32) - 8.0)
        acc += part * scale[:, None]
    tl.store(y_ptr + n, tl.sum(acc, axis=1).to(tl.float16))


@triton.jit
def linear_skinny(
    x_ptr, w_ptr, out_ptr, M, N, K, stride_xm, stride_wk, stride_om,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, SPLIT: tl.constexpr,
):  # fmt: skip
    """A product with few rows and a long K: one CTA per output tile, or SPLIT of them."""
    pid_n, pid_k = tl.program_id(0), tl.program_id(1)
    rows = tl.arange(0, BLOCK_M)
    cols = pid_n * BLOCK_N + tl.arange(0, BLOCK_N)
    ks = pid_k * BLOCK_K + tl.arange(0, BLOCK_K)
    x_ptrs = x_ptr + rows[:, None] * stride_xm + ks[None, :]
    w_ptrs = w_ptr + ks[:, None] * stride_wk + cols[None, :]
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for _ in range(0, K, BLOCK_K * SPLIT):
        acc = tl.dot(tl.load(x_ptrs), tl.load(w_ptrs), acc)
        x_ptrs += BLOCK_K * SPLIT
        w_ptrs += BLOCK_K * SPLIT * stride_wk
    out = out_ptr + rows[:, None] * stride_om + cols[None, :]
    if SPLIT == 1:
        tl.store(out, acc)
    else:
        tl.atomic_add(out, acc, sem="relaxed")


@triton.jit
def causal_conv1d(x_ptr, w_ptr, y_ptr, T, C, WIDTH: tl.constexpr, BLOCK_T: tl.constexpr):
    """A depthwise causal convolution, channels last; neighbouring threads own neighbouring time steps."""
    c = tl.program_id(0)
    t = tl.program_id(1) * BLOCK_T + tl.arange(0, BLOCK_T)
    acc = tl.zeros((BLOCK_T,), dtype=tl.float32)
    for j in tl.static_range(WIDTH):
        src = t - (WIDTH - 1) + j
        x = tl.load(x_ptr + src * C + c, mask=(src >= 0) & (src < T), other=0.0)
        acc += x.to(tl.float32) * tl.load(w_ptr + c * WIDTH + j).to(tl.float32)
    acc = acc / (1.0 + tl.exp(-acc))
    tl.store(y_ptr + t * C + c, acc.to(tl.bfloat16), mask=t < T)


@triton.jit
def causal_conv1d_channels(
    x_ptr, w_ptr, y_ptr, T, C, WIDTH: tl.constexpr, BLOCK_T: tl.constexpr, BLOCK_C: tl.constexpr
):
    c = tl.program_id(0) * BLOCK_C + tl.arange(0, BLOCK_C)
    t = tl.program_id(1) * BLOCK_T + tl.arange(0, BLOCK_T)
    acc = tl.zeros((BLOCK_T, BLOCK_C), dtype=tl.float32)
    for j in tl.static_range(WIDTH):
        src = t - (WIDTH - 1) + j
        valid = (src >= 0) & (src < T)
        x = tl.load(x_ptr + src[:, None] * C + c[None, :], mask=valid[:, None], other=0.0)
        acc += x.to(tl.float32) * tl.load(w_ptr + c * WIDTH + j).to(tl.float32)[None, :]
    acc = acc / (1.0 + tl.exp(-acc))
    tl.store(y_ptr + t[:, None] * C + c[None, :], acc.to(tl.bfloat16), mask=(t < T)[:, None])


@triton.jit
def rope_heads(q_ptr, cos_ptr, sin_ptr, T, stride_t, HEADS: tl.constexpr, HALF: tl.constexpr, KEEP: tl.constexpr):
    """Rotates every head of a token in place; the angles are the same for all heads."""
    token = tl.program_id(0)
    d = tl.arange(0, HALF)
    cos = tl.load(cos_ptr + token * HALF + d)
    sin = tl.load(sin_ptr + token * HALF + d)
    for head in range(HEADS):
        base = q_ptr + token * stride_t + head * 2 * HALF
        if not KEEP:
            cos = tl.load(cos_ptr + token * HALF + d)
            sin = tl.load(sin_ptr + token * HALF + d)
        lo = tl.load(base + d).to(tl.float32)
        hi = tl.load(base + HALF + d).to(tl.float32)
        tl.store(base + d, (lo * cos - hi * sin).to(tl.bfloat16))
        tl.store(base + HALF + d, (hi * cos + lo * sin).to(tl.bfloat16))


@triton.jit
def cross_entropy_fwd(logits_ptr, label_ptr, loss_ptr, stride, V, BLOCK: tl.constexpr):
    """One row per CTA; the maximum and the sum are reduced across threads in every block of the vocabulary."""
    row = tl.program_id(0)
    logits_ptr += row * stride
    m = float("-inf")
    s = 0.0
    for start in range(0, V, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(logits_ptr + cols, mask=cols < V, other=float("-inf")).to(tl.float32)
        new_m = tl.maximum(m, tl.max(x))
        s = s * tl.exp(m - new_m) + tl.sum(tl.exp(x - new_m))
        m = new_m
    label = tl.load(label_ptr + row)
    target = tl.load(logits_ptr + label).to(tl.float32)
    tl.store(loss_ptr + row, m + tl.log(s) - target)


@triton.jit
def cross_entropy_fwd_lanes(logits_ptr, label_ptr, loss_ptr, stride, V, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    logits_ptr += row * stride
    m = tl.full((BLOCK,), -1e30, tl.float32)
    s = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, V, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(logits_ptr + cols, mask=cols < V, other=-1e30).to(tl.float32)
        new_m = tl.maximum(m, x)
        s = s * tl.exp(m - new_m) + tl.exp(x - new_m)
        m = new_m
    top = tl.max(m)
    total = tl.sum(s * tl.exp(m - top))
    label = tl.load(label_ptr + row)
    target = tl.load(logits_ptr + label).to(tl.float32)
    tl.store(loss_ptr + row, top + tl.log(total) - target)


@triton.jit
def group_norm_nhwc(x_ptr, w_ptr, y_ptr, HW, C, cpg, eps, BLOCK: tl.constexpr):
    """Channels last; a flat index is split into pixel and channel by a runtime divisor, for every element."""
    n, g = tl.program_id(0), tl.program_id(1)
    total = HW * cpg
    base = n * HW * C + g * cpg
    s = tl.zeros((BLOCK,), tl.float32)
    ss = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, total, BLOCK):
        i = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + base + (i // cpg) * C + i % cpg, mask=i < total, other=0.0).to(tl.float32)
        s += x
        ss += x * x
    mean = tl.sum(s) / total
    rstd = 1 / tl.sqrt(tl.sum(ss) / total - mean * mean + eps)
    for start in range(0, total, BLOCK):
        i = start + tl.arange(0, BLOCK)
        at = base + (i // cpg) * C + i % cpg
        w = tl.load(w_ptr + g * cpg + i % cpg, mask=i < total, other=0.0)
        x = tl.load(x_ptr + at, mask=i < total, other=0.0).to(tl.float32)
        tl.store(y_ptr + at, ((x - mean) * rstd * w).to(tl.float16), mask=i < total)


@triton.jit
def group_norm_nhwc_tiled(x_ptr, w_ptr, y_ptr, HW, C, eps, ROWS: tl.constexpr, CPG: tl.constexpr):
    n, g = tl.program_id(0), tl.program_id(1)
    base = n * HW * C + g * CPG
    c = tl.arange(0, CPG)
    s = tl.zeros((ROWS, CPG), tl.float32)
    ss = tl.zeros((ROWS, CPG), tl.float32)
    for start in range(0, HW, ROWS):
        p = start + tl.arange(0, ROWS)
        x = tl.load(x_ptr + base + p[:, None] * C + c[None, :], mask=(p < HW)[:, None], other=0.0).to(tl.float32)
        s += x
        ss += x * x
    mean = tl.sum(s) / (HW * CPG)
    rstd = 1 / tl.sqrt(tl.sum(ss) / (HW * CPG) - mean * mean + eps)
    w = tl.load(w_ptr + g * CPG + c)[None, :]
    for start in range(0, HW, ROWS):
        p = start + tl.arange(0, ROWS)
        at = base + p[:, None] * C + c[None, :]
        x = tl.load(x_ptr + at, mask=(p < HW)[:, None], other=0.0).to(tl.float32)
        tl.store(y_ptr + at, ((x - mean) * rstd * w).to(tl.float16), mask=(p < HW)[:, None])


@triton.jit
def embedding_bag(idx_ptr, table_ptr, out_ptr, L, D, BLOCK_D: tl.constexpr):
    """The index of each row is loaded right before the row, one row per iteration."""
    bag = tl.program_id(0)
    d = tl.arange(0, BLOCK_D)
    acc = tl.zeros((BLOCK_D,), tl.float32)
    for j in range(L):
        row = tl.load(idx_ptr + bag * L + j)
        acc += tl.load(table_ptr + row * D + d).to(tl.float32)
    tl.store(out_ptr + bag * D + d, acc.to(tl.float16))


@triton.jit
def embedding_bag_rows(idx_ptr, table_ptr, out_ptr, D, LEN: tl.constexpr, BLOCK_D: tl.constexpr):
    bag = tl.program_id(0)
    d = tl.arange(0, BLOCK_D)
    rows = tl.load(idx_ptr + bag * LEN + tl.arange(0, LEN))
    values = tl.load(table_ptr + rows[:, None] * D + d[None, :])
    tl.store(out_ptr + bag * D + d, tl.sum(values.to(tl.float32), axis=0).to(tl.float16))


@triton.jit
def paged_decode(
    q_ptr, k_ptr, v_ptr, table_ptr, o_ptr, seq_len, scale, stride_page, MAX_PAGES,
    PAGE: tl.constexpr, D: tl.constexpr, QH: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    """Grouped-query decode over pages; K and V are widened to fp32 before the dots, or not."""
    seq, kv_head = tl.program_id(0), tl.program_id(1)
    heads = tl.arange(0, QH)
    d = tl.arange(0, D)
    rows = tl.arange(0, PAGE)
    q = tl.load(q_ptr + ((seq * tl.num_programs(1) + kv_head) * QH + heads[:, None]) * D + d[None, :])
    m = tl.full((QH,), float("-inf"), tl.float32)
    s = tl.zeros((QH,), tl.float32)
    acc = tl.zeros((QH, D), tl.float32)
    for page in range(tl.cdiv(seq_len, PAGE)):
        physical = tl.load(table_ptr + seq * MAX_PAGES + page)
        at = physical * stride_page + (kv_head * PAGE + rows)[:, None] * D + d[None, :]
        k = tl.load(k_ptr + at)
        v = tl.load(v_ptr + at)
        if WIDE:
            qk = tl.dot(q.to(tl.float32), tl.trans(k.to(tl.float32))) * scale
        else:
            qk = tl.dot(q, tl.trans(k)) * scale
        new_m = tl.maximum(m, tl.max(qk, axis=1))
        p = tl.exp(qk - new_m[:, None])
        alpha = tl.exp(m - new_m)
        s = s * alpha + tl.sum(p, axis=1)
        acc = acc * alpha[:, None]
        if WIDE:
            acc = tl.dot(p, v.to(tl.float32), acc)
        else:
            acc = tl.dot(p.to(tl.float16), v, acc)
        m = new_m
    out = o_ptr + ((seq * tl.num_programs(1) + kv_head) * QH + heads[:, None]) * D + d[None, :]
    tl.store(out, (acc / s[:, None]).to(tl.float16))


@triton.jit
def cumsum_rows(x_ptr, y_ptr, cols, BLOCK: tl.constexpr):
    """A running sum along each row, with many more threads than elements in a block."""
    row = tl.program_id(0)
    carry = 0.0
    for start in range(0, cols, BLOCK):
        at = row * cols + start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + at)
        tl.store(y_ptr + at, tl.cumsum(x, axis=0) + carry)
        carry += tl.sum(x)


@triton.jit
def histogram_bins(x_ptr, bins_ptr, n, BINS: tl.constexpr, BLOCK: tl.constexpr):
    """One global atomic per element on a few bins."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=0)
    tl.atomic_add(bins_ptr + (x & (BINS - 1)), 1, mask=i < n)


@triton.jit
def histogram_private(x_ptr, parts_ptr, n, BINS: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=0)
    counts = tl.histogram(x & (BINS - 1), BINS)
    tl.store(parts_ptr + tl.program_id(0) * BINS + tl.arange(0, BINS), counts)


@triton.jit
def transpose_rows(x_ptr, y_ptr, R, C, BLOCK: tl.constexpr):
    """Each CTA reads a piece of a row and writes it down a column."""
    r = tl.program_id(0)
    c = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + c * R + r, tl.load(x_ptr + r * C + c))


@triton.jit
def transpose_tiles(x_ptr, y_ptr, R, C, TILE: tl.constexpr):
    r = tl.program_id(0) * TILE + tl.arange(0, TILE)
    c = tl.program_id(1) * TILE + tl.arange(0, TILE)
    tile = tl.load(x_ptr + r[:, None] * C + c[None, :])
    tl.store(y_ptr + c[:, None] * R + r[None, :], tl.trans(tile))


@triton.jit
def top_k_mask(x_ptr, y_ptr, cols, K: tl.constexpr, BLOCK: tl.constexpr):
    """Keeps the K largest values of a row; the row stays in registers, of too few threads."""
    row = tl.program_id(0)
    c = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * cols + c, mask=c < cols, other=float("-inf")).to(tl.float32)
    left = x
    for _ in range(K):
        left = tl.where(left == tl.max(left, axis=0), float("-inf"), left)
    tl.store(y_ptr + row * cols + c, tl.where(left == float("-inf"), x, 0.0).to(tl.bfloat16), mask=c < cols)


@triton.jit
def swiglu_mlp(
    x_ptr, w1_ptr, w3_ptr, h_ptr, M, N, K, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
    PRECISION: tl.constexpr,
):  # fmt: skip
    """Gate and up projections with their activation, in fp32."""
    rm = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    rn = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    gate = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    up = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for k in range(0, K, BLOCK_K):
        rk = k + tl.arange(0, BLOCK_K)
        x = tl.load(x_ptr + rm[:, None] * K + rk[None, :])
        w1 = tl.load(w1_ptr + rk[:, None] * N + rn[None, :])
        w3 = tl.load(w3_ptr + rk[:, None] * N + rn[None, :])
        gate += tl.dot(x, w1, input_precision=PRECISION)
        up += tl.dot(x, w3, input_precision=PRECISION)
    tl.store(h_ptr + rm[:, None] * N + rn[None, :], gate * tl.sigmoid(gate) * up)


@triton.jit
def column_sums(x_ptr, y_ptr, M, N, BLOCK_M: tl.constexpr):
    """Sums a column of a row-major matrix: neighbouring threads read neighbouring rows."""
    col = tl.program_id(0)
    acc = tl.zeros((BLOCK_M,), tl.float32)
    for start in range(0, M, BLOCK_M):
        rows = start + tl.arange(0, BLOCK_M)
        acc += tl.load(x_ptr + rows * N + col)
    tl.store(y_ptr + col, tl.sum(acc))


@triton.jit
def column_sums_tiled(x_ptr, y_ptr, M, N, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    cols = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    span = M // tl.num_programs(1)
    first = tl.program_id(1) * span
    acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for start in range(0, span, BLOCK_M):
        rows = first + start + tl.arange(0, BLOCK_M)
        acc += tl.load(x_ptr + rows[:, None] * N + cols[None, :])
    tl.store(y_ptr + tl.program_id(1) * N + cols, tl.sum(acc, axis=0))


@triton.jit
def scatter_max(x_ptr, slot_ptr, out_ptr, n, BLOCK: tl.constexpr):
    """A maximum per slot, tried again by compare-and-swap until no other thread interfered."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i)
    slot = tl.load(slot_ptr + i) & 0xFFFF
    old = tl.load(out_ptr + slot)
    for _ in range(8):
        old = tl.atomic_cas(out_ptr + slot, old, tl.maximum(old, x))


@triton.jit
def scatter_max_native(x_ptr, slot_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i)
    slot = tl.load(slot_ptr + i) & 0xFFFF
    tl.atomic_max(out_ptr + slot, x)


@triton.jit
def walk_lists(head_ptr, next_ptr, value_ptr, out_ptr, STEPS: tl.constexpr, BLOCK: tl.constexpr):
    """Follows linked lists; the address of each node is in the node before it."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    node = tl.load(head_ptr + i)
    total = tl.zeros((BLOCK,), tl.float32)
    for _ in range(STEPS):
        total += tl.load(value_ptr + node)
        node = tl.load(next_ptr + node)
    tl.store(out_ptr + i, total)


@triton.jit
def walk_arrays(value_ptr, out_ptr, n, STEPS: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    for step in range(STEPS):
        total += tl.load(value_ptr + step * n + i)
    tl.store(out_ptr + i, total)


@triton.jit
def strided_copy_4d(
    x_ptr, y_ptr, D1, D2, D3, s0, s1, s2, s3, TRIPS: tl.constexpr, BLOCK: tl.constexpr, WIDE: tl.constexpr
):
    """Packs a strided 4-D tensor; flat indices are 64-bit, or 32-bit."""
    for t in range(TRIPS):
        i = (tl.program_id(0) * TRIPS + t) * BLOCK + tl.arange(0, BLOCK)
        if WIDE:
            at = i.to(tl.int64)
            row = at // D3
            src = (row // (D1 * D2)) * s0 + (row // D2 % D1) * s1 + (row % D2) * s2 + (at % D3) * s3
        else:
            src = i
        tl.store(y_ptr + i, tl.load(x_ptr + src))


@triton.jit
def bmm(a_ptr, b_ptr, c_ptr, M, N, K, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr):
    """A batched product; its tile and stages are those of its configuration."""
    batch = tl.program_id(2)
    rm = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    rn = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    rk = tl.arange(0, BLOCK_K)
    a = a_ptr + batch * M * K + rm[:, None] * K + rk[None, :]
    b = b_ptr + batch * K * N + rk[:, None] * N + rn[None, :]
    acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for _ in range(0, K, BLOCK_K):
        acc = tl.dot(tl.load(a), tl.load(b), acc)
        a += BLOCK_K
        b += BLOCK_K * N
    tl.store(c_ptr + batch * M * N + rm[:, None] * N + rn[None, :], acc.to(tl.float16))


@triton.jit
def momentum_step(p_ptr, m_ptr, g_ptr, n, lr, TRIPS: tl.constexpr, BLOCK: tl.constexpr, SYNC: tl.constexpr):
    """An optimizer step over several blocks, with a barrier after each of them, or without."""
    for t in range(TRIPS):
        i = (tl.program_id(0) * TRIPS + t) * BLOCK + tl.arange(0, BLOCK)
        m = tl.load(m_ptr + i) * 0.9 + tl.load(g_ptr + i)
        if SYNC:
            tl.debug_barrier()
        tl.store(m_ptr + i, m)
        tl.store(p_ptr + i, tl.load(p_ptr + i) - lr * m)
        if SYNC:
            tl.debug_barrier()


@triton.jit
def interleaved_gelu(x_ptr, y_ptr, n, BLOCK: tl.constexpr, PLANES: tl.constexpr):
    """Pixels of four interleaved channels, of which this kernel needs one; or planes of channels."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    x = tl.load(x_ptr + (i if PLANES else i * 4), mask=mask, other=0.0)
    tl.store(y_ptr + i, x * tl.sigmoid(1.702 * x), mask=mask)
