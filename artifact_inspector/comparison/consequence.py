"""What a difference costs: the order in which differences are told."""

from __future__ import annotations

from artifact_inspector.comparison.pair import FactPair
from artifact_inspector.model import Consequence
from artifact_inspector.vocabulary.fact import Category
from artifact_inspector.vocabulary.rows import fact_of


def consequence_of(fact: FactPair) -> Consequence:
    """What a difference in a fact means for who launches the kernels."""
    row = fact_of(fact.key, fact.region)
    if row is None or row.costs is None:
        return Category(fact.category).consequence
    return row.costs(fact.left, fact.right)


def rank_of(fact: FactPair) -> int:
    """0 for what decides most."""
    return consequence_of(fact).rank
