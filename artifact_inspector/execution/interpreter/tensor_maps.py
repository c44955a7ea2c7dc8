"""Copies by the tensor memory accelerator: boxes of tensors, as described by tensor maps.

A tensor map made by the host is a kernel parameter; its box is the block in the kernel's type, limited by the
swizzle. A tensor map made by the kernel is read from the memory where the kernel stored it.

**Source** CUDA driver API, `cuTensorMapEncodeTiled` (the inner extent of a box is at most that of the
swizzle, no extent exceeds 256); Triton, `TMAUtilities.cpp`, `getTMABlockShape`. The 128 bytes of a map: the
code that ptxas generates for each `tensormap.replace` (PTX ISA, "tensormap.replace", numbers the types).
"""

from __future__ import annotations

import re
import struct
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from artifact_inspector.execution.interpreter.footprints import FootprintAccess
from artifact_inspector.execution.interpreter.global_memory import GlobalMemory
from artifact_inspector.execution.interpreter.machine import Machine
from artifact_inspector.execution.interpreter.observation import GlobalAccess
from artifact_inspector.execution.interpreter.values import (
    BoolArray,
    IntArray,
    Mask,
    UnknownValue,
    Value,
    broadcast_mask,
    broadcast_value,
    data_of,
    has_lanes,
)
from artifact_inspector.execution.launch import Tensor

PARAMETER_WINDOW = 0x6000_0000_0000
"""Generic address of the kernel parameters, chosen by this tool."""
SWIZZLE_BYTES = 128
"""Bytes of the widest swizzle."""
MOST_BOX_EXTENT = 256
BOX_ROW_UNIT = 16
"""Granularity of a box row in bytes."""

_BLOCK = re.compile(r"tensordesc<(?:tensor<)?((?:\d{1,9}x)+)")


