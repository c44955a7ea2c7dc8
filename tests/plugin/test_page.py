"""docs/pytest.md shows a project of three tests, one failing on purpose, and what pytest prints of it."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest
from user_project import PAGE, SHOWN, lay_out, run_pytest, steady


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page's project with its facts stored, as its author left it."""
    directory = tmp_path_factory.mktemp("project")
    lay_out(directory)
    storing = ["test_kernels.py", "-k", "reviewed", "--update-facts"]
    stored = run_pytest(directory, "-q", "--saved-ir=fixtures", *storing)
    assert stored.returncode == 0, stored.stdout
    return directory


@pytest.mark.long
def test_the_page_shows_what_pytest_prints(project: Path, request: pytest.FixtureRequest) -> None:
    text = PAGE.read_text(encoding="utf-8")
    shown = SHOWN.search(text)
    assert shown is not None
    answer = run_pytest(project, *shlex.split(shown["arguments"]))
    assert answer.returncode == 1, answer.stdout + answer.stderr
    current = text[: shown.start("output")] + steady(answer.stdout) + text[shown.end("output") :]
    if request.config.getoption("--update-docs", default=False):
        PAGE.write_text(current, encoding="utf-8")
    else:
        assert current == text, "run pytest tests/plugin/test_page.py --update-docs"


@pytest.mark.exhaustive
def test_the_test_that_compiles_passes_for_both_of_its_gpus(project: Path) -> None:
    pytest.importorskip("triton")
    answer = run_pytest(project, "-q", "test_compiled.py")
    assert answer.returncode == 0, answer.stdout
    assert "2 passed" in answer.stdout


def test_the_failure_on_the_page_holds_the_evidence() -> None:
    shown = SHOWN.search(PAGE.read_text(encoding="utf-8"))
    assert shown is not None
    output = shown["output"]
    verdicts = re.findall(r"^E +(ttir|ttgir|llir|amdgcn)  +(\w+) +\d+, \d+ B .* ([A-Za-z]\d+)$", output, re.M)
    assert verdicts == [
        ("ttir", "interleaved", "R1"),
        ("ttgir", "clustered", "R1"),
        ("llir", "clustered", "R1"),
        ("amdgcn", "clustered", "R1"),
    ]
    assert "interleaved → clustered at ttgir (Triton's GPU passes)" in output
    assert "AI001 clustered-loads" in output
    assert "What it is likely to cost" in output
    assert "1 failed, 3 passed in …s" in output
    assert "Full output truncated" not in output
    assert "artifact_inspector/" not in output  # no line of ours in a traceback


@pytest.mark.long
def test_the_file_of_facts_is_small_and_free_of_what_shifts(project: Path) -> None:
    (path,) = project.glob("facts/**/*.json")
    assert path.relative_to(project).as_posix() == "facts/test_kernels/test_the_matmul_is_as_reviewed.json"
    stored = json.loads(path.read_text(encoding="utf-8"))
    facts = stored["facts"]
    assert (stored["kernel"], stored["target"], stored["triton"]) == ("matmul_kernel", "sm_80", "3.6.0")
    assert facts["loop1.verdict.assembly"] == "pipelined(3)"
    assert facts["loop1.waits"] == ["cp.async.wait_group 4"]
    assert facts["shared"] == 30720
    assert len(facts) < 60
    assert not any("@" in key or "%" in key for key in facts)
    assert "matmul_grouped.py" not in path.read_text(encoding="utf-8")
