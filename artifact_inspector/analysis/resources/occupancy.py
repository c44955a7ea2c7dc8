"""The number of blocks that one multiprocessor can hold at a time, and the limiting resource.

NVIDIA: the rules of the CUDA Toolkit's occupancy calculator (cuda_occupancy.h), with the maximum shared
memory carve-out.

AMD: LLVM's register rules, and blocks placed as in AMDGPUBaseInfo.cpp. gfx10 to gfx12.0 run a block on a
workgroup processor (two compute units with one LDS) unless it was compiled for one compute unit; the
figures are then those of the workgroup processor.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

from artifact_inspector.hardware.gpu import MOST_THREADS
from artifact_inspector.hardware.targets import Multiprocessor, Target
from artifact_inspector.model import Backend, Resource


@dataclass(frozen=True, slots=True)
class Occupancy:
    """Blocks and warps of a kernel that one multiprocessor can hold at a time."""

    unit: str
    """The unit that holds them: `SM`, `CU`, `WGP`."""
    blocks: int | None
    """0 if not even one fits: the launch fails. None if a number is missing."""
    warps: int | None
    warps_at_most: int | None
    """Maximum number of warps that the unit can hold."""
    limited_by: tuple[Resource, ...]
    """Limiting resources: `registers`, `shared memory`, `warps`, `blocks`, `barriers`; several if they
    allow equally many blocks.
    """
    allowed: Mapping[Resource, int]
    """Resource → blocks that it would allow by itself. Unused and unknown resources are left out."""
    missing: tuple[str, ...]
    """Names of the unknown numbers."""

    @property
    def share(self) -> float | None:
        """Resident warps ÷ maximum warps of the unit."""
        if self.warps is None or not self.warps_at_most:
            return None
        return self.warps / self.warps_at_most


@lru_cache(maxsize=256)
def find_occupancy(
    target: Target,
    *,
    registers: int | None,
    shared_bytes: int | None,
    warps_per_block: int | None,
    scalar_registers: int | None = None,
    barriers: int | None = None,
    tensor_columns: int | None = None,
    workgroup_processor: bool | None = None,
) -> Occupancy:
    """The blocks of a kernel that one multiprocessor of the target can hold.

    Args:
        target: an unknown architecture gives an occupancy whose `missing` names its limits.
        registers: per thread; AMD: vector registers, with AccVGPRs if they share the file.
        shared_bytes: per block, static and dynamic together.
        warps_per_block: of the launch; with the extra warps of warp specialisation.
        scalar_registers: AMD, per wave; they limit on gfx9 only.
        barriers: of the block; None means the one that every kernel can use.
        tensor_columns: tensor memory of the block. Blocks beyond it are resident but wait.
        workgroup_processor: False for a kernel compiled for one compute unit (`-mcumode`); None is LLVM's
            default for the target.
    """
    holds = target.limits.multiprocessor
    amd = target.backend is Backend.HIP
    paired = amd and holds is not None and holds.partitions == SIMDS_OF_HALF_A_PROCESSOR
    unit = ("WGP" if paired and workgroup_processor is not False else "CU") if amd else "SM"
    missing = [
        name
        for name, value in (
            (f"limits of one {unit} of {target}", holds),
            ("registers per thread", registers),
            ("bytes of shared memory per block", shared_bytes),
            ("warps per block", warps_per_block or None),
        )
        if value is None
    ]
    if holds is None:
        return Occupancy(unit, None, None, None, (), {}, tuple(missing))
    if unit == "WGP":
        holds = _doubled(holds)
    allowed = {Resource.BLOCKS: holds.blocks}
    if warps_per_block:
        launches = warps_per_block * target.warp_size <= MOST_THREADS
        allowed[Resource.WARPS] = holds.warps // warps_per_block if launches else 0
    if warps_per_block and registers is not None:
        per_partition = _warps_by_registers(holds, registers, scalar_registers)
        allowed[Resource.REGISTERS] = _blocks_by_registers(
            holds, per_partition, warps_per_block, whole_rounds=not amd
        )
    used = 1 if barriers is None else barriers
    if used and holds.barriers is not None and not (amd and warps_per_block == 1):
        allowed[Resource.BARRIERS] = holds.barriers // used
    if shared_bytes is not None and (taken := _shared_taken(holds, shared_bytes)):
        fits = shared_bytes <= (target.limits.shared_per_block or 0)
        allowed[Resource.SHARED] = holds.shared // taken if fits else 0
    if tensor_columns and holds.tensor_columns is not None:
        allowed[Resource.TENSOR] = holds.tensor_columns // tensor_columns
    # Blocks without tensor memory are resident all the same, and wait for it.
    binding = {name: most for name, most in allowed.items() if name is not Resource.TENSOR}
    none = tuple(name for name, most in binding.items() if most == 0)
    if none:  # not even one block fits, whatever else is missing
        return Occupancy(unit, 0, 0, holds.warps, none, allowed, tuple(missing))
    if missing or not warps_per_block:
        return Occupancy(unit, None, None, holds.warps, (), allowed, tuple(missing))
    blocks = min(binding.values())
    limited_by = tuple(name for name, most in binding.items() if most == blocks)
    return Occupancy(unit, blocks, blocks * warps_per_block, holds.warps, limited_by, allowed, ())


SIMDS_OF_HALF_A_PROCESSOR = 2
"""SIMDs of a compute unit that is half of a workgroup processor (gfx10 to gfx12.0)."""


def find_warps_per_partition(
    target: Target, registers: int, scalar_registers: int | None = None
) -> int | None:
    """Warps that the registers of one sub-partition (AMD: SIMD) allow; None for an unknown target.

    On AMD this is the number that LLVM prints as `; Occupancy:` for a kernel without LDS.

    Source: cuda_occupancy.h, cudaOccMaxBlocksPerSMRegsLimit; LLVM, AMDGPUBaseInfo.cpp,
    getNumWavesPerEUWithNumVGPRs; GCNSubtarget.cpp, getOccupancyWithNumSGPRs, whose thresholds (80, 88,
    100) are those of 800 registers.
    """
    holds = target.limits.multiprocessor
    if holds is None:
        return None
    return min(_warps_by_registers(holds, registers, scalar_registers), holds.warps // holds.partitions)


def _warps_by_registers(holds: Multiprocessor, registers: int, scalar_registers: int | None) -> int:
    """Warps of one partition that its registers allow, without the limit on warps."""
    if registers > holds.registers_per_lane:
        return 0
    warps = holds.registers // _rounded(max(registers, 1), holds.register_unit)
    if scalar_registers and holds.scalar_registers is not None:
        warps = min(warps, holds.scalar_registers // scalar_registers)
    return warps


def _doubled(holds: Multiprocessor) -> Multiprocessor:
    """Two compute units as one workgroup processor."""
    return replace(
        holds,
        warps=2 * holds.warps,
        blocks=2 * holds.blocks,
        barriers=holds.barriers and 2 * holds.barriers,
        partitions=2 * holds.partitions,
        shared=2 * holds.shared,
    )


def _blocks_by_registers(holds: Multiprocessor, per_partition: int, warps: int, *, whole_rounds: bool) -> int:
    """Blocks that the registers allow; 0 also for a launch that is refused because of its registers.

    NVIDIA's launch check rounds a block's warps up to whole rounds over the sub-partitions.
    """
    if whole_rounds and _rounded(warps, holds.partitions) > per_partition * holds.partitions:
        return 0
    return per_partition * holds.partitions // warps


def _shared_taken(holds: Multiprocessor, shared: int) -> int:
    """Bytes of the multiprocessor's shared memory that a block uses."""
    return _rounded(shared + holds.shared_reserved, holds.shared_unit)


def _rounded(number: int, unit: int) -> int:
    return -(-number // unit) * unit
