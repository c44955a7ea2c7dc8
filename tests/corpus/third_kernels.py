# ruff: noqa: N803
"""Kernels of the third set of unseen comparisons."""

import triton
import triton.language as tl


@triton.jit
def geglu_gemm(x_ptr, g_ptr, u_ptr, y_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """Two products of one operand, joined by an activation."""
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    n = tl.program_id(1) * BN + tl.arange(0, BN)
    k = tl.arange(0, BK)
    gate = tl.zeros((BM, BN), dtype=tl.float32)
    up = tl.zeros((BM, BN), dtype=tl.float32)
    for start in range(0, K, BK):
        x = tl.load(x_ptr + m[:, None] * K + (start + k)[None, :], mask=(m < M)[:, None], other=0.0)
        g = tl.load(g_ptr + n[None, :] * K + (start + k)[:, None])
        u = tl.load(u_ptr + n[None, :] * K + (start + k)[:, None])
        gate = tl.dot(x, g, gate)
        up = tl.dot(x, u, up)
    y = gate * tl.sigmoid(gate) * up
    tl.store(y_ptr + m[:, None] * N + n[None, :], y.to(tl.bfloat16), mask=(m < M)[:, None])


@triton.jit
def mla_decode(
    q_ptr, c_ptr, o_ptr, length, scale, HEADS: tl.constexpr, DIM: tl.constexpr, ROPE: tl.constexpr, BLOCK: tl.constexpr
):
    """Attention of one query over a compressed cache: keys are the values, and have rotated columns behind them."""
    batch = tl.program_id(0)
    h = tl.program_id(1) * HEADS + tl.arange(0, HEADS)
    d, r = tl.arange(0, DIM), tl.arange(0, ROPE)
    width = DIM + ROPE
    q = tl.load(q_ptr + batch * 128 * width + h[:, None] * width + d[None, :])
    q_rope = tl.load(q_ptr + batch * 128 * width + h[:, None] * width + DIM + r[None, :])
    top = tl.full((HEADS,), float("-inf"), dtype=tl.float32)
    total = tl.zeros((HEADS,), dtype=tl.float32)
    acc = tl.zeros((HEADS, DIM), dtype=tl.float32)
    for start in range(0, length, BLOCK):
        t = start + tl.arange(0, BLOCK)
        c = tl.load(c_ptr + (batch * length + t)[:, None] * width + d[None, :], mask=(t < length)[:, None], other=0.0)
        c_rope = tl.load(
            c_ptr + (batch * length + t)[None, :] * width + DIM + r[:, None], mask=(t < length)[None, :], other=0.0
        )
        s = tl.dot(q, tl.trans(c))
        s = tl.dot(q_rope, c_rope, s) * scale
        s = tl.where((t < length)[None, :], s, float("-inf"))
        new = tl.maximum(top, tl.max(s, axis=1))
        p = tl.exp2(s - new[:, None])
        shrink = tl.exp2(top - new)
        acc = tl.dot(p.to(tl.bfloat16), c, acc * shrink[:, None])
        total = total * shrink + tl.sum(p, axis=1)
        top = new
    out = (acc / total[:, None]).to(tl.bfloat16)
    tl.store(o_ptr + batch * 128 * DIM + h[:, None] * DIM + d[None, :], out)


@triton.jit
def chunk_state(b_ptr, x_ptr, a_ptr, s_ptr, L, BL: tl.constexpr, STATE: tl.constexpr, DIM: tl.constexpr):
    """State of one chunk of a state-space model: decayed rows, multiplied transposed."""
    chunk = tl.program_id(0)
    n, d, t = tl.arange(0, STATE), tl.arange(0, DIM), tl.arange(0, BL)
    acc = tl.zeros((STATE, DIM), dtype=tl.float32)
    last = tl.load(a_ptr + chunk * L + L - 1)
    for start in range(0, L, BL):
        row = chunk * L + start + t
        b = tl.load(b_ptr + row[None, :] * STATE + n[:, None])
        x = tl.load(x_ptr + row[:, None] * DIM + d[None, :])
        decay = tl.exp(last - tl.load(a_ptr + row))
        acc = tl.dot(b, (x.to(tl.float32) * decay[:, None]).to(tl.bfloat16), acc)
    tl.store(s_ptr + chunk * STATE * DIM + n[:, None] * DIM + d[None, :], acc)


@triton.jit
def topk_router(logits_ptr, weight_ptr, index_ptr, tokens, BM: tl.constexpr, EXPERTS: tl.constexpr, TOP: tl.constexpr):
    """The largest scores of some tokens, one after the other."""
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    e = tl.arange(0, EXPERTS)
    x = tl.load(logits_ptr + m[:, None] * EXPERTS + e[None, :], mask=(m < tokens)[:, None], other=float("-inf"))
    x = tl.softmax(x.to(tl.float32))
    for rank in tl.static_range(TOP):
        best, at = tl.max(x, axis=1, return_indices=True)
        tl.store(weight_ptr + m * TOP + rank, best, mask=m < tokens)
        tl.store(index_ptr + m * TOP + rank, at, mask=m < tokens)
        x = tl.where(e[None, :] == at[:, None], float("-inf"), x)


@triton.jit
def cumsum_rows(x_ptr, y_ptr, T, BLOCK: tl.constexpr):
    """Running sum of a row, one block after the other."""
    row = tl.program_id(0)
    carry = 0.0
    for start in range(0, T, BLOCK):
        t = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * T + t, mask=t < T, other=0.0).to(tl.float32)
        y = tl.cumsum(x, axis=0) + carry
        carry += tl.sum(x, axis=0)
        tl.store(y_ptr + row * T + t, y, mask=t < T)


