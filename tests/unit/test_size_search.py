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
from artifact_inspector.memory_checks.problems import Check
from artifact_inspector.memory_checks.size_search import GridFactor, _with_sizes, grid_factors, search_sizes, size_names

PROGRAM = Path(__file__).parents[1] / "cases" / "sizes.py"


def test_a_masked_kernel_stays_inside_for_every_size_also_beyond_32_bits() -> None:
    entry = open_cache(FIXTURES / "3.6.0/sm_80/masked_add").entries[0]
    loaded = load_kernel(entry, make_disassembler([entry], None, sass=True))
    arguments = {name: Tensor((4096,), "fp32") for name in ("x_ptr", "y_ptr", "out_ptr")}
    search, problem = search_sizes(loaded, KernelLaunch((8, 1, 1), {**arguments, "n": 4096}), {"BLOCK": 512}, 10**6)
    assert problem is None
    assert search.smallest_failing is None
    assert search.launches == 11  # 0, 2, four primes, 511, 512, 513, 1,537 and 2³¹
    assert search.assumptions[0] == "grid = (cdiv(n, BLOCK), 1, 1)"
    masked, problem = search_sizes(loaded, KernelLaunch((8, 1, 1), {**arguments, "n": 5000}), {"BLOCK": 512}, 10**6)
    assert (masked.launches, problem) == (0, None)  # n is the extent of no tensor


def test_sizes_are_those_of_arguments_and_of_extents_that_the_grid_has() -> None:
    arguments = {"x": Tensor((128, 64), "fp32"), "n_cols": 64, "stride": 64}
    assert size_names(KernelLaunch((128, 1, 1), arguments), {}) == {64: ("n_cols",), 128: ("x.shape[0]",)}
    assert size_names(KernelLaunch((128, 1, 1), arguments), {"HEADS": 128}) == {64: ("n_cols",)}
    assert grid_factors(
        KernelLaunch((1, 1, 1), {**arguments, "x": Tensor((64,), "fp32")}), {64: ("n_cols",)}, {"B": 64}
    ) == [[GridFactor(64, 64, "B")], None, None]


def test_a_size_that_is_a_constant_too_grows_no_further() -> None:
    entry = open_cache(FIXTURES / "3.6.0/sm_80/masked_add").entries[0]
    loaded = load_kernel(entry, make_disassembler([entry], None, sass=True))
    indices = Tensor((512,), "int32", values=(1,) * 512)
    arguments = {"x_ptr": Tensor((512,), "fp32"), "y_ptr": indices, "out_ptr": Tensor((512,), "fp32"), "n": 512}
    search, problem = search_sizes(loaded, KernelLaunch((1, 1, 1), arguments), {"BLOCK": 512}, 10**6)
    assert problem is None
    assert search.assumptions == ("grid = (cdiv(n, BLOCK), 1, 1)", "n ≤ 512, as a constant of this variant")
    assert search.launches == 7  # 0, 2, 17, 127, 257, 511 and 512
    changed = _with_sizes(KernelLaunch((1, 1, 1), arguments), {512: 64}, [None, None, None])
    assert changed is not None
    assert changed.tensors["y_ptr"].values is None  # indices belong to the recorded size


@pytest.mark.long
def test_rows_whose_offsets_wrap_are_searched_without_an_argument_for_their_number() -> None:
    entry = open_cache(FIXTURES / "3.6.0/sm_80/softmax").entries[0]
    loaded = load_kernel(entry, make_disassembler([entry], None, sass=True))
    arguments = {"x_ptr": Tensor((96, 992), "fp16"), "y_ptr": Tensor((96, 992), "fp16"), "n_cols": 992}
    launch = KernelLaunch((96, 1, 1), {**arguments, "stride_x": 992, "stride_y": 992})
    search, problem = search_sizes(loaded, launch, {"BLOCK": 1024}, 10**6)
    assert search.smallest_failing == "n_cols=992, y_ptr.shape[0]=2,166,784"  # more than 2³¹ elements
    assert problem is not None
    assert problem.check is Check.OVERFLOW


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
