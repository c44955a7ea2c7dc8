"""Who accessed each cell of one CTA's shared memory last, and how barriers order its warps.

Each warp is an agent with a vector clock, and so is each group of asynchronous copies or matrix products. A barrier
joins the clocks of the warps that arrive, a wait those of the groups that it waits for. An access is ordered behind
another one if the clock of its warp has reached the other's time. A second clock has what a proxy fence has made
visible to the asynchronous proxy: tensor copies and matrix products need that of what stores wrote. A `cp.async` counts
as visible after its wait, since Triton 3.2 pipelines the products of sm_90 without a fence.

A cell has 16 bytes until an access is smaller or less aligned; then all cells are split. This is exact: an access
covers whole cells. It is 4 to 16 times as fast as bytes.

**Source** C. Flanagan, S. Freund: "FastTrack: Efficient and Precise Dynamic Race Detection", PLDI 2009. PTX ISA,
"Asynchronous copy: cp.async": groups and waits are per thread; here, per warp. "Async proxy".
"""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from artifact_inspector.memory_checks.problems import Check

CAPACITY = 1 << 18
"""Bytes of shared memory that are tracked; no GPU has more per CTA."""
LARGEST_CELL = 16
"""Bytes of a cell at first."""
TENSOR_COLUMNS = 512
"""Columns of tensor memory. Of each, 16 lanes are tracked like such a cell, behind the shared memory."""
_BYTES = CAPACITY + 8 * TENSOR_COLUMNS * LARGEST_CELL


class AsyncKind(Enum):
    """What runs asynchronously."""

    COPY = Check.UNAWAITED_COPY
    PRODUCT = Check.UNAWAITED_PRODUCT


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
    """Warp that made the earlier access, or started it."""
    thread: int
    address: int