@triton.jit
def group_quantize(x_ptr, q_ptr, s_ptr, N, BM: tl.constexpr, GROUP: tl.constexpr):
    """int8 of groups of columns, each with a scale."""
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    g = tl.program_id(1)
    n = g * GROUP + tl.arange(0, GROUP)
    x = tl.load(x_ptr + m[:, None] * N + n[None, :]).to(tl.float32)
    scale = tl.max(tl.abs(x), axis=1) / 127.0
    q = x / tl.maximum(scale, 1e-8)[:, None]
    tl.store(q_ptr + m[:, None] * N + n[None, :], q.to(tl.int8))
    tl.store(s_ptr + m * (N // GROUP) + g, scale)


@triton.jit
def gemv_rows(w_ptr, x_ptr, y_ptr, N, K, BN: tl.constexpr, BK: tl.constexpr):
    """A matrix by a vector: rows stay, one reduction at the end."""
    n = tl.program_id(0) * BN + tl.arange(0, BN)
    k = tl.arange(0, BK)
    acc = tl.zeros((BN, BK), dtype=tl.float32)
    for start in range(0, K, BK):
        w = tl.load(w_ptr + n[:, None] * K + (start + k)[None, :])
        x = tl.load(x_ptr + start + k)
        acc += w.to(tl.float32) * x.to(tl.float32)[None, :]
    tl.store(y_ptr + n, tl.sum(acc, axis=1).to(tl.float16))


@triton.jit
def gemm_tn(a_ptr, b_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """aᵀ · b, both stored by rows of K: the gradient of a weight."""
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    n = tl.program_id(1) * BN + tl.arange(0, BN)
    k = tl.arange(0, BK)
    a_at = a_ptr + k[None, :] * M + m[:, None]
    b_at = b_ptr + k[:, None] * N + n[None, :]
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for _ in range(0, K, BK):
        acc = tl.dot(tl.load(a_at), tl.load(b_at), acc)
        a_at += BK * M
        b_at += BK * N
    tl.store(c_ptr + m[:, None] * N + n[None, :], acc)


@triton.jit
def loss_backward(logits_ptr, label_ptr, lse_ptr, V, scale, BLOCK: tl.constexpr):
    """Gradient of a cross entropy, in place."""
    row = tl.program_id(0)
    cols = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(logits_ptr + row * V + cols, mask=cols < V, other=float("-inf")).to(tl.float32)
    p = tl.exp(x - tl.load(lse_ptr + row))
    p = tl.where(cols == tl.load(label_ptr + row), p - 1.0, p) * scale
    tl.store(logits_ptr + row * V + cols, p.to(tl.bfloat16), mask=cols < V)


@triton.jit
def csr_sum(row_ptr, col_ptr, value_ptr, x_ptr, y_ptr, D, BLOCK: tl.constexpr, NNZ: tl.constexpr):
    """Sparse rows by a dense matrix: gathered rows, weighted and added."""
    row = tl.program_id(0)
    d = tl.arange(0, BLOCK)
    first, last = tl.load(row_ptr + row), tl.load(row_ptr + row + 1)
    acc = tl.zeros((BLOCK,), dtype=tl.float32)
    for at in range(first, last, NNZ):
        i = at + tl.arange(0, NNZ)
        col = tl.load(col_ptr + i, mask=i < last, other=0)
        value = tl.load(value_ptr + i, mask=i < last, other=0.0)
        x = tl.load(x_ptr + col[:, None] * D + d[None, :])
        acc += tl.sum(x.to(tl.float32) * value[:, None], axis=0)
    tl.store(y_ptr + row * D + d, acc)


@triton.jit
def w8a8_gemm(a_ptr, b_ptr, sa_ptr, sb_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """int8 by int8, with a scale of each row and column."""
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    n = tl.program_id(1) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), dtype=tl.int32)
    for start in range(0, K, BK):
        k = start + tl.arange(0, BK)
        a = tl.load(a_ptr + m[:, None] * K + k[None, :], mask=k[None, :] < K, other=0)
        b = tl.load(b_ptr + n[None, :] * K + k[:, None], mask=k[:, None] < K, other=0)
        acc = tl.dot(a, b, acc)
    scales = tl.load(sa_ptr + m)[:, None] * tl.load(sb_ptr + n)[None, :]
    tl.store(c_ptr + m[:, None] * N + n[None, :], (acc.to(tl.float32) * scales).to(tl.bfloat16))
