"""Which pieces of each tensor every CTA reads, and where it writes first."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from artifact_inspector.execution.launch import Launch

__all__ = ["Access", "Footprint", "Footprints"]

SECTOR = 32
MOST_MARKS = 1 << 27
"""Pieces times CTAs that are marked at a time; larger tensors are followed in larger pieces."""


class Footprint(NamedTuple):
    """What a CTA reads of one tensor; CTAs that read the same share it."""

    tensor: str
    pieces: NDArray[np.int32]
    """Numbers of the pieces, in order."""
    bytes: int


class Access(NamedTuple):
    """What lanes of some CTAs read or write at a time."""

    step: int
    """Index of the instruction."""
    ctas: NDArray[np.int64]
    """Linear numbers."""
    addresses: NDArray[np.int64]
    """Shape (CTAs or 1, lanes)."""
    mask: NDArray[np.bool_] | None
    """Lanes that take part, of the same shape; all where None."""
    reads: bool
    """Else it writes."""
    first: int = 0
    """Row of the machine that the first of the CTAs is."""


class _Marks:
    def __init__(self, name: str, start: int, stop: int, ctas: int) -> None:
        self.name = name
        self.base = start & -SECTOR
        self.start, self.stop = start, stop
        self.granule = SECTOR
        while ctas * ((stop - self.base) // self.granule + 1) > MOST_MARKS:
            self.granule *= 2
        self.size = (stop - 1 - self.base) // self.granule + 1
        self.marks = np.zeros((ctas, self.size), bool)


class Footprints:
    """What the CTAs of a launch read, followed portion by portion.

    Args:
        launch: with an address for every tensor.
        most: CTAs of a portion.
    """

    def __init__(self, launch: Launch, most: int) -> None:
        self._launch = launch
        self._most = most
        self._first = 0
        self._marks: dict[str, _Marks] = {}
        self._known: dict[tuple[str, bytes], Footprint] = {}
        self.read: dict[int, tuple[Footprint, ...]] = {}
        """CTA → what it reads of each tensor."""
        self.writes: dict[int, tuple[str, int]] = {}
        """CTA → the first tensor that it writes, and the lowest address there."""

    def begin(self, first: int) -> None:
        """A portion begins at a CTA."""
        self._first = first

    def add(self, access: Access) -> None:
        """Note an access."""
        _, ctas, addresses, mask, reads, _ = access
        low, high = int(addresses.min()), int(addresses.max())
        for name, tensor in self._launch.tensors.items():
            start = tensor.pointer or 0
            stop = start + tensor.bytes
            whole = mask is None and start <= low and high < stop
            if not whole and (high < start or low >= stop):
                continue
            inside = None if whole else (addresses >= start) & (addresses < stop)
            if inside is not None:
                inside = inside if mask is None else inside & mask
                if not inside.any():
                    continue
            if reads:
                self._mark(name, start, stop, ctas, addresses, inside)
            else:
                self._write(name, ctas, addresses, inside)
            if inside is None or inside.all():
                return

    def add_all(self, accesses: Iterable[Access], _rows: int) -> None:
        """Note what many trips of a loop access."""
        for access in accesses:
            self.add(access)

    def has_written(self, ctas: NDArray[np.int64]) -> bool:
        """Whether it is known of CTAs where each of them writes first."""
        return all(cta in self.writes for cta in dict.fromkeys(ctas.tolist()))

    def _mark(
        self, name: str, start: int, stop: int, ctas: NDArray[np.int64], addresses: Any, inside: Any
    ) -> None:
        held = self._marks.get(name)
        if held is None:
            held = self._marks[name] = _Marks(name, start, stop, self._most)
        own = ctas - self._first
        pieces = (addresses - held.base) // held.granule
        if len(addresses) == 1:
            held.marks[np.ix_(own, np.unique(pieces if inside is None else pieces[inside]))] = True
        elif inside is None:
            held.marks[own[:, None], pieces] = True
        else:
            rows = np.broadcast_to(own[:, None], addresses.shape)
            held.marks[rows[inside], pieces[inside]] = True

    def _write(self, name: str, ctas: NDArray[np.int64], addresses: Any, inside: Any) -> None:
        taken = addresses if inside is None else np.where(inside, addresses, np.iinfo(np.int64).max)
        lowest = taken.min(axis=1)
        lowest = np.broadcast_to(lowest, (len(ctas),))
        for cta, address in zip(ctas.tolist(), lowest.tolist(), strict=True):
            known = self.writes.get(cta)
            if address != np.iinfo(np.int64).max and (
                known is None or (known[0] == name and address < known[1])
            ):
                self.writes[cta] = (name, address)

    def end(self, ctas: NDArray[np.int64]) -> None:
        """The portion's CTAs have run."""
        for cta in ctas.tolist():
            found = []
            for name, held in self._marks.items():
                row = held.marks[cta - self._first]
                pieces = np.flatnonzero(row).astype(np.int32)
                if pieces.size:
                    found.append(self._shared(name, held, pieces))
            self.read[cta] = tuple(found)
        for held in self._marks.values():
            held.marks[:] = False

    def _shared(self, name: str, held: _Marks, pieces: NDArray[np.int32]) -> Footprint:
        key = (name, pieces.tobytes())
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = Footprint(name, pieces, held.granule * len(pieces))
        return known
