"""How the kernels of `eighth.py` are compiled and launched, and what the first sentence about a plant must say."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from blind_pairs import kernel
from pairs import Variant

FILE = Path(__file__).with_name("eighth.py")


@dataclass(frozen=True)
class Plant:
    """What the first sentence must say: one of the kinds, at one of the lines that hold a text."""

    kinds: tuple[str, ...]
    lines: tuple[str, ...]
    words: str
    plant: Variant
    twin: Variant


def decode(splits: int) -> Variant:
    heads, group, length, d = 16, 16, 16384, 128
    arguments = {"q_ptr": ("fp16", heads * group, d), "k_ptr": ("fp16", heads * length, d),
                 "v_ptr": ("fp16", heads * length, d), "part_ptr": ("fp32", splits * heads * group, d),
                 "stat_ptr": ("fp32", splits * heads * group), "T": length, "scale": 0.125}  # fmt: skip
    constants = {"G": group, "D": d, "BN": 64, "SPAN": length // splits}
    return kernel("decode_attention", arguments, constants, [heads, splits], num_warps=4, num_stages=3)


def counted(local: bool) -> Variant:
    tokens, experts, trips, block = 1 << 22, 64, 16, 1024
    arguments = {"expert_ptr": ("i32", tokens), "count_ptr": ("i32", experts)}
    constants = {"E": experts, "TRIPS": trips, "BLOCK": block, "LOCAL": local}
    return kernel("count_routed", arguments, constants, [tokens // trips // block])


def grouped(once: bool) -> Variant:
    m, n, k, group = 1024, 8192, 4096, 128
    arguments = {"a_ptr": ("fp16", m, k), "q_ptr": ("i8", k, n), "s_ptr": ("fp16", k // group, n),
                 "c_ptr": ("fp16", m, n), "N": n, "K": k}  # fmt: skip
    constants = {"BM": 64, "BN": 128, "BK": 64, "GROUP": group, "ONCE": once}
    return kernel("grouped_gemm", arguments, constants, [m // 64, n // 128], num_warps=4, num_stages=3)


def locked(lock: bool) -> Variant:
    tokens, c, rows = 16384, 1024, 16
    arguments = {"dy_ptr": ("fp16", tokens, c), "x_ptr": ("fp16", tokens, c), "w_ptr": ("fp32", c), "mean_ptr": ("fp32", tokens),
                 "rstd_ptr": ("fp32", tokens), "dx_ptr": ("fp16", tokens, c), "dw_ptr": ("fp32", tokens // rows, c),
                 "lock_ptr": ("i32", 1)}  # fmt: skip
    return kernel(
        "layer_norm_backward", arguments, {"C": c, "ROWS": rows, "LOCKED": lock}, [tokens // rows], num_warps=4
    )


def entropy(at_end: bool) -> Variant:
    rows, words = 132, 32768
    arguments = {"logit_ptr": ("bf16", rows, words), "label_ptr": ("i32", rows), "loss_ptr": ("fp32", rows), "V": words}
    return kernel("cross_entropy", arguments, {"BLOCK": 1024, "AT_END": at_end}, [rows], num_warps=4)


def bag(at_once: bool) -> Variant:
    bags, each, words, d = 8448, 64, 1 << 20, 128
    arguments = {"index_ptr": ("i32", bags, each), "table_ptr": ("fp16", words, d), "out_ptr": ("fp32", bags, d)}
    constants = {"L": each, "D": d, "AT_ONCE": at_once}
    return kernel("embedding_bag", arguments, constants, [bags], num_warps=4 if at_once else 1)


def conv(walked: bool) -> Variant:
    batch, length, c = 33, 512, 2048
    arguments = {
        "x_ptr": ("bf16", batch, length, c),
        "w_ptr": ("fp32", 3, c),
        "y_ptr": ("bf16", batch, length, c),
        "C": c,
    }
    constants = {"T": length, "BT": 16, "BC": 512 if walked else 128, "WALKED": walked}
    grid = [c // 512, batch] if walked else [c // 128, batch, length // 16]
    return kernel("causal_conv", arguments, constants, grid, num_warps=4)


def scan(hoisted: bool) -> Variant:
    batch, length, d, n = 32, 128, 4096, 32
    arguments = {"x_ptr": ("fp16", batch, length, d), "ar_ptr": ("fp32", d, n), "ai_ptr": ("fp32", d, n),
                 "cr_ptr": ("fp32", d, n), "ci_ptr": ("fp32", d, n), "y_ptr": ("fp16", batch, length, d), "D": d}  # fmt: skip
    constants = {"T": length, "BD": 64, "N": n, "HOISTED": hoisted}
    return kernel("diagonal_scan", arguments, constants, [d // 64, batch], num_warps=4)


def two(rows: int, warps: int) -> Variant:
    count, c = 1 << 18, 64
    arguments = {"logit_ptr": ("bf16", count, c), "value_ptr": ("fp32", count, 2), "index_ptr": ("i32", count, 2)}
    return kernel("top_two", arguments, {"C": c, "ROWS": rows}, [count // rows], num_warps=warps)


def rotated(flat: bool) -> Variant:
    batch, length, heads, half = 8, 2048, 32, 64
    arguments = {"x_ptr": ("bf16", batch, length, heads, 2 * half), "cos_ptr": ("fp32", length, half),
                 "sin_ptr": ("fp32", length, half), "T": length, "heads": heads, "half": half}  # fmt: skip
    constants = {"BLOCK": 1024, "H": heads, "HALF": half, "FLAT": flat}
    grid = [batch * length * heads * half // 1024] if flat else [batch * length]
    return kernel("rotate", arguments, constants, grid, num_warps=4)


def adam(block: int, warps: int) -> Variant:
    n = 1 << 26
    arguments = {"p_ptr": ("fp32", n), "g_ptr": ("bf16", n), "m_ptr": ("fp32", n), "v_ptr": ("fp32", n),
                 "rate": 0.001, "decay": 0.01, "n": n}  # fmt: skip
    return kernel("adam_step", arguments, {"BLOCK": block}, [n // block], num_warps=warps)


def paged(row_bytes: int) -> Variant:
    pages, page, heads, d = 8192, 16, 8, 128
    arguments = {"cache_ptr": ("i8", pages * page * heads, row_bytes), "table_ptr": ("i32", pages),
                 "out_ptr": ("i8", pages * page * heads, d), "row_bytes": row_bytes}  # fmt: skip
    return kernel("gather_pages", arguments, {"PAGE": page, "HEADS": heads, "D": d}, [pages], num_warps=8)


def eighths(turned: bool) -> Variant:
    m, n, k = 4096, 4096, 2048
    arguments = {"a_ptr": ("fp8e4nv", m, k), "b_ptr": ("fp8e4nv", k, n), "c_ptr": ("bf16", m, n), "N": n, "K": k}
    constants = {"BM": 128, "BN": 128, "BK": 64, "TURNED": turned}
    return kernel("fp8_gemm", arguments, constants, [m // 128, n // 128], num_warps=8, num_stages=4)


def dropped(wide: bool) -> Variant:
    rows, c = 16384, 4096
    arguments = {"x_ptr": ("fp16", rows, c), "bias_ptr": ("fp32", c), "residual_ptr": ("fp16", rows, c),
                 "y_ptr": ("fp16", rows, c), "C": c, "seed": 1234}  # fmt: skip
    return kernel("drop_and_add", arguments, {"BLOCK": 1024, "WIDE": wide}, [c // 1024, rows], num_warps=4)


def cast(ratio: str) -> Variant:
    n = 1 << 28
    arguments = {"x_ptr": ("fp8e4nv", n), "ratio_ptr": (ratio, 1), "y_ptr": ("fp8e4nv", n)}
    return kernel("recast", arguments, {"BLOCK": 2048}, [n // 2048], num_warps=4)


def segments(tiled: bool) -> Variant:
    count, width = 1 << 20, 32
    arguments = {"score_ptr": ("fp32", count, width), "out_ptr": ("fp32", count, width)}
    return kernel("segment_softmax", arguments, {"W": width, "BLOCK": 128, "TILED": tiled}, [count // 128], num_warps=4)


PLANTS = {
    "decode": Plant(
        ("idle-sms",), (), "16 CTAs leave most SMs idle (synonyms: too few CTAs, small grid)", decode(1), decode(16)
    ),
    "counted": Plant(
        ("atomic-contention",), ("tl.atomic_add(count_ptr + expert,",),
        "atomics of all tokens meet at 64 addresses (contention, serialised atomics)", counted(False), counted(True),
    ),
    "grouped": Plant(
        ("redundant-load",), ("(k // GROUP)[:, None]",),
        "each scale is loaded 64 times per tile (redundant load, same bytes requested again)", grouped(False), grouped(True),
    ),
    "locked": Plant(
        ("compare-and-swap", "atomic-contention"), ("tl.atomic_cas", "tl.atomic_xchg", "dw + tl.load(dw_ptr"),
        "all CTAs wait for one lock (compare-and-swap loop, contended atomic)", locked(True), locked(False),
    ),
    "entropy": Plant(
        ("reduction-per-trip", "barrier-per-trip"), ("tl.max(x, 0))", "tl.sum(tl.exp(x - new), 0)"),
        "each trip reduces across the CTA (reduction or barrier per trip)", entropy(False), entropy(True),
    ),
    "bag": Plant(
        ("dependent-loads", "serial-loop"), ("tl.load(index_ptr + bag * L + each)", "tl.load(table_ptr + index * D + dims)"),
        "the row waits for its index in each trip (dependent loads, exposed latency, serial loop)", bag(False), bag(True),
    ),
    "conv": Plant(
        ("serial-loop",), ("x2 = tl.load(x_ptr + base + t * C + cols)",),
        "each step in time waits for one load (serial loop, exposed latency, too few bytes in flight)", conv(True), conv(False),
    ),
    "scan": Plant(
        ("invariant-load",), tuple(f"{one} = tl.load({one}_ptr + place)" for one in ("ar", "ai", "cr", "ci")),
        "coefficients that do not change are loaded in each trip (loop-invariant load)", scan(False), scan(True),
    ),
    "two": Plant(
        ("more-threads", "cta-launches"), (), "256 threads for 64 elements (more threads than elements, tiny CTAs)",
        two(1, 8), two(64, 4),
    ),
    "rotated": Plant(
        ("division",), ("flat % half", "flat // half", "head // heads % T"),
        "integer division by runtime numbers for each element", rotated(True), rotated(False),
    ),
    "adam": Plant(("spills",), (), "128 elements of four tensors per thread spill", adam(4096, 1), adam(1024, 4)),
    "paged": Plant(
        ("narrow-access",), ("tl.load(cache_ptr + source)",),
        "rows of 132 bytes are read one byte per thread (narrow, unaligned, not vectorised)", paged(132), paged(144),
    ),
    "eighths": Plant(
        ("bank-conflicts", "layout-conversion"), ("b = tl.load(b_ptr + k[:, None] * N", "tl.dot(a, b, acc)"),
        "the FP8 operand B is transposed by way of shared memory in each trip (layout conversion, bank conflicts)",
        eighths(False), eighths(True),
    ),
    "dropped": Plant(
        ("int64",), ("tl.rand(seed, offs)",), "the random numbers are made in 64-bit integers", dropped(True), dropped(False)
    ),
    "cast": Plant(
        ("type-conversion",), ("(x * ratio).to(tl.float32)", "x = tl.load(x_ptr + offs).to(tl.float32)"),
        "a ratio in double precision makes the multiplication fp64 (conversion to fp64 and back)", cast("fp64"), cast("fp32"),
    ),
    "segments": Plant(
        ("uncoalesced",), ("x = tl.load(score_ptr + segments * W + each)", "tl.store(out_ptr + segments * W + each"),
        "neighbouring lanes are 128 bytes apart (uncoalesced)", segments(False), segments(True),
    ),
}  # fmt: skip


def pairs_on(target: str) -> dict[str, tuple[tuple[str, ...], Variant, Variant]]:
    """Name → (expected kinds, plant, twin)."""
    return {name: (one.kinds, one.plant, one.twin) for name, one in PLANTS.items()}
