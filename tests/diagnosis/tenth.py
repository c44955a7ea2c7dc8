"""A tenth set of kernels, each with one planted problem; written and frozen before any of them was diagnosed."""

import triton
import triton.language as tl


@triton.jit
def linear_logsumexp(
    h_ptr, w_ptr, out_ptr, V, D, BM: tl.constexpr, BV: tl.constexpr, BK: tl.constexpr
):  # fmt: skip
    """The logsumexp of each token's logits, which are never stored."""
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    words = tl.arange(0, BV)
    depth = tl.arange(0, BK)
    top = tl.full((BM,), -1e30, tl.float32)
    total = tl.zeros((BM,), tl.float32)
    for first in range(0, V, BV):
        acc = tl.zeros((BM, BV), tl.float32)
        for start in range(0, D, BK):
            h = tl.load(h_ptr + rows[:, None] * D + start + depth[None, :])
            w = tl.load(w_ptr + (first + words[None, :]) * D + start + depth[:, None])
            acc = tl.dot(h, w, acc)
        new = tl.maximum(top, tl.max(acc, 1))
        total = total * tl.exp(top - new) + tl.sum(tl.exp(acc - new[:, None]), 1)
        top = new
    tl.store(out_ptr + rows, top + tl.log(total))


@triton.jit
def complex_gemm(
    ar_ptr, ai_ptr, br_ptr, bi_ptr, cr_ptr, ci_ptr, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr
):  # fmt: skip
    """A product of complex matrices whose real and imaginary parts are separate."""
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    cols = tl.program_id(1) * BN + tl.arange(0, BN)
    depth = tl.arange(0, BK)
    of_a = rows[:, None] * K + depth[None, :]
    of_b = depth[:, None] * N + cols[None, :]
    real = tl.zeros((BM, BN), tl.float32)
    imaginary = tl.zeros((BM, BN), tl.float32)
    for _ in range(0, K, BK):
        ar = tl.load(ar_ptr + of_a)
        ai = tl.load(ai_ptr + of_a)
        br = tl.load(br_ptr + of_b)
        bi = tl.load(bi_ptr + of_b)
        real = tl.dot(ar, br, real)
        real = tl.dot(-ai, bi, real)
        imaginary = tl.dot(ar, bi, imaginary)
        imaginary = tl.dot(ai, br, imaginary)
        of_a += BK
        of_b += BK * N
    out = rows[:, None] * N + cols[None, :]
    tl.store(cr_ptr + out, real.to(tl.float16))
    tl.store(ci_ptr + out, imaginary.to(tl.float16))


@triton.jit
def trace_beams(parent_ptr, token_ptr, out_ptr, W, STEPS, BLOCK: tl.constexpr, REORDERED: tl.constexpr):
    """The tokens of each beam, from its last step back to the first one; REORDERED if beams were moved at each step."""
    slot = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    beam = slot
    for step in range(STEPS):
        at = STEPS - 1 - step
        token = tl.load(token_ptr + at * W + beam)
        tl.store(out_ptr + at * W + slot, token)
        if not REORDERED:
            beam = tl.load(parent_ptr + at * W + beam)


@triton.jit
def clip_and_scale(x_ptr, y_ptr, n, limit, scale, BLOCK: tl.constexpr):
    """A persistent elementwise kernel: every CTA walks over the tensor in steps of the whole grid."""
    for start in range(tl.program_id(0) * BLOCK, n, tl.num_programs(0) * BLOCK):
        offs = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + offs).to(tl.float32)
        x = tl.minimum(tl.maximum(x, -limit), limit) * scale
        tl.store(y_ptr + offs, x.to(tl.float16))


