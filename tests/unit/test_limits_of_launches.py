"""What limits a launch, from the cycles of its units."""

from __future__ import annotations

from dataclasses import replace

from artifact_inspector.execution.timing.launch_time import find_bound
from artifact_inspector.execution.timing.ranking import gpu_model_of, stations
from artifact_inspector.hardware.targets import parse_target
from artifact_inspector.hardware.timing import TIMING


def test_a_unit_limits_from_60_percent_of_its_peak() -> None:
    assert find_bound({"lsu": 59.0, "path": 100.0}, TIMING, 100.0) == "path"
    assert find_bound({"lsu": 60.0, "path": 100.0}, TIMING, 100.0) == "lsu"


def test_device_memory_never_reaches_the_peak_of_its_data_sheet() -> None:
    terms = {"dram": 68.0, "lsu": 61.0}
    assert find_bound(terms, TIMING, 100.0) == "lsu"
    assert find_bound(terms, replace(TIMING, dram_share=0.92), 100.0) == "dram"


def test_device_memory_and_the_link_are_one_station() -> None:
    assert stations({"lsu": 1.0, "dram": 5.0, "fabric": 7.0}) == [1.0, 7.0]
    assert stations({"lsu": 1.0}) == [1.0, 0.0]


def test_only_an_l2_of_two_halves_that_was_measured_has_a_link() -> None:
    assert gpu_model_of(parse_target("sm_90"), "H200").timing.fabric_bytes > 0
    assert gpu_model_of(parse_target("sm_75"), "T4").timing.fabric_bytes == 0
