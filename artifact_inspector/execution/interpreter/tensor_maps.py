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
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from artifact_inspector.execution.interpreter.footprints import Access
from artifact_inspector.execution.interpreter.lanes import Mask, Unknown, data_of, is_true, spread
from artifact_inspector.execution.launch import Tensor

if TYPE_CHECKING:
    from artifact_inspector.execution.interpreter.machine import Machine
    from artifact_inspector.execution.interpreter.memory import Memory

WINDOW = 0x6000_0000_0000
"""Generic address of the kernel parameters, chosen by this tool."""
SWIZZLE = 128
"""Bytes of the widest swizzle."""
MOST_EXTENT = 256
PIECE = 16
"""Granularity of a box row in bytes."""

_BLOCK = re.compile(r"tensordesc<(?:tensor<)?((?:\d{1,9}x)+)")


class Descriptor(NamedTuple):
    """A tensor and the block of it that the kernel reads or writes at a time."""

    name: str
    tensor: Tensor
    block: tuple[int, ...]
    whole: bool = False
    """Whether one copy moves the whole block."""

    @property
    def box(self) -> tuple[int, ...]:
        """The extents of one copy in elements, outermost first."""
        if self.whole:
            return self.block
        *outer, inner = self.block
        inner = min(inner, SWIZZLE * 8 // self.tensor.bits)
        return (*(min(extent, MOST_EXTENT) for extent in outer), inner)


def parse_block(kind: str) -> tuple[int, ...]:
    """The block in the type of a descriptor.

    Example:
        >>> parse_block("!tt.tensordesc<tensor<128x64xf16>>")
        (128, 64)
    """
    found = _BLOCK.search(kind)
    return () if found is None else tuple(int(part) for part in found[1].rstrip("x").split("x"))


MAP = 128
"""Bytes of a tensor map."""
_ELEMENTS = {0: "u8", 1: "u16", 2: "u32", 3: "i32", 4: "u64", 5: "i64", 6: "f16", 7: "f32", 8: "f32",
             9: "f64", 10: "bf16", 11: "f32", 12: "f32"}  # fmt: skip
"""Element type by its number in a map; types of fewer than 8 bits are not supported."""


def decode_map(held: bytes) -> Descriptor | None:
    """The descriptor in the 128 bytes of a tensor map; None if its element type is not supported.

    | offset | content |
    |---|---|
    | 0 | address |
    | 8 | bits 4 to 6: rank - 1; bits 7 to 10: element type |
    | 12 | strides of the outer extents in 16 bytes, 32 bits each; their bits 32 to 35 from 28 on |
    | 32 | extents - 1, the innermost first |
    | 55 | box extents - 1, one byte each |
    """
    kinds = int.from_bytes(held[8:12], "little")
    element, rank = _ELEMENTS.get(kinds >> 7 & 15), (kinds >> 4 & 7) + 1
    if element is None or rank > 5:
        return None
    (low, *extents) = struct.unpack_from(f"<Q{'24x'}{rank}I", held)
    strides = [1]
    bits = Tensor((1,), element).bits
    for axis in range(rank - 1):
        high = held[28 + axis // 2] >> (4 * (axis % 2)) & 15
        strides.append(((high << 32 | struct.unpack_from("<I", held, 12 + 4 * axis)[0]) << 4) * 8 // bits)
    shape = tuple(extent + 1 for extent in reversed(extents))
    box = tuple(extent + 1 for extent in reversed(held[55 : 55 + rank]))
    return Descriptor("a tensor", Tensor(shape, element, tuple(reversed(strides)), low), box, True)


def read_maps(memory: Memory, places: NDArray[np.int64]) -> list[tuple[Descriptor | None, NDArray[np.int64]]]:
    """The descriptors at some addresses, each with its addresses; None for one that cannot be decoded.

    Most CTAs that make a map make the same map.
    """
    maps = memory.content_at(places, MAP)
    if maps is None:
        return [(None, places)]
    if (maps == maps[0]).all():
        return [(decode_map(maps[0].tobytes()), places)]
    kinds, which = np.unique(maps, axis=0, return_inverse=True)
    return [(decode_map(kind.tobytes()), places[which.ravel() == at]) for at, kind in enumerate(kinds)]


def copy_box(
    machine: Machine,
    held: Descriptor,
    coordinates: Sequence[Any],
    *,
    reads: bool,
    updates: bool = False,
    mask: Mask = True,
) -> None:
    """Record the copies of the active warps.

    Args:
        machine: the machine.
        held: the descriptor.
        coordinates: of each lane, innermost first.
        reads: whether it copies from global memory; otherwise it copies to it.
        updates: whether it adds to the old content.
        mask: active lanes that use this descriptor.
    """
    counts, index = machine.counts, machine.step.index
    if machine.maybe is not None:
        counts.mark(index, machine.maybe.why)
    if not is_true(machine.on):
        return
    warps_on = machine.on if machine.on is True else machine.on[:, :: machine.program.warp]
    warps_of = mask if mask is True else mask[:, :: machine.program.warp]
    first = spread(warps_on & warps_of, (machine.rows, machine.threads // machine.program.warp))
    rows, warps = np.nonzero(first)
    lanes = warps * machine.program.warp
    for value in coordinates:
        if isinstance(value, Unknown) and spread(value.bad, machine.shape)[rows, lanes].any():
            counts.mark(index, value.why)
            return
    at = np.stack([spread(data_of(value), machine.shape)[rows, lanes] for value in coordinates])
    starts = (at[::-1] ^ 0x80000000) - 0x80000000
    alike = _are_inside(held, starts)
    if not machine.sums and not (alike.all() and np.array_equal(rows, np.arange(machine.rows))):
        alike[:] = False
    if alike.any() and _copy_alike(machine, held, starts[:, alike], rows[alike], reads, updates):
        starts, rows = starts[:, ~alike], rows[~alike]
    for column, row in enumerate(rows.tolist()):
        addresses = _addresses(held, starts[:, column].tolist())
        if not addresses.size:
            continue
        counts.bytes[index] += addresses.size * PIECE
        footprints = machine.memory.footprints
        if footprints is not None:
            cta = machine.ctas[row : row + 1]
            footprints.add(Access(index, cta, addresses.reshape(1, -1), None, reads, row))
        machine.memory.touch(addresses, PIECE, reads=reads, writes=not reads, updates=updates)


def _are_inside(held: Descriptor, starts: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Whether each box is entirely inside its tensor."""
    rank = len(held.tensor.shape)
    box = np.array([*held.box, *(1 for _ in range(rank - len(held.box)))], np.int64)[:rank]
    outside = (starts < 0) | (starts + box[:, None] > np.array(held.tensor.shape)[:, None])
    inside: NDArray[np.bool_] = np.logical_not(outside.any(axis=0))
    return inside


def _copy_alike(
    machine: Machine,
    held: Descriptor,
    starts: NDArray[np.int64],
    rows: NDArray[np.int64],
    reads: bool,
    updates: bool,
) -> bool:
    """Record complete boxes all at once; False, with nothing recorded, if they are misaligned."""
    memory, index = machine.memory, machine.step.index
    addresses = _addresses(held, starts[:, 0].tolist())
    strides = np.array(held.tensor.strides, np.int64)[:, None]
    apart = ((starts - starts[:, :1]) * strides).sum(axis=0) * held.tensor.bits // 8
    if not memory.touch_alike(addresses, apart, PIECE, reads=reads, writes=not reads, updates=updates):
        return False
    machine.counts.bytes[index] += addresses.size * PIECE * len(rows)
    if memory.footprints is not None:
        memory.footprints.add(
            Access(index, machine.ctas[rows], addresses.reshape(1, -1), None, reads, starts=apart)
        )
    return True


def _addresses(held: Descriptor, start: Sequence[int]) -> Any:
    """Addresses of the 16-byte units of a box that are inside the tensor."""
    tensor, box = held.tensor, held.box
    rank = len(tensor.shape)
    each = PIECE * 8 // tensor.bits
    offsets: Any = np.zeros(1, np.int64)
    for axis in range(rank):
        step = each if axis == rank - 1 else 1
        low, extent = start[axis], box[axis] if axis < len(box) else 1
        places = np.arange(max(low, 0), min(low + extent, tensor.shape[axis]), step, dtype=np.int64)
        offsets = (offsets[:, None] + places[None, :] * tensor.strides[axis]).reshape(-1)
    return (tensor.pointer or 0) + offsets * tensor.bits // 8
