"""Shared memory that an operation takes for itself while it runs: reductions, conversions, atomics.

It stands in no text; Triton's allocator computes it from types and layouts, and so does this.

Source: lib/Analysis/Allocation.cpp and Utility.cpp of Triton 2.1 to 3.9 (ReduceOpHelper,
getScratchConfigForCvt, getNumScratchElemsSwizzledCvt, getScratchValueSize).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from artifact_inspector.analysis.shared.layouts import Layout, extent_along, read_layout
from artifact_inspector.analysis.shared.swizzling import (
    MATRIX,
    TRANSPOSED,
    VECTOR,
    Access,
    Reach,
    padded_elements,
    reach,
    swapped_bits,
    swizzled_elements,
)
from artifact_inspector.model import Instruction, Language, Module, TensorType
from artifact_inspector.model.text import split_list

__all__ = [
    "Release",
    "Rules",
    "conversion_bytes",
    "element_bits",
    "find_rules",
    "most_bytes",
    "scratch_bytes",
]

Release = tuple[int, int]

_RELEASE = re.compile(r"(\d+)\.(\d+)")
_AXIS = re.compile(r"axis = (\d+)")
_SCALAR = re.compile(r"-> (?:b?f|i)(\d+)|, (?:b?f|i)(\d+)(?:, i1)?\)?$")
_TYPES = re.compile(r" : \((.*)\) -> \(")
_CAPTURED = re.compile(r"(?:b?f|i)(\d+)$")
_EXTENT = re.compile(r"\d+x")
_SLICED = re.compile(r"slice<\{dim = (\d+)")
_FASTEST = re.compile(r"order = \[(\d+)")
_WARPS = re.compile(r"\bpartition\d+ num_warps\((\d+)\)")
_TENSORMAP = 128
"""Bytes of a tensor map, which is put together in shared memory."""


@dataclass(frozen=True, slots=True)
class Rules:
    """What the sizes depend on besides the types."""

    release: Release | None
    """Triton's version; None for one of 3.3 and later that nothing tells apart."""
    is_amd: bool
    threads_per_warp: int
    has_clusters: bool
    """Several CTAs share the work of a block: which part of a tensor is whose is not modelled."""
    capability: int | None
    """NVIDIA's compute capability: 90 for sm_90; None for AMD, or where it is not named."""

    def accesses(self, bits: int) -> tuple[tuple[Access, ...], tuple[Access, ...]]:
        """Wide stores to, and loads from, shared memory that a conversion may use."""
        if self.capability is None:
            return (), ()
        matrix = (*((MATRIX,) if bits <= 32 else ()), *((TRANSPOSED,) if bits == 16 else ()))
        stores = (VECTOR, *(matrix if self.capability >= 90 else ()))
        return stores, (VECTOR, *(matrix if self.capability >= 75 else ()))

    def since(self, release: Release) -> bool | None:
        """Whether the version is that or later; None when that is not known."""
        return None if self.release is None else self.release >= release


def find_rules(module: Module, triton: str | None) -> Rules:
    """The rules of a module, from its attributes and the version that its metadata names."""
    attributes = module.attributes
    new = any(key.startswith("ttg.") for key in attributes)
    prefix = "ttg." if new else "triton_gpu."
    target = attributes.get(f"{prefix}target", "")
    release: Release | None = None
    named = None if triton is None else _RELEASE.match(triton)
    if named is not None:
        major, minor = named.groups()
        release = (int(major), int(minor))
    elif not new:
        # 3.2 is the first to name the memory space of a buffer.
        spaces = "#triton_gpu.shared_memory" in module.layouts.values()
        clusters = f"{prefix}num-ctas" in attributes  # from 2.2 on
        release = (3, 2) if spaces else (3, 0) if target else (2, 2) if clusters else (2, 1)
    threads = attributes.get(f"{prefix}threads-per-warp", "32")
    arch = target.removeprefix("cuda:")
    return Rules(
        release,
        target.startswith("hip"),
        int(threads) if threads.isdigit() else 32,
        attributes.get(f"{prefix}num-ctas", "1") != "1",
        int(arch) if arch.isdigit() else None,
    )


def scratch_bytes(
    instruction: Instruction, module: Module, language: Language, rules: Rules, *, is_used: bool
) -> int | None:
    """Bytes that an operation takes while it runs: 0 for none, None where that cannot be told.

    Args:
        is_used: something reads its result.
    """
    name = instruction.opcode.rpartition(".")[2]
    if rules.has_clusters and name != "tensormap_create":
        return None
    if name == "reduce":
        return _reduction(instruction, module, language, rules)
    if name == "convert_layout":
        types = language.types(instruction, module)
        return _conversion(types, rules) if len(types) == 2 else None
    if name == "scan":
        return _scan(instruction, module, language, rules)
    if name == "histogram":
        types = language.types(instruction, module)
        return max(types[-1].elements, rules.threads_per_warp) * types[-1].bits // 8 if types else None
    if name == "gather":
        return None
    if name.startswith("atomic_"):
        return _atomic(instruction, module, language, rules, is_used=is_used)
    return _TENSORMAP if name == "tensormap_create" else 0


