"""Lines of a loop that cost more: they add up to the difference of the fact."""

from __future__ import annotations

from collections import Counter

from saved import saved

from artifact_inspector.comparison.line_changes import find_line_changes
from artifact_inspector.comparison.pair import compare_kernels


def test_the_lines_of_a_fact_add_up_to_it() -> None:
    left, right = (saved(f"3.6.0/{target}/flash_attention").facts for target in ("sm_80", "gfx942"))
    pair = compare_kernels(left, right)
    changes = list(find_line_changes(pair))
    by_fact: Counter[str] = Counter()
    for change in changes:
        by_fact[change.key] += change.right - change.left
    facts = {fact.key: (fact.right or 0) - (fact.left or 0) for fact in pair.facts if fact.key in by_fact}
    assert facts == by_fact
    assert by_fact["loop1.trip.barriers"] == 2
    assert (changes[0].source, changes[0].left, changes[0].right) == ("flash_attention.py:62", 0, 2)


def test_equal_kernels_have_no_such_line() -> None:
    kernel = saved("3.6.0/gfx942/flash_attention").facts
    assert list(find_line_changes(compare_kernels(kernel, kernel))) == []
