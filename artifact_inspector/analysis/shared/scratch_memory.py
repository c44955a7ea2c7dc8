"""Shared memory that an operation uses while it runs: reductions, conversions, atomics.

It is not visible in the text. Triton's allocator computes it from types and layouts, and so does this module.

Source: lib/Analysis/Allocation.cpp and Utility.cpp of Triton 2.1 to 3.9 (ReduceOpHelper, getScratchConfigForCvt,
getNumScratchElemsSwizzledCvt, getScratchValueSize).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from artifact_inspector.analysis.flow.function_code import FunctionCode
from artifact_inspector.analysis.shared.register_layouts import Layout, extent_along, read_layout
from artifact_inspector.analysis.shared.swizzling import (
    MATRIX,
    TRANSPOSED,
    VECTOR,
    ConversionReach,
    WideAccess,
    find_conversion_reach,
    padded_elements,
    swapped_bits,
    swizzled_elements,
)
from artifact_inspector.model import Instruction, Release, TensorType, TritonVersion
from artifact_inspector.model.encoding import LayoutKind
from artifact_inspector.model.shared import SharedRole, SharedUse

POINTER = 64
"""Bits of an address."""
_TENSORMAP = 128
"""Bytes of a tensor map, which is built in shared memory."""


class ScratchRules(NamedTuple):
    """Parameters of the sizes besides the types."""

    release: Release | None
    """Triton's version; None for an unknown version from 3.3 on."""
    threads_per_warp: int
    has_clusters: bool
    """Several CTAs share the work of a block. The distribution of a tensor over them is not modelled."""
    capability: int | None
    """NVIDIA's compute capability: 90 for sm_90; None for AMD, or if unknown."""

    def accesses(self, bits: int) -> tuple[tuple[WideAccess, ...], tuple[WideAccess, ...]]:
        """Wide stores to, and loads from, shared memory that a conversion may use."""
        if self.capability is None:
            return (), ()
        matrix = (*((MATRIX,) if bits <= 32 else ()), *((TRANSPOSED,) if bits == 16 else ()))
        stores = (VECTOR, *(matrix if self.capability >= 90 else ()))
        return stores, (VECTOR, *(matrix if self.capability >= 75 else ()))

    def since(self, release: Release) -> bool | None:
        """Whether the version is that or later; None if unknown."""
        return None if self.release is None else self.release >= release


def find_scratch_rules(code: FunctionCode, triton: TritonVersion | None) -> ScratchRules:
    """The rules of a module, from its own text and the version in its metadata."""
    launch = code.language.launch_parameters(code.module)
    return ScratchRules(
        (None if triton is None else triton.release) or launch.release,
        launch.lanes or 32,
        (launch.ctas or 1) != 1,
        launch.capability,
    )


def scratch_bytes(instruction: Instruction, code: FunctionCode, rules: ScratchRules, *, is_used: bool) -> int | None:
    """Bytes that an operation uses while it runs; None if unknown."""
    use = code.language.shared_use(instruction)
    if use.role is SharedRole.TENSOR_MAP:
        return _TENSORMAP
    if rules.has_clusters:
        return None
    types = code.language.tensor_types(instruction, code.module)
    if use.role is SharedRole.CONVERSION:
        return _conversion(types, rules) if len(types) == 2 else None
    if use.role is SharedRole.HISTOGRAM:
        return max(types[-1].elements, rules.threads_per_warp) * types[-1].bits // 8 if types else None
    if use.role is SharedRole.ATOMIC:
        return _atomic(use, types, rules, is_used=is_used)
    if use.role in (SharedRole.REDUCTION, SharedRole.SCAN):
        inputs = types[: len(instruction.operands.reads)]
        layout = read_layout(inputs[0], rules.threads_per_warp) if inputs else None
        if use.axis is None or layout is None or use.axis >= len(layout.shape):
            return None
        measure = _reduction if use.role is SharedRole.REDUCTION else _scan
        return measure(inputs, layout, use.axis, rules)
    return None if use.role is SharedRole.GATHER else 0


def _conversion(types: tuple[TensorType, ...], rules: ScratchRules) -> int | None:
    source, target = (read_layout(t, rules.threads_per_warp) for t in types)
    if types[0].is_memory or types[1].is_memory or types[0].layout == types[1].layout:
        return 0
    if source is None or target is None:
        return None
    return conversion_bytes(source, target, element_bits(types[0]), rules)


@lru_cache(maxsize=512)
def conversion_bytes(source: Layout, target: Layout, bits: int, rules: ScratchRules) -> int | None:
    """Bytes that a conversion uses; None if they depend on an unknown version."""
    sizes = _conversion_sizes(source, target, bits, rules)
    return sizes.pop() if len(sizes) == 1 else None


