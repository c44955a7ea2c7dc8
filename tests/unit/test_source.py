"""Lines, columns and carets."""

from __future__ import annotations

import pytest

from artifact_inspector.model.text import EXCERPT_WIDTH, SourceText

TEXT = SourceText("cache/k.ttir", "one\n\ttwo\n\nfour")


@pytest.mark.parametrize(
    ("offset", "line", "column"), [(0, 1, 1), (2, 1, 3), (3, 1, 4), (4, 2, 1), (5, 2, 2), (9, 3, 1), (13, 4, 4)]
)
def test_an_offset_has_a_line_and_a_column_from_one_on(offset: int, line: int, column: int) -> None:
    span = TEXT.position(offset)
    assert (span.line, span.column) == (line, column)
    assert TEXT.line_at(offset) == line


def test_a_newline_belongs_to_the_line_that_it_ends() -> None:
    assert TEXT.line_at(8) == 2
    assert TEXT.line_at(9) == 3


@pytest.mark.parametrize(("line", "text"), [(1, "one"), (2, "\ttwo"), (3, ""), (4, "four"), (0, ""), (5, ""), (-1, "")])
def test_a_line_comes_without_its_newline_and_is_empty_outside_the_text(line: int, text: str) -> None:
    assert TEXT.line_text(line) == text


def test_a_place_is_written_as_editors_understand_it() -> None:
    assert TEXT.position(5).label == "cache/k.ttir:2:2"


def test_the_caret_stands_under_the_column_after_a_tab_too() -> None:
    line, caret = TEXT.position(6).excerpt.split("\n")
    assert line[caret.index("^")] == "w"


def test_a_long_line_is_cut_around_the_caret() -> None:
    long = SourceText("k", "a" * 1000 + "X" + "b" * 1000)
    line, caret = long.position(1000).excerpt.split("\n")
    assert line[caret.index("^")] == "X"
    assert len(line) == EXCERPT_WIDTH + 2


def test_an_empty_text_has_one_empty_line() -> None:
    span = SourceText("k", "").position(0)
    assert (span.line, span.column, span.excerpt) == (1, 1, "  \n  ^")
