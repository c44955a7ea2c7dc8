"""Resource figures in assembly, by the names of its attributes.

Source: PTX ISA, "Performance-Tuning Directives"; LLVM's AMDGPUUsage, "Code Object Metadata".
"""

from __future__ import annotations

import math
import re

from artifact_inspector.model import Module
from artifact_inspector.model.resource import ResourceFigure, ResourceKey

_MAX_DIGITS = 15
_AMD_KEYS = (
    ResourceKey.VECTOR_REGISTERS, ResourceKey.ACCUMULATION_REGISTERS, ResourceKey.SCALAR_REGISTERS,
    ResourceKey.VECTOR_SPILLS, ResourceKey.SCALAR_SPILLS, ResourceKey.LANES, ResourceKey.SCRATCH,
    ResourceKey.STATIC_SHARED, ResourceKey.THREADS, ResourceKey.WORKGROUP_PROCESSOR,
)  # fmt: skip


def ptx_figures(module: Module) -> dict[ResourceKey, ResourceFigure]:
    """Threads per block and bytes of local arrays."""
    figures: dict[ResourceKey, ResourceFigure] = {}
    for key in (ResourceKey.REQUIRED_THREADS, ResourceKey.MOST_THREADS):
        text = module.attributes.get(key, "")
        extents = re.findall(r"\d+", text)
        if extents and all(len(extent) <= _MAX_DIGITS for extent in extents):
            figures[key] = ResourceFigure(math.prod(map(int, extents)), f"ptx, .{key} {text}")
    local = _parse_number(module.attributes.get(ResourceKey.LOCAL, ""))
    if local is not None:
        figures[ResourceKey.LOCAL] = ResourceFigure(local, "ptx, .local")
    return figures


def amdgcn_figures(module: Module) -> dict[ResourceKey, ResourceFigure]:
    """Registers, spills, scratch, shared memory and threads."""
    figures: dict[ResourceKey, ResourceFigure] = {}
    for key in _AMD_KEYS:
        if key in module.attributes:
            value = _parse_number(module.attributes[key])
            source = f"amdgcn, .{key}"
            figures[key] = ResourceFigure(value, source if value is not None else f"{source} is not a number")
    return figures


def _parse_number(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdecimal() and len(text) <= _MAX_DIGITS else None
