"""The sectors of each tensor that every CTA reads, and the address that it writes first.

Most CTAs read the same sectors at different offsets. So a footprint is stored as its first sector and a shape
that many CTAs share.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from artifact_inspector.execution.interpreter.runs import Runs, each_once, runs_of
from artifact_inspector.execution.launch import Launch

SECTOR = 32
"""Bytes of a sector, the smallest unit of L1 and L2 requests."""
MOST_CODES = 1 << 22
"""Sectors that are stored individually before duplicates are removed."""


class Access(NamedTuple):
    """One read or write by lanes of some CTAs."""

    step: int
    """Index of the instruction."""
    ctas: NDArray[np.int64]
    """Linear CTA numbers."""
    addresses: NDArray[np.int64]
    """Shape (CTAs or 1, lanes)."""
    mask: NDArray[np.bool_] | None
    """Lanes that take part, same shape; None means all."""
    reads: bool
    """False means that it writes."""
    first: int = 0
    """Row of the machine of the first CTA."""
    starts: NDArray[np.int64] | None = None
    """Byte offset of each CTA, if all of them share one row of addresses."""


@dataclass(frozen=True, slots=True)
class Reads:
    """What CTAs read of one tensor, in sectors from its beginning."""

    base: int
    """Address of the first sector."""
    forms: list[Runs] = field(default_factory=list)
    """Distinct footprints, each from sector 0 on."""
    form: dict[int, int] = field(default_factory=dict)
    """CTA → index of its footprint in `forms`."""
    start: dict[int, int] = field(default_factory=dict)
    """CTA → first sector of its footprint."""


class _Portion:
    """What the current portion of CTAs reads of one tensor."""

    def __init__(self, reads: Reads, start: int, stop: int) -> None:
        self.reads, self.start, self.stop = reads, start, stop
        self.size = (stop - 1 - reads.base) // SECTOR + 1
        self.patterns: list[Runs] = []
        self.known: dict[Any, int] = {}
        self.forms: dict[bytes, int] = {}
        self.clear()

    def clear(self) -> None:
        """Start the next portion of CTAs."""
        self.entries: list[tuple[NDArray[np.int64], NDArray[np.int64], int]] = []
        self.codes: list[NDArray[np.int64]] = []
        self.count = 0

    def pattern(self, offsets: NDArray[np.int64], within: int) -> int:
        """The number of a pattern: the offsets between lanes, and the position in the first sector."""
        key = (offsets.tobytes(), within)
        found = self.known.get(key)
        if found is None:
            found = self.known[key] = self._form(runs_of((offsets + within) // SECTOR))
        return found

    def _form(self, runs: Runs) -> int:
        key = runs.starts.tobytes() + runs.stops.tobytes()
        found = self.known.get(key)
        if found is None:
            found = self.known[key] = len(self.patterns)
            self.patterns.append(runs)
        return found

    def add_alike(self, own: NDArray[np.int64], bases: NDArray[np.int64], offsets: NDArray[np.int64]) -> None:
        """Add CTAs whose lanes have the same offsets from each CTA's first address."""
        bases = bases - self.reads.base
        for within in each_once(bases % SECTOR).tolist():
            here = bases % SECTOR == within
            self.entries.append((own[here], bases[here] // SECTOR, self.pattern(offsets, within)))

    def add_each(self, own: NDArray[np.int64], addresses: NDArray[np.int64]) -> None:
        """Add individual lanes of CTAs, flat."""
        self.codes.append(each_once(own * self.size + (addresses - self.reads.base) // SECTOR))
        self.count += len(self.codes[-1])
        if self.count > MOST_CODES:
            self.codes = [each_once(np.concatenate(self.codes))]
            self.count = 0

    def end(self, ctas: NDArray[np.int64]) -> None:
        """Record what each CTA of the portion has read."""
        if self.codes:
            codes = each_once(np.concatenate(self.codes))
            rows, sectors = codes // self.size, codes % self.size
            for row in each_once(rows).tolist():
                first, last = np.searchsorted(rows, [row, row + 1]).tolist()
                runs, base = runs_of(sectors[first:last]), sectors[first : first + 1]
                held = self._form(Runs(runs.starts - base, runs.stops - base))
                self.entries.append((np.array([row]), base, held))
        if not self.entries:
            return
        own = np.concatenate([rows for rows, _, _ in self.entries])
        bases = np.concatenate([base for _, base, _ in self.entries])
        kinds = np.concatenate([np.full(len(rows), kind) for rows, _, kind in self.entries])
        turn = np.lexsort((bases, kinds, own))
        own, bases, kinds = own[turn], bases[turn], kinds[turn]
        fresh = np.ones(len(own), bool)
        fresh[1:] = (own[1:] != own[:-1]) | (bases[1:] != bases[:-1]) | (kinds[1:] != kinds[:-1])
        own, bases, kinds = own[fresh], bases[fresh], kinds[fresh]
        rows, ends = np.unique(own, return_index=True)
        bounds = [*ends.tolist(), len(own)]
        for row, first, last in zip(rows.tolist(), bounds[:-1], bounds[1:], strict=True):
            self._note(int(ctas[row]), bases[first:last], kinds[first:last])

    def _note(self, cta: int, bases: NDArray[np.int64], kinds: NDArray[np.int64]) -> None:
        start = int(bases[0])
        apart = bases - start
        key = apart.tobytes() + kinds.tobytes()
        held = self.forms.get(key)
        if held is None:
            runs = Runs.together(
                [self.patterns[kind].at(apart[kinds == kind]) for kind in each_once(kinds).tolist()]
            )
            held = self.forms[key] = len(self.reads.forms)
            self.reads.forms.append(runs)
        self.reads.form[cta], self.reads.start[cta] = held, start


class Footprints:
    """What the CTAs of a launch read, collected portion by portion.

    Args:
        launch: with an address for every tensor.
    """

    def __init__(self, launch: Launch) -> None:
        self._launch = launch
        self._first = 0
        self._portions: dict[str, _Portion] = {}
        self.read: dict[str, Reads] = {}
        """Tensor → what CTAs read of it."""
        self._names = list(launch.tensors)
        self._written = np.full(launch.ctas, -1, np.int64)
        """CTA → index in `_names` of the first tensor that it writes."""
        self._lowest = np.zeros(launch.ctas, np.int64)

    @property
    def writes(self) -> Mapping[int, tuple[str, int]]:
        """CTA → the first tensor that it writes, and its lowest written address there."""
        return {
            cta: (self._names[name], address)
            for cta, (name, address) in enumerate(
                zip(self._written.tolist(), self._lowest.tolist(), strict=True)
            )
            if name >= 0
        }

    def begin(self, first: int) -> None:
        """Start a portion at a CTA."""
        self._first = first

    def add(self, access: Access) -> None:
        """Record an access."""
        _, ctas, addresses, mask, reads, _, starts = access
        if starts is not None:
            self._add_alike(access)
            return
        low, high = int(addresses.min()), int(addresses.max())
        for at, (name, tensor) in enumerate(self._launch.tensors.items()):
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
                self._write(at, ctas, addresses, inside)
            if inside is None or inside.all():
                return

    def _add_alike(self, access: Access) -> None:
        """Record an access within one tensor by CTAs that differ by an offset only."""
        lanes, starts = access.addresses, access.starts
        assert starts is not None
        lanes = lanes[0] if access.mask is None else lanes[access.mask]
        first = int(lanes[0] + starts[0])
        for at, (name, tensor) in enumerate(self._launch.tensors.items()):
            start = tensor.pointer or 0
            if not start <= first < start + tensor.bytes:
                continue
            if access.reads:
                held = self._portion(name, start, start + tensor.bytes)
                held.add_alike(access.ctas - self._first, starts + lanes[0], lanes - lanes[0])
            else:
                self._write(at, access.ctas, (starts + lanes.min())[:, None], None)
            return

    def add_all(self, accesses: Iterable[Access], _rows: int) -> None:
        """Record the accesses of many loop iterations."""
        for access in accesses:
            self.add(access)

    def has_written(self, ctas: NDArray[np.int64]) -> bool:
        """Whether the first write of each of the CTAs is known."""
        return bool((self._written[ctas] >= 0).all())

    def _portion(self, name: str, start: int, stop: int) -> _Portion:
        held = self._portions.get(name)
        if held is None:
            reads = self.read[name] = Reads(start & -SECTOR)
            held = self._portions[name] = _Portion(reads, start, stop)
        return held

    def _mark(
        self, name: str, start: int, stop: int, ctas: NDArray[np.int64], addresses: Any, inside: Any
    ) -> None:
        held = self._portion(name, start, stop)
        own, lanes = ctas - self._first, addresses[0] if inside is None else addresses[0, inside[0]]
        apart = addresses[:, :1] - addresses[:1, :1]
        if (
            len(lanes)
            and (inside is None or (inside == inside[:1]).all())
            and (addresses - apart == addresses[:1]).all()
        ):
            held.add_alike(own, np.broadcast_to(lanes[0] + apart[:, 0], own.shape), lanes - lanes[0])
        elif inside is None:
            held.add_each(own.repeat(addresses.shape[1]), addresses.ravel())
        else:
            rows = np.broadcast_to(own[:, None], addresses.shape)
            held.add_each(rows[inside], addresses[inside])

    def _write(self, name: int, ctas: NDArray[np.int64], addresses: Any, inside: Any) -> None:
        taken = addresses if inside is None else np.where(inside, addresses, np.iinfo(np.int64).max)
        lowest = np.broadcast_to(taken.min(axis=1), (len(ctas),))
        known, before = self._written[ctas], self._lowest[ctas]
        writes = lowest != np.iinfo(np.int64).max
        fresh, better = writes & (known < 0), writes & ((known < 0) | ((known == name) & (lowest < before)))
        self._written[ctas[fresh]] = name
        self._lowest[ctas[fresh]] = np.iinfo(np.int64).max
        np.minimum.at(self._lowest, ctas[better], lowest[better])  # iterations of a loop repeat a CTA

    def end(self, ctas: NDArray[np.int64]) -> None:
        """Finish the portion of these CTAs."""
        for held in self._portions.values():
            held.end(ctas)
            held.clear()
