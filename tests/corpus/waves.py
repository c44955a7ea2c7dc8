"""Waves that the registers of one SIMD allow, by the package's rule: the number that LLVM prints."""

from __future__ import annotations

from artifact_inspector.analysis.resources.occupancy import _warps_by_registers
from artifact_inspector.hardware.targets import Target


def find_warps_per_partition(target: Target, registers: int, scalar_registers: int | None = None) -> int:
    """Warps of a sub-partition (AMD: SIMD); LLVM prints `; Occupancy:` for a kernel without LDS."""
    multiprocessor = target.limits.multiprocessor
    assert multiprocessor is not None
    warps = _warps_by_registers(multiprocessor, registers, scalar_registers)
    return min(warps, multiprocessor.warps // multiprocessor.partitions)
