"""The generation of matrix instructions that a kernel uses, and whether its target has a newer one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from artifact_inspector.analysis.flow.function_code import FunctionCode
from artifact_inspector.analysis.matrix.matrix_work import MatrixWork
from artifact_inspector.analysis.order.regions import Region, count_with_trait
from artifact_inspector.hardware.matrix import MIN_WGMMA_M, UNIT_NAMES, WARPS_PER_WARPGROUP, supports_element_type
from artifact_inspector.hardware.targets import Target
from artifact_inspector.model import Backend, EventKind, MatrixUnit, Trait

FIRST_LAID_OUT_CAPABILITY = 80
"""Compute capability from which every version of Triton lays out dots for matrix instructions."""


@dataclass(frozen=True, slots=True)
class MatrixGeneration:
    """The generation of a region's, or a kernel's, matrix instructions, and the newest one of its target."""

    used: tuple[MatrixUnit, ...]
    """`mma`, `wgmma`, `tcgen05`, `mfma`, `wmma`; empty if there is no matrix instruction."""
    newest: MatrixUnit | None
    """The target's newest; None if unknown."""
    fused: int
    """Fused multiply-adds on single lanes."""
    description: str
    """`mma.sync, where sm_90 has wgmma`; `MMA 0, FMA 4096`."""
    reason: str = ""
    """Why it is not the newest, or none, as far as the IR shows; empty if it does not."""
    lines: tuple[int, int] | None = None
    """First and last matrix instruction in the stage's file."""

    @property
    def is_newest(self) -> bool | None:
        """True if the newest is used; None without dots, or for an unknown target."""
        if self.newest is None or not (self.used or self.description) or (self.lines and not self.used):
            return None
        return self.newest in self.used


def describe_generation(
    target: Target,
    works: Sequence[MatrixWork],
    fused: int,
    *,
    dots: Sequence[MatrixWork] = (),
    program_dots: Sequence[MatrixWork] = (),
    packed: int = 0,
) -> MatrixGeneration:
    """The generation of the matrix instructions.

    Args:
        works: of the last stage.
        fused: fused multiply-adds there, counted as instructions.
        dots: tensor-level matrix work of the same regions (TTGIR), for the reason.
        program_dots: the same in the program (TTIR): operands may have been widened since.
        packed: those of `fused` that add up two or more products (`v_dot2`, `dp4a`).
    """
    unit = target.limits.matrix_unit
    newest = None if unit is None else MatrixUnit(unit)
    used = tuple(dict.fromkeys(MatrixUnit(work.matrix.family) for work in works if work.matrix is not None))
    # Dots laid out for a matrix unit may be in another region at this stage: they are not scalar.
    scalar = [dot for dot in dots if dot.tiling is None or not dot.tiling.is_matrix]
    scalar_reason = _scalar_reason(target, newest, scalar, program_dots) if scalar else ""
    fma_text = f"FMA {fused}" + (f", {packed} of them dot products" if packed else "")
    if not works:
        return MatrixGeneration((), newest, fused, f"MMA 0, {fma_text}" if scalar else "", scalar_reason)
    description = " and ".join(UNIT_NAMES.get(family, family) for family in used) or works[0].op
    reason = ""
    if newest is not None and used and newest not in used:
        description += f", where {target.arch} has {UNIT_NAMES.get(newest, newest)}"
        reason = _older_reason(newest, dots)
    if scalar and any(dot.tiling is not None for dot in dots):
        description += f"; {sum(dot.count for dot in scalar)} of {sum(dot.count for dot in dots)} dots by {fma_text}"
        reason = "; ".join(filter(None, (reason, scalar_reason)))
    lines = (min(work.lines[0] for work in works), max(work.lines[1] for work in works))
    return MatrixGeneration(used, newest, fused, description, reason, lines)


def count_packed_dots(code: FunctionCode, region: Region) -> int:
    """Number of instructions of a region that add up two or more products per lane."""
    return count_with_trait(code, region, EventKind.FLOAT, Trait.PACKED_PRODUCT)


def _scalar_reason(
    target: Target, newest: MatrixUnit | None, dots: Sequence[MatrixWork], program_dots: Sequence[MatrixWork]
) -> str:
    """Why dots became multiply-adds on single lanes.

    Source: Triton, AccelerateMatmul.cpp (below compute capability 80, newer versions lower dots to multiply-adds, with
    operands widened to the type of the result), and supportMMA in Analysis/Utility.cpp (32-bit floats need
    `inputPrecision` tf32).
    """
    if newest is MatrixUnit.NONE:
        return f"{target.arch} has no matrix instructions"
    if newest is None:
        return ""
    unit = MatrixUnit.MMA if target.backend is Backend.CUDA else newest
    lines = {source for dot in dots for source in dot.sources}
    program_dots = [dot for dot in program_dots if not lines or lines.intersection(dot.sources)] or dots
    elements = _elements(program_dots)
    missing = [name for name in elements if not supports_element_type(target.arch, unit, name)]
    are_all_lowered = unit is MatrixUnit.MMA and target.arch.number < FIRST_LAID_OUT_CAPABILITY
    if missing and not (are_all_lowered and len(missing) < len(elements)):
        return f"{UNIT_NAMES[unit]} of {target.arch} does not multiply {', '.join(missing)}"
    if are_all_lowered:
        return f"this version of Triton lowers the dots of {target.arch} to FMA"
    if unit is MatrixUnit.MMA and any(
        _elements([dot]) == ["f32"] and not (dot.precision or "").startswith("tf32") for dot in program_dots
    ):
        return f"{UNIT_NAMES[unit]} supports 32-bit floats only as tf32, but the dot requests full precision"
    return ""


def _older_reason(newest: MatrixUnit, dots: Sequence[MatrixWork]) -> str:
    """Why the newest unit is not used, if its smallest shape or its types rule it out."""
    if not dots or newest not in (MatrixUnit.WGMMA, MatrixUnit.TCGEN05):
        return ""
    name = UNIT_NAMES[newest]
    rows = sorted({dot.matrix.m for dot in dots if dot.matrix is not None})
    if rows and rows[-1] < MIN_WGMMA_M:
        return f"{name} needs at least {MIN_WGMMA_M} rows, but the tile has {', '.join(map(str, rows))}"
    warps = {prod(dot.tiling.warps) for dot in dots if dot.tiling is not None and dot.tiling.warps}
    if warps and max(warps) < WARPS_PER_WARPGROUP:
        return f"{name} needs {WARPS_PER_WARPGROUP} warps, but the dot runs on {max(warps)}"
    if _elements(dots) == ["f64"]:
        return f"{name} does not multiply f64"
    return ""


def _elements(dots: Sequence[MatrixWork]) -> list[str]:
    """Types of the left operands."""
    return sorted({dot.matrix.operands[0] for dot in dots if dot.matrix is not None})
