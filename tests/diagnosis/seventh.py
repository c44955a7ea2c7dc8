"""A seventh set of kernels, each with one planted problem; written by somebody who did not read the rules."""

import triton
import triton.language as tl


@triton.jit
def local_attention(
    q_ptr, k_ptr, v_ptr, o_ptr, T, scale, BM: tl.constexpr, BN: tl.constexpr, D: tl.constexpr, W: tl.constexpr
):
    """Attention to the W keys before a block of queries."""
    start = tl.program_id(0) * BM
    head = tl.program_id(1) * T * D
    rows = start + tl.arange(0, BM)
    cols = tl.arange(0, BN)
    dims = tl.arange(0, D)
    q = tl.load(q_ptr + head + rows[:, None] * D + dims[None, :])
    top = tl.full((BM,), -1e30, tl.float32)
    total = tl.zeros((BM,), tl.float32)
    acc = tl.zeros((BM, D), tl.float32)
    for step in range(0, W, BN):
        keys = step + start + cols
        k = tl.load(k_ptr + head + keys[None, :] * D + dims[:, None])
        s = tl.dot(q, k) * scale
        new = tl.maximum(top, tl.max(s, 1))
        p = tl.exp2(s - new[:, None])
        shrink = tl.exp2(top - new)
        total = total * shrink + tl.sum(p, 1)
        v = tl.load(v_ptr + head + keys[:, None] * D + dims[None, :])
        acc = tl.dot(p.to(v.dtype), v, acc * shrink[:, None])
        top = new
    tl.store(o_ptr + head + rows[:, None] * D + dims[None, :], (acc / total[:, None]).to(tl.float16))


@triton.jit
def find_keys(
    query_ptr,
    head_ptr,
    key_ptr,
    link_ptr,
    value_ptr,
    out_ptr,
    buckets,
    SLOTS: tl.constexpr,
    BLOCK: tl.constexpr,
    CHAINED: tl.constexpr,
):
    """Look keys up in a hash table: buckets are linked lists, or SLOTS adjacent places."""
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    query = tl.load(query_ptr + offs)
    hashed = (query * 40503) >> 4
    bucket = hashed & (buckets - 1)
    found = tl.full((BLOCK,), -1, tl.int32)
    if CHAINED:
        node = tl.load(head_ptr + bucket)
        for _ in range(SLOTS):
            key = tl.load(key_ptr + node)
            found = tl.where(key == query, node, found)
            node = tl.load(link_ptr + node)
    else:
        for slot in tl.static_range(SLOTS):
            key = tl.load(key_ptr + bucket * SLOTS + slot)
            found = tl.where(key == query, bucket * SLOTS + slot, found)
    value = tl.load(value_ptr + found, mask=found >= 0, other=0.0)
    tl.store(out_ptr + offs, value)


@triton.jit
def norm_backward(
    dy_ptr, x_ptr, w_ptr, rstd_ptr, dx_ptr, dw_ptr, C: tl.constexpr, ROWS: tl.constexpr, ATOMIC: tl.constexpr
):
    """Backward of RMSNorm; the gradient of the weight is added atomically per row, or kept and stored once."""
    block = tl.program_id(0)
    cols = tl.arange(0, C)
    w = tl.load(w_ptr + cols)
    dw = tl.zeros((C,), tl.float32)
    for each in range(ROWS):
        row = block * ROWS + each
        dy = tl.load(dy_ptr + row * C + cols).to(tl.float32)
        x = tl.load(x_ptr + row * C + cols).to(tl.float32)
        rstd = tl.load(rstd_ptr + row)
        normed = x * rstd
        scaled = dy * w
        mean = tl.sum(scaled * normed, 0) / C
        tl.store(dx_ptr + row * C + cols, ((scaled - normed * mean) * rstd).to(tl.float16))
        if ATOMIC:
            tl.atomic_add(dw_ptr + cols, dy * normed, sem="relaxed")
        else:
            dw += dy * normed
    if not ATOMIC:
        tl.store(dw_ptr + block * C + cols, dw)


