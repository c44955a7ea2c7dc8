"""A ninth set of kernels, each with one planted problem; written and frozen before any of them was diagnosed."""

import triton
import triton.language as tl


@triton.jit
def blockwise_gemm(
    a_ptr, b_ptr, as_ptr, bs_ptr, c_ptr, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr
):  # fmt: skip
    """C = A @ Bᵀ in FP8: a scale for each row of A and 128 columns, and for each 128 × 128 block of B."""
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    cols = tl.program_id(1) * BN + tl.arange(0, BN)
    depth = tl.arange(0, BK)
    a_at = a_ptr + rows[:, None] * K + depth[None, :]
    b_at = b_ptr + cols[None, :] * K + depth[:, None]
    blocks = K // BK
    acc = tl.zeros((BM, BN), tl.float32)
    for block in range(blocks):
        a = tl.load(a_at)
        b = tl.load(b_at)
        of_rows = tl.load(as_ptr + rows * blocks + block)
        of_block = tl.load(bs_ptr + tl.program_id(1) * BN // 128 * blocks + block)
        acc += tl.dot(a, b) * (of_rows * of_block)[:, None]
        a_at += BK
        b_at += BK
    tl.store(c_ptr + rows[:, None] * N + cols[None, :], acc.to(tl.bfloat16))


@triton.jit
def absorb_heads(
    q_ptr, w_ptr, y_ptr, H, DN: tl.constexpr, C: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr
):  # fmt: skip
    """Queries of each head times the weight of that head, as before attention to latent keys."""
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    cols = tl.program_id(1) * BN + tl.arange(0, BN)
    head = tl.program_id(2)
    depth = tl.arange(0, BK)
    acc = tl.zeros((BM, BN), tl.float32)
    for start in range(0, DN, BK):
        q = tl.load(q_ptr + (rows[:, None] * H + head) * DN + start + depth[None, :])
        w = tl.load(w_ptr + (head * DN + start + depth[:, None]) * C + cols[None, :])
        acc = tl.dot(q, w, acc)
    tl.store(y_ptr + (rows[:, None] * H + head) * C + cols[None, :], acc.to(tl.bfloat16))


@triton.jit
def bucketize(
    x_ptr, edge_ptr, out_ptr, EDGES: tl.constexpr, STEPS: tl.constexpr, BLOCK: tl.constexpr, UNIFORM: tl.constexpr
):  # fmt: skip
    """The bucket of each number: by bisection, or by one guess if all buckets are equally wide."""
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offs)
    if UNIFORM:
        least = tl.load(edge_ptr)
        most = tl.load(edge_ptr + EDGES - 1)
        guess = ((x - least) / (most - least) * (EDGES - 1)).to(tl.int32)
        low = tl.minimum(tl.maximum(guess, 0), EDGES - 2)
        low += (tl.load(edge_ptr + low + 1) <= x).to(tl.int32)
    else:
        low = tl.zeros((BLOCK,), tl.int32)
        high = tl.full((BLOCK,), EDGES - 1, tl.int32)
        for _ in range(STEPS):
            middle = (low + high) >> 1
            is_right = tl.load(edge_ptr + middle) <= x
            low = tl.where(is_right, middle + 1, low)
            high = tl.where(is_right, high, middle)
    tl.store(out_ptr + offs, low)


@triton.jit
def fingerprints(word_ptr, out_ptr, n, WORDS: tl.constexpr, BLOCK: tl.constexpr, WIDE: tl.constexpr):
    """Two FNV-1a hashes of the bytes of each record; records are stored word by word."""
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    if WIDE:
        one = tl.full((BLOCK,), 0x4BF29CE484222325, tl.uint64)
        two = tl.full((BLOCK,), 0x1234567887654321, tl.uint64)
    else:
        one = tl.full((BLOCK,), 0x811C9DC5, tl.uint32)
        two = tl.full((BLOCK,), 0x12345678, tl.uint32)
    for each in range(WORDS):
        word = tl.load(word_ptr + each * n + offs).to(tl.uint32, bitcast=True)
        for byte in tl.static_range(4):
            value = (word >> (8 * byte)) & 255
            if WIDE:
                one = (one ^ value.to(tl.uint64)) * 1099511628211
                two = (two ^ value.to(tl.uint64)) * 1099511628213
            else:
                one = (one ^ value) * 16777619
                two = (two ^ value) * 16777633
    tl.store(out_ptr + offs, (one ^ (two >> 5)).to(tl.int32))


