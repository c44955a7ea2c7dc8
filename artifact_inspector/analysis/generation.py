"""Which generation of matrix instructions a kernel uses, and whether its target has a newer one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from artifact_inspector.analysis.matrix import MatrixWork
from artifact_inspector.targets import Target

__all__ = ["Generation", "describe_generation"]

NAMES = {
    "mma": "mma.sync",
    "wgmma": "wgmma",
    "tcgen05": "tcgen05.mma",
    "mfma": "MFMA",
    "wmma": "WMMA",
}
# Element types that a unit multiplies, on the oldest architecture that does.
# Source: PTX ISA, Matrix Shape of mma, wgmma and tcgen05.mma with their Target ISA Notes; the
# MFMA and WMMA opcodes of AMD's CDNA 1 to 4 and RDNA 3 and 4 ISA manuals; LLVM, AMDGPU.td, for gfx1250.
_MULTIPLIES = {
    "mma": {"f16": 70, "i8": 75, "bf16": 80, "tf32": 80, "f64": 80, "f8E4M3FN": 89, "f8E5M2": 89},
    "mfma": {
        "f32": 0x908,
        "f16": 0x908,
        "bf16": 0x908,
        "i8": 0x908,
        "f64": 0x90A,
        "f8E4M3FNUZ": 0x942,
        "f8E5M2FNUZ": 0x942,
        "f8E4M3FN": 0x950,
        "f8E5M2": 0x950,
    },
    "wmma": {
        "f16": 0x1100,
        "bf16": 0x1100,
        "i8": 0x1100,
        "f8E4M3FN": 0x1200,
        "f8E5M2": 0x1200,
        "f32": 0x1250,
    },
}
LEAST_ROWS = {"wgmma": 64, "tcgen05": 64}
"""Rows of the smallest instruction. Source: PTX ISA, Matrix Shape of wgmma and tcgen05.mma."""


@dataclass(frozen=True, slots=True)
class Generation:
    """The generation of a region's, or a kernel's, matrix instructions beside that of its target."""

    used: tuple[str, ...]
    """Families, as `MatrixOp.family`; empty where there is no matrix instruction."""
    newest: str | None
    """The target's newest: `Limits.matrix_unit`; None where no source says."""
    fused: int
    """Fused multiply-adds, of lanes."""
    words: str
    """`mma.sync, where sm_90 has wgmma`; `MMA 0, FMA 4096`."""
    reason: str = ""
    """Why it is not the newest, or none, as far as the IR tells; empty where it does not."""
    lines: tuple[int, int] | None = None
    """First and last matrix instruction in the stage's file."""

    @property
    def is_newest(self) -> bool | None:
        """True where the newest is used; None without dots, or for a target that is not known."""
        if self.newest is None or not (self.used or self.words):
            return None
        return self.newest in self.used


def describe_generation(
    target: Target,
    works: Sequence[MatrixWork],
    fused: int,
    *,
    dots: Sequence[MatrixWork] = (),
    packed: int = 0,
) -> Generation:
    """The generation that matrix instructions are of.

    Args:
        works: of the last stage.
        fused: fused multiply-adds there, counted as instructions.
        dots: tensor-level matrix work of the same regions, for the reason.
        packed: those of `fused` that add up two or more products (`v_dot2`, `dp4a`).
    """
    newest = target.limits.matrix_unit
    used = tuple(dict.fromkeys(work.matrix.family for work in works))
    if not used:
        if not dots:
            return Generation((), newest, fused, "")
        words = f"MMA 0, FMA {fused}" + (f", {packed} of them dot products" if packed else "")
        return Generation((), newest, fused, words, _why_scalar(target, newest, dots))
    words = " and ".join(NAMES.get(family, family) for family in used)
    reason = ""
    if newest is not None and newest not in used:
        words += f", where {target.arch} has {NAMES.get(newest, newest)}"
        reason = _why_older(newest, used, dots)
    lines = (min(work.lines[0] for work in works), max(work.lines[1] for work in works))
    return Generation(used, newest, fused, words, reason, lines)


def _why_scalar(target: Target, newest: str | None, dots: Sequence[MatrixWork]) -> str:
    """Why dots became multiply-adds of single lanes.

    Source: Triton, AccelerateMatmul.cpp (compute capability below 80 falls back to multiply-adds) and
    supportMMA in Analysis/Utility.cpp (32-bit floats need `inputPrecision` tf32).
    """
    if newest == "none":
        return f"{target.arch} has no matrix instructions"
    if newest is None:
        return ""
    if any(dot.tiling is not None and dot.tiling.is_matrix for dot in dots):
        return ""  # the dots were laid out for matrix instructions: they are lost, not refused
    if target.arch in ("sm_70", "sm_75"):
        return f"this Triton lays no dot out for the {NAMES[newest]} of {target.arch}"
    elements = sorted({_element(dot) for dot in dots})
    if target.backend == "cuda":
        if "f32" in elements and not any((dot.precision or "").startswith("tf32") for dot in dots):
            return "mma takes 32-bit floats as tf32 only, and the dot asks for full precision"
        missing = [name for name in elements if not _multiplies(target, "mma", name)]
    else:
        missing = [name for name in elements if not _multiplies(target, newest, name)]
    if missing:
        return f"{NAMES[newest]} of {target.arch} does not multiply {', '.join(missing)}"
    return _too_small(dots, 16, 8 if target.backend == "cuda" else 16)


def _why_older(newest: str, used: Iterable[str], dots: Sequence[MatrixWork]) -> str:
    """Why the newest unit is not used, where its smallest shape or its types rule it out."""
    rows = LEAST_ROWS.get(newest)
    if rows is None:
        return ""
    short = [dot for dot in dots if dot.matrix.m < rows]
    if short and len(short) == len(dots):
        return f"{NAMES[newest]} takes {rows} rows, the tile has {_sizes(dot.matrix.m for dot in short)}"
    if dots and all(_element(dot) == "f64" for dot in dots):
        return f"{NAMES[newest]} does not multiply f64"
    return ""


def _too_small(dots: Sequence[MatrixWork], rows: int, columns: int) -> str:
    small = [dot for dot in dots if dot.matrix.m < rows or dot.matrix.n < columns]
    if len(small) < len(dots):
        return ""
    tiles = ", ".join(dict.fromkeys(f"{dot.matrix.m}×{dot.matrix.n}" for dot in small))
    return f"the tile of {tiles} is smaller than an instruction"


def _multiplies(target: Target, unit: str, element: str) -> bool:
    """False only where the table knows the unit and has no row for the type."""
    since = _MULTIPLIES[unit].get("tf32" if element == "f32" and unit == "mma" else element)
    number = target.arch.removeprefix("sm_").removeprefix("gfx")
    return since is not None and int(number, 10 if target.backend == "cuda" else 16) >= since


def _element(dot: MatrixWork) -> str:
    return dot.matrix.types.partition("×")[0]


def _sizes(numbers: Iterable[int]) -> str:
    return ", ".join(str(number) for number in sorted(set(numbers)))
