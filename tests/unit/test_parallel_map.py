"""Calls in parallel processes."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path

from artifact_inspector.execution.timing.parallel_map import map_in_processes


def test_a_call_that_takes_many_times_the_median_is_stopped_with_its_programs(tmp_path: Path) -> None:
    def call(number: int) -> int:
        if number == 0:
            program = subprocess.Popen(["sleep", "60"])
            (tmp_path / "pid").write_text(str(program.pid))
            program.wait()
        else:
            time.sleep(0.02)
        return number

    start = time.perf_counter()
    assert sorted(map_in_processes(call, range(6), 2, patience=5)) == [1, 2, 3, 4, 5]
    assert time.perf_counter() - start < 30
    program = Path("/proc") / (tmp_path / "pid").read_text() / "stat"
    for _ in range(100):
        if not program.exists() or program.read_text().split()[2] == "Z":
            return
        time.sleep(0.05)
    raise AssertionError("the program still runs")


def test_every_call_has_a_result_without_a_limit() -> None:
    def call(number: int) -> int:
        time.sleep(0.2 if number == 0 else 0.0)
        return number

    assert sorted(map_in_processes(call, range(6), 2)) == [*range(6)]
