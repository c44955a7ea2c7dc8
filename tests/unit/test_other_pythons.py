"""Each command is defined, on every Python and with every version of the dependencies that is allowed."""

from __future__ import annotations

import json
from typing import Annotated, Any, Optional

import pytest
from saved import FIXTURES
from typer.testing import CliRunner

from artifact_inspector.cli import app
from artifact_inspector.cli._app import _without_optional
from artifact_inspector.cli._commands import COMMANDS


def run(*words: str) -> Any:
    return CliRunner().invoke(app, [*words])


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_every_command_has_help(name: str) -> None:
    """Python 3.10 makes each argument whose default is None optional once more, which typer cannot read."""
    outcome = run(name, "--help")
    assert outcome.exit_code == 0, outcome.output
    assert "--help" in outcome.output


def test_an_option_is_what_it_was_written_as() -> None:
    hint = Annotated[Optional[int], "option"]  # noqa: UP045 - as `get_type_hints` of Python 3.10 returns it
    assert _without_optional(Optional[hint]) == hint  # noqa: UP045
    assert _without_optional(int) is int


def test_kernels_are_read_simulated_and_written_as_a_graph() -> None:
    fixtures = FIXTURES / "3.6.0" / "sm_80"
    assert json.loads(run(str(fixtures), "copy", "--json").stdout)["kernels"]
    assert json.loads(run(str(fixtures), "copy", "--graph", "json").stdout)["nodes"]
    softmax = FIXTURES.parent / "tests" / "oracle" / "counters" / "softmax"
    numbers = ("stride_x=1000", "stride_y=1000", "n_cols=1000", "x_ptr=fp16[8,1000]", "y_ptr=fp16[8,1000]")
    words = [word for number in numbers for word in ("--arg", number)]
    outcome = run("predict", str(softmax), "softmax", *words, "--grid", "8", "--json")
    assert json.loads(outcome.stdout)["counters"]["instructions"] > 0
