"""First screens: what limits a kernel comes first, then the remedy, the numbers and what else there is."""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from launched import gemv
from typer.testing import CliRunner

from artifact_inspector import cli
from artifact_inspector.api.advice import assume_launches, diagnose_launches, with_launch_times
from artifact_inspector.api.launches import has_tuning_launches, predict_launches
from artifact_inspector.cli._launches import launch_disassembler
from artifact_inspector.diagnosis.cause import Cause, CauseKind, Diagnosis
from artifact_inspector.execution.argument_matching import match_launch
from artifact_inspector.execution.kernel_loader import load_kernel
from artifact_inspector.execution.l2_cache import USABLE_L2_SHARE
from artifact_inspector.execution.launch_counters import fits_in_l2
from artifact_inspector.execution.prediction import predict_counters
from artifact_inspector.execution.simulation import simulate_launch
from artifact_inspector.execution.timing.launch_time import LaunchTime, LineStall
from artifact_inspector.facts.inspection import inspect_artifact
from artifact_inspector.files.cache import open_cache
from artifact_inspector.passes.dump_facts import Topic
from artifact_inspector.passes.trace import FactChange, PassLevel, PassRun, PassTrace
from artifact_inspector.report.advise import OVERLAP, AdviceReport
from artifact_inspector.report.console import to_text
from artifact_inspector.report.kernel_rows import cut_row
from artifact_inspector.report.passes import describe_passes
from artifact_inspector.report.prediction import PredictionReport
from artifact_inspector.vocabulary.rows import summarise

CACHE = Path(__file__).parents[2] / "fixtures" / "3.6.0"
SOFTMAX = ["--grid", "64", *(f"--arg={x}" for x in ("x_ptr=fp16[64,99]", "y_ptr=fp16[64,99]", "stride_x=99"))]


def run(*arguments: str, exit_code: int = 0) -> str:
    result = CliRunner().invoke(cli.app, list(arguments), env={**os.environ, "COLUMNS": "80"})
    assert result.exit_code == exit_code, result.output
    return result.stdout


def positions(text: str, *marks: str) -> list[int]:
    return [text.index(mark) for mark in marks]


def test_a_story_has_diagnosis_remedy_and_three_numbers_before_its_sections() -> None:
    cache = str(CACHE / "sm_80" / "flash_attention")
    text = run(cache, "flash")
    order = positions(
        text,
        "First to look at",
        "\ntry ",
        "\nregisters ",
        "\noccupancy ",
        "\noverlap ",
        "loads and computes",
        "--full adds",
    )
    assert order == sorted(order)
    assert "num_stages=3" in text
    assert text.count("the pipeline drains in every iteration") == 1
    assert len(text.splitlines()) <= 40
    assert "none of its loads is still in flight" in " ".join(text.split())
    full = run(cache, "flash", "--full")
    assert "signature: instructions in program order" in full
    assert "--full" not in full


@pytest.mark.long
def test_advice_and_prediction_state_one_time() -> None:
    for name in ("sm_90/softmax", "sm_90/gemv_splitk"):
        pairs = assume_launches(open_cache(CACHE / name), None, ())
        disassemble = launch_disassembler(pairs, None)
        (prediction,) = predict_launches(pairs, disassemble)
        (advice,) = with_launch_times(pairs, diagnose_launches(pairs, disassemble), disassemble)
        assert prediction.time is not None
        assert advice.microseconds == prediction.time.us


def test_one_share_of_the_l2_decides_what_fits() -> None:
    pairs = assume_launches(open_cache(CACHE / "sm_90" / "softmax"), None, ())
    loaded, launch = match_launch(load_kernel(pairs[0][0], launch_disassembler(pairs, None)), pairs[0][1], {})
    run = simulate_launch(loaded, launch, footprints=True)
    footprint = sum(run.memory.count_sectors()) * 32
    for l2_bytes, is_fitting in ((round(footprint * x / USABLE_L2_SHARE), x > 1) for x in (0.95, 1.05)):
        prediction = predict_counters(run, l2_bytes, (9, "as given"))
        assert prediction.cta_order is not None
        assert prediction.cta_order.fits_l2 is is_fitting
        assert fits_in_l2(run, l2_bytes, 9) is is_fitting


