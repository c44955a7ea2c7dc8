"""The predicted time of a launch: what limits it, unequal CTAs, and where warps wait."""

from __future__ import annotations

import json
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from artifact_inspector import cli
from artifact_inspector.execution.timing import launch_time, ranking
from artifact_inspector.execution.timing.control_codes import ControlCode
from artifact_inspector.execution.timing.costs import CtaCosts, SharedTraffic
from artifact_inspector.execution.timing.latency_walk import StepCost, walk_cta
from artifact_inspector.execution.timing.launch_time import LaunchTime, makespan, matrix_share
from artifact_inspector.hardware.products import clock_of
from artifact_inspector.hardware.targets import parse_target
from artifact_inspector.report.prediction import describe_time

GEMV = [
    "predict", "fixtures/3.6.0/sm_90/gemv_splitk", "--arg", "a_ptr=fp16[4096]", "--arg", "b_ptr=fp16[4096,7168]",
    "--arg", "c_ptr=fp32[7168]", "--arg", "stride_bk=7168", "--grid", "28,32",
]  # fmt: skip


def predict(*words: str) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(CliRunner().invoke(cli.app, [*GEMV, "--json", *words]).output)
    return document


@pytest.fixture(scope="module")
def prediction() -> dict[str, Any]:
    return predict("--gpu", "H200")


def test_one_long_cta_keeps_the_launch_waiting() -> None:
    work = np.ones(264)
    equal = makespan(work, [0.5, 1.0], 132)
    work[-1] = 5.0
    assert equal == pytest.approx(2.0)
    assert makespan(work, [0.5, 1.0], 132) == pytest.approx(2.0 + 4.0 * 2.0)  # by itself at half the rate
    work[0], work[-1] = 5.0, 1.0
    assert makespan(work, [1.0], 132) == pytest.approx(5.0)  # it starts first, and others fill the rest
    assert makespan(np.ones(265), [1.0], 132) == pytest.approx(3.0)


def test_the_clock_falls_while_matrix_units_are_busy() -> None:
    assert clock_of("NVIDIA H200", 0.0) == 1980
    assert clock_of("NVIDIA H200", 1e-6) == pytest.approx(1810, abs=0.1)  # as soon as there are products
    assert clock_of("NVIDIA H200", 1.0) == 1500
    assert clock_of("Tesla T4", 1.0) == 1590


def test_only_matrix_products_slow_the_clock() -> None:
    """`HFMA2.MMA` runs in the tensor pipe but multiplies no matrices; launches of it were measured at 1,980 MHz."""
    for types, share in ((("f16", "f32"), 0.5), (None, 0.0)):
        steps = [SimpleNamespace(index=0, matrix_types=types)]
        sample: Any = SimpleNamespace(
            loaded=SimpleNamespace(program=SimpleNamespace(steps=steps)), counters=SimpleNamespace(warps_executed=[4])
        )
        assert matrix_share(sample, {"tensor": 50.0}, 100.0) == share


def one_step_launch() -> tuple[Any, CtaCosts, list[ControlCode], Any]:
    """132 CTAs of one instruction on an H200: a sample of the first one, its costs, and where it runs."""
    counters = SimpleNamespace(warps_executed=[4])
    sample = SimpleNamespace(
        loaded=SimpleNamespace(threads=128, program=SimpleNamespace(steps=())),
        launch=SimpleNamespace(ctas=132), trace=(0,), ctas=[0], counters=counters,
    )  # fmt: skip
    costs = CtaCosts({0: StepCost("fma", 4.0, 4.0)}, {})
    return sample, costs, [ControlCode(1, None, None, ())], ranking.gpu_model_of(parse_target("sm_90"), "H200")


def test_ctas_that_work_nearly_alike_take_as_long_as_they_work() -> None:
    """No other CTA is simulated: a persistent one takes seconds."""
    sample, costs, controls, gpu = one_step_launch()
    run: Any = None
    model = launch_time._TimeModel(run, gpu, 1, 0, 0, controls, SharedTraffic({}), 100)
    work = np.array([95] * 100 + [100] * 32)
    assert model._imbalance(work, sample, costs, 1) == pytest.approx((100 / 95, work.mean() / 95))


