"""All simulations of a command together take no more than a budget of processor time, and say so."""

from __future__ import annotations

import json
import pickle
import shlex
import shutil
import sys
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from saved import FIXTURES, ROOT
from typer.testing import CliRunner

from artifact_inspector.api.memory_errors import check_launches
from artifact_inspector.cli import app
from artifact_inspector.cli._budget import budget_seconds
from artifact_inspector.compiling.ask.compile import compile_kernels
from artifact_inspector.compiling.ask.request import KernelRequest
from artifact_inspector.errors import UsageError
from artifact_inspector.execution.interpreter.budget import _memory_mib, current_budget, limit_simulation
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


def test_the_next_command_after_a_ranking_shows_its_first_kernel(tmp_path: Path) -> None:
    words = ("rank", str(FIXTURES / "3.6.0" / "sm_90" / "softmax"), "--launch", launches(tmp_path, 1))
    ranking = run(*words).stdout
    _, _, command = ranking.rpartition("\nnext   inspect-kernel ")
    following = run(*shlex.split(command))
    assert following.exit_code == 0, following.output
    assert "softmax" in following.stdout


@pytest.mark.long
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


@pytest.mark.long
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


@pytest.mark.long
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
        with pytest.raises(BudgetSpent):
            counters.spend_step(None)  # type: ignore[arg-type]
    counters = StepCounters(1, 2)
    counters.spend_step(None)  # type: ignore[arg-type]
    counters.spend_step(None)  # type: ignore[arg-type]
    with pytest.raises(StepLimitReached) as stop:
        counters.spend_step(None)  # type: ignore[arg-type]
    assert stop.value.reason == "no end after 2 steps"


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere the most memory ever counts")
def test_memory_that_was_given_back_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ARTIFACT_INSPECTOR_MOST_SIMULATION_MIB", str(int(_memory_mib()) + 100))
    with limit_simulation() as first:
        block = bytearray(b"x" * (120 << 20))
        assert first.is_spent()
    del block
    with limit_simulation() as second:
        assert not second.is_spent()


@pytest.mark.skipif(sys.platform == "win32", reason="the peak of memory is not told")
def test_a_simulation_stops_where_a_process_takes_too_much_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ("check-memory", str(SOFTMAX), "softmax", "--launch", launches(tmp_path, 2), "--json")
    monkeypatch.setenv("ARTIFACT_INSPECTOR_MOST_SIMULATION_MIB", "1")
    short = run(*words)
    assert short.exit_code == 3
    reasons = [reason for report in json.loads(short.stdout)["launches"] for reason in report["undecided"]]
    expected = "a process has taken more than 1 MiB; ARTIFACT_INSPECTOR_MOST_SIMULATION_MIB raises it"
    assert all(expected in reason for reason in reasons)
    assert len(reasons) >= 2


@pytest.mark.long
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


def test_check_memory_says_that_a_file_is_not_checked(tmp_path: Path) -> None:
    words = ("check-memory", str(SOFTMAX), "softmax", "--launch", launches(tmp_path, 1))
    assert "patch" not in run(*words).stderr
    checked = run(*words, "--kernel", "changed.py:softmax")
    assert checked.stderr.endswith(f"of {SOFTMAX} were checked; changed.py:softmax is read only for a patch.\n")


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


DEFAULT = "ARTIFACT_INSPECTOR_MOST_SIMULATION_SECONDS"


def test_a_diagnosis_beyond_the_budget_decides_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`advise` stops after `--budget`, else after the default budget."""
    words = ("advise", str(SOFTMAX), "softmax", "--launch", launches(tmp_path, 3), "--json")
    complete = json.loads(run(*words, "--budget", "0").stdout)["kernels"]
    assert [len(row["causes"]) for row in complete] == [2, 2, 2]
    monkeypatch.setenv(DEFAULT, "0")
    (row,) = json.loads(run(*words, "--budget", "0").stdout)["kernels"]
    assert row["summary"] == "Not decided: the budget of 0 s of processor time is spent; --budget raises it."
    assert row["causes"] == []
    assert row["notes"][0].startswith("1 of 3 launches were diagnosed: the budget of 0 s")
    (row,) = json.loads(run(*words, "--budget", "0.000001").stdout)["kernels"]
    assert row["summary"].startswith("Not decided: the budget of 1e-06 s")
    monkeypatch.setattr("artifact_inspector.api.remedy_search.search_remedies", lambda *_, **__: None)
    assert json.loads(run(*words, "--budget", "100s").stdout)["kernels"] == complete


@pytest.mark.long
def test_a_search_for_remedies_says_that_its_budget_is_spent(tmp_path: Path) -> None:
    from artifact_inspector.api.remedy_search import search_remedies
    from artifact_inspector.diagnosis.cause import Cause, CauseKind, Diagnosis

    pytest.importorskip("triton")
    compile_kernels([KernelRequest("softmax")], ["sm_90"], tmp_path / "cache")
    (entry,) = open_cache(tmp_path / "cache").entries
    (request,) = parse_document_of({"grid": [8], "args": ARGUMENTS}, "")
    cause = Cause(CauseKind.FEW_BYTES, None, None, "x")
    diagnosis = Diagnosis("k", "h", "sm_90", None, (8, 1, 1), 1.0, 1.0, (cause,), "x")
    search = search_remedies((entry, request), diagnosis, lambda entries: None, tmp_path / "tried", budget=1e-6)
    assert search.reason.startswith("No change was tried: the budget is spent (its time, or half of it on processors);")
    assert search.reason.endswith("--budget raises it.")


def test_changes_that_the_budget_left_unchecked_are_reported_beside_those_that_help(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A larger budget checks more of them, and may list a better one."""
    from artifact_inspector.api import remedy_search
    from artifact_inspector.diagnosis.cause import Cause, CauseKind, Diagnosis

    diagnosis = Diagnosis(
        "k", "h", "sm_90", None, (8, 1, 1), 100.0, 1.0, (Cause(CauseKind.FEW_BYTES, None, None, "x"),), "x"
    )
    search = object.__new__(remedy_search._Search)
    artifact = SimpleNamespace(shared_bytes=0, is_gluon=False, target=None, files={})
    search.entry, search.request, search.diagnosis, search.source_problem = artifact, None, diagnosis, ""  # type: ignore[assignment]
    search._launch_microseconds, search.gpu, search.steps = 0.0, None, 1
    search.make_disassembler = lambda entries: None
    search.trials = [
        remedy_search.Trial({name: value}, None, SimpleNamespace(artifact=artifact), us)  # type: ignore[arg-type]
        for name, value, us in (("num_warps", 8, 50.0), ("num_stages", 4, 60.0))
    ]
    search._equalities, search._unchecked, search._is_stopped, search._is_library = {}, 0, False, False
    search._start, search._processor_start = time.monotonic(), 0.0
    search._diagnose = lambda trial: replace(diagnosis, microseconds=trial.microseconds)  # type: ignore[method-assign]
    search._is_equal = lambda *_: True  # type: ignore[method-assign]
    monkeypatch.setattr(remedy_search, "describe_costs", lambda *_: ())
    for seconds, count, reason in (
        ([0.0, 100.0], 1, "Not all changes were checked: the budget is"),
        ([0.0, 0.0], 2, ""),
    ):
        monkeypatch.setattr(remedy_search, "processor_seconds", iter(seconds).__next__)
        found = search.verified(60.0)
        assert (len(found.remedies), found.reason[: len(reason) or None]) == (count, reason)


