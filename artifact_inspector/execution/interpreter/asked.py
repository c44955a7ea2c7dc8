"""Lanes of a memory access and their addresses; CTAs that differ by an offset share one row."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from artifact_inspector.execution.interpreter.lanes import Mask, Unknown, Value, data_of, is_true
from artifact_inspector.execution.interpreter.shifted import Shifted

if TYPE_CHECKING:
    from artifact_inspector.execution.interpreter.machine import Machine


class Lanes(NamedTuple):
    """Addresses of the lanes that access memory."""

    addresses: NDArray[np.int64]
    """Shape (CTAs or 1, threads)."""
    mask: NDArray[np.bool_] | None
    """Lanes that take part, same shape; None means all."""
    repeat: int
    """CTAs that one row represents."""
    starts: NDArray[np.int64] | None = None
    """Byte offset of each CTA from the one row of addresses, if CTAs share it."""
    among: NDArray[np.bool_] | None = None
    """Mask of the CTAs that `starts` lists; the others access nothing. None means all."""

    @property
    def each(self) -> Lanes:
        """The same lanes with one row per CTA."""
        if self.starts is None:
            return self
        if self.among is None:
            rows = self.starts[:, None] + self.addresses
            return Lanes(rows, None if self.mask is None else np.broadcast_to(self.mask, rows.shape), 1)
        rows = np.broadcast_to(self.addresses, (len(self.among), self.addresses.shape[1])).copy()
        rows[self.among] += self.starts[:, None]
        on = self.among[:, None] if self.mask is None else self.among[:, None] & self.mask
        return Lanes(rows, np.broadcast_to(on, rows.shape), 1)

    def of(self, ctas: NDArray[np.int64]) -> NDArray[np.int64]:
        """Those of the given CTAs that take part."""
        return ctas if self.among is None else ctas[self.among]

    def alike(self, piece: int) -> list[Lanes]:
        """One representative for CTAs whose addresses are equal modulo `piece` bytes: they cost the same."""
        if self.starts is None:
            return [self]
        return [
            Lanes(self.addresses + self.starts[at], self.mask, times)
            for at, times in first_alike(self.starts[None], piece)
        ]

    @property
    def active(self) -> NDArray[np.int64]:
        """Addresses of the lanes that take part, flat."""
        return self.addresses.ravel() if self.mask is None else self.addresses[self.mask]


def lanes_of(
    machine: Machine, address: Value, mask: Mask | None = None, *, together: bool = False
) -> Lanes | None:
    """The lanes that access an address; None if there are none or the address is unknown.

    Args:
        machine: the machine.
        address: of each lane.
        mask: lanes that take part; None means the active lanes.
        together: whether CTAs that differ by an offset may share one row.
    """
    mask = machine.on if mask is None else mask
    if machine.maybe is not None:
        machine.counts.mark(machine.step.index, machine.maybe.why)
    if not is_true(mask):
        return None
    if isinstance(address, Unknown):
        bad = np.asarray(address.bad) != 0
        if np.any(bad & mask):
            machine.counts.mark(machine.step.index, address.why)
            return None
    data = data_of(address)
    if together and data.__class__ is Shifted and (cut := _cut(mask)) is not None:
        on, among = cut
        held = None if on is None else np.broadcast_to(on, data.lanes.shape)
        return Lanes(data.lanes, held, 1, data.rows[:, 0] if among is None else data.rows[among, 0], among)
    data = np.asarray(data, np.int64)
    data = data if data.ndim == 2 else data.reshape(1, 1)
    rows = max(data.shape[0], 1 if isinstance(mask, bool) else mask.shape[0])
    shape = (rows, machine.threads)
    lanes = None if mask is True else np.broadcast_to(mask, shape)
    return Lanes(np.broadcast_to(data, shape), lanes, machine.rows // rows)


def _cut(mask: Mask) -> tuple[NDArray[np.bool_] | None, NDArray[np.bool_] | None] | None:
    """A mask as (lanes, CTAs), if every CTA that takes part has the same lanes; otherwise None."""
    if mask is True:
        return None, None
    if len(mask) == 1:
        return mask, None
    among = mask.any(axis=1)
    lanes = mask[among.argmax()][None]
    if mask.shape[1] > 1 and not (mask == (among[:, None] & lanes)).all():
        return None
    return None if lanes.all() else lanes, None if among.all() else among


def first_alike(starts: NDArray[np.int64], piece: int) -> list[tuple[int, int]]:
    """One representative for each class of CTAs whose offsets are equal modulo `piece`, and the class sizes.

    Args:
        starts: shape (related accesses, CTAs).
        piece: bytes, a power of two.
    """
    within = starts & (piece - 1)
    if (within == within[:, :1]).all():
        return [(0, within.shape[1])]
    key = (within * piece ** np.arange(len(within))[:, None]).sum(axis=0)
    _, first, count = np.unique(key, return_index=True, return_counts=True)
    return list(zip(first.tolist(), count.tolist(), strict=True))


def without_repeats(lanes: Lanes, piece: int) -> Lanes:
    """One row for all CTAs, if they differ by a multiple of `piece` bytes only.

    Sectors, cache lines and banks of a warp do not change by that offset.
    """
    addresses, mask = lanes.addresses, lanes.mask
    rows = len(addresses)
    if rows == 1 or not are_alike(addresses, mask, piece):
        return lanes
    return Lanes(addresses[:1], None if mask is None else mask[:1], lanes.repeat * rows)


def are_alike(addresses: NDArray[np.int64], mask: NDArray[np.bool_] | None, piece: int) -> bool:
    """Whether all CTAs access the same addresses plus a multiple of `piece` bytes."""
    apart = addresses[:, :1] - addresses[:1, :1]
    if (apart & (piece - 1)).any() or (mask is not None and not (mask == mask[:1]).all()):
        return False
    return bool((addresses - apart == addresses[:1]).all())
