"""JSON with indentation is the text that `json.dumps` writes, faster."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from artifact_inspector.report.json import as_text

_WORDS = st.text('abc "\\/é', max_size=4)
_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | _WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_WORDS, inner, max_size=3),
    max_leaves=12,
)


@given(_VALUES)
@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_the_text_is_that_of_the_standard_library(value: Any) -> None:
    assert as_text(value, "utf-8") == json.dumps(value, indent=2, ensure_ascii=False) + "\n"
    assert as_text(value, None) == json.dumps(value, indent=2) + "\n"
    assert as_text(value, None, indent=None) == json.dumps(value) + "\n"


@pytest.mark.parametrize("value", [float("inf"), [float("nan")], {"a": [1e999]}])
def test_infinite_numbers_are_null(value: Any) -> None:
    assert "null" in as_text(value, None)
