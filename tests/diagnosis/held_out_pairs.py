"""How the kernels of `held_out.py` are compiled and launched; the first entry is what the first sentence should name."""

from __future__ import annotations

from pathlib import Path

from blind_pairs import kernel
from pairs import Variant

FILE = Path(__file__).with_name("held_out.py")
MULTIPROCESSORS = {"sm_80": 108, "sm_90": 132, "gfx942": 304}
NOT_PLANTED = {
    # two stages are the usual depth there
    "gfx942": {"linear-drained"}
}


def attention(stages: int, d: int = 64, bm: int = 64, warps: int = 4) -> Variant:
    window, heads, t = 1024, 64, 8192
    cache = ("bf16", heads, t + window, d)
    arguments = {"q_ptr": ("bf16", heads, t, d), "k_ptr": cache, "v_ptr": cache, "o_ptr": ("bf16", heads, t, d),
                 "scale": 0.18, "T": t}  # fmt: skip
    constants = {"WINDOW": window, "D": d, "BM": bm, "BN": 64}
    return kernel("window_attention", arguments, constants, [t // bm, heads], num_warps=warps, num_stages=stages)


def linear(stages: int) -> Variant:
    m, n, k = 8192, 4096, 4096
    arguments = {"x_ptr": ("bf16", m, k), "w_ptr": ("bf16", k, n), "b_ptr": ("bf16", n), "y_ptr": ("bf16", m, n), "M": m,
                 "N": n, "K": k}  # fmt: skip
    tile = {"BM": 128, "BN": 128, "BK": 64}
    return kernel("linear_gelu", arguments, tile, [m // 128 * (n // 128)], num_warps=8, num_stages=stages)


def sparse(tile: bool) -> Variant:
    rows, nz, d = 65536, 32, 64
    columns, permutation = {"col_ptr": ("i32", rows, nz)}, {"perm_ptr": ("i32", rows)}
    rest = {"val_ptr": ("fp32", rows, nz), "x_ptr": ("fp16", rows, d), "y_ptr": ("fp32", rows, d)}
    constants = {"NZ": nz, "D": d}
    if tile:
        return kernel("ell_spmm_tile", {**columns, **rest}, constants, [rows], num_warps=1)
    return kernel("ell_spmm", {**columns, **permutation, **rest}, constants, [rows], num_warps=1)


def automaton(table: bool) -> Variant:
    n, length = 1 << 19, 256
    step = ("i32", 1024, 32) if table else ("i32", 32)
    arguments = {"text_ptr": ("i8", length, n), "step_ptr": step, "out_ptr": ("i32", n), "n": n, "LENGTH": length}
    return kernel("run_automaton" if table else "shift_and", arguments, {"BLOCK": 512}, [n // 512], num_warps=4)


def maxima(ctas: int, block: int, warps: int, stages: int) -> Variant:
    size = 1 << 28
    per_cta = size // ctas // block * block
    arguments = {"kv_ptr": ("bf16", size), "out_ptr": ("fp32", ctas), "PER_CTA": per_cta}
    return kernel("cache_maxima", arguments, {"BLOCK": block}, [ctas], num_warps=warps, num_stages=stages)


def random_masks(name: str) -> Variant:
    size = 1 << 28
    arguments = {"m_ptr": ("i8", size), "seed": 12345, "keep": 15000001}
    return kernel(name, arguments, {"TRIPS": 8, "BLOCK": 1024}, [size // 8192])


def upsampled(flat: bool) -> Variant:
    images, h, w, s = 16, 56, 56, 2
    c = 250 if flat else 256
    shapes = {"x_ptr": ("fp16", images, h, w, c), "y_ptr": ("fp16", images, h * s, w * s, c)}
    if flat:
        constants = {"TRIPS": 7, "BLOCK": 1024}
        return kernel(
            "upsample_flat", {**shapes, "H": h, "W": w, "C": c, "S": s}, constants, [images * 4 * h * w * c // 7168]
        )
    return kernel("upsample_pixels", {**shapes, "H": h, "W": w}, {"S": s, "C": c}, [w, h, images], num_warps=1)


def scaled(masked: bool) -> Variant:
    rows, cols = 32768, 8192
    arguments = {"x_ptr": ("fp16", rows, cols), "s_ptr": ("fp16", cols), "y_ptr": ("fp16", rows, cols), "rows": rows + 1,
                 "cols": cols - 1 if masked else cols}  # fmt: skip
    return kernel("scale_columns", arguments, {"TRIPS": 8, "BLOCK": 1024, "MASKED": masked}, [rows])


def transport(turned: bool) -> Variant:
    arguments = {"x_ptr": ("fp32", 4096, 64, 64), "y_ptr": ("fp32", 4096, 64, 64), "ITERATIONS": 32}
    return kernel("sinkhorn", arguments, {"B": 64, "TURNED": turned}, [4096], num_warps=4)


def bags(floats: bool) -> Variant:
    arguments = {"index_ptr": ("i32", 64, 65536), "table_ptr": ("i8", 65536, 256), "out_ptr": ("fp32", 65536, 256),
                 "scale": 0.01}  # fmt: skip
    return kernel("bag_int8", arguments, {"BAG": 64, "D": 256, "FLOATS": floats}, [8192], num_warps=4)


def centres(precision: str) -> Variant:
    points, count, d = 1 << 18, 2048, 64
    arguments = {"x_ptr": ("fp32", points, d), "c_ptr": ("fp32", count, d), "norm_ptr": ("fp32", count),
                 "label_ptr": ("i32", points), "CENTRES": count}  # fmt: skip
    constants = {"D": d, "BM": 128, "BN": 64, "PRECISION": precision}
    return kernel("nearest_centre", arguments, constants, [points // 128], num_warps=8, num_stages=2)


def states(wide: bool) -> Variant:
    chunks, t, p, n = 4096, 256, 128, 128
    arguments = {"x_ptr": ("fp16", chunks * t, p), "b_ptr": ("fp16", chunks * t, n), "decay_ptr": ("fp32", chunks * t),
                 "s_ptr": ("fp32", chunks, p, n), "T": t * 16}  # fmt: skip
    constants = {"P": p, "N": n, "BT": 64, "WIDE": wide}
    return kernel("chunk_states", arguments, constants, [chunks // 16], num_warps=8, num_stages=2)


def embedded(tile: tuple[int, int, int], warps: int, stages: int) -> Variant:
    m, n, k = 50176, 1024, 768
    arguments = {"x_ptr": ("fp16", m, k), "w_ptr": ("fp16", k, n), "y_ptr": ("fp16", m, n), "K": k, "N": n}
    constants = dict(zip(("BM", "BN", "BK"), tile, strict=True))
    return kernel(
        "embed_patches", arguments, constants, [n // tile[1], m // tile[0]], num_warps=warps, num_stages=stages
    )


def shuffled(stride: int) -> Variant:
    arguments = {"x_ptr": ("fp32", 32768, 2048), "y_ptr": ("fp32", 32768, 2048), "ROUNDS": 16}
    return kernel("shuffle_channels", arguments, {"C": 2048, "STRIDE": stride}, [32768], num_warps=4)


def awq(words: bool) -> Variant:
    m, n, k = 64, 28672, 8192
    arguments = {"x_ptr": ("fp16", m, k), "q_ptr": ("i32", k, n // 8), "s_ptr": ("fp16", k // 64, n), "y_ptr": ("fp16", m, n),
                 "M": m, "N": n, "K": k}  # fmt: skip
    constants = {"BM": 64, "BN": 128, "BK": 64, "GROUP": 64}
    name = "awq_gemm_words" if words else "awq_gemm"
    return kernel(name, arguments, constants, [1, n // 128], num_warps=4, num_stages=3)


def classified(tile: bool) -> Variant:
    pixels, images, classes = 256 * 256, 16, 128
    arguments = {"x_ptr": ("fp16", images, classes, pixels), "out_ptr": ("i32", images, pixels), "P": pixels}
    if tile:
        return kernel("classify_tile", arguments, {"CLASSES": classes, "BP": 64}, [pixels // 64, images], num_warps=4)
    return kernel("classify_pixels", arguments, {"CLASSES": classes}, [pixels, images], num_warps=1)


def block_scaled(name: str, bk: int) -> Variant:
    n, k = 28672, 8192
    arguments = {
        "w_ptr": ("i8", n, k),
        "s_ptr": ("fp32", n, k // 32),
        "x_ptr": ("fp32", k),
        "y_ptr": ("fp32", n),
        "K": k,
    }
    return kernel(name, arguments, {"BN": 8, "BK": bk}, [n // 8], num_warps=4)


def radial(again: bool) -> Variant:
    points = 1 << 18
    arguments = {
        "x_ptr": ("fp32", points, 64),
        "c_ptr": ("fp32", 128, 64),
        "y_ptr": ("fp32", points, 128),
        "gamma": 0.1,
    }
    constants = {"TRIPS": 128, "CENTRES": 128, "D": 64, "AGAIN": again}
    return kernel("radial_features", arguments, constants, [points // 128], num_warps=8)


def smoothed(target: str, safe: bool) -> Variant:
    n, t = MULTIPROCESSORS[target] * 4 * 1024, 512
    arguments = {"x_ptr": ("fp32", t, n), "y_ptr": ("fp32", t, n), "T": t, "rate": 0.05}
    return kernel("smooth_series", arguments, {"BLOCK": 1024, "SAFE": safe}, [n // 1024], num_warps=8, num_stages=4)


def entropies(lanes: bool) -> Variant:
    arguments = {"logits_ptr": ("bf16", 8192, 131072), "out_ptr": ("fp32", 8192), "V": 131072}
    return kernel("entropy", arguments, {"BLOCK": 2048, "LANES": lanes}, [8192], num_warps=8)


def moments(parts: int) -> Variant:
    rows, c = 1 << 17, 1024
    arguments = {"x_ptr": ("fp16", rows, c), "mean_ptr": ("fp32", parts, c), "square_ptr": ("fp32", parts, c),
                 "ROWS": rows // parts, "C": c}  # fmt: skip
    return kernel("column_moments", arguments, {"BR": 32, "BC": 64}, [c // 64, parts], num_warps=4)


def wave(target: str, waves: float) -> Variant:
    tiles = int(MULTIPROCESSORS[target] * waves) + (8 if waves == 1 else 0)
    m, n, k = 128 * tiles, 256, 8192
    arguments = {"x_ptr": ("bf16", m, k), "w_ptr": ("bf16", n, k), "y_ptr": ("bf16", m, n), "M": m, "N": n, "K": k}
    constants = {"BM": 128, "BN": 256, "BK": 64, "GROUP_M": 1}
    stages = 2 if target.startswith("gfx") else 3
    return kernel("project_tokens", arguments, constants, [tiles], num_warps=8, num_stages=stages)


def ordered(target: str, group: int) -> Variant:
    m, n, k = 32768, 8192, 8192
    arguments = {"x_ptr": ("bf16", m, k), "w_ptr": ("bf16", n, k), "y_ptr": ("bf16", m, n), "M": m, "N": n, "K": k}
    constants = {"BM": 128, "BN": 128, "BK": 64, "GROUP_M": group}
    stages = 2 if target.startswith("gfx") else 3
    return kernel("project_tokens", arguments, constants, [m // 128 * (n // 128)], num_warps=8, num_stages=stages)


def long_rows(n: int, warps: int) -> Variant:
    rows = (1 << 28) // n
    arguments = {"x_ptr": ("fp32", rows, n), "y_ptr": ("fp32", rows, n)}
    return kernel("log_softmax", arguments, {"N": n}, [rows], num_warps=warps)


def segments(partial: bool) -> Variant:
    n, block = 1 << 22, 256 if partial else 1024
    sums = ("fp32", n // 256, 32) if partial else ("fp32", 32)
    arguments = {"x_ptr": ("fp32", n), "segment_ptr": ("i32", n), "sum_ptr": sums, "n": n}
    return kernel("segment_partials" if partial else "segment_sums", arguments, {"BLOCK": block}, [n // block])


def grouped(locked: bool) -> Variant:
    ctas = 16384
    arguments = {"x_ptr": ("i32", ctas, 256), "max_ptr": ("i32", ctas, 256), "lock_ptr": ("i32", 16), "GROUPS": 16}
    return kernel("group_maxima", arguments, {"BLOCK": 256, "LOCKED": locked}, [ctas], num_warps=4)


def rotated(tokens: int, warps: int) -> Variant:
    count, half = 1 << 20, 16
    arguments = {"x_ptr": ("fp32", count, 32), "cos_ptr": ("fp32", count // 16, half), "sin_ptr": ("fp32", count // 16, half),
                 "y_ptr": ("fp32", count, 32)}  # fmt: skip
    constants = {"HEADS": 16, "TOKENS": tokens, "HALF": half}
    return kernel("rotate_tokens", arguments, constants, [count // tokens], num_warps=warps)


def optimised(n: int) -> Variant:
    tensors = dict.fromkeys(("p_ptr", "g_ptr", "m_ptr", "v_ptr"), ("fp32", n))
    return kernel("adam", {**tensors, "n": n, "rate": 0.001}, {"BLOCK": 1024}, [n // 1024])


def joined(stride: int) -> Variant:
    rows = 1 << 17
    arguments = {
        "a_ptr": ("fp16", rows, 1024),
        "b_ptr": ("fp16", rows, 512),
        "y_ptr": ("fp16", rows, stride),
        "stride": stride,
    }
    return kernel("join_features", arguments, {"NA": 1024, "NB": 512}, [rows], num_warps=4)


def pairs_on(target: str) -> dict[str, tuple[tuple[str, ...], Variant, Variant]]:
    """The pairs; depths, grids and some tiles follow the target."""
    deep = 2 if target.startswith("gfx") else 4
    ctas = MULTIPROCESSORS[target]
    return {
        "window-serial": (("serial-loop",), attention(1), attention(min(deep, 3))),
        "linear-drained": (("drained-pipeline",), linear(2), linear(deep)),
        "spmm": (("dependent-loads",), sparse(False), sparse(True)),
        "automaton": (("dependent-loads",), automaton(True), automaton(False)),
        "maxima": (("few-bytes", "serial-loop"), maxima(ctas * 2, 256, 1, 1), maxima(ctas * 8, 2048, 8, deep)),
        "masks-64": (("int64",), random_masks("random_masks_64"), random_masks("random_masks_32")),
        "upsample": (("division",), upsampled(True), upsampled(False)),
        "guarded": (("masks", "narrow-access"), scaled(True), scaled(False)),
        "sinkhorn": (("layout-conversion",), transport(True), transport(False)),
        "bag-int8": (("type-conversion",), bags(True), bags(False)),
        "k-means": (("fp32-dot",), centres("ieee"), centres("tf32")),
        "states": (("wide-dot",), states(True), states(False)),
        "patches": (
            ("small-tile",),
            embedded((16, 32, 32), 1, min(deep, 3)),
            embedded((128, 128, 64), 8, min(deep, 3)),
        ),
        "shuffle": (("bank-conflicts",), shuffled(64), shuffled(1)),
        "awq": (("redundant-load", "bank-conflicts"), awq(False), awq(True)),
        "pixels-argmax": (("uncoalesced",), classified(False), classified(True)),
        "block-scales": (
            ("redundant-load",),
            block_scaled("block_scaled_rows", 512),
            block_scaled("block_scaled_rows_once", 512),
        ),
        "radial": (("invariant-load",), radial(True), radial(False)),
        "smooth": (("barrier-per-trip",), smoothed(target, True), smoothed(target, False)),
        "entropy": (("reduction-per-trip",), entropies(False), entropies(True)),
        "window-spills": (("spills",), attention(1, 256, 128, 4), attention(1, 128, 64, 8)),
        "moments": (("idle-sms",), moments(1), moments(128)),
        "last-wave": (("tail-wave",), wave(target, 1), wave(target, 4)),
        "long-rows": (("occupancy", "few-bytes"), long_rows(32768, 16), long_rows(4096, 4)),
        "segments": (("atomic-contention",), segments(False), segments(True)),
        "maxima-lock": (("compare-and-swap", "atomic-contention"), grouped(True), grouped(False)),
        "rotate": (("more-threads",), rotated(1, 4), rotated(64, 4)),
        "adam": (("small-launch",), optimised(1 << 13), optimised(1 << 26)),
        "join": (("narrow-access", "uncoalesced"), joined(1537), joined(1536)),
        "order": (("refetched",), ordered(target, 256), ordered(target, 8)),
    }
