"""What an autotuner is left to time."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import pytest

from artifact_inspector.api.pruning import Pruner, _attempt, _CompileJobs, prune_configs
from artifact_inspector.errors import UsageError
from artifact_inspector.execution.timing.ranking import RankedLaunch


def ranked(launch: int, score: float | None, *, fits: bool = True) -> RankedLaunch:
    return RankedLaunch(launch, "", "", score, None, {}, fits, 1, 1)


def pruned(rows: list[RankedLaunch], count: int, keep: int, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    prune = prune_configs(keep)
    prune.bind(SimpleNamespace())
    monkeypatch.setattr(Pruner, "_compile", lambda *_: {0: None})
    monkeypatch.setattr(Pruner, "_rank", lambda *_: rows)
    return prune([f"config {at}" for at in range(count)], {}, grid=(1,))


def test_the_best_are_left_in_their_order(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [ranked(2, 1.0), ranked(0, 2.0), ranked(1, 3.0)]
    assert pruned(rows, 3, 2, monkeypatch) == ["config 2", "config 0"]


def test_what_has_no_score_is_timed_where_there_is_room_and_what_does_not_fit_is_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rows = [ranked(1, 1.0), ranked(0, None), ranked(2, None, fits=False)]
    assert pruned(rows, 3, 3, monkeypatch) == ["config 1", "config 0"]


def test_where_nothing_can_be_ranked_all_are_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    assert pruned([], 2, 1, monkeypatch) == ["config 0", "config 1"]


def test_a_pruner_that_knows_no_kernel_says_so() -> None:
    with pytest.raises(UsageError, match="bind"):
        prune_configs(5)([], {}, grid=(1,))


def test_an_autotuner_needs_a_configuration() -> None:
    with pytest.raises(UsageError):
        prune_configs(0)


def test_compiles_are_deferred_until_their_result_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[str] = []

    class Mode:
        """As triton.AsyncCompileMode: on leaving, it would wait for what `submit` returned."""

        def __init__(self, executor: Any) -> None:
            self.executor, self.raw_futures = executor, []

        def __enter__(self) -> Mode:
            return self

        def __exit__(self, *_: object) -> None:
            assert not self.raw_futures

    monkeypatch.setitem(sys.modules, "triton", SimpleNamespace(AsyncCompileMode=Mode))
    jobs = _CompileJobs()
    with jobs.collect():
        future = jobs.submit(lambda: started.append("compiled"))
    assert started == []
    future.result()
    assert started == ["compiled"]


def test_an_error_of_a_compile_is_a_value() -> None:
    assert isinstance(_attempt(lambda: 1 / 0), ZeroDivisionError)
