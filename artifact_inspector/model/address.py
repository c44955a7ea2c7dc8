"""How shared-memory addresses are computed."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from artifact_inspector.model.instruction import Instruction
from artifact_inspector.model.string_enum import StringEnum


class AddressRole(StringEnum):
    """Role of an instruction in an address computation."""

    ALLOCATION = "allocation"
    SAME = "same"
    """Copies or renames an address, or merges several into one."""
    SUM = "sum"


class SharedLocation(NamedTuple):
    """A location in the shared memory of a block, as an operand names it."""

    offset: int
    """Bytes from the start of shared memory."""
    is_dynamic: bool
    """True where a value that is not a constant is added to the offset."""


class AddressStep(NamedTuple):
    """How one instruction computes an address."""

    role: AddressRole
    reads: tuple[str, ...] = ()
    """The values that the address is computed from."""
    locations: tuple[SharedLocation, ...] = ()
    """The shared-memory locations named in the instruction's text."""
    added_bytes: int | None = 0
    """Bytes added to the address; None if unknown."""


class SharedAddresses(Protocol):
    """A language's interface to the analysis of shared-memory addresses."""

    def shared_location(self, operand: str) -> SharedLocation | None:
        """The shared-memory location that an operand names; None for any other value."""

    def address_step(self, instruction: Instruction) -> AddressStep | None:
        """How an instruction computes an address; None for an instruction that computes none."""

    def initialised_barrier(self, instruction: Instruction) -> str | None:
        """The operand that names the barrier initialised by an instruction."""
