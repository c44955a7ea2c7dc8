"""A twelfth set of kernels, each with one planted problem; written and frozen before any of them was diagnosed."""

import triton
import triton.language as tl


@triton.jit
def routed_gemm(
    x_ptr,
    w_ptr,
    order_ptr,
    expert_ptr,
    y_ptr,
    TOKENS,
    N,
    K,
    EXPERTS: tl.constexpr,
    BM: tl.constexpr,
    BN: tl.constexpr,
    BK: tl.constexpr,
):
    block = tl.program_id(0)
    cols = tl.program_id(1) * BN + tl.arange(0, BN)
    slots = block * BM + tl.arange(0, BM)
    tokens = tl.load(order_ptr + slots) & (TOKENS - 1)
    expert = tl.load(expert_ptr + block) & (EXPERTS - 1)
    ks = tl.arange(0, BK)
    x_ptrs = x_ptr + tokens[:, None] * K + ks[None, :]
    w_ptrs = w_ptr + expert * K * N + ks[:, None] * N + cols[None, :]
    acc = tl.zeros((BM, BN), tl.float32)
    for _ in range(0, K, BK):
        x = tl.load(x_ptrs)
        w = tl.load(w_ptrs)
        acc = tl.dot(x, w, acc)
        x_ptrs += BK
        w_ptrs += BK * N
    tl.store(y_ptr + slots[:, None] * N + cols[None, :], acc.to(y_ptr.dtype.element_ty))


