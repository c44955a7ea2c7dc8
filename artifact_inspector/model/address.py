"""How addresses of shared memory are made of one another."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from artifact_inspector.model.instruction import Instruction
from artifact_inspector.model.word import Word


class AddressRole(Word):
    """What an instruction is to an address."""

    ALLOCATION = "allocation"
    SAME = "same"
    """Gives an address another name, or one of several an only one."""
    SUM = "sum"


class SharedPlace(NamedTuple):
    """A place in the shared memory of a block, as an operand names it."""

    offset: int
    """Bytes from its start."""
    moves: bool
    """True where something is added that is no constant."""


class AddressStep(NamedTuple):
    """How one instruction makes an address."""

    role: AddressRole
    reads: tuple[str, ...] = ()
    """The values that it is made of."""
    places: tuple[SharedPlace, ...] = ()
    """The places in shared memory that its text names."""
    added: int | None = 0
    """Bytes that are added; None where they cannot be told."""


class Addresses(Protocol):
    """What analysis asks a language about addresses of shared memory."""

    def place(self, operand: str) -> SharedPlace | None:
        """The place that an operand names; None for any other value."""

    def step(self, instruction: Instruction) -> AddressStep | None:
        """How an instruction makes an address; None for one that makes none."""

    def initialised(self, instruction: Instruction) -> str | None:
        """The operand that names the barrier that an instruction initialises."""
