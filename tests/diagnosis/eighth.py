"""An eighth set of kernels, each with one planted problem; written and frozen before any of them was diagnosed."""

import triton
import triton.language as tl


@triton.jit
def decode_attention(
    q_ptr, k_ptr, v_ptr, part_ptr, stat_ptr, T, scale, G: tl.constexpr, D: tl.constexpr, BN: tl.constexpr, SPAN: tl.constexpr
):  # fmt: skip
    """One new token of G query heads against SPAN of T cached keys; partial results if SPAN < T."""
    head = tl.program_id(0)
    split = tl.program_id(1)
    rows = tl.arange(0, G)
    dims = tl.arange(0, D)
    q = tl.load(q_ptr + (head * G + rows[:, None]) * D + dims[None, :])
    top = tl.full((G,), -1e30, tl.float32)
    total = tl.zeros((G,), tl.float32)
    acc = tl.zeros((G, D), tl.float32)
    for step in range(0, SPAN, BN):
        keys = head * T + split * SPAN + step + tl.arange(0, BN)
        k = tl.load(k_ptr + keys[None, :] * D + dims[:, None])
        s = tl.dot(q, k) * scale
        new = tl.maximum(top, tl.max(s, 1))
        p = tl.exp2(s - new[:, None])
        shrink = tl.exp2(top - new)
        total = total * shrink + tl.sum(p, 1)
        v = tl.load(v_ptr + keys[:, None] * D + dims[None, :])
        acc = tl.dot(p.to(v.dtype), v, acc * shrink[:, None])
        top = new
    place = (split * tl.num_programs(0) + head) * G + rows
    tl.store(part_ptr + place[:, None] * D + dims[None, :], acc / total[:, None])
    tl.store(stat_ptr + place, top + tl.log2(total))


@triton.jit
def count_routed(expert_ptr, count_ptr, E: tl.constexpr, TRIPS: tl.constexpr, BLOCK: tl.constexpr, LOCAL: tl.constexpr):
    """How many tokens go to each of E experts."""
    first = tl.program_id(0) * TRIPS * BLOCK
    offs = tl.arange(0, BLOCK)
    counts = tl.zeros((E,), tl.int32)
    for trip in range(TRIPS):
        expert = tl.load(expert_ptr + first + trip * BLOCK + offs)
        if LOCAL:
            counts += tl.histogram(expert, E)
        else:
            tl.atomic_add(count_ptr + expert, 1, sem="relaxed")
    if LOCAL:
        tl.atomic_add(count_ptr + tl.arange(0, E), counts, sem="relaxed")


