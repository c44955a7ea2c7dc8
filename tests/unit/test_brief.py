"""A few lines, whatever is asked for; the skill's own commands run."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest
import typer.main
from saved import FIXTURES, ROOT
from typer.testing import CliRunner

from artifact_inspector import cli
from artifact_inspector.cli import diff
from artifact_inspector.report.line_limit import MAX_LINES, cut, is_brief, set_brief
from artifact_inspector.serving.skill import skill_text

pytestmark = pytest.mark.usefixtures("recalled")

COMMANDS = [line for block in re.findall(r"```sh\n(.*?)```", skill_text(), re.S) for line in block.splitlines()]
A_CACHE = str(FIXTURES / "3.6.0" / "sm_80")


@pytest.mark.parametrize(
    "words",
    [
        [f"{FIXTURES}/3.6.0/sm_75"],
        [f"{A_CACHE}/matmul_grouped", "matmul_kernel"],
        [f"{A_CACHE}/softmax", "softmax", "--ir"],
        ["findings", "--explain", "all"],
        ["diff", f"{FIXTURES}/3.2.0:gemv_splitk", "--left", "sm_75", "--right", "gfx90a"],
        ["--json-schema", "list"],
    ],
    ids=" ".join,
)
def test_a_brief_report_has_a_dozen_lines_at_most_and_some_words(words: list[str]) -> None:
    answer = CliRunner().invoke(cli.app, [*words, "--brief"], env={"COLUMNS": "100"})
    assert answer.exit_code in (0, 1), answer.output
    assert 0 < len(answer.stdout.splitlines()) <= MAX_LINES


def test_every_command_has_it() -> None:
    group = typer.main.get_command(cli.app)
    for name, command in group.commands.items():  # type: ignore[attr-defined]
        assert any("--brief" in parameter.opts for parameter in command.params), name


def test_json_is_whole_whatever_is_asked_for() -> None:
    answer = CliRunner().invoke(cli.app, ["findings", f"{A_CACHE}/softmax", "--json", "--brief"])
    assert json.loads(answer.stdout)["document"] == "findings"
    whole = CliRunner().invoke(cli.app, ["findings", "--explain", "all"])
    assert len(whole.stdout.splitlines()) > MAX_LINES, "nothing is left of the run before"


def test_what_is_cut_says_how_much_there_is() -> None:
    set_brief(enabled=True)
    try:
        first = cut("a\nb\n")
        rest = cut("".join(f"{number}\n" for number in range(40)))
        assert cut("more\n") == ""
    finally:
        set_brief(enabled=False)
    assert first == "a\nb\n"
    assert len(first.splitlines()) + len(rest.splitlines()) == MAX_LINES
    assert rest.endswith("… 31 more lines without --brief\n")
    assert not is_brief()


def test_the_skill_has_what_agents_choose_it_by() -> None:
    head = skill_text().split("---")[1]
    assert re.search(r"^name: inspect-kernel$", head, re.M)
    assert re.search(r"^description: .{80,}$", head, re.M)
    printed = CliRunner().invoke(cli.app, ["mcp", "--skill"]).stdout
    assert printed.startswith("---\nname: inspect-kernel")


@pytest.mark.long
@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_of_the_skill_runs(command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if " compile " in command or " try " in command:
        pytest.importorskip("triton")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "own"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "fixtures").symlink_to(ROOT / "fixtures")
    (tmp_path / "my-cache").symlink_to(FIXTURES / "3.6.0" / "sm_80" / "masked_add")
    program, *arguments = shlex.split(command)
    assert program == "inspect-kernel"
    if arguments[0] == "compile":
        arguments[-1] = "made"
    answer = CliRunner().invoke(cli.app, arguments)
    assert answer.exit_code in ((0, 1) if arguments[0] in ("diff", "try") else (0,)), answer.output
    assert answer.stdout


def test_a_brief_prediction_as_json_has_the_costliest_lines() -> None:
    words = ["predict", f"{FIXTURES}/3.6.0/sm_80/copy", "--grid", "8", "--json"]
    for name in ("x_ptr", "y_ptr"):
        words += ["--arg", f"{name}=fp16[4096]"]
    words += ["--arg", "n=4096"]
    full, brief = (json.loads(CliRunner().invoke(cli.app, [*words, *more]).stdout) for more in ([], ["--brief"]))
    touching = [line["line"] for line in full["by_line"] if line["sectors"] or line["wavefronts"]]
    assert 0 < len(touching) < len(full["by_line"])
    assert {line["line"] for line in brief["by_line"]} <= set(touching)
    assert len(brief["by_line"]) == min(MAX_LINES, len(touching))
    assert brief["counters"] == full["counters"]


def test_a_brief_comparison_has_the_passes_too(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = ["passes", "  compare-and-swap loops", "    gfx90a: atomic-expand at back end: none → 1"]
    monkeypatch.setattr(diff, "attribute_passes", lambda pair, facts: (lines, ""))
    sides = [f"{FIXTURES}/3.6.0/{target}:gemv_splitk" for target in ("gfx90a", "gfx942")]
    answer = CliRunner().invoke(cli.app, ["diff", *sides, "--passes", "--brief"], env={"COLUMNS": "120"})
    printed = answer.stdout.splitlines()
    assert len(printed) <= MAX_LINES
    assert printed[printed.index("passes") :][: len(lines)] == lines
    assert answer.stdout.count("atomic-expand") == 1
    whole = CliRunner().invoke(cli.app, ["diff", *sides, "--passes"], env={"COLUMNS": "120"})
    assert whole.stdout.endswith("\n".join(lines) + "\n")