@triton.jit
def digits_of(x_ptr, out_ptr, n, base, DIGITS: tl.constexpr, BASE: tl.constexpr, BLOCK: tl.constexpr):
    """The digits of each number, for a tokenizer of numbers; the base is an argument unless BASE is set."""
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x_ptr + offs)
    for place in range(DIGITS):
        if BASE > 0:
            rest = value // BASE
            digit = value - rest * BASE
        else:
            rest = value // base
            digit = value - rest * base
        tl.store(out_ptr + place * n + offs, digit.to(tl.int8))
        value = rest


@triton.jit
def pixels_to_planes(x_ptr, y_ptr, n, mean, scale, BLOCK: tl.constexpr, PLANAR: tl.constexpr):
    """RGB bytes become three normalised planes; PLANAR if the bytes are planes as well."""
    image = tl.program_id(1)
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    for colour in tl.static_range(3):
        if PLANAR:
            code = tl.load(x_ptr + (image * 3 + colour) * n + offs)
        else:
            code = tl.load(x_ptr + (image * n + offs) * 3 + colour)
        y = (code.to(tl.float32) - mean) * scale
        tl.store(y_ptr + (image * 3 + colour) * n + offs, y.to(tl.float16))


@triton.jit
def value_gradient(
    q_ptr, k_ptr, lse_ptr, do_ptr, dv_ptr, T, scale,
    D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, TURNED: tl.constexpr
):  # fmt: skip
    """dv of a block of keys; TURNED computes the scores with keys as rows."""
    keys = tl.program_id(0) * BN + tl.arange(0, BN)
    base = tl.program_id(1) * T
    dims = tl.arange(0, D)
    k = tl.load(k_ptr + (base + keys[:, None]) * D + dims[None, :])
    dv = tl.zeros((BN, D), tl.float32)
    for start in range(0, T, BM):
        tokens = base + start + tl.arange(0, BM)
        q = tl.load(q_ptr + tokens[:, None] * D + dims[None, :])
        do = tl.load(do_ptr + tokens[:, None] * D + dims[None, :])
        lse = tl.load(lse_ptr + tokens)
        if TURNED:
            s = tl.dot(k, tl.trans(q))
            p = tl.exp2(s * scale - lse[None, :]).to(tl.float16)
            dv = tl.dot(p, do, dv)
        else:
            s = tl.dot(q, tl.trans(k))
            p = tl.exp2(s * scale - lse[:, None]).to(tl.float16)
            dv = tl.dot(tl.trans(p), do, dv)
    tl.store(dv_ptr + (base + keys[:, None]) * D + dims[None, :], dv.to(tl.float16))


@triton.jit
def search_scales(w_ptr, scale_ptr, STEPS, ROWS: tl.constexpr, G: tl.constexpr, INTEGERS: tl.constexpr):
    """The scale of each group of G weights whose 4-bit codes have the smallest squared error."""
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    w = tl.load(w_ptr + rows[:, None] * G + tl.arange(0, G)[None, :]).to(tl.float32)
    top = tl.max(tl.abs(w), 1) / 7
    least = tl.full((ROWS,), 1e30, tl.float32)
    chosen = top
    for step in range(STEPS):
        scale = top * (1 - 0.01 * step)
        x = w * (1 / scale)[:, None]
        if INTEGERS:
            code = (x + tl.where(x >= 0, 0.5, -0.5)).to(tl.int32)
            near = tl.minimum(tl.maximum(code, -8), 7).to(tl.float32)
        else:
            near = tl.minimum(tl.maximum(x, -8.0), 7.0) + 12582912.0
            near -= 12582912.0
        error = near * scale[:, None] - w
        total = tl.sum(error * error, 1)
        chosen = tl.where(total < least, scale, chosen)
        least = tl.minimum(total, least)
    tl.store(scale_ptr + rows, chosen)