@triton.jit
def fixed_point_filters(
    x_ptr, k_ptr, y_ptr, C, T, SECTIONS: tl.constexpr, BLOCK: tl.constexpr, WIDE: tl.constexpr
):  # fmt: skip
    """A cascade of first-order sections in fixed point for each channel; WIDE keeps 64-bit states."""
    channel = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    k = tl.load(k_ptr + channel)
    if WIDE:
        k = k.to(tl.int64)
    s0 = k * 0
    s1 = k * 0
    s2 = k * 0
    s3 = k * 0
    for step in range(T):
        x = tl.load(x_ptr + step * C + channel)
        value = x.to(tl.int64) if WIDE else x
        for _ in tl.static_range(SECTIONS):
            s0 += ((value - s0) * k) >> 15
            s1 += ((s0 - s1) * k) >> 15
            s2 += ((s1 - s2) * k) >> 15
            s3 += ((s2 - s3) * k) >> 15
            value = s3
        tl.store(y_ptr + step * C + channel, value.to(tl.int32))


@triton.jit
def fold_windows(
    col_ptr, out_ptr, H, W, OH, OW, stride, TAPS: tl.constexpr, STRIDE: tl.constexpr, BLOCK: tl.constexpr
):  # fmt: skip
    """col2im: each pixel of a plane adds the windows that cover it; the stride is an argument unless STRIDE is set."""
    plane = tl.program_id(1)
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    by = STRIDE if STRIDE > 0 else stride
    row = tl.program_id(0) * BLOCK // W
    column = offs % W
    total = tl.zeros((BLOCK,), tl.float32)
    for tap in range(TAPS * TAPS):
        down = row - tap // TAPS
        across = column - tap % TAPS
        at_row = down // by
        at_column = across // by
        is_hit = (across >= 0) & (at_column * by == across) & (at_column < OW)
        is_hit = is_hit & (down >= 0) & (at_row * by == down) & (at_row < OH)
        place = ((plane * TAPS * TAPS + tap) * OH + at_row) * OW + at_column
        total += tl.load(col_ptr + place, mask=is_hit, other=0.0)
    tl.store(out_ptr + plane * H * W + offs, total)


@triton.jit
def convolve_signal(x_ptr, h_ptr, y_ptr, n, TAPS: tl.constexpr, BLOCK: tl.constexpr, PADDED: tl.constexpr):
    """A causal FIR filter; PADDED if TAPS zeros are in front of the signal."""
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    acc = tl.zeros((BLOCK,), tl.float32)
    for tap in range(TAPS):
        weight = tl.load(h_ptr + tap)
        if PADDED:
            x = tl.load(x_ptr + TAPS + offs - tap)
        else:
            x = tl.load(x_ptr + offs - tap, mask=(offs >= tap) & (offs - tap < n), other=0.0)
        acc += weight * x
    tl.store(y_ptr + offs, acc)


@triton.jit
def trace_products(a_ptr, b_ptr, out_ptr, B: tl.constexpr, MATRICES: tl.constexpr, TURNED: tl.constexpr):
    """trace(A_i B_j) for all j; TURNED if each B_j is stored as its transpose."""
    which = tl.program_id(0)
    rows = tl.arange(0, B)
    place = rows[:, None] * B + rows[None, :]
    a = tl.load(a_ptr + which * B * B + place)
    acc = tl.zeros((B, B), tl.float32)
    for j in range(MATRICES):
        b = tl.load(b_ptr + j * B * B + place)
        if not TURNED:
            b = tl.trans(b)
        acc = acc * 0.5 + a * b
    tl.store(out_ptr + which * B * B + place, acc)


