"""How fast files are read and caches inspected: figures to look at, not to assert.

    pip install -e '.[test,bench]' && pytest tests/bench/bench_reading.py --benchmark-timer=time.process_time

MB/s stand in the column of extra information; docs/lab/performance.md says what to make of them.
"""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest
from saved import FIXTURES, saved_kernels

from artifact_inspector.facts.inspection import inspect_cache
from artifact_inspector.files.cache import open_cache, read_stage
from artifact_inspector.formats import format_of
from artifact_inspector.model import Stage

_READ = frozenset(stage.value for stage in Stage)


@pytest.mark.parametrize("stage", Stage)
def bench_reading(stage: Stage, benchmark: Any) -> None:
    sources = [read_stage(k.artifact, stage.value).source for k in saved_kernels() if stage in k.stages]
    parse = format_of(stage).parse
    benchmark(lambda: [parse(source, stage) for source in sources])
    size = sum(len(source.text) for source in sources) / 1e6
    benchmark.extra_info["MB/s"] = round(size / benchmark.stats.stats.min, 1)


@pytest.mark.parametrize("version", sorted(path.name for path in FIXTURES.glob("[0-9]*")))
def bench_inspecting(version: str, benchmark: Any) -> None:
    """The whole pipeline: read, parse, every analysis, facts."""
    cache = open_cache(FIXTURES / version)
    kernels = benchmark(lambda: list(inspect_cache(cache)))
    size = sum(
        path.stat().st_size for artifact in cache.entries for suffix, path in artifact.files.items() if suffix in _READ
    )
    benchmark.extra_info["kernels"] = len(kernels)
    benchmark.extra_info["MB/s"] = round(size / 1e6 / benchmark.stats.stats.min, 1)


@pytest.mark.parametrize(
    "name", ["artifact_inspector", "artifact_inspector.facts.inspection", "artifact_inspector.cli"]
)
def bench_import(name: str, benchmark: Any) -> None:
    benchmark.pedantic(lambda: subprocess.run([sys.executable, "-c", f"import {name}"], check=True), rounds=5)