@triton.jit
def rbf_apply(
    x_ptr, z_ptr, xx_ptr, zz_ptr, v_ptr, y_ptr, N, gamma,
    D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, PRECISION: tl.constexpr
):  # fmt: skip
    """y = exp(-gamma |x - z|²) @ v, as in a Gaussian process; squared norms are given."""
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    dims = tl.arange(0, D)
    x = tl.load(x_ptr + rows[:, None] * D + dims[None, :])
    xx = tl.load(xx_ptr + rows)
    acc = tl.zeros((BM, D), tl.float32)
    for start in range(0, N, BN):
        points = start + tl.arange(0, BN)
        z = tl.load(z_ptr + points[None, :] * D + dims[:, None])
        zz = tl.load(zz_ptr + points)
        inner = tl.dot(x, z, input_precision=PRECISION)
        kernel = tl.exp(gamma * (2 * inner - xx[:, None] - zz[None, :]))
        v = tl.load(v_ptr + points[:, None] * D + dims[None, :])
        acc = tl.dot(kernel, v, acc, input_precision=PRECISION)
    tl.store(y_ptr + rows[:, None] * D + dims[None, :], acc)


@triton.jit
def index_scores(
    q_ptr, k_ptr, w_ptr, s_ptr, N, H: tl.constexpr, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr,
    WIDE: tl.constexpr
):  # fmt: skip
    """Scores that choose keys for sparse attention: the weighted sum of relu(q kᵀ) over H small FP8 heads."""
    tokens = tl.program_id(0) * BM + tl.arange(0, BM)
    keys = tl.program_id(1) * BN + tl.arange(0, BN)
    dims = tl.arange(0, D)
    k = tl.load(k_ptr + keys[None, :] * D + dims[:, None])
    if WIDE:
        k = k.to(tl.float16)
    total = tl.zeros((BM, BN), tl.float32)
    for head in range(H):
        q = tl.load(q_ptr + (tokens[:, None] * H + head) * D + dims[None, :])
        if WIDE:
            q = q.to(tl.float16)
        weight = tl.load(w_ptr + tokens * H + head)
        total += tl.maximum(tl.dot(q, k), 0.0) * weight[:, None]
    tl.store(s_ptr + tokens[:, None] * N + keys[None, :], total)


@triton.jit
def _gelu(x):
    return x / (1 + tl.exp(-1.702 * x))


