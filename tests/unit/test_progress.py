"""Progress of long work where standard error is a pipe."""

from __future__ import annotations

import pytest

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
