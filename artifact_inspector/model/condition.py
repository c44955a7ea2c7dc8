"""How instructions take part in the conditions of memory accesses."""

from __future__ import annotations

from enum import Flag, auto
from typing import Protocol

from artifact_inspector.model.instruction import Instruction, Operands
from artifact_inspector.model.string_enum import StringEnum


class ConditionRole(StringEnum):
    """What an instruction does with conditions."""

    NONE = "none"
    COMPARE = "compare"
    """Compares integers."""
    LOGIC = "logic"
    """Combines conditions."""
    FOLD = "fold"
    """Folds a condition into an operand: selects between a value and one that disables the access."""
    SELECT = "choice"
    """Selects between two values; either may disable an access."""
    OUT_OF_BOUNDS = "nowhere"
    """Produces an offset beyond the end of every buffer (2³¹)."""
    TRUE = "true"
    """Produces a condition that is always true."""
    DIVISION = "division"
    """Divides integers."""
    WIDE_RECIPROCAL = "wide reciprocal"
    """Scales the reciprocal of a 64-bit integer, to divide by it."""
    RECIPROCAL = "reciprocal"
    """Scales the reciprocal of a 32-bit integer, where the reciprocal itself does not show an integer operand."""


class Masking(Flag):
    """How an access may be disabled for a thread."""

    NONE = 0
    DIRECT = auto()
    """By a guard or a mask operand."""
    FOLDED = auto()
    """By another operand: an out-of-bounds offset or a size of zero. The program need not have a mask."""


class LaneChange(StringEnum):
    """How an instruction changes the mask of active lanes."""

    NARROWS = "narrows"
    RESTORES = "restores"


class Conditions(Protocol):
    """A language's interface to the analysis of conditions."""

    def is_relevant(self, opcode: str) -> bool:
        """False for an opcode that never takes part in a condition, whatever its operands."""

    def role(self, instruction: Instruction) -> ConditionRole:
        """What an instruction does with conditions."""

    def operands(self, instruction: Instruction) -> Operands:
        """What an instruction defines and reads, including an implied condition code."""

    def masking(self, instruction: Instruction) -> Masking:
        """How an access may be disabled, other than by a branch or the mask of active lanes."""

    def mask(self, instruction: Instruction) -> tuple[str, ...]:
        """The values that may hold the mask of an access."""

    def may_change_lanes(self, opcode: str) -> bool:
        """False for an opcode that never changes the mask of active lanes, whatever its operands."""

    def lane_change(self, instruction: Instruction) -> LaneChange | None:
        """How an instruction changes the mask of active lanes; None if it does not."""

    @property
    def has_lane_mask(self) -> bool:
        """True for a language with an explicit mask of active lanes."""
