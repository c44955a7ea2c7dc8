"""One instruction of any language, with its kind and place."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from artifact_inspector.model.kind import EventKind
from artifact_inspector.model.location import Location


class Operands(NamedTuple):
    """Names of the values that an instruction defines and reads, in the order of the text.

    Register ranges are spelled out one by one (`v[2:3]` is `v2`, `v3`); immediates are left out.
    """

    results: tuple[str, ...]
    reads: tuple[str, ...]


class Instruction(NamedTuple):
    """One instruction, or one event inside a line of inline assembly."""

    line: int
    """1-based line in the file."""
    opcode: str
    """With its modifiers, without guard and operands: `ld.global.v4.b32`, `tt.load`."""
    kind: EventKind
    location: Location | None
    guard: str | None
    """Predicate under which it runs (`%p1`, `!%p1`), None when it always does."""
    text: str
    """The statement without location and comment."""
    decode: Callable[[str], Operands]
    """The format's reader of operands; called only for the few instructions that need it."""

    @property
    def operands(self) -> Operands:
        """Results and reads, decoded from the text at each call."""
        return self.decode(self.text)
