"""The lines of a region: rounds marked, what is between them told in words."""

from __future__ import annotations

import re

import pytest
from saved import FIXTURES
from typer.testing import CliRunner

from artifact_inspector.cli import app


@pytest.fixture
def lines(monkeypatch: pytest.MonkeyPatch) -> object:
    monkeypatch.setenv("COLUMNS", "110")
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.chdir(FIXTURES)

    def of(*words: str, stage: str = "llir") -> list[str]:
        result = CliRunner().invoke(app, ["3.6.0/sm_80", "flash", "--ir", "--stage", stage, *words])
        assert result.exit_code == 0, result.output
        return result.output.splitlines()

    return of


def test_a_long_region_is_cut_to_its_events_and_says_what_is_between(lines) -> None:  # type: ignore[no-untyped-def]
    said = lines()
    assert len(said) < 80
    (elided,) = [line for line in said if "372 lines" in line]
    assert elided.strip().startswith("… 372 lines: 116 float ops")
    assert said[-1] == "509 lines in total; --context N shows N around each event"


def test_shown_and_left_out_lines_are_all_lines(lines) -> None:  # type: ignore[no-untyped-def]
    said = lines()
    shown = sum(re.match(r"[\d ]* ?\w*\d* +\d+ {3}\S", line) is not None for line in said)
    left_out = sum(int(found[1]) for line in said if (found := re.match(r" +… (\d+) lines?", line)))
    assert shown + left_out == 509


def test_rounds_are_marked_where_they_begin(lines) -> None:  # type: ignore[no-untyped-def]
    said = lines()
    marks = [(at, line.strip()) for at, line in enumerate(said) if "── round" in line]
    assert [mark for _, mark in marks] == [
        "── round 1 computes on k flash_attention.py:51, to line 156",
        "── round 2 computes on v flash_attention.py:60, to line 594",
        "── round 1 loads k flash_attention.py:51",
        "── round 2 loads v flash_attention.py:60",
    ]
    assert " M 141 " in said[marks[0][0] + 1]
    assert " A 608 " in said[marks[2][0] + 1]


def test_more_context_shows_more_and_enough_shows_all(lines) -> None:  # type: ignore[no-untyped-def]
    none, some, all_ = (lines("--context", str(n)) for n in (0, 4, 1000))
    assert len(none) < len(some) < len(all_)
    assert lines("--context", "9" * 30) == all_
    assert not any("…" in line for line in all_)


def test_a_short_region_is_whole(lines) -> None:  # type: ignore[no-untyped-def]
    said = lines(stage="ttgir")
    assert not any("── round" in line or "…" in line for line in said)
