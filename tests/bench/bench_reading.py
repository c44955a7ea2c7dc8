"""How fast files are read and caches inspected: figures to look at, not to assert.

    pip install -e '.[test,bench]' && pytest tests/bench/bench_reading.py

MB/s stand in the column of extra information.
"""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest
from saved import FIXTURES, saved_kernels

from artifact_inspector.cache import open_cache, read_stage
from artifact_inspector.formats import format_of
from artifact_inspector.inspection import inspect_cache
from artifact_inspector.model import Stage


@pytest.mark.parametrize("stage", Stage)
def bench_reading(stage: Stage, benchmark: Any) -> None:
    sources = [read_stage(k.artifact, stage.value).source for k in saved_kernels() if stage in k.stages]
    parse = format_of(stage).parse
    benchmark(lambda: [parse(source, stage) for source in sources])
    size = sum(len(source.text) for source in sources) / 1e6
    benchmark.extra_info["MB/s"] = round(size / benchmark.stats.stats.mean, 1)


def bench_inspecting_a_cache(benchmark: Any) -> None:
    kernels = benchmark(lambda: list(inspect_cache(open_cache(FIXTURES / "3.6.0"))))
    benchmark.extra_info["kernels"] = len(kernels)


@pytest.mark.parametrize(
    "name", ["artifact_inspector", "artifact_inspector.inspection", "artifact_inspector.cli"]
)
def bench_import(name: str, benchmark: Any) -> None:
    benchmark.pedantic(lambda: subprocess.run([sys.executable, "-c", f"import {name}"], check=True), rounds=5)
