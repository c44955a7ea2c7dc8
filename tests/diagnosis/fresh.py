"""A third set of planted problems, frozen before the first run; see `fresh_pairs.py` for launches and expectations.

Kernels of 15 to 60 lines as they are written in practice. A constant selects the plant or the repaired code, or the
repaired kernel stands beside it. Nothing here is launched on a GPU.
"""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def layer_norm_wide(x_ptr, w_ptr, b_ptr, y_ptr, N, eps, BLOCK: tl.constexpr, LANES: tl.constexpr):
    """Rows too long for one tile: sum and sum of squares, reduced in each block or once."""
    row = tl.program_id(0)
    x_ptr += row * N
    y_ptr += row * N
    cols = tl.arange(0, BLOCK)
    if LANES:
        s = tl.zeros((BLOCK,), tl.float32)
        q = tl.zeros((BLOCK,), tl.float32)
        for start in range(0, N, BLOCK):
            x = tl.load(x_ptr + start + cols).to(tl.float32)
            s += x
            q += x * x
        total = tl.sum(s)
        squares = tl.sum(q)
    else:
        total = 0.0
        squares = 0.0
        for start in range(0, N, BLOCK):
            x = tl.load(x_ptr + start + cols).to(tl.float32)
            total += tl.sum(x)
            squares += tl.sum(x * x)
    mean = total / N
    rstd = 1.0 / tl.sqrt(squares / N - mean * mean + eps)
    tl.store(y_ptr + 2 * row, mean)
    tl.store(y_ptr + 2 * row + 1, rstd)