@triton.jit
def grouped_gemm(
    a_ptr, q_ptr, s_ptr, c_ptr, N, K,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr, ONCE: tl.constexpr
):  # fmt: skip
    """A @ dequantise(Q) with one scale per GROUP rows of K and column of N."""
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    cols = tl.program_id(1) * BN + tl.arange(0, BN)
    depth = tl.arange(0, BK)
    acc = tl.zeros((BM, BN), tl.float32)
    for start in range(0, K, BK):
        k = start + depth
        a = tl.load(a_ptr + rows[:, None] * K + k[None, :])
        w = tl.load(q_ptr + k[:, None] * N + cols[None, :]).to(tl.float16)
        if ONCE:
            scale = tl.load(s_ptr + start // GROUP * N + cols)[None, :]
        else:
            scale = tl.load(s_ptr + (k // GROUP)[:, None] * N + cols[None, :])
        acc = tl.dot(a, w * scale, acc)
    tl.store(c_ptr + rows[:, None] * N + cols[None, :], acc.to(tl.float16))


@triton.jit
def layer_norm_backward(
    dy_ptr, x_ptr, w_ptr, mean_ptr, rstd_ptr, dx_ptr, dw_ptr, lock_ptr,
    C: tl.constexpr, ROWS: tl.constexpr, LOCKED: tl.constexpr
):  # fmt: skip
    """dx of a few rows; their part of dw is added under a lock, or stored apart."""
    block = tl.program_id(0)
    cols = tl.arange(0, C)
    w = tl.load(w_ptr + cols)
    dw = tl.zeros((C,), tl.float32)
    for each in range(ROWS):
        row = block * ROWS + each
        dy = tl.load(dy_ptr + row * C + cols).to(tl.float32)
        x = tl.load(x_ptr + row * C + cols).to(tl.float32)
        rstd = tl.load(rstd_ptr + row)
        normed = (x - tl.load(mean_ptr + row)) * rstd
        scaled = dy * w
        one = tl.sum(scaled * normed, 0) / C
        two = tl.sum(scaled, 0) / C
        tl.store(dx_ptr + row * C + cols, ((scaled - normed * one - two) * rstd).to(tl.float16))
        dw += dy * normed
        if LOCKED:
            while tl.atomic_cas(lock_ptr, 0, 1) == 1:
                pass
            tl.store(dw_ptr + cols, dw + tl.load(dw_ptr + cols))
            tl.debug_barrier()
            tl.atomic_xchg(lock_ptr, 0)
            dw = tl.zeros((C,), tl.float32)
    if not LOCKED:
        tl.store(dw_ptr + block * C + cols, dw)


@triton.jit
def cross_entropy(logit_ptr, label_ptr, loss_ptr, V, BLOCK: tl.constexpr, AT_END: tl.constexpr):
    """Cross entropy of a row of V logits, by online softmax."""
    row = tl.program_id(0)
    offs = tl.arange(0, BLOCK)
    label = tl.load(label_ptr + row)
    if AT_END:
        tops = tl.full((BLOCK,), -1e30, tl.float32)
        sums = tl.zeros((BLOCK,), tl.float32)
        for start in tl.range(0, V, BLOCK, num_stages=4):
            x = tl.load(logit_ptr + row * V + start + offs).to(tl.float32)
            new = tl.maximum(tops, x)
            sums = sums * tl.exp(tops - new) + tl.exp(x - new)
            tops = new
        top = tl.max(tops, 0)
        total = tl.sum(sums * tl.exp(tops - top), 0)
    else:
        top = -1e30
        total = 0.0
        for start in tl.range(0, V, BLOCK, num_stages=4):
            x = tl.load(logit_ptr + row * V + start + offs).to(tl.float32)
            new = tl.maximum(top, tl.max(x, 0))
            total = total * tl.exp(top - new) + tl.sum(tl.exp(x - new), 0)
            top = new
    picked = tl.load(logit_ptr + row * V + label).to(tl.float32)
    tl.store(loss_ptr + row, top + tl.log(total) - picked)


@triton.jit
def embedding_bag(index_ptr, table_ptr, out_ptr, L: tl.constexpr, D: tl.constexpr, AT_ONCE: tl.constexpr):
    """The sum of L rows of a table, named by indices."""
    bag = tl.program_id(0)
    dims = tl.arange(0, D)
    if AT_ONCE:
        index = tl.load(index_ptr + bag * L + tl.arange(0, L))
        rows = tl.load(table_ptr + index[:, None] * D + dims[None, :])
        acc = tl.sum(rows.to(tl.float32), 0)
    else:
        acc = tl.zeros((D,), tl.float32)
        for each in range(L):
            index = tl.load(index_ptr + bag * L + each)
            acc += tl.load(table_ptr + index * D + dims).to(tl.float32)
    tl.store(out_ptr + bag * D + dims, acc)


@triton.jit
def causal_conv(x_ptr, w_ptr, y_ptr, C, T: tl.constexpr, BT: tl.constexpr, BC: tl.constexpr, WALKED: tl.constexpr):
    """A depthwise causal convolution of width 3 with SiLU over (batch, time, channel)."""
    cols = tl.program_id(0) * BC + tl.arange(0, BC)
    base = tl.program_id(1) * T * C
    w0 = tl.load(w_ptr + cols)
    w1 = tl.load(w_ptr + C + cols)
    w2 = tl.load(w_ptr + 2 * C + cols)
    if WALKED:
        x0 = tl.zeros((BC,), tl.float32)
        x1 = tl.zeros((BC,), tl.float32)
        for t in range(T):
            x2 = tl.load(x_ptr + base + t * C + cols).to(tl.float32)
            y = x0 * w0 + x1 * w1 + x2 * w2
            tl.store(y_ptr + base + t * C + cols, (y / (1 + tl.exp(-y))).to(tl.bfloat16))
            x0 = x1
            x1 = x2
    else:
        times = tl.program_id(2) * BT + tl.arange(0, BT)
        place = base + times[:, None] * C + cols[None, :]
        x2 = tl.load(x_ptr + place).to(tl.float32)
        x1 = tl.load(x_ptr + place - C, mask=times[:, None] >= 1, other=0.0).to(tl.float32)
        x0 = tl.load(x_ptr + place - 2 * C, mask=times[:, None] >= 2, other=0.0).to(tl.float32)
        y = x0 * w0[None, :] + x1 * w1[None, :] + x2 * w2[None, :]
        tl.store(y_ptr + place, (y / (1 + tl.exp(-y))).to(tl.bfloat16))


@triton.jit
def diagonal_scan(
    x_ptr, ar_ptr, ai_ptr, cr_ptr, ci_ptr, y_ptr, D,
    T: tl.constexpr, BD: tl.constexpr, N: tl.constexpr, HOISTED: tl.constexpr
):  # fmt: skip
    """The recurrence of a diagonal state space model with N complex states per channel."""
    chans = tl.program_id(0) * BD + tl.arange(0, BD)
    base = tl.program_id(1) * T * D
    place = chans[:, None] * N + tl.arange(0, N)[None, :]
    hr = tl.zeros((BD, N), tl.float32)
    hi = tl.zeros((BD, N), tl.float32)
    if HOISTED:
        ar = tl.load(ar_ptr + place)
        ai = tl.load(ai_ptr + place)
        cr = tl.load(cr_ptr + place)
        ci = tl.load(ci_ptr + place)
    for t in range(T):
        x = tl.load(x_ptr + base + t * D + chans).to(tl.float32)
        if not HOISTED:
            ar = tl.load(ar_ptr + place)
            ai = tl.load(ai_ptr + place)
            cr = tl.load(cr_ptr + place)
            ci = tl.load(ci_ptr + place)
        new = hr * ar - hi * ai + x[:, None]
        hi = hr * ai + hi * ar
        hr = new
        y = tl.sum(hr * cr - hi * ci, 1)
        tl.store(y_ptr + base + t * D + chans, y.to(tl.float16))


@triton.jit
def top_two(logit_ptr, value_ptr, index_ptr, C: tl.constexpr, ROWS: tl.constexpr):
    """The two largest of C candidates of a row, with softmax over the two."""
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    cols = tl.arange(0, C)
    x = tl.load(logit_ptr + rows[:, None] * C + cols[None, :]).to(tl.float32)
    first, at = tl.max(x, 1, return_indices=True)
    rest = tl.where(cols[None, :] == at[:, None], -1e30, x)
    second, then = tl.max(rest, 1, return_indices=True)
    share = 1 / (1 + tl.exp(second - first))
    tl.store(value_ptr + rows * 2, share)
    tl.store(value_ptr + rows * 2 + 1, 1 - share)
    tl.store(index_ptr + rows * 2, at)
    tl.store(index_ptr + rows * 2 + 1, then)


@triton.jit
def rotate(
    x_ptr, cos_ptr, sin_ptr, T, heads, half,
    BLOCK: tl.constexpr, H: tl.constexpr, HALF: tl.constexpr, FLAT: tl.constexpr
):  # fmt: skip
    """Rotary embedding in place over (batch, T, heads, 2 * half)."""
    if FLAT:
        flat = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        pair = flat % half
        head = flat // half
        time = head // heads % T
        place = head * 2 * half + pair
        angle = time * half + pair
    else:
        token = tl.program_id(0)
        pairs = tl.arange(0, HALF)
        place = (token * H + tl.arange(0, H))[:, None] * 2 * HALF + pairs[None, :]
        angle = (token % T * HALF + pairs)[None, :]
    x = tl.load(x_ptr + place).to(tl.float32)
    y = tl.load(x_ptr + place + HALF).to(tl.float32)
    cos = tl.load(cos_ptr + angle)
    sin = tl.load(sin_ptr + angle)
    tl.store(x_ptr + place, (x * cos - y * sin).to(tl.bfloat16))
    tl.store(x_ptr + place + HALF, (y * cos + x * sin).to(tl.bfloat16))


@triton.jit
def adam_step(p_ptr, g_ptr, m_ptr, v_ptr, rate, decay, n, BLOCK: tl.constexpr):
    """One step of AdamW with bf16 gradients."""
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    p = tl.load(p_ptr + offs, mask=mask)
    g = tl.load(g_ptr + offs, mask=mask).to(tl.float32)
    m = tl.load(m_ptr + offs, mask=mask)
    v = tl.load(v_ptr + offs, mask=mask)
    m = 0.9 * m + 0.1 * g
    v = 0.999 * v + 0.001 * g * g
    p = p * (1 - rate * decay) - rate * m / (tl.sqrt(v) + 1e-8)
    tl.store(p_ptr + offs, p, mask=mask)
    tl.store(m_ptr + offs, m, mask=mask)
    tl.store(v_ptr + offs, v, mask=mask)


@triton.jit
def gather_pages(cache_ptr, table_ptr, out_ptr, row_bytes, PAGE: tl.constexpr, HEADS: tl.constexpr, D: tl.constexpr):
    """Copy the pages of a quantised KV cache, named by a block table, to adjacent rows."""
    place = tl.program_id(0)
    page = tl.load(table_ptr + place)
    rows = tl.arange(0, PAGE * HEADS)
    dims = tl.arange(0, D)
    source = (page * PAGE * HEADS + rows)[:, None] * row_bytes + dims[None, :]
    codes = tl.load(cache_ptr + source)
    target = (place * PAGE * HEADS + rows)[:, None] * D + dims[None, :]
    tl.store(out_ptr + target, codes)


@triton.jit
def fp8_gemm(a_ptr, b_ptr, c_ptr, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, TURNED: tl.constexpr):
    """C = A @ B in FP8; TURNED if the columns of B lie in memory one after the other."""
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    cols = tl.program_id(1) * BN + tl.arange(0, BN)
    depth = tl.arange(0, BK)
    acc = tl.zeros((BM, BN), tl.float32)
    for start in range(0, K, BK):
        k = start + depth
        a = tl.load(a_ptr + rows[:, None] * K + k[None, :])
        if TURNED:
            b = tl.load(b_ptr + cols[None, :] * K + k[:, None])
        else:
            b = tl.load(b_ptr + k[:, None] * N + cols[None, :])
        acc = tl.dot(a, b, acc)
    tl.store(c_ptr + rows[:, None] * N + cols[None, :], acc.to(tl.bfloat16))


@triton.jit
def drop_and_add(x_ptr, bias_ptr, residual_ptr, y_ptr, C, seed, BLOCK: tl.constexpr, WIDE: tl.constexpr):
    """residual + dropout(x + bias), with random numbers by position."""
    cols = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    row = tl.program_id(1)
    offs = row.to(tl.int64) * C + cols if WIDE else row * C + cols
    x = tl.load(x_ptr + offs).to(tl.float32) + tl.load(bias_ptr + cols)
    kept = tl.rand(seed, offs) > 0.1
    y = tl.load(residual_ptr + offs).to(tl.float32) + tl.where(kept, x * 1.1111111, 0.0)
    tl.store(y_ptr + offs, y.to(tl.float16))


@triton.jit
def recast(x_ptr, ratio_ptr, y_ptr, BLOCK: tl.constexpr):
    """Scale FP8 numbers from one scale to another; the ratio is a tensor of one element."""
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    ratio = tl.load(ratio_ptr)
    x = tl.load(x_ptr + offs).to(tl.float32)
    y = (x * ratio).to(tl.float32)
    y = tl.minimum(tl.maximum(y, -448.0), 448.0)
    tl.store(y_ptr + offs, y.to(tl.float8e4nv))


@triton.jit
def segment_softmax(score_ptr, out_ptr, W: tl.constexpr, BLOCK: tl.constexpr, TILED: tl.constexpr):
    """Softmax over the W scores of each segment."""
    segments = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    if TILED:
        place = segments[:, None] * W + tl.arange(0, W)[None, :]
        x = tl.load(score_ptr + place)
        e = tl.exp(x - tl.max(x, 1)[:, None])
        tl.store(out_ptr + place, e / tl.sum(e, 1)[:, None])
    else:
        top = tl.full((BLOCK,), -1e30, tl.float32)
        total = tl.zeros((BLOCK,), tl.float32)
        for each in range(W):
            x = tl.load(score_ptr + segments * W + each)
            new = tl.maximum(top, x)
            total = total * tl.exp(top - new) + tl.exp(x - new)
            top = new
        for each in range(W):
            x = tl.load(score_ptr + segments * W + each)
            tl.store(out_ptr + segments * W + each, tl.exp(x - top) / total)
