"""What a difference costs: the order in which differences are told."""

from __future__ import annotations

from enum import IntEnum

from artifact_inspector.comparison.pair import FactPair
from artifact_inspector.vocabulary.fact import Category

__all__ = ["Consequence", "consequence_of"]


class Consequence(IntEnum):
    """What it means for who launches the kernel, the worst first."""

    NO_LAUNCH = 0
    """No block fits: a launch fails."""
    SPILLS = 1
    MATRIX = 2
    """The matrix unit does the dots of one alone."""
    OCCUPANCY = 3
    IN_FLIGHT = 4
    ORDER = 5
    REST = 6


_OF_CATEGORY = {
    Category.SPILLS: Consequence.SPILLS,
    Category.OCCUPANCY: Consequence.OCCUPANCY,
    Category.WAITS: Consequence.IN_FLIGHT,
    Category.IN_FLIGHT: Consequence.IN_FLIGHT,
    Category.VERDICT: Consequence.ORDER,
}


def consequence_of(fact: FactPair) -> Consequence:
    """What a difference in a fact costs."""
    if fact.key == "occupancy" and 0 in (fact.left, fact.right) and fact.left != fact.right:
        return Consequence.NO_LAUNCH
    if fact.key.startswith("occupancy."):
        return Consequence.REST  # the same in threads, and why
    if (fact.category == Category.MMA or fact.key == "count.matrix") and _is_lost(fact):
        return Consequence.MATRIX
    return _OF_CATEGORY.get(Category(fact.category), Consequence.REST)


def _is_lost(fact: FactPair) -> bool:
    """True where one side alone has matrix instructions, or multiply-adds in their place."""
    return fact.key.rpartition(".")[2] in ("matrix", "mma", "fused") and ((not fact.left) != (not fact.right))
