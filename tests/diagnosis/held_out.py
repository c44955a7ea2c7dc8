"""A fifth set of planted problems, frozen before the first run; see `held_out_pairs.py` for launches and expectations.

Kernels as they are written in practice. A constant or the launch selects the plant or the repaired code, or the
repaired kernel stands beside it.
"""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def window_attention(
    q_ptr, k_ptr, v_ptr, o_ptr, scale, T,
    WINDOW: tl.constexpr, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr,
):  # fmt: skip
    """Attention of a block of queries to the keys of a sliding window before it."""
    block, head = tl.program_id(0), tl.program_id(1)
    base = head * (T + WINDOW) * D
    rows = tl.arange(0, BM)
    d = tl.arange(0, D)
    cols = tl.arange(0, BN)
    q = tl.load(q_ptr + head * T * D + (block * BM + rows)[:, None] * D + d[None, :])
    top = tl.full((BM,), -1e30, tl.float32)
    total = tl.zeros((BM,), tl.float32)
    acc = tl.zeros((BM, D), tl.float32)
    for start in range(0, WINDOW + BM, BN):
        n = block * BM + start + cols
        k = tl.load(k_ptr + base + n[:, None] * D + d[None, :])
        s = tl.dot(q, tl.trans(k)) * scale
        distance = rows[:, None] + WINDOW - (start + cols)[None, :]
        s = tl.where((distance >= 0) & (distance < WINDOW), s, -1e30)
        new_top = tl.maximum(top, tl.max(s, 1))
        p = tl.exp2(s - new_top[:, None])
        keep = tl.exp2(top - new_top)
        total = total * keep + tl.sum(p, 1)
        v = tl.load(v_ptr + base + n[:, None] * D + d[None, :])
        acc = tl.dot(p.to(v.dtype), v, acc * keep[:, None])
        top = new_top
    out = o_ptr + head * T * D + (block * BM + rows)[:, None] * D + d[None, :]
    tl.store(out, (acc / total[:, None]).to(tl.bfloat16))


@triton.jit
def linear_gelu(
    x_ptr, w_ptr, b_ptr, y_ptr, M, N, K,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):  # fmt: skip
    """The first half of an MLP: y = gelu(x @ w + b)."""
    pid = tl.program_id(0)
    tiles_n = N // BN
    m = (pid // tiles_n) * BM + tl.arange(0, BM)
    n = (pid % tiles_n) * BN + tl.arange(0, BN)
    k = tl.arange(0, BK)
    x = x_ptr + m[:, None] * K + k[None, :]
    w = w_ptr + k[:, None] * N + n[None, :]
    acc = tl.zeros((BM, BN), tl.float32)
    for _ in range(0, K, BK):
        acc = tl.dot(tl.load(x), tl.load(w), acc)
        x += BK
        w += BK * N
    z = acc + tl.load(b_ptr + n)[None, :]
    y = z * tl.sigmoid(1.702 * z)
    tl.store(y_ptr + m[:, None] * N + n[None, :], y.to(tl.bfloat16))


@triton.jit
def ell_spmm(col_ptr, perm_ptr, val_ptr, x_ptr, y_ptr, NZ: tl.constexpr, D: tl.constexpr):
    """A sparse row times a dense matrix whose rows are stored in another order: one nonzero after the other."""
    row = tl.program_id(0)
    d = tl.arange(0, D)
    acc = tl.zeros((D,), tl.float32)
    for j in range(NZ):
        c = tl.load(col_ptr + row * NZ + j)
        p = tl.load(perm_ptr + c)
        acc += tl.load(val_ptr + row * NZ + j) * tl.load(x_ptr + p * D + d).to(tl.float32)
    tl.store(y_ptr + row * D + d, acc)


@triton.jit
def ell_spmm_tile(col_ptr, val_ptr, x_ptr, y_ptr, NZ: tl.constexpr, D: tl.constexpr):
    row = tl.program_id(0)
    d = tl.arange(0, D)
    j = tl.arange(0, NZ)
    c = tl.load(col_ptr + row * NZ + j)
    x = tl.load(x_ptr + c[:, None] * D + d[None, :]).to(tl.float32)
    tl.store(y_ptr + row * D + d, tl.sum(x * tl.load(val_ptr + row * NZ + j)[:, None], 0))


@triton.jit
def run_automaton(text_ptr, step_ptr, out_ptr, n, LENGTH, BLOCK: tl.constexpr):
    """A lexer: each lane follows a table of states through one string; strings are stored column by column."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    state = tl.zeros((BLOCK,), tl.int32)
    for t in range(LENGTH):
        symbol = tl.load(text_ptr + t * n + i)
        state = tl.load(step_ptr + state * 32 + (symbol & 31))
    tl.store(out_ptr + i, state)


@triton.jit
def shift_and(text_ptr, step_ptr, out_ptr, n, LENGTH, BLOCK: tl.constexpr):
    """The same search with the states in the bits of a word."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    state = tl.zeros((BLOCK,), tl.int32)
    for t in range(LENGTH):
        symbol = tl.load(text_ptr + t * n + i)
        state = ((state << 1) | 1) & tl.load(step_ptr + (symbol & 31))
    tl.store(out_ptr + i, state)


@triton.jit
def cache_maxima(kv_ptr, out_ptr, PER_CTA, BLOCK: tl.constexpr):
    """The largest magnitude of each part of a KV cache, for its fp8 scale."""
    part = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    most = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, PER_CTA, BLOCK):
        most = tl.maximum(most, tl.abs(tl.load(kv_ptr + part * PER_CTA + start + i).to(tl.float32)))
    tl.store(out_ptr + part, tl.max(most, 0))