@triton.jit
def composite_layers(
    layer_ptr, out_ptr, n, LAYERS: tl.constexpr, BLOCK: tl.constexpr, BITS: tl.constexpr
):  # fmt: skip
    """RGBA layers of bytes, blended from front to back; BITS places a byte into the mantissa of 2²³."""
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    red = tl.zeros((BLOCK,), tl.float32)
    green = tl.zeros((BLOCK,), tl.float32)
    blue = tl.zeros((BLOCK,), tl.float32)
    light = tl.full((BLOCK,), 1.0, tl.float32)
    for layer in range(LAYERS):
        word = tl.load(layer_ptr + layer * n + offs)
        if BITS:
            r = ((word & 255) | 0x4B000000).to(tl.float32, bitcast=True) - 8388608.0
            g = (((word >> 8) & 255) | 0x4B000000).to(tl.float32, bitcast=True) - 8388608.0
            b = (((word >> 16) & 255) | 0x4B000000).to(tl.float32, bitcast=True) - 8388608.0
            a = (((word >> 24) & 255) | 0x4B000000).to(tl.float32, bitcast=True) - 8388608.0
        else:
            r = (word & 255).to(tl.float32)
            g = ((word >> 8) & 255).to(tl.float32)
            b = ((word >> 16) & 255).to(tl.float32)
            a = ((word >> 24) & 255).to(tl.float32)
        part = light * a * 0.00392156863
        red += part * r
        green += part * g
        blue += part * b
        light -= part
    tl.store(out_ptr + offs, red)
    tl.store(out_ptr + n + offs, green)
    tl.store(out_ptr + 2 * n + offs, blue)


@triton.jit
def covariance_steps(f_ptr, p_ptr, q_ptr, STEPS, D: tl.constexpr, PRECISION: tl.constexpr):
    """The covariance of a Kalman filter after STEPS predictions: P = F P Fᵀ + Q."""
    rows = tl.arange(0, D)
    place = rows[:, None] * D + rows[None, :]
    f = tl.load(f_ptr + place)
    q = tl.load(q_ptr + place)
    base = tl.program_id(0) * D * D
    p = tl.load(p_ptr + base + place)
    for _ in range(STEPS):
        fp = tl.dot(f, p, input_precision=PRECISION)
        p = tl.dot(fp, tl.trans(f), input_precision=PRECISION) + q
    tl.store(p_ptr + base + place, p)


