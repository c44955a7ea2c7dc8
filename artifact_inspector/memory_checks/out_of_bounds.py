"""Accesses outside of every tensor or misaligned, with the mask that may be missing; 32-bit offsets that wrapped.

**Source** CUDA C++ Programming Guide, "Device Memory Accesses": an access must be aligned to its size, else the GPU
faults. AMD GPUs run with unaligned access enabled, so there is no such error (LLVM, AMDGPU usage,
`unaligned-access-mode`).
"""

from __future__ import annotations

import math
import re
from dataclasses import replace

from artifact_inspector.execution.interpreter.counters import OutOfBoundsAccess
from artifact_inspector.execution.interpreter.global_memory import GlobalMemory, TensorMemory
from artifact_inspector.execution.interpreter.program import ProgramStep
from artifact_inspector.execution.launch import KernelLaunch
from artifact_inspector.execution.simulation import SimulatedLaunch
from artifact_inspector.memory_checks.access_log import AccessLog
from artifact_inspector.memory_checks.problems import Check, IndexBound, MemoryProblem, site_of

_WRAP = 1 << 32
"""Values of a 32-bit offset."""


def find_out_of_bounds(run: SimulatedLaunch) -> list[MemoryProblem]:
    """One error for each instruction that accesses memory outside of every tensor."""
    problems: dict[int, MemoryProblem] = {}
    for access in run.counters.out_of_bounds:
        if access.step_index not in problems:
            problems[access.step_index] = _describe(run, access)
    return list(problems.values())


def _describe(run: SimulatedLaunch, access: OutOfBoundsAccess) -> MemoryProblem:
    step = run.loaded.program.steps[access.step_index]
    lanes = run.counters.out_of_bounds_lanes.get(access.step_index)
    wrapped = _find_wrapped(run.memory, access.address)
    if wrapped is not None:
        region, element = wrapped
        return MemoryProblem(
            Check.OVERFLOW,
            f"{access.kind} {access.nearest_tensor}: the 32-bit offset of element {element:,} of {region.name} wrapped",
            site_of(step), region.name, access.cta, access.thread, access.address, lanes,
            suggestion="Compute the offset in 64 bits, for example with .to(tl.int64).",
        )  # fmt: skip
    nearest = min(
        run.memory.regions, key=lambda r: min(abs(access.address - r.start), abs(access.address - r.stop)), default=None
    )
    if nearest is None:
        return MemoryProblem(
            Check.OUT_OF_BOUNDS, f"{access.kind} at {access.address:#x}: {access.nearest_tensor}", site_of(step),
            None, access.cta, access.thread, access.address, lanes,
        )  # fmt: skip
    is_amd = run.loaded.initial_state is not None  # its lanes are masked by registers, not by a guard
    has_mask = None if is_amd else step.guard is not None
    lanes_of_line = _lanes_of_line(run, step)
    across = nearest.start <= access.address < nearest.stop  # a wide access begins inside
    outside = nearest.stop if across else access.address
    suggestion, missing_mask = _suggest_mask(nearest, outside, run.launch, lanes_of_line, has_mask=has_mask)
    return MemoryProblem(
        Check.OUT_OF_BOUNDS,
        f"{access.kind} {_distance(nearest, access.address)}",
        site_of(step), nearest.name, access.cta, access.thread, access.address, lanes,
        suggestion=suggestion, missing_mask=missing_mask,
    )  # fmt: skip


def _lanes_of_line(run: SimulatedLaunch, step: ProgramStep) -> int:
    """The lanes outside of every tensor of all instructions that one source line became."""
    site = site_of(step)
    same_line = [
        other
        for other in run.loaded.program.steps
        if other is step or (other.location and replace(site_of(other), opcode=site.opcode, line=site.line) == site)
    ]
    return sum(run.counters.out_of_bounds_lanes.get(other.index, 0) for other in same_line)


def _distance(region: TensorMemory, address: int) -> str:
    shape = "×".join(map(str, region.tensor.shape)) or "scalar"
    return region.describe_distance(address, f"{region.name} ({region.tensor.dtype} {shape})")