@triton.jit
def gated_linear(x_ptr, gate_ptr, up_ptr, y_ptr, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """gelu(x @ gate) * (x @ up)."""
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    cols = tl.program_id(1) * BN + tl.arange(0, BN)
    depth = tl.arange(0, BK)
    gate = tl.zeros((BM, BN), tl.float32)
    up = tl.zeros((BM, BN), tl.float32)
    for start in range(0, K, BK):
        k = start + depth
        x = tl.load(x_ptr + rows[:, None] * K + k[None, :])
        gate = tl.dot(x, tl.load(gate_ptr + k[:, None] * N + cols[None, :]), gate)
        up = tl.dot(x, tl.load(up_ptr + k[:, None] * N + cols[None, :]), up)
    tl.store(y_ptr + rows[:, None] * N + cols[None, :], (_gelu(gate) * up).to(tl.float16))


@triton.jit
def conv3d(
    x_ptr, w_ptr, y_ptr, W: tl.constexpr, C: tl.constexpr, CO: tl.constexpr,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, HP: tl.constexpr
):  # fmt: skip
    """A 3 × 3 × 3 convolution of a padded video (frames, rows, pixels, channels): BM pixels of one row."""
    WP: tl.constexpr = W + 2
    pixels = tl.program_id(0) * BM + tl.arange(0, BM)
    cols = tl.program_id(1) * BN + tl.arange(0, BN)
    line = tl.program_id(2)
    frame = line // (HP - 2)
    row = line % (HP - 2)
    depth = tl.arange(0, BK)
    acc = tl.zeros((BM, BN), tl.float32)
    for tap in range(27):
        place = ((frame + tap // 9) * HP + row + tap // 3 % 3) * WP + tap % 3
        for start in range(0, C, BK):
            x = tl.load(x_ptr + (place + pixels[:, None]) * C + start + depth[None, :])
            w = tl.load(w_ptr + (tap * C + start + depth[:, None]) * CO + cols[None, :])
            acc = tl.dot(x, w, acc)
    tl.store(y_ptr + (line * W + pixels[:, None]) * CO + cols[None, :], acc.to(tl.float16))


@triton.jit
def split_bands(x_ptr, w_ptr, y_ptr, BANDS: tl.constexpr, TAPS: tl.constexpr, GATHERED: tl.constexpr):
    """A frame of BANDS × TAPS samples, windowed, in the order of its polyphase components."""
    SIZE: tl.constexpr = BANDS * TAPS
    offs = tl.arange(0, SIZE)
    first = tl.program_id(0) * SIZE
    x = tl.load(x_ptr + first + offs) * tl.load(w_ptr + offs)
    if GATHERED:
        y = tl.gather(x, offs % TAPS * BANDS + offs // TAPS, 0)
    else:
        y = tl.reshape(tl.trans(tl.reshape(x, (TAPS, BANDS))), (SIZE,))
    tl.store(y_ptr + first + offs, y)


@triton.jit
def append_keys(k_ptr, cache_ptr, H, S, D: tl.constexpr, TOKENS: tl.constexpr):
    """New keys go to a cache of (heads, dims, places), as decoding reads it, after an RMS norm."""
    tokens = tl.program_id(0) * TOKENS + tl.arange(0, TOKENS)
    head = tl.program_id(1)
    dims = tl.arange(0, D)
    k = tl.load(k_ptr + (tokens[:, None] * H + head) * D + dims[None, :]).to(tl.float32)
    scale = tl.rsqrt(tl.sum(k * k, 1) / D + 1e-6)
    k = k * scale[:, None]
    tl.store(cache_ptr + (head * D + dims[None, :]) * S + tokens[:, None], k.to(tl.bfloat16))


@triton.jit
def codebook_gemv(
    code_ptr, book_ptr, x_ptr, y_ptr, K, BN: tl.constexpr, BK: tl.constexpr, ONCE: tl.constexpr
):  # fmt: skip
    """y = W x; each code stands for eight weights of a row, which a codebook holds."""
    rows = tl.program_id(0) * BN + tl.arange(0, BN)
    acc = tl.zeros((BN,), tl.float32)
    for start in range(0, K, BK):
        if ONCE:
            groups = start // 8 + tl.arange(0, BK // 8)
            code = tl.load(code_ptr + rows[:, None] * (K // 8) + groups[None, :])
            w = tl.load(book_ptr + code[:, :, None] * 8 + tl.arange(0, 8)[None, None, :])
            x = tl.load(x_ptr + groups[:, None] * 8 + tl.arange(0, 8)[None, :])
            acc += tl.sum(tl.sum(w.to(tl.float32) * x[None, :, :], 2), 1)
        else:
            k = start + tl.arange(0, BK)
            code = tl.load(code_ptr + rows[:, None] * (K // 8) + k[None, :] // 8)
            w = tl.load(book_ptr + code * 8 + k[None, :] % 8)
            x = tl.load(x_ptr + k)
            acc += tl.sum(w.to(tl.float32) * x[None, :], 1)
    tl.store(y_ptr + rows, acc)


@triton.jit
def flat_field(
    raw_ptr, dark_ptr, gain_ptr, out_ptr, pixels, FRAMES: tl.constexpr, BLOCK: tl.constexpr, KEPT: tl.constexpr
):  # fmt: skip
    """Frames of a camera, corrected by the dark level and gain of each pixel."""
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    first = tl.program_id(1) * FRAMES
    if KEPT:
        dark = tl.load(dark_ptr + offs)
        gain = tl.load(gain_ptr + offs)
    for each in range(FRAMES):
        place = (first + each) * pixels + offs
        raw = tl.load(raw_ptr + place).to(tl.float32)
        if not KEPT:
            dark = tl.load(dark_ptr + offs)
            gain = tl.load(gain_ptr + offs)
        tl.store(out_ptr + place, ((raw - dark) * gain).to(tl.float16))


@triton.jit
def pool_tokens(
    q_ptr, k_ptr, v_ptr, o_ptr, T, scale, D: tl.constexpr, BT: tl.constexpr, TILED: tl.constexpr
):  # fmt: skip
    """Attention of one learned query per head to T tokens: token by token, or BT at a time."""
    head = tl.program_id(0)
    dims = tl.arange(0, D)
    q = tl.load(q_ptr + head * D + dims).to(tl.float32) * scale
    acc = tl.zeros((D,), tl.float32)
    top = -1e30
    total = 0.0
    if TILED:
        for start in tl.range(0, T, BT, num_stages=3):
            places = (head * T + start + tl.arange(0, BT))[:, None] * D + dims[None, :]
            s = tl.sum(tl.load(k_ptr + places).to(tl.float32) * q[None, :], 1)
            new = tl.maximum(top, tl.max(s, 0))
            p = tl.exp(s - new)
            shrink = tl.exp(top - new)
            total = total * shrink + tl.sum(p, 0)
            acc = acc * shrink + tl.sum(tl.load(v_ptr + places).to(tl.float32) * p[:, None], 0)
            top = new
    else:
        for token in tl.range(0, T, num_stages=3):
            place = (head * T + token) * D + dims
            s = tl.sum(tl.load(k_ptr + place).to(tl.float32) * q, 0)
            new = tl.maximum(top, s)
            p = tl.exp(s - new)
            shrink = tl.exp(top - new)
            total = total * shrink + p
            acc = acc * shrink + p * tl.load(v_ptr + place).to(tl.float32)
            top = new
    tl.store(o_ptr + head * D + dims, acc / total)


@triton.jit
def group_moments(x_ptr, out_ptr, SIZE, BLOCK: tl.constexpr):
    """Sum and sum of squares of parts of SIZE elements: those of a group norm, before a second pass adds them."""
    part = tl.program_id(0)
    parts = tl.num_programs(0)
    offs = tl.arange(0, BLOCK)
    one = tl.zeros((BLOCK,), tl.float32)
    two = tl.zeros((BLOCK,), tl.float32)
    for start in tl.range(0, SIZE, BLOCK, num_stages=4):
        x = tl.load(x_ptr + part * SIZE + start + offs).to(tl.float32)
        one += x
        two += x * x
    tl.store(out_ptr + part, tl.sum(one, 0))
    tl.store(out_ptr + parts + part, tl.sum(two, 0))


@triton.jit
def add_to_cells(point_ptr, cell_ptr, sum_ptr, n, CELLS, BLOCK: tl.constexpr):
    """The sum of the points in each cell of a grid, and their number: the first half of a voxel filter."""
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    cell = tl.load(cell_ptr + offs)
    for axis in tl.static_range(3):
        x = tl.load(point_ptr + axis * n + offs)
        tl.atomic_add(sum_ptr + axis * CELLS + cell, x, sem="relaxed")
    tl.atomic_add(sum_ptr + 3 * CELLS + cell, 1.0, sem="relaxed")
