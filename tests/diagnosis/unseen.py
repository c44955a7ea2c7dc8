"""A fourth set of planted problems, frozen before the first run; see `unseen_pairs.py` for launches and expectations.

Kernels as they are written in practice. A constant or the launch selects the plant or the repaired code, or the
repaired kernel stands beside it. Nothing here is launched on a GPU.
"""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def conv3x3_nhwc(
    x_ptr, w_ptr, y_ptr, H, W, C, F,
    BP: tl.constexpr, BF: tl.constexpr, BC: tl.constexpr,
):  # fmt: skip
    """A 3×3 convolution of padded images, as nine products of pixels and channels."""
    row, part, image = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    cols = tl.arange(0, BP)
    f = part * BF + tl.arange(0, BF)
    c = tl.arange(0, BC)
    acc = tl.zeros((BP, BF), tl.float32)
    chunks = C // BC
    for step in range(9 * chunks):
        tap = step // chunks
        start = (step % chunks) * BC
        pixel = (image * (H + 2) + row + tap // 3) * (W + 2) + tap % 3
        x = tl.load(x_ptr + (pixel + cols)[:, None] * C + (start + c)[None, :])
        w = tl.load(w_ptr + (tap * C + start + c)[:, None] * F + f[None, :])
        acc = tl.dot(x, w, acc)
    out = ((image * H + row) * W + cols)[:, None] * F + f[None, :]
    tl.store(y_ptr + out, tl.maximum(acc, 0.0).to(tl.float16))


@triton.jit
def attention_dq(
    q_ptr, k_ptr, v_ptr, do_ptr, lse_ptr, delta_ptr, dq_ptr, scale, T,
    D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr,
):  # fmt: skip
    """The gradient of a block of queries, from blocks of keys and values."""
    block, head = tl.program_id(0), tl.program_id(1)
    base = head * T * D
    m = block * BM + tl.arange(0, BM)
    d = tl.arange(0, D)
    rows = base + m[:, None] * D + d[None, :]
    q = tl.load(q_ptr + rows)
    do = tl.load(do_ptr + rows)
    lse = tl.load(lse_ptr + head * T + m)
    delta = tl.load(delta_ptr + head * T + m)
    dq = tl.zeros((BM, D), tl.float32)
    for start in range(0, T, BN):
        n = start + tl.arange(0, BN)
        at = base + n[:, None] * D + d[None, :]
        k = tl.load(k_ptr + at)
        v = tl.load(v_ptr + at)
        p = tl.exp2(tl.dot(q, tl.trans(k)) * scale - lse[:, None])
        ds = p * (tl.dot(do, tl.trans(v)) - delta[:, None])
        dq = tl.dot(ds.to(tl.bfloat16), k, dq)
    tl.store(dq_ptr + rows, (dq * scale).to(tl.bfloat16))


@triton.jit
def w8a8_linear(
    x_ptr, w_ptr, sx_ptr, sw_ptr, y_ptr, M, N, K,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):  # fmt: skip
    """int8 activations and weights, scaled per row and per column afterwards."""
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    n = tl.program_id(1) * BN + tl.arange(0, BN)
    k = tl.arange(0, BK)
    x = x_ptr + m[:, None] * K + k[None, :]
    w = w_ptr + n[None, :] * K + k[:, None]
    acc = tl.zeros((BM, BN), tl.int32)
    for _ in range(0, K, BK):
        acc = tl.dot(tl.load(x), tl.load(w), acc)
        x += BK
        w += BK
    y = acc.to(tl.float32) * tl.load(sx_ptr + m)[:, None] * tl.load(sw_ptr + n)[None, :]
    tl.store(y_ptr + m[:, None] * N + n[None, :], y.to(tl.bfloat16))


@triton.jit
def gather_tokens(order_ptr, slot_ptr, x_ptr, y_ptr, TRIPS: tl.constexpr, D: tl.constexpr):
    """Rows in the order of their experts, one after the other: a token leads to a slot, the slot to a row."""
    pid = tl.program_id(0)
    d = tl.arange(0, D)
    for t in range(TRIPS):
        token = tl.load(order_ptr + pid * TRIPS + t)
        slot = tl.load(slot_ptr + token)
        row = tl.load(x_ptr + slot * D + d)
        tl.store(y_ptr + (pid * TRIPS + t) * D + d, row)


@triton.jit
def gather_tokens_tile(slot_ptr, x_ptr, y_ptr, ROWS: tl.constexpr, D: tl.constexpr):
    i = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    d = tl.arange(0, D)
    slot = tl.load(slot_ptr + i)
    row = tl.load(x_ptr + slot[:, None] * D + d[None, :])
    tl.store(y_ptr + i[:, None] * D + d[None, :], row)


@triton.jit
def find_keys(key_ptr, first_ptr, next_ptr, node_ptr, out_ptr, buckets, DEPTH: tl.constexpr, BLOCK: tl.constexpr):
    """Lookup in a hash table whose buckets are linked lists."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    key = tl.load(key_ptr + i)
    node = tl.load(first_ptr + (key & (buckets - 1)))
    hit = tl.full((BLOCK,), -1, tl.int32)
    for _ in range(DEPTH):
        stored = tl.load(node_ptr + node)
        hit = tl.where(stored == key, node, hit)
        node = tl.load(next_ptr + node)
    tl.store(out_ptr + i, hit)


@triton.jit
def find_keys_probing(key_ptr, node_ptr, out_ptr, buckets, DEPTH: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    key = tl.load(key_ptr + i)
    hit = tl.full((BLOCK,), -1, tl.int32)
    for step in tl.static_range(DEPTH):
        node = (key + step) & (buckets - 1)
        hit = tl.where(tl.load(node_ptr + node) == key, node, hit)
    tl.store(out_ptr + i, hit)


@triton.jit
def roll_4d(x_ptr, y_ptr, n1, n2, n3, by, TRIPS: tl.constexpr, BLOCK: tl.constexpr):
    """`torch.roll` over two axes, with 64-bit indices that are divided by runtime sizes."""
    pid = tl.program_id(0)
    for t in range(TRIPS):
        i = (pid * TRIPS + t).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
        c = i % n3
        w = (i // n3) % n2
        h = (i // (n3.to(tl.int64) * n2)) % n1
        b = i // (n3.to(tl.int64) * n2 * n1)
        source = ((b * n1 + (h + by) % n1) * n2 + (w + by) % n2) * n3 + c
        tl.store(y_ptr + i, tl.load(x_ptr + source))


@triton.jit
def roll_rows(x_ptr, y_ptr, n1, n2, n3, by, BLOCK: tl.constexpr):
    w, h, b = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    c = tl.arange(0, BLOCK)
    source = ((b * n1 + (h + by) % n1) * n2 + (w + by) % n2) * n3 + c
    tl.store(y_ptr + ((b * n1 + h) * n2 + w) * n3 + c, tl.load(x_ptr + source, mask=c < n3), mask=c < n3)


@triton.jit
def im2col_flat(x_ptr, y_ptr, W, C, KW, out_w, TRIPS: tl.constexpr, BLOCK: tl.constexpr):
    """Patches of an image as rows of a matrix; every index comes from divisions by runtime sizes."""
    pid = tl.program_id(0)
    for t in range(TRIPS):
        i = (pid * TRIPS + t) * BLOCK + tl.arange(0, BLOCK)
        c = i % C
        kw = (i // C) % KW
        kh = (i // (C * KW)) % KW
        pixel = i // (C * KW * KW)
        ow = pixel % out_w
        oh = pixel // out_w
        x = tl.load(x_ptr + ((oh + kh) * W + ow + kw) * C + c)
        tl.store(y_ptr + i, x)


@triton.jit
def im2col_rows(x_ptr, y_ptr, W, C: tl.constexpr, KW: tl.constexpr, out_w):
    ow, oh = tl.program_id(0), tl.program_id(1)
    c = tl.arange(0, C)
    y_ptr += (oh * out_w + ow) * C * KW * KW
    for kh in tl.static_range(KW):
        for kw in tl.static_range(KW):
            x = tl.load(x_ptr + ((oh + kh) * W + ow + kw) * C + c)
            tl.store(y_ptr + (kh * KW + kw) * C + c, x)


@triton.jit
def hadamard_butterflies(x_ptr, y_ptr, N: tl.constexpr, ROUNDS: tl.constexpr):
    """The fast Walsh-Hadamard transform of a row: halves are added and subtracted, then the order is rotated."""
    row = tl.program_id(0)
    i = tl.arange(0, N)
    x = tl.load(x_ptr + row * N + i).to(tl.float32)
    for _ in range(ROUNDS):
        lo, hi = tl.split(tl.trans(tl.reshape(x, (2, N // 2))))
        x = tl.reshape(tl.join(lo + hi, lo - hi), (N,))
    tl.store(y_ptr + row * N + i, x.to(tl.float16))


@triton.jit
def hadamard_products(x_ptr, h_ptr, y_ptr, S: tl.constexpr):
    row = tl.program_id(0)
    i, j = tl.arange(0, S)[:, None], tl.arange(0, S)[None, :]
    h = tl.load(h_ptr + i * S + j)
    x = tl.load(x_ptr + row * S * S + i * S + j)
    half = tl.dot(h, x).to(tl.float16)
    tl.store(y_ptr + row * S * S + i * S + j, tl.dot(half, h).to(tl.float16))


@triton.jit
def gram(x_ptr, g_ptr, T, C, BC: tl.constexpr, BT: tl.constexpr, PRECISION: tl.constexpr):
    """Covariance of channels, in fp32."""
    i = tl.program_id(0) * BC + tl.arange(0, BC)
    j = tl.program_id(1) * BC + tl.arange(0, BC)
    t = tl.arange(0, BT)
    a = x_ptr + i[:, None] * T + t[None, :]
    b = x_ptr + j[None, :] * T + t[:, None]
    acc = tl.zeros((BC, BC), tl.float32)
    for _ in range(0, T, BT):
        acc = tl.dot(tl.load(a), tl.load(b), acc, input_precision=PRECISION)
        a += BT
        b += BT
    tl.store(g_ptr + i[:, None] * C + j[None, :], acc / T)


@triton.jit
def retention(q_ptr, k_ptr, v_ptr, o_ptr, T, decay, D: tl.constexpr, BM: tl.constexpr, WIDE: tl.constexpr):
    """Retention of a block of queries: decaying scores without softmax; tiles may be widened before the products."""
    block, head = tl.program_id(0), tl.program_id(1)
    base = head * T * D
    m = block * BM + tl.arange(0, BM)
    d = tl.arange(0, D)
    q = tl.load(q_ptr + base + m[:, None] * D + d[None, :])
    if WIDE:
        q = q.to(tl.float32)
    acc = tl.zeros((BM, D), tl.float32)
    for start in range(0, T, BM):
        n = start + tl.arange(0, BM)
        at = base + n[:, None] * D + d[None, :]
        k = tl.load(k_ptr + at)
        v = tl.load(v_ptr + at)
        if WIDE:
            k = k.to(tl.float32)
            v = v.to(tl.float32)
        s = tl.dot(q, tl.trans(k)) * tl.exp2((m[:, None] - n[None, :]) * decay)
        acc = tl.dot(s.to(v.dtype), v, acc)
    tl.store(o_ptr + base + m[:, None] * D + d[None, :], acc.to(tl.bfloat16))


@triton.jit
def lora_down(x_ptr, a_ptr, y_ptr, M, K, R, BM: tl.constexpr, BR: tl.constexpr, BK: tl.constexpr):
    """y = x @ aᵀ for stacked adapters."""
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    r = tl.program_id(1) * BR + tl.arange(0, BR)
    acc = tl.zeros((BM, BR), tl.float32)
    for start in range(0, K, BK):
        k = start + tl.arange(0, BK)
        x = tl.load(x_ptr + m[:, None] * K + k[None, :])
        a = tl.load(a_ptr + r[None, :] * K + k[:, None])
        acc = tl.dot(x, a, acc)
    tl.store(y_ptr + m[:, None] * R + r[None, :], acc.to(tl.bfloat16))


@triton.jit
def bit_reversal(x_ptr, y_ptr, ROUNDS: tl.constexpr, BITS: tl.constexpr, KEEP: tl.constexpr):
    """Rows of an FFT in bit-reversed order, in shared memory; KEEP low bits of the index may stay as they are."""
    row = tl.program_id(0)
    i = tl.arange(0, 1 << BITS)
    source = i & ((1 << KEEP) - 1)
    for bit in tl.static_range(BITS - KEEP):
        source |= ((i >> (KEEP + bit)) & 1) << (BITS - 1 - bit)
    x = tl.load(x_ptr + (row << BITS) + i)
    for _ in range(ROUNDS):
        x = tl.gather(x, source, 0) * 0.5 + x
    tl.store(y_ptr + (row << BITS) + i, x)


@triton.jit
def channel_norm(x_ptr, w_ptr, y_ptr, P, eps, C: tl.constexpr):
    """Layer norm over channels of NCHW images, one pixel per program."""
    pixel, image = tl.program_id(0), tl.program_id(1)
    c = tl.arange(0, C)
    x = tl.load(x_ptr + image * C * P + c * P + pixel).to(tl.float32)
    x -= tl.sum(x) / C
    x *= tl.rsqrt(tl.sum(x * x) / C + eps)
    tl.store(y_ptr + image * C * P + c * P + pixel, (x * tl.load(w_ptr + c)).to(tl.float16))


@triton.jit
def channel_norm_tile(x_ptr, w_ptr, y_ptr, P, eps, C: tl.constexpr, BP: tl.constexpr):
    pixel = tl.program_id(0) * BP + tl.arange(0, BP)[None, :]
    c = tl.arange(0, C)[:, None]
    at = tl.program_id(1) * C * P + c * P + pixel
    x = tl.load(x_ptr + at).to(tl.float32)
    x -= tl.sum(x, 0)[None, :] / C
    x *= tl.rsqrt(tl.sum(x * x, 0)[None, :] / C + eps)
    tl.store(y_ptr + at, (x * tl.load(w_ptr + c)).to(tl.float16))


@triton.jit
def token_loss(logits_ptr, label_ptr, loss_ptr, V, T, stride_v, stride_t, BLOCK: tl.constexpr):
    """Cross entropy of a token; logits may have the vocabulary as the outer axis."""
    token = tl.program_id(0)
    top = tl.full((BLOCK,), float("-inf"), tl.float32)
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, V, BLOCK):
        v = start + tl.arange(0, BLOCK)
        x = tl.load(logits_ptr + token * stride_t + v * stride_v).to(tl.float32)
        new = tl.maximum(top, x)
        total = total * tl.exp(top - new) + tl.exp(x - new)
        top = new
    peak = tl.max(top)
    lse = peak + tl.log(tl.sum(total * tl.exp(top - peak)))
    label = tl.load(label_ptr + token)
    tl.store(loss_ptr + token, lse - tl.load(logits_ptr + token * stride_t + label * stride_v).to(tl.float32))


@triton.jit
def ternary_gemv(w_ptr, x_ptr, y_ptr, K, BN: tl.constexpr, BK: tl.constexpr):
    """y = W x with weights of two bits: every element loads the word that has its bits."""
    n = tl.program_id(0) * BN + tl.arange(0, BN)
    acc = tl.zeros((BN, BK), tl.float32)
    for start in range(0, K, BK):
        k = start + tl.arange(0, BK)
        word = tl.load(w_ptr + n[:, None] * (K // 16) + k[None, :] // 16)
        sign = ((word >> ((k % 16) * 2)[None, :]) & 3) - 1
        acc += sign.to(tl.float32) * tl.load(x_ptr + k).to(tl.float32)[None, :]
    tl.store(y_ptr + n, tl.sum(acc, 1))


@triton.jit
def ternary_gemv_words(w_ptr, x_ptr, y_ptr, K, BN: tl.constexpr, BK: tl.constexpr):
    n = tl.program_id(0) * BN + tl.arange(0, BN)
    acc = tl.zeros((BN, BK // 16), tl.float32)
    for start in range(0, K, BK):
        words = start // 16 + tl.arange(0, BK // 16)
        word = tl.load(w_ptr + n[:, None] * (K // 16) + words[None, :])
        for j in tl.static_range(16):
            x = tl.load(x_ptr + words * 16 + j).to(tl.float32)
            acc += (((word >> (2 * j)) & 3) - 1).to(tl.float32) * x[None, :]
    tl.store(y_ptr + n, tl.sum(acc, 1))


@triton.jit
def relative_bias(s_ptr, b_ptr, y_ptr, slope, T, BM: tl.constexpr, BN: tl.constexpr, LOADED: tl.constexpr):
    """int8 scores plus a bias of the distance: one table entry per element is loaded, or a slope is multiplied."""
    m = tl.program_id(1) * BM + tl.arange(0, BM)
    head = tl.program_id(0)
    for start in range(0, T, BN):
        n = start + tl.arange(0, BN)
        at = (head * T + m)[:, None] * T + n[None, :]
        s = tl.load(s_ptr + at).to(tl.float32)
        if LOADED:
            bias = tl.load(b_ptr + head * 2 * T + T + n[None, :] - m[:, None])
        else:
            bias = slope * (n[None, :] - m[:, None])
        tl.store(y_ptr + at, (s + bias).to(tl.int8))


@triton.jit
def requantize_rows(q_ptr, s_ptr, z_ptr, y_ptr, N: tl.constexpr, ROWS: tl.constexpr, AGAIN: tl.constexpr):
    """int8 rows with scales and zeros per column, which the loop over rows may load in each iteration."""
    first = tl.program_id(0) * ROWS
    n = tl.arange(0, N)
    scale = tl.load(s_ptr + n)
    zero = tl.load(z_ptr + n)
    for r in range(ROWS):
        if AGAIN:
            scale = tl.load(s_ptr + n, volatile=True)
            zero = tl.load(z_ptr + n, volatile=True)
        q = tl.load(q_ptr + (first + r) * N + n).to(tl.float32)
        tl.store(y_ptr + (first + r) * N + n, ((q - zero) * scale).to(tl.int8))


@triton.jit
def cosine_similarity(a_ptr, b_ptr, y_ptr, N, BLOCK: tl.constexpr, LANES: tl.constexpr):
    """The cosine of two long rows: three sums, reduced in each block or once."""
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    a_ptr += row * N
    b_ptr += row * N
    if LANES:
        xy = tl.zeros((BLOCK,), tl.float32)
        xx = tl.zeros((BLOCK,), tl.float32)
        yy = tl.zeros((BLOCK,), tl.float32)
        for start in range(0, N, BLOCK):
            a = tl.load(a_ptr + start + cols).to(tl.float32)
            b = tl.load(b_ptr + start + cols).to(tl.float32)
            xy += a * b
            xx += a * a
            yy += b * b
        dot, left, right = tl.sum(xy), tl.sum(xx), tl.sum(yy)
    else:
        dot, left, right = 0.0, 0.0, 0.0
        for start in range(0, N, BLOCK):
            a = tl.load(a_ptr + start + cols).to(tl.float32)
            b = tl.load(b_ptr + start + cols).to(tl.float32)
            dot += tl.sum(a * b)
            left += tl.sum(a * a)
            right += tl.sum(b * b)
    tl.store(y_ptr + row, dot / tl.sqrt(left * right))


@triton.jit
def top_p_bisect(p_ptr, y_ptr, top_p, V: tl.constexpr, STEPS: tl.constexpr):
    """Nucleus filter: the threshold whose larger probabilities sum to top_p, by bisection."""
    row = tl.program_id(0)
    p = tl.load(p_ptr + row * V + tl.arange(0, V)).to(tl.float32)
    low, high = 0.0, 1.0
    for _ in range(STEPS):
        middle = (low + high) * 0.5
        mass = tl.sum(tl.where(p >= middle, p, 0.0))
        low = tl.where(mass >= top_p, middle, low)
        high = tl.where(mass >= top_p, high, middle)
    tl.store(y_ptr + row * V + tl.arange(0, V), tl.where(p >= low, p, 0.0).to(tl.float16))


@triton.jit
def min_p(p_ptr, y_ptr, fraction, V: tl.constexpr):
    row = tl.program_id(0)
    p = tl.load(p_ptr + row * V + tl.arange(0, V)).to(tl.float32)
    low = tl.max(p) * fraction
    tl.store(y_ptr + row * V + tl.arange(0, V), tl.where(p >= low, p, 0.0).to(tl.float16))


@triton.jit
def fast_weights(k_ptr, v_ptr, s_ptr, T, DK: tl.constexpr, DV: tl.constexpr):
    """The state of linear attention, kept in registers and updated by one outer product per token."""
    head = tl.program_id(0)
    i, j = tl.arange(0, DK), tl.arange(0, DV)
    state = tl.zeros((DK, DV), tl.float32)
    for t in range(T):
        k = tl.load(k_ptr + (head * T + t) * DK + i).to(tl.float32)
        v = tl.load(v_ptr + (head * T + t) * DV + j).to(tl.float32)
        state = state * 0.99 + k[:, None] * v[None, :]
    tl.store(s_ptr + head * DK * DV + i[:, None] * DV + j[None, :], state)


@triton.jit
def lstm_cell(x_ptr, c_ptr, h_ptr, STEPS: tl.constexpr, H: tl.constexpr, BLOCK: tl.constexpr):
    """Recurrent gates per channel, with all values of a wide block live at once."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    a = tl.load(x_ptr + at)
    b = tl.load(x_ptr + H + at)
    f = tl.load(x_ptr + 2 * H + at)
    g = tl.load(x_ptr + 3 * H + at)
    c = tl.load(c_ptr + at)
    h = tl.zeros((BLOCK,), tl.float32)
    for _ in range(STEPS):
        i = tl.sigmoid(a * h + b)
        o = tl.sigmoid(b * h + f)
        u = tl.sigmoid(f * h + g)
        c = u * c + i * (g * h + a)
        h = o * tl.sigmoid(c)
    tl.store(c_ptr + at, c)
    tl.store(h_ptr + at, h)


@triton.jit
def decode_attention(
    q_ptr, k_ptr, v_ptr, o_ptr, lse_ptr, scale, T, SPLITS: tl.constexpr, D: tl.constexpr, BN: tl.constexpr,
):  # fmt: skip
    """One query over a long cache, by one program per head or by SPLITS of them."""
    head, split = tl.program_id(0), tl.program_id(1)
    d = tl.arange(0, D)
    q = tl.load(q_ptr + head * D + d).to(tl.float32) * scale
    top = float("-inf")
    total = 0.0
    acc = tl.zeros((D,), tl.float32)
    share = T // SPLITS
    for start in range(split * share, (split + 1) * share, BN):
        n = start + tl.arange(0, BN)
        at = (head * T + n)[:, None] * D + d[None, :]
        s = tl.sum(tl.load(k_ptr + at).to(tl.float32) * q[None, :], 1)
        new = tl.maximum(top, tl.max(s))
        p = tl.exp2(s - new)
        alpha = tl.exp2(top - new)
        total = total * alpha + tl.sum(p)
        acc = acc * alpha + tl.sum(p[:, None] * tl.load(v_ptr + at).to(tl.float32), 0)
        top = new
    part = head * SPLITS + split
    tl.store(o_ptr + part * D + d, acc / total)
    tl.store(lse_ptr + part, top + tl.log2(total))


@triton.jit
def weight_gradient(
    x_ptr, dy_ptr, dw_ptr, T, N, K, SPLITS: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, BT: tl.constexpr,
):  # fmt: skip
    """dw = dyᵀ x over many tokens, for one output tile and a share of the tokens."""
    n = tl.program_id(0) * BN + tl.arange(0, BN)
    k = tl.program_id(1) * BK + tl.arange(0, BK)
    split = tl.program_id(2)
    t = split * (T // SPLITS) + tl.arange(0, BT)
    dy = dy_ptr + t[None, :] * N + n[:, None]
    x = x_ptr + t[:, None] * K + k[None, :]
    acc = tl.zeros((BN, BK), tl.float32)
    for _ in range(0, T // SPLITS, BT):
        acc = tl.dot(tl.load(dy), tl.load(x), acc)
        dy += BT * N
        x += BT * K
    tl.store(dw_ptr + (split * N + n)[:, None] * K + k[None, :], acc)


@triton.jit
def integrate(x_ptr, y_ptr, STEPS, BLOCK: tl.constexpr):
    """Simpson's rule per element, in registers."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i)
    total = tl.zeros((BLOCK,), tl.float32)
    for step in range(STEPS):
        at = x * (step * 0.001)
        total += (at * at * 0.3 + at) * at + 1.0
    tl.store(y_ptr + i, total)


@triton.jit
def selective_scan(u_ptr, dt_ptr, b_ptr, y_ptr, T, C, STATES: tl.constexpr, BLOCK: tl.constexpr):
    """A state-space scan: STATES values per channel stay in registers, one step of time per iteration."""
    c = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    batch = tl.program_id(1)
    n = tl.arange(0, STATES)
    h = tl.zeros((STATES, BLOCK), tl.float32)
    for t in range(T):
        at = (batch * T + t) * C + c
        u = tl.load(u_ptr + at)
        dt = tl.load(dt_ptr + at)
        b = tl.load(b_ptr + (batch * T + t) * STATES + n)
        h = h * tl.exp2(dt[None, :] * (n[:, None] * -0.1)) + (dt * u)[None, :] * b[:, None]
        tl.store(y_ptr + at, tl.sum(h * b[:, None], 0))


@triton.jit
def bias_sums(dy_ptr, db_ptr, N: tl.constexpr, ROWS: tl.constexpr):
    """The gradient of a bias: programs add the sums of their rows to one row of results."""
    first = tl.program_id(0) * ROWS
    n = tl.arange(0, N)
    acc = tl.zeros((N,), tl.float32)
    for r in range(ROWS):
        acc += tl.load(dy_ptr + (first + r) * N + n).to(tl.float32)
    tl.atomic_add(db_ptr + n, acc, sem="relaxed")


@triton.jit
def splitk_locked(
    x_ptr, w_ptr, y_ptr, lock_ptr, N, K,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, SPLITS: tl.constexpr, LOCKED: tl.constexpr,
):  # fmt: skip
    """A skinny product split along K; partial tiles are added behind a lock, or stored for a second pass."""
    tile, split = tl.program_id(0), tl.program_id(1)
    m = tl.arange(0, BM)
    n = tile * BN + tl.arange(0, BN)
    share = K // SPLITS
    acc = tl.zeros((BM, BN), tl.float32)
    for start in range(split * share, (split + 1) * share, BK):
        k = start + tl.arange(0, BK)
        x = tl.load(x_ptr + m[:, None] * K + k[None, :])
        w = tl.load(w_ptr + n[None, :] * K + k[:, None])
        acc = tl.dot(x, w, acc)
    if LOCKED:
        y = y_ptr + m[:, None] * N + n[None, :]
        while tl.atomic_cas(lock_ptr + tile, 0, 1) == 1:
            pass
        tl.store(y, tl.load(y) + acc)
        tl.debug_barrier()
        tl.atomic_xchg(lock_ptr + tile, 0)
    else:
        tl.store(y_ptr + (split * BM + m)[:, None] * N + n[None, :], acc)


@triton.jit
def gate_experts(logits_ptr, weight_ptr, index_ptr, E: tl.constexpr, TOKENS: tl.constexpr):
    """Softmax and the two best of E experts, for TOKENS tokens per program."""
    token = tl.program_id(0) * TOKENS + tl.arange(0, TOKENS)
    e = tl.arange(0, E)
    x = tl.load(logits_ptr + token[:, None] * E + e[None, :]).to(tl.float32)
    p = tl.exp(x - tl.max(x, 1)[:, None])
    p /= tl.sum(p, 1)[:, None]
    for rank in tl.static_range(2):
        best = tl.argmax(p, 1)
        tl.store(weight_ptr + token * 2 + rank, tl.max(p, 1))
        tl.store(index_ptr + token * 2 + rank, best)
        p = tl.where(e[None, :] == best[:, None], -1.0, p)


@triton.jit
def scale_logits(x_ptr, y_ptr, n, temperature, BLOCK: tl.constexpr):
    """Logits divided by a temperature and capped."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n).to(tl.float32) / temperature
    x = 30.0 * (1.0 - 2.0 / (tl.exp(x / 15.0) + 1.0))
    tl.store(y_ptr + i, x.to(tl.float16), mask=i < n)


@triton.jit
def dot_int4(
    w_ptr, x_ptr, s_ptr, y_ptr, K, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr, FLOATS: tl.constexpr
):
    """Packed int4 weights times int8 activations: every nibble becomes a float, or sums stay integers."""
    n = tl.program_id(0) * BN + tl.arange(0, BN)
    total = tl.zeros((BN, BK), tl.float32)
    for start in range(0, K // 2, BK):
        k = start + tl.arange(0, BK)
        w = tl.load(w_ptr + n[:, None] * (K // 2) + k[None, :])
        lo, hi = w & 0xF, w >> 4
        x = tl.load(x_ptr + k)[None, :]
        z = tl.load(x_ptr + K // 2 + k)[None, :]
        if FLOATS:
            total += lo.to(tl.float32) * x.to(tl.float32) + hi.to(tl.float32) * z.to(tl.float32)
        else:
            total += (lo.to(tl.int16) * x.to(tl.int16) + hi.to(tl.int16) * z.to(tl.int16)).to(tl.float32)
    tl.store(y_ptr + n, tl.sum(total, 1) * tl.load(s_ptr + n))