def _conversion_sizes(source: Layout, target: Layout, bits: int, rules: ScratchRules) -> set[int]:
    """The possible sizes of a conversion: several if the version is unknown or does not decide it."""
    far = find_conversion_reach(source, target)
    width = max(8, bits)
    if _is_unmodelled(source, target, far, rules):
        return {0, _padded_tensor_bytes(source.shape, (source, target), width)}
    if far is ConversionReach.THREAD:
        return {0}
    if far is ConversionReach.WARP and rules.since((3, 3)) is not False and swapped_bits(source, target) < 2:
        return {0}  # Triton shuffles at most one bit, then prefers shared memory
    if rules.since((3, 6)):
        return {swizzled_elements(source, target, width, *rules.accesses(width)) * width // 8}
    padded = padded_elements(source, target, width, rules.release or (3, 4)) * width // 8
    if rules.since((3, 4)) is False:
        return {padded}
    # Between 3.4 and 3.5 one method replaced the other.
    access_options = ((), rules.accesses(width))
    return {padded, *(swizzled_elements(source, target, width, *accesses) * width // 8 for accesses in access_options)}


def _is_unmodelled(source: Layout, target: Layout, far: ConversionReach, rules: ScratchRules) -> bool:
    """Whether a version treats such a conversion in a special way that is not modelled."""
    kinds = {*source.kinds, *target.kinds}
    operand, sliced = LayoutKind.DOT_OPERAND in kinds, LayoutKind.SLICE in kinds
    results = source.kind is target.kind is LayoutKind.MMA
    copies = any(0 in (*side.lane, *side.warp) for side in (source, target))  # of an element that another thread holds
    by_one_warp = far is not find_conversion_reach(source, target, passes_copies=False)
    return any(
        unlike and rules.since(first) is not False and rules.since(stop) is not True
        for first, stop, unlike in (
            ((2, 0), (3, 2), operand or results or (far is ConversionReach.THREAD and copies)),
            ((2, 0), (3, 3), operand and (sliced or rules.capability is None)),
            ((2, 0), (3, 5), far is ConversionReach.WARP and copies),
            ((3, 3), (3, 6), LayoutKind.MMA in kinds and (sliced or LayoutKind.LINEAR in kinds)),
            ((3, 8), (9, 9), sliced and (operand or LayoutKind.WMMA in kinds)),
            ((3, 9), (9, 9), by_one_warp and swapped_bits(source, target) < 2),
        )
    )


def _reduction(inputs: tuple[TensorType, ...], layout: Layout, axis: int, rules: ScratchRules) -> int | None:
    bits = [max(8, element_bits(tensor)) for tensor in inputs]
    if rules.since((2, 2)) is False:
        elements = _elements_by_thread(inputs[0], layout, axis, rules)
        return None if elements is None else elements * sum(width // 8 for width in bits)
    if extent_along(layout.warp, layout.shape, axis) == 1:
        return 0
    old = _warp_partials(layout, axis) * sum(width // 8 for width in bits)
    by_conversion = rules.since((3, 8))
    if by_conversion is False:
        return old
    if layout.kind in (LayoutKind.DOT_OPERAND, LayoutKind.WMMA):
        return None  # the layout does not determine which lanes receive the warps' results
    new = _conversion_bytes_of_reduction(layout, axis, bits, rules)
    return new if by_conversion or new == old else None


def _elements_by_thread(tensor: TensorType, layout: Layout, axis: int, rules: ScratchRules) -> int | None:
    """Elements of a reduction in 2.1, where usually every thread has its own slot.

    Along the fastest axis every warp reduces its own elements; along another axis each thread writes. Lanes count as
    the layout defines them, even if the tensor is smaller.
    """
    named = read_layout(tensor._replace(shape=layout.tile), rules.threads_per_warp)
    is_slice = layout.kind is LayoutKind.SLICE
    if named is None or (is_slice and len(layout.shape) > 1):
        return None
    lanes, warps = (extent_along(bases, named.shape, axis) for bases in (named.lane, named.warp))
    extent = layout.shape[axis]
    others = tensor.elements // extent
    if not _is_fastest(tensor, layout, axis):
        return others * min(extent, lanes * extent_along(layout.warp, layout.shape, axis))
    if warps == 1 and not (is_slice and layout.warp):  # warps along the removed axis count too
        return 0
    threads = 1 << len(layout.lane) + len(layout.warp)
    return max(others * min(extent // min(extent, lanes), warps), threads)


def _is_fastest(tensor: TensorType, layout: Layout, axis: int) -> bool:
    """Whether an axis is the fastest of the layout, or of the layout that it is sliced from."""
    if tensor.encoding is None:
        return False
    sliced = [link.dim for link in tensor.encoding.chain if link.dim is not None]
    for dim in sliced:
        axis += axis >= dim
    order = tensor.encoding.root.order  # a matrix layout has no order: rows are the last axis
    return axis == (order[0] if order else len(layout.shape) + len(sliced) - 1)


def _warp_partials(layout: Layout, axis: int) -> int:
    """Elements of a reduction from 2.2 until 3.7: the partial results of all warps."""
    others = math.prod(extent for along, extent in enumerate(layout.shape) if along != axis)
    return extent_along(layout.warp, layout.shape, axis) * others


def _conversion_bytes_of_reduction(layout: Layout, axis: int, bits: list[int], rules: ScratchRules) -> int | None:
    """Bytes of a reduction from 3.8 on: a conversion that moves the warps' results to one warp's lanes.

    With more warps than lanes, several conversions are needed; without lanes the size is unknown.
    """
    current_layout = _reduced_in_warp(layout, axis)
    if not current_layout.lane:
        return None
    max_bytes = 0
    while current_layout.shape[axis] > 1:
        lanes, warps = list(current_layout.lane), list(current_layout.warp)
        far = [bit for bit, basis in enumerate(warps) if current_layout.moves(basis, axis)]
        free = [bit for bit, basis in enumerate(lanes) if not basis]
        for lane, warp in zip(free if len(free) >= len(far) else range(len(lanes)), far, strict=False):
            lanes[lane], warps[warp] = warps[warp], lanes[lane]
        target = current_layout._replace(lane=tuple(lanes), warp=tuple(warps))
        accessed = ((width, swizzled_elements(current_layout, target, width, *rules.accesses(width))) for width in bits)
        max_bytes = max(max_bytes, sum(elements * width // 8 for width, elements in accessed))
        current_layout = _reduced_in_warp(target, axis)
    return max_bytes


def _reduced_in_warp(layout: Layout, axis: int) -> Layout:
    """The layout along an axis after every warp has reduced its own elements: one per warp."""
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
    return layout._replace(
        shape=shape, register=tuple(register), lane=tuple(moved(basis, 0) for basis in layout.lane),
        warp=tuple(moved(b, 1 << far.index(b) if b in far else 0) for b in layout.warp),
    )  # fmt: skip


def _atomic(use: SharedUse, types: tuple[TensorType, ...], rules: ScratchRules, *, is_used: bool) -> int | None:
    if not types:  # one element, which all threads read
        if use.scalar_bits is None:
            return None
        if not is_used and rules.since((3, 2)) is not False:
            return 0
        return max(8, use.scalar_bits) // 8
    if not is_used or rules.since((3, 4)) is False:
        return 0
    layout = read_layout(types[-1], rules.threads_per_warp)
    if layout is None or layout.is_one_to_one:
        return None if layout is None else 0
    # Several threads share one element: one of them does the work and broadcasts the result.
    return types[-1].elements * max(8, types[-1].bits) // 8 if rules.since((3, 6)) else None


def _scan(inputs: tuple[TensorType, ...], layout: Layout, axis: int, rules: ScratchRules) -> int | None:
    """Bytes of a scan: the last element of each run that one warp holds. Known from 3.6 on."""
    if layout.kind is not LayoutKind.BLOCKED:  # Triton converts other layouts to this one before it scans
        return None
    if extent_along(layout.warp, layout.shape, axis) == 1:
        return 0
    if not rules.since((3, 6)) or 0 in layout.lane:  # lanes that hold copies may count, too
        return None
    run = layout.contiguous[axis] * extent_along(layout.lane, layout.shape, axis)
    return inputs[0].elements // run * sum(-(-element_bits(tensor) // 8) for tensor in inputs)


def max_scratch_bytes(instruction: Instruction, code: FunctionCode, rules: ScratchRules) -> int | None:
    """Upper bound of the bytes that a conversion uses; None for other operations.

    Without known layouts, this is a tile of the whole tensor, padded for one access of a thread.
    """
    types = code.language.tensor_types(instruction, code.module)
    if code.language.shared_use(instruction).role is not SharedRole.CONVERSION or len(types) != 2:
        return None
    bits = max(8, element_bits(types[0]))
    layouts = [read_layout(tensor, rules.threads_per_warp) for tensor in types]
    known_layouts = [layout for layout in layouts if layout is not None]
    if len(known_layouts) == 2:
        return max(_conversion_sizes(known_layouts[0], known_layouts[1], bits, rules))
    return _padded_tensor_bytes(types[0].shape, known_layouts, bits)


def _padded_tensor_bytes(shape: tuple[int, ...], layouts: Sequence[Layout], bits: int) -> int:
    """Bytes of a whole tensor with rows padded for the widest access of a thread."""
    access = max(128 // bits, *(max(layout.contiguous) for layout in layouts), 1)
    elements = math.prod(shape)
    return max(elements // extent * (extent + access) for extent in shape) * bits // 8


def element_bits(tensor: TensorType) -> int:
    """Bits of an element in a register; a pointer has the size of an address."""
    return POINTER if tensor.is_pointer else tensor.bits