@pytest.mark.parametrize("view", [("--svg", "grid"), ("--html", "page.html")], ids=str)
def test_pictures_and_pages_obey_the_budget(
    view: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = launches(tmp_path, 1)
    monkeypatch.chdir(tmp_path)
    outcome = run("predict", str(SOFTMAX), "softmax", "--launch", file, "--budget", "0.000001", *view)
    assert "--budget raises it" in " ".join(outcome.output.split())


@pytest.mark.long
def test_residency_obeys_the_budget(tmp_path: Path) -> None:
    pytest.importorskip("triton")
    compile_kernels([KernelRequest("softmax")], ["sm_90"], tmp_path / "cache")
    words = ("predict", str(tmp_path / "cache"), "softmax", "--launch", launches(tmp_path, 1), "--svg", "residency")
    assert "<svg" in run(*words).stdout
    assert "--budget raises it" in " ".join(run(*words, "--budget", "0.000001").output.split())


def test_prices_beyond_the_budget_are_unknown_and_say_why(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of `regress`, `diff` and `try`."""
    from artifact_inspector.api.pair_prices import predict_pair

    (entry,) = open_cache(SOFTMAX).entries
    (request,) = parse_document_of({"grid": [8], "args": ARGUMENTS}, "")
    with limit_simulation(0):
        price = predict_pair(entry, entry, request, None)
    assert price.problem == "the budget of 0 s of processor time is spent; --budget raises it"
    monkeypatch.setenv(DEFAULT, "0")
    with limit_simulation():
        assert predict_pair(entry, entry, request, None).problem.endswith(f"spent; {DEFAULT} raises it")


@pytest.mark.parametrize("tool", ["predict", "rank", "advise"])
def test_tools_of_agents_obey_the_default_budget(tool: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from artifact_inspector.compiling.ask.manifest import add_to_manifest

    pytest.importorskip("mcp")
    from artifact_inspector.serving.catalog import TOOLS
    from artifact_inspector.serving.mcp import call_tool
    from artifact_inspector.serving.roots import AllowedDirectories
    from artifact_inspector.serving.tool import ToolContext

    cache = tmp_path / "cache"
    shutil.copytree(SOFTMAX, cache / "softmax")
    (entry,) = open_cache(cache).entries
    rows = [{"hash": entry.hash, "kernel": "softmax", "grid": [1 + number], "args": ARGUMENTS} for number in range(40)]
    add_to_manifest(cache, (), rows)
    monkeypatch.setenv(DEFAULT, "0")
    answer = call_tool(TOOLS[tool], ToolContext(AllowedDirectories([cache])), {"cache": str(cache), "tokens": 20_000})
    text = json.dumps(answer.as_json())
    assert f"{DEFAULT} raises it" in text
    if tool == "predict":
        assert answer.left_out.endswith(
            f"39 launches: the budget of 0 s of processor time is spent; {DEFAULT} raises it"
        )
        assert answer.next is None


def test_a_block_ends_with_the_time_of_the_block_around_it() -> None:
    with limit_simulation(1000, wall=0.0) as outer, limit_simulation(1000, wall=1000.0) as inner:
        time.sleep(0.001)
        assert outer.is_spent()
        assert inner.is_spent()
        assert inner.reason == "the time of the budget has passed; --budget raises it"
    with limit_simulation(1000, wall=1000.0) as budget:
        assert not budget.is_spent()


def test_counters_under_a_budget_may_be_passed_between_processes() -> None:
    with limit_simulation(100.0) as budget:
        counters = StepCounters(3)
        assert pickle.loads(pickle.dumps(counters)).budget is budget
    assert pickle.loads(pickle.dumps(counters)).budget is None
