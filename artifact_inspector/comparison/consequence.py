"""What a difference costs: the order in which differences are reported."""

from __future__ import annotations

from artifact_inspector.comparison.pair import FactPair
from artifact_inspector.model import Consequence
from artifact_inspector.vocabulary.fact import Category
from artifact_inspector.vocabulary.rows import fact_of


def consequence_of(fact: FactPair) -> Consequence:
    """The consequence of a difference in a fact for a launch of the kernel."""
    row = fact_of(fact.key, fact.region)
    if row is None or row.costs is None:
        return Category(fact.category).consequence
    return row.costs(fact.left, fact.right)


def rank_of(fact: FactPair) -> int:
    """0 for the most important."""
    return consequence_of(fact).rank