@triton.jit
def merge_patches(
    x_ptr, w_ptr, y_ptr, SIDE, N, C: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
    WIDE: tl.constexpr
):  # fmt: skip
    """Patch merging: four neighbours of C channels each are joined and projected to N channels."""
    across = tl.program_id(0) * BM + tl.arange(0, BM)
    cols = tl.program_id(1) * BN + tl.arange(0, BN)
    row = tl.program_id(2)
    depth = tl.arange(0, BK)
    acc = tl.zeros((BM, BN), tl.float32)
    for k in range(0, 4 * C, BK):
        quarter = k // C
        pixel = (2 * row + quarter % 2) * SIDE + 2 * across + quarter // 2
        x = tl.load(x_ptr + pixel[:, None] * C + k % C + depth[None, :])
        w = tl.load(w_ptr + (k + depth[:, None]) * N + cols[None, :])
        if WIDE:
            acc = tl.dot(x.to(tl.float32), w.to(tl.float32), acc)
        else:
            acc = tl.dot(x, w, acc)
    tl.store(y_ptr + (row * (SIDE // 2) + across[:, None]) * N + cols[None, :], acc.to(tl.bfloat16))


@triton.jit
def prefill_attention(
    q_ptr, k_ptr, v_ptr, o_ptr, T, scale, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr
):  # fmt: skip
    """Attention of a whole prompt to itself, with BM queries per CTA."""
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    base = tl.program_id(1) * T
    dims = tl.arange(0, D)
    q = tl.load(q_ptr + (base + rows[:, None]) * D + dims[None, :])
    top = tl.full((BM,), -1e30, tl.float32)
    total = tl.zeros((BM,), tl.float32)
    acc = tl.zeros((BM, D), tl.float32)
    for start in range(0, T, BN):
        keys = base + start + tl.arange(0, BN)
        k = tl.load(k_ptr + keys[None, :] * D + dims[:, None])
        s = tl.dot(q, k) * scale
        new = tl.maximum(top, tl.max(s, 1))
        p = tl.exp2(s - new[:, None])
        shrink = tl.exp2(top - new)
        total = total * shrink + tl.sum(p, 1)
        v = tl.load(v_ptr + keys[:, None] * D + dims[None, :])
        acc = tl.dot(p.to(tl.bfloat16), v, acc * shrink[:, None])
        top = new
    tl.store(o_ptr + (base + rows[:, None]) * D + dims[None, :], (acc / total[:, None]).to(tl.bfloat16))


@triton.jit
def _discounted(a_one, x_one, a_two, x_two):
    return a_one * a_two, x_one * a_two + x_two


@triton.jit
def advantages(
    reward_ptr, value_ptr, out_ptr, discount, E, T: tl.constexpr, BE: tl.constexpr, TIME_FIRST: tl.constexpr
):  # fmt: skip
    """Discounted advantages of BE environments; TIME_FIRST if all environments of a step are together."""
    env = tl.program_id(0) * BE + tl.arange(0, BE)
    time = tl.arange(0, T)
    if TIME_FIRST:
        place = time[None, :] * E + env[:, None]
    else:
        place = env[:, None] * T + time[None, :]
    delta = tl.load(reward_ptr + place) - tl.load(value_ptr + place)
    weight = tl.zeros((BE, T), tl.float32) + discount
    _, total = tl.associative_scan((weight, delta), 1, _discounted)
    tl.store(out_ptr + place, total)


@triton.jit
def city_block(x_ptr, y_ptr, out_ptr, N, D, BM: tl.constexpr, BN: tl.constexpr, ONCE: tl.constexpr):
    """L1 distances of all pairs of points, one dimension at a time."""
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    cols = tl.program_id(1) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), tl.float32)
    of_x = rows[:, None] * D + tl.zeros((1, BN), tl.int32)
    of_y = cols[None, :] + tl.zeros((BM, 1), tl.int32)
    for d in range(D):
        if ONCE:
            x = tl.load(x_ptr + rows * D + d)[:, None]
            y = tl.load(y_ptr + d * N + cols)[None, :]
        else:
            x = tl.load(x_ptr + of_x + d)
            y = tl.load(y_ptr + d * N + of_y)
        acc += tl.abs(x - y)
    tl.store(out_ptr + rows[:, None] * N + cols[None, :], acc)


@triton.jit
def logistic_rollout(
    x_ptr, rate_ptr, limit_ptr, noise_ptr, out_ptr, n, dt, STEPS, BLOCK: tl.constexpr, KEPT: tl.constexpr
):
    """Euler steps of growing populations, each of which is stored."""
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offs)
    if KEPT:
        rate = tl.load(rate_ptr + offs)
        limit = tl.load(limit_ptr + offs)
        noise = tl.load(noise_ptr + offs)
    for step in range(STEPS):
        if not KEPT:
            rate = tl.load(rate_ptr + offs)
            limit = tl.load(limit_ptr + offs)
            noise = tl.load(noise_ptr + offs)
        x += dt * (rate * x * (1 - x * limit) + noise)
        tl.store(out_ptr + step * n + offs, x.to(tl.float16))


@triton.jit
def count_peaks(x_ptr, count_ptr, T, BLOCK: tl.constexpr, AT_END: tl.constexpr):
    """The number of local maxima of each series."""
    base = tl.program_id(0) * T
    offs = tl.arange(0, BLOCK)
    if AT_END:
        counts = tl.zeros((BLOCK,), tl.int32)
    else:
        count = 0
    for start in range(0, T, BLOCK):
        at = base + start + offs
        x = tl.load(x_ptr + at)
        before = tl.load(x_ptr + at - 1, mask=at > base, other=1e30)
        after = tl.load(x_ptr + at + 1, mask=at < base + T - 1, other=1e30)
        is_peak = (x > before) & (x > after)
        if AT_END:
            counts += is_peak.to(tl.int32)
        else:
            count += tl.sum(is_peak.to(tl.int32), 0)
    if AT_END:
        count = tl.sum(counts, 0)
    tl.store(count_ptr + tl.program_id(0), count)


