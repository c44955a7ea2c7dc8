"""Resource figures in assembly, by the names of its attributes.

Source: PTX ISA, "Performance-Tuning Directives"; LLVM's AMDGPUUsage, "Code Object Metadata".
"""

from __future__ import annotations

import math
import re

from artifact_inspector.model import Module
from artifact_inspector.model.figure import Figure, FigureKey

_EXTENT = re.compile(r"\d+")
_MOST_DIGITS = 15
_OF_AMD = (
    FigureKey.VECTOR_REGISTERS, FigureKey.ACCUMULATION_REGISTERS, FigureKey.SCALAR_REGISTERS,
    FigureKey.VECTOR_SPILLS, FigureKey.SCALAR_SPILLS, FigureKey.LANES, FigureKey.SCRATCH,
    FigureKey.STATIC_SHARED, FigureKey.THREADS, FigureKey.WORKGROUP_PROCESSOR,
)  # fmt: skip


def ptx_figures(module: Module) -> dict[FigureKey, Figure]:
    """Threads per block and bytes of local arrays."""
    found: dict[FigureKey, Figure] = {}
    for key in (FigureKey.REQUIRED_THREADS, FigureKey.MOST_THREADS):
        said = module.attributes.get(key)
        extents = [] if said is None else _EXTENT.findall(said)
        if extents and all(len(extent) <= _MOST_DIGITS for extent in extents):
            found[key] = Figure(math.prod(map(int, extents)), f"ptx, .{key} {said}")
    local = _number(module.attributes.get(FigureKey.LOCAL, ""))
    if local is not None:
        found[FigureKey.LOCAL] = Figure(local, "ptx, .local")
    return found


def amdgcn_figures(module: Module) -> dict[FigureKey, Figure]:
    """Registers, spills, scratch, shared memory and threads."""
    found: dict[FigureKey, Figure] = {}
    for key in _OF_AMD:
        if key in module.attributes:
            value = _number(module.attributes[key])
            source = f"amdgcn, .{key}"
            found[key] = Figure(value, source if value is not None else f"{source} is not a number")
    return found


def _number(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdecimal() and len(text) <= _MOST_DIGITS else None
