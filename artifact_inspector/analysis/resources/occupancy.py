"""The number of blocks that one multiprocessor can hold at a time, and the limiting resource.

NVIDIA: the rules of the CUDA Toolkit's occupancy calculator (cuda_occupancy.h), with the maximum shared memory
carve-out.

AMD: LLVM's register rules, and blocks placed as in AMDGPUBaseInfo.cpp. gfx10 to gfx12.0 run a block on a workgroup
processor (two compute units with one LDS) unless it was compiled for one compute unit; the figures are then those of
the workgroup processor.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from artifact_inspector.hardware.gpu import MAX_THREADS_PER_BLOCK
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
    max_warps: int | None
    """Maximum number of warps that the unit can hold."""
    limited_by: tuple[Resource, ...]
    """Limiting resources: `registers`, `shared memory`, `warps`, `blocks`, `barriers`; several if they allow equally
    many blocks.
    """
    blocks_by_resource: Mapping[Resource, int]
    """Resource → blocks that it would allow by itself. Unused and unknown resources are left out."""
    missing: tuple[str, ...]
    """Names of the unknown numbers."""

    @property
    def ratio(self) -> float | None:
        """Resident warps ÷ maximum warps of the unit."""
        return None if self.warps is None or not self.max_warps else self.warps / self.max_warps


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
        workgroup_processor: False for a kernel compiled for one compute unit (`-mcumode`); None is LLVM's default for
            the target.
    """
    multiprocessor = target.limits.multiprocessor
    amd = target.backend is Backend.HIP
    paired = amd and multiprocessor is not None and multiprocessor.partitions == SIMDS_PER_COMPUTE_UNIT
    unit = ("WGP" if paired and workgroup_processor is not False else "CU") if amd else "SM"
    numbers = {
        f"limits of one {unit} of {target}": multiprocessor,
        "registers per thread": registers,
        "bytes of shared memory per block": shared_bytes,
        "warps per block": warps_per_block or None,
    }
    missing = [name for name, value in numbers.items() if value is None]
    if multiprocessor is None:
        return Occupancy(unit, None, None, None, (), {}, tuple(missing))
    if unit == "WGP":
        multiprocessor = _doubled(multiprocessor)
    allowed = {Resource.BLOCKS: multiprocessor.blocks}
    if warps_per_block:
        launches = warps_per_block * target.warp_size <= MAX_THREADS_PER_BLOCK
        allowed[Resource.WARPS] = multiprocessor.warps // warps_per_block if launches else 0
    if warps_per_block and registers is not None:
        partitions = multiprocessor.partitions
        available = _warps_by_registers(multiprocessor, registers, scalar_registers) * partitions
        # NVIDIA's launch check rounds a block's warps up to whole rounds over the sub-partitions.
        is_refused = not amd and _rounded(warps_per_block, partitions) > available
        allowed[Resource.REGISTERS] = 0 if is_refused else available // warps_per_block
    barriers_used = 1 if barriers is None else barriers
    if barriers_used and multiprocessor.barriers is not None and not (amd and warps_per_block == 1):
        allowed[Resource.BARRIERS] = multiprocessor.barriers // barriers_used
    shared_bytes_used = 0
    if shared_bytes is not None:
        shared_bytes_used = _rounded(shared_bytes + multiprocessor.shared_reserved, multiprocessor.shared_unit)
    if shared_bytes is not None and shared_bytes_used:
        fits = shared_bytes <= (target.limits.shared_per_block or 0)
        allowed[Resource.SHARED] = multiprocessor.shared // shared_bytes_used if fits else 0
    if tensor_columns and multiprocessor.tensor_columns is not None:
        allowed[Resource.TENSOR] = multiprocessor.tensor_columns // tensor_columns
    # Blocks without tensor memory are resident all the same, and wait for it.
    binding = {name: block_limit for name, block_limit in allowed.items() if name is not Resource.TENSOR}
    none = tuple(name for name, block_limit in binding.items() if block_limit == 0)
    if none:  # not even one block fits, whatever else is missing
        return Occupancy(unit, 0, 0, multiprocessor.warps, none, allowed, tuple(missing))
    if missing or not warps_per_block:
        return Occupancy(unit, None, None, multiprocessor.warps, (), allowed, tuple(missing))
    blocks = min(binding.values())
    limited_by = tuple(name for name, block_limit in binding.items() if block_limit == blocks)
    return Occupancy(unit, blocks, blocks * warps_per_block, multiprocessor.warps, limited_by, allowed, ())


SIMDS_PER_COMPUTE_UNIT = 2
"""SIMDs of a compute unit that is half of a workgroup processor (gfx10 to gfx12.0)."""


def _warps_by_registers(multiprocessor: Multiprocessor, registers: int, scalar_registers: int | None) -> int:
    """Warps of one partition that its registers allow, without the limit on warps.

    Source: cuda_occupancy.h, cudaOccMaxBlocksPerSMRegsLimit; LLVM, AMDGPUBaseInfo.cpp, getNumWavesPerEUWithNumVGPRs;
    GCNSubtarget.cpp, getOccupancyWithNumSGPRs, whose thresholds (80, 88, 100) are those of 800 registers.
    """
    if registers > multiprocessor.registers_per_lane:
        return 0
    warps = multiprocessor.registers // _rounded(max(registers, 1), multiprocessor.register_unit)
    if scalar_registers and multiprocessor.scalar_registers is not None:
        warps = min(warps, multiprocessor.scalar_registers // scalar_registers)
    return warps


def _doubled(multiprocessor: Multiprocessor) -> Multiprocessor:
    """Two compute units as one workgroup processor."""
    return multiprocessor._replace(
        warps=2 * multiprocessor.warps, blocks=2 * multiprocessor.blocks,
        barriers=multiprocessor.barriers and 2 * multiprocessor.barriers, partitions=2 * multiprocessor.partitions,
        shared=2 * multiprocessor.shared,
    )  # fmt: skip


def _rounded(number: int, unit: int) -> int:
    return -(-number // unit) * unit