@triton.jit
def random_masks_64(m_ptr, seed, keep, TRIPS: tl.constexpr, BLOCK: tl.constexpr):
    """Dropout masks from a 64-bit mixing function of the position."""
    first = tl.program_id(0) * BLOCK * TRIPS
    for t in range(TRIPS):
        i = first + t * BLOCK + tl.arange(0, BLOCK)
        z = i.to(tl.int64) * 0x1E3779B97F4A7C15 + seed
        z = (z ^ (z >> 30)) * 0x3F58476D1CE4E5B9
        z = (z ^ (z >> 27)) * 0x14D049BB133111EB
        z = z ^ (z >> 31)
        tl.store(m_ptr + i, ((z & 0xFFFFFF).to(tl.int32) < keep).to(tl.int8))


@triton.jit
def random_masks_32(m_ptr, seed, keep, TRIPS: tl.constexpr, BLOCK: tl.constexpr):
    first = tl.program_id(0) * BLOCK * TRIPS
    for t in range(TRIPS):
        i = first + t * BLOCK + tl.arange(0, BLOCK)
        z = i ^ seed
        z = (z ^ (z >> 16)) * 0x45D9F3B
        z = z ^ (z >> 16)
        tl.store(m_ptr + i, ((z & 0xFFFFFF) < keep).to(tl.int8))


