"""The generation of matrix instructions that a kernel uses, and whether its target has a newer one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from artifact_inspector.analysis.flow.code import Code
from artifact_inspector.analysis.matrix.work import MatrixWork
from artifact_inspector.analysis.order.regions import Region, count_with_trait
from artifact_inspector.hardware.matrix import LEAST_ROWS, UNIT_NAMES, WARPS_PER_WARPGROUP, multiplies
from artifact_inspector.hardware.targets import Target
from artifact_inspector.model import Backend, EventKind, MatrixUnit, Trait

OLDEST_LAID_OUT = 80
"""Compute capability from which every version of Triton lays out dots for matrix instructions."""


@dataclass(frozen=True, slots=True)
class Generation:
    """The generation of a region's, or a kernel's, matrix instructions, and the newest one of its target."""

    used: tuple[MatrixUnit, ...]
    """`mma`, `wgmma`, `tcgen05`, `mfma`, `wmma`; empty if there is no matrix instruction."""
    newest: MatrixUnit | None
    """The target's newest; None if unknown."""
    fused: int
    """Fused multiply-adds on single lanes."""
    words: str
    """`mma.sync, where sm_90 has wgmma`; `MMA 0, FMA 4096`."""
    reason: str = ""
    """Why it is not the newest, or none, as far as the IR shows; empty if it does not."""
    lines: tuple[int, int] | None = None
    """First and last matrix instruction in the stage's file."""

    @property
    def is_newest(self) -> bool | None:
        """True if the newest is used; None without dots, or for an unknown target."""
        if self.newest is None or not (self.used or self.words) or (self.lines and not self.used):
            return None
        return self.newest in self.used


def describe_generation(
    target: Target,
    works: Sequence[MatrixWork],
    fused: int,
    *,
    dots: Sequence[MatrixWork] = (),
    asked: Sequence[MatrixWork] = (),
    packed: int = 0,
) -> Generation:
    """The generation of the matrix instructions.

    Args:
        works: of the last stage.
        fused: fused multiply-adds there, counted as instructions.
        dots: tensor-level matrix work of the same regions (TTGIR), for the reason.
        asked: the same in the program (TTIR): operands may have been widened since.
        packed: those of `fused` that add up two or more products (`v_dot2`, `dp4a`).
    """
    unit = target.limits.matrix_unit
    newest = None if unit is None else MatrixUnit(unit)
    used = tuple(dict.fromkeys(MatrixUnit(work.matrix.family) for work in works if work.matrix is not None))
    # Dots laid out for a matrix unit may be in another region at this stage: they are not scalar.
    scalar = [dot for dot in dots if dot.tiling is None or not dot.tiling.is_matrix]
    why_scalar = _why_scalar(target, newest, scalar, asked) if scalar else ""
    left = f"FMA {fused}" + (f", {packed} of them dot products" if packed else "")
    if not works:
        return Generation((), newest, fused, f"MMA 0, {left}" if scalar else "", why_scalar)
    words = " and ".join(UNIT_NAMES.get(family, family) for family in used) or works[0].op
    reason = ""
    if newest is not None and used and newest not in used:
        words += f", where {target.arch} has {UNIT_NAMES.get(newest, newest)}"
        reason = _why_older(newest, dots)
    laid_out = any(dot.tiling is not None for dot in dots)
    if laid_out and scalar:
        words += f"; {sum(dot.count for dot in scalar)} of {sum(dot.count for dot in dots)} dots by {left}"
        reason = "; ".join(filter(None, (reason, why_scalar)))
    lines = (min(work.lines[0] for work in works), max(work.lines[1] for work in works))
    return Generation(used, newest, fused, words, reason, lines)


def count_packed_dots(code: Code, region: Region) -> int:
    """Number of instructions of a region that add up two or more products per lane."""
    return count_with_trait(code, region, EventKind.FLOAT, Trait.PACKED_PRODUCT)


def _why_scalar(
    target: Target, newest: MatrixUnit | None, dots: Sequence[MatrixWork], asked: Sequence[MatrixWork]
) -> str:
    """Why dots became multiply-adds on single lanes.

    Source: Triton, AccelerateMatmul.cpp (below compute capability 80, newer versions lower dots to
    multiply-adds, with operands widened to the type of the result), and supportMMA in
    Analysis/Utility.cpp (32-bit floats need `inputPrecision` tf32).
    """
    if newest is MatrixUnit.NONE:
        return f"{target.arch} has no matrix instructions"
    if newest is None:
        return ""
    unit = MatrixUnit.MMA if target.backend is Backend.CUDA else newest
    lines = {source for dot in dots for source in dot.sources}
    asked = [dot for dot in asked if not lines or lines.intersection(dot.sources)] or dots
    elements = _elements(asked)
    missing = [name for name in elements if not multiplies(target.arch, unit, name)]
    if missing:
        return f"{UNIT_NAMES[unit]} of {target.arch} does not multiply {', '.join(missing)}"
    if unit is MatrixUnit.MMA and target.arch.number < OLDEST_LAID_OUT:
        return f"this version of Triton lowers the dots of {target.arch} to FMA"
    if unit is MatrixUnit.MMA and any(_elements([dot]) == ["f32"] and not _is_tf32(dot) for dot in asked):
        return f"{UNIT_NAMES[unit]} supports 32-bit floats only as tf32, but the dot requests full precision"
    return ""


def _why_older(newest: MatrixUnit, dots: Sequence[MatrixWork]) -> str:
    """Why the newest unit is not used, if its smallest shape or its types rule it out."""
    if not dots or newest not in (MatrixUnit.WGMMA, MatrixUnit.TCGEN05):
        return ""
    name = UNIT_NAMES[newest]
    rows = sorted({dot.matrix.m for dot in dots if dot.matrix is not None})
    if rows and rows[-1] < LEAST_ROWS:
        return f"{name} needs at least {LEAST_ROWS} rows, but the tile has {', '.join(map(str, rows))}"
    warps = {prod(dot.tiling.warps) for dot in dots if dot.tiling is not None and dot.tiling.warps}
    if warps and max(warps) < WARPS_PER_WARPGROUP:
        return f"{name} needs {WARPS_PER_WARPGROUP} warps, but the dot runs on {max(warps)}"
    if _elements(dots) == ["f64"]:
        return f"{name} does not multiply f64"
    return ""


def _is_tf32(dot: MatrixWork) -> bool:
    return dot.precision is not None and dot.precision.startswith("tf32")


def _elements(dots: Sequence[MatrixWork]) -> list[str]:
    """Types of the left operands."""
    return sorted({dot.matrix.operands[0] for dot in dots if dot.matrix is not None})