@triton.jit
def sample_greedy(logit_ptr, noise_ptr, token_ptr, score_ptr, V, temperature, BLOCK: tl.constexpr, ONCE: tl.constexpr):
    """The token of the largest noisy logit of a row of V."""
    row = tl.program_id(0)
    offs = tl.arange(0, BLOCK)
    if ONCE:
        tops = tl.full((BLOCK,), -1e30, tl.float32)
        where = tl.zeros((BLOCK,), tl.int32)
        for start in range(0, V, BLOCK):
            x = tl.load(logit_ptr + row * V + start + offs).to(tl.float32)
            x = x * temperature + tl.load(noise_ptr + start + offs)
            where = tl.where(x > tops, start + offs, where)
            tops = tl.maximum(x, tops)
        top, lane = tl.max(tops, 0, return_indices=True)
        token = tl.sum(tl.where(offs == lane, where, 0), 0)
    else:
        top = -1e30
        token = 0
        for start in range(0, V, BLOCK):
            x = tl.load(logit_ptr + row * V + start + offs).to(tl.float32)
            x = x * temperature + tl.load(noise_ptr + start + offs)
            best, lane = tl.max(x, 0, return_indices=True)
            token = tl.where(best > top, start + lane, token)
            top = tl.maximum(best, top)
    tl.store(token_ptr + row, token)
    tl.store(score_ptr + row, top)


@triton.jit
def gemv_lanes(w_ptr, x_ptr, bias_ptr, y_ptr, N, K, BLOCK: tl.constexpr, TURNED: tl.constexpr):
    """y = act(W x + b), one row of W per lane; TURNED if W is stored with its columns first."""
    rows = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    acc = tl.load(bias_ptr + rows)
    for first in range(0, K, 8):
        for each in tl.static_range(8):
            k = first + each
            if TURNED:
                w = tl.load(w_ptr + k * N + rows)
            else:
                w = tl.load(w_ptr + rows * K + k)
            acc += w * tl.load(x_ptr + k)
    acc = acc / (1.0 + tl.exp(-acc))
    tl.store(y_ptr + rows, acc)


@triton.jit
def attract(
    x_ptr, y_ptr, z_ptr, m_ptr, ax_ptr, ay_ptr, az_ptr, n, BI: tl.constexpr, BJ: tl.constexpr, DOUBLE: tl.constexpr
):
    """Gravity of n bodies; the distance is taken in double precision, or in single precision."""
    i = tl.program_id(0) * BI + tl.arange(0, BI)
    xi, yi, zi = tl.load(x_ptr + i)[:, None], tl.load(y_ptr + i)[:, None], tl.load(z_ptr + i)[:, None]
    ax = tl.zeros((BI, BJ), tl.float32)
    ay = tl.zeros((BI, BJ), tl.float32)
    az = tl.zeros((BI, BJ), tl.float32)
    for start in range(0, n, BJ):
        j = start + tl.arange(0, BJ)
        dx = tl.load(x_ptr + j)[None, :] - xi
        dy = tl.load(y_ptr + j)[None, :] - yi
        dz = tl.load(z_ptr + j)[None, :] - zi
        if DOUBLE:
            square = dx.to(tl.float64) * dx.to(tl.float64) + dy.to(tl.float64) * dy.to(tl.float64)
            square = (square + dz.to(tl.float64) * dz.to(tl.float64) + 1e-4).to(tl.float32)
        else:
            square = dx * dx + dy * dy + dz * dz + 1e-4
        inverse = tl.rsqrt(square)
        force = tl.load(m_ptr + j)[None, :] * inverse * inverse * inverse
        ax += dx * force
        ay += dy * force
        az += dz * force
    tl.store(ax_ptr + i, tl.sum(ax, 1))
    tl.store(ay_ptr + i, tl.sum(ay, 1))
    tl.store(az_ptr + i, tl.sum(az, 1))


