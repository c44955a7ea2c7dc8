"""Kernels run on paper against Nsight Compute on an H200: what it counted is what is counted here."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

import pytest
from measured import METRICS

from artifact_inspector.execution.kernel_loader import load_kernel
from artifact_inspector.execution.launch_requests import parse_document, resolve_launch
from artifact_inspector.execution.prediction import Prediction, predict_counters
from artifact_inspector.execution.simulation import simulate_launch
from artifact_inspector.files.cache import open_cache

SLOW = ("linear_scan", "histogram")
CASES = [
    pytest.param(path.name, marks=pytest.mark.exhaustive) if path.name in SLOW else path.name
    for path in sorted((Path(__file__).parent / "counters").iterdir())
]
L2 = 50 << 20


@cache
def case(name: str) -> tuple[Prediction, dict[str, float]]:
    place = Path(__file__).parent / "counters" / name
    (entry,) = [entry for entry in open_cache(place).entries if "sass" in entry.files]
    loaded = load_kernel(entry, None)
    (request,) = parse_document((place / "launch.json").read_text(), "launch.json")
    launch = resolve_launch(request, [parameter.argument for parameter in loaded.parameters])
    truth = json.loads((place / "ncu.json").read_text())["metrics"]
    return predict_counters(simulate_launch(loaded, launch), L2), truth


@pytest.mark.parametrize("name", CASES)
def test_every_opcode_has_semantics(name: str) -> None:
    found, _ = case(name)
    assert found.unsupported_opcodes == ()
    assert found.unknown == {}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("counter", METRICS)
def test_a_counter_is_what_hardware_counted(name: str, counter: str) -> None:
    found, truth = case(name)
    assert getattr(found.counters, counter) == truth[METRICS[counter]]


@pytest.mark.parametrize("name", CASES)
def test_what_comes_from_dram_is_within_half_a_percent_or_in_the_range(name: str) -> None:
    found, truth = case(name)
    read, measured = found.counters.dram_bytes_read, truth["dram__bytes_read.sum"]
    assert read is not None
    assert read.low * 0.995 <= measured <= read.high * 1.005


@pytest.mark.parametrize("name", CASES)
def test_multiply_adds_are_counted_where_their_guard_holds(name: str) -> None:
    found, truth = case(name)
    measured = truth["smsp__sass_thread_inst_executed_op_ffma_pred_on.sum"]
    assert (found.counters.flop or {}).get("fp32", 0) >= 2 * measured


@pytest.mark.parametrize("name", CASES)
def test_no_lane_leaves_its_tensors(name: str) -> None:
    assert case(name)[0].out_of_bounds == ()