@triton.jit
def temporal_median(x_ptr, y_ptr, pixels, FRAMES, BLOCK: tl.constexpr):
    """The median of nine frames around each frame, by an exchange network."""
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    for frame in range(FRAMES):
        first = x_ptr + frame * pixels + offs
        a = tl.load(first)
        b = tl.load(first + pixels)
        c = tl.load(first + 2 * pixels)
        d = tl.load(first + 3 * pixels)
        e = tl.load(first + 4 * pixels)
        f = tl.load(first + 5 * pixels)
        g = tl.load(first + 6 * pixels)
        h = tl.load(first + 7 * pixels)
        i = tl.load(first + 8 * pixels)
        b, c = tl.minimum(b, c), tl.maximum(b, c)
        e, f = tl.minimum(e, f), tl.maximum(e, f)
        h, i = tl.minimum(h, i), tl.maximum(h, i)
        a, b = tl.minimum(a, b), tl.maximum(a, b)
        d, e = tl.minimum(d, e), tl.maximum(d, e)
        g, h = tl.minimum(g, h), tl.maximum(g, h)
        b, c = tl.minimum(b, c), tl.maximum(b, c)
        e, f = tl.minimum(e, f), tl.maximum(e, f)
        h, i = tl.minimum(h, i), tl.maximum(h, i)
        low = tl.maximum(tl.maximum(a, d), g)
        high = tl.minimum(tl.minimum(c, f), i)
        middle = tl.maximum(tl.minimum(b, e), tl.minimum(tl.maximum(b, e), h))
        least, most = tl.minimum(low, middle), tl.maximum(low, middle)
        tl.store(y_ptr + frame * pixels + offs, tl.maximum(least, tl.minimum(most, high)))


@triton.jit
def correlate_series(x_ptr, y_ptr, out_ptr, PART, BLOCK: tl.constexpr):
    """Sums of products of two long series, one part per CTA."""
    base = tl.program_id(0) * PART
    xy = tl.zeros((BLOCK,), tl.float32)
    xx = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, PART, BLOCK):
        offs = base + start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + offs).to(tl.float32)
        y = tl.load(y_ptr + offs).to(tl.float32)
        xy += x * y
        xx += x * x
    tl.store(out_ptr + 2 * tl.program_id(0), tl.sum(xy, 0))
    tl.store(out_ptr + 2 * tl.program_id(0) + 1, tl.sum(xx, 0))


@triton.jit
def step_gradients(x_ptr, dy_ptr, step_ptr, out_ptr, N, ROWS: tl.constexpr, BLOCK: tl.constexpr, SUMMED: tl.constexpr):
    """The gradient of a learned quantisation step, of which 64 rows share one."""
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    cols = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    group = tl.program_id(0) * ROWS // 64
    step = tl.load(step_ptr + group)
    place = rows[:, None] * N + cols[None, :]
    x = tl.load(x_ptr + place).to(tl.float32) / step
    dy = tl.load(dy_ptr + place).to(tl.float32)
    part = dy * (tl.floor(x + 0.5) - x)
    if SUMMED:
        tl.atomic_add(out_ptr + group, tl.sum(tl.sum(part, 1), 0), sem="relaxed")
    else:
        tl.atomic_add(out_ptr + rows[:, None] // 64 + tl.zeros((1, BLOCK), tl.int32), part, sem="relaxed")


@triton.jit
def normalise_heads(x_ptr, w_ptr, y_ptr, eps, D: tl.constexpr, ROWS: tl.constexpr):
    """RMS norm of each head of a query, as before rotary embeddings."""
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    dims = tl.arange(0, D)
    place = rows[:, None] * D + dims[None, :]
    x = tl.load(x_ptr + place).to(tl.float32)
    scale = tl.rsqrt(tl.sum(x * x, 1) / D + eps)
    y = x * scale[:, None] * tl.load(w_ptr + dims)[None, :]
    tl.store(y_ptr + place, y.to(tl.bfloat16))