@triton.jit
def int8_linear(a_ptr, w_ptr, sa_ptr, sw_ptr, c_ptr, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    cols = tl.program_id(1) * BN + tl.arange(0, BN)
    ks = tl.arange(0, BK)
    acc = tl.zeros((BM, BN), tl.int32)
    for k in range(0, K, BK):
        a = tl.load(a_ptr + rows[:, None] * K + (k + ks)[None, :])
        w = tl.load(w_ptr + cols[:, None] * K + (k + ks)[None, :])
        acc = tl.dot(a, tl.trans(w), acc)
    sa = tl.load(sa_ptr + rows)
    sw = tl.load(sw_ptr + cols)
    out = acc.to(tl.float32) * sa[:, None] * sw[None, :]
    tl.store(c_ptr + rows[:, None] * N + cols[None, :], out.to(tl.float16))


@triton.jit
def dispatch_tokens(
    order_ptr, token_ptr, x_ptr, out_ptr, SLOTS, TOKENS, ROWS: tl.constexpr, D: tl.constexpr, CHUNK: tl.constexpr
):
    """Copy each token's features to its slot, by way of the order of the slots and their tokens."""
    first = tl.program_id(0) * ROWS
    feats = tl.arange(0, D)
    for r in range(first, first + ROWS, CHUNK):
        if CHUNK == 1:
            slot = tl.load(order_ptr + r) & (SLOTS - 1)
            token = tl.load(token_ptr + slot) & (TOKENS - 1)
            row = tl.load(x_ptr + token * D + feats)
            tl.store(out_ptr + r * D + feats, row)
        else:
            at = r + tl.arange(0, CHUNK)
            slots = tl.load(order_ptr + at) & (SLOTS - 1)
            tokens = tl.load(token_ptr + slots) & (TOKENS - 1)
            rows = tl.load(x_ptr + tokens[:, None] * D + feats[None, :])
            tl.store(out_ptr + at[:, None] * D + feats[None, :], rows)


@triton.jit
def cell_forces(
    px_ptr,
    py_ptr,
    head_ptr,
    next_ptr,
    fx_ptr,
    fy_ptr,
    SLOTS,
    STEPS: tl.constexpr,
    BLOCK: tl.constexpr,
    SORTED: tl.constexpr,
):
    """Soft repulsion from the particles of a cell: a linked list, or particles sorted by cell."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(px_ptr + i)
    y = tl.load(py_ptr + i)
    j = tl.load(head_ptr + i) & (SLOTS - 1)
    fx = tl.zeros((BLOCK,), tl.float32)
    fy = tl.zeros((BLOCK,), tl.float32)
    for step in range(STEPS):
        dx = x - tl.load(px_ptr + j)
        dy = y - tl.load(py_ptr + j)
        r2 = dx * dx + dy * dy + 0.01
        fx += dx / r2
        fy += dy / r2
        if SORTED:
            j = (j + 1) & (SLOTS - 1)
        else:
            j = tl.load(next_ptr + j) & (SLOTS - 1)
    tl.store(fx_ptr + i, fx)
    tl.store(fy_ptr + i, fy)


@triton.jit
def gradient_norm(g_ptr, out_ptr, PART, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    offs = tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, PART, BLOCK):
        g = tl.load(g_ptr + pid * PART + start + offs).to(tl.float32)
        total += g * g
    tl.store(out_ptr + pid, tl.sum(total, 0))


@triton.jit
def permuted(x, A: tl.constexpr, B: tl.constexpr, WIDE: tl.constexpr):
    if WIDE:
        return (x.to(tl.int64) * (A * 4294967311 + B) + B * 1000003) >> 7
    else:
        return (x * A + B) >> 7


@triton.jit
def minhash(token_ptr, out_ptr, DOCS, LENGTH: tl.constexpr, BLOCK: tl.constexpr, WIDE: tl.constexpr):
    docs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(token_ptr + docs)
    h0 = permuted(x, 40503, 17, WIDE)
    h1 = permuted(x, 30011, 91, WIDE)
    h2 = permuted(x, 51787, 33, WIDE)
    h3 = permuted(x, 61553, 75, WIDE)
    h4 = permuted(x, 24593, 29, WIDE)
    h5 = permuted(x, 49157, 53, WIDE)
    for t in range(1, LENGTH):
        x = tl.load(token_ptr + t * DOCS + docs)
        h0 = tl.minimum(h0, permuted(x, 40503, 17, WIDE))
        h1 = tl.minimum(h1, permuted(x, 30011, 91, WIDE))
        h2 = tl.minimum(h2, permuted(x, 51787, 33, WIDE))
        h3 = tl.minimum(h3, permuted(x, 61553, 75, WIDE))
        h4 = tl.minimum(h4, permuted(x, 24593, 29, WIDE))
        h5 = tl.minimum(h5, permuted(x, 49157, 53, WIDE))
    tl.store(out_ptr + docs, h0.to(tl.int32))
    tl.store(out_ptr + DOCS + docs, h1.to(tl.int32))
    tl.store(out_ptr + 2 * DOCS + docs, h2.to(tl.int32))
    tl.store(out_ptr + 3 * DOCS + docs, h3.to(tl.int32))
    tl.store(out_ptr + 4 * DOCS + docs, h4.to(tl.int32))
    tl.store(out_ptr + 5 * DOCS + docs, h5.to(tl.int32))


@triton.jit
def torus_blur(x_ptr, y_ptr, H, W, R: tl.constexpr, BLOCK: tl.constexpr, WRAPPED: tl.constexpr):
    """Box blur with periodic boundaries."""
    pixel = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    row = pixel // W
    col = pixel - row * W
    acc = tl.zeros((BLOCK,), tl.float32)
    for tap in range((2 * R + 1) * (2 * R + 1)):
        dy = tap // (2 * R + 1) - R
        dx = tap % (2 * R + 1) - R
        if WRAPPED:
            r = row + dy
            r = tl.where(r < 0, r + H, tl.where(r >= H, r - H, r))
            c = col + dx
            c = tl.where(c < 0, c + W, tl.where(c >= W, c - W, c))
        else:
            r = (row + dy + H) % H
            c = (col + dx + W) % W
        acc += tl.load(x_ptr + r * W + c)
    tl.store(y_ptr + pixel, acc / ((2 * R + 1) * (2 * R + 1)))


@triton.jit
def depthwise_conv(
    x_ptr, w_ptr, y_ptr, H: tl.constexpr, W: tl.constexpr, R: tl.constexpr, BLOCK: tl.constexpr, PADDED: tl.constexpr
):
    plane = tl.program_id(1)
    SIDE: tl.constexpr = 2 * R + 1
    pixel = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    row = pixel // W
    col = pixel % W
    acc = tl.zeros((BLOCK,), tl.float32)
    for tap in range(SIDE * SIDE):
        dy = tap // SIDE
        dx = tap % SIDE
        w = tl.load(w_ptr + plane * SIDE * SIDE + tap)
        if PADDED:
            x = tl.load(x_ptr + plane * (H + 2 * R) * (W + 2 * R) + (row + dy) * (W + 2 * R) + col + dx)
        else:
            r = row + dy - R
            c = col + dx - R
            inside = (r >= 0) & (r < H) & (c >= 0) & (c < W)
            x = tl.load(x_ptr + plane * H * W + r * W + c, mask=inside, other=0.0)
        acc += w * x
    tl.store(y_ptr + plane * H * W + pixel, acc)


@triton.jit
def hadamard_butterflies(x_ptr, y_ptr, ROWS: tl.constexpr, D: tl.constexpr, LOG: tl.constexpr):
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    at = rows[:, None] * D + tl.arange(0, D)[None, :]
    x = tl.load(x_ptr + at).to(tl.float32)
    for s in tl.static_range(LOG):
        pairs = tl.permute(tl.reshape(x, (ROWS, D // (2 << s), 2, 1 << s)), (0, 1, 3, 2))
        a, b = tl.split(pairs)
        x = tl.reshape(tl.permute(tl.join(a + b, a - b), (0, 1, 3, 2)), (ROWS, D))
    tl.store(y_ptr + at, (x * 0.0625).to(tl.float16))


@triton.jit
def hadamard_product(x_ptr, h_ptr, y_ptr, ROWS: tl.constexpr, D: tl.constexpr, BK: tl.constexpr):
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    cols = tl.arange(0, D)
    ks = tl.arange(0, BK)
    acc = tl.zeros((ROWS, D), tl.float32)
    for k in range(0, D, BK):
        x = tl.load(x_ptr + rows[:, None] * D + (k + ks)[None, :])
        h = tl.load(h_ptr + (k + ks)[:, None] * D + cols[None, :])
        acc = tl.dot(x, h, acc)
    tl.store(y_ptr + rows[:, None] * D + cols[None, :], (acc * 0.0625).to(tl.float16))


@triton.jit
def kernel_density(q_ptr, s_ptr, out_ptr, SAMPLES, bandwidth, BQ: tl.constexpr, BS: tl.constexpr, DOUBLE: tl.constexpr):
    q = tl.program_id(0) * BQ + tl.arange(0, BQ)
    x = tl.load(q_ptr + q)
    if DOUBLE:
        acc = tl.zeros((BQ, BS), tl.float64)
    else:
        acc = tl.zeros((BQ, BS), tl.float32)
    for start in range(0, SAMPLES, BS):
        s = tl.load(s_ptr + start + tl.arange(0, BS))
        d = (x[:, None] - s[None, :]) * bandwidth
        weight = tl.exp2(-d * d)
        acc += weight.to(acc.dtype)
    density = tl.sum(acc, 1)
    tl.store(out_ptr + q, density.to(tl.float32))


@triton.jit
def squared_distances(
    x_ptr, y_ptr, d_ptr, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, PRECISION: tl.constexpr
):
    """Distances of queries to points, for a nearest-neighbour search."""
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    cols = tl.program_id(1) * BN + tl.arange(0, BN)
    ks = tl.arange(0, BK)
    cross = tl.zeros((BM, BN), tl.float32)
    xx = tl.zeros((BM, BK), tl.float32)
    for k in range(0, K, BK):
        x = tl.load(x_ptr + rows[:, None] * K + (k + ks)[None, :])
        y = tl.load(y_ptr + cols[:, None] * K + (k + ks)[None, :])
        cross = tl.dot(x, tl.trans(y), cross, input_precision=PRECISION)
        xx += x * x
    tl.store(d_ptr + rows[:, None] * N + cols[None, :], tl.sum(xx, 1)[:, None] - 2.0 * cross)


@triton.jit
def weight_gradient(
    x_ptr, dy_ptr, dw_ptr, T, K, N, BM: tl.constexpr, BN: tl.constexpr, BT: tl.constexpr, WIDE: tl.constexpr
):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    cols = tl.program_id(1) * BN + tl.arange(0, BN)
    ts = tl.arange(0, BT)
    acc = tl.zeros((BM, BN), tl.float32)
    for t in range(0, T, BT):
        x = tl.load(x_ptr + (t + ts)[:, None] * K + rows[None, :])
        dy = tl.load(dy_ptr + (t + ts)[:, None] * N + cols[None, :])
        if WIDE:
            acc += tl.dot(tl.trans(x).to(tl.float32), dy.to(tl.float32))
        else:
            acc += tl.dot(tl.trans(x), dy)
    tl.store(dw_ptr + rows[:, None] * N + cols[None, :], acc)


@triton.jit
def conv3x3(
    x_ptr, w_ptr, y_ptr, H, W, C: tl.constexpr, OUT: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr
):
    """Implicit GEMM over a padded channels-last image."""
    line = tl.program_id(0)
    image = line // H
    row = line % H
    across = tl.program_id(1) * BM + tl.arange(0, BM)
    outs = tl.program_id(2) * BN + tl.arange(0, BN)
    ks = tl.arange(0, BK)
    acc = tl.zeros((BM, BN), tl.float32)
    for trip in range(9 * (C // BK)):
        tap = trip // (C // BK)
        c = (trip % (C // BK)) * BK + ks
        r = image * (H + 2) + row + tap // 3
        x = tl.load(x_ptr + (r * (W + 2) + across + tap % 3)[:, None] * C + c[None, :])
        w = tl.load(w_ptr + (tap * C + c)[:, None] * OUT + outs[None, :])
        acc = tl.dot(x, w, acc)
    tl.store(y_ptr + (line * W + across)[:, None] * OUT + outs[None, :], acc.to(tl.float16))


@triton.jit
def reversed_bits(i, BITS: tl.constexpr):
    r = i & 0
    for b in tl.static_range(BITS):
        r = r | (((i >> b) & 1) << (BITS - 1 - b))
    return r


@triton.jit
def bit_reversal(x_ptr, y_ptr, N: tl.constexpr, BITS: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, N)
    x = tl.load(x_ptr + row * N + i)
    y = tl.gather(x, reversed_bits(i, BITS), 0)
    tl.store(y_ptr + row * N + i, y)


@triton.jit
def bit_reversal_tiled(x_ptr, y_ptr, SIDE: tl.constexpr, BITS: tl.constexpr):
    """The halves of an index change places by a transpose; each half is reversed within its rows."""
    row = tl.program_id(0)
    i = tl.arange(0, SIDE)
    back = reversed_bits(i, BITS)
    x = tl.load(x_ptr + row * SIDE * SIDE + back[:, None] * SIDE + back[None, :])
    tl.store(y_ptr + row * SIDE * SIDE + i[:, None] * SIDE + i[None, :], tl.trans(x))


@triton.jit
def channel_norm(x_ptr, g_ptr, b_ptr, y_ptr, HW, eps, C: tl.constexpr, PIXELS: tl.constexpr):
    """Layer norm over the channels of an NCHW image."""
    image = tl.program_id(1)
    pixels = tl.program_id(0) * PIXELS + tl.arange(0, PIXELS)
    c = tl.arange(0, C)
    at = (image * C + c)[:, None] * HW + pixels[None, :]
    x = tl.load(x_ptr + at)
    mean = tl.sum(x, 0) / C
    x = x - mean[None, :]
    scale = tl.rsqrt(tl.sum(x * x, 0) / C + eps)
    g = tl.load(g_ptr + c)
    b = tl.load(b_ptr + c)
    tl.store(y_ptr + at, x * scale[None, :] * g[:, None] + b[:, None])


@triton.jit
def crop(x_ptr, y_ptr, H, W, OH, OW, top, left, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    frame = tl.program_id(1)
    source = x_ptr + (frame * H + row + top) * W + left
    target = y_ptr + (frame * OH + row) * OW
    for start in range(0, OW, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(source + cols, mask=cols < OW)
        tl.store(target + cols, x, mask=cols < OW)


@triton.jit
def binary_gemv(x_ptr, w_ptr, y_ptr, K, BN: tl.constexpr, BK: tl.constexpr):
    """One bit per weight, 32 weights per word."""
    rows = tl.program_id(0) * BN + tl.arange(0, BN)
    acc = tl.zeros((BN, BK), tl.float32)
    for start in range(0, K, BK):
        k = start + tl.arange(0, BK)
        x = tl.load(x_ptr + k)
        word = tl.load(w_ptr + rows[:, None] * (K // 32) + (k // 32)[None, :])
        bit = (word >> (k % 32)[None, :]) & 1
        acc += tl.where(bit == 1, x[None, :], -x[None, :])
    tl.store(y_ptr + rows, tl.sum(acc, 1))


@triton.jit
def binary_gemv_words(x_ptr, w_ptr, y_ptr, K, BN: tl.constexpr, WORDS: tl.constexpr):
    """Each word is loaded once; x is ordered by bit, then by word."""
    rows = tl.program_id(0) * BN + tl.arange(0, BN)
    acc = tl.zeros((BN, WORDS), tl.float32)
    for start in range(0, K // 32, WORDS):
        words = start + tl.arange(0, WORDS)
        word = tl.load(w_ptr + rows[:, None] * (K // 32) + words[None, :])
        for b in tl.static_range(32):
            x = tl.load(x_ptr + b * (K // 32) + words)
            acc += tl.where((word >> b) & 1 == 1, x[None, :], -x[None, :])
    tl.store(y_ptr + rows, tl.sum(acc, 1))


@triton.jit
def sample_splines(coef_ptr, out_ptr, N, dt, STEPS: tl.constexpr, BLOCK: tl.constexpr, KEPT: tl.constexpr):
    """Each curve is a polynomial of degree six, sampled as bytes."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    if KEPT:
        c0 = tl.load(coef_ptr + i)
        c1 = tl.load(coef_ptr + N + i)
        c2 = tl.load(coef_ptr + 2 * N + i)
        c3 = tl.load(coef_ptr + 3 * N + i)
        c4 = tl.load(coef_ptr + 4 * N + i)
        c5 = tl.load(coef_ptr + 5 * N + i)
        c6 = tl.load(coef_ptr + 6 * N + i)
    for step in range(STEPS):
        t = step * dt
        if not KEPT:
            c0 = tl.load(coef_ptr + i)
            c1 = tl.load(coef_ptr + N + i)
            c2 = tl.load(coef_ptr + 2 * N + i)
            c3 = tl.load(coef_ptr + 3 * N + i)
            c4 = tl.load(coef_ptr + 4 * N + i)
            c5 = tl.load(coef_ptr + 5 * N + i)
            c6 = tl.load(coef_ptr + 6 * N + i)
        y = c0 + t * (c1 + t * (c2 + t * (c3 + t * (c4 + t * (c5 + t * c6)))))
        tl.store(out_ptr + step * N + i, y.to(tl.int8))


@triton.jit
def instance_stats(x_ptr, mean_ptr, var_ptr, COLS, BLOCK: tl.constexpr, ONE_PASS: tl.constexpr):
    row = tl.program_id(0)
    offs = tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    squares = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, COLS, BLOCK):
        x = tl.load(x_ptr + row * COLS + start + offs)
        total += x
        if ONE_PASS:
            squares += x * x
    mean = tl.sum(total, 0) / COLS
    if ONE_PASS:
        var = tl.sum(squares, 0) / COLS - mean * mean
    else:
        for start in range(0, COLS, BLOCK):
            centred = tl.load(x_ptr + row * COLS + start + offs) - mean
            squares += centred * centred
        var = tl.sum(squares, 0) / COLS
    tl.store(mean_ptr + row, mean)
    tl.store(var_ptr + row, var)