def test_an_assumed_launch_and_shares_above_one_are_explained() -> None:
    causes = tuple(Cause(CauseKind.SPILLS, f"k.py:{n}", 0.6, f"k.py:{n} (60%): slow.") for n in (1, 2))
    fields = ("k", "ab", "sm_90", "H100", (1, 1, 1), 9.0, 5.0)
    assumed = Diagnosis(*fields, causes, causes[0].text, ("no launch is recorded: assumed grid 1×1×1", "other"))
    lines = to_text(AdviceReport([assumed], [None]), 200).splitlines()
    assert lines[0] == "k ab, sm_90, grid 1×1×1: predicted 9.0 µs on H100, roofline 5.0 µs."
    assert lines[1] == "No launch is recorded: assumed grid 1×1×1. Give the real launch with --launch, or capture it."
    assert f"{OVERLAP}." in lines
    known = Diagnosis(*fields, causes[:1], causes[0].text)
    lines = to_text(AdviceReport([known], [None]), 200).splitlines()
    assert lines[1] == causes[0].text
    assert f"{OVERLAP}." not in lines


def test_nothing_ranked_is_no_success() -> None:
    arguments = [*SOFTMAX, "--arg=stride_y=99", "--arg=n_cols=99"]
    result = CliRunner().invoke(cli.app, ["rank", str(CACHE / "gfx1100" / "softmax"), *arguments])
    assert result.exit_code == 2
    assert "Cannot predict times for gfx1100" in result.stderr
    for target in ("gfx942", "sm_90"):
        run("rank", str(CACHE / target / "softmax"), *arguments)


@pytest.mark.long
def test_no_purpose_takes_more_shared_memory_than_the_kernel() -> None:
    for entry in open_cache(CACHE / "sm_80").entries:
        kernel = inspect_artifact(entry)
        facts = summarise(kernel).facts
        if kernel.bill is not None and kernel.bill.is_accounted:
            sizes = [value for key, value in facts.items() if key.startswith("shared.")]
            total = facts["shared"]
            assert isinstance(total, int)
            assert all(isinstance(size, int) and size <= total for size in sizes), entry.directory


def test_a_diff_lists_differences_and_folds_what_is_equal() -> None:
    text = run("diff", str(CACHE / "sm_80/gemv_splitk"), str(CACHE / "sm_90/gemv_splitk"), exit_code=1)
    table, equal = text[: text.index("\nequal\n")], text[text.index("\nequal\n") :]
    assert "num_warps" not in table
    assert "num_warps 4" in equal
    assert "occupancy 43.8" in equal
    assert not any(line.split()[1:] == ["="] for line in table.splitlines() if line.startswith("instructions"))


def test_a_misspelt_finding_is_recognised() -> None:
    result = CliRunner().invoke(cli.app, ["findings", "--explain", "pipelind"])
    assert result.exit_code == 2
    assert "Did you mean not-pipelined or pipeline-drained?" in result.stderr


def test_help_names_a_constant_that_kernels_have() -> None:
    assert "GROUP_SIZE_M=8" in run("--help")
    assert '"GROUP_SIZE_M": 8' in (CACHE.parents[1] / "kernels" / "matmul_grouped.py").read_text()


def test_passes_that_changed_a_fact_which_is_gone_are_not_denied() -> None:
    change = FactChange(Topic.ORDER, "loop1.verdict", "verdict", "", "serial", "pipelined(2)")
    step = PassRun(0, "Pipeline", None, PassLevel.TTGIR, 1, changed_text=True, seconds=None, changes=(change,))
    assert "      order     verdict: serial → pipelined(2)" in describe_passes(
        PassTrace("k", "sm_80", "3.6.0", (step,), (), ())
    )
    denial = "No pass changed any of these facts."
    assert denial not in describe_passes(PassTrace("k", "sm_80", "3.6.0", (step,), (), ()))
    assert denial in describe_passes(PassTrace("k", "sm_80", "3.6.0", (), (), ()))


