"""What memory operations move, and what waits wait for."""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

from artifact_inspector.model.word import Word


class Access(NamedTuple):
    """The reads of a memory operation by what they are for."""

    address: tuple[str, ...]
    mask: tuple[str, ...]
    value: tuple[str, ...]
    """Data stored, combined, or taken where the mask is off."""


class WaitPurpose(Word):
    """What a wait is there for."""

    LOADS = "loads and copies"
    """It counts them, or groups of them."""
    BARRIER = "a barrier"
    """It counts nothing: copies that land and warps that arrive are one to it."""
    MATRIX = "matrix operations"
    TENSOR_MEMORY = "accesses to tensor memory"
    STORES = "stores"
    USE = "the use of a register"


class Queue(Enum):
    """What tells that an operation in flight is complete; what a wait waits for."""

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
        """What a wait for it is there for."""
        return _PURPOSES.get(self, WaitPurpose.LOADS)

    @property
    def completes_loads(self) -> bool:
        """True where loads or copies complete at its waits."""
        return self.purpose in (WaitPurpose.LOADS, WaitPurpose.BARRIER)

    @property
    def is_counted_singly(self) -> bool:
        """True where its waits count loads and copies one by one, in the order of their issue."""
        return self in (Queue.LOADS, Queue.COPIES, Queue.TENSORS)


_PURPOSES = {
    Queue.USE: WaitPurpose.USE,
    Queue.PHASE: WaitPurpose.BARRIER,
    Queue.MATRIX: WaitPurpose.MATRIX,
    Queue.STORES: WaitPurpose.STORES,
    Queue.TENSOR_MEMORY: WaitPurpose.TENSOR_MEMORY,
}


class Wait(NamedTuple):
    """What a wait instruction asks for."""

    op: str
    """The opcode as people write it: `cp.async.wait_group`, `s_waitcnt vmcnt`, `ttg.async_wait`."""
    depth: int | None
    """How many younger members of its queue may still be in flight; None where the wait names
    none (a barrier phase)."""
    queue: Queue
    barrier: str | None = None
    """The value that names the barrier, for a wait for a phase."""
    closes: bool = False
    """True for a wait for all copies, those that no commit has closed into a group too."""
    spelt: str = "{op} {depth}"
    """How the language writes the opcode with its depth."""


class Pointing(Enum):
    """What an operation of tensor-level IR takes or makes of pointers."""

    NONE = "none"
    ONE = "one"
    """One pointer: an access through it moves one element for the whole block."""
    MANY = "many"
    """A tensor of pointers, or a descriptor."""

    __hash__ = object.__hash__


class Transfer(NamedTuple):
    """What a global load, store, atomic or asynchronous copy moves, as its text says."""

    bytes: int | None
    """Bytes per thread, or per block where `of_block`; None where the text does not say."""
    queue: Queue | None
    """What tells that it is complete; None for a store or reduction that no wait counts."""
    cache: tuple[str, ...] = ()
    """Cache modifiers and eviction policies as written: `cg`, `L1::evict_last`, `nt`, `sc0` …"""
    of_block: bool = False
    """True for a copy that moves a tile for the whole block (TMA), and for tensor-level IR."""
    barrier: str | None = None
    """The value that names the barrier it arrives at."""
