"""What `predict` and `rank` say of launches that cannot be."""

from __future__ import annotations

import json
import shlex
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from saved import FIXTURES
from typer.testing import CliRunner, Result

from artifact_inspector import cli
from artifact_inspector.cli import rank
from artifact_inspector.execution.simulation import _float_argument
from artifact_inspector.files.cache import open_cache

SOFTMAX = Path(__file__).parent.parent / "oracle" / "counters" / "softmax"
ROWS, COLUMNS = 8, 1000
GIVEN = {
    "x_ptr": f"fp16[{ROWS},{COLUMNS}]",
    "y_ptr": f"fp16[{ROWS},{COLUMNS}]",
    "stride_x": str(COLUMNS),
    "stride_y": str(COLUMNS),
    "n_cols": str(COLUMNS),
}
COMMANDS = ("predict", "rank")


def run(command: str, *options: str, grid: str = "8", place: Path = SOFTMAX, **changed: str | None) -> Result:
    given = [f"--arg={name}={value}" for name, value in {**GIVEN, **changed}.items() if value is not None]
    words = [command, str(place), "softmax", "--grid", grid, *given, *options]
    return CliRunner().invoke(cli.app, words)


def said(result: Result) -> str:
    return " ".join((result.output + (result.stderr or "")).split())


@pytest.mark.parametrize("command", COMMANDS)
def test_a_missing_argument_is_named(command: str) -> None:
    result = run(command, n_cols=None)
    assert result.exit_code == 2
    assert "n_cols" in said(result)


@pytest.mark.parametrize("command", COMMANDS)
def test_elements_of_another_size_are_refused(command: str) -> None:
    result = run(command, x_ptr="fp64[8,1000]")
    assert result.exit_code == 2
    assert "x_ptr" in said(result)
    assert "fp64" in said(result)


@pytest.mark.parametrize("command", COMMANDS)
def test_a_tensor_where_a_number_belongs_is_refused(command: str) -> None:
    result = run(command, n_cols="fp16[8]")
    assert result.exit_code == 2
    assert "n_cols is a number" in said(result)


@pytest.mark.parametrize("command", COMMANDS)
def test_strides_of_another_rank_are_refused(command: str) -> None:
    result = run(command, x_ptr="fp16[8,1000](1000)")
    assert result.exit_code == 2
    assert "2 dimensions but 1 strides" in said(result)


@pytest.mark.parametrize("command", COMMANDS)
def test_a_grid_that_launches_nothing_is_refused(command: str) -> None:
    result = run(command, grid="0")
    assert result.exit_code == 2
    assert "is empty" in said(result)


@pytest.mark.parametrize("command", COMMANDS)
def test_an_access_outside_of_every_tensor_is_a_bug_that_is_told(command: str) -> None:
    result = run(command, x_ptr="fp16[4,1000]", grid="8")
    assert result.exit_code == 1  # an error of memory, or nothing was ranked
    assert ("Out of bounds: LDG" if command == "predict" else "outside of every tensor") in said(result)


@pytest.mark.parametrize("command", COMMANDS)
def test_a_kernel_that_does_not_end_in_time_is_told_with_the_limit(command: str) -> None:
    result = run(command, "--steps", "20")
    assert "20 steps" in said(result)


@pytest.mark.parametrize("command", COMMANDS)
def test_a_name_that_the_kernel_does_not_take_gets_a_note(command: str) -> None:
    result = run(command, misspelt="3")
    assert result.exit_code == (0 if command == "predict" else 1)  # this machine code is not ranked
    assert "misspelt" in said(result)


@pytest.mark.parametrize("command", COMMANDS)
def test_a_cache_without_launches_on_record_asks_for_one(command: str) -> None:
    result = CliRunner().invoke(cli.app, [command, str(SOFTMAX), "softmax"])
    assert result.exit_code == 2
    assert "grid" in said(result)


def test_machine_code_without_its_control_codes_is_not_ranked() -> None:
    (row,) = json.loads(run("rank", "--json", "--gpu", "H200").stdout)["rank"]
    assert row["score"] is None
    assert row["fits"] is True
    assert row["missing_inputs"] == ["control codes, which need a cubin"]


def test_a_gpu_of_another_generation_runs_no_such_code() -> None:
    result = run("rank", "--gpu", "A100")
    assert result.exit_code == 2
    assert "does not run" in said(result)


@pytest.mark.parametrize(
    ("words", "complaint"),
    [(["BLOCK=2..1"], "empty"), (["BLOCK"], "Invalid configuration"), (["num_stages=a..b"], "Invalid configuration")],
)
def test_what_cannot_be_tried_is_told(words: list[str], complaint: str) -> None:
    result = run("rank", "--vary", *words)
    assert result.exit_code == 2
    assert complaint in said(result)


