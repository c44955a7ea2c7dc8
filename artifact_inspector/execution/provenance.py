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

from artifact_inspector.execution.interpreter.counters import Bounds, Counts
from artifact_inspector.execution.interpreter.memory import Memory
from artifact_inspector.execution.launch import Launch, Tensor
from artifact_inspector.execution.loading import Parameter

_FAR = 1 << 45
"""Bytes by which tensors are moved: more than any tensor has, and within the 47 bits of user addresses."""
_PAGES = 1 << 47
_INTEGERS = ("int64", "uint64", "i64", "u64", "long")
_AS_IT_WAS = "{} at its old address"
_ANYWHERE = "memory at an address of unknown origin"


def find_strangers(
    counts: Counts,
    memory: Memory,
    launch: Launch,
    parameters: Iterable[Parameter],
    again: Callable[[Launch, Any], Counts],
) -> Mapping[int, str]:
    """Instructions that access memory through pointers of unknown origin → a description of that memory.

    Args:
        counts: with the accesses outside of every tensor.
        memory: of the launch.
        launch: with an address for every tensor.
        parameters: of the kernel.
        again: simulates some CTAs of another launch of the kernel.
    """
    if not counts.outside:
        return {}
    ctas = np.unique([found.cta for found in counts.outside])
    moved = again(_moved(launch, parameters), ctas)
    stayed = {(found.index, found.address) for found in moved.outside}
    return {
        found.index: _told(memory, found)
        for found in reversed(counts.outside)
        if (found.index, found.address) in stayed
    }


def _moved(launch: Launch, parameters: Iterable[Parameter]) -> Launch:
    """The launch with each tensor moved, and another one at its old address; null pointers are moved, too."""
    pointers = {parameter.argument for parameter in parameters if parameter.type.startswith("*")}
    ends = [(given.pointer or 0) + given.bytes for given in launch.tensors.values()]
    by = _FAR if max(ends, default=0) + _FAR < _PAGES else -_FAR
    arguments: dict[str, Any] = {}
    for name, given in launch.arguments.items():
        if isinstance(given, Tensor):
            arguments[_AS_IT_WAS.format(name)] = given
            given = replace(given, pointer=(given.pointer or 0) + by)
        elif given is None and name in pointers:
            given = _FAR
        arguments[name] = given
    return replace(launch, arguments=arguments)


def _told(memory: Memory, found: Bounds) -> str:
    """The memory that an access refers to: the pointer table with the closest value below the address."""
    tables = [
        (int(values[values <= found.address].max()), region.name)
        for region in memory.tensors
        if region.content is not None
        and region.tensor.dtype in _INTEGERS
        and region.read.any()
        and ((values := region.content.view("<i8")) <= found.address).any()
    ]
    return f"memory that values of {max(tables)[1]} point to" if tables else _ANYWHERE