def _conversion(types: tuple[TensorType, ...], rules: Rules) -> int | None:
    source, target = (read_layout(t, rules.threads_per_warp) for t in types)
    if types[0].is_memory or types[1].is_memory or types[0].layout == types[1].layout:
        return 0
    if source is None or target is None:
        return None
    return conversion_bytes(source, target, element_bits(types[0]), rules)


def conversion_bytes(source: Layout, target: Layout, bits: int, rules: Rules) -> int | None:
    """Bytes that a conversion takes; None where it depends on a version that is not known."""
    sizes = _conversion_sizes(source, target, bits, rules)
    return sizes.pop() if len(sizes) == 1 else None


def _conversion_sizes(source: Layout, target: Layout, bits: int, rules: Rules) -> set[int]:
    """What a conversion may take: one size, or several where the version does not decide."""
    far = reach(source, target)
    if far is Reach.THREAD:
        return {0}
    if far is Reach.WARP and rules.since((3, 3)) is not False and swapped_bits(source, target) < 2:
        return {0}  # Triton shuffles at most one bit, then prefers shared memory
    width = max(8, bits)
    if rules.since((3, 6)):
        return {swizzled_elements(source, target, width, *rules.accesses(width)) * width // 8}
    padded = padded_elements(source, target, width, rules.release or (3, 4)) * width // 8
    if rules.since((3, 4)) is False:
        return {padded}
    # In 3.4 and 3.5 the one way gave place to the other.
    ways = ((), rules.accesses(width))
    return {padded, *(swizzled_elements(source, target, width, *how) * width // 8 for how in ways)}


def _reduction(instruction: Instruction, module: Module, language: Language, rules: Rules) -> int | None:
    found = _AXIS.search(instruction.text)
    types = language.types(instruction, module)
    inputs = types[: len(instruction.operands.reads)]
    if found is None or not inputs:
        return None
    axis = int(found[1])
    layout = read_layout(inputs[0], rules.threads_per_warp)
    if layout is None or axis >= len(layout.shape):
        return None
    bits = [max(8, element_bits(tensor)) for tensor in inputs]
    if rules.since((2, 2)) is False:
        elements = _by_threads(inputs[0], layout, axis, rules)
        return None if elements is None else elements * sum(width // 8 for width in bits)
    if extent_along(layout.warp, layout.shape, axis) == 1:
        return 0
    old = _gathered(layout, axis) * sum(width // 8 for width in bits)
    by_conversion = rules.since((3, 8))
    if by_conversion is False:
        return old
    new = _converted(layout, axis, bits, rules)
    return new if by_conversion or new == old else None


def _by_threads(tensor: TensorType, layout: Layout, axis: int, rules: Rules) -> int | None:
    """Elements of a reduction in 2.1, where mostly every thread has a place of its own.

    Along the fastest axis every warp reduces its own first; along another each thread writes. Lanes count as
    the layout names them, however small the tensor is.
    """
    named = read_layout(tensor._replace(shape=layout.tile), rules.threads_per_warp)
    is_slice = layout.kind == "slice"
    if named is None or (is_slice and len(layout.shape) > 1):
        return None
    lanes, warps = (extent_along(bases, named.shape, axis) for bases in (named.lane, named.warp))
    extent = layout.shape[axis]
    others = tensor.elements // extent
    if not _is_fastest(tensor, layout, axis):
        return others * min(extent, lanes * extent_along(layout.warp, layout.shape, axis))
    if warps == 1 and not (is_slice and layout.warp):  # those along the axis that is sliced away count too
        return 0
    threads = 1 << len(layout.lane) + len(layout.warp)
    return max(others * min(extent // min(extent, lanes), warps), threads)


def _is_fastest(tensor: TensorType, layout: Layout, axis: int) -> bool:
    """Whether an axis is the fastest of the layout, or of the one that it is sliced from."""
    sliced = _SLICED.findall(tensor.layout)
    for dim in sliced:
        axis += axis >= int(dim)
    found = _FASTEST.search(tensor.layout)  # a matrix layout names none: rows are the last axis
    return axis == (int(found[1]) if found is not None else len(layout.shape) + len(sliced) - 1)


def _gathered(layout: Layout, axis: int) -> int:
    """Elements of a reduction from 2.2 until 3.7: what each warp has reduced on its own, side by side."""
    elements = extent_along(layout.warp, layout.shape, axis)
    for place, extent in enumerate(layout.shape):
        elements *= 1 if place == axis else extent
    return elements


def _converted(layout: Layout, axis: int, bits: list[int], rules: Rules) -> int:
    """Bytes of a reduction from 3.8 on: a conversion that gives one warp's lanes what the warps hold.

    With more warps than lanes can take at once, it takes several.
    """
    held = _reduced_in_warp(layout, axis)
    most = 0
    while held.shape[axis] > 1:
        lanes, warps = list(held.lane), list(held.warp)
        far = [bit for bit, basis in enumerate(warps) if held.moves(basis, axis)]
        free = [bit for bit, basis in enumerate(lanes) if not basis]
        for lane, warp in zip(free if len(free) >= len(far) else range(len(lanes)), far, strict=False):
            lanes[lane], warps[warp] = warps[warp], lanes[lane]
        target = replace(held, lane=tuple(lanes), warp=tuple(warps))
        taken = 0
        for width in bits:
            taken += swizzled_elements(held, target, width, *rules.accesses(width)) * width // 8
        most = max(most, taken)
        held = _reduced_in_warp(target, axis)
    return most


def _reduced_in_warp(layout: Layout, axis: int) -> Layout:
    """What is left along an axis when every warp has reduced its own: one place for each warp there."""
    far = [basis for basis in layout.warp if layout.moves(basis, axis)]
    shape = tuple(1 << len(far) if a == axis else extent for a, extent in enumerate(layout.shape))

    def moved(basis: int, along: int) -> int:
        stride, number = 1, 0
        for a, extent in enumerate(shape):
            number += (along if a == axis else layout.moves(basis, a)) * stride
            stride *= extent
        return number

    register = dict.fromkeys(moved(basis, 0) for basis in layout.register)
    register.pop(0, None)
    return replace(
        layout,
        shape=shape,
        register=tuple(register),
        lane=tuple(moved(basis, 0) for basis in layout.lane),
        warp=tuple(moved(b, 1 << far.index(b) if b in far else 0) for b in layout.warp),
    )


def _atomic(
    instruction: Instruction, module: Module, language: Language, rules: Rules, *, is_used: bool
) -> int | None:
    types = language.types(instruction, module)
    if not types:  # one element, for all threads to read
        found = _SCALAR.search(instruction.text)
        if found is None:
            return None
        if not is_used and rules.since((3, 2)) is not False:
            return 0
        return max(8, int(found[1] or found[2])) // 8
    if not is_used or rules.since((3, 4)) is False:
        return 0
    layout = read_layout(types[-1], rules.threads_per_warp)
    if layout is None:
        return None
    if layout.is_one_to_one:
        return 0
    # Several threads have one element: one of them does the work and tells the others.
    return types[-1].elements * max(8, types[-1].bits) // 8 if rules.since((3, 6)) else None


def _scan(instruction: Instruction, module: Module, language: Language, rules: Rules) -> int | None:
    """Bytes of a scan: the last element of each run that one warp holds; known from 3.6 on."""
    found = _AXIS.search(instruction.text)
    types = language.types(instruction, module)
    inputs = types[: len(instruction.operands.reads)]
    layout = read_layout(inputs[0], rules.threads_per_warp) if inputs else None
    if found is None or layout is None or int(found[1]) >= len(layout.shape):
        return None
    axis = int(found[1])
    if layout.kind in ("mma", "mfma", "wmma"):
        return None
    if extent_along(layout.warp, layout.shape, axis) == 1:
        return 0
    if not rules.since((3, 6)):
        return None
    run = layout.contiguous[axis] * extent_along(layout.lane, layout.shape, axis)
    return inputs[0].elements // run * sum(-(-element_bits(tensor) // 8) for tensor in inputs)


def most_bytes(instruction: Instruction, module: Module, language: Language, rules: Rules) -> int | None:
    """Bytes that a conversion cannot take more than; None for other operations.

    Without its layouts, that is a tile of the whole tensor, with padding for one access of a thread.
    """
    types = language.types(instruction, module)
    if not instruction.opcode.endswith("convert_layout") or len(types) != 2:
        return None
    bits = max(8, element_bits(types[0]))
    layouts = [read_layout(tensor, rules.threads_per_warp) for tensor in types]
    known = [layout for layout in layouts if layout is not None]
    if len(known) == 2:
        return max(_conversion_sizes(known[0], known[1], bits, rules))
    access = max(128 // bits, *(max(layout.contiguous) for layout in known), 1)
    elements = types[0].elements
    return max(elements // extent * (extent + access) for extent in types[0].shape) * bits // 8


def element_bits(tensor: TensorType) -> int:
    """Bits of an element in a register: an address is one itself."""
    return 64 if tensor.element.startswith("!tt.ptr") else tensor.bits


def captured_bytes(instruction: Instruction) -> int | None:
    """Bytes of the values that partitions are handed, packed; None where their types are not in the text.

    **Source**: WarpSpecializeOp::getCaptureSizeAlign, getSharedMemorySize in Triton's
    lib/Dialect/TritonGPU/IR.
    """
    found = _TYPES.search(instruction.text)
    if found is None:
        return None
    size = 0
    for kind in split_list(found[1], "<>[](){}"):
        scalar = _CAPTURED.match(kind)
        if scalar is not None:
            size += -(-int(scalar[1]) // 8)
        elif "memdesc<" in kind and "tensor_memory" not in kind:
            size += 8 + 4 * len(_EXTENT.findall(kind.partition("<")[2].partition(",")[0]))
        elif kind.startswith("!"):
            size += 8
        else:
            return None
    return size


def partition_warps(instruction: Instruction) -> int | None:
    """Warps of all partitions but the default one; None where the text does not tell."""
    found = _WARPS.findall(instruction.text)
    return sum(int(warps) for warps in found) if found else None
