"""What an observer of a simulation receives: every access to global and shared memory, and deadlocks.

A simulation has no observer by default, and then pays nothing for it.
"""

from __future__ import annotations

from typing import NamedTuple

from artifact_inspector.execution.interpreter.affine import BoolArray, IntArray
from artifact_inspector.execution.interpreter.program import ProgramStep
from artifact_inspector.execution.interpreter.state import MachineState


class GlobalAccess(NamedTuple):
    """An access of some CTAs to global memory; all addresses are known."""

    step: ProgramStep
    ctas: IntArray
    """Linear numbers of the CTAs that take part."""
    addresses: IntArray
    """Shape (CTAs or 1, lanes)."""
    mask: BoolArray | None
    """Lanes that take part, same shape; None means all."""
    cta_offsets: IntArray | None
    """Byte offset of each CTA, if all of them share one row of addresses."""
    size: int
    """Bytes per lane."""
    is_write: bool
    """Whether it writes, or updates as an atomic."""
    is_box: bool = False
    """Whether it is a tensor copy, whose lanes are pieces of a box and no threads."""

    @property
    def active_addresses(self) -> IntArray:
        """Addresses of the lanes that take part, flat, without the CTA offsets."""
        return self.addresses.ravel() if self.mask is None else self.addresses[self.mask]

    @property
    def repeats(self) -> int:
        """How often each row of addresses counts: once per CTA if all of them share it."""
        return len(self.ctas) if len(self.addresses) == 1 else 1


class SharedMemoryAccess(NamedTuple):
    """An access of one CTA, or of several at equal addresses, to shared memory."""

    step: ProgramStep
    ctas: int
    """CTAs that execute it."""
    addresses: IntArray
    """Shape (CTAs or 1, lanes)."""
    mask: BoolArray | None
    """Lanes that take part, same shape; None means all."""
    size: int
    """Bytes per lane."""
    is_store: bool


class AccessObserver:
    """Receives the accesses of a simulation; ignores those that a subclass does not override."""

    observes_shared = False
    """Whether it receives accesses to shared memory; the CTAs then run without speculation."""

    def observe_global(self, access: GlobalAccess) -> None:
        """Receive an access to global memory."""

    def observe_shared(self, access: SharedMemoryAccess) -> None:
        """Receive an access to shared memory."""

    def observe_deadlock(self, state: MachineState) -> None:
        """Receive a state in which all groups wait; it may raise UndecidedPath to end the run."""
