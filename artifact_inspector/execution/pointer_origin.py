"""Finds out-of-bounds accesses that use pointers of unknown origin, and so are not known to be bugs.

A kernel may receive addresses as data: in a table of pointers, or as an integer. The extent of that memory is
unknown. An address derived from a tensor moves with the tensor. So the CTAs with out-of-bounds accesses run
again with every tensor at another address; an address that stays the same does not come from a tensor.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from artifact_inspector.execution.interpreter.counters import OutOfBoundsAccess, StepCounters
from artifact_inspector.execution.interpreter.global_memory import GlobalMemory
from artifact_inspector.execution.kernel_loader import KernelParameter
from artifact_inspector.execution.launch import KernelLaunch, Tensor

_MOVE_BYTES = 1 << 45
"""Bytes by which tensors are moved: more than any tensor has, and within the 47 bits of user addresses."""
_ADDRESS_SPACE = 1 << 47
_POINTER_TYPES = ("int64", "uint64", "i64", "u64", "long")
_OLD_ADDRESS_NAME = "{} at its old address"
_UNKNOWN_ORIGIN = "memory at an address of unknown origin"


def find_unknown_pointers(
    counts: StepCounters,
    memory: GlobalMemory,
    launch: KernelLaunch,
    parameters: Iterable[KernelParameter],
    simulate: Callable[[KernelLaunch, Any], StepCounters],
) -> Mapping[int, str]:
    """Instructions that access memory through pointers of unknown origin → a description of that memory.

    Args:
        counts: with the accesses outside of every tensor.
        memory: of the launch.
        launch: with an address for every tensor.
        parameters: of the kernel.
        simulate: simulates some CTAs of another launch of the kernel.
    """
    if not counts.out_of_bounds:
        return {}
    ctas = np.unique([access.cta for access in counts.out_of_bounds])
    moved = simulate(_move_tensors(launch, parameters), ctas)
    unmoved = {(access.step_index, access.address) for access in moved.out_of_bounds}
    return {
        access.step_index: _describe_pointer(memory, access)
        for access in reversed(counts.out_of_bounds)
        if (access.step_index, access.address) in unmoved
    }


def _move_tensors(launch: KernelLaunch, parameters: Iterable[KernelParameter]) -> KernelLaunch:
    """The launch with each tensor moved, and another one at its old address; null pointers are moved, too."""
    pointers = {parameter.argument for parameter in parameters if parameter.type.startswith("*")}
    ends = [(argument.pointer or 0) + argument.bytes for argument in launch.tensors.values()]
    distance = _MOVE_BYTES if max(ends, default=0) + _MOVE_BYTES < _ADDRESS_SPACE else -_MOVE_BYTES
    arguments: dict[str, Any] = {}
    for name, argument in launch.arguments.items():
        if isinstance(argument, Tensor):
            arguments[_OLD_ADDRESS_NAME.format(name)] = argument
            argument = replace(argument, pointer=(argument.pointer or 0) + distance)
        elif argument is None and name in pointers:
            argument = _MOVE_BYTES
        arguments[name] = argument
    return replace(launch, arguments=arguments)


def _describe_pointer(memory: GlobalMemory, access: OutOfBoundsAccess) -> str:
    """The memory that an access refers to: the pointer table with the closest value below the address."""
    tables = [
        (int(values[values <= access.address].max()), region.name)
        for region in memory.tensors
        if region.content is not None
        and region.tensor.dtype in _POINTER_TYPES
        and region.read_marks.any()
        and ((values := region.content.view("<i8")) <= access.address).any()
    ]
    return f"memory that values of {max(tables)[1]} point to" if tables else _UNKNOWN_ORIGIN
