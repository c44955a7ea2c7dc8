"""All simulations of a command together take no more than a budget of processor time, and say so."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest
from saved import ROOT
from typer.testing import CliRunner

from artifact_inspector.api.memory_errors import check_launches
from artifact_inspector.cli import app
from artifact_inspector.cli._launches import budget_seconds
from artifact_inspector.errors import UsageError
from artifact_inspector.execution.interpreter.budget import current_budget, limit_simulation
from artifact_inspector.execution.interpreter.counters import BudgetSpent, StepCounters, StepLimitReached
from artifact_inspector.execution.launch_requests import parse_document_of
from artifact_inspector.execution.timing.parallel_map import map_in_processes
from artifact_inspector.files.cache import open_cache
from artifact_inspector.memory_checks import launch_check
from artifact_inspector.memory_checks.problems import MemoryReport
from artifact_inspector.model.limits import SIMULATION_SECONDS

SOFTMAX = ROOT / "tests" / "oracle" / "counters" / "softmax"
ARGUMENTS = {
    "x_ptr": {"shape": [4096, 1000], "dtype": "fp16"}, "y_ptr": {"shape": [4096, 1000], "dtype": "fp16"},
    "stride_x": 1000, "stride_y": 1000, "n_cols": 1000,
}  # fmt: skip


def run(*words: str) -> Any:
    return CliRunner().invoke(app, [*words])


def launches(tmp_path: Path, count: int) -> str:
    file = tmp_path / "launches.json"
    rows = [{"grid": [1 + number], "args": ARGUMENTS} for number in range(count)]
    file.write_text(json.dumps({"launches": rows}))
    return str(file)


def test_launches_beyond_the_budget_are_not_simulated_and_counted(tmp_path: Path) -> None:
    words = ("predict", str(SOFTMAX), "softmax", "--launch", launches(tmp_path, 5))
    complete = json.loads(run(*words, "--json").stdout)
    assert complete["notes"] == []
    assert len(complete["launches"]) == 5
    short = json.loads(run(*words, "--json", "--budget", "0.000001").stdout)
    (note,) = short["notes"]
    assert note.startswith("1 of 5 launches were simulated: the budget of 1e-06 s of processor time is spent")
    assert "--budget raises it" in note
    assert short["launches"] == []
    assert short["counters"]["instructions"] is None  # stopped before its end: no number is guessed
    assert "--budget raises it" in short["unknown"]["instructions"]
    assert "--budget raises it" in " ".join(run(*words, "--budget", "0.000001").stdout.split())


def test_a_large_budget_changes_nothing(tmp_path: Path) -> None:
    words = ("predict", str(SOFTMAX), "softmax", "--launch", launches(tmp_path, 2), "--json")
    assert run(*words, "--budget", "1000").stdout == run(*words).stdout


def test_a_ranking_beyond_the_budget_says_why(tmp_path: Path) -> None:
    words = ("rank", str(SOFTMAX), "softmax", "--launch", launches(tmp_path, 3), "--json", "--budget", "0.000001")
    rows = json.loads(run(*words).stdout)["rank"]
    assert [row["score"] for row in rows] == [None] * 3
    assert all("--budget raises it" in row["missing_inputs"][0] for row in rows)


@pytest.mark.parametrize("seconds", ["0", "-1", "nan", "0s", "1h"])
def test_a_budget_is_positive(seconds: str) -> None:
    with pytest.raises(UsageError, match="budget"):
        budget_seconds(seconds)
    assert budget_seconds(None) == SIMULATION_SECONDS.default
    assert (budget_seconds("90s"), budget_seconds("2m"), budget_seconds("45")) == (90, 120, 45)


def test_processes_share_a_budget() -> None:
    def work(number: int) -> bool:
        end = time.process_time() + 0.2
        while time.process_time() < end:
            pass
        budget = current_budget()
        assert budget is not None
        return budget.is_spent()

    with limit_simulation(0.3) as budget:
        assert not budget.is_spent()
        assert sum(map_in_processes(work, range(4), 2)) >= 1
        assert budget.is_spent()
    assert current_budget() is None


def test_a_simulation_stops_between_two_steps() -> None:
    with limit_simulation(0):
        counters = StepCounters(1)
        with pytest.raises(BudgetSpent, match=""):
            counters.spend_step(None)  # type: ignore[arg-type]
    counters = StepCounters(1, 2)
    counters.spend_step(None)  # type: ignore[arg-type]
    counters.spend_step(None)  # type: ignore[arg-type]
    with pytest.raises(StepLimitReached) as stop:
        counters.spend_step(None)  # type: ignore[arg-type]
    assert stop.value.reason == "no end after 2 steps"


def test_check_memory_stops_after_the_budget_and_decides_nothing(tmp_path: Path) -> None:
    words = ("check-memory", str(SOFTMAX), "softmax", "--launch", launches(tmp_path, 3), "--json")
    complete = run(*words)
    assert run(*words, "--budget", "1000").stdout == complete.stdout
    assert all(not report["undecided"] for report in json.loads(complete.stdout)["launches"])
    short = run(*words, "--budget", "0.000001")
    assert short.exit_code == 3
    first, *others = json.loads(short.stdout)["launches"]
    assert any("CTAs stop here: the budget of 1e-06 s" in reason for reason in first["undecided"])
    assert all("not simulated: the budget of 1e-06 s" in report["undecided"][0] for report in others)
    assert run(*words, "--budget", "0").exit_code == 2


@pytest.mark.parametrize("suspects", [["y_ptr"], []])
def test_a_check_whose_later_runs_exceed_the_budget_is_undecided(
    monkeypatch: pytest.MonkeyPatch, suspects: list[str]
) -> None:
    """The second run, which compares CTAs, and the run that observes shared memory obey the budget too."""
    (entry,) = open_cache(SOFTMAX).entries
    tensors = {name: {"shape": [8, 1000], "dtype": "fp16"} for name in ("x_ptr", "y_ptr")}
    (request,) = parse_document_of({"grid": [8], "args": {**ARGUMENTS, **tensors}}, "")
    simulate = launch_check.simulate_launch
    monkeypatch.setattr(launch_check, "find_suspects", lambda *_: suspects)

    def check(*, is_spent: bool) -> MemoryReport:
        with limit_simulation(1000) as budget:

            def simulate_first(*args: Any, **options: Any) -> Any:
                first_run = simulate(*args, **options)
                budget.seconds = 0.0 if is_spent else budget.seconds
                return first_run

            monkeypatch.setattr(launch_check, "simulate_launch", simulate_first)
            return check_launches([(entry, request)], None)[0]

    assert not check(is_spent=False).undecided
    report = check(is_spent=True)
    assert report.status == "undecided"
    assert all("the budget of 0 s of processor time is spent" in reason for reason in report.undecided)
    subjects = {reason.partition(":")[0] for reason in report.undecided}
    assert "shared memory of CTA 0" in subjects
    assert ("races in y_ptr" in subjects) == bool(suspects)