def test_tuning_launches_of_another_kernel_do_not_count(tmp_path: Path) -> None:
    for name in ("softmax", "copy"):
        shutil.copytree(CACHE / "sm_80" / name, tmp_path / name)
    launch = {"grid": [1, 1, 1], "args": {}, "hash": "ab", "kernel": "softmax_kernel", "tuning": True}
    (tmp_path / "inspect-kernel.json").write_text(json.dumps({"schema_version": 1, "launches": [launch]}))
    cache = open_cache(tmp_path)
    assert has_tuning_launches(cache, "softmax", ())
    assert not has_tuning_launches(cache, "copy", ())


@pytest.mark.long
def test_findings_start_with_the_worst_kernel() -> None:
    assert run("findings", str(CACHE / "sm_80")).startswith("register_spill  sm_80")


def test_several_predictions_start_with_the_launch_that_takes_longest() -> None:
    first, second = gemv(), replace(gemv(), hash="b" * 64, kernel="longer")
    times = [
        LaunchTime(us, us, us, "NVIDIA H200", "latency", {}, 1, 1.0, None, is_validated=True) for us in (10.0, 30.0)
    ]
    stalls = (LineStall("k.py:7", "wait", 1.0), LineStall("k.py:9", "wait", 5.0))
    predictions = [
        replace(first, time=times[0]),
        replace(second, time=times[1], stalls=stalls),
        replace(first, time=None),
    ]
    lines = to_text(PredictionReport(predictions), 80).splitlines()
    assert lines[0] == "3 launches take about 40 µs without 1 of unknown time; the longest first"
    assert [line.split()[:2] for line in lines[3:6]] == [["30", "75%"], ["10", "25%"], ["?", "gemv_splitk"]]
    assert lines[3].split()[-1] == "k.py:9"
    assert next(line for line in lines[6:] if " grid " in line).startswith("longer ")
    assert "launches take" not in to_text(PredictionReport(predictions[:1]), 80)


def test_a_list_without_findings_leads_to_the_recorded_launches(tmp_path: Path) -> None:
    for name in ("copy", "softmax"):
        shutil.copytree(CACHE / "sm_80" / name, tmp_path / name)
    assert "No finding" not in run(str(tmp_path))  # nothing can be simulated
    (tmp_path / "inspect-kernel.json").write_text('{"launches": []}')
    text = run(str(tmp_path))
    assert f"next   inspect-kernel advise {tmp_path}\n" in text
    assert text.index("No finding says") < text.index("\nkernel ")


@pytest.mark.long
def test_a_list_of_eighty_columns_keeps_words_rather_than_registers() -> None:
    rows = [line for line in run(str(CACHE)).splitlines() if "wait in loop" in line or "older mma" in line]
    assert len(rows) > 2
    assert all(len(row) <= 80 for row in rows)
    assert any("wait in loop serialises" in row for row in rows)
    assert any("older mma than target" in row for row in rows)
    (cell,) = [cut_row({"kernel": "k", "variant": "", "verdict": "grouped {1 2}{3 4} and more", "what limits it": ""},
                       18, 18, 16, 28)["verdict"]]  # fmt: skip
    assert str(cell) == "grouped"


@pytest.mark.parametrize(
    ("value", "text"), [(None, "none"), ("", "none"), ((), "none"), (3, "3"), (("a", "b"), "a, b")]
)
def test_a_value_of_a_pass_is_never_empty(value: object, text: str) -> None:
    change = FactChange(Topic.ORDER, "k", "waits", "", value, 1)  # type: ignore[arg-type]
    step = PassRun(0, "Pipeline", None, PassLevel.TTGIR, 1, changed_text=True, seconds=None, changes=(change,))
    assert f"waits: {text} → 1" in "\n".join(describe_passes(PassTrace("k", "sm_80", "3.6.0", (step,), (), ())))
