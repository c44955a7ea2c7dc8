"""Registers told apart into what CTAs and what lanes have are the arrays that they stand for."""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from artifact_inspector.execution.interpreter.affine import AffineValue, as_plain_array, pair_operands, to_affine
from artifact_inspector.execution.interpreter.values import FULL, apply, as_signed, select_lanes
from artifact_inspector.execution.kernel_loader import load_kernel
from artifact_inspector.execution.launch import KernelLaunch, Tensor
from artifact_inspector.execution.launch_requests import parse_document, resolve_launch
from artifact_inspector.execution.prediction import predict_counters
from artifact_inspector.execution.simulation import simulate_launch
from artifact_inspector.files.cache import open_cache

NUMBERS = (0, 1, 7, 64, 127, 128, 4096, 0x80000000, FULL, -4, -128, 0xFFFFFF80, 1 << 32, 0x7000 << 32)
CTAS = [np.array(rows, np.int64)[:, None] for rows in (
    [0, 128, 256, 384], [0, 5, 10, 15], [0, 0, 128, 0], [FULL - 63, 0, 64, 1 << 31], [-128, 0, 128, 7 << 40],
    [0, 3, 1, 2],
)]  # fmt: skip
LANES = [np.array([lanes], np.int64) for lanes in (
    [0, 1, 2, 3, 4], [0, 16, 32, 48, 64], [127, 0, 1, 2, 3], [-64, -32, 0, 32, 64], [0, 1 << 31, 4, FULL, 2],
    [0, 0, 0, 0, 0],
)]  # fmt: skip
BINARY: list[Callable[[Any, Any], Any]] = [
    operator.add, operator.sub, operator.mul, operator.and_, operator.or_, operator.xor, operator.lt,
    operator.le, operator.gt, operator.ge, operator.eq, operator.ne, np.minimum, np.maximum,
]  # fmt: skip
UNARY: list[Callable[[Any], Any]] = [
    operator.neg, operator.invert, as_signed, abs, lambda v: v & FULL, lambda v: as_signed(v & FULL) & FULL,
    *(partial(lambda by, v: v << by, by) for by in (0, 2, 7)),
    *(partial(lambda by, v: v >> by, by) for by in (0, 2, 7, 31, 32)),
    *(partial(lambda by, v: ((v >> by) | (v << (32 - by))) & FULL, by) for by in (3, 16)),
]  # fmt: skip


def same(found: Any, expected: Any) -> bool:
    shape = np.broadcast_shapes(np.shape(as_plain_array(found)), np.shape(expected))
    return np.array_equal(np.broadcast_to(as_plain_array(found), shape), np.broadcast_to(expected, shape))


@pytest.mark.parametrize("rows", CTAS, ids=range(len(CTAS)))
@pytest.mark.parametrize(
    "lanes", [pytest.param(lanes, id=f"{n}", marks=pytest.mark.long if n % 2 else []) for n, lanes in enumerate(LANES)]
)
def test_what_is_computed_of_a_sum_is_what_numpy_computes_of_the_array(rows: Any, lanes: Any) -> None:
    value, array = AffineValue(rows, lanes), rows + lanes
    others = [*NUMBERS, *CTAS, *LANES, *(AffineValue(r, x) for r, x in zip(CTAS, LANES, strict=True))]
    for function in UNARY:
        assert same(apply(function, value), function(array))
    for two in BINARY:
        for other in others:
            assert same(apply(two, value, other), two(array, as_plain_array(other))), (two, other)
            assert same(apply(two, other, value), two(as_plain_array(other), array)), (two, other)
    for mask in (array > 60, array[:1] > 60, array[:, :1] > 60):
        for other in others:
            expected = np.where(mask, array, as_plain_array(other))
            assert same(select_lanes(mask, value, other), expected)
            assert same(np.where(mask, value, other), expected)
    for of_array in (np.max, np.unique, np.ravel, partial(np.clip, a_min=3, a_max=90), partial(np.sum, axis=1)):
        assert same(of_array(value), of_array(array))