def _find_wrapped(memory: GlobalMemory, address: int) -> tuple[TensorMemory, int] | None:
    """The tensor, and its element, that an address would be in if a 32-bit offset had not wrapped.

    Elements and bytes are tried as the unit of the offset. Only a tensor with such offsets counts.
    """
    for region in memory.tensors:
        unit_bytes = max(1, region.tensor.bits // 8)
        for unit in (unit_bytes, 1):
            intended = address + _WRAP * unit
            if region.start <= intended < region.stop and intended - region.start >= _WRAP // 2 * unit:
                return region, (intended - region.start) // unit_bytes
    return None


def _suggest_mask(
    region: TensorMemory, address: int, launch: KernelLaunch, lanes: int, *, has_mask: bool | None
) -> tuple[str | None, IndexBound | None]:
    """The mask that would exclude the access: of the outermost dimension, by name if an argument has its extent."""
    tensor = region.tensor
    if not tensor.shape or not tensor.bits >= 8:
        return None, None
    axis = max(range(len(tensor.shape)), key=lambda at: abs(tensor.strides[at]))
    stride_bytes = abs(tensor.strides[axis]) * tensor.bits // 8
    if not stride_bytes:
        return None, None
    index, extent = (address - region.start) // stride_bytes, tensor.shape[axis]
    if 0 <= index < extent:
        return None, None
    if index >= extent and (other := _find_other_stride(region, axis, launch, lanes)):
        text = f"The kernel's stride argument ({other}) differs from the tensor's stride ({tensor.strides[axis]})."
        return text, None
    row = tensor.shape[-1]
    is_matrix = len(tensor.shape) == 2 and axis == 0 and tensor.strides[1] == 1
    if is_matrix and index == extent and 0 < lanes < row:  # less than a row: an inner index left the last row
        offset = (address - region.start) % stride_bytes * 8 // tensor.bits
        axis, index, extent = 1, row + offset, row
    arguments = launch.arguments.items()
    ints = [x for x, value in arguments if type(value) is int and value == extent != 1]
    names = [x for x in ints if not re.match("num_|.*stride", x)]
    limit = names[0] if len(names) == 1 else f"{extent}"
    name = "index" if len(tensor.shape) == 1 else f"index of dimension {axis}"
    relation = ">= 0" if index < 0 else f"< {limit}"
    bound = f"{name} {relation}"
    # with an argument that has the extent, the mask may be this one
    remedy = {
        None: f" It needs the mask `{bound}`.",
        False: f" The mask `{bound}` is missing.",
        True: " Its mask lets it through." if names else f" Its mask lets it through; it needs `{bound}`.",
    }[has_mask]
    mask = IndexBound(region.name, len(tensor.shape), tensor.strides[axis], relation)
    return f"The {name} is {index:,}, the extent {extent:,}.{remedy}", mask


def _find_other_stride(region: TensorMemory, axis: int, launch: KernelLaunch, lanes: int) -> str | None:
    """`sx=4096` if exactly as many lanes are outside as elements of rows with this stride would be."""
    tensor = region.tensor
    rows, row = tensor.shape[axis], math.prod(tensor.shape) // max(1, tensor.shape[axis])
    stop = (region.stop - region.start) * 8 // tensor.bits
    names: dict[int, list[str]] = {}
    for name, value in launch.arguments.items():
        if type(value) is int and tensor.strides[axis] < value < 2 * tensor.strides[axis] and row > 1:
            names.setdefault(value, []).append(name)
    for value, candidates in names.items():
        first = max(0, (stop - row) // value)
        outside = sum(max(0, min(row, at * value + row - stop)) for at in range(first, rows))
        if outside == lanes:
            strides = [name for name in candidates if name.lower().startswith(("s", "ld"))]
            return f"{' or '.join(strides or candidates)}={value}"
    return None


def find_misaligned(log: AccessLog, run: SimulatedLaunch) -> list[MemoryProblem]:
    """One error for each instruction with misaligned lanes, unless its pointer is of unknown origin."""
    problems = []
    for index, first in log.misaligned.items():
        if index in run.counters.unknown_pointers:
            continue
        region = run.memory.region_of(first.address)
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
