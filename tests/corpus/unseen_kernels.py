# ruff: noqa: N803
"""Kernels of the unseen comparisons: what inference and training programs launch, none of them a reference kernel."""

import triton
import triton.language as tl


@triton.jit
def causal_conv(x_ptr, w_ptr, y_ptr, T, D, BLOCK_T: tl.constexpr, BLOCK_D: tl.constexpr, WIDTH: tl.constexpr):
    """Depthwise causal convolution over time."""
    t = tl.program_id(0) * BLOCK_T + tl.arange(0, BLOCK_T)
    d = tl.program_id(1) * BLOCK_D + tl.arange(0, BLOCK_D)
    acc = tl.zeros((BLOCK_T, BLOCK_D), dtype=tl.float32)
    for tap in tl.static_range(WIDTH):
        row = t - WIDTH + 1 + tap
        w = tl.load(w_ptr + tap * D + d, mask=d < D, other=0.0)
        x = tl.load(x_ptr + row[:, None] * D + d[None, :], mask=(row >= 0)[:, None] & (d < D)[None, :], other=0.0)
        acc += x.to(tl.float32) * w.to(tl.float32)[None, :]
    y = acc * tl.sigmoid(acc)
    tl.store(y_ptr + t[:, None] * D + d[None, :], y.to(tl.float16), mask=(t < T)[:, None] & (d < D)[None, :])


