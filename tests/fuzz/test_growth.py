"""Kinds of files that grow: each is made and read when it is small, and one is measured as the command does it."""

from __future__ import annotations

import math
from functools import partial
from pathlib import Path

import pytest
from rich.console import Console

from artifact_inspector.comparison.matrix import find_matrix
from artifact_inspector.facts.inspection import inspect_artifact
from artifact_inspector.files.cache import open_cache
from artifact_inspector.report.variant_matrix import MatrixReport
from tests.fuzz.checks import within
from tests.fuzz.growth import KINDS, Cost, ask_for, count_steps, measure
from tests.fuzz.guided import READERS
from tests.fuzz.many import COMMANDS, make_cache
from tests.fuzz.promises import run


def test_each_kind_of_file_is_made_and_read() -> None:
    readers = {kind: READERS[kind]() for kind in {kind for kind, _ in KINDS.values()}}
    for kind, make in KINDS.values():
        content = make(5_000)
        with within(2):
            readers[kind](content.encode() if isinstance(content, str) else content)


@pytest.mark.long
def test_a_file_is_measured_in_a_process_of_its_own() -> None:
    found = measure("ttgir: buffers, all alive", 100_000, "list")
    assert isinstance(found, Cost)
    assert 90_000 < found.size < 130_000
    assert 0 < found.seconds < 4
    assert 0 <= found.mib < 200


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("ttir: partitions", marks=pytest.mark.long),
        pytest.param("ptx: loops in sequence", marks=pytest.mark.exhaustive),
        pytest.param("llir: functions", marks=pytest.mark.exhaustive),
    ],
)
def test_the_page_of_a_file_takes_as_many_steps_as_the_file_is_long(name: str, tmp_path: Path) -> None:
    small, large = (count_steps(ask_for(name, size, "page", tmp_path / str(size))) for size in (8_000, 32_000))
    assert math.log(large / small, 4) < 1.2


@pytest.mark.long
@pytest.mark.parametrize("name", ["targets beside each other", "baseline", "all of it"])
def test_a_command_takes_as_many_steps_as_there_are_kernels(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    steps = []
    for count in (10, 40):
        cache = str(make_cache(count, tmp_path / str(count)))
        command = [word.replace("CACHE", cache).replace("AWAY", str(tmp_path)) for word in COMMANDS[name]]
        run(command, "on")  # what is found of each kernel is kept
        steps.append(count_steps(partial(run, command, "on")))
    assert math.log(steps[1] / steps[0], 4) < 1.05


@pytest.mark.long
def test_a_matrix_takes_as_many_steps_as_there_are_forms(tmp_path: Path) -> None:
    kernels = [inspect_artifact(one) for one in open_cache(make_cache(4, tmp_path)).entries]
    forms = [kernel for kernel in kernels if kernel.artifact.name == "tuned"]

    def show(count: int) -> None:
        for _ in MatrixReport(find_matrix(forms * count)).__rich_console__(console, console.options):
            pass

    console = Console(width=200)
    show(1)
    assert math.log(count_steps(lambda: show(80)) / count_steps(lambda: show(20)), 4) < 1.1
