"""The order in which CTAs access memory, recorded for a sample of pairs of sectors.

A random pair of sectors of each stretch of memory stands for the stretch. Its accesses are exact, and all CTAs are
recorded. So a cache that holds n times as many pairs behaves as one that holds n times fewer of the sample.

**Source** Waldspurger et al., "Efficient MRC Construction with SHARDS" (FAST 2015): sampling by address keeps
reuse distances, scaled by the rate.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from artifact_inspector.execution.interpreter.cta_offsets import offset_facts, share_offsets
from artifact_inspector.execution.interpreter.footprints import PAIR, AccessRecorder, FootprintAccess
from artifact_inspector.execution.interpreter.intervals import Intervals, sorted_distinct
from artifact_inspector.execution.launch import KernelLaunch

MOST_EVENTS = 600_000
"""Most sampled accesses; beyond it every second pair leaves the sample."""
_FEWEST_CACHES = 4
"""Stretches of memory as large as the cache that are sampled at least: small tensors are sampled more densely."""


class StreamEvents(NamedTuple):
    """Accesses of sampled pairs, in no order."""

    ctas: NDArray[np.int32]
    positions: NDArray[np.int32]
    """Position among the accesses of the CTA, from 0."""
    samples: NDArray[np.int32]
    """Index of the sampled pair."""
    steps: NDArray[np.int32]
    """Index of the instruction."""
    is_read: NDArray[np.bool_]


class AccessStream(AccessRecorder):
    """Accesses of a launch to a sample of its pairs.

    Args:
        launch: with an address for every tensor.
        cache_bytes: size of the cache that the sample is for.
        samples_per_cache: sampled pairs of a stretch of memory as large as the cache.
        seed: of the random choice of pairs.
    """

    def __init__(self, launch: KernelLaunch, cache_bytes: int, samples_per_cache: int = 2048, seed: int = 0) -> None:
        regions = Intervals.union(
            [
                Intervals(
                    np.array([(tensor.pointer or 0) // PAIR]),
                    np.array([((tensor.pointer or 0) + tensor.bytes - 1) // PAIR + 1]),
                )
                for tensor in launch.tensors.values()
                if tensor.bytes
            ]
        )
        sample_count = samples_per_cache * max(_FEWEST_CACHES, regions.total * PAIR // cache_bytes)
        self.spacing = max(1, regions.total // sample_count)
        """Pairs that each sampled one stands for."""
        numbers = np.arange(0, regions.total, self.spacing)
        random = np.random.default_rng(seed)
        numbers += random.integers(0, np.minimum(self.spacing, regions.total - numbers))
        sizes = regions.stops - regions.starts
        ends = np.cumsum(sizes)
        region_numbers = np.searchsorted(ends, numbers, side="right")
        self.pairs: NDArray[np.int64] = numbers - (ends - sizes)[region_numbers] + regions.starts[region_numbers]
        """Sampled pairs in order, numbered from address 0."""
        self.lengths = np.zeros(launch.ctas, np.int64)
        """Accesses of each CTA."""
        self._events: list[StreamEvents] = []
        self._event_count = 0
        self._tables: dict[bytes, tuple[NDArray[np.int64], NDArray[np.int32]]] = {}

    def events(self) -> StreamEvents:
        """All recorded accesses."""
        self._tables.clear()
        if len(self._events) != 1:
            none = np.empty(0, np.int32)
            portions = [StreamEvents(none, none, none, none, np.empty(0, bool)), *self._events]
            self._events = [StreamEvents(*(np.concatenate(columns) for columns in zip(*portions, strict=True)))]
        return self._events[0]

    def of_first(self, ctas: int) -> AccessStream:
        """The stream of the first CTAs."""
        first, is_first = copy(self), self.events().ctas < ctas
        first._events, first.lengths = [self._selected(is_first)], self.lengths[:ctas]
        return first

    def merge(self, other: AccessStream) -> None:
        """Add the accesses of other CTAs of the launch; `other` may lose samples."""
        while self.spacing != other.spacing:
            min(self, other, key=lambda stream: stream.spacing)._thin_out()
        self._events += other._events
        self._event_count += other._event_count
        self.lengths = self.lengths + other.lengths
        self._limit_events()

    def add_iterations(self, accesses: Sequence[FootprintAccess], rows: int) -> None:
        """Record the accesses of many loop iterations, at the positions that they have if iterations run one by one.

        An access that a CTA executes without any lane takes a position too: CTAs proceed by instructions. ncu counts
        1.71 GB of reads of `grouped_gemm` on an H200; this gives 1.73 GB, and 2.24 GB without such positions.

        Args:
            accesses: in program order; the rows of each are ordered by iteration, then by CTA.
            rows: CTAs of one iteration.
        """
        if not accesses:
            return
        ctas = accesses[0].ctas
        if all(
            access.ctas is ctas and access.rows is None and (access.mask is None or len(access.mask) == 1)
            for access in accesses
        ):
            starts = self.lengths[ctas] + np.arange(len(ctas)) // rows * len(accesses)
            for number, access in enumerate(accesses):
                self._record(access, starts, number)
            self.lengths[ctas[:rows]] += len(ctas) // rows * len(accesses)
            return
        active = [_active_rows(access) for access in accesses]
        iterations = 1 + max(int(of_machine[-1]) for _, of_machine in active) // rows
        counts = np.stack([np.bincount(of_machine, minlength=iterations * rows) for _, of_machine in active])
        ends = counts.reshape(len(accesses), iterations, rows).swapaxes(0, 1).reshape(-1, rows).cumsum(axis=0)
        starts = ends.reshape(iterations, len(accesses), rows).swapaxes(0, 1).reshape(counts.shape) - counts
        totals = np.zeros_like(self.lengths)
        for access, first, (own_rows, of_machine) in zip(accesses, starts, active, strict=True):
            positions = np.zeros(len(access.ctas), np.int64)
            same_row = np.arange(len(of_machine)) - np.searchsorted(of_machine, of_machine)
            positions[own_rows] = self.lengths[access.ctas[own_rows]] + first[of_machine] + same_row
            totals[access.ctas[own_rows]] = ends[-1, of_machine % rows]
            self._record(access, positions)
        self.lengths += totals

    def _record(self, access: FootprintAccess, starts: NDArray[np.int64], number: int = 0) -> None:
        """Record the sampled pairs of an access, whose position is `number` after the start of each row."""
        for rows, samples in self._sampled_pairs(access) if access.addresses.size else ():
            if not len(rows):
                continue
            ctas = access.ctas[rows]
            count = len(rows)
            self._events.append(
                StreamEvents(
                    ctas.astype(np.int32),
                    (starts[rows] + number).astype(np.int32),
                    samples.astype(np.int32),
                    np.full(count, access.step, np.int32),
                    np.full(count, access.is_read),
                )
            )
            self._event_count += count
        self._limit_events()

    def _limit_events(self) -> None:
        while self._event_count > MOST_EVENTS and len(self.pairs) > 1:
            self._thin_out()

    def _selected(self, keeps: Any) -> StreamEvents:
        return StreamEvents(*(column[keeps] for column in self.events()))

    def _thin_out(self) -> None:
        """Remove every second pair from the sample."""
        remaining = self._selected(self.events().samples % 2 == 0)
        self._events = [remaining._replace(samples=remaining.samples // 2)]
        self._event_count = len(remaining.samples)
        self.pairs, self.spacing = self.pairs[::2], self.spacing * 2

    def _sampled_pairs(self, access: FootprintAccess) -> list[tuple[NDArray[np.int64], NDArray[Any]]]:
        """Rows of an access and the samples that they touch, as two arrays each."""
        lanes, mask = access.addresses, access.mask
        if access.cta_offsets is not None:
            active = lanes[0] if mask is None else lanes[0, mask[0]]
            return self._samples_of_pattern(access.cta_offsets, active)
        if mask is None and bool((lanes - lanes[:, :1] == lanes[:1] - lanes[:1, :1]).all()):
            starts = np.broadcast_to(lanes[:, 0], access.ctas.shape)
            return self._samples_of_pattern(share_offsets(starts), lanes[0])
        shape = (len(access.ctas), lanes.shape[1])
        pairs = np.broadcast_to(lanes, shape) // PAIR
        found = np.searchsorted(self.pairs, pairs)
        touches = self.pairs[np.minimum(found, len(self.pairs) - 1)] == pairs
        if mask is not None:
            touches &= np.broadcast_to(mask, shape)
        rows, columns = np.nonzero(touches)
        codes = np.unique(rows * len(self.pairs) + found[rows, columns])
        return [(codes // len(self.pairs), codes % len(self.pairs))]

    def _samples_of_pattern(
        self, cta_offsets: NDArray[np.int64], lanes: NDArray[np.int64]
    ) -> list[tuple[NDArray[np.int64], NDArray[Any]]]:
        """The same for lanes at each of some offsets, of which many are equal."""
        offsets, order, firsts = offset_facts(cta_offsets).groups
        found, bases = [], offsets + lanes[0]
        residues = bases % PAIR
        for residue in [int(residues[0])] if (residues == residues[0]).all() else np.unique(residues).tolist():
            groups = np.flatnonzero(residues == residue)
            starts, samples = self._table(lanes - lanes[0], residue)
            group_starts = bases[groups] // PAIR
            first = np.searchsorted(starts, group_starts)
            repeats = np.searchsorted(starts, group_starts, side="right") - first
            touching = np.flatnonzero(repeats)
            owners, matches = _spread(first[touching], repeats[touching])
            owners = groups[touching[owners]]
            matching, columns = _spread(firsts[owners], firsts[owners + 1] - firsts[owners])
            found.append((order[columns], samples[matches[matching]]))
        return found

    def _table(self, offsets: NDArray[np.int64], residue: int) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        """Start pairs from which a pattern touches a sample, in order, and the sample of each.

        Offsets are bytes from the first lane; the residue is its position in its pair.
        """
        key = offsets.tobytes() + bytes([residue])
        table = self._tables.get(key)
        if table is None:
            pairs = sorted_distinct((offsets + residue) // PAIR)
            starts = (self.pairs[:, None] - pairs).ravel()
            order = np.argsort(starts, kind="stable")
            table = self._tables[key] = starts[order], (order // len(pairs)).astype(np.int32)
        return table


def _spread(firsts: NDArray[np.int64], counts: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """For each first number the numbers that follow it: index of the first number, and the number.

    Example:
        >>> [column.tolist() for column in _spread(np.array([5, 9]), np.array([2, 1]))]
        [[0, 0, 1], [5, 6, 9]]
    """
    ends = np.cumsum(counts)
    within = np.arange(int(counts.sum())) - np.repeat(ends - counts, counts)
    return np.repeat(np.arange(len(firsts)), counts), np.repeat(firsts, counts) + within


def _active_rows(access: FootprintAccess) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Rows of an access of which lanes take part: their indices in the access, and in the machine."""
    mask, own_rows = access.mask, np.arange(len(access.ctas))
    if mask is not None and len(mask) > 1:
        own_rows = np.flatnonzero(mask.any(axis=1))
    return own_rows, access.rows_of_machine(own_rows)
