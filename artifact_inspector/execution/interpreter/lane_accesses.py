"""Lanes of a memory access and their addresses; CTAs that differ by an offset share one row."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from artifact_inspector.execution.interpreter.affine import AffineValue
from artifact_inspector.execution.interpreter.cta_offsets import offset_facts, share_offsets
from artifact_inspector.execution.interpreter.machine import Machine
from artifact_inspector.execution.interpreter.values import (
    BoolArray,
    IntArray,
    Mask,
    UnknownValue,
    Value,
    data_of,
    has_lanes,
)

_LANES_PER_SET = 1 << 13
"""Lanes whose individual count takes as long as that of one set of lanes."""


class LaneAccesses(NamedTuple):
    """Addresses of the lanes that access memory."""

    addresses: IntArray
    """Shape (CTAs or 1, threads)."""
    mask: BoolArray | None
    """Lanes that take part, same shape; None means all."""
    multiplicity: int
    """CTAs that one row represents."""
    cta_offsets: IntArray | None = None
    """Byte offset of each CTA from the one row of addresses, if CTAs share it."""
    participating_ctas: BoolArray | None = None
    """Mask of the CTAs that `starts` lists; the others access nothing. None means all."""

    @property
    def expanded(self) -> LaneAccesses:
        """The same lanes with one row per CTA."""
        if self.cta_offsets is None:
            return self
        if self.participating_ctas is None:
            rows = self.cta_offsets[:, None] + self.addresses
            return LaneAccesses(rows, None if self.mask is None else np.broadcast_to(self.mask, rows.shape), 1)
        rows = np.broadcast_to(self.addresses, (len(self.participating_ctas), self.addresses.shape[1])).copy()
        rows[self.participating_ctas] += self.cta_offsets[:, None]
        on = self.participating_ctas[:, None] if self.mask is None else self.participating_ctas[:, None] & self.mask
        return LaneAccesses(rows, np.broadcast_to(on, rows.shape), 1)

    def participating(self, ctas: IntArray) -> IntArray:
        """Those of the given CTAs that take part."""
        return ctas if self.participating_ctas is None else ctas[self.participating_ctas]

    def representatives(self, modulus: int) -> list[LaneAccesses]:
        """One representative for CTAs whose addresses are equal modulo `modulus` bytes: they cost the same."""
        if self.cta_offsets is None:
            return [self]
        classes = offset_facts(self.cta_offsets).classes
        if modulus not in classes:
            classes[modulus] = find_offset_classes(self.cta_offsets[None], modulus)
        return [
            LaneAccesses(self.addresses + self.cta_offsets[cta], self.mask, multiplicity)
            for cta, multiplicity in classes[modulus]
        ]

    @property
    def active_addresses(self) -> IntArray:
        """Addresses of the lanes that take part, flat."""
        return self.addresses.ravel() if self.mask is None else self.addresses[self.mask]


def find_lane_accesses(
    machine: Machine, address: Value, mask: Mask | None = None, *, allows_offsets: bool = False
) -> LaneAccesses | None:
    """The lanes that access an address; None if there are none or the address is unknown.

    Args:
        address: of each lane.
        mask: lanes that take part; None means the active lanes.
        allows_offsets: whether CTAs that differ by an offset may share one row.
    """
    mask = machine.active_mask if mask is None else mask
    if machine.undecided_lanes is not None:
        machine.counters.mark_unknown(machine.step.index, machine.undecided_lanes.missing_inputs)
    if not has_lanes(mask):
        return None
    if isinstance(address, UnknownValue) and has_lanes(machine.intersect(mask, address.unknown_bits)):
        machine.counters.mark_unknown(machine.step.index, address.missing_inputs)
        return None
    data = data_of(address)
    if allows_offsets and isinstance(data, AffineValue) and (lanes_and_ctas := _split_mask(mask)) is not None:
        return _offset_accesses(data, *lanes_and_ctas)
    addresses = np.atleast_2d(np.asarray(data, np.int64))
    rows = max(addresses.shape[0], 1 if isinstance(mask, bool) else mask.shape[0])
    shape = (rows, machine.threads)
    lanes = None if mask is True else np.broadcast_to(mask, shape)
    return LaneAccesses(np.broadcast_to(addresses, shape), lanes, machine.rows // rows)


def _offset_accesses(
    address: AffineValue, active_lanes: BoolArray | None, participating_ctas: BoolArray | None
) -> LaneAccesses:
    row_mask = None if active_lanes is None else np.broadcast_to(active_lanes, address.lanes.shape)
    starts = address.rows[:, 0] if participating_ctas is None else address.rows[participating_ctas, 0]
    return LaneAccesses(address.lanes + starts[0], row_mask, 1, share_offsets(starts), participating_ctas)


def find_lane_sets(machine: Machine, address: Value, mask: Mask) -> list[LaneAccesses]:
    """The same for each set of lanes that CTAs have in a mask: these differ by an offset. None if there are many."""
    is_sole = machine.undecided_lanes is None and machine.memory.observer is None and machine.memory.values is None
    has_no_result = is_sole and (machine.step.only_counts or machine.step.kind == "global_store")
    if not has_no_result or not isinstance(address, AffineValue) or isinstance(mask, bool) or _split_mask(mask):
        return []
    rows = np.ascontiguousarray(np.packbits(mask, axis=1))
    _, first, of_cta = np.unique(rows.view(f"V{rows.shape[1]}")[:, 0], return_index=True, return_inverse=True)
    if len(first) * _LANES_PER_SET > mask.size:
        return []
    sets = [(mask[row][None], of_cta == number) for number, row in enumerate(first.tolist()) if mask[row].any()]
    return [_offset_accesses(address, None if lanes.all() else lanes, ctas) for lanes, ctas in sets]


def _split_mask(mask: Mask) -> tuple[BoolArray | None, BoolArray | None] | None:
    """A mask as (lanes, CTAs), if every CTA that takes part has the same lanes; otherwise None."""
    if isinstance(mask, bool):
        return None, None
    if len(mask) == 1:
        return mask, None
    participating_ctas = np.asarray(mask.any(axis=1))
    lanes = mask[participating_ctas.argmax()][None]
    if mask.shape[1] > 1 and not (mask == (participating_ctas[:, None] & lanes)).all():
        return None
    return None if lanes.all() else lanes, None if participating_ctas.all() else participating_ctas


def find_offset_classes(offsets: IntArray, modulus: int) -> list[tuple[int, int]]:
    """One representative for each class of CTAs whose offsets are equal modulo `modulus`, and the class sizes.

    Args:
        offsets: shape (related accesses, CTAs).
        modulus: bytes, a power of two.
    """
    residues = offsets & (modulus - 1)
    if (residues == residues[:, :1]).all():
        return [(0, residues.shape[1])]
    key = (residues * modulus ** np.arange(len(residues))[:, None]).sum(axis=0)
    _, first, count = np.unique(key, return_index=True, return_counts=True)
    return list(zip(first.tolist(), count.tolist(), strict=True))


def merge_equal_rows(lanes: LaneAccesses, modulus: int) -> LaneAccesses:
    """One row for all CTAs, if they differ by a multiple of `modulus` bytes only.

    Sectors, cache lines and banks of a warp do not change by that offset.
    """
    addresses, mask = lanes.addresses, lanes.mask
    rows = len(addresses)
    if rows == 1 or not have_equal_rows(addresses, mask, modulus):
        return lanes
    return LaneAccesses(addresses[:1], None if mask is None else mask[:1], lanes.multiplicity * rows)


def have_equal_rows(addresses: IntArray, mask: BoolArray | None, modulus: int) -> bool:
    """Whether all CTAs access the same addresses plus a multiple of `modulus` bytes."""
    offsets = addresses[:, :1] - addresses[:1, :1]
    if (offsets & (modulus - 1)).any() or (mask is not None and not (mask == mask[:1]).all()):
        return False
    return bool((addresses - offsets == addresses[:1]).all())
