"""Errors say what happened, where, and what to do."""

from __future__ import annotations

import pytest

from artifact_inspector.errors import CacheError, CompileError, InspectorError, ParseError, UsageError
from artifact_inspector.model.text import SourceText


@pytest.mark.parametrize("kind", [UsageError, CacheError, CompileError, ParseError])
def test_every_error_is_an_inspector_error(kind: type[Exception]) -> None:
    assert issubclass(kind, InspectorError)


def test_an_error_is_its_message_and_then_its_remedy() -> None:
    error = CacheError("There is no such directory.", "Name one that exists.")
    assert str(error) == "There is no such directory. Name one that exists."
    assert str(CacheError("There is no such directory.")) == "There is no such directory."
    assert (error.message, error.remedy) == ("There is no such directory.", "Name one that exists.")


def test_a_parse_error_shows_place_fault_line_caret_and_remedy() -> None:
    span = SourceText("k.ttir", "module {\n  ???\n}").position(11)
    assert str(ParseError("what is this", span, "Compile it again.")) == (
        "k.ttir:2:3: what is this\n    ???\n    ^\nCompile it again."
    )
    assert str(ParseError("what is this", span)) == "k.ttir:2:3: what is this\n    ???\n    ^"
