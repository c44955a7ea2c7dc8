"""What everybody pays: the help of the command, and the plugin in a pytest that asks for no kernel.

    pip install -e '.[test,bench]' && pytest tests/bench/bench_starting.py

The bounds are on processor time, which on an idle machine is the time that passes: how busy it is with other
things is not theirs. The table of pytest-benchmark has the time that passed, Python's own start included.
"""

from __future__ import annotations

import os
import subprocess
import sys
from statistics import median
from typing import Any

PLUGIN_SECONDS = 0.010
HELP_SECONDS = 0.3
ROUNDS = 10
IMPORT = """
import pytest, time
started = time.process_time()
import artifact_inspector.pytest_plugin
print(time.process_time() - started)
"""


def _of_children() -> float:
    used = os.times()
    return used.children_user + used.children_system


def bench_importing_the_plugin_over_bare_pytest(benchmark: Any) -> None:
    seconds = []

    def import_it() -> None:
        answer = subprocess.run([sys.executable, "-c", IMPORT], capture_output=True, text=True, check=True)
        seconds.append(float(answer.stdout))

    benchmark.pedantic(import_it, rounds=ROUNDS, warmup_rounds=1)  # the first writes the byte code
    benchmark.extra_info["ms over pytest"] = round(1000 * median(seconds[1:]), 2)
    assert median(seconds[1:]) < PLUGIN_SECONDS


def bench_help(benchmark: Any) -> None:
    seconds = []

    def print_it() -> None:
        started = _of_children()
        command = [sys.executable, "-m", "artifact_inspector", "--help"]
        answer = subprocess.run(command, capture_output=True, text=True, check=True)
        seconds.append(_of_children() - started)
        assert "Usage: inspect-kernel" in answer.stdout

    benchmark.pedantic(print_it, rounds=ROUNDS, warmup_rounds=1)
    benchmark.extra_info["processor ms"] = round(1000 * median(seconds[1:]), 1)
    assert median(seconds[1:]) < HELP_SECONDS