def test_a_persistent_cta_is_walked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    walks: list[Any] = []

    def counted(*given: Any) -> Any:
        walks.append(given)
        return walk_cta(*given)

    monkeypatch.setattr(ranking, "walk_cta", counted)
    sample, costs, controls, gpu = one_step_launch()
    scores = [ranking.score_launch(sample, costs, controls, gpu, 1) for _ in range(2)]
    assert scores[0] == scores[1]
    assert ranking.cta_rates(sample, costs, controls, gpu, 1)[0] == costs.walks[1].cycles
    assert len(walks) == 1
    ranking.score_launch(sample, replace(costs, off_trace_cycles={"fma": 8.0}), controls, gpu, 1)
    assert len(walks) == 2  # other costs, another walk


@pytest.mark.parametrize("resident", [1, 2, 3])
@pytest.mark.parametrize("ctas", [1, 131, 132, 133, 264, 265, 396, 397, 529, 1000])
def test_waves_and_busy_cycles_are_those_of_the_fullest_multiprocessor(ctas: int, resident: int) -> None:
    """Hardware gives each multiprocessor a CTA in turn, and starts the next when one of the resident ones ends."""
    sample, _, controls, gpu = one_step_launch()
    sample.launch.ctas = ctas
    costs = CtaCosts({0: StepCost("fma", 4.0, 30.0, l2_cycles=40.0)}, {})
    score, terms, waves = ranking.score_launch(sample, costs, controls, gpu, resident)
    queues = [len(range(number, ctas, 132)) for number in range(132)]
    fullest, started, rounds = max(queues), 0, 0
    while started < fullest:
        started, rounds = started + resident, rounds + 1
    used = [count for count in queues if count]
    assert waves == rounds
    assert terms["fma"] == 4 * fullest
    assert terms["issue"] == fullest  # a warp on each of four schedulers
    assert terms["l2"] == pytest.approx(40 * sum(used) / len(used), abs=0.05)  # all multiprocessors share it
    alone = terms["path"] / rounds
    assert alone == 4 + 40  # nothing awaits the result
    assert score >= max(terms.values())
    assert score <= fullest * (alone + terms["launch"])


def test_units_that_are_as_busy_are_told() -> None:
    time = LaunchTime(9.0, 6.3, 13.0, "NVIDIA H200", "L2", {}, 2, 1.0, None, True, ("special functions",))
    assert "limited by L2 and special functions alike" in next(describe_time(time))
    assert next(describe_time(replace(time, bound_alike=()))).rpartition(", ")[2] == "limited by L2"


@pytest.mark.long
def test_the_time_lies_above_what_the_bottleneck_takes(prediction: dict[str, Any]) -> None:
    time = prediction["time"]
    units = {name: us for name, us in time["terms"].items() if name != "path"}
    assert time["low"] < time["us"] < time["high"]
    assert time["us"] > max(units.values())
    assert time["bound"] == "shared memory and L1"
    passes = 3_820_544 + 1_949_696 / 4  # over shared memory, and lines of four sectors in L1
    assert time["terms"]["lsu"] == pytest.approx(passes / 896 * 7 / 1980, rel=0.06)  # seven CTAs on the fullest SM
    assert time["gpu"] == "NVIDIA H200"
    assert time["is_validated"] is True
    assert time["imbalance"] == 1


@pytest.mark.long
def test_stalls_name_the_line_with_the_bank_conflicts(prediction: dict[str, Any]) -> None:
    stalls = prediction["stalls"]
    assert [row["cycles"] for row in stalls] == sorted((row["cycles"] for row in stalls), reverse=True)
    assert stalls[0]["reason"] == "long scoreboard"
    shared = {row["line"]: row["cycles"] for row in stalls if row["reason"] == "mio throttle"}
    # the reductions of both halves, whose code is in Triton's library
    assert list(shared)[:2] == ["gemv_splitk.py:31", "gemv_splitk.py:37"]
    assert sum(shared.values()) > 0.2 * sum(row["cycles"] for row in stalls)


@pytest.mark.long
def test_another_product_takes_longer_in_proportion_to_its_bandwidth(prediction: dict[str, Any]) -> None:
    slower = predict("--gpu", "H100 PCIe")["time"]
    assert slower["gpu"] == "NVIDIA H100 PCIe"
    assert slower["is_validated"] is False
    assert slower["terms"]["dram"] / prediction["time"]["terms"]["dram"] == pytest.approx(4.8 / 2.0, rel=0.05)


@pytest.mark.long
def test_the_text_says_the_time_before_the_counters() -> None:
    lines = CliRunner().invoke(cli.app, [*GEMV, "--gpu", "H200"]).output.splitlines()
    assert lines[1].strip().startswith("about ")
    assert "limited by shared memory and L1" in lines[1]
    assert any("overlap: " in line for line in lines[:4])
