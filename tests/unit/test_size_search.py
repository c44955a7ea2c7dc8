"""The smallest size with which a launch leaves a tensor is found, and none where all accesses are masked."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from memory_cases import run_command
from saved import FIXTURES

from artifact_inspector.cli._loading import make_disassembler
from artifact_inspector.execution.kernel_loader import load_kernel
from artifact_inspector.execution.launch import KernelLaunch, Tensor
from artifact_inspector.files.cache import open_cache
from artifact_inspector.memory_checks.size_search import search_sizes

PROGRAM = Path(__file__).parents[1] / "cases" / "sizes.py"


def test_a_masked_kernel_stays_inside_for_every_size_also_beyond_32_bits() -> None:
    entry = open_cache(FIXTURES / "3.6.0/sm_80/masked_add").entries[0]
    loaded = load_kernel(entry, make_disassembler([entry], None, sass=True))
    arguments = {name: Tensor((4096,), "fp32") for name in ("x_ptr", "y_ptr", "out_ptr")}
    search, problem = search_sizes(loaded, KernelLaunch((8, 1, 1), {**arguments, "n": 4096}), {"BLOCK": 512}, 10**6)
    assert problem is None
    assert search.smallest_failing is None
    assert search.launches > 12
    assert search.assumptions[0] == "grid = (cdiv(n, BLOCK), 1, 1)"
    masked, problem = search_sizes(loaded, KernelLaunch((8, 1, 1), {**arguments, "n": 5000}), {"BLOCK": 512}, 10**6)
    assert (masked.launches, problem) == (0, None)  # n is the extent of no tensor


@pytest.mark.exhaustive
def test_the_smallest_failing_launch_of_each_kernel_is_named() -> None:
    ran = run_command("-t", "sm_80", "--sizes", "--json", "--", sys.executable, str(PROGRAM))
    launches = {launch["kernel"]: launch for launch in json.loads(ran.stdout)["launches"]}
    assert ran.returncode == 1
    assert launches["masked"]["sizes"]["smallest_failing"] is None
    assert launches["unmasked"]["sizes"]["smallest_failing"] == "n=16"  # compiled for multiples of 16
    assert launches["unmasked_depth"]["sizes"]["smallest_failing"] == "m=2, n=2, k=16"
    (problem,) = launches["unmasked_depth"]["problems"]
    assert problem["message"].startswith("with m=2, n=2, k=16: read ")
    assert problem["site"]["source"] == "sizes.py:27"
