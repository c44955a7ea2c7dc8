"""Triton's own timings, read from what its autotuner keeps and shown beside the forms that they are of."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from saved import FIXTURES
from typer.testing import CliRunner

from artifact_inspector.cli import app
from artifact_inspector.files.autotuning import entry_timings, read_autotune_results
from artifact_inspector.files.cache import open_cache
from artifact_inspector.model.tile import Tile
from artifact_inspector.report.kernel_blocks import describe_timings, timing_cell


def config(block: int, warps: int) -> dict[str, object]:
    kwargs = {"BLOCK_M": 128, "BLOCK_N": block, "GROUP_M": 8}
    return {"kwargs": kwargs, "num_warps": warps, "num_stages": 4, "num_ctas": 1, "pre_hook": None}


@pytest.fixture
def tuned(tmp_path: Path) -> Path:
    """A cache with one form of a matmul, and what an autotuner of it timed."""
    shutil.copytree(FIXTURES / "3.6.0" / "sm_80" / "matmul_grouped", tmp_path / "cache")
    (tmp_path / "cache" / "TUNED").mkdir()
    timings = [
        [config(64, 4), [0.2, 0.19, 0.21]],
        [config(32, 4), [0.1, 0.1, 0.1]],
        [config(32, 8), [float("inf")] * 3],
    ]
    text = json.dumps({"key": [512, 512, "torch.float16"], "configs_timings": timings})
    (tmp_path / "cache" / "TUNED" / "matmul_kernel.autotune.json").write_text(text)
    return tmp_path / "cache"


def test_timings_are_read_the_fastest_first(tuned: Path) -> None:
    (found,) = read_autotune_results(open_cache(tuned), "matmul_kernel")
    assert found.key == ("512", "512", "torch.float16")
    assert [one.milliseconds for one in found.timings] == [0.1, 0.2, None]
    assert read_autotune_results(open_cache(tuned), "other") == ()


def test_a_form_stands_beside_the_configuration_that_it_is(tuned: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "140")
    said = CliRunner().invoke(app, ["matrix", str(tuned), "matmul_kernel"]).stdout.splitlines()
    at = said.index("Triton's autotuner timings for 512, 512, torch.float16")
    rows = said[at + 2 : at + 5]
    assert rows[0].split()[:2] == ["0.1", "1.00"]
    assert rows[0].endswith("128×32×32 f16 w4 s4 9578fe4c")
    assert rows[1].split()[:2] == ["0.2", "2.00"]
    assert rows[1].endswith("not found")  # a tile of 64 is in no form
    assert rows[2].startswith("failed")


def test_list_story_and_document_tell_what_was_timed(tuned: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "140")
    lines = CliRunner().invoke(app, [str(tuned)]).stdout.splitlines()
    heading = next(at for at, line in enumerate(lines) if line.endswith(" ms"))
    assert lines[heading + 1].split()[-1] == "0.1"
    story = CliRunner().invoke(app, [str(tuned), "matmul"]).stdout
    assert "timed      0.1 ms, the fastest, 3 configurations for 512, 512, torch.float16" in story
    (kernel,) = json.loads(CliRunner().invoke(app, [str(tuned), "--json"]).stdout)["kernels"]
    assert kernel["timings"] == [
        {"key": ["512", "512", "torch.float16"], "milliseconds": [0.1], "fastest": 0.1, "configurations": 3}
    ]


def test_what_may_be_two_configurations_has_both_times(tuned: Path) -> None:
    cache = open_cache(tuned)
    (artifact,) = cache.entries
    # without tiles nothing tells a BLOCK_N of 32 from one of 64
    (found,) = entry_timings(
        read_autotune_results(cache), cache, replace(artifact, constants={"BLOCK_M": 128}), [Tile("load 32×64×128")]
    )
    assert (found.milliseconds, found.is_fastest) == ((0.1, 0.2), False)
    assert timing_cell([found]) == "0.1–0.2"
    assert [said for _, said in describe_timings([found])] == [
        "0.1 or 0.2 ms (fastest: 0.1 ms), 3 configurations for 512, 512, torch.float16 (Triton's autotuner)"
    ]


def test_of_two_gpus_nobody_knows_on_which_it_was_timed(tuned: Path) -> None:
    shutil.copytree(FIXTURES / "3.6.0" / "sm_86" / "matmul_grouped", tuned / "other")
    cache = open_cache(tuned)
    assert len(cache.entries) == 2
    for artifact in cache.entries:
        assert entry_timings(read_autotune_results(cache), cache, artifact, [Tile("dot 128×32×32")]) == ()


def test_a_file_of_another_shape_tells_nothing(tuned: Path) -> None:
    (tuned / "TUNED" / "matmul_kernel.autotune.json").write_text('{"key": 3, "configs_timings": [[1]]}')
    assert read_autotune_results(open_cache(tuned), "matmul_kernel") == ()
