"""Vector accesses at addresses that are no multiple of their size, on which NVIDIA GPUs fault.

**Source** CUDA C++ Programming Guide, "Device Memory Accesses": an access must be aligned to its size. AMD GPUs
run with unaligned access enabled, so there is no such error (LLVM, AMDGPU usage, `unaligned-access-mode`).
"""

from __future__ import annotations

from artifact_inspector.execution.interpreter.global_memory import GlobalMemory
from artifact_inspector.memory_checks.access_log import AccessLog
from artifact_inspector.memory_checks.problems import Check, MemoryProblem, site_of


def find_misaligned(log: AccessLog, memory: GlobalMemory) -> list[MemoryProblem]:
    """One error for each instruction with misaligned lanes."""
    problems = []
    for index, first in log.misaligned.items():
        region = memory.region_of(first.address)
        name = None if region is None else region.name
        place = f"{first.address:#x}" if region is None else f"byte {first.address - region.start:,} of {region.name}"
        problems.append(
            MemoryProblem(
                Check.MISALIGNED,
                f"{first.size}-byte access at {place}, which is not a multiple of {first.size}: the GPU faults",
                site_of(first.step),
                name,
                first.cta,
                first.thread,
                first.address,
                log.misaligned_lanes[index],
                suggestion="Check tl.multiple_of, tl.max_contiguous, and the strides and pointers that Triton "
                "specialized on.",
            )
        )
    return problems
