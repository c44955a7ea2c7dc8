"""What limits a launch, from the cycles of its units."""

from __future__ import annotations

from dataclasses import replace

import pytest

from artifact_inspector.execution.timing.launch_time import at_clock, find_bounds, with_launch_timing
from artifact_inspector.execution.timing.ranking import gpu_model_of, stations
from artifact_inspector.hardware.targets import parse_target
from artifact_inspector.hardware.timing import TIMING


def test_a_unit_limits_from_60_percent_of_its_peak() -> None:
    assert find_bounds({"lsu": 59.0, "path": 100.0}, TIMING, 100.0) == ("path",)
    assert find_bounds({"lsu": 60.0, "path": 100.0}, TIMING, 100.0) == ("lsu",)


def test_units_within_two_points_limit_alike() -> None:
    assert find_bounds({"lsu": 71.0, "fabric": 72.5, "alu": 70.0}, TIMING, 100.0) == ("fabric", "lsu")
    assert find_bounds({"launch": 90.0, "fabric": 65.0, "lsu": 64.0}, TIMING, 100.0) == ("fabric", "lsu", "launch")
    assert find_bounds({"launch": 90.0, "fabric": 59.0}, TIMING, 100.0) == ("launch",)
    assert find_bounds({"launch": 62.0, "fabric": 65.0}, TIMING, 100.0) == ("fabric",)
    assert find_bounds({"lsu": 59.0, "fabric": 60.5}, TIMING, 100.0) == ("fabric",)  # 60 % is the least


def test_peaks_are_those_of_all_multiprocessors_but_memory_is_shared() -> None:
    """136 CTAs on 132 multiprocessors: the fullest has two, the others one."""
    terms, filled = {"tensor": 90.0, "fabric": 65.0}, 136 / (2 * 132)
    assert find_bounds(terms, TIMING, 100.0) == ("tensor",)
    assert find_bounds(terms, TIMING, 100.0, filled) == ("fabric",)


def test_memory_keeps_its_clock_while_multiprocessors_slow_down() -> None:
    gpu = with_launch_timing(gpu_model_of(parse_target("sm_90"), "H200"), 1e9, 0.0)
    slow = at_clock(gpu, 1650.0)
    for rate in ("l2_bytes", "l2_peak_bytes", "fabric_bytes"):
        assert getattr(slow.timing, rate) * 1650 == pytest.approx(getattr(gpu.timing, rate) * 1980)
    assert slow.dram_bytes_per_cycle * 1650e6 == pytest.approx(4.8e12, rel=0.01)
    assert slow.rates == gpu.rates  # by cycle of the multiprocessors


def test_device_memory_never_reaches_the_peak_of_its_data_sheet() -> None:
    terms = {"dram": 68.0, "lsu": 61.0}
    assert find_bounds(terms, TIMING, 100.0)[0] == "lsu"
    assert find_bounds(terms, replace(TIMING, dram_share=0.92), 100.0)[0] == "dram"


def test_device_memory_and_the_link_are_one_station() -> None:
    assert stations({"lsu": 1.0, "dram": 5.0, "fabric": 7.0}) == [1.0, 7.0]
    assert stations({"lsu": 1.0}) == [1.0, 0.0]


def test_only_an_l2_of_two_halves_that_was_measured_has_a_link() -> None:
    assert gpu_model_of(parse_target("sm_90"), "H200").timing.fabric_bytes > 0
    assert gpu_model_of(parse_target("sm_75"), "T4").timing.fabric_bytes == 0
