"""One instruction of any language: its kind, source location, registers and scheduling information."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import NamedTuple

from artifact_inspector.model.kind import EventKind
from artifact_inspector.model.location import Location


class Operands(NamedTuple):
    """Names of the values that an instruction defines and reads, in the order of the text.

    Register ranges are expanded (`v[2:3]` is `v2`, `v3`); immediates are omitted.
    """

    results: tuple[str, ...]
    reads: tuple[str, ...]


class Instruction(NamedTuple):
    """One instruction, or one event within a line of inline assembly."""

    line: int
    """1-based line in the file."""
    opcode: str
    """With modifiers, without guard and operands: `ld.global.v4.b32`, `tt.load`."""
    kind: EventKind
    location: Location | None
    guard: str | None
    """Predicate of the instruction (`%p1`, `!%p1`); None if it always runs."""
    text: str
    """The statement without location and comment."""
    decode: Callable[[str], Operands]
    """The format's operand decoder; called only for the few instructions whose operands are needed."""

    @property
    def operands(self) -> Operands:
        """Results and reads, decoded from the text at each call."""
        return self.decode(self.text)


class RegisterBank(Enum):
    """A register file, of which each thread or warp has a share."""

    VECTOR = "vector"
    """One value per lane: NVIDIA's R, AMD's v. Limits the number of resident warps."""
    ACCUMULATOR = "accumulator"
    """AMD's a; from gfx90a on in the same register file as the vector registers."""
    SCALAR = "scalar"
    """One value per warp: NVIDIA's UR, AMD's s, vcc, exec."""
    PREDICATE = "predicate"
    """One bit per lane or per warp: NVIDIA's P and UP."""


class ControlInfo(NamedTuple):
    """Scheduling information encoded in an NVIDIA instruction (Volta and later)."""

    stall: int
    """Cycles before the warp may issue its next instruction."""
    yields: bool
    """True if the scheduler may switch to another warp."""
    write_barrier: int | None
    """Scoreboard (0 to 5) that is released when the result is written."""
    read_barrier: int | None
    """Scoreboard that is released when the operands are read."""
    wait_mask: int
    """Scoreboards that the instruction waits for, one bit per scoreboard."""
    reuse: int | None
    """Source operands kept in the reuse cache, one bit per operand; None where the text does not show them."""
