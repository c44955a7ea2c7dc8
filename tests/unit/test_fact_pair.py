"""A fact of two kernels: when it differs, and how its title reads."""

from __future__ import annotations

import pytest

from artifact_inspector.comparison.fact_pair import FactPair, State
from artifact_inspector.vocabulary.fact import Sign


@pytest.mark.parametrize(
    ("state", "differs"),
    [(State.SAME, False), (State.DIFFERENT, True), (State.ONE_SIDED, True), (State.NOT_COMPARED, False)],
)
def test_only_known_values_differ(state: State, differs: bool) -> None:
    pair = FactPair("shared.a", "shared", "  operand a", "B per CTA", "", 1, 2, state)
    assert pair.differs is differs
    assert (pair.title, pair.direction, pair.price) == ("operand a", Sign.NEUTRAL, None)