@triton.jit
def flip_spins(spin_ptr, noise_ptr, out_ptr, H, W, beta, BLOCK: tl.constexpr, FLAT: tl.constexpr):
    """A Metropolis step of the Ising model on a torus of H × W spins."""
    if FLAT:
        cell = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        row, col = cell // W, cell % W
        left = row * W + (col + W - 1) % W
        right = row * W + (col + 1) % W
        above = (row + H - 1) % H * W + col
        below = (row + 1) % H * W + col
    else:
        row = tl.program_id(1)
        col = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        cell = row * W + col
        left = row * W + tl.where(col == 0, W - 1, col - 1)
        right = row * W + tl.where(col == W - 1, 0, col + 1)
        above = tl.where(row == 0, H - 1, row - 1) * W + col
        below = tl.where(row == H - 1, 0, row + 1) * W + col
    spin = tl.load(spin_ptr + cell)
    field = tl.load(spin_ptr + left) + tl.load(spin_ptr + right) + tl.load(spin_ptr + above) + tl.load(spin_ptr + below)
    energy = 2.0 * (spin * field).to(tl.float32)
    flips = tl.load(noise_ptr + cell).to(tl.float32) < tl.exp(-beta * energy) * 127.0
    tl.store(out_ptr + cell, tl.where(flips, -spin, spin))


@triton.jit
def estimate_area(seed_ptr, out_ptr, STEPS: tl.constexpr, BLOCK: tl.constexpr, WIDE: tl.constexpr):
    """Monte Carlo area of a circle with a linear congruential generator of 64 or 32 bits."""
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = tl.zeros((BLOCK,), tl.float32)
    if WIDE:
        state = tl.load(seed_ptr + offs).to(tl.uint64) + 0x9E3779B97F4A7C15
        for _ in range(STEPS):
            state = state * 6364136223846793005 + 1442695040888963407
            x = (state >> 40).to(tl.int32).to(tl.float32) * 5.96e-8
            state = state * 6364136223846793005 + 1442695040888963407
            y = (state >> 40).to(tl.int32).to(tl.float32) * 5.96e-8
            inside += tl.where(x * x + y * y < 1.0, 1.0, 0.0)
    else:
        low = tl.load(seed_ptr + offs).to(tl.uint32) + 0x7F4A7C15
        for _ in range(STEPS):
            low = low * 1664525 + 1013904223
            x = (low >> 8).to(tl.int32).to(tl.float32) * 5.96e-8
            low = low * 1664525 + 1013904223
            y = (low >> 8).to(tl.int32).to(tl.float32) * 5.96e-8
            inside += tl.where(x * x + y * y < 1.0, 1.0, 0.0)
    tl.store(out_ptr + offs, inside * (4.0 / STEPS))


@triton.jit
def expert_gemm(
    x_ptr, w_ptr, order_ptr, expert_ptr, y_ptr, N, K,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    """Rows sorted by expert times the weight of their expert; WIDE multiplies in single precision."""
    block = tl.program_id(0)
    cols = tl.program_id(1) * BN + tl.arange(0, BN)
    ks = tl.arange(0, BK)
    rows = tl.load(order_ptr + block * BM + tl.arange(0, BM))
    expert = tl.load(expert_ptr + block)
    x = x_ptr + rows[:, None] * K + ks[None, :]
    w = w_ptr + expert * N * K + cols[None, :] * K + ks[:, None]
    acc = tl.zeros((BM, BN), tl.float32)
    for _ in range(0, K, BK):
        if WIDE:
            acc = tl.dot(tl.load(x).to(tl.float32), tl.load(w).to(tl.float32), acc)
        else:
            acc = tl.dot(tl.load(x), tl.load(w), acc)
        x += BK
        w += BK
    places = block * BM + tl.arange(0, BM)
    tl.store(y_ptr + places[:, None] * N + cols[None, :], acc.to(tl.float16))


@triton.jit
def power_spectrum(
    x_ptr,
    cos_ptr,
    sin_ptr,
    p_ptr,
    F,
    SIZE,
    BM: tl.constexpr,
    BF: tl.constexpr,
    BK: tl.constexpr,
    PRECISION: tl.constexpr,
):
    """Power of F frequencies of each frame of SIZE samples: the Fourier transform as two products."""
    frames = tl.program_id(0) * BM + tl.arange(0, BM)
    bins = tl.program_id(1) * BF + tl.arange(0, BF)
    real = tl.zeros((BM, BF), tl.float32)
    imaginary = tl.zeros((BM, BF), tl.float32)
    for start in range(0, SIZE, BK):
        ks = start + tl.arange(0, BK)
        x = tl.load(x_ptr + frames[:, None] * SIZE + ks[None, :])
        table = bins[None, :] * SIZE + ks[:, None]
        real = tl.dot(x, tl.load(cos_ptr + table), real, input_precision=PRECISION)
        imaginary = tl.dot(x, tl.load(sin_ptr + table), imaginary, input_precision=PRECISION)
    power = real * real + imaginary * imaginary
    tl.store(p_ptr + frames[:, None] * F + bins[None, :], power)


@triton.jit
def mix_channels(x_ptr, w_ptr, bias_ptr, y_ptr, CIN, COUT, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """A 1 × 1 convolution over channels-last pixels, with bias and hard swish."""
    pixels = tl.program_id(0) * BM + tl.arange(0, BM)
    outs = tl.program_id(1) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), tl.float32)
    for start in range(0, CIN, BK):
        ins = start + tl.arange(0, BK)
        x = tl.load(x_ptr + pixels[:, None] * CIN + ins[None, :])
        w = tl.load(w_ptr + outs[None, :] * CIN + ins[:, None])
        acc = tl.dot(x, w, acc)
    acc += tl.load(bias_ptr + outs)[None, :].to(tl.float32)
    acc = acc * tl.minimum(tl.maximum(acc + 3.0, 0.0), 6.0) / 6.0
    tl.store(y_ptr + pixels[:, None] * COUT + outs[None, :], acc.to(tl.float16))


