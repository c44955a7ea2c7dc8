"""The planted problems: how each is compiled and launched, and what its twin does differently."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from artifact_inspector.compiling.ask.compile import compile_kernels
from artifact_inspector.compiling.ask.request import KernelRequest
from artifact_inspector.execution.launch_requests import parse_document_of
from artifact_inspector.execution.timing.candidates import RankingCandidate
from artifact_inspector.files.cache import open_cache

FILE = Path(__file__).with_name("planted.py")


@dataclass(frozen=True)
class Variant:
    """A kernel with its signature, constants, options and launch."""

    kernel: str
    signature: str
    constants: dict[str, Any]
    grid: list[int]
    arguments: dict[str, Any]
    options: dict[str, Any] = field(default_factory=dict)


def tensor(dtype: str, *shape: int) -> dict[str, Any]:
    return {"dtype": dtype, "shape": list(shape)}


def gemm(
    kernel: str = "matmul",
    dtype: str = "fp16",
    shape: tuple[int, int, int] = (4096, 4096, 1024),
    tile: tuple[int, int, int] = (128, 128, 32),
    warps: int = 8,
    stages: int = 4,
    **constants: Any,
) -> Variant:
    m, n, k = shape
    out = "fp16" if kernel in ("matmul", "matmul_widened") else "fp32"
    return Variant(
        kernel,
        f"*{dtype}:16,*{dtype}:16,*{out}:16,i32:16,i32:16,i32:16",
        {"BM": tile[0], "BN": tile[1], "BK": tile[2], **constants},
        [m // tile[0], n // tile[1], 1],
        {
            "a_ptr": tensor(dtype, m, k), "b_ptr": tensor(dtype, k, n), "c_ptr": tensor(out, m, n),
            "M": m, "N": n, "K": k,
        },
        {"num_warps": warps, "num_stages": stages},
    )  # fmt: skip


def flat(
    kernel: str,
    types: tuple[str, str],
    sizes: tuple[int, int],
    numbers: dict[str, int],
    constants: dict[str, Any],
    grid: list[int],
    names: tuple[str, str] = ("x_ptr", "y_ptr"),
    **options: Any,
) -> Variant:
    scalars = ",".join("i32:16" if value % 16 == 0 else "i32" for value in numbers.values())
    return Variant(
        kernel,
        f"*{types[0]}:16,*{types[1]}:16,{scalars}",
        constants,
        [*grid, 1, 1][:3],
        {names[0]: tensor(types[0], sizes[0]), names[1]: tensor(types[1], sizes[1]), **numbers},
        options,
    )


def both_unpack() -> tuple[Variant, Variant]:
    k, n, bn, bk = 1024, 65536, 64, 32

    def variant(kernel: str) -> Variant:
        return Variant(
            kernel, "*i32:16,*fp16:16,*fp16:16,i32:16,i32:16", {"BK": bk, "BN": bn, "TRIPS": k // bk}, [n // bn, 1, 1],
            {"q_ptr": tensor("i32", k // 8, n), "s_ptr": tensor("fp16", n), "y_ptr": tensor("fp16", k, n), "K": k, "N": n},
            {"num_warps": 4},
        )  # fmt: skip

    return variant("unpack_bits"), variant("unpack_once")


def scaled(hoisted: bool) -> Variant:
    rows, cols, each = 32768, 4096, 16
    return Variant(
        "scale_rows", "*i8:16,*fp32:16,*i8:16,i32:16", {"ROWS": each, "BLOCK": cols, "HOISTED": hoisted},
        [rows // each, 1, 1],
        {"x_ptr": tensor("i8", rows, cols), "w_ptr": tensor("fp32", 3, cols), "y_ptr": tensor("i8", rows, cols),
         "cols": cols}, {"num_warps": 8},
    )  # fmt: skip


N = 1 << 26
PAIRS: dict[str, tuple[tuple[str, ...], Variant, Variant]] = {
    # name: (expected kinds, plant, twin)
    "drained": (("drained-pipeline",), gemm(stages=2, warps=4), gemm(stages=4, warps=8)),
    "serial": (("serial-loop",), gemm(stages=1), gemm(stages=4)),
    "fp32-fma": (
        ("fp32-dot",),
        gemm("matmul_fp32", "fp32", tile=(64, 64, 32), PREC="ieee"),
        gemm("matmul_columns", "fp32", tile=(128, 128, 32), stages=3),
    ),
    "wide-dot": (("wide-dot",), gemm("matmul_widened", stages=3), gemm(stages=4)),
    "idle": (("idle-sms",), gemm(shape=(512, 512, 4096)), gemm(shape=(8192, 4096, 1024))),
    "banks": (
        ("bank-conflicts",),
        gemm("matmul_fp32", "fp32", tile=(128, 128, 32), stages=3, PREC="tf32"),
        gemm("matmul_columns", "fp32", tile=(128, 128, 32), stages=3),
    ),
    "columns": (
        ("uncoalesced",),
        flat("strided_copy", ("fp32", "fp32"), (N, N), {"n": N}, {"STRIDE": 8, "BLOCK": 1024}, [N // 8 // 1024]),
        flat("strided_copy", ("fp32", "fp32"), (N, N), {"n": N}, {"STRIDE": 1, "BLOCK": 1024}, [N // 1024]),
    ),
    "redundant": (("redundant-load",), *both_unpack()),
    "invariant": (("invariant-load",), scaled(False), scaled(True)),
    "reduction": (
        ("reduction-per-trip",),
        flat("row_sums", ("fp32", "fp32"), (1 << 24, 132), {"cols": 65536}, {"BLOCK": 1024, "ONCE": False}, [132]),
        flat("row_sums", ("fp32", "fp32"), (1 << 24, 132), {"cols": 65536}, {"BLOCK": 1024, "ONCE": True}, [132]),
    ),
    "division": (
        ("division",),
        flat("gather_divided", ("fp32", "fp32"), (N, N), {"n": N, "d": 1000, "e": 1024},
             {"TRIPS": 16, "BLOCK": 1024}, [N // 1024 // 16 - 64]),
        flat("gather_plain", ("fp32", "fp32"), (N, N), {"n": N, "d": 1000, "e": 1024},
             {"TRIPS": 16, "BLOCK": 1024}, [N // 1024 // 16]),
    ),
    "chase": (
        ("dependent-loads",),
        flat("chase", ("i32", "i32"), (1 << 20, 1 << 20), {"n": 1 << 20}, {"TRIPS": 16, "BLOCK": 256}, [4096],
             ("next_ptr", "y_ptr")),
        flat("chase_not", ("i32", "i32"), (1 << 24, 1 << 20), {"n": 1 << 20}, {"TRIPS": 16, "BLOCK": 256}, [4096],
             ("next_ptr", "y_ptr")),
    ),
    "atomics": (
        ("atomic-contention",),
        flat("count_all", ("i32", "i32"), (1 << 22, 4096), {"n": 1 << 22}, {"BLOCK": 1024, "REDUCED": False}, [4096],
             ("x_ptr", "out_ptr")),
        flat("count_all", ("i32", "i32"), (1 << 24, 16384), {"n": 1 << 24}, {"BLOCK": 1024, "REDUCED": True}, [16384],
             ("x_ptr", "out_ptr")),
    ),
    "swap": (
        ("compare-and-swap",),
        flat("exchange", ("i32", "i32"), (1 << 22, 16), {"n": 1 << 22}, {"BLOCK": 1024, "LOOPED": True}, [4096],
             ("x_ptr", "out_ptr")),
        flat("count_all", ("i32", "i32"), (1 << 24, 16384), {"n": 1 << 24}, {"BLOCK": 1024, "REDUCED": True}, [16384],
             ("x_ptr", "out_ptr")),
    ),
    "threads": (
        ("more-threads",),
        flat("add_few", ("fp32", "fp32"), (1 << 22, 1 << 22), {"n": 1 << 22}, {"BLOCK": 64}, [65536], num_warps=8),
        flat("add_few", ("fp32", "fp32"), (N, N), {"n": N}, {"BLOCK": 1024}, [65536], num_warps=4),
    ),
    "small": (
        ("small-launch",),
        flat("add_few", ("fp32", "fp32"), (4096, 4096), {"n": 4096}, {"BLOCK": 1024}, [4]),
        flat("add_few", ("fp32", "fp32"), (N, N), {"n": N}, {"BLOCK": 1024}, [65536]),
    ),
    "spills": (
        ("spills",),
        flat("outer_wide", ("fp32", "fp32"), (1 << 28, 1 << 24), {"n": N}, {"BR": 64, "BC": 128, "TRIPS": 16}, [2048],
             num_warps=1),
        flat("outer_wide", ("fp32", "fp32"), (1 << 28, 1 << 24), {"n": N}, {"BR": 64, "BC": 128, "TRIPS": 16}, [2048],
             num_warps=8),
    ),
    "layout": (
        ("layout-conversion",),
        flat("transpose_each", ("fp32", "fp32"), (1 << 22, 1 << 24), {"n": N}, {"B": 64, "TRIPS": 16, "TRANSPOSED": True},
             [4096]),
        flat("transpose_each", ("fp32", "fp32"), (1 << 22, 1 << 24), {"n": N}, {"B": 64, "TRIPS": 16, "TRANSPOSED": False},
             [4096]),
    ),
    "wide-index": (
        ("int64",),
        flat("wide_offsets", ("fp32", "fp32"), (1 << 20, N), {"n": N, "s0": 1000, "s1": 1000, "s2": 7},
             {"TRIPS": 16, "BLOCK": 1024, "WIDE": True}, [4096]),
        flat("wide_offsets", ("fp32", "fp32"), (1 << 20, N), {"n": N, "s0": 1000, "s1": 1000, "s2": 7},
             {"TRIPS": 16, "BLOCK": 1024, "WIDE": False}, [4096]),
    ),
}  # fmt: skip


def compile_variants(
    variants: list[Variant], target: str, directory: Path, file: Path = FILE
) -> list[RankingCandidate]:
    """Each variant compiled for a target, with its launch."""
    requests = [KernelRequest(f"{file}:{one.kernel}", one.signature, one.constants, one.options) for one in variants]
    results = compile_kernels(requests, [target], directory)
    entries = {entry.directory: entry for entry in open_cache(directory).entries}
    candidates = []
    for one, result in zip(variants, results, strict=True):
        assert result.directory is not None, result.message
        (request,) = parse_document_of({"grid": one.grid, "args": one.arguments}, one.kernel)
        entry = entries[result.directory.name]
        candidates.append(RankingCandidate(entry, request, entry.constants))
    return candidates