@triton.jit
def flash_forward(
    q_ptr, k_ptr, v_ptr, o_ptr, scale, T, H,
    D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    """Attention of one block of queries; the operands of both products may be widened to fp32."""
    start, head = tl.program_id(0), tl.program_id(1)
    base = head * T * D
    m_offs = start * BM + tl.arange(0, BM)
    n_offs = tl.arange(0, BN)
    d = tl.arange(0, D)
    q = tl.load(q_ptr + base + m_offs[:, None] * D + d[None, :])
    if WIDE:
        q = q.to(tl.float32)
    top = tl.full((BM,), float("-inf"), tl.float32)
    total = tl.zeros((BM,), tl.float32)
    acc = tl.zeros((BM, D), tl.float32)
    for n in range(0, T, BN):
        k = tl.load(k_ptr + base + (n + n_offs)[:, None] * D + d[None, :])
        v = tl.load(v_ptr + base + (n + n_offs)[:, None] * D + d[None, :])
        if WIDE:
            k = k.to(tl.float32)
            v = v.to(tl.float32)
        s = tl.dot(q, tl.trans(k)) * scale
        new = tl.maximum(top, tl.max(s, 1))
        p = tl.exp2(s - new[:, None])
        alpha = tl.exp2(top - new)
        total = total * alpha + tl.sum(p, 1)
        acc = acc * alpha[:, None] + tl.dot(p.to(v.dtype), v)
        top = new
    o = acc / total[:, None]
    tl.store(o_ptr + base + m_offs[:, None] * D + d[None, :], o.to(tl.float16))


@triton.jit
def rope_flat(x_ptr, cos_ptr, sin_ptr, y_ptr, heads, half, TRIPS: tl.constexpr, BLOCK: tl.constexpr):
    """Rotary embedding over a flat index: token, head and channel come from divisions by sizes."""
    pid = tl.program_id(0)
    for t in range(TRIPS):
        i = (pid * TRIPS + t) * BLOCK + tl.arange(0, BLOCK)
        d = i % half
        h = (i // half) % heads
        token = i // (half * heads)
        at = (token * heads + h) * 2 * half + d
        lo = tl.load(x_ptr + at).to(tl.float32)
        hi = tl.load(x_ptr + at + half).to(tl.float32)
        c = tl.load(cos_ptr + token * half + d)
        s = tl.load(sin_ptr + token * half + d)
        tl.store(y_ptr + at, (lo * c - hi * s).to(tl.float16))
        tl.store(y_ptr + at + half, (hi * c + lo * s).to(tl.float16))


@triton.jit
def rope_rows(x_ptr, cos_ptr, sin_ptr, y_ptr, heads, half, HEADS: tl.constexpr, HALF: tl.constexpr):
    token = tl.program_id(0)
    d = tl.arange(0, HALF)[None, :]
    h = tl.arange(0, HEADS)[:, None]
    at = (token * HEADS + h) * 2 * HALF + d
    c = tl.load(cos_ptr + token * HALF + d)
    s = tl.load(sin_ptr + token * HALF + d)
    lo = tl.load(x_ptr + at).to(tl.float32)
    hi = tl.load(x_ptr + at + HALF).to(tl.float32)
    tl.store(y_ptr + at, (lo * c - hi * s).to(tl.float16))
    tl.store(y_ptr + at + HALF, (hi * c + lo * s).to(tl.float16))


@triton.jit
def dequantize_groups(q_ptr, s_ptr, z_ptr, y_ptr, K, N, BK: tl.constexpr, BN: tl.constexpr, GROUP: tl.constexpr):
    """int8 weights with scales per group of 32 rows; each row of the tile loads the scale and zero of its group."""
    n = tl.program_id(0) * BN + tl.arange(0, BN)
    for k0 in range(0, K, BK):
        k = k0 + tl.arange(0, BK)
        q = tl.load(q_ptr + k[:, None] * N + n[None, :])
        s = tl.load(s_ptr + (k[:, None] // GROUP) * N + n[None, :])
        z = tl.load(z_ptr + (k[:, None] // GROUP) * N + n[None, :])
        tl.store(y_ptr + k[:, None] * N + n[None, :], ((q.to(tl.float32) - z) * s).to(tl.float16))


@triton.jit
def dequantize_group(q_ptr, s_ptr, z_ptr, y_ptr, K, N, BK: tl.constexpr, BN: tl.constexpr, GROUP: tl.constexpr):
    n = tl.program_id(0) * BN + tl.arange(0, BN)
    for group in range(K // GROUP):
        k = group * GROUP + tl.arange(0, GROUP)
        q = tl.load(q_ptr + k[:, None] * N + n[None, :])
        s = tl.load(s_ptr + group * N + n)
        z = tl.load(z_ptr + group * N + n)
        value = (q.to(tl.float32) - z[None, :]) * s[None, :]
        tl.store(y_ptr + k[:, None] * N + n[None, :], value.to(tl.float16))


@triton.jit
def linear_scan(a_ptr, x_ptr, h_ptr, T, C, BLOCK: tl.constexpr, STAGES: tl.constexpr):
    """h[t] = a[t] h[t-1] + x[t] for a block of channels; loads run ahead if STAGES is larger than 1."""
    b = tl.program_id(1)
    c = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    h = tl.zeros((BLOCK,), tl.float32)
    base = b * T * C
    for t in tl.range(0, T, num_stages=STAGES):
        a = tl.load(a_ptr + base + t * C + c).to(tl.float32)
        x = tl.load(x_ptr + base + t * C + c).to(tl.float32)
        h = a * h + x
    tl.store(h_ptr + b * C + c, h)


@triton.jit
def count_experts(ids_ptr, count_ptr, n, E: tl.constexpr, BLOCK: tl.constexpr):
    """Tokens per expert of a router: an atomic addition per token, to few counters."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    expert = tl.load(ids_ptr + i, mask=i < n, other=0)
    tl.atomic_add(count_ptr + expert, 1, mask=(i < n) & (expert < E), sem="relaxed")


@triton.jit
def count_experts_blocks(ids_ptr, count_ptr, n, E: tl.constexpr, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    i = pid * BLOCK + tl.arange(0, BLOCK)
    expert = tl.load(ids_ptr + i, mask=i < n, other=0)
    tl.store(count_ptr + pid * E + tl.arange(0, E), tl.histogram(expert, E))


@triton.jit
def conv2d_1x1(x_ptr, w_ptr, y_ptr, P, CI, CO, BP: tl.constexpr, BC: tl.constexpr, BK: tl.constexpr):
    """A 1×1 convolution as a product of pixels and channels."""
    p = tl.program_id(0) * BP + tl.arange(0, BP)
    c = tl.program_id(1) * BC + tl.arange(0, BC)
    k = tl.arange(0, BK)
    x = x_ptr + p[:, None] * CI + k[None, :]
    w = w_ptr + k[:, None] * CO + c[None, :]
    acc = tl.zeros((BP, BC), tl.float32)
    for _ in range(0, CI, BK):
        acc = tl.dot(tl.load(x), tl.load(w), acc)
        x += BK
        w += BK * CO
    tl.store(y_ptr + p[:, None] * CO + c[None, :], tl.maximum(acc, 0.0).to(tl.float16))


@triton.jit
def bias_gradient(dy_ptr, db_ptr, lock_ptr, N, BLOCK: tl.constexpr, GROUPS: tl.constexpr, LOCKED: tl.constexpr):
    """Each row adds to one of a few partial sums behind a lock, or stores a partial sum for itself."""
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    dy = tl.load(dy_ptr + row * N + cols).to(tl.float32)
    if LOCKED:
        group = row % GROUPS
        lock = lock_ptr + group
        db = db_ptr + group * N + cols
        while tl.atomic_cas(lock, 0, 1) == 1:
            pass
        tl.store(db, tl.load(db) + dy)
        tl.debug_barrier()
        tl.atomic_xchg(lock, 0)
    else:
        tl.store(db_ptr + row * N + cols, dy * dy)


@triton.jit
def moe_combine(ids_ptr, slot_ptr, w_ptr, x_ptr, y_ptr, D, K: tl.constexpr, BLOCK: tl.constexpr):
    """Sum of each token's experts: a token's id leads to a slot, the slot to a row."""
    token = tl.program_id(0)
    d = tl.arange(0, BLOCK)
    acc = tl.zeros((BLOCK,), tl.float32)
    for k in range(K):
        expert = tl.load(ids_ptr + token * K + k)
        slot = tl.load(slot_ptr + expert)
        weight = tl.load(w_ptr + token * K + k)
        acc += weight * tl.load(x_ptr + slot * D + d).to(tl.float32)
    tl.store(y_ptr + token * D + d, acc.to(tl.float16))


@triton.jit
def moe_combine_sorted(w_ptr, x_ptr, y_ptr, D, K: tl.constexpr, BLOCK: tl.constexpr):
    token = tl.program_id(0)
    d = tl.arange(0, BLOCK)
    k = tl.arange(0, K)
    rows = tl.load(x_ptr + (token * K + k)[:, None] * D + d[None, :]).to(tl.float32)
    weights = tl.load(w_ptr + token * K + k)
    tl.store(y_ptr + token * D + d, tl.sum(rows * weights[:, None], 0).to(tl.float16))


@triton.jit
def int8_gemm(
    a_ptr, b_ptr, s_ptr, c_ptr, M, N, K,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, COLUMNS: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    """int8 × int8; the matrix unit reads both operands along K, so that a B of rows is transposed byte by byte."""
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    n = tl.program_id(1) * BN + tl.arange(0, BN)
    k = tl.arange(0, BK)
    a = a_ptr + m[:, None] * K + k[None, :]
    b = b_ptr + (n[None, :] * K + k[:, None] if COLUMNS else k[:, None] * N + n[None, :])
    acc = tl.zeros((BM, BN), tl.float32 if WIDE else tl.int32)
    for _ in range(0, K, BK):
        if WIDE:
            acc = tl.dot(tl.load(a).to(tl.float16), tl.load(b).to(tl.float16), acc)
        else:
            acc = tl.dot(tl.load(a), tl.load(b), acc)
        a += BK
        b += BK if COLUMNS else BK * N
    scale = tl.load(s_ptr + n)
    tl.store(c_ptr + m[:, None] * N + n[None, :], (acc.to(tl.float32) * scale[None, :]).to(tl.float16))


@triton.jit
def spmv_ell(col_ptr, val_ptr, x_ptr, y_ptr, rows, WIDTH: tl.constexpr, ROWS: tl.constexpr):
    """Rows of 16 values with their columns; a CTA owns ROWS of them."""
    r = tl.program_id(0) * ROWS + tl.arange(0, ROWS)[:, None]
    at = r * WIDTH + tl.arange(0, WIDTH)[None, :]
    x = tl.load(x_ptr + tl.load(col_ptr + at))
    y = tl.sum(tl.load(val_ptr + at) * x, 1)
    tl.store(y_ptr + tl.program_id(0) * ROWS + tl.arange(0, ROWS), y)


@triton.jit
def jacobi(u_ptr, f_ptr, v_ptr, H, W, BLOCK: tl.constexpr, DOWN: tl.constexpr):
    """A five-point stencil; neighbouring threads own neighbours in a column (DOWN) or in a row."""
    if DOWN:
        x = tl.program_id(0) + 1
        y = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK) + 1
    else:
        y = tl.program_id(0) + 1
        x = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK) + 1
    at = y * W + x
    inside = (x < W - 1) & (y < H - 1)
    north = tl.load(u_ptr + at - W, mask=inside, other=0.0)
    south = tl.load(u_ptr + at + W, mask=inside, other=0.0)
    west = tl.load(u_ptr + at - 1, mask=inside, other=0.0)
    east = tl.load(u_ptr + at + 1, mask=inside, other=0.0)
    f = tl.load(f_ptr + at, mask=inside, other=0.0)
    tl.store(v_ptr + at, 0.25 * (north + south + west + east - f), mask=inside)


@triton.jit
def mask_strided(x_ptr, m_ptr, y_ptr, n1, n2, s0, s1, s2, TRIPS: tl.constexpr, BLOCK: tl.constexpr, FLAT: tl.constexpr):
    """Dropout by a mask of a permuted tensor: positions from 64-bit divisions and strides."""
    pid = tl.program_id(0)
    lanes = tl.arange(0, BLOCK)
    for t in range(TRIPS):
        if FLAT:
            at = (pid * TRIPS + t) * BLOCK + lanes
        else:
            i = (pid.to(tl.int64) * TRIPS + t) * BLOCK + lanes
            at = (i // (n1 * n2)) * s0 + ((i // n2) % n1) * s1 + (i % n2) * s2
        keep = tl.load(m_ptr + at)
        x = tl.load(x_ptr + at)
        tl.store(y_ptr + at, tl.where(keep > 0, x * 1.25, 0.0))


@triton.jit
def grouped_gemm(
    a_ptr, b_ptr, c_ptr, N, K, tiles_n,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):  # fmt: skip
    """One tile of one expert per CTA: the tiles of all experts are numbered in a row."""
    tile = tl.program_id(0)
    m = (tile // tiles_n) * BM + tl.arange(0, BM)
    n = (tile % tiles_n) * BN + tl.arange(0, BN)
    k = tl.arange(0, BK)
    a = a_ptr + m[:, None] * K + k[None, :]
    b = b_ptr + k[:, None] * N + n[None, :]
    acc = tl.zeros((BM, BN), tl.float32)
    for _ in range(0, K, BK):
        acc = tl.dot(tl.load(a), tl.load(b), acc)
        a += BK
        b += BK * N
    tl.store(c_ptr + m[:, None] * N + n[None, :], acc.to(tl.float16))


@triton.jit
def ema_rows(x_ptr, y_ptr, T, C, BT: tl.constexpr, BC: tl.constexpr):
    """Four moving averages of a large tile, all alive over the loop."""
    c = tl.program_id(0) * BC + tl.arange(0, BC)[None, :]
    r = tl.arange(0, BT)[:, None]
    a = tl.zeros((BT, BC), tl.float32)
    b = tl.zeros((BT, BC), tl.float32)
    e = tl.zeros((BT, BC), tl.float32)
    for t in range(0, T, BT):
        x = tl.load(x_ptr + (t + r) * C + c)
        a = a * 0.9 + x
        b = b * 0.99 + a * x
        e = tl.maximum(e * 0.999, b - a)
    tl.store(y_ptr + r * C + c, a + b + e)


@triton.jit
def stream_dot(a_ptr, b_ptr, y_ptr, N, BLOCK: tl.constexpr, ROWS: tl.constexpr):
    """Products of long rows, a CTA per row: many values are held per thread, so few warps are resident."""
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)[None, :]
    rows = tl.arange(0, ROWS)[:, None]
    acc = tl.zeros((ROWS, BLOCK), tl.float32)
    for start in range(0, N, ROWS * BLOCK):
        at = row * N + start + rows * BLOCK + cols
        a = tl.load(a_ptr + at)
        b = tl.load(b_ptr + at)
        acc += tl.exp(a) * tl.sigmoid(b)
    tl.store(y_ptr + row, tl.sum(acc))


@triton.jit
def bias_gelu_rows(x_ptr, b_ptr, s_ptr, t_ptr, y_ptr, ROWS: tl.constexpr, N: tl.constexpr, AGAIN: tl.constexpr):
    """int8 activations are scaled by fp32 tables, which each row of the CTA loads again."""
    first = tl.program_id(0) * ROWS
    cols = tl.arange(0, N)
    bias = tl.load(b_ptr + cols)
    scale = tl.load(s_ptr + cols)
    turn = tl.load(t_ptr + cols)
    for r in range(ROWS):
        if AGAIN:
            bias = tl.load(b_ptr + cols)
            scale = tl.load(s_ptr + cols)
            turn = tl.load(t_ptr + cols)
        x = tl.load(x_ptr + (first + r) * N + cols).to(tl.float32)
        tl.store(y_ptr + (first + r) * N + cols, ((x + bias) * scale + turn).to(tl.int8))


@triton.jit
def pool_rows(x_ptr, y_ptr, H, W, BLOCK: tl.constexpr, TAPS: tl.constexpr, PADDED: tl.constexpr):
    """A horizontal and vertical maximum over int8 pixels, with tests of all borders for each tap."""
    y = tl.program_id(0)
    x = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    best = tl.full((BLOCK,), -128, tl.int8)
    for i in range(TAPS):
        for j in tl.static_range(TAPS):
            yy = y + i - TAPS // 2
            xx = x + j - TAPS // 2
            if PADDED:
                v = tl.load(x_ptr + (y + i) * (W + TAPS) + x + j)
            else:
                inside = (yy >= 0) & (yy < H) & (xx >= 0) & (xx < W)
                v = tl.load(x_ptr + yy * W + xx, mask=inside, other=-128)
            best = tl.maximum(best, v)
    tl.store(y_ptr + y * W + x, best)


@triton.jit
def decode_fp8(k_ptr, q_ptr, o_ptr, T, D: tl.constexpr, BT: tl.constexpr):
    """Scores of one query against a cache; fp8 values are widened in each iteration."""
    head = tl.program_id(0)
    part = tl.program_id(1)
    d = tl.arange(0, D)
    q = tl.load(q_ptr + head * D + d).to(tl.float32)
    for t in range(0, 1024, BT):
        r = part * 1024 + t + tl.arange(0, BT)
        k = tl.load(k_ptr + (head * T + r)[:, None] * D + d[None, :]).to(tl.float32)
        tl.store(o_ptr + head * T + r, tl.sum(k * q[None, :], 1))


@triton.jit
def rms_norm(x_ptr, w_ptr, y_ptr, N, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    mask = cols < N
    x = tl.load(x_ptr + row * N + cols, mask=mask, other=0.0).to(tl.float32)
    r = tl.rsqrt(tl.sum(x * x) / N + eps)
    w = tl.load(w_ptr + cols, mask=mask, other=0.0).to(tl.float32)
    tl.store(y_ptr + row * N + cols, (x * r * w).to(tl.float16), mask=mask)


@triton.jit
def greedy_token(logits_ptr, best_ptr, at_ptr, V, PART: tl.constexpr, BLOCK: tl.constexpr):
    """The largest logit of a part of each row: the whole vocabulary in one CTA, or in many."""
    row, part = tl.program_id(0), tl.program_id(1)
    best = tl.full((BLOCK,), float("-inf"), tl.float32)
    index = tl.zeros((BLOCK,), tl.int32)
    for start in range(0, PART, BLOCK):
        i = part * PART + start + tl.arange(0, BLOCK)
        x = tl.load(logits_ptr + row * V + i, mask=i < V, other=float("-inf")).to(tl.float32)
        better = x > best
        best = tl.where(better, x, best)
        index = tl.where(better, i, index)
    top = tl.max(best)
    tl.store(best_ptr + row * tl.num_programs(1) + part, top)
    tl.store(at_ptr + row * tl.num_programs(1) + part, tl.min(tl.where(best == top, index, V)))


@triton.jit
def linear_attention(q_ptr, k_ptr, v_ptr, o_ptr, T, D: tl.constexpr, BT: tl.constexpr, PRECISION: tl.constexpr):
    """Chunks of linear attention in fp32: the state is updated and read by products."""
    head = tl.program_id(0)
    r = tl.arange(0, BT)
    d = tl.arange(0, D)
    state = tl.zeros((D, D), tl.float32)
    for t in range(0, T, BT):
        at = head * T * D + (t + r)[:, None] * D + d[None, :]
        q = tl.load(q_ptr + at)
        k = tl.load(k_ptr + at)
        v = tl.load(v_ptr + at)
        s = tl.dot(q, tl.trans(k), input_precision=PRECISION)
        s = tl.where(r[:, None] >= r[None, :], s, 0.0)
        o = tl.dot(s, v, input_precision=PRECISION) + tl.dot(q, state, input_precision=PRECISION)
        state += tl.dot(tl.trans(k), v, input_precision=PRECISION)
        tl.store(o_ptr + at, o)


@triton.jit
def softmax_columns(x_ptr, y_ptr, R, C, BR: tl.constexpr, BC: tl.constexpr, TURN: tl.constexpr):
    """Adds each tile to its transpose, block by block."""
    i = tl.arange(0, BR)
    pid = tl.program_id(0)
    acc = tl.zeros((BR, BC), tl.float32)
    for t in range(0, C, BC):
        x = tl.load(x_ptr + (pid * BR + i)[:, None] * C + t + i[None, :])
        e = tl.exp(x)
        acc = acc * 0.5 + (tl.trans(e) if TURN else e)
    tl.store(y_ptr + (pid * BR + i)[:, None] * BC + i[None, :], acc)


@triton.jit
def add(x_ptr, y_ptr, z_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    tl.store(z_ptr + i, tl.load(x_ptr + i, mask=mask) + tl.load(y_ptr + i, mask=mask), mask=mask)


@triton.jit
def softmax(x_ptr, y_ptr, N, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * N + cols, mask=cols < N, other=float("-inf")).to(tl.float32)
    e = tl.exp(x - tl.max(x))
    tl.store(y_ptr + row * N + cols, (e / tl.sum(e)).to(tl.float16), mask=cols < N)


@triton.jit
def transpose(x_ptr, y_ptr, R, C, B: tl.constexpr):
    r = tl.program_id(0) * B + tl.arange(0, B)
    c = tl.program_id(1) * B + tl.arange(0, B)
    x = tl.load(x_ptr + r[:, None] * C + c[None, :])
    tl.store(y_ptr + c[:, None] * R + r[None, :], tl.trans(x))


@triton.jit
def swiglu_gate(g_ptr, u_ptr, y_ptr, N, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    for start in range(0, N, BLOCK):
        i = row * N + start + tl.arange(0, BLOCK)
        g = tl.load(g_ptr + i).to(tl.float32)
        u = tl.load(u_ptr + i).to(tl.float32)
        tl.store(y_ptr + i, (g * tl.sigmoid(g) * u).to(tl.float16))