class _CellOwners:
    """For each cell, the agent, its time and the step of an access."""

    def __init__(self) -> None:
        self.agents = np.full(_BYTES // LARGEST_CELL, -1, np.int64)
        """-1 if there was no access."""
        self.times = np.zeros_like(self.agents)
        self.steps = np.zeros_like(self.agents)
        self.is_used = False
        """Whether there was any access."""

    def put(self, at: NDArray[np.int64], agents: NDArray[np.int64], times: NDArray[np.int64], step: int) -> None:
        self.agents[at], self.times[at], self.steps[at] = agents, times, step
        self.is_used = True

    def split(self, factor: int) -> None:
        """Split each cell into as many smaller ones."""
        self.agents, self.times, self.steps = (x.repeat(factor) for x in (self.agents, self.times, self.steps))


class _Cells(NamedTuple):
    """The cells of an access."""

    at: NDArray[np.int64]
    threads: NDArray[np.int64]
    warps: NDArray[np.int64]
    agents: NDArray[np.int64]
    times: NDArray[np.int64]


class SharedState:
    """The accesses to one CTA's shared memory."""

    def __init__(self, threads: int, warp_size: int) -> None:
        self._warp_size = warp_size
        self._warps = warps = -(-threads // warp_size)
        self._clocks = np.zeros((2, warps, 2 * warps), np.int64)
        """Warp, agent → latest time of the agent behind which the warp is ordered; then what fences made visible."""
        np.fill_diagonal(self._clocks[0], 1)
        self._groups: list[tuple[AsyncKind, int, NDArray[np.int64]]] = []
        """Of each asynchronous group its kind, first warp, and clock."""
        self._queues: dict[tuple[str, int], list[dict[AsyncKind, int]]] = {}
        """Queue and warp → the groups in flight; the last one is open."""
        self._cell = LARGEST_CELL
        """Bytes of a cell."""
        self._writers = _CellOwners()
        self._writer_masks = np.zeros_like(self._writers.agents)
        """Warps that wrote the last value, as a bit set: one instruction may store it from several warps."""
        self._readers = tuple(_CellOwners() for _ in range(3))
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
        joined = self.release(arrived)
        for group, _, is_waiting in arrivals:
            if is_waiting:
                self.acquire(group, joined)
        del self._arrivals[barrier]

    def release(self, warps: NDArray[np.int64]) -> NDArray[np.int64]:
        """The clocks of all accesses of some warps so far; later ones are behind it."""
        clock: NDArray[np.int64] = self._clocks[:, warps].max(axis=1)
        self._clocks[0, warps, warps] += 1
        return clock

    def acquire(self, warps: NDArray[np.int64], clock: NDArray[np.int64]) -> None:
        """Order some warps behind everything in a clock."""
        known = self._clocks[:, warps, : clock.shape[1]]
        self._clocks[:, warps, : clock.shape[1]] = np.maximum(known, clock[:, None])

    def fence(self, warps: NDArray[np.int64]) -> None:
        """Make everything that some warps are ordered behind visible to the asynchronous proxy."""
        self._clocks[1, warps] = np.maximum(*self._clocks[:, warps])
        self._clocks[0, warps, warps] += 1

    def start(self, kind: AsyncKind, warps: NDArray[np.int64]) -> int:
        """The agent of a new asynchronous group, which is ordered behind the warps that start it."""
        agent = self._warps + len(self._groups)
        if agent == self._clocks.shape[2]:
            self._clocks = np.pad(self._clocks, ((0, 0), (0, 0), (0, agent)))
        clock = np.zeros((2, agent + 1), np.int64)
        clock[:, agent] = 1
        self._groups.append((kind, int(warps[0]), clock))
        return self.extend(agent, warps)

    def extend(self, agent: int, warps: NDArray[np.int64]) -> int:
        """The agent of a group to which warps add an operation."""
        clock = self.clock_of(agent)
        if clock.shape[1] < self._clocks.shape[2]:
            clock = np.pad(clock, ((0, 0), (0, self._clocks.shape[2] - clock.shape[1])))
            self._groups[agent - self._warps] = (*self._groups[agent - self._warps][:2], clock)
        np.maximum(clock, self._clocks[:, warps].max(axis=1), out=clock)
        return agent

    def end_products(self, agent: int) -> NDArray[np.int64]:
        """The clock behind all products of an agent so far; later ones are behind it."""
        clock: NDArray[np.int64] = self.clock_of(agent).copy()
        self.clock_of(agent)[:, agent] += 1
        return clock

    def clock_of(self, agent: int) -> NDArray[np.int64]:
        """The clocks behind the end of an asynchronous group."""
        return self._groups[agent - self._warps][2]

    def enqueue(self, queue: str, kind: AsyncKind, warps: NDArray[np.int64]) -> int:
        """The agent of the open group of a queue, which some warps share."""
        queues = [self._queues.setdefault((queue, warp), [{}]) for warp in warps.tolist()]
        agent = queues[0][-1].get(kind)
        agent = self.start(kind, warps) if agent is None else self.extend(agent, warps)
        for groups in queues:
            groups[-1][kind] = agent
        return agent

    def commit(self, queue: str, warps: NDArray[np.int64]) -> None:
        """Close the open group of some warps."""
        for warp in warps.tolist():
            self._queues.setdefault((queue, warp), [{}]).append({})

    def wait(self, queue: str, warps: NDArray[np.int64], pending: int) -> None:
        """Let warps wait until at most `pending` of their groups are in flight."""
        for warp in warps.tolist():
            groups = self._queues.get((queue, warp), [])
            while len(groups) - 1 > pending:
                for agent in groups.pop(0).values():
                    self.acquire(np.array([warp]), self.clock_of(agent))

    # ── Accesses ─────────────────────────────────────────────────────────────────────────────────

    def load(
        self,
        step: int,
        threads: NDArray[np.int64],
        addresses: NDArray[np.int64],
        size: int,
        agents: NDArray[np.int64] | None = None,
    ) -> None:
        """Record a load of `size` bytes by some threads, or by the agents that they started."""
        access = self._cells_of(threads, addresses, size, agents)
        at = access.at
        is_missing = self._writers.agents[at] < 0
        self._report(Check.UNINITIALIZED, step, self._writers, is_missing, access, (False, False))
        is_race = self._is_unordered(self._writers, access)
        if is_race.any():
            is_race &= (self._writer_masks[at] >> access.warps & 1) == 0
            self._report(Check.SHARED_RACE, step, self._writers, is_race, access, (False, True))
        if agents is not None:
            is_hidden = ~is_race & self._is_unordered(self._writers, access, is_fenced=True)
            self._report(Check.MISSING_FENCE, step, self._writers, is_hidden, access, (False, True))
        *first_readers, last_readers = self._readers
        for readers in first_readers:
            is_other = self._is_unordered(readers, access)
            if not is_other.any():
                readers.put(at, access.agents, access.times, step)
                return
            uses = ~is_other
            readers.put(at[uses], access.agents[uses], access.times[uses], step)
            access = _Cells(*(column[is_other] for column in access))
            at = access.at
        last_readers.put(at, access.agents, access.times, step)

    def store(
        self,
        step: int,
        threads: NDArray[np.int64],
        addresses: NDArray[np.int64],
        size: int,
        agents: NDArray[np.int64] | None = None,
        *,
        is_atomic: bool = False,
    ) -> None:
        """Record a store or an atomic of `size` bytes by some threads, or by the agents that they started."""
        access = self._cells_of(threads, addresses, size, agents)
        at = access.at
        writers = self._writers.agents[at]
        is_same_step = self._writers.steps[at] == step  # several warps may store one value, or update by atomics
        is_race = self._is_unordered(self._writers, access) & ~(is_same_step & (writers < self._warps))
        if is_atomic:
            is_race &= writers >= self._warps
        self._report(Check.SHARED_RACE, step, self._writers, is_race, access, (True, True))
        for readers in self._readers:
            if not readers.is_used:
                break
            self._report(Check.SHARED_RACE, step, readers, self._is_unordered(readers, access), access, (True, False))
            readers.agents[at] = -1
        self._writer_masks[at[~(is_same_step & (writers >= 0))]] = 0
        self._writers.put(at, access.agents, access.times, step)
        if agents is None:
            np.bitwise_or.at(self._writer_masks, at, np.int64(1) << access.warps)

    def _cells_of(
        self, threads: NDArray[np.int64], addresses: NDArray[np.int64], size: int, agents: NDArray[np.int64] | None
    ) -> _Cells:
        inside = (addresses >= 0) & (addresses <= _BYTES - size)
        if not inside.all():
            addresses, threads = addresses[inside], threads[inside]
            agents = None if agents is None else agents[inside]
        used_bits = int(np.bitwise_or.reduce(addresses, initial=size))
        self._split_cells(used_bits & -used_bits)
        count = size // self._cell
        at = addresses // self._cell
        if count > 1:
            at, threads = (at[:, None] + np.arange(count)).ravel(), threads.repeat(count)
        warps = threads // self._warp_size
        if agents is None:
            return _Cells(at, threads, warps, warps, self._clocks[0, warps, warps])
        names, numbers = np.unique(agents, return_inverse=True)
        times = np.array([self.clock_of(agent)[0, agent] for agent in names.tolist()], np.int64)[numbers]
        return _Cells(at, threads, warps, agents.repeat(count), times.repeat(count))

    def _split_cells(self, size: int) -> None:
        """Make cells at most so many bytes large, a power of two."""
        if size >= self._cell:
            return
        factor, self._cell = self._cell // size, size
        for owners in (self._writers, *self._readers):
            owners.split(factor)
        self._writer_masks = self._writer_masks.repeat(factor)

    def _is_unordered(self, owners: _CellOwners, access: _Cells, *, is_fenced: bool = False) -> NDArray[np.bool_]:
        """Whether another agent owns a cell, and nothing orders the access behind it, or makes it visible to it."""
        if not owners.is_used:
            return np.zeros(len(access.at), bool)
        others = owners.agents[access.at]
        is_later = owners.times[access.at] > self._clocks[int(is_fenced), access.warps, others]
        if not is_later.any():
            return np.asarray(is_later)
        is_other = (others != access.agents) & (is_fenced | (others != access.warps))
        return np.asarray(is_later & (others >= 0) & is_other)

    def _report(
        self,
        check: Check,
        step: int,
        owners: _CellOwners,
        is_hazard: NDArray[np.bool_],
        access: _Cells,
        stores: tuple[bool, bool],
    ) -> None:
        if not is_hazard.any():
            return
        rows = np.flatnonzero(is_hazard)
        others = owners.agents[access.at[rows]]
        steps = np.where(others < 0, -1, owners.steps[access.at[rows]])
        for other_step in np.unique(steps).tolist():
            of_step = rows[steps == other_step]
            first, other = int(of_step[0]), int(others[steps == other_step][0])
            time = int(owners.times[access.at[first]])
            thread = int(access.threads[first])
            kind, other_warp = self._check_of(check, other, time, is_store=stores[1])
            key = (kind, step, None if other_step < 0 else int(other_step))
            warps = thread // self._warp_size, other_warp
            address = self._cell * int(access.at[first])
            address = min(address, CAPACITY + (address - CAPACITY) // LARGEST_CELL)  # cells of tensor memory count
            hazard = Hazard(*key, *stores, *warps, thread, address)
            old_hazard, old_count = self.hazards.get(key, (hazard, 0))
            self.hazards[key] = (old_hazard, old_count + len(np.unique(access.threads[of_step])))

    def _check_of(self, check: Check, other: int, time: int, *, is_store: bool) -> tuple[Check, int]:
        """The kind of a hazard with an access of another agent, and the warp that started that."""
        if other < self._warps:
            return check, other
        kind, warp, _ = self._groups[other - self._warps]
        if not is_store:
            return Check.OPERAND_IN_USE, warp
        return check if self._clocks[0, :, other].max() >= time else kind.value, warp
