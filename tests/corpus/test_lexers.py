"""No lexer makes an error token of any line of any fixture.

No rule but that for a comment over several lines goes beyond its line, so a line is lexed alike wherever it stands,
and lines that differ in their numbers alone are lexed once.
"""

from __future__ import annotations

import re
from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pygments.token import Error
from saved import saved_kernels

from artifact_inspector.model import Stage
from artifact_inspector.report.lexers.scanner import lexer_for, scan

DIGITS = re.compile(r"\d+")


@cache
def lines() -> dict[Stage, dict[str, str]]:
    """The lines of all fixtures by what they are but for their numbers."""
    found: dict[Stage, dict[str, str]] = {stage: {} for stage in Stage}
    for kernel in saved_kernels():
        for stage in kernel.stages:
            for line in set(kernel.text(stage).splitlines()):
                found[stage].setdefault(DIGITS.sub("0", line), line)
    return found


@pytest.mark.parametrize("stage", Stage, ids=lambda stage: stage.value)
def test_no_line_of_a_fixture_holds_an_error_token(stage: Stage) -> None:
    text = "\n".join(lines()[stage].values())
    assert len(text) > 10_000
    wrong = {value for _, token, value in lexer_for(stage).get_tokens_unprocessed(text) if token is Error}
    assert wrong == set()


@pytest.mark.parametrize("stage", Stage, ids=lambda stage: stage.value)
def test_one_pattern_finds_what_pygments_finds(stage: Stage) -> None:
    text = "\n".join(lines()[stage].values())
    assert list(scan(stage, text)) == list(lexer_for(stage).get_tokens(text))


PIECES = [
    *"\n \t%@#!.:;,$\"'\\/*-0x9aZ_(){}<>é\U0001d7d8",
    "/*",
    "*/",
    "//",
    "0f3F800000",
    "b32",
    "loc(",
    "v_add",
    "R7",
]


@given(st.sampled_from(Stage), st.lists(st.sampled_from(PIECES), max_size=30).map("".join))
def test_one_pattern_finds_what_pygments_finds_in_any_text(stage: Stage, text: str) -> None:
    theirs = [(token, value) for _, token, value in lexer_for(stage).get_tokens_unprocessed(text)]
    assert list(scan(stage, text)) == theirs
