"""Counts of one iteration and of code outside of loops are those of the source, whatever the compiler copied."""

from __future__ import annotations

import pytest
from saved import saved

from artifact_inspector.comparison.consequence import is_minor
from artifact_inspector.comparison.corpus import Change, compare_candidates
from artifact_inspector.comparison.fact_pair import FactPair
from artifact_inspector.comparison.matching import Candidate
from artifact_inspector.vocabulary.fact import Sign
from artifact_inspector.vocabulary.rows import summarise


def change_of(left: str, right: str) -> Change:
    sides = [saved(name).facts for name in (left, right)]
    facts = {id(kernel.artifact): kernel for kernel in sides}
    candidates = [Candidate(kernel.artifact) for kernel in sides]
    return compare_candidates(*candidates, lambda artifact: facts[id(artifact)])


def facts_of(change: Change) -> dict[str, FactPair]:
    return {fact.key: fact for fact in change.compared_facts}


def test_an_unrolled_loop_with_an_epilogue_does_as_much_per_iteration() -> None:
    """LLVM of 3.9 unrolls the loop twice and adds an epilogue: 24 instead of 16 matrix instructions in the code."""
    change = change_of("3.6.0/gfx942/matmul_grouped", "3.9.0/gfx942/matmul_grouped")
    facts = facts_of(change)
    for key in ("count.barrier", "count.shared_load", "count.shared_store", "loads.bytes", "bounds.compare"):
        assert (facts[key].differs, facts[key].direction) == (True, Sign.NEUTRAL)
    for key in ("barriers", "shared_loads", "shared_stores", "read_bytes", "compares"):
        assert not facts[f"loop1.trip.{key}"].differs
    assert [facts[f"straight.once.{key}"].right for key in ("barriers", "shared_loads", "shared_stores")] == [0, 0, 0]
    assert (facts["loop1.unrolled"].left, facts["loop1.unrolled"].right) == (None, 2)
    assert change.headline is None
    assert change.failures(("loads", "barriers", "instructions"), is_strict=False) == ()


def test_shared_loads_of_the_next_iteration_are_no_loss() -> None:
    """3.9 loads the operands of the first iteration in front of the loop: 8 instead of 6 shared loads in the code."""
    change = change_of("3.6.0/sm_80/bias_after_loop", "3.9.0/sm_80/bias_after_loop")
    facts = facts_of(change)
    assert (facts["count.shared_load"].right, facts["count.shared_load"].direction) == (8, Sign.NEUTRAL)
    ahead = facts["loop1.trip.loads_ahead"]
    assert (ahead.left, ahead.right, ahead.direction, is_minor(ahead)) == (None, 2, Sign.BETTER, True)


def test_one_more_barrier_of_each_iteration_is_worse() -> None:
    headline = change_of("3.6.0/sm_80/matmul_grouped", "3.9.0/sm_80/matmul_grouped").headline
    assert headline is not None
    assert (headline.fact.key, headline.fact.direction) == ("loop1.trip.barriers", Sign.WORSE)
    assert headline.source == "matmul_grouped.py:82"


@pytest.mark.parametrize(("name", "loop"), [("persistent_matmul", "loop1"), ("nested_loops", "loop1")])
def test_an_outer_loop_has_no_copies_of_the_inner_one(name: str, loop: str) -> None:
    values = summarise(saved(f"3.6.0/sm_80/{name}").facts).facts
    assert values[f"{loop}.trip.barriers"] == {"persistent_matmul": 2, "nested_loops": 3}[name]
    assert f"{loop}.trip.read_bytes" not in values
