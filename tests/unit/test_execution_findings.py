"""What stands out in launches that are run on paper."""

from __future__ import annotations

import csv
import json
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
from saved import ROOT

from artifact_inspector.execution.kernel_loader import load_kernel
from artifact_inspector.execution.launch_requests import parse_document, resolve_launch
from artifact_inspector.execution.prediction import Prediction, predict_counters
from artifact_inspector.execution.simulation import simulate_launch
from artifact_inspector.execution.timing.launch_time import LaunchTime
from artifact_inspector.files.cache import open_cache
from artifact_inspector.findings import bank_conflicts, find_launch_findings

COUNTERS = Path(__file__).parents[1] / "oracle" / "counters"


@cache
def prediction(case: str, wave: int | None = None, **changed: int) -> Prediction:
    (entry,) = [entry for entry in open_cache(COUNTERS / case).entries if "sass" in entry.files]
    loaded = load_kernel(entry, None)
    document = json.loads((COUNTERS / case / "launch.json").read_text())
    document["args"] |= {name: value for name, value in changed.items() if name != "grid"}
    document["grid"] = [changed["grid"], 1, 1] if "grid" in changed else document["grid"]
    (request,) = parse_document(json.dumps(document), "launch.json")
    launch = resolve_launch(request, [parameter.argument for parameter in loaded.parameters])
    run = simulate_launch(loaded, launch, footprints=wave is not None)
    return predict_counters(run, 50 << 20, None if wave is None else (wave, "as given"))


def codes(found: Prediction) -> dict[str, str]:
    return {finding.code: finding.remark.message for finding in find_launch_findings(found)}


def test_the_gemv_meets_itself_in_the_banks_and_the_softmax_does_not() -> None:
    assert "3,820,544 passes over shared memory instead of 265,216" in codes(prediction("gemv"))["AI016"]
    assert "AI016" not in codes(prediction("softmax", grid=64))


def test_asynchronous_copies_meet_in_the_banks_too() -> None:
    found = prediction("gemv")
    (line, *_) = (one for one in found.by_line if one.wavefronts)
    copy = replace(line, opcode="LDGSTS.E.BYPASS.128", is_copy=True, wavefronts=8000, wavefronts_ideal=1000)
    found = replace(found, by_line=(copy,), counters=replace(found.counters, shared_wavefronts=8000))
    assert "8,000 passes over shared memory instead of 1,000 (LDGSTS.E.BYPASS.128)" in codes(found)["AI016"]


@pytest.mark.parametrize(("total", "speaks"), [(1490, True), (4000, True), (9900, False)])
def test_added_passes_count_from_a_twentieth_of_all_passes_on(total: int, speaks: bool) -> None:
    found = prediction("gemv")
    (line, *_) = (one for one in found.by_line if one.wavefronts)
    line = replace(line, wavefronts=1490, wavefronts_ideal=1000)
    found = replace(found, by_line=(line,), counters=replace(found.counters, shared_wavefronts=total))
    assert ("AI016" in codes(found)) is speaks


def test_from_the_limit_on_most_launches_gain_without_their_conflicts() -> None:
    """As measured on an H200; fewer of those below it do, and a limit of a fifth misses twelve more."""
    with (ROOT / "docs" / "lab" / "bank-conflicts-h200.csv").open(encoding="utf-8") as file:
        rows = [(float(row["share"]), float(row["measured_ratio"]) >= 1.03) for row in csv.DictReader(file)]
    reported = [gains for share, gains in rows if share >= bank_conflicts.LEAST_SHARE]
    assert sum(reported) >= 0.85 * len(reported)
    assert sum(gains for share, gains in rows if share < bank_conflicts.LEAST_SHARE) == 3
    assert sum(gains for share, gains in rows if share < 0.2) == 15


@pytest.mark.parametrize(("n_cols", "speaks"), [(1000, False), (500, True)])
def test_lanes_over_the_edge_of_a_row_are_told(n_cols: int, speaks: bool) -> None:
    found = codes(prediction("softmax", grid=8, n_cols=n_cols))
    assert ("AI018" in found) is speaks


@pytest.mark.parametrize(("wave", "speaks"), [(50, True), (32, False), (60, True)])
def test_a_last_wave_that_is_mostly_empty_is_told(wave: int, speaks: bool) -> None:
    assert ("AI019" in codes(prediction("softmax", wave=wave, grid=64))) is speaks


def test_a_launch_of_less_than_half_a_wave_is_reported() -> None:
    message = codes(prediction("softmax", wave=200, grid=64))["AI019"]
    assert message == "the only wave has 64 of 200 CTAs (as given)"


def test_the_last_iterations_of_a_pipeline_switch_no_lanes_off() -> None:
    # copies of an unmasked product: what no lane of a CTA executes is not half a tile
    result = prediction("matmul")
    assert "AI018" not in codes(result)
    assert result.counters.masked_lanes is not None


@pytest.mark.parametrize(
    ("target", "busy", "message"),
    [
        ("sm_86", 30.0, "fp64 instructions keep their unit of G busy for 30% of the predicted time, at 1/64 of its fp32 rate"),
        ("sm_75", 30.0, "fp64 instructions keep their unit of G busy for 30% of the predicted time, at 1/32 of its fp32 rate"),
        ("sm_90", 120.0, "fp64 instructions keep their unit of G busy for 100% of the predicted time, at 1/2 of its fp32 rate"),
        ("sm_103", 30.0, "fp64 instructions keep their unit of G busy for 30% of the predicted time"),
        ("sm_86", 20.0, None),
        ("sm_86", None, None),
    ],
)  # fmt: skip
def test_a_busy_fp64_unit_is_reported_with_its_rate(target: str, busy: float | None, message: str | None) -> None:
    terms = {} if busy is None else {"double": busy}
    time = LaunchTime(100.0, 70.0, 145.0, "G", "double precision", terms, 1, 1.0, None, False)
    found = replace(prediction("softmax", grid=8), target=target, time=time)
    assert codes(found).get("AI028") == message
    assert "AI028" not in codes(replace(found, time=None))