@pytest.mark.parametrize("function", [operator.eq, operator.ne])
def test_lanes_that_are_all_alike_are_compared_once_for_each_cta(function: Callable[[Any, Any], Any]) -> None:
    rows = np.arange(-4, 4, dtype=np.int64)[:, None]
    found = function(AffineValue(rows, np.full((1, 64), 3, np.int64)), 4)
    assert np.array_equal(found, function(rows + 3, 4))


@pytest.mark.parametrize("function", BINARY)
def test_numbers_of_ctas_and_of_lanes_make_no_array_of_all_lanes(function: Callable[[Any, Any], Any]) -> None:
    ctas, lanes = np.arange(0, 1 << 14, 128)[:, None], np.arange(64)[None]
    for operands in ((ctas, lanes), (lanes, ctas)):
        assert same(function(*pair_operands(*operands)), function(*operands))
        assert isinstance(operator.add(*pair_operands(*operands)), AffineValue)
        above = pair_operands(*(value + 64 * (value is lanes) for value in operands))  # CTA 0 is below all lanes
        assert np.shape(operator.lt(*above)) == (128, 1)
    few = ctas[:4], lanes
    assert pair_operands(*few) == few


def test_an_array_is_told_apart_only_where_it_is_a_sum() -> None:
    array = CTAS[1] + LANES[1]
    assert isinstance(to_affine(array), AffineValue)
    assert same(to_affine(array), array)
    odd = array.copy()
    odd[1, 2] += 1
    assert to_affine(odd) is odd
    assert to_affine(CTAS[1] + 0 * LANES[1]).shape == (4, 1)
    assert to_affine(np.ones((4, 5), bool)) is True


COUNTERS = Path(__file__).parents[1] / "oracle" / "counters"
FIXTURES = Path(__file__).parents[2] / "fixtures" / "3.6.0"


@pytest.mark.parametrize("name", ["gemv", "softmax", "matmul", pytest.param("linear_scan", marks=pytest.mark.long)])
def test_ctas_count_together_what_they_count_lane_by_lane(name: str) -> None:
    (entry,) = [entry for entry in open_cache(COUNTERS / name).entries if "sass" in entry.files]
    loaded = load_kernel(entry, None)
    (request,) = parse_document((COUNTERS / name / "launch.json").read_text(), "launch.json")
    launch = resolve_launch(request, [parameter.argument for parameter in loaded.parameters])
    found, expected = (
        predict_counters(
            simulate_launch(loaded, launch, ctas=np.arange(min(launch.ctas, 300)), runs_in_parallel=how), 50 << 20
        )
        for how in (True, False)
    )
    assert replace(found, shared_accesses=()) == replace(expected, shared_accesses=())


@pytest.mark.parametrize(("target", "rows"), [("gfx942", 1000), ("gfx1100", 1024)])
def test_ctas_of_amd_count_together_what_they_count_lane_by_lane(target: str, rows: int) -> None:
    """A product whose last tiles are cut off, and one of whole tiles on waves of 32 lanes."""
    (entry,) = open_cache(FIXTURES / target / "matmul_grouped").entries
    loaded, depth = load_kernel(entry, None), 200
    sizes = {"M": rows, "N": rows, "K": depth, "stride_am": depth, "stride_bk": rows, "stride_cm": rows}
    tensors = {"a_ptr": Tensor((rows, depth), "fp16"), "b_ptr": Tensor((depth, rows), "fp16")}
    launch = KernelLaunch((64, 1, 1), {**tensors, "c_ptr": Tensor((rows, rows), "fp16"), **sizes})
    found, expected = (
        predict_counters(simulate_launch(loaded, launch, runs_in_parallel=how), 50 << 20) for how in (True, False)
    )
    assert replace(found, shared_accesses=()) == replace(expected, shared_accesses=())
