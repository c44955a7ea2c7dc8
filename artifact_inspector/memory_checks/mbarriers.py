"""The mbarriers of one CTA: arrivals, bytes of copies, phases, and what each phase orders.

**Source** PTX ISA, "Parallel Synchronization and Communication Instructions: mbarrier": a phase completes when no
arrival and no byte is pending; a wait for parity p passes if the phase before the current one has this parity.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from artifact_inspector.memory_checks.shared_state import AsyncKind, SharedState


@dataclass
class Mbarrier:
    """One mbarrier."""

    expected: int
    """Arrivals of each phase."""
    pending: int
    """Arrivals that the current phase lacks."""
    clock: NDArray[np.int64]
    """Clock of the arrivals of the current phase."""
    released: NDArray[np.int64]
    """Clock of the phase before it."""
    phase: int = 0
    bytes: int = 0
    """Bytes of copies that the current phase expects, less those that have been started."""

    def is_complete(self, parity: int) -> bool:
        """Whether a wait for the parity passes."""
        return (self.phase - 1) % 2 == parity


class Mbarriers:
    """All mbarriers of a CTA, by address.

    Args:
        state: the accesses that they order.
    """

    def __init__(self, state: SharedState) -> None:
        self._state = state
        self.barriers: dict[int, Mbarrier] = {}
        self.errors: dict[tuple[int, str], tuple[int, int]] = {}
        """Step and error → its first warp, and the address."""

    def initialize(self, step: int, address: int, count: int, warp: int) -> None:
        """Initialize an mbarrier; one that is valid must be invalidated first."""
        if address in self.barriers:
            self._report(step, "initializes a valid mbarrier again", warp, address)
        clock = self._state.release(np.array([warp]))
        self.barriers[address] = Mbarrier(count, count, np.zeros_like(clock), clock)

    def invalidate(self, step: int, address: int, warp: int) -> None:
        """Invalidate an mbarrier."""
        if self.valid_barrier(step, address, warp) is not None:
            del self.barriers[address]

    def arrive(self, step: int, address: int, warp: int, count: int, byte_count: int) -> None:
        """Let threads of a warp arrive, and expect the bytes of copies."""
        barrier = self.valid_barrier(step, address, warp)
        if barrier is None:
            return
        if count > barrier.pending:
            self._report(
                step, f"arrives {count:,} times where {barrier.pending:,} arrivals are pending,", warp, address
            )
        barrier.pending -= count
        barrier.bytes += byte_count
        self._join(barrier, self._state.release(np.array([warp])))

    def copy(self, step: int, address: int, warp: int, byte_count: int) -> int | None:
        """The agent of a copy that completes at an mbarrier; None if the mbarrier is not valid."""
        barrier = self.valid_barrier(step, address, warp)
        if barrier is None:
            return None
        agent = self._state.start(AsyncKind.COPY, np.array([warp]))
        barrier.bytes -= byte_count
        self._join(barrier, self._state.clock_of(agent))
        return agent

    def commit(self, step: int, address: int, warp: int, agent: int) -> None:
        """Let an mbarrier track the products that an agent has started."""
        barrier = self.valid_barrier(step, address, warp)
        if barrier is not None:
            barrier.pending -= 1
            self._join(barrier, self._state.end_products(agent))

    def wait(self, address: int, warps: NDArray[np.int64]) -> None:
        """Order warps behind the completed phase of an mbarrier."""
        self._state.acquire(warps, self.barriers[address].released)

    def valid_barrier(self, step: int, address: int, warp: int) -> Mbarrier | None:
        """The mbarrier at an address; None, which is an error, if it is not valid."""
        barrier = self.barriers.get(address)
        if barrier is None:
            self._report(step, "uses an mbarrier that is not initialized, or invalidated,", warp, address)
        return barrier

    def _join(self, barrier: Mbarrier, clock: NDArray[np.int64]) -> None:
        joined = np.zeros((2, max(barrier.clock.shape[1], clock.shape[1])), np.int64)
        for part in (barrier.clock, clock):
            joined[:, : part.shape[1]] = np.maximum(joined[:, : part.shape[1]], part)
        barrier.clock = joined
        if barrier.pending <= 0 and barrier.bytes == 0:
            barrier.phase += 1
            barrier.pending = barrier.expected
            barrier.released, barrier.clock = joined, np.zeros((2, 0), np.int64)

    def _report(self, step: int, error: str, warp: int, address: int) -> None:
        self.errors.setdefault((step, error), (warp, address))


def describe_pending(barrier: Mbarrier, address: int) -> str:
    """Why the current phase of an mbarrier does not complete."""
    missing = f"{barrier.pending:,} of {barrier.expected:,} arrivals and {barrier.bytes:,} bytes of copies are missing"
    if barrier.bytes < 0:
        missing = f"copies bring {-barrier.bytes:,} bytes more than it expects"
    return f"in phase {barrier.phase} of the mbarrier at byte {address:,}, {missing}"
