"""The predicted times of a pair: the ratio of both, or why it is unknown."""

from __future__ import annotations

import tarfile
from pathlib import Path

import pytest
from saved import ROOT, saved

from artifact_inspector.api.pair_prices import predict_pair
from artifact_inspector.comparison.pair_price import PairPrice
from artifact_inspector.execution.launch_requests import LaunchRequest, parse_argument
from artifact_inspector.files.cache import open_cache
from artifact_inspector.files.disassembly import find_disassembler
from artifact_inspector.files.objdump import binary_disassembler

COLMAX = LaunchRequest(
    ("32",), dict(map(parse_argument, ("desc=bf16[4096,4096]", "out=fp32[4096]", "M=4096", "N=4096")))
)


def test_a_regression_costs_what_was_reported(tmp_path: Path) -> None:
    """triton#9703 reports 1.84× for this tile on an H100."""
    with tarfile.open(ROOT / "tests" / "cases" / "reduction_across_warps.tar.xz") as archive:
        archive.extractall(tmp_path, filter="data")
    entries = open_cache(tmp_path / "reduction_across_warps").entries
    old, new = sorted(entries, key=lambda entry: str(entry.triton_version))
    price = predict_pair(old, new, COLMAX, binary_disassembler(find_disassembler(None)))
    assert price.ratio is not None
    assert 1.84 / 1.15 < price.ratio < 1.84 * 1.15
    assert price.sentence.startswith(f"Predicted time: {price.ratio:.2f}× the old one, bound by path (grid 32 M=4096")
    mirror = predict_pair(new, old, COLMAX, binary_disassembler(find_disassembler(None)))
    assert mirror.ratio == pytest.approx(1 / price.ratio)


@pytest.mark.parametrize(
    ("left", "right", "problem"),
    [
        ("3.6.0/sm_80/softmax", "3.6.0/sm_90/softmax", "the two are compiled for different GPUs"),
        ("3.6.0/sm_80/softmax", "3.6.0/sm_80/softmax", "it has no readable machine code"),
    ],
)
def test_a_price_that_is_unknown_says_why(left: str, right: str, problem: str) -> None:
    price = predict_pair(saved(left).artifact, saved(right).artifact, LaunchRequest(("1",), {}), None)
    assert price.ratio is None
    assert problem in price.problem
    assert price.sentence.startswith("Predicted time: unknown (")


def test_ratios_near_one_are_equal() -> None:
    price = PairPrice(1.01, 100.0, 101.0, "dram", "dram", "grid 1", "H100")
    assert price.sentence == "Predicted time: equal (1.01×), bound by dram (grid 1, H100)."
