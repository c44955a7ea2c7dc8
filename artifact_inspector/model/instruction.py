"""One instruction of any language, with its kind and source location."""

from __future__ import annotations

from collections.abc import Callable
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
