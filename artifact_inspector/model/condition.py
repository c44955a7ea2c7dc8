"""What instructions are to the conditions under which memory is accessed."""

from __future__ import annotations

from enum import Flag, auto
from typing import Protocol

from artifact_inspector.model.instruction import Instruction, Operands
from artifact_inspector.model.word import Word


class ConditionRole(Word):
    """What an instruction does with conditions."""

    NONE = "none"
    COMPARE = "compare"
    """Compares integers."""
    LOGIC = "logic"
    """Makes conditions of conditions."""
    FOLD = "fold"
    """Folds a condition into an operand: chooses between a number and one that turns the access off."""
    CHOICE = "choice"
    """Chooses between two numbers, either of which may turn an access off."""
    NOWHERE = "nowhere"
    """Makes the offset that lies behind every buffer (2³¹)."""
    TRUE = "true"
    """Makes a condition that always holds."""
    DIVISION = "division"
    """Divides integers."""
    WIDE_RECIPROCAL = "wide reciprocal"
    """Scales the reciprocal of a 64-bit integer, to divide by it."""
    RECIPROCAL = "reciprocal"
    """The same for 32 bits, behind a reciprocal that does not show that it is an integer's."""


class Masking(Flag):
    """How an access may be turned off for a thread."""

    NONE = 0
    OWN = auto()
    """By a guard or a mask operand."""
    FOLDED = auto()
    """By another operand: an offset out of bounds, a size of nothing. There need not be a mask."""


class LaneChange(Word):
    """What an instruction does to the mask of lanes that run."""

    NARROWS = "narrows"
    RESTORES = "restores"


class Conditions(Protocol):
    """What analysis asks a language about conditions."""

    def takes_part(self, opcode: str) -> bool:
        """False for an opcode that is no condition's business, whatever its operands."""

    def role(self, instruction: Instruction) -> ConditionRole:
        """What an instruction does with conditions."""

    def operands(self, instruction: Instruction) -> Operands:
        """What an instruction defines and reads, with the condition code where it is implied."""

    def masking(self, instruction: Instruction) -> Masking:
        """How an access may be turned off, but by a branch or a mask of lanes."""

    def mask(self, instruction: Instruction) -> tuple[str, ...]:
        """The values that may hold the mask of an access."""

    def may_change_lanes(self, opcode: str) -> bool:
        """False for an opcode that leaves the mask of lanes alone, whatever its operands."""

    def lanes(self, instruction: Instruction) -> LaneChange | None:
        """What an instruction does to the mask of lanes; None for nothing."""

    @property
    def has_lanes(self) -> bool:
        """True for a language whose code changes a mask of lanes."""
