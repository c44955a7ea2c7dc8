"""A sixth set of planted problems, frozen before the first run; see `sixth_pairs.py` for launches and expectations.

Kernels of signal processing, graphs, statistics, particles and small models. A constant or the launch selects the plant
or the repaired code, or the repaired kernel stands beside it.
"""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def frame_audio(x_ptr, w_ptr, y_ptr, n, hop, size, FRAME: tl.constexpr, BLOCK: tl.constexpr, FLAT: tl.constexpr):
    """Overlapping frames of a signal, windowed: y[t, i] = x[t * hop + i] * w[i]."""
    pid = tl.program_id(0)
    if FLAT:
        for part in range(4):
            offset = (pid * 4 + part) * BLOCK + tl.arange(0, BLOCK)
            t, i = offset // size, offset % size
            value = tl.load(x_ptr + t * hop + i, mask=offset < n, other=0.0)
            tl.store(y_ptr + offset, value * tl.load(w_ptr + i), mask=offset < n)
    else:
        i = tl.arange(0, FRAME)
        window = tl.load(w_ptr + i)
        for part in range(4 * BLOCK // FRAME):
            t = pid * (4 * BLOCK // FRAME) + part
            value = tl.load(x_ptr + t * hop + i, mask=t * size + i < n, other=0.0)
            tl.store(y_ptr + t * size + i, value * window, mask=t * size + i < n)


@triton.jit
def boosted_trees(x_ptr, feature_ptr, cut_ptr, leaf_ptr, out_ptr, n, TREES: tl.constexpr, DEPTH: tl.constexpr,
                  FEATURES: tl.constexpr, BLOCK: tl.constexpr):  # fmt: skip
    """Gradient boosted trees; each node says which feature is compared, and decides the next node."""
    row = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    for tree in range(TREES):
        node = tl.zeros((BLOCK,), tl.int32)
        for _ in tl.static_range(DEPTH):
            at = (tree << DEPTH) + node
            feature = tl.load(feature_ptr + at)
            value = tl.load(x_ptr + feature * n + row)
            node = 2 * node + 1 + (value > tl.load(cut_ptr + at)).to(tl.int32)
        total += tl.load(leaf_ptr + (tree << DEPTH) + node - ((1 << DEPTH) - 1))
    tl.store(out_ptr + row, total)


@triton.jit
def oblivious_trees(x_ptr, feature_ptr, cut_ptr, leaf_ptr, out_ptr, n, TREES: tl.constexpr, DEPTH: tl.constexpr,
                    FEATURES: tl.constexpr, BLOCK: tl.constexpr):  # fmt: skip
    """Oblivious trees: all nodes of a level compare the same feature, so that no load depends on a node."""
    row = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    for tree in range(TREES):
        leaf = tl.zeros((BLOCK,), tl.int32)
        for level in tl.static_range(DEPTH):
            value = tl.load(x_ptr + ((tree * 7 + level * 3) % FEATURES) * n + row)
            leaf = 2 * leaf + (value > 0.1 * level).to(tl.int32)
        total += leaf.to(tl.float32)
    tl.store(out_ptr + row, total)


@triton.jit
def bloom_insert(key_ptr, bits_ptr, n, WORDS: tl.constexpr, BLOCK: tl.constexpr, PRIVATE: tl.constexpr):
    """Two hashes of each key set bits of a filter: of one small filter, or of one large one."""
    offset = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    key = tl.load(key_ptr + offset, mask=offset < n, other=0)
    first = (key * -1640531527) ^ (key >> 15)
    second = (key * 668265263) ^ (key >> 13)
    if PRIVATE:
        bits = (1 << (first & 31)) | (1 << (second & 31))
        merged = tl.reduce(bits, 0, _either)
        tl.store(bits_ptr + tl.program_id(0), merged)
    else:
        tl.atomic_or(bits_ptr + ((first >> 5) & (WORDS - 1)), 1 << (first & 31), mask=offset < n)
        tl.atomic_or(bits_ptr + ((second >> 5) & (WORDS - 1)), 1 << (second & 31), mask=offset < n)


@triton.jit
def _either(a, b):
    return a | b


@triton.jit
def claim_slots(count_ptr, value_ptr, out_ptr, n, capacity, BLOCK: tl.constexpr, TICKET: tl.constexpr):
    """Each CTA appends its positive values to a list, and claims space for them first."""
    offset = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(value_ptr + offset, mask=offset < n, other=0.0)
    keep = value > 0.0
    rank = tl.cumsum(keep.to(tl.int32), 0) - 1
    number = tl.sum(keep.to(tl.int32), 0)
    if TICKET:
        start = tl.atomic_add(count_ptr + tl.program_id(0) % 64 * 32, number)
    else:
        start = tl.load(count_ptr, volatile=True)
        seen = tl.atomic_cas(count_ptr, start, start + number)
        while seen != start:
            start = seen
            seen = tl.atomic_cas(count_ptr, start, start + number)
    tl.store(out_ptr + (start + rank) % capacity, value, mask=keep)


@triton.jit
def kl_divergence(p_ptr, q_ptr, out_ptr, columns, BLOCK: tl.constexpr, EACH: tl.constexpr):
    """The divergence of two distributions, one pair of rows per CTA."""
    row = tl.program_id(0).to(tl.int64)
    i = tl.arange(0, BLOCK)
    partial = tl.zeros((BLOCK,), tl.float32)
    total = 0.0
    for start in range(0, columns, BLOCK):
        p = tl.load(p_ptr + row * columns + start + i)
        q = tl.load(q_ptr + row * columns + start + i)
        term = p * (tl.log(p) - tl.log(q))
        if EACH:
            total += tl.sum(term, 0)
        else:
            partial += term
    if not EACH:
        total = tl.sum(partial, 0)
    tl.store(out_ptr + row, total)


@triton.jit
def follow_envelope(x_ptr, y_ptr, steps, channels, attack, release, BLOCK: tl.constexpr, SYNC: tl.constexpr):
    """The loudness of audio channels over time; the barrier of the plant is left over from debugging."""
    channel = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    level = tl.zeros((BLOCK,), tl.float32)
    for t in range(steps):
        x = tl.abs(tl.load(x_ptr + t * channels + channel))
        level = tl.where(x > level, attack * level + (1.0 - attack) * x, release * level + (1.0 - release) * x)
        if SYNC:
            tl.debug_barrier()
        tl.store(y_ptr + t * channels + channel, level)


@triton.jit
def stereo_costs(left_ptr, right_ptr, cost_ptr, width, height, pitch, DISPARITIES: tl.constexpr, BLOCK: tl.constexpr,
                 GUARD: tl.constexpr):  # fmt: skip
    """Differences between a left row and the right row shifted by each disparity; padded rows need no guard."""
    y = tl.program_id(1)
    x = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    left = tl.load(left_ptr + y * pitch + 64 + x)
    for d in range(DISPARITIES):
        at = x - d
        if GUARD:
            inside = (at >= 0) & (at < width) & (x < width) & (y < height)
            right = tl.load(right_ptr + y * pitch + 64 + at, mask=inside, other=0)
            cost = tl.where(inside, tl.abs(left - right), 255)
            tl.store(cost_ptr + (d * height + y) * width + x, cost, mask=(x < width) & (y < height))
        else:
            right = tl.load(right_ptr + y * pitch + 64 + at)
            tl.store(cost_ptr + (d * height + y) * width + x, tl.abs(left - right))


@triton.jit
def mean_symmetric(x_ptr, y_ptr, size, BATCH: tl.constexpr, B: tl.constexpr, LATE: tl.constexpr):
    """The mean of x + xᵀ over a batch, for diagonal blocks."""
    block = tl.program_id(0)
    r, c = tl.arange(0, B)[:, None], tl.arange(0, B)[None, :]
    total = tl.zeros((B, B), tl.float32)
    for b in range(BATCH):
        x = tl.load(x_ptr + (block * BATCH + b) * B * B + r * B + c)
        if LATE:
            total += x
        else:
            total += x + tl.trans(x)
    if LATE:
        total += tl.trans(total)
    tl.store(y_ptr + block * B * B + r * B + c, total / BATCH)


@triton.jit
def picture_error(a_ptr, b_ptr, out_ptr, TRIPS: tl.constexpr, BLOCK: tl.constexpr, INTEGERS: tl.constexpr):
    """The squared error of two pictures of bytes, as for a signal-to-noise ratio."""
    pid = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    error = tl.zeros((BLOCK,), tl.int32 if INTEGERS else tl.float32)
    for trip in range(TRIPS):
        offset = (pid * TRIPS + trip) * BLOCK + i
        a, b = tl.load(a_ptr + offset), tl.load(b_ptr + offset)
        if INTEGERS:
            difference = a.to(tl.int32) - b.to(tl.int32)
        else:
            difference = (a.to(tl.float32) - b.to(tl.float32)) * (1 / 255)
        error += difference * difference
    tl.store(out_ptr + pid, tl.sum(error, 0).to(tl.float32))


@triton.jit
def mel_bands(p_ptr, w_ptr, y_ptr, frames, BINS: tl.constexpr, BANDS: tl.constexpr, BM: tl.constexpr, BK: tl.constexpr,
              PRECISION: tl.constexpr):  # fmt: skip
    """Mel bands of a power spectrum: log(p @ w)."""
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    band = tl.arange(0, BANDS)
    k = tl.arange(0, BK)
    acc = tl.zeros((BM, BANDS), tl.float32)
    for start in range(0, BINS, BK):
        p = tl.load(p_ptr + m[:, None] * BINS + start + k[None, :])
        w = tl.load(w_ptr + band[None, :] * BINS + start + k[:, None])
        acc = tl.dot(p, w, acc, input_precision=PRECISION)
    tl.store(y_ptr + m[:, None] * BANDS + band[None, :], tl.log(acc + 1e-6))


@triton.jit
def low_rank_update(w_ptr, u_ptr, v_ptr, n, RANK: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
                    WIDEN: tl.constexpr):  # fmt: skip
    """w += u @ vᵀ for a merged adapter of bf16."""
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    c = tl.program_id(1) * BN + tl.arange(0, BN)
    k = tl.arange(0, BK)
    acc = tl.zeros((BM, BN), tl.float32)
    for start in range(0, RANK, BK):
        u = tl.load(u_ptr + m[:, None] * RANK + start + k[None, :])
        v = tl.load(v_ptr + c[:, None] * RANK + start + k[None, :])
        if WIDEN:
            acc += tl.dot(u.to(tl.float32), tl.trans(v.to(tl.float32)))
        else:
            acc += tl.dot(u, tl.trans(v))
    at = w_ptr + m[:, None] * n + c[None, :]
    tl.store(at, (tl.load(at).to(tl.float32) + acc).to(tl.bfloat16))


@triton.jit
def vocabulary_logits(h_ptr, e_ptr, out_ptr, V, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """Logits of hidden states against an embedding table, with a soft cap."""
    m = tl.program_id(1) * BM + tl.arange(0, BM)
    v = tl.program_id(0) * BN + tl.arange(0, BN)
    k = tl.arange(0, BK)
    acc = tl.zeros((BM, BN), tl.float32)
    for start in range(0, D, BK):
        h = tl.load(h_ptr + m[:, None] * D + start + k[None, :])
        e = tl.load(e_ptr + v[:, None] * D + start + k[None, :])
        acc = tl.dot(h, tl.trans(e), acc)
    capped = 30.0 * (2.0 * tl.sigmoid(2.0 * acc / 30.0) - 1.0)
    tl.store(out_ptr + m[:, None] * V + v[None, :], capped.to(tl.float16))


@triton.jit
def whiten(x_ptr, w_ptr, y_ptr, rows, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
           BY_FEATURE: tl.constexpr):  # fmt: skip
    """y = x @ w in tf32; the plant gets x feature by feature."""
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    c = tl.program_id(1) * BN + tl.arange(0, BN)
    k = tl.arange(0, BK)
    acc = tl.zeros((BM, BN), tl.float32)
    for start in range(0, D, BK):
        w = tl.load(w_ptr + c[None, :] * D + start + k[:, None])
        if BY_FEATURE:
            x = tl.trans(tl.load(x_ptr + (start + k)[:, None] * rows + m[None, :]))
        else:
            x = tl.load(x_ptr + m[:, None] * D + start + k[None, :])
        acc = tl.dot(x, w, acc, input_precision="tf32")
    tl.store(y_ptr + m[:, None] * D + c[None, :], acc)


@triton.jit
def fill_masked(x_ptr, bits_ptr, y_ptr, TRIPS: tl.constexpr, BLOCK: tl.constexpr, ONCE: tl.constexpr):
    """Scores where a bit of a packed mask is set, else a large negative number."""
    pid = tl.program_id(0)
    for trip in range(TRIPS):
        base = (pid * TRIPS + trip) * BLOCK
        if ONCE:
            word = tl.load(bits_ptr + base // 32 + tl.arange(0, BLOCK // 32))
            bit = (word[:, None] >> tl.arange(0, 32)[None, :]) & 1
            at = base + tl.arange(0, BLOCK // 32)[:, None] * 32 + tl.arange(0, 32)[None, :]
        else:
            at = base + tl.arange(0, BLOCK)
            bit = (tl.load(bits_ptr + at // 32) >> (at % 32)) & 1
        x = tl.load(x_ptr + at)
        tl.store(y_ptr + at, tl.where(bit != 0, x, -65504.0))


@triton.jit
def window_frames(x_ptr, w_ptr, y_ptr, FRAMES: tl.constexpr, SIZE: tl.constexpr, OUTSIDE: tl.constexpr):
    """Frames of bytes times two windows; the plant loads the windows for every frame."""
    pid = tl.program_id(0)
    i = tl.arange(0, SIZE)
    rise, fall = tl.load(w_ptr + i), tl.load(w_ptr + SIZE + i)
    for f in range(FRAMES):
        if not OUTSIDE:
            rise, fall = tl.load(w_ptr + i), tl.load(w_ptr + SIZE + i)
        at = (pid * FRAMES + f) * SIZE + i
        x = tl.load(x_ptr + at).to(tl.float32)
        tl.store(y_ptr + at, (x * rise + tl.maximum(x, 0.0) * fall).to(tl.int8))


@triton.jit
def colour_extremes(x_ptr, out_ptr, TRIPS: tl.constexpr, BLOCK: tl.constexpr):
    """Minimum, maximum, sum and sum of squares at each place of a stack of pictures."""
    pid = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    low, high = tl.full((BLOCK,), 1e30, tl.float32), tl.full((BLOCK,), -1e30, tl.float32)
    total, squares = tl.zeros((BLOCK,), tl.float32), tl.zeros((BLOCK,), tl.float32)
    for trip in range(TRIPS):
        x = tl.load(x_ptr + (pid * TRIPS + trip) * BLOCK + i)
        low, high = tl.minimum(low, x), tl.maximum(high, x)
        total += x
        squares += x * x
    out = out_ptr + pid * 4 * BLOCK + i
    tl.store(out, low)
    tl.store(out + BLOCK, high)
    tl.store(out + 2 * BLOCK, total)
    tl.store(out + 3 * BLOCK, squares)


@triton.jit
def covariance(x_ptr, c_ptr, SAMPLES: tl.constexpr, D: tl.constexpr, B: tl.constexpr, BK: tl.constexpr):
    """Blocks of xᵀx for each group of samples."""
    m = tl.program_id(0) * B + tl.arange(0, B)
    n = tl.program_id(1) * B + tl.arange(0, B)
    group = tl.program_id(2)
    k = tl.arange(0, BK)
    base = x_ptr + group * SAMPLES * D
    acc = tl.zeros((B, B), tl.float32)
    for start in range(0, SAMPLES, BK):
        a = tl.load(base + (start + k)[None, :] * D + m[:, None])
        b = tl.load(base + (start + k)[:, None] * D + n[None, :])
        acc = tl.dot(a, b, acc)
    tl.store(c_ptr + (group * D + m[:, None]) * D + n[None, :], acc)


@triton.jit
def pair_scores(
    a_ptr, b_ptr, out_ptr, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, TILES: tl.constexpr
):  # fmt: skip
    """Scores of sentence pairs: each batch is one product, squashed."""
    pid = tl.program_id(0)
    batch = pid // (TILES * TILES)
    m = pid // TILES % TILES * BM + tl.arange(0, BM)
    n = pid % TILES * BN + tl.arange(0, BN)
    k = tl.arange(0, BK)
    a_base = a_ptr + batch * TILES * BM * K
    b_base = b_ptr + batch * TILES * BN * K
    acc = tl.zeros((BM, BN), tl.float32)
    for start in range(0, K, BK):
        a = tl.load(a_base + m[:, None] * K + start + k[None, :])
        b = tl.load(b_base + n[None, :] * K + start + k[:, None])
        acc = tl.dot(a, b, acc)
    out = out_ptr + batch * TILES * TILES * BM * BN + m[:, None] * (TILES * BN) + n[None, :]
    tl.store(out, tl.sigmoid(acc).to(tl.bfloat16))


@triton.jit
def rotate_vectors(v_ptr, s_ptr, y_ptr, ROWS: tl.constexpr, D: tl.constexpr):
    """Rows of vectors, each scaled and shifted by the two numbers of its row."""
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    d = tl.arange(0, D)
    scale, shift = tl.load(s_ptr + 2 * row), tl.load(s_ptr + 2 * row + 1)
    v = tl.load(v_ptr + row[:, None] * D + d[None, :])
    tl.store(y_ptr + row[:, None] * D + d[None, :], v * scale[:, None] + shift[:, None])


@triton.jit
def decay_state(s_ptr, x_ptr, decay, BLOCK: tl.constexpr):
    """The running state of a controller: s = decay * s + x."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(s_ptr + at, decay * tl.load(s_ptr + at) + tl.load(x_ptr + at))


@triton.jit
def scale_spectra(x_ptr, g_ptr, y_ptr, pitch, BINS: tl.constexpr, TRIPS: tl.constexpr):
    """Spectra of half precision times a gain for each bin; an odd pitch leaves rows unaligned."""
    i = tl.arange(0, BINS)
    gain = tl.load(g_ptr + i)
    for trip in range(TRIPS):
        row = tl.program_id(0) * TRIPS + trip
        x = tl.load(x_ptr + row * pitch + i)
        tl.store(y_ptr + row * pitch + i, x * gain)


@triton.jit
def push_particles(p_ptr, e_ptr, q_ptr, n, dt, FIELDS: tl.constexpr, BLOCK: tl.constexpr):
    """Positions and velocities of particles after a step; FIELDS is 1 for arrays, 8 for records."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    step = n if FIELDS == 1 else 1
    at = i * FIELDS
    x, y = tl.load(p_ptr + at), tl.load(p_ptr + at + step)
    u, v = tl.load(p_ptr + at + 2 * step), tl.load(p_ptr + at + 3 * step)
    force = tl.load(e_ptr + i)
    u, v = u + dt * force, v - dt * force
    tl.store(q_ptr + i, x + dt * u + y + dt * v)


@triton.jit
def nearest_scores(q_ptr, x_ptr, best_ptr, N, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    """The best inner product of each query with a database."""
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    n = tl.arange(0, BN)
    d = tl.arange(0, D)
    q = tl.load(q_ptr + m[:, None] * D + d[None, :])
    best = tl.full((BM, BN), -1e30, tl.float32)
    for start in range(0, N, BN):
        x = tl.load(x_ptr + (start + n)[None, :] * D + d[:, None])
        best = tl.maximum(best, tl.dot(q, x))
    tl.store(best_ptr + m, tl.max(best, 1))


@triton.jit
def min_hash(token_ptr, out_ptr, TRIPS: tl.constexpr, BLOCK: tl.constexpr, HASHES: tl.constexpr, WIDE: tl.constexpr):
    """Min-hash signatures of a document for each CTA; the plant hashes 32-bit tokens with 64 bits."""
    pid = tl.program_id(0)
    low = tl.full((BLOCK,), 0x7FFFFFFF, tl.int64 if WIDE else tl.int32)
    for trip in range(TRIPS):
        token = tl.load(token_ptr + (pid * TRIPS + trip) * BLOCK + tl.arange(0, BLOCK))
        if WIDE:
            token = token.to(tl.int64)
        for h in tl.static_range(HASHES):
            low = tl.minimum(low, (token * (40503 + 2 * h) + 97 * h) & 0x7FFFFFFF)
    tl.store(out_ptr + pid, tl.min(low, 0).to(tl.int32))


@triton.jit
def mix_colours(a_ptr, b_ptr, y_ptr, weight, BLOCK: tl.constexpr):
    """A blend of two pictures."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    a, b = tl.load(a_ptr + at), tl.load(b_ptr + at)
    tl.store(y_ptr + at, a + weight * (b - a))


@triton.jit
def interleave_planes(x_ptr, y_ptr, word_ptr, n, BLOCK: tl.constexpr, WORDS: tl.constexpr):
    """Four planes of bytes as one picture of four channels; the plant stores each channel by itself."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    if WORDS:
        word = tl.zeros((BLOCK,), tl.int32)
        for c in tl.static_range(4):
            word |= (tl.load(x_ptr + c * n + at).to(tl.int32) & 255) << (8 * c)
        tl.store(word_ptr + at, word)
    else:
        for c in tl.static_range(4):
            tl.store(y_ptr + 4 * at + c, tl.load(x_ptr + c * n + at))


@triton.jit
def walk_graph(start_ptr, next_ptr, out_ptr, degree, STEPS: tl.constexpr, BLOCK: tl.constexpr):
    """Random walks: each step loads a neighbour of the node before."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    node = tl.load(start_ptr + i)
    seed = i * 747796405 + 1
    for _ in range(STEPS):
        seed = seed * 1664525 + 1013904223
        node = tl.load(next_ptr + node * degree + ((seed >> 16) & (degree - 1)))
    tl.store(out_ptr + i, node)


@triton.jit
def sample_graph(start_ptr, next_ptr, out_ptr, degree, STEPS: tl.constexpr, BLOCK: tl.constexpr):
    """As many neighbours, all of the first node: no load depends on another one of the loop."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    seed = i * 747796405 + 1
    total = tl.zeros((BLOCK,), tl.int32)
    for _ in range(STEPS):
        seed = seed * 1664525 + 1013904223
        total += tl.load(next_ptr + i * degree + ((seed >> 16) & (degree - 1)))
    tl.store(out_ptr + i, total)


@triton.jit
def loss_by_class(loss_ptr, class_ptr, sum_ptr, n, CLASSES: tl.constexpr, BLOCK: tl.constexpr, PARTIAL: tl.constexpr):
    """Sums of losses for a few classes: an addition for each loss, or partial sums for each CTA."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    loss, label = tl.load(loss_ptr + at), tl.load(class_ptr + at)
    if PARTIAL:
        for c in tl.static_range(CLASSES):
            part = tl.sum(tl.where(label == c, loss, 0.0), 0)
            tl.store(sum_ptr + tl.program_id(0) * CLASSES + c, part)
    else:
        tl.atomic_add(sum_ptr + (label & (CLASSES - 1)), loss)