class TensorDescriptor(NamedTuple):
    """A tensor and the block of it that the kernel reads or writes at a time."""

    name: str
    tensor: Tensor
    block: tuple[int, ...]
    is_whole_block: bool = False
    """Whether one copy moves the whole block."""

    @property
    def box(self) -> tuple[int, ...]:
        """The extents of one copy in elements, outermost first."""
        if self.is_whole_block:
            return self.block
        *outer, inner = self.block
        inner = min(inner, SWIZZLE_BYTES * 8 // self.tensor.bits)
        return (*(min(extent, MOST_BOX_EXTENT) for extent in outer), inner)


def parse_block(descriptor_type: str) -> tuple[int, ...]:
    """The block in the type of a descriptor.

    Example:
        >>> parse_block("!tt.tensordesc<tensor<128x64xf16>>")
        (128, 64)
    """
    match = _BLOCK.search(descriptor_type)
    return () if match is None else tuple(int(extent) for extent in match[1].rstrip("x").split("x"))


MAP_BYTES = 128
"""Bytes of a tensor map."""
_ELEMENT_TYPES = {0: "u8", 1: "u16", 2: "u32", 3: "i32", 4: "u64", 5: "i64", 6: "f16", 7: "f32", 8: "f32",
             9: "f64", 10: "bf16", 11: "f32", 12: "f32"}  # fmt: skip
"""Element type by its number in a map; types of fewer than 8 bits are not supported."""


def decode_map(map_bytes: bytes) -> TensorDescriptor | None:
    """The descriptor in the 128 bytes of a tensor map; None if its element type is not supported.

    | offset | content |
    |---|---|
    | 0 | address |
    | 8 | bits 4 to 6: rank - 1; bits 7 to 10: element type |
    | 12 | strides of the outer extents in 16 bytes, 32 bits each; their bits 32 to 35 from 28 on |
    | 32 | extents - 1, the innermost first |
    | 55 | box extents - 1, one byte each |
    """
    type_word = int.from_bytes(map_bytes[8:12], "little")
    element, rank = _ELEMENT_TYPES.get(type_word >> 7 & 15), (type_word >> 4 & 7) + 1
    if element is None or rank > 5:
        return None
    (low, *extents) = struct.unpack_from(f"<Q{'24x'}{rank}I", map_bytes)
    strides = [1]
    bits = Tensor((1,), element).bits
    for axis in range(rank - 1):
        high = map_bytes[28 + axis // 2] >> (4 * (axis % 2)) & 15
        strides.append(((high << 32 | struct.unpack_from("<I", map_bytes, 12 + 4 * axis)[0]) << 4) * 8 // bits)
    shape = tuple(extent + 1 for extent in reversed(extents))
    box = tuple(extent + 1 for extent in reversed(map_bytes[55 : 55 + rank]))
    return TensorDescriptor("a tensor", Tensor(shape, element, tuple(reversed(strides)), low), box, True)


def read_maps(memory: GlobalMemory, addresses: IntArray) -> list[tuple[TensorDescriptor | None, IntArray]]:
    """The descriptors at some addresses, each with its addresses; None for one that cannot be decoded.

    Most CTAs that make a map make the same map.
    """
    maps = memory.content_at(addresses, MAP_BYTES)
    if maps is None:
        return [(None, addresses)]
    if (maps == maps[0]).all():
        return [(decode_map(maps[0].tobytes()), addresses)]
    distinct_maps, map_index = np.unique(maps, axis=0, return_inverse=True)
    return [
        (decode_map(distinct_map.tobytes()), addresses[map_index.ravel() == number])
        for number, distinct_map in enumerate(distinct_maps)
    ]


def record_box_copies(
    machine: Machine,
    descriptor: TensorDescriptor,
    coordinates: Sequence[Value],
    *,
    reads: bool,
    updates: bool = False,
    mask: Mask = True,
) -> None:
    """Record the copies of the active warps.

    Args:
        coordinates: of each lane, innermost first.
        reads: whether it copies from global memory; otherwise it copies to it.
        updates: whether it adds to the old content.
        mask: active lanes that use this descriptor.
    """
    counts, index = machine.counters, machine.step.index
    if machine.undecided_lanes is not None:
        counts.mark_unknown(index, machine.undecided_lanes.missing_inputs)
    if not has_lanes(machine.active_mask):
        return
    first_lanes = broadcast_mask(machine.active_mask & mask, machine.shape)[:, :: machine.warp_size]
    rows, warps = np.nonzero(first_lanes)
    lanes = warps * machine.warp_size
    for value in coordinates:
        if isinstance(value, UnknownValue) and broadcast_mask(value.unknown_bits, machine.shape)[rows, lanes].any():
            counts.mark_unknown(index, value.missing_inputs)
            return
    origins = np.stack([broadcast_value(data_of(value), machine.shape)[rows, lanes] for value in coordinates])
    starts = (origins[::-1] ^ 0x80000000) - 0x80000000
    is_inside = _boxes_inside(descriptor, starts)
    if not machine.uses_affine and not (is_inside.all() and np.array_equal(rows, np.arange(machine.rows))):
        is_inside[:] = False
    if is_inside.any() and _record_whole_boxes(
        machine, descriptor, starts[:, is_inside], rows[is_inside], reads, updates
    ):
        starts, rows = starts[:, ~is_inside], rows[~is_inside]
    for box_index, row in enumerate(rows.tolist()):
        addresses = _box_addresses(descriptor, starts[:, box_index].tolist())
        if not addresses.size:
            continue
        counts.bytes_requested[index] += addresses.size * BOX_ROW_UNIT
        own_row = np.array([row])
        access = FootprintAccess(index, machine.ctas[own_row], addresses.reshape(1, -1), None, reads, own_row)
        _record_boxes(machine, access)
        machine.memory.touch(addresses, BOX_ROW_UNIT, is_write=not reads, updates=updates)


def _boxes_inside(descriptor: TensorDescriptor, starts: IntArray) -> BoolArray:
    """Whether each box is entirely inside its tensor."""
    rank = len(descriptor.tensor.shape)
    box = np.array([*descriptor.box, *(1 for _ in range(rank - len(descriptor.box)))], np.int64)[:rank]
    outside = (starts < 0) | (starts + box[:, None] > np.array(descriptor.tensor.shape)[:, None])
    inside: BoolArray = np.logical_not(outside.any(axis=0))
    return inside


def _record_whole_boxes(
    machine: Machine, descriptor: TensorDescriptor, starts: IntArray, rows: IntArray, reads: bool, updates: bool
) -> bool:
    """Record complete boxes all at once; False, with nothing recorded, if they are misaligned."""
    memory, index = machine.memory, machine.step.index
    addresses = _box_addresses(descriptor, starts[:, 0].tolist())
    strides = np.array(descriptor.tensor.strides, np.int64)[:, None]
    cta_offsets = ((starts - starts[:, :1]) * strides).sum(axis=0) * descriptor.tensor.bits // 8
    if not memory.touch_offsets(addresses, cta_offsets, BOX_ROW_UNIT, is_write=not reads, updates=updates):
        return False
    machine.counters.bytes_requested[index] += addresses.size * BOX_ROW_UNIT * len(rows)
    ctas = machine.ctas[rows]
    _record_boxes(machine, FootprintAccess(index, ctas, addresses.reshape(1, -1), None, reads, rows, cta_offsets))
    return True


def _record_boxes(machine: Machine, access: FootprintAccess) -> None:
    machine.memory.record(access)
    if machine.memory.observer is not None:
        _, ctas, addresses, mask, is_read, _, cta_offsets = access
        machine.memory.observe(
            GlobalAccess(machine.step, ctas, addresses, mask, cta_offsets, BOX_ROW_UNIT, not is_read, is_box=True)
        )


def _box_addresses(descriptor: TensorDescriptor, start: Sequence[int]) -> IntArray:
    """Addresses of the 16-byte units of a box that are inside the tensor."""
    tensor, box = descriptor.tensor, descriptor.box
    rank = len(tensor.shape)
    unit_elements = BOX_ROW_UNIT * 8 // tensor.bits
    offsets: IntArray = np.zeros(1, np.int64)
    for axis in range(rank):
        step = unit_elements if axis == rank - 1 else 1
        low, extent = start[axis], box[axis] if axis < len(box) else 1
        indices = np.arange(max(low, 0), min(low + extent, tensor.shape[axis]), step, dtype=np.int64)
        offsets = (offsets[:, None] + indices[None, :] * tensor.strides[axis]).reshape(-1)
    return (tensor.pointer or 0) + offsets * tensor.bits // 8
