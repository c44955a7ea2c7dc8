"""Dots and matrix instructions, as `test_generation` and `test_identity` hold them against each other."""

from __future__ import annotations

from dataclasses import replace

from artifact_inspector.analysis.matrix.matrix_work import MatrixWork, Tiling
from artifact_inspector.model import MatrixOp


def dot(m: int, n: int, k: int, count: int = 1, **more: object) -> MatrixWork:
    """Dots of m×n×k, by default without layout."""
    op = MatrixOp("tt.dot", "dot", m, n, k, 1, "f16×f16→f32", "block")
    return replace(MatrixWork("tt.dot", op, count, count, 1, (1, 1), ("k.py:1",)), **more)


def mma(count: int, issuers: int | None = 4, **more: object) -> MatrixWork:
    """m16n8k16 instructions: 4096 operations each."""
    op = MatrixOp("mma.sync", "mma", 16, 8, 16, 1, "f16×f16→f32", "warp")
    return replace(MatrixWork("mma.sync", op, count, count, issuers, (10, 20), ("k.py:1",)), **more)


def tiled(*warps: int, ctas: int = 1) -> Tiling:
    return Tiling("nvidia_mma", warps, (16, 8), ctas, True)


def replace_op(op: MatrixOp, **more: object) -> MatrixOp:
    return op._replace(**more)  # type: ignore[arg-type]
