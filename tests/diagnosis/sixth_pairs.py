"""How the kernels of `sixth.py` are compiled and launched; the first entry is what the first sentence should name."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from blind_pairs import kernel
from pairs import Variant

FILE = Path(__file__).with_name("sixth.py")
MULTIPROCESSORS = {"sm_80": 108, "sm_90": 132, "gfx942": 304}
NOT_PLANTED = {
    # two stages are the usual depth there
    "gfx942": {"scores-drained"}
}
N = 1 << 26


def frames(flat: bool) -> Variant:
    hop, size, count = 171, 1024, 1 << 16
    arguments = {"x_ptr": ("fp32", hop * count + size), "w_ptr": ("fp32", size), "y_ptr": ("fp32", count * size),
                 "n": count * size, "hop": hop, "size": size}  # fmt: skip
    return kernel("frame_audio", arguments, {"FRAME": size, "BLOCK": size, "FLAT": flat}, [count // 4])


def trees(name: str) -> Variant:
    n, count, depth, features = 1 << 18, 64, 6, 128
    nodes = count << depth
    arguments = {"x_ptr": ("fp32", features, n), "feature_ptr": ("i32", nodes), "cut_ptr": ("fp32", nodes),
                 "leaf_ptr": ("fp32", nodes), "out_ptr": ("fp32", n), "n": n}  # fmt: skip
    return kernel(name, arguments, {"TREES": count, "DEPTH": depth, "FEATURES": features, "BLOCK": 256}, [n // 256])


def bloom(private: bool) -> Variant:
    n, words = 1 << 24, 64
    bits = n // 1024 if private else words
    arguments = {"key_ptr": ("i32", n), "bits_ptr": ("i32", bits), "n": n}
    return kernel("bloom_insert", arguments, {"WORDS": words, "BLOCK": 1024, "PRIVATE": private}, [n // 1024])


def slots(ticket: bool) -> Variant:
    arguments = {"count_ptr": ("i32", 64 * 32), "value_ptr": ("fp32", N), "out_ptr": ("fp32", N), "n": N, "capacity": N}
    return kernel("claim_slots", arguments, {"BLOCK": 1024, "TICKET": ticket}, [N // 1024])


def divergence(each: bool) -> Variant:
    rows, columns = 1024, 32768
    arguments = {"p_ptr": ("fp32", rows, columns), "q_ptr": ("fp32", rows, columns), "out_ptr": ("fp32", rows),
                 "columns": columns}  # fmt: skip
    return kernel("kl_divergence", arguments, {"BLOCK": 1024, "EACH": each}, [rows])


def envelope(sync: bool) -> Variant:
    steps, channels = 256, 1 << 18
    arguments = {"x_ptr": ("fp32", steps, channels), "y_ptr": ("fp32", steps, channels), "steps": steps,
                 "channels": channels, "attack": 0.3, "release": 0.9}  # fmt: skip
    return kernel("follow_envelope", arguments, {"BLOCK": 1024, "SYNC": sync}, [channels // 1024], num_warps=8)


def stereo(guard: bool) -> Variant:
    width, height, pitch, disparities = 1920 if guard else 2048, 1080, 2112, 32
    arguments = {"left_ptr": ("i16", height, pitch), "right_ptr": ("i16", height, pitch),
                 "cost_ptr": ("i16", disparities, height, width), "width": width, "height": height,
                 "pitch": pitch}  # fmt: skip
    constants = {"DISPARITIES": disparities, "BLOCK": 1024, "GUARD": guard}
    return kernel("stereo_costs", arguments, constants, [2, height])


def symmetric(late: bool) -> Variant:
    blocks, batch, b = 2048, 32, 64
    arguments = {"x_ptr": ("fp32", blocks, batch, b, b), "y_ptr": ("fp32", blocks, b, b), "size": b}
    return kernel("mean_symmetric", arguments, {"BATCH": batch, "B": b, "LATE": late}, [blocks])


def pictures(integers: bool) -> Variant:
    trips, block, ctas = 16, 4096, 4096
    arguments = {
        "a_ptr": ("i8", ctas * trips * block),
        "b_ptr": ("i8", ctas * trips * block),
        "out_ptr": ("fp32", ctas),
    }
    return kernel("picture_error", arguments, {"TRIPS": trips, "BLOCK": block, "INTEGERS": integers}, [ctas])


def mel(precision: str) -> Variant:
    rows, bins, bands = 1 << 16, 1024, 128
    arguments = {"p_ptr": ("fp32", rows, bins), "w_ptr": ("fp32", bands, bins), "y_ptr": ("fp32", rows, bands),
                 "frames": rows}  # fmt: skip
    constants = {"BINS": bins, "BANDS": bands, "BM": 64, "BK": 32, "PRECISION": precision}
    return kernel("mel_bands", arguments, constants, [rows // 64], num_warps=4, num_stages=2)


def low_rank(widen: bool, deep: int) -> Variant:
    n, rank = 8192, 512
    arguments = {"w_ptr": ("bf16", n, n), "u_ptr": ("bf16", n, rank), "v_ptr": ("bf16", n, rank), "n": n}
    constants = {"RANK": rank, "BM": 128, "BN": 128, "BK": 32, "WIDEN": widen}
    return kernel("low_rank_update", arguments, constants, [n // 128, n // 128], num_warps=8, num_stages=deep)


def logits(tile: tuple[int, int, int], warps: int, stages: int) -> Variant:
    tokens, vocabulary, d = 2048, 32768, 2048
    arguments = {"h_ptr": ("fp16", tokens, d), "e_ptr": ("fp16", vocabulary, d), "out_ptr": ("fp16", tokens, vocabulary),
                 "V": vocabulary}  # fmt: skip
    constants = {"D": d, "BM": tile[0], "BN": tile[1], "BK": tile[2]}
    grid = [vocabulary // tile[1], tokens // tile[0]]
    return kernel("vocabulary_logits", arguments, constants, grid, num_warps=warps, num_stages=stages)


def whitened(by_feature: bool, deep: int) -> Variant:
    rows, d = 1 << 15, 1024
    arguments = {"x_ptr": ("fp32", rows, d), "w_ptr": ("fp32", d, d), "y_ptr": ("fp32", rows, d), "rows": rows}
    constants = {"D": d, "BM": 128, "BN": 128, "BK": 32, "BY_FEATURE": by_feature}
    return kernel("whiten", arguments, constants, [rows // 128, d // 128], num_warps=8, num_stages=deep)


def masked(once: bool) -> Variant:
    trips, block, ctas = 8, 4096, 4096
    size = trips * block * ctas
    arguments = {"x_ptr": ("fp16", size), "bits_ptr": ("i32", size // 32), "y_ptr": ("fp16", size)}
    return kernel("fill_masked", arguments, {"TRIPS": trips, "BLOCK": block, "ONCE": once}, [ctas])


def windowed(outside: bool) -> Variant:
    count, size, ctas = 32, 2048, 4096
    data = ("i8", ctas * count * size)
    arguments = {"x_ptr": data, "w_ptr": ("fp32", 2, size), "y_ptr": data}
    return kernel("window_frames", arguments, {"FRAMES": count, "SIZE": size, "OUTSIDE": outside}, [ctas])


def extremes(warps: int) -> Variant:
    trips, block, ctas = 16, 4096, 1024
    arguments = {"x_ptr": ("fp32", ctas * trips * block), "out_ptr": ("fp32", ctas * 4 * block)}
    return kernel("colour_extremes", arguments, {"TRIPS": trips, "BLOCK": block}, [ctas], num_warps=warps)


def covariances(groups: int, deep: int) -> Variant:
    samples, d = 1 << 20 >> (groups > 1) * 8, 256
    arguments = {"x_ptr": ("fp16", groups, samples, d), "c_ptr": ("fp32", groups, d, d)}
    constants = {"SAMPLES": samples, "D": d, "B": 128, "BK": 64}
    return kernel("covariance", arguments, constants, [2, 2, groups], num_warps=8, num_stages=deep)


def scores(batches: int, stages: int, k: int = 1024, side: int = 128, depth: int = 64, warps: int = 8) -> Variant:
    tiles = 512 // side
    arguments = {"a_ptr": ("bf16", batches, 512, k), "b_ptr": ("bf16", batches, 512, k),
                 "out_ptr": ("bf16", batches, 512, 512), "K": k}  # fmt: skip
    constants = {"BM": side, "BN": side, "BK": depth, "TILES": tiles}
    grid = [batches * tiles * tiles]
    return kernel("pair_scores", arguments, constants, grid, num_warps=warps, num_stages=stages)


def last_wave(target: str, full: bool, deep: int) -> Variant:
    ctas = MULTIPROCESSORS[target] * 4 + (0 if full else MULTIPROCESSORS[target] // 27)
    return replace(scores(-(-ctas // 16), deep, 2048), grid=[ctas, 1, 1])


def buffered(target: str) -> Variant:
    """One CTA of four warps per multiprocessor, since its buffers fill shared memory."""
    stages, depth = {"sm_90": (7, 128), "sm_80": (5, 128), "gfx942": (2, 256)}[target]
    return scores(256, stages, 2048, 64, depth, 4)


def vectors(rows: int, warps: int) -> Variant:
    count, d = 1 << 20, 64
    arguments = {"v_ptr": ("fp32", count, d), "s_ptr": ("fp32", count, 2), "y_ptr": ("fp32", count, d)}
    return kernel("rotate_vectors", arguments, {"ROWS": rows, "D": d}, [count // rows], num_warps=warps)


def state(n: int) -> Variant:
    return kernel("decay_state", {"s_ptr": ("fp32", n), "x_ptr": ("fp32", n), "decay": 0.9}, {"BLOCK": 512}, [n // 512])


def spectra(pitch: int) -> Variant:
    rows, bins, trips = 1 << 17, 1024, 16
    arguments = {
        "x_ptr": ("fp16", rows, pitch),
        "g_ptr": ("fp16", bins),
        "y_ptr": ("fp16", rows, pitch),
        "pitch": pitch,
    }
    return kernel("scale_spectra", arguments, {"BINS": bins, "TRIPS": trips}, [rows // trips])


def particles(fields: int) -> Variant:
    n = 1 << 24
    arguments = {"p_ptr": ("fp32", 8 * n), "e_ptr": ("fp32", n), "q_ptr": ("fp32", n), "n": n, "dt": 0.01}
    return kernel("push_particles", arguments, {"FIELDS": fields, "BLOCK": 512}, [n // 512])


def nearest(stages: int) -> Variant:
    queries, n, d = 1 << 15, 1 << 14, 64
    arguments = {"q_ptr": ("fp16", queries, d), "x_ptr": ("fp16", n, d), "best_ptr": ("fp32", queries), "N": n}
    grid = [queries // 128]
    return kernel("nearest_scores", arguments, {"D": d, "BM": 128, "BN": 64}, grid, num_warps=4, num_stages=stages)


def hashed(wide: bool) -> Variant:
    trips, block, ctas = 16, 1024, 4096
    arguments = {"token_ptr": ("i32", ctas * trips * block), "out_ptr": ("i32", ctas)}
    constants = {"TRIPS": trips, "BLOCK": block, "HASHES": 16, "WIDE": wide}
    return kernel("min_hash", arguments, constants, [ctas])


def blended(block: int, warps: int) -> Variant:
    arguments = {"a_ptr": ("fp32", N), "b_ptr": ("fp32", N), "y_ptr": ("fp32", N), "weight": 0.25}
    return kernel("mix_colours", arguments, {"BLOCK": block}, [N // block], num_warps=warps)


def interleaved(words: bool) -> Variant:
    n = 1 << 25
    arguments = {"x_ptr": ("i8", 4, n), "y_ptr": ("i8", n, 4), "word_ptr": ("i32", n), "n": n}
    return kernel("interleave_planes", arguments, {"BLOCK": 1024, "WORDS": words}, [n // 1024])


def walked(name: str) -> Variant:
    walks, nodes, degree = 1 << 20, 1 << 22, 16
    arguments = {"start_ptr": ("i32", walks), "next_ptr": ("i32", nodes, degree), "out_ptr": ("i32", walks),
                 "degree": degree}  # fmt: skip
    return kernel(name, arguments, {"STEPS": 24, "BLOCK": 256}, [walks // 256])


def losses(partial: bool) -> Variant:
    n, classes, block = 1 << 24, 8, 1024
    arguments = {"loss_ptr": ("fp32", n), "class_ptr": ("i32", n), "sum_ptr": ("fp32", n // block * classes), "n": n}
    constants = {"CLASSES": classes, "BLOCK": block, "PARTIAL": partial}
    return kernel("loss_by_class", arguments, constants, [n // block])


def pairs_on(target: str) -> dict[str, tuple[tuple[str, ...], Variant, Variant]]:
    """The pairs; depths, grids and some tiles follow the target."""
    deep = 2 if target.startswith("gfx") else 4
    three = min(deep, 3)
    return {
        "frames": (("division",), frames(True), frames(False)),
        "trees": (("dependent-loads",), trees("boosted_trees"), trees("oblivious_trees")),
        "bloom": (("atomic-contention",), bloom(False), bloom(True)),
        "slots": (("compare-and-swap", "atomic-contention"), slots(False), slots(True)),
        "divergence": (("reduction-per-trip",), divergence(True), divergence(False)),
        "envelope": (("barrier-per-trip",), envelope(True), envelope(False)),
        "stereo": (("masks",), stereo(True), stereo(False)),
        "symmetric": (("layout-conversion",), symmetric(False), symmetric(True)),
        "pictures": (("type-conversion",), pictures(False), pictures(True)),
        "mel": (("fp32-dot",), mel("ieee"), mel("tf32")),
        "low-rank": (("wide-dot",), low_rank(True, three), low_rank(False, three)),
        "logits": (("small-tile",), logits((16, 16, 32), 1, three), logits((128, 128, 64), 8, three)),
        "whiten": (("bank-conflicts",), whitened(True, three), whitened(False, three)),
        "masked": (("redundant-load",), masked(False), masked(True)),
        "windows": (("invariant-load",), windowed(False), windowed(True)),
        "extremes": (("spills",), extremes(1), extremes(16)),
        "covariance": (("idle-sms",), covariances(1, three), covariances(256, three)),
        "last-wave": (("tail-wave",), last_wave(target, False, three), last_wave(target, True, three)),
        "buffers": (("occupancy",), buffered(target), scores(256, min(deep, 3), 2048, 64, 64, 4)),
        "vectors": (("more-threads",), vectors(1, 8), vectors(64, 8)),
        "state": (("small-launch",), state(4096), state(N)),
        "spectra": (("narrow-access", "uncoalesced"), spectra(1025), spectra(1024)),
        "particles": (("uncoalesced",), particles(8), particles(1)),
        "scores-drained": (("drained-pipeline",), scores(256, 2), scores(256, deep)),
        "nearest-serial": (("serial-loop",), nearest(1), nearest(three)),
        "hashes": (("int64",), hashed(True), hashed(False)),
        "blend": (("cta-launches", "few-bytes"), blended(128, 1), blended(2048, 4)),
        "planes": (("uncoalesced", "narrow-access"), interleaved(False), interleaved(True)),
        "walks": (("dependent-loads",), walked("walk_graph"), walked("sample_graph")),
        "losses": (("atomic-contention",), losses(False), losses(True)),
    }
