"""What memory operations move, and what waits wait for."""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

from artifact_inspector.model.string_enum import StringEnum


class AccessOperands(NamedTuple):
    """The reads of a memory operation by role."""

    address: tuple[str, ...]
    mask: tuple[str, ...]
    value: tuple[str, ...]
    """Data that is stored or combined, or used where the mask is off."""


class WaitPurpose(StringEnum):
    """Purpose of a wait."""

    LOADS = "loads and copies"
    """The wait counts loads and copies, or groups of them."""
    BARRIER = "a barrier"
    """The wait counts nothing: the barrier does not distinguish completed copies from arriving warps."""
    MATRIX = "matrix operations"
    TENSOR_MEMORY = "accesses to tensor memory"
    STORES = "stores"
    USE = "the use of a register"


class Queue(Enum):
    """How an operation in flight signals completion; what a wait waits for."""

    USE = "first use"
    """A register: the first instruction that reads it waits."""
    GROUP = "groups of copies"
    """Committed groups of copies, in order (`cp.async`, AMD's asyncmark)."""
    PHASE = "barrier phase"
    """A barrier in shared memory that counts bytes and arrivals (mbarrier)."""
    LOADS = "vector-memory loads"
    """AMD's vmcnt or loadcnt, in order; up to gfx9 stores count too."""
    COPIES = "copies"
    """AMD's asynccnt, in order."""
    TENSORS = "tensor copies"
    """AMD's tensorcnt, in order."""
    MATRIX = "groups of matrix operations"
    """Committed groups of asynchronous matrix operations (wgmma, tcgen05)."""
    STORES = "groups of stores"
    """Committed groups of bulk stores; AMD's vscnt or storecnt."""
    TENSOR_MEMORY = "accesses to tensor memory"
    """Loads and stores of tensor memory (tcgen05.ld, tcgen05.st)."""

    __hash__ = object.__hash__

    @property
    def purpose(self) -> WaitPurpose:
        """Purpose of a wait for this queue."""
        return _PURPOSES.get(self, WaitPurpose.LOADS)

    @property
    def completes_loads(self) -> bool:
        """True if waits of this queue complete loads or copies."""
        return self.purpose in (WaitPurpose.LOADS, WaitPurpose.BARRIER)

    @property
    def is_counter(self) -> bool:
        """True if waits of this queue count single loads and copies, in issue order."""
        return self in (Queue.LOADS, Queue.COPIES, Queue.TENSORS)


_PURPOSES = {
    Queue.USE: WaitPurpose.USE,
    Queue.PHASE: WaitPurpose.BARRIER,
    Queue.MATRIX: WaitPurpose.MATRIX,
    Queue.STORES: WaitPurpose.STORES,
    Queue.TENSOR_MEMORY: WaitPurpose.TENSOR_MEMORY,
}


class WaitOp(NamedTuple):
    """What a wait instruction waits for."""

    op: str
    """The usual opcode: `cp.async.wait_group`, `s_waitcnt vmcnt`, `ttg.async_wait`."""
    depth: int | None
    """Younger members of the queue that may still be in flight after the wait; None for a barrier phase."""
    queue: Queue
    barrier: str | None = None
    """For a wait for a barrier phase, the value that names the barrier."""
    includes_uncommitted: bool = False
    """True for a wait for all copies, including those not yet committed to a group."""
    template: str = "{op} {depth}"
    """Format of the opcode with its depth."""


class PointerUse(Enum):
    """How an operation of tensor-level IR uses or makes pointers."""

    NONE = "none"
    ONE = "one"
    """One pointer: an access through it moves one element for the whole block."""
    MANY = "many"
    """A tensor of pointers, or a descriptor."""

    __hash__ = object.__hash__


class Transfer(NamedTuple):
    """What a global load, store, atomic or asynchronous copy moves, as stated in its text."""

    bytes: int | None
    """Bytes per thread, or per block if `of_block`; None if the text does not state them."""
    queue: Queue | None
    """How completion is signalled; None for a store or reduction that no wait counts."""
    cache: tuple[str, ...] = ()
    """Cache modifiers and eviction policies as written: `cg`, `L1::evict_last`, `nt`, `sc0` …"""
    is_per_block: bool = False
    """True for a copy of a tile for the whole block (TMA), and for tensor-level IR."""
    barrier: str | None = None
    """The value that names the barrier at which it arrives."""
