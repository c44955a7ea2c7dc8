"""No pattern takes time that grows with the square of a text."""

from __future__ import annotations

import re

import pytest

from tests.fuzz.patterns import find_slow, patterns


@pytest.mark.long
def test_no_pattern_is_slow_on_what_it_matches_in_part() -> None:
    asked = list(patterns())
    assert len(asked) > 200
    assert {name: slow for name, pattern, ways in asked if (slow := find_slow(pattern, ways, 8))} == {}


@pytest.mark.long
def test_a_slow_pattern_is_noticed() -> None:
    assert find_slow(re.compile(r"^\s*\.x (\d+)", re.M), frozenset({"search"}), 60) is not None
    assert find_slow(re.compile(r"^[ \t]*\.x (\d+)", re.M), frozenset({"search"}), 20) is None