@triton.jit
def greedy_sample(logit_ptr, token_ptr, logprob_ptr, V, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offs = tl.arange(0, BLOCK)
    best = -float("inf")
    token = 0
    total = 0.0
    for start in range(0, V, BLOCK):
        x = tl.load(logit_ptr + row * V + start + offs).to(tl.float32)
        top, where = tl.max(x, 0, return_indices=True)
        new = tl.maximum(best, top)
        total = total * tl.exp(best - new) + tl.sum(tl.exp(x - new), 0)
        token = tl.where(top > best, start + where, token)
        best = new
    tl.store(token_ptr + row, token)
    tl.store(logprob_ptr + row, -tl.log(total))


@triton.jit
def greedy_sample_lanes(logit_ptr, token_ptr, logprob_ptr, V, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offs = tl.arange(0, BLOCK)
    best = tl.full((BLOCK,), -1e30, tl.float32)
    token = tl.zeros((BLOCK,), tl.int32)
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, V, BLOCK):
        x = tl.load(logit_ptr + row * V + start + offs).to(tl.float32)
        new = tl.maximum(best, x)
        total = total * tl.exp(best - new) + tl.exp(x - new)
        token = tl.where(x > best, start + offs, token)
        best = new
    top = tl.max(best, 0)
    token = tl.min(tl.where(best == top, token, V), 0)
    tl.store(token_ptr + row, token)
    tl.store(logprob_ptr + row, -tl.log(tl.sum(total * tl.exp(best - top), 0)))


@triton.jit
def swiglu(x_ptr, w1_ptr, w3_ptr, h_ptr, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    cols = tl.program_id(1) * BN + tl.arange(0, BN)
    ks = tl.arange(0, BK)
    gate = tl.zeros((BM, BN), tl.float32)
    up = tl.zeros((BM, BN), tl.float32)
    for k in range(0, K, BK):
        x = tl.load(x_ptr + rows[:, None] * K + (k + ks)[None, :])
        w1 = tl.load(w1_ptr + (k + ks)[:, None] * N + cols[None, :])
        w3 = tl.load(w3_ptr + (k + ks)[:, None] * N + cols[None, :])
        gate = tl.dot(x, w1, gate)
        up = tl.dot(x, w3, up)
    h = gate * tl.sigmoid(gate) * up
    tl.store(h_ptr + rows[:, None] * N + cols[None, :], h.to(tl.bfloat16))


@triton.jit
def bias_gradient(dy_ptr, part_ptr, N, ROWS, BT: tl.constexpr, BN: tl.constexpr):
    cols = tl.program_id(0) * BN + tl.arange(0, BN)
    first = tl.program_id(1) * ROWS
    ts = tl.arange(0, BT)
    acc = tl.zeros((BT, BN), tl.float32)
    for t in range(0, ROWS, BT):
        dy = tl.load(dy_ptr + (first + t + ts)[:, None] * N + cols[None, :])
        acc += dy.to(tl.float32)
    tl.store(part_ptr + tl.program_id(1) * N + cols, tl.sum(acc, 0))


@triton.jit
def split_gemm(a_ptr, b_ptr, c_ptr, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, SPLIT: tl.constexpr):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    cols = tl.program_id(1) * BN + tl.arange(0, BN)
    first = tl.program_id(2) * (K // SPLIT)
    ks = tl.arange(0, BK)
    acc = tl.zeros((BM, BN), tl.float32)
    for k in range(0, K // SPLIT, BK):
        a = tl.load(a_ptr + rows[:, None] * K + (first + k + ks)[None, :])
        b = tl.load(b_ptr + (first + k + ks)[:, None] * N + cols[None, :])
        acc = tl.dot(a, b, acc)
    at = c_ptr + rows[:, None] * N + cols[None, :]
    if SPLIT == 1:
        tl.store(at, acc)
    else:
        tl.atomic_add(at, acc, sem="relaxed")


@triton.jit
def encoder_attention(q_ptr, k_ptr, v_ptr, o_ptr, T, scale, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    head = tl.program_id(1)
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    feats = tl.arange(0, D)
    keys = tl.arange(0, BN)
    base = head * T * D
    q = tl.load(q_ptr + base + rows[:, None] * D + feats[None, :])
    best = tl.full((BM,), -float("inf"), tl.float32)
    total = tl.zeros((BM,), tl.float32)
    acc = tl.zeros((BM, D), tl.float32)
    for start in range(0, T, BN):
        k = tl.load(k_ptr + base + (start + keys)[:, None] * D + feats[None, :])
        s = tl.dot(q, tl.trans(k)) * scale
        new = tl.maximum(best, tl.max(s, 1))
        p = tl.exp2(s - new[:, None])
        shrink = tl.exp2(best - new)
        total = total * shrink + tl.sum(p, 1)
        v = tl.load(v_ptr + base + (start + keys)[:, None] * D + feats[None, :])
        acc = tl.dot(p.to(tl.float16), v, acc * shrink[:, None])
        best = new
    tl.store(o_ptr + base + rows[:, None] * D + feats[None, :], (acc / total[:, None]).to(tl.float16))


@triton.jit
def pool_graphs(
    x_ptr, graph_ptr, out_ptr, GRAPHS: tl.constexpr, D: tl.constexpr, ROWS: tl.constexpr, REDUCED: tl.constexpr
):
    """Sum of the node features of each graph; the nodes are sorted by graph."""
    nodes = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    feats = tl.arange(0, D)
    x = tl.load(x_ptr + nodes[:, None] * D + feats[None, :])
    if REDUCED:
        graph = tl.load(graph_ptr + tl.program_id(0) * ROWS) & (GRAPHS - 1)
        tl.atomic_add(out_ptr + graph * D + feats, tl.sum(x, 0), sem="relaxed")
    else:
        graphs = tl.load(graph_ptr + nodes) & (GRAPHS - 1)
        tl.atomic_add(out_ptr + graphs[:, None] * D + feats[None, :], x, sem="relaxed")


@triton.jit
def merged_moments(x_ptr, moment_ptr, lock_ptr, PART, BLOCK: tl.constexpr, LOCKED: tl.constexpr):
    """Mean and squared deviation of each part, merged by Chan's formula."""
    pid = tl.program_id(0)
    offs = tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    squares = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, PART, BLOCK):
        x = tl.load(x_ptr + pid * PART + start + offs).to(tl.float32)
        total += x
        squares += x * x
    mean = tl.sum(total, 0) / PART
    m2 = tl.sum(squares, 0) - mean * mean * PART
    if LOCKED:
        while tl.atomic_cas(lock_ptr, 0, 1) == 1:
            pass
        count = tl.load(moment_ptr)
        old = tl.load(moment_ptr + 1)
        delta = mean - old
        both = count + PART
        tl.store(moment_ptr + 1, old + delta * PART / both)
        tl.store(moment_ptr + 2, tl.load(moment_ptr + 2) + m2 + delta * delta * count * PART / both)
        tl.store(moment_ptr, both)
        tl.debug_barrier()
        tl.atomic_xchg(lock_ptr, 0)
    else:
        tl.store(moment_ptr + 4 * pid, PART.to(tl.float32))
        tl.store(moment_ptr + 4 * pid + 1, mean)
        tl.store(moment_ptr + 4 * pid + 2, m2)


@triton.jit
def route_tokens(logit_ptr, prob_ptr, choice_ptr, E: tl.constexpr, TOKENS: tl.constexpr):
    tokens = tl.program_id(0) * TOKENS + tl.arange(0, TOKENS)
    experts = tl.arange(0, E)
    x = tl.load(logit_ptr + tokens[:, None] * E + experts[None, :]).to(tl.float32)
    x = tl.exp(x - tl.max(x, 1)[:, None])
    p = x / tl.sum(x, 1)[:, None]
    best = tl.argmax(p, 1)
    rest = tl.where(experts[None, :] == best[:, None], -1.0, p)
    second = tl.argmax(rest, 1)
    tl.store(prob_ptr + tokens[:, None] * E + experts[None, :], p)
    tl.store(choice_ptr + 2 * tokens, best)
    tl.store(choice_ptr + 2 * tokens + 1, second)


@triton.jit
def append_keys(k_ptr, cos_ptr, sin_ptr, slot_ptr, cache_ptr, SLOTS, HEADS: tl.constexpr, HALF: tl.constexpr):
    """Rotate the keys of new tokens and write them to their slots of the cache."""
    token = tl.program_id(0)
    slot = tl.load(slot_ptr + token) & (SLOTS - 1)
    half = tl.arange(0, HALF)
    heads = tl.arange(0, HEADS)
    c = tl.load(cos_ptr + token * HALF + half)[None, :]
    s = tl.load(sin_ptr + token * HALF + half)[None, :]
    at = heads[:, None] * (2 * HALF) + half[None, :]
    a = tl.load(k_ptr + token * HEADS * 2 * HALF + at).to(tl.float32)
    b = tl.load(k_ptr + token * HEADS * 2 * HALF + HALF + at).to(tl.float32)
    tl.store(cache_ptr + slot * HEADS * 2 * HALF + at, (a * c - b * s).to(tl.bfloat16))
    tl.store(cache_ptr + slot * HEADS * 2 * HALF + HALF + at, (b * c + a * s).to(tl.bfloat16))


@triton.jit
def grouped_decode(q_ptr, k_ptr, v_ptr, o_ptr, T, scale, G: tl.constexpr, D: tl.constexpr, BN: tl.constexpr):
    head = tl.program_id(0)
    group = tl.arange(0, G)
    feats = tl.arange(0, D)
    keys = tl.arange(0, BN)
    q = tl.load(q_ptr + head * G * D + group[:, None] * D + feats[None, :])
    best = tl.full((G,), -float("inf"), tl.float32)
    total = tl.zeros((G,), tl.float32)
    acc = tl.zeros((G, D), tl.float32)
    for start in range(0, T, BN):
        at = head * T * D + (start + keys)[:, None] * D + feats[None, :]
        k = tl.load(k_ptr + at)
        v = tl.load(v_ptr + at)
        s = tl.dot(q, tl.trans(k)) * scale
        new = tl.maximum(best, tl.max(s, 1))
        p = tl.exp2(s - new[:, None])
        shrink = tl.exp2(best - new)
        total = total * shrink + tl.sum(p, 1)
        acc = acc * shrink[:, None] + tl.dot(p.to(tl.bfloat16), v)
        best = new
    tl.store(o_ptr + head * G * D + group[:, None] * D + feats[None, :], (acc / total[:, None]).to(tl.bfloat16))


@triton.jit
def move_particles(p_ptr, n, dt, BLOCK: tl.constexpr, RECORDS: tl.constexpr):
    """Eight floats per particle: position, velocity, mass and charge; records, or one array for each field."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    if RECORDS:
        at = p_ptr + i * 8
        step = 1
    else:
        at = p_ptr + i
        step = n
    x = tl.load(at)
    y = tl.load(at + step)
    z = tl.load(at + 2 * step)
    vx = tl.load(at + 3 * step)
    vy = tl.load(at + 4 * step)
    vz = tl.load(at + 5 * step)
    mass = tl.load(at + 6 * step)
    pull = dt / (mass * (x * x + y * y + z * z + 0.01))
    vx -= x * pull
    vy -= y * pull
    vz -= z * pull
    tl.store(at, x + vx * dt)
    tl.store(at + step, y + vy * dt)
    tl.store(at + 2 * step, z + vz * dt)
    tl.store(at + 3 * step, vx)
    tl.store(at + 4 * step, vy)
    tl.store(at + 5 * step, vz)
