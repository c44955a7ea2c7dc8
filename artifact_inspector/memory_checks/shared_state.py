"""Who accessed each byte of one CTA's shared memory last, and how barriers order its warps.

Each warp has a vector clock. A barrier joins the clocks of the warps that arrive. An access is ordered behind
another one if the clock of its warp has reached the other's time.

**Source** C. Flanagan, S. Freund: "FastTrack: Efficient and Precise Dynamic Race Detection", PLDI 2009. PTX ISA,
"Asynchronous copy: cp.async": groups and waits are per thread.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from artifact_inspector.memory_checks.problems import Check

CAPACITY = 1 << 18
"""Bytes of shared memory that are tracked; no GPU has more per CTA."""


class Hazard(NamedTuple):
    """An access that conflicts with an earlier one."""

    check: Check
    step: int
    other_step: int | None
    """The earlier access; None if there is none."""
    is_store: bool
    is_other_store: bool
    warp: int
    other_warp: int
    thread: int
    address: int


class _ByteOwners:
    """For each byte, the warp, its time and the step of an access."""

    def __init__(self) -> None:
        self.warps = np.full(CAPACITY, -1, np.int16)
        """-1 if there was no access."""
        self.times = np.zeros(CAPACITY, np.int32)
        self.steps = np.zeros(CAPACITY, np.int32)

    def put(self, at: NDArray[np.int64], warps: NDArray[np.int64], times: NDArray[np.int64], step: int) -> None:
        self.warps[at], self.times[at], self.steps[at] = warps, times, step


class SharedState:
    """The accesses to one CTA's shared memory."""

    def __init__(self, threads: int, warp_size: int) -> None:
        self._warp_size = warp_size
        warps = -(-threads // warp_size)
        self._clocks = np.zeros((warps, warps), np.int64)
        np.fill_diagonal(self._clocks, 1)
        self._writers = _ByteOwners()
        self._writer_masks = np.zeros(CAPACITY, np.int64)
        """Warps that wrote the last value, as a bit set: one instruction may store it from several warps."""
        self._readers = (_ByteOwners(), _ByteOwners())
        self._copy_threads = np.full(CAPACITY, -1, np.int16)
        """Thread whose asynchronous copy into the byte is in flight; -1 if none is."""
        self._copy_groups = np.zeros(CAPACITY, np.int32)
        self._copy_steps = np.zeros(CAPACITY, np.int32)
        self._open_groups = np.zeros(threads, np.int64)
        """Thread → number of its open copy group."""
        self._high = 0
        """Bytes up to the highest access."""
        self._arrivals: dict[str, list[tuple[NDArray[np.int64], int, bool]]] = {}
        self.hazards: dict[tuple[Check, int, int | None], tuple[Hazard, int]] = {}
        """The first hazard of each kind and pair of steps, and the number of lanes."""

    # ── Order ────────────────────────────────────────────────────────────────────────────────────

    def arrive(self, barrier: str, warps: NDArray[np.int64], threads: int, needed: int, *, waits: bool) -> None:
        """Let warps arrive at a barrier; it joins their clocks once enough threads have arrived.

        Args:
            needed: threads that complete the barrier.
            waits: whether they wait for the others.
        """
        arrivals = self._arrivals.setdefault(barrier, [])
        arrivals.append((warps, threads, waits))
        if sum(count for _, count, _ in arrivals) < needed:
            return
        arrived = np.unique(np.concatenate([group for group, _, _ in arrivals]))
        joined = self._clocks[arrived].max(axis=0)
        for group, _, is_waiting in arrivals:
            if is_waiting:
                self._clocks[group] = joined
        self._clocks[arrived, arrived] += 1
        del self._arrivals[barrier]

    def commit_copies(self, threads: NDArray[np.int64]) -> None:
        """Close the open copy group of some threads."""
        self._open_groups[threads] += 1

    def wait_for_copies(self, threads: NDArray[np.int64], pending: int) -> None:
        """Let threads wait until at most `pending` of their groups are in flight; the others are now written."""
        high = self._high
        in_flight = np.flatnonzero(self._copy_threads[:high] >= 0)
        is_waiting = np.zeros(len(self._open_groups), bool)
        is_waiting[threads] = True
        owners = self._copy_threads[in_flight].astype(np.int64)
        done = is_waiting[owners] & (self._copy_groups[in_flight] < self._open_groups[owners] - pending)
        at, owners = in_flight[done], owners[done]
        warps = owners // self._warp_size
        self._writers.warps[at], self._writers.times[at] = warps, self._clocks[warps, warps]
        self._writers.steps[at] = self._copy_steps[at]
        self._writer_masks[at] = np.int64(1) << warps
        self._copy_threads[at] = -1

    # ── Accesses ─────────────────────────────────────────────────────────────────────────────────

    def load(self, step: int, threads: NDArray[np.int64], addresses: NDArray[np.int64], size: int) -> None:
        """Record a load of `size` bytes by some threads."""
        at, lanes, warps, own = self._bytes_of(threads, addresses, size)
        is_copied = self._copy_threads[at] >= 0
        writers = self._writers.warps[at].astype(np.int64)
        self._report(Check.UNAWAITED_COPY, step, self._copy_steps, is_copied, at, lanes, (False, True),
                     self._copy_threads[at].astype(np.int64) // self._warp_size)  # fmt: skip
        is_missing = (writers < 0) & ~is_copied
        self._report(Check.UNINITIALIZED, step, None, is_missing, at, lanes, (False, False), writers)
        wrote_itself = (self._writer_masks[at] >> warps & 1).astype(bool)
        is_race = ~is_copied & ~wrote_itself & self._is_unordered(self._writers, at, warps)
        self._report(Check.SHARED_RACE, step, self._writers.steps, is_race, at, lanes, (False, True), writers)
        first, second = self._readers
        uses_first = (first.warps[at] < 0) | (first.warps[at] == warps)
        first.put(at[uses_first], warps[uses_first], own[uses_first], step)
        second.put(at[~uses_first], warps[~uses_first], own[~uses_first], step)

    def store(
        self, step: int, threads: NDArray[np.int64], addresses: NDArray[np.int64], size: int, *, is_copy: bool,
        is_atomic: bool,
    ) -> None:  # fmt: skip
        """Record a store, an atomic or the start of an asynchronous copy of `size` bytes by some threads."""
        at, lanes, warps, own = self._bytes_of(threads, addresses, size)
        is_copied = self._copy_threads[at] >= 0
        self._report(Check.UNAWAITED_COPY, step, self._copy_steps, is_copied, at, lanes, (True, True),
                     self._copy_threads[at].astype(np.int64) // self._warp_size)  # fmt: skip
        is_same_step = self._writers.steps[at] == step  # several warps may store one value, or update by atomics
        is_race = ~is_copied & ~is_same_step & self._is_unordered(self._writers, at, warps)
        writers = self._writers.warps[at].astype(np.int64)
        if not is_atomic:
            self._report(Check.SHARED_RACE, step, self._writers.steps, is_race, at, lanes, (True, True), writers)
        for readers in self._readers:
            is_race = self._is_unordered(readers, at, warps)
            others = readers.warps[at].astype(np.int64)
            self._report(Check.SHARED_RACE, step, readers.steps, is_race, at, lanes, (True, False), others)
            readers.warps[at] = -1
        if is_copy:
            self._copy_threads[at], self._copy_steps[at] = lanes, step
            self._copy_groups[at] = self._open_groups[lanes]
            return
        self._writer_masks[at[~(is_same_step & (writers >= 0))]] = 0
        self._writers.put(at, warps, own, step)
        np.bitwise_or.at(self._writer_masks, at, np.int64(1) << warps)

    def _bytes_of(
        self, threads: NDArray[np.int64], addresses: NDArray[np.int64], size: int
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """Of an access, each byte: its address, thread, warp, and the warp's time."""
        inside = (addresses >= 0) & (addresses <= CAPACITY - size)
        at = (addresses[inside][:, None] + np.arange(size)).ravel()
        lanes = threads[inside].repeat(size)
        warps = lanes // self._warp_size
        if len(at):
            self._high = max(self._high, int(at.max()) + 1)
        return at, lanes, warps, self._clocks[warps, warps]

    def _is_unordered(self, owners: _ByteOwners, at: NDArray[np.int64], warps: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Whether another warp owns a byte, and no barrier orders the warp behind it."""
        others = owners.warps[at].astype(np.int64)
        is_later = owners.times[at] > self._clocks[warps, others]
        return np.asarray(is_later & (others >= 0) & (others != warps))

    def _report(
        self,
        check: Check,
        step: int,
        other_steps: NDArray[np.int32] | None,
        is_hazard: NDArray[np.bool_],
        at: NDArray[np.int64],
        lanes: NDArray[np.int64],
        stores: tuple[bool, bool],
        others: NDArray[np.int64],
    ) -> None:
        if not is_hazard.any():
            return
        rows = np.flatnonzero(is_hazard)
        steps = np.full(len(rows), -1) if other_steps is None else other_steps[at[rows]]
        for other in np.unique(steps).tolist():
            of_step = rows[steps == other]
            first, other_step = int(of_step[0]), None if other < 0 else int(other)
            thread, key = int(lanes[first]), (check, step, other_step)
            warps = thread // self._warp_size, int(others[first])
            hazard = Hazard(check, step, other_step, *stores, *warps, thread, int(at[first]))
            old_hazard, old_count = self.hazards.get(key, (hazard, 0))
            self.hazards[key] = (old_hazard, old_count + len(np.unique(lanes[of_step])))
