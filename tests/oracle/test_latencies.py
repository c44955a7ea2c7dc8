"""Latencies that a ranking takes, against what chains of dependent instructions took on an H200 and an H100."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from artifact_inspector.execution.timing.ranking import barrier_cycles, launch_cycles
from artifact_inspector.hardware.timing import TIMING

MEASURED: dict[str, dict[str, float]] = json.loads((Path(__file__).parent / "measured" / "latencies.json").read_text())


def beyond(measured: dict[str, float]) -> dict[str, float]:
    """Field → cycles, without those that its unit is busy with one warp's instruction."""
    told = {
        "l2": measured["l2_8MiB"],
        "shared": measured["shared"] - 1,
        "shuffle": measured["shuffle"] - 1,
        "special": measured["ex2"] - 2,
        "arithmetic": measured["ffma"],
        "fp64": measured["dfma"] - 1,
        "constant": measured["ldc"] - measured["imad"],
        "mma": measured["mma_m16n8k16_f16"] - 1,
        "warpgroup": measured["warpgroup_n64_1_products"] - 32,
        "tma": measured["bulk_1024_l2"] - measured["l2_8MiB"],
        "cta_launch": measured["launch_4_warps"],
    }
    for field, name in (
        ("l1", "l1_16KiB"),
        ("atomic", "atomic_global"),
        ("cta_turnaround", "launch_4_warps_200_KiB_shared"),
    ):
        if name in measured:
            told[field] = measured[name]
    return told


@pytest.mark.parametrize("gpu", MEASURED)
def test_a_latency_is_what_was_measured(gpu: str) -> None:
    for field, cycles in beyond(MEASURED[gpu]).items():
        assert getattr(TIMING, field) == pytest.approx(cycles, rel=0.04, abs=1), field


@pytest.mark.parametrize("gpu", MEASURED)
@pytest.mark.parametrize("warps", [1, 2, 4, 8, 16, 32])
def test_barriers_and_starts_grow_with_the_warps_as_measured(gpu: str, warps: int) -> None:
    assert barrier_cycles(TIMING, warps) == pytest.approx(MEASURED[gpu][f"barrier_{warps}_warps"], abs=0.5)
    held = 64 // max(warps, 2)
    assert launch_cycles(TIMING, warps, held) == pytest.approx(MEASURED[gpu][f"launch_{warps}_warps"], rel=0.01)


def test_what_all_multiprocessors_get_of_the_second_level_cache_is_what_was_measured() -> None:
    measured = MEASURED["H200"]
    side_by_side = [measured["l2_read_all_16.5MiB"], measured["l2_read_all_8.25MiB"]]
    assert min(side_by_side) <= TIMING.l2_bytes <= max(side_by_side)
    alone = measured["read_16_run_32_stride_128_l2"]
    assert TIMING.l2_request_bytes / TIMING.l2_bytes == pytest.approx(alone, rel=0.02)


def test_what_memory_sustains_lies_by_what_was_measured() -> None:
    for gpu, sheet in (("H200", 4.8), ("H100", 3.35)):
        assert TIMING.dram_share == pytest.approx(MEASURED[gpu]["dram_copy"] / sheet, abs=0.02)
