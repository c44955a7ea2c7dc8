"""One fact of two kernels: both values, how they compare, and which side is better."""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

from artifact_inspector.model.string_enum import StringEnum
from artifact_inspector.vocabulary.fact import Sign, Value


class PairSide(StringEnum):
    """One of the two kernels that are compared."""

    LEFT = "left"
    RIGHT = "right"


SIDES = (PairSide.LEFT, PairSide.RIGHT)


def codes_of(value: Value) -> frozenset[str]:
    """The codes of findings in a value; none if they are unknown."""
    return frozenset(value) if isinstance(value, tuple) else frozenset()


class State(Enum):
    """How the two values of a fact compare."""

    SAME = "same"
    DIFFERENT = "different"
    ONE_SIDED = "one side"
    """Only one kernel has it (its waits, its loop): a difference."""
    NOT_COMPARED = "not compared"
    """One side is not known, or lacks the stage that would tell."""


class FactPair(NamedTuple):
    """One fact of two kernels; None on a side that lacks it or does not know it."""

    key: str
    category: str
    label: str
    unit: str
    region: str
    left: Value
    right: Value
    state: State
    reason: str = ""
    """Why it is not compared."""
    step: str = ""
    """The stage that it was read from; empty for what no single text says."""
    unknown: tuple[PairSide, ...] = ()
    """The sides for which it is unknown."""
    direction: Sign = Sign.NEUTRAL
    """Whether the right side is better or worse."""
    price: float | None = None
    """Predicted time of the right side ÷ that of the left by this fact only; None if unknown."""

    @property
    def title(self) -> str:
        """The label without its indent."""
        return self.label.strip()

    @property
    def is_left_out(self) -> bool:
        """True where both values are known, but do not compare."""
        return self.state is State.NOT_COMPARED and None not in (self.left, self.right)

    @property
    def differs(self) -> bool:
        """True where the two kernels are known to differ in it."""
        return self.state in (State.DIFFERENT, State.ONE_SIDED)
