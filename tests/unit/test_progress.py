"""Progress of long work where standard error is a pipe."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from saved import FIXTURES
from typer.testing import CliRunner

from artifact_inspector.cli import app
from artifact_inspector.report import progress


def test_a_pipe_gets_a_line_every_twenty_seconds(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    seconds = iter([0.0, 1.0, 19.0, 21.0, 30.0, 42.0])
    monkeypatch.setattr("artifact_inspector.report.progress.time.monotonic", lambda: next(seconds))
    with progress.progress_bar(1234, "ranking") as advance:
        for name in ("a", "b", "c", "d", "e"):
            advance(name)
    written = capsys.readouterr()
    assert written.out == ""
    assert written.err.splitlines() == ["ranking 3 of 1,234: c", "ranking 5 of 1,234: e"]


def test_short_work_in_a_pipe_is_silent(capsys: pytest.CaptureFixture[str]) -> None:
    with progress.progress_bar(3, "reading") as advance:
        for name in ("a", "b", "c"):
            advance(name)
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(("is_streamed", "is_file", "bars"), [(False, False, 1), (True, True, 1), (True, False, 0)])
def test_a_terminal_shows_no_bar_over_results_that_are_printed_meanwhile(
    is_streamed: bool, is_file: bool, bars: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    seconds, started = iter([0.0, 2.0, 30.0]), list[str]()
    monkeypatch.setattr("artifact_inspector.report.progress.time.monotonic", lambda: next(seconds))
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    monkeypatch.setattr(progress, "_writes_to_file", lambda: is_file)
    start = progress._start
    monkeypatch.setattr(progress, "_start", lambda verb: (started.append(verb), start(verb))[1])
    with progress.progress_bar(2, "reading", is_streamed=is_streamed) as advance:
        advance("a")
        advance("b")
    assert started == ["reading"] * bars
    assert "reading 2 of 2" not in capsys.readouterr().err


def test_a_document_has_one_bar_for_all_batches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bars = list[int]()

    @contextmanager
    def record_bar(total: int, verb: str, *, is_streamed: bool = False) -> Iterator[Callable[[str], None]]:
        assert is_streamed
        bars.append(0)

        def advance(name: str) -> None:
            assert name == "softmax_kernel"
            bars[-1] += 1

        yield advance
        assert bars[-1] == total

    monkeypatch.setattr("artifact_inspector.cli._listing.progress_bar", record_bar)
    monkeypatch.setattr("artifact_inspector.cli._loading.progress_bar", record_bar)
    monkeypatch.setattr("artifact_inspector.facts.fact_index.FIRST_BATCH", 1)
    for number in range(3):
        shutil.copytree(FIXTURES / "3.6.0" / "sm_80" / "softmax", tmp_path / str(number))
    assert CliRunner().invoke(app, [str(tmp_path), "--json"]).exit_code == 0
    assert bars == [3]