@triton.jit
def int8_gemm(x_ptr, w_ptr, s_ptr, y_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """fp16 activations by int8 weights with one scale per column."""
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    n = tl.program_id(1) * BN + tl.arange(0, BN)
    k = tl.arange(0, BK)
    x_at = x_ptr + m[:, None] * K + k[None, :]
    w_at = w_ptr + k[:, None] * N + n[None, :]
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for _ in range(0, K, BK):
        x = tl.load(x_at)
        w = tl.load(w_at)
        acc = tl.dot(x, w.to(tl.float16), acc)
        x_at += BK
        w_at += BK * N
    scale = tl.load(s_ptr + n)
    tl.store(y_ptr + m[:, None] * N + n[None, :], (acc * scale[None, :]).to(tl.float16))


@triton.jit
def add_rms_norm(x_ptr, r_ptr, w_ptr, y_ptr, stride, n_cols, eps, BLOCK: tl.constexpr):
    """Adds a residual, keeps the sum, and normalises it."""
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    mask = cols < n_cols
    x = tl.load(x_ptr + row * stride + cols, mask=mask, other=0.0).to(tl.float32)
    r = tl.load(r_ptr + row * stride + cols, mask=mask, other=0.0).to(tl.float32)
    total = x + r
    tl.store(r_ptr + row * stride + cols, total.to(tl.float16), mask=mask)
    w = tl.load(w_ptr + cols, mask=mask, other=0.0).to(tl.float32)
    square = tl.sum(total * total, axis=0) / n_cols
    y = total * tl.rsqrt(square + eps) * w
    tl.store(y_ptr + row * stride + cols, y.to(tl.float16), mask=mask)


@triton.jit
def online_loss(logits_ptr, label_ptr, loss_ptr, stride, V, BLOCK: tl.constexpr):
    """Cross entropy of one row with a running maximum."""
    row = tl.program_id(0)
    label = tl.load(label_ptr + row)
    top = float("-inf")
    total = 0.0
    for start in range(0, V, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(logits_ptr + row * stride + cols, mask=cols < V, other=float("-inf")).to(tl.float32)
        new = tl.maximum(top, tl.max(x, axis=0))
        total = total * tl.exp(top - new) + tl.sum(tl.exp(x - new), axis=0)
        top = new
    picked = tl.load(logits_ptr + row * stride + label).to(tl.float32)
    tl.store(loss_ptr + row, tl.log(total) + top - picked)


@triton.jit
def paged_decode(
    q_ptr, k_ptr, v_ptr, table_ptr, o_ptr, length, pages, scale,
    HEADS: tl.constexpr, DIM: tl.constexpr, PAGE: tl.constexpr,
):  # fmt: skip
    """Attention of one query with a group of heads over a paged cache."""
    batch = tl.program_id(0)
    h, d, p = tl.arange(0, HEADS), tl.arange(0, DIM), tl.arange(0, PAGE)
    q = tl.load(q_ptr + batch * HEADS * DIM + h[:, None] * DIM + d[None, :])
    top = tl.full((HEADS,), float("-inf"), dtype=tl.float32)
    total = tl.zeros((HEADS,), dtype=tl.float32)
    acc = tl.zeros((HEADS, DIM), dtype=tl.float32)
    for start in range(0, length, PAGE):
        page = tl.load(table_ptr + batch * pages + start // PAGE)
        k = tl.load(k_ptr + page * PAGE * DIM + p[None, :] * DIM + d[:, None])
        s = tl.dot(q, k) * scale
        s = tl.where((start + p)[None, :] < length, s, float("-inf"))
        new = tl.maximum(top, tl.max(s, axis=1))
        weight = tl.exp(s - new[:, None])
        shrink = tl.exp(top - new)
        v = tl.load(v_ptr + page * PAGE * DIM + p[:, None] * DIM + d[None, :])
        acc = tl.dot(weight.to(tl.float16), v, acc * shrink[:, None])
        total = total * shrink + tl.sum(weight, axis=1)
        top = new
    tl.store(o_ptr + batch * HEADS * DIM + h[:, None] * DIM + d[None, :], (acc / total[:, None]).to(tl.float16))


@triton.jit
def bmm_nt(a_ptr, b_ptr, c_ptr, M, N, K, sab, sbb, scb, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """Batched a · bᵀ with a GELU."""
    batch = tl.program_id(2)
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    n = tl.program_id(1) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for start in range(0, K, BK):
        k = start + tl.arange(0, BK)
        a = tl.load(a_ptr + batch * sab + m[:, None] * K + k[None, :], mask=k[None, :] < K, other=0.0)
        b = tl.load(b_ptr + batch * sbb + n[None, :] * K + k[:, None], mask=k[:, None] < K, other=0.0)
        acc = tl.dot(a, b, acc)
    c = acc * tl.sigmoid(1.702 * acc)
    tl.store(c_ptr + batch * scb + m[:, None] * N + n[None, :], c.to(tl.float16))


@triton.jit
def transpose(x_ptr, y_ptr, M, N, BM: tl.constexpr, BN: tl.constexpr):
    """Copies a matrix with its axes exchanged."""
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    n = tl.program_id(1) * BN + tl.arange(0, BN)
    x = tl.load(x_ptr + m[:, None] * N + n[None, :])
    tl.store(y_ptr + n[:, None] * M + m[None, :], tl.trans(x))


@triton.jit
def embedding_bag(emb_ptr, index_ptr, offset_ptr, y_ptr, D, BLOCK: tl.constexpr):
    """Sums the rows that a bag names."""
    bag = tl.program_id(0)
    d = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    acc = tl.zeros((BLOCK,), dtype=tl.float32)
    for at in range(tl.load(offset_ptr + bag), tl.load(offset_ptr + bag + 1)):
        row = tl.load(index_ptr + at)
        acc += tl.load(emb_ptr + row * D + d, mask=d < D, other=0.0).to(tl.float32)
    tl.store(y_ptr + bag * D + d, acc.to(tl.float16), mask=d < D)


@triton.jit
def quantize_rows(x_ptr, q_ptr, s_ptr, n_cols, BLOCK: tl.constexpr):
    """int8 with one scale per row."""
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n_cols + cols, mask=cols < n_cols, other=0.0).to(tl.float32)
    top = tl.max(tl.abs(x), axis=0)
    q = x * (127.0 / top)
    tl.store(q_ptr + row * n_cols + cols, q.to(tl.int8), mask=cols < n_cols)
    tl.store(s_ptr + row, top / 127.0)


@triton.jit
def lora(x_ptr, a_ptr, b_ptr, y_ptr, K, N, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, R: tl.constexpr):
    """x · A · B with a low rank between."""
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    r = tl.arange(0, R)
    low = tl.zeros((BM, R), dtype=tl.float32)
    for start in range(0, K, BK):
        k = start + tl.arange(0, BK)
        x = tl.load(x_ptr + m[:, None] * K + k[None, :])
        a = tl.load(a_ptr + k[:, None] * R + r[None, :])
        low = tl.dot(x, a, low)
    n = tl.program_id(1) * BN + tl.arange(0, BN)
    b = tl.load(b_ptr + r[:, None] * N + n[None, :])
    tl.store(y_ptr + m[:, None] * N + n[None, :], tl.dot(low.to(tl.float16), b).to(tl.float16))


@triton.jit
def decay_scan(x_ptr, g_ptr, y_ptr, T, D, BLOCK_T: tl.constexpr, BLOCK_D: tl.constexpr):
    """Running sums over time of gated inputs."""
    d = tl.program_id(0) * BLOCK_D + tl.arange(0, BLOCK_D)
    carry = tl.zeros((BLOCK_D,), dtype=tl.float32)
    for start in range(0, T, BLOCK_T):
        t = start + tl.arange(0, BLOCK_T)
        x = tl.load(x_ptr + t[:, None] * D + d[None, :])
        g = tl.load(g_ptr + t[:, None] * D + d[None, :])
        y = tl.cumsum(x * g, axis=0) + carry[None, :]
        tl.store(y_ptr + t[:, None] * D + d[None, :], y)
        carry = tl.sum(tl.where((t == start + BLOCK_T - 1)[:, None], y, 0.0), axis=0)


@triton.jit
def expert_gate(x_ptr, w_ptr, p_ptr, D, BLOCK_M: tl.constexpr, BLOCK_D: tl.constexpr, EXPERTS: tl.constexpr):
    """Softmax over the experts of each token."""
    m = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    e = tl.arange(0, EXPERTS)
    acc = tl.zeros((BLOCK_M, EXPERTS), dtype=tl.float32)
    for start in range(0, D, BLOCK_D):
        d = start + tl.arange(0, BLOCK_D)
        x = tl.load(x_ptr + m[:, None] * D + d[None, :])
        w = tl.load(w_ptr + e[None, :] * D + d[:, None])
        acc = tl.dot(x, w, acc)
    shifted = tl.exp(acc - tl.max(acc, axis=1)[:, None])
    tl.store(p_ptr + m[:, None] * EXPERTS + e[None, :], shifted / tl.sum(shifted, axis=1)[:, None])


@triton.jit
def splitk_gemm(
    a_ptr, b_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, SPLIT: tl.constexpr
):
    """Products of a part of K, added with atomics."""
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    n = tl.program_id(1) * BN + tl.arange(0, BN)
    k = tl.program_id(2) * BK + tl.arange(0, BK)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for start in range(0, K, BK * SPLIT):
        a = tl.load(a_ptr + m[:, None] * K + (start + k)[None, :], mask=(start + k)[None, :] < K, other=0.0)
        b = tl.load(b_ptr + (start + k)[:, None] * N + n[None, :], mask=(start + k)[:, None] < K, other=0.0)
        acc += tl.dot(a, b)
    tl.atomic_add(c_ptr + m[:, None] * N + n[None, :], acc, sem="relaxed")


@triton.jit
def conv2d_gemm(
    x_ptr, w_ptr, y_ptr, H, W, C, OC, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, KS: tl.constexpr
):
    """Convolution of an NHWC image as products of gathered rows."""
    pix = tl.program_id(0) * BM + tl.arange(0, BM)
    oc = tl.program_id(1) * BN + tl.arange(0, BN)
    row = pix // W
    col = pix % W
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for tap in range(KS * KS):
        dy = tap // KS - KS // 2
        dx = tap % KS - KS // 2
        ok = (row + dy >= 0) & (row + dy < H) & (col + dx >= 0) & (col + dx < W)
        for c0 in range(0, C, BK):
            c = c0 + tl.arange(0, BK)
            x = tl.load(x_ptr + ((row + dy) * W + col + dx)[:, None] * C + c[None, :], mask=ok[:, None], other=0.0)
            w = tl.load(w_ptr + (tap * C + c)[:, None] * OC + oc[None, :])
            acc = tl.dot(x, w, acc)
    tl.store(y_ptr + pix[:, None] * OC + oc[None, :], acc.to(tl.float16), mask=(pix < H * W)[:, None])


@triton.jit
def moe_gather_gemm(x_ptr, w_ptr, idx_ptr, e_ptr, y_ptr, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """Rows of tokens by the weights of one expert."""
    slot = tl.program_id(0) * BM + tl.arange(0, BM)
    tok = tl.load(idx_ptr + slot)
    ex = tl.load(e_ptr + tl.program_id(0)).to(tl.int64)
    n = tl.program_id(1) * BN + tl.arange(0, BN)
    k = tl.arange(0, BK)
    x_at = x_ptr + tok[:, None] * K + k[None, :]
    w_at = w_ptr + ex * N * K + n[None, :] * K + k[:, None]
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for _ in range(0, K, BK):
        acc = tl.dot(tl.load(x_at), tl.load(w_at), acc)
        x_at += BK
        w_at += BK
    tl.store(y_ptr + slot[:, None] * N + n[None, :], acc.to(tl.bfloat16))


@triton.jit
def kv8_attention(
    q_ptr, k_ptr, v_ptr, ks_ptr, vs_ptr, o_ptr, L, scale, BQ: tl.constexpr, BKV: tl.constexpr, D: tl.constexpr
):
    """Attention over keys and values of 8 bits with one scale per row."""
    q_at = tl.program_id(0) * BQ + tl.arange(0, BQ)
    d = tl.arange(0, D)
    head = tl.program_id(1)
    q = tl.load(q_ptr + head * L * D + q_at[:, None] * D + d[None, :])
    m = tl.full((BQ,), -float("inf"), tl.float32)
    s = tl.zeros((BQ,), tl.float32)
    acc = tl.zeros((BQ, D), tl.float32)
    for j in range(0, L, BKV):
        kv = j + tl.arange(0, BKV)
        k = tl.load(k_ptr + head * L * D + kv[None, :] * D + d[:, None]).to(tl.float16)
        ks = tl.load(ks_ptr + head * L + kv)
        x = tl.dot(q, k) * ks[None, :] * scale
        new = tl.maximum(m, tl.max(x, 1))
        p = tl.exp2(x - new[:, None])
        alpha = tl.exp2(m - new)
        s = s * alpha + tl.sum(p, 1)
        vs = tl.load(vs_ptr + head * L + kv)
        v = tl.load(v_ptr + head * L * D + kv[:, None] * D + d[None, :]).to(tl.float16)
        acc = tl.dot((p * vs[None, :]).to(tl.float16), v, acc * alpha[:, None])
        m = new
    tl.store(o_ptr + head * L * D + q_at[:, None] * D + d[None, :], (acc / s[:, None]).to(tl.float16))


@triton.jit
def sort_rows(x_ptr, y_ptr, stride, N: tl.constexpr):
    """Sorts a row."""
    row = tl.program_id(0)
    c = tl.arange(0, N)
    x = tl.load(x_ptr + row * stride + c)
    tl.store(y_ptr + row * stride + c, tl.sort(x))


@triton.jit
def norm_backward(dy_ptr, x_ptr, dw_ptr, rows, cols, BR: tl.constexpr, BC: tl.constexpr):
    """Gradient of the weight of a norm."""
    c = tl.program_id(0) * BC + tl.arange(0, BC)
    acc = tl.zeros((BC,), tl.float32)
    for r0 in range(0, rows, BR):
        r = r0 + tl.arange(0, BR)
        at = r[:, None] * cols + c[None, :]
        ok = (r < rows)[:, None] & (c < cols)[None, :]
        dy = tl.load(dy_ptr + at, mask=ok, other=0.0).to(tl.float32)
        x = tl.load(x_ptr + at, mask=ok, other=0.0).to(tl.float32)
        acc += tl.sum(dy * x, 0)
    tl.store(dw_ptr + c, acc, mask=c < cols)


@triton.jit
def gemm_f32(a_ptr, b_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """A product of fp32 operands."""
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    n = tl.program_id(1) * BN + tl.arange(0, BN)
    k = tl.arange(0, BK)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for s in range(0, K, BK):
        a = tl.load(a_ptr + m[:, None] * K + (s + k)[None, :])
        b = tl.load(b_ptr + n[None, :] * K + (s + k)[:, None])
        acc = tl.dot(a, b, acc)
    tl.store(c_ptr + m[:, None] * N + n[None, :], acc)


@triton.jit
def token_counts(x_ptr, out_ptr, n, BLOCK: tl.constexpr, BINS: tl.constexpr):
    """Counts each token."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x_ptr + i, mask=i < n, other=0)
    h = tl.histogram(v, BINS)
    tl.atomic_add(out_ptr + tl.arange(0, BINS), h)


@triton.jit
def nchw_to_nhwc_bias(x_ptr, b_ptr, y_ptr, C, HW, BC: tl.constexpr, BP: tl.constexpr):
    """Adds a bias, clamps, and transposes."""
    c = tl.program_id(0) * BC + tl.arange(0, BC)
    p = tl.program_id(1) * BP + tl.arange(0, BP)
    x = tl.load(x_ptr + c[:, None] * HW + p[None, :])
    b = tl.load(b_ptr + c)
    y = tl.maximum(x + b[:, None], 0.0)
    tl.store(y_ptr + p[:, None] * C + c[None, :], tl.trans(y))


@triton.jit
def rotary(x_ptr, cos_ptr, sin_ptr, S, H: tl.constexpr, HALF: tl.constexpr):
    """Rotates halves of each head in place."""
    s = tl.program_id(0)
    h = tl.arange(0, H)
    d = tl.arange(0, HALF)
    at = s * H * HALF * 2 + h[:, None] * HALF * 2 + d[None, :]
    a = tl.load(x_ptr + at).to(tl.float32)
    b = tl.load(x_ptr + at + HALF).to(tl.float32)
    c = tl.load(cos_ptr + s * HALF + d)[None, :]
    n = tl.load(sin_ptr + s * HALF + d)[None, :]
    tl.store(x_ptr + at, (a * c - b * n).to(tl.bfloat16))
    tl.store(x_ptr + at + HALF, (b * c + a * n).to(tl.bfloat16))