@triton.jit
def upsample_flat(x_ptr, y_ptr, H, W, C, S, TRIPS: tl.constexpr, BLOCK: tl.constexpr):
    """Nearest-neighbour upsampling of NHWC images by S: coordinates from the flat index."""
    first = tl.program_id(0) * BLOCK * TRIPS
    for t in range(TRIPS):
        i = first + t * BLOCK + tl.arange(0, BLOCK)
        c = i % C
        col = (i // C) % (W * S)
        row = (i // (C * W * S)) % (H * S)
        image = i // (C * W * S * H * S)
        x = tl.load(x_ptr + ((image * H + row // S) * W + col // S) * C + c)
        tl.store(y_ptr + i, x)


@triton.jit
def upsample_pixels(x_ptr, y_ptr, H, W, S: tl.constexpr, C: tl.constexpr):
    """One pixel of the input per CTA: it is loaded once and stored S × S times."""
    col, row, image = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    c = tl.arange(0, C)
    x = tl.load(x_ptr + ((image * H + row) * W + col) * C + c)
    for dy in tl.static_range(S):
        for dx in tl.static_range(S):
            out = ((image * H * S + row * S + dy) * W * S + col * S + dx) * C
            tl.store(y_ptr + out + c, x)


@triton.jit
def scale_columns(x_ptr, s_ptr, y_ptr, rows, cols, TRIPS: tl.constexpr, BLOCK: tl.constexpr, MASKED: tl.constexpr):
    """y = x * s, in pieces of a row; a bound that the compiler knows nothing about guards every access."""
    row = tl.program_id(0)
    for t in range(TRIPS):
        c = t * BLOCK + tl.arange(0, BLOCK)
        at = row * TRIPS * BLOCK + c
        if MASKED:
            inside = (c < cols) & (row < rows)
            x = tl.load(x_ptr + at, mask=inside, other=0.0)
            s = tl.load(s_ptr + c, mask=inside, other=1.0)
            tl.store(y_ptr + at, (x * s).to(tl.float16), mask=inside)
        else:
            tl.store(y_ptr + at, (tl.load(x_ptr + at) * tl.load(s_ptr + c)).to(tl.float16))


@triton.jit
def sinkhorn(x_ptr, y_ptr, ITERATIONS, B: tl.constexpr, TURNED: tl.constexpr):
    """Rows and columns of a cost matrix are normalised in turn."""
    at = tl.program_id(0) * B * B + tl.arange(0, B)[:, None] * B + tl.arange(0, B)[None, :]
    p = tl.exp2(tl.load(x_ptr + at))
    for _ in range(ITERATIONS):
        if TURNED:
            p = tl.trans(p / tl.sum(p, 1)[:, None])
            p = tl.trans(p / tl.sum(p, 1)[:, None])
        else:
            p = p / tl.sum(p, 1)[:, None]
            p = p / tl.sum(p, 0)[None, :]
    tl.store(y_ptr + at, p)


@triton.jit
def bag_int8(index_ptr, table_ptr, out_ptr, scale, BAG: tl.constexpr, D: tl.constexpr, FLOATS: tl.constexpr):
    """Sums of int8 rows: in fp32, or in int32 until the end."""
    bags = tl.program_id(0) * 8 + tl.arange(0, 8)
    d = tl.arange(0, D)
    acc = tl.zeros((8, D), tl.float32 if FLOATS else tl.int32)
    for j in range(BAG):
        row = tl.load(index_ptr + j * 65536 + bags)
        x = tl.load(table_ptr + row[:, None] * D + d[None, :])
        acc += x.to(tl.float32) * scale if FLOATS else x.to(tl.int32)
    y = acc if FLOATS else acc.to(tl.float32) * scale
    tl.store(out_ptr + bags[:, None] * D + d[None, :], y)


@triton.jit
def nearest_centre(
    x_ptr, c_ptr, norm_ptr, label_ptr, CENTRES,
    D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """The assignment of k-means: distances as products."""
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    d = tl.arange(0, D)
    x = tl.load(x_ptr + m[:, None] * D + d[None, :])
    best = tl.full((BM,), 1e30, tl.float32)
    label = tl.zeros((BM,), tl.int32)
    for start in range(0, CENTRES, BN):
        n = start + tl.arange(0, BN)
        c = tl.load(c_ptr + n[None, :] * D + d[:, None])
        distance = tl.load(norm_ptr + n)[None, :] - 2.0 * tl.dot(x, c, input_precision=PRECISION)
        least = tl.min(distance, 1)
        label = tl.where(least < best, start + tl.argmin(distance, 1), label)
        best = tl.minimum(best, least)
    tl.store(label_ptr + m, label)


@triton.jit
def chunk_states(
    x_ptr, b_ptr, decay_ptr, s_ptr, T,
    P: tl.constexpr, N: tl.constexpr, BT: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    """The state of a chunk of a state-space model: decayed inputs times B."""
    chunk = tl.program_id(0)
    p = tl.arange(0, P)
    n = tl.arange(0, N)
    state = tl.zeros((P, N), tl.float32)
    for start in range(0, T, BT):
        t = chunk * T + start + tl.arange(0, BT)
        x = tl.load(x_ptr + t[None, :] * P + p[:, None])
        b = tl.load(b_ptr + t[:, None] * N + n[None, :])
        decay = tl.load(decay_ptr + t)
        scaled = x.to(tl.float32) * decay[None, :]
        if WIDE:
            state = tl.dot(scaled, b.to(tl.float32), state)
        else:
            state = tl.dot(scaled.to(tl.float16), b, state)
    tl.store(s_ptr + chunk * P * N + p[:, None] * N + n[None, :], state)


@triton.jit
def embed_patches(
    x_ptr, w_ptr, y_ptr, K, N,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):  # fmt: skip
    """Patches of images times a projection."""
    m = tl.program_id(1) * BM + tl.arange(0, BM)
    n = tl.program_id(0) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), tl.float32)
    for start in range(0, K, BK):
        k = start + tl.arange(0, BK)
        x = tl.load(x_ptr + m[:, None] * K + k[None, :])
        w = tl.load(w_ptr + k[:, None] * N + n[None, :])
        acc += tl.dot(x, w)
    tl.store(y_ptr + m[:, None] * N + n[None, :], acc.to(tl.float16))


@triton.jit
def shuffle_channels(x_ptr, y_ptr, ROUNDS, C: tl.constexpr, STRIDE: tl.constexpr):
    """Channels of a row change places several times; each round gathers with a stride, or with an offset."""
    row = tl.program_id(0)
    c = tl.arange(0, C)
    x = tl.load(x_ptr + row * C + c)
    source = (c % (C // STRIDE)) * STRIDE + c // (C // STRIDE) if STRIDE > 1 else (c + 129) % C
    for _ in range(ROUNDS):
        x = tl.gather(x, source, 0) * 0.5 + x
    tl.store(y_ptr + row * C + c, x)


@triton.jit
def awq_gemm(
    x_ptr, q_ptr, s_ptr, y_ptr, M, N, K,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr,
):  # fmt: skip
    """Weights of 4 bits, eight columns in a word: each lane loads the word of its column."""
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    n = tl.program_id(1) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), tl.float32)
    for start in range(0, K, BK):
        k = start + tl.arange(0, BK)
        x = tl.load(x_ptr + m[:, None] * K + k[None, :])
        q = tl.load(q_ptr + k[:, None] * (N // 8) + (n // 8)[None, :])
        s = tl.load(s_ptr + (start // GROUP) * N + n)
        w = ((q >> ((n % 8) * 4)[None, :]) & 15).to(tl.float16) - 8.0
        acc = tl.dot(x, (w * s[None, :]).to(tl.float16), acc)
    tl.store(y_ptr + m[:, None] * N + n[None, :], acc.to(tl.float16))


@triton.jit
def awq_gemm_words(
    x_ptr, q_ptr, s_ptr, y_ptr, M, N, K,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr,
):  # fmt: skip
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    n = tl.program_id(1) * BN + tl.arange(0, BN)
    words = tl.program_id(1) * (BN // 8) + tl.arange(0, BN // 8)
    shifts = tl.arange(0, 8) * 4
    acc = tl.zeros((BM, BN), tl.float32)
    for start in range(0, K, BK):
        k = start + tl.arange(0, BK)
        x = tl.load(x_ptr + m[:, None] * K + k[None, :])
        q = tl.load(q_ptr + k[:, None] * (N // 8) + words[None, :])
        s = tl.load(s_ptr + (start // GROUP) * N + n)
        w = tl.reshape((q[:, :, None] >> shifts[None, None, :]) & 15, (BK, BN)).to(tl.float16) - 8.0
        acc = tl.dot(x, (w * s[None, :]).to(tl.float16), acc)
    tl.store(y_ptr + m[:, None] * N + n[None, :], acc.to(tl.float16))


@triton.jit
def classify_pixels(x_ptr, out_ptr, P, CLASSES: tl.constexpr):
    """The best class of one pixel; scores are stored class by class."""
    pixel, image = tl.program_id(0), tl.program_id(1)
    c = tl.arange(0, CLASSES)
    x = tl.load(x_ptr + (image * CLASSES + c) * P + pixel)
    tl.store(out_ptr + image * P + pixel, tl.argmax(x, 0))


@triton.jit
def classify_tile(x_ptr, out_ptr, P, CLASSES: tl.constexpr, BP: tl.constexpr):
    image = tl.program_id(1)
    pixels = tl.program_id(0) * BP + tl.arange(0, BP)
    c = tl.arange(0, CLASSES)
    x = tl.load(x_ptr + (image * CLASSES + c)[:, None] * P + pixels[None, :])
    tl.store(out_ptr + image * P + pixels, tl.argmax(x, 0))


@triton.jit
def block_scaled_rows(w_ptr, s_ptr, x_ptr, y_ptr, K, BN: tl.constexpr, BK: tl.constexpr):
    """int8 weights with a scale for each 32 of them, times a vector."""
    n = tl.program_id(0) * BN + tl.arange(0, BN)
    acc = tl.zeros((BN, BK), tl.float32)
    for start in range(0, K, BK):
        k = start + tl.arange(0, BK)
        w = tl.load(w_ptr + n[:, None] * K + k[None, :])
        s = tl.load(s_ptr + n[:, None] * (K // 32) + (k // 32)[None, :])
        acc += w.to(tl.float32) * s * tl.load(x_ptr + k)[None, :]
    tl.store(y_ptr + n, tl.sum(acc, 1))


@triton.jit
def block_scaled_rows_once(w_ptr, s_ptr, x_ptr, y_ptr, K, BN: tl.constexpr, BK: tl.constexpr):
    n = tl.program_id(0) * BN + tl.arange(0, BN)
    acc = tl.zeros((BN, BK // 32), tl.float32)
    for start in range(0, K, BK):
        k = start + tl.arange(0, BK)
        w = tl.load(w_ptr + n[:, None] * K + k[None, :])
        s = tl.load(s_ptr + n[:, None] * (K // 32) + (start // 32 + tl.arange(0, BK // 32))[None, :])
        product = tl.reshape(w.to(tl.float32) * tl.load(x_ptr + k)[None, :], (BN, BK // 32, 32))
        acc += tl.sum(product, 2) * s
    tl.store(y_ptr + n, tl.sum(acc, 1))


@triton.jit
def radial_features(
    x_ptr, c_ptr, y_ptr, gamma,
    TRIPS: tl.constexpr, CENTRES: tl.constexpr, D: tl.constexpr, AGAIN: tl.constexpr,
):  # fmt: skip
    """Distances of points to centres that a CTA may keep, or load again for each point."""
    n = tl.arange(0, CENTRES)
    d = tl.arange(0, D)
    centres = c_ptr + n[:, None] * D + d[None, :]
    kept = tl.load(centres)
    for t in range(TRIPS):
        point = tl.program_id(0) * TRIPS + t
        x = tl.load(x_ptr + point * D + d)
        if AGAIN:
            difference = tl.load(centres, volatile=False) - x[None, :]
        else:
            difference = kept - x[None, :]
        y = tl.exp2(-gamma * tl.sum(difference * difference, 1))
        tl.store(y_ptr + point * CENTRES + n, y)


@triton.jit
def smooth_series(x_ptr, y_ptr, T, rate, BLOCK: tl.constexpr, SAFE: tl.constexpr):
    """An exponential average of many series, stored at every step; a barrier may follow each step."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    n = tl.num_programs(0) * BLOCK
    y = tl.zeros((BLOCK,), tl.float32)
    for t in range(T):
        y += rate * (tl.load(x_ptr + t * n + i) - y)
        tl.store(y_ptr + t * n + i, y)
        if SAFE:
            tl.debug_barrier()


@triton.jit
def entropy(logits_ptr, out_ptr, V, BLOCK: tl.constexpr, LANES: tl.constexpr):
    """The entropy of a row of logits: scalars, or one partial result per lane, are carried through the loop."""
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    if LANES:
        top = tl.full((BLOCK,), -1e30, tl.float32)
        total = tl.zeros((BLOCK,), tl.float32)
        weighted = tl.zeros((BLOCK,), tl.float32)
    else:
        top = -1e30
        total = 0.0
        weighted = 0.0
    for start in range(0, V, BLOCK):
        x = tl.load(logits_ptr + row * V + start + i).to(tl.float32)
        if LANES:
            new_top = tl.maximum(top, x)
            keep = tl.exp2(top - new_top)
            e = tl.exp2(x - new_top)
            total = total * keep + e
            weighted = weighted * keep + e * x
        else:
            new_top = tl.maximum(top, tl.max(x, 0))
            keep = tl.exp2(top - new_top)
            e = tl.exp2(x - new_top)
            total = total * keep + tl.sum(e, 0)
            weighted = weighted * keep + tl.sum(e * x, 0)
        top = new_top
    if LANES:
        most = tl.max(top, 0)
        total = tl.sum(total * tl.exp2(top - most), 0)
        weighted = tl.sum(weighted * tl.exp2(top - most), 0)
        top = most
    tl.store(out_ptr + row, top + tl.log2(total) - weighted / total)


@triton.jit
def column_moments(x_ptr, mean_ptr, square_ptr, ROWS, C, BR: tl.constexpr, BC: tl.constexpr):
    """Sums of a batch norm: columns by the first axis of the grid, parts of the batch by the second."""
    c = tl.program_id(0) * BC + tl.arange(0, BC)
    part = tl.program_id(1)
    total = tl.zeros((BC,), tl.float32)
    square = tl.zeros((BC,), tl.float32)
    for start in range(0, ROWS, BR):
        r = part * ROWS + start + tl.arange(0, BR)
        x = tl.load(x_ptr + r[:, None] * C + c[None, :]).to(tl.float32)
        total += tl.sum(x, 0)
        square += tl.sum(x * x, 0)
    tl.store(mean_ptr + part * C + c, total)
    tl.store(square_ptr + part * C + c, square)


@triton.jit
def log_softmax(x_ptr, y_ptr, N: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, N)
    x = tl.load(x_ptr + row * N + i)
    z = x - tl.max(x, 0)
    tl.store(y_ptr + row * N + i, z - tl.log(tl.sum(tl.exp(z), 0)))


@triton.jit
def segment_sums(x_ptr, segment_ptr, sum_ptr, n, BLOCK: tl.constexpr):
    """Every lane adds to the sum of its segment."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.atomic_add(sum_ptr + (tl.load(segment_ptr + i) & 31), tl.load(x_ptr + i))


@triton.jit
def segment_partials(x_ptr, segment_ptr, sum_ptr, n, BLOCK: tl.constexpr):
    """Each CTA sums what belongs to each of 32 segments, and stores it; another launch adds the parts."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    of_segment = (tl.load(segment_ptr + i) & 31)[:, None] == tl.arange(0, 32)[None, :]
    sums = tl.sum(tl.where(of_segment, tl.load(x_ptr + i)[:, None], 0.0), 0)
    tl.store(sum_ptr + tl.program_id(0) * 32 + tl.arange(0, 32), sums)


@triton.jit
def group_maxima(x_ptr, max_ptr, lock_ptr, GROUPS, BLOCK: tl.constexpr, LOCKED: tl.constexpr):
    """The maxima of groups, updated under a lock, or by an atomic maximum of integers."""
    pid = tl.program_id(0)
    group = pid % GROUPS
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + pid * BLOCK + i)
    if LOCKED:
        while tl.atomic_cas(lock_ptr + group, 0, 1) == 1:
            pass
        m = tl.load(max_ptr + group * BLOCK + i)
        tl.store(max_ptr + group * BLOCK + i, tl.maximum(m, x))
        tl.debug_barrier()
        tl.atomic_xchg(lock_ptr + group, 0)
    else:
        tl.atomic_max(max_ptr + pid * BLOCK + i, x)


@triton.jit
def rotate_tokens(x_ptr, cos_ptr, sin_ptr, y_ptr, HEADS: tl.constexpr, TOKENS: tl.constexpr, HALF: tl.constexpr):
    """Rotary embedding of small heads, TOKENS at a time."""
    t = tl.program_id(0) * TOKENS + tl.arange(0, TOKENS)[:, None]
    h = tl.arange(0, HALF)[None, :]
    cos = tl.load(cos_ptr + (t // HEADS) * HALF + h)
    sin = tl.load(sin_ptr + (t // HEADS) * HALF + h)
    a = tl.load(x_ptr + t * 2 * HALF + h)
    b = tl.load(x_ptr + t * 2 * HALF + HALF + h)
    tl.store(y_ptr + t * 2 * HALF + h, a * cos - b * sin)
    tl.store(y_ptr + t * 2 * HALF + HALF + h, a * sin + b * cos)


@triton.jit
def adam(p_ptr, g_ptr, m_ptr, v_ptr, n, rate, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    g = tl.load(g_ptr + i)
    m = 0.9 * tl.load(m_ptr + i) + 0.1 * g
    v = 0.99 * tl.load(v_ptr + i) + 0.01 * g * g
    tl.store(m_ptr + i, m)
    tl.store(v_ptr + i, v)
    tl.store(p_ptr + i, tl.load(p_ptr + i) - rate * m / (tl.sqrt(v) + 1e-8))


@triton.jit
def join_features(a_ptr, b_ptr, y_ptr, stride, NA: tl.constexpr, NB: tl.constexpr):
    """Two feature vectors side by side; rows of the result are `stride` elements apart."""
    row = tl.program_id(0)
    i = tl.arange(0, NA)
    j = tl.arange(0, NB)
    tl.store(y_ptr + row * stride + i, tl.load(a_ptr + row * NA + i))
    tl.store(y_ptr + row * stride + NA + j, tl.load(b_ptr + row * NB + j))


@triton.jit
def project_tokens(
    x_ptr, w_ptr, y_ptr, M, N, K,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP_M: tl.constexpr,
):  # fmt: skip
    """y = x @ wᵀ; tiles follow each other along M, or in groups of GROUP_M rows."""
    pid = tl.program_id(0)
    tiles_n = N // BN
    group = pid // (GROUP_M * tiles_n)
    rest = pid % (GROUP_M * tiles_n)
    m = (group * GROUP_M + rest % GROUP_M) * BM + tl.arange(0, BM)
    n = (rest // GROUP_M) * BN + tl.arange(0, BN)
    k = tl.arange(0, BK)
    x = x_ptr + m[:, None] * K + k[None, :]
    w = w_ptr + n[None, :] * K + k[:, None]
    acc = tl.zeros((BM, BN), tl.float32)
    for _ in range(0, K, BK):
        acc = tl.dot(tl.load(x), tl.load(w), acc)
        x += BK
        w += BK
    tl.store(y_ptr + m[:, None] * N + n[None, :], acc.to(tl.bfloat16))
