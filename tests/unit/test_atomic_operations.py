"""Atomics of 2²² lanes on random addresses, as timed on an H200, and the operations that the L2 is said to do."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np

from artifact_inspector.diagnosis.memory_causes import ATOMIC_CYCLES, FLOAT_CONFLICT
from artifact_inspector.execution.interpreter.footprints import FootprintAccess
from artifact_inspector.execution.timing.sampling import GlobalTraffic

TABLE = Path(__file__).parents[2] / "docs" / "lab" / "atomics-h200.csv"
LANES, SAMPLED = 1 << 22, 1 << 15
MEGAHERTZ = 1980
LEAST_US = 250.0
"""Microseconds from which atomics bound the launch: reading 16 MB takes less than 50."""


def _predict(kind: str, stride: int, addresses: int) -> float:
    lanes = np.random.default_rng(0).integers(0, addresses, SAMPLED) * stride
    traffic = GlobalTraffic((), lane_addresses={0: [np.stack([lanes, np.arange(SAMPLED) // 32])]})
    conflict = FLOAT_CONFLICT if kind == "float" else 1.0
    operations = max(traffic.count_atomic_operations([0], conflict, addresses * stride))
    return operations * ATOMIC_CYCLES * (LANES / SAMPLED) / MEGAHERTZ


def test_atomics_take_the_time_that_was_measured() -> None:
    ratios = []
    for row in csv.DictReader(TABLE.open(encoding="utf-8")):
        stride, addresses, us = int(row["stride"]), int(row["addresses"]), float(row["us"])
        if us >= LEAST_US and stride < 4096:  # further apart, the hash of slices decides
            ratios.append(_predict(row["kind"], stride, addresses) / us)
    assert len(ratios) > 40
    assert np.mean([abs(np.log(one)) < np.log(1.25) for one in ratios]) >= 0.8
    assert 0.6 <= min(ratios) <= max(ratios) <= 1.75


def test_lanes_of_one_sector_are_one_operation_and_lanes_of_one_address_are_many() -> None:
    apart = np.stack([np.arange(32) * 4, np.zeros(32, int)])
    same = np.zeros((2, 32), int)
    traffic = GlobalTraffic((), lane_addresses={0: [apart], 1: [same]})
    assert traffic.count_atomic_operations([0], 1.0, 128) == (4.0, 4.0)
    assert traffic.count_atomic_operations([1], 1.0, 4) == (32.0, 32.0)
    assert traffic.count_atomic_operations([1], 2.0, 4) == (63.0, 63.0)


def test_a_store_completes_the_sectors_of_the_store_directly_before_it() -> None:
    lanes = 4096 + np.arange(32)[None] * 16
    ctas = np.zeros(1, np.int64)

    def completed(*offsets: int) -> list[int]:
        traffic = GlobalTraffic(())
        for step, offset in enumerate(offsets):
            traffic.add(FootprintAccess(step, ctas, lanes + offset, None, False))
        return [traffic.completed_sectors[step] for step in range(len(offsets))]

    assert completed(0, 4, 8) == [0, 16, 16]
    assert completed(0, 2048, 4) == [0, 0, 0]