def test_a_kernel_without_a_record_cannot_be_compiled_otherwise() -> None:
    result = run("rank", "--vary", "num_warps=4,8")
    assert result.exit_code == 2
    assert "how softmax" in said(result)


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize(
    ("document", "words"),
    [
        ("[" * 100_000, "nested too deeply"),
        (f'{{"grid": [{"9" * 4000}]}}', "dimension of the grid is too large"),
        ('{"grid": "cdiv(1)"}', "Cannot evaluate grid expression"),
        ('{"grid": "²"}', "Cannot evaluate grid expression"),
        (f'{{"grid": "{"9*" * 2000}9"}}', "is longer than"),
        ('{"grid": [1], "args": {"x": {"shape": [99999999999, 99999999], "dtype": "fp16"}}}', "outside"),
        ('{"grid": [1], "args": {"x": {"shape": [4], "dtype": "fp16", "ptr": -1}}}', "outside"),
        ('{"grid": [1], "args": {"x": {"shape": [4], "dtype": "fp16", "ptr": "a"}}}', "that are not numbers"),
        ('{"grid": [1], "args": {"x": {"shape": [4], "dtype": "fp16", "storage": -1}}}', "outside"),
        (
            f'{{"grid": [1], "args": {{"x": {{"shape": [4], "dtype": "fp16", "storage": 1, "offset": {2**70}}}}}}}',
            "outside",
        ),
        ('{"grid": [1], "args": {"x": {"shape": [1e999], "dtype": "fp16"}}}', "that are not numbers"),
        ('{"grid": [1], "args": {"x": "fp16[' + "9" * 5000 + ']"}}', "Invalid or too large number"),
    ],
)
def test_a_document_of_malice_is_refused_in_words(command: str, document: str, words: str, tmp_path: Path) -> None:
    launch = tmp_path / "launch.json"
    launch.write_text(document, encoding="utf-8")
    result = CliRunner().invoke(cli.app, [command, str(SOFTMAX), "softmax", "--launch", str(launch)])
    assert result.exit_code == 2, result.exception
    assert words in said(result)


def test_a_launch_of_too_many_ctas_is_not_run() -> None:
    result = run("predict", grid="2147483647")
    assert result.exit_code == 2
    assert "set ARTIFACT_INSPECTOR_MOST_CTAS" in said(result)


def test_a_kernel_of_rdna_is_not_ranked_and_cdna_s_order_is_said_to_be_unconfirmed() -> None:
    given = ["--grid", "28,32", "--arg=a_ptr=fp16[4096]", "--arg=b_ptr=fp16[4096,7168]", "--arg=stride_bk=7168"]
    given += ["--arg=c_ptr=fp32[7168]"]
    rdna, cdna = (
        CliRunner().invoke(cli.app, ["rank", str(FIXTURES / "3.6.0" / target / "gemv_splitk"), "gemv_splitk", *given])
        for target in ("gfx1100", "gfx942")
    )
    assert rdna.exit_code == 2
    assert "only Vega 20 and CDNA are modelled" in said(rdna)
    assert cdna.exit_code == 0
    assert "no ranking was compared with a GPU" in said(cdna)


@pytest.mark.parametrize("command", ["predict", "check-memory"])
def test_without_arguments_it_tells_arguments_that_work(command: str) -> None:
    cache = str(FIXTURES / "3.6.0" / "sm_90" / "softmax")
    result = CliRunner().invoke(cli.app, [command, cache])
    assert result.exit_code == 2
    words = shlex.split(said(result).rpartition("Complete arguments, for example: ")[2])
    assert words[0] == cache
    assert CliRunner().invoke(cli.app, [command, *words]).exit_code in (0, 1)


def test_types_that_are_cut_off_are_taken_for_unknown(tmp_path: Path) -> None:
    place = tmp_path / "k"
    shutil.copytree(SOFTMAX, place)
    text = (place / "softmax_kernel.ttir").read_text()
    (place / "softmax_kernel.ttir").write_text(text.replace("(%x_ptr", "(>x_ptr", 1))
    assert run("predict", place=place).exit_code == 0


@pytest.mark.parametrize(
    ("given", "kind", "bits"),
    [
        (1.5, "f16", 0x3E00),
        (1.5, "bf16", 0x3FC0),
        (-2.0, "f16", 0xC000),
        (1e9, "f16", 0x7C00),
        (-1e300, "bf16", 0xFF80),
        (1.5, "f32", 1.5),
    ],
)
def test_a_number_of_two_bytes_is_handed_over_as_its_bits(given: float, kind: str, bits: float) -> None:
    assert _float_argument(given, kind) == bits


@pytest.mark.parametrize("shared", [1 << 20, 1024])
def test_a_ranking_says_which_kernels_are_too_large(shared: int, capsys: pytest.CaptureFixture[str]) -> None:
    """A grid helps no kernel that needs more shared memory than its GPU has."""
    (entry,) = open_cache(FIXTURES / "3.6.0" / "sm_90" / "softmax").entries
    large = replace(entry, directory="other", shared_bytes=shared)
    rank._report_unlaunched([entry, large], [entry])
    said = capsys.readouterr().err
    assert ("(1 need more shared memory than a CTA may have)" in said) is (shared > 1024)
    assert said.endswith(" Give --grid.\n") is (shared == 1024)