@triton.jit
def weight_gradient(
    dy_ptr, x_ptr, dw_ptr, N, K, T, BN: tl.constexpr, BK: tl.constexpr, BT: tl.constexpr, TURNED: tl.constexpr
):
    """dW = dYᵀ X in fp32; TURNED if both were stored with the tokens last."""
    outs = tl.program_id(0) * BN + tl.arange(0, BN)
    ins = tl.program_id(1) * BK + tl.arange(0, BK)
    acc = tl.zeros((BN, BK), tl.float32)
    for start in range(0, T, BT):
        tokens = start + tl.arange(0, BT)
        if TURNED:
            dy = tl.load(dy_ptr + outs[:, None] * T + tokens[None, :])
            x = tl.load(x_ptr + ins[None, :] * T + tokens[:, None])
        else:
            dy = tl.load(dy_ptr + tokens[None, :] * N + outs[:, None])
            x = tl.load(x_ptr + tokens[:, None] * K + ins[None, :])
        acc = tl.dot(dy, x, acc, input_precision="tf32")
    tl.store(dw_ptr + outs[:, None] * K + ins[None, :], acc)


@triton.jit
def _butterfly(x, ROWS: tl.constexpr, SIZE: tl.constexpr, STEP: tl.constexpr):
    pairs = tl.reshape(x, (ROWS, SIZE // (2 * STEP), 2, STEP))
    a, b = tl.split(tl.permute(pairs, (0, 1, 3, 2)))
    mixed = tl.permute(tl.join(a + b, a - b), (0, 1, 3, 2))
    return tl.reshape(mixed, (ROWS, SIZE))


@triton.jit
def hadamard(x_ptr, h_ptr, y_ptr, ROWS: tl.constexpr, SIZE: tl.constexpr, STAGED: tl.constexpr):
    """The Walsh–Hadamard transform of rows, by butterflies or as a product with its matrix."""
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    cols = tl.arange(0, SIZE)
    x = tl.load(x_ptr + rows[:, None] * SIZE + cols[None, :])
    if STAGED:
        y = x.to(tl.float32)
        y = _butterfly(y, ROWS, SIZE, 1)
        y = _butterfly(y, ROWS, SIZE, 2)
        y = _butterfly(y, ROWS, SIZE, 4)
        y = _butterfly(y, ROWS, SIZE, 8)
        y = _butterfly(y, ROWS, SIZE, 16)
        y = _butterfly(y, ROWS, SIZE, 32)
        y = _butterfly(y, ROWS, SIZE, 64)
    else:
        y = tl.dot(x, tl.load(h_ptr + cols[:, None] * SIZE + cols[None, :]))
    tl.store(y_ptr + rows[:, None] * SIZE + cols[None, :], (y * 0.08838835).to(tl.float16))


@triton.jit
def latent_decode(q_ptr, c_ptr, o_ptr, T, scale, HEADS: tl.constexpr, D: tl.constexpr, BN: tl.constexpr):
    """Attention of HEADS queries over one latent cache, keys and values at once (one part of the cache per program)."""
    part = tl.program_id(0)
    heads = tl.arange(0, HEADS)
    dims = tl.arange(0, D)
    q = tl.load(q_ptr + tl.program_id(1) * HEADS * D + heads[:, None] * D + dims[None, :])
    top = tl.full((HEADS,), -1e30, tl.float32)
    total = tl.zeros((HEADS,), tl.float32)
    acc = tl.zeros((HEADS, D), tl.float32)
    for start in range(0, T, BN):
        tokens = part * T + start + tl.arange(0, BN)
        c = tl.load(c_ptr + tokens[:, None] * D + dims[None, :])
        s = tl.dot(q, tl.trans(c)) * scale
        new = tl.maximum(top, tl.max(s, 1))
        p = tl.exp2(s - new[:, None])
        shrink = tl.exp2(top - new)
        total = total * shrink + tl.sum(p, 1)
        acc = tl.dot(p.to(c.dtype), c, acc * shrink[:, None])
        top = new
    out = (part * tl.num_programs(1) + tl.program_id(1)) * HEADS * D
    tl.store(o_ptr + out + heads[:, None] * D + dims[None, :], acc / total[:, None])


@triton.jit
def gated_recurrence(q_ptr, k_ptr, v_ptr, g_ptr, o_ptr, T, D: tl.constexpr, BV: tl.constexpr):
    """The recurrent form of gated linear attention: S = g S + k vᵀ, o = S q, for BV columns of the state."""
    head = tl.program_id(0)
    dims = tl.arange(0, D)
    cols = tl.program_id(1) * BV + tl.arange(0, BV)
    state = tl.zeros((BV, D), tl.float32)
    for t in range(T):
        at = (head * T + t) * D
        q = tl.load(q_ptr + at + dims).to(tl.float32)
        k = tl.load(k_ptr + at + dims).to(tl.float32)
        g = tl.load(g_ptr + at + dims).to(tl.float32)
        v = tl.load(v_ptr + at + cols).to(tl.float32)
        state = state * g[None, :] + v[:, None] * k[None, :]
        out = tl.sum(state * q[None, :], 1)
        tl.store(o_ptr + at + cols, out.to(tl.bfloat16))


@triton.jit
def causal_attention(
    q_ptr,
    k_ptr,
    v_ptr,
    o_ptr,
    T,
    window,
    scale,
    BM: tl.constexpr,
    BN: tl.constexpr,
    D: tl.constexpr,
    PEELED: tl.constexpr,
):
    """Causal attention in a window; PEELED masks only the diagonal, as the window covers the rest."""
    start = tl.program_id(0) * BM
    head = tl.program_id(1) * T * D
    rows = start + tl.arange(0, BM)
    cols = tl.arange(0, BN)
    dims = tl.arange(0, D)
    q = tl.load(q_ptr + head + rows[:, None] * D + dims[None, :])
    top = tl.full((BM,), -1e30, tl.float32)
    total = tl.zeros((BM,), tl.float32)
    acc = tl.zeros((BM, D), tl.float32)
    for first in range(0, start if PEELED else start + BM, BN):
        keys = first + cols
        s = tl.dot(q, tl.load(k_ptr + head + keys[None, :] * D + dims[:, None])) * scale
        if not PEELED:
            seen = (rows[:, None] >= keys[None, :]) & (rows[:, None] - keys[None, :] < window) & (keys[None, :] < T)
            s = tl.where(seen, s, -1e30)
        new = tl.maximum(top, tl.max(s, 1))
        p = tl.exp2(s - new[:, None])
        shrink = tl.exp2(top - new)
        total = total * shrink + tl.sum(p, 1)
        acc = tl.dot(p.to(tl.float16), tl.load(v_ptr + head + keys[:, None] * D + dims[None, :]), acc * shrink[:, None])
        top = new
    if PEELED:
        for first in range(start, start + BM, BN):
            keys = first + cols
            s = tl.dot(q, tl.load(k_ptr + head + keys[None, :] * D + dims[:, None])) * scale
            s = tl.where(rows[:, None] >= keys[None, :], s, -1e30)
            new = tl.maximum(top, tl.max(s, 1))
            p = tl.exp2(s - new[:, None])
            shrink = tl.exp2(top - new)
            total = total * shrink + tl.sum(p, 1)
            v = tl.load(v_ptr + head + keys[:, None] * D + dims[None, :])
            acc = tl.dot(p.to(tl.float16), v, acc * shrink[:, None])
            top = new
    tl.store(o_ptr + head + rows[:, None] * D + dims[None, :], (acc / total[:, None]).to(tl.float16))


@triton.jit
def smooth_signal(x_ptr, y_ptr, n, WIDTH: tl.constexpr, BLOCK: tl.constexpr, SUMMED: tl.constexpr):
    """The moving average of WIDTH samples: each is loaded WIDTH times, or sums are carried along."""
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    if SUMMED:
        first = tl.program_id(0) * BLOCK + tl.arange(0, WIDTH)
        carry = tl.sum(tl.load(x_ptr + first), 0)
        change = tl.load(x_ptr + offs + WIDTH) - tl.load(x_ptr + offs)
        total = carry + tl.cumsum(change, 0)
    else:
        total = tl.zeros((BLOCK,), tl.float32)
        for tap in tl.static_range(WIDTH):
            total += tl.load(x_ptr + offs + tap + 1)
    tl.store(y_ptr + offs, total / WIDTH)


@triton.jit
def fire_neurons(
    current_ptr,
    decay_ptr,
    level_ptr,
    reset_ptr,
    spike_ptr,
    n,
    T: tl.constexpr,
    BLOCK: tl.constexpr,
    HOISTED: tl.constexpr,
):
    """T steps of leaky neurons; what belongs to a neuron is loaded at each step, or once."""
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    charge = tl.zeros((BLOCK,), tl.float32)
    if HOISTED:
        decay = tl.load(decay_ptr + offs)
        level = tl.load(level_ptr + offs)
        reset = tl.load(reset_ptr + offs)
    for t in range(T):
        if not HOISTED:
            decay = tl.load(decay_ptr + offs)
            level = tl.load(level_ptr + offs)
            reset = tl.load(reset_ptr + offs)
        current = tl.load(current_ptr + t * n + offs).to(tl.float32)
        charge = charge * decay + current
        fires = charge > level
        charge = tl.where(fires, reset, charge)
        tl.store(spike_ptr + t * n + offs, fires.to(tl.int8))


@triton.jit
def route_tokens(logit_ptr, gate_ptr, expert_ptr, E: tl.constexpr, TOKENS: tl.constexpr):
    """The best expert of each token and its share of the softmax."""
    tokens = tl.program_id(0) * TOKENS + tl.arange(0, TOKENS)
    experts = tl.arange(0, E)
    x = tl.load(logit_ptr + tokens[:, None] * E + experts[None, :])
    top, best = tl.max(x, 1, return_indices=True)
    p = tl.exp(x - top[:, None])
    share = 1.0 / tl.sum(p, 1)
    tl.store(gate_ptr + tokens, share)
    tl.store(expert_ptr + tokens, best)


@triton.jit
def vocabulary_logits(h_ptr, w_ptr, y_ptr, K, stride_k, V, cap, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """Logits of a vocabulary with a soft cap; the weight is (K, V) with a row stride of its own."""
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    words = tl.program_id(1) * BN + tl.arange(0, BN)
    ks = tl.arange(0, BK)
    h = h_ptr + rows[:, None] * K + ks[None, :]
    w = w_ptr + ks[:, None] * stride_k + words[None, :]
    acc = tl.zeros((BM, BN), tl.float32)
    for _ in range(0, K, BK):
        acc = tl.dot(tl.load(h), tl.load(w), acc)
        h += BK
        w += BK * stride_k
    acc = cap * (2.0 / (1.0 + tl.exp(-2.0 * acc / cap)) - 1.0)
    tl.store(y_ptr + rows[:, None] * V + words[None, :], acc.to(tl.float16))
