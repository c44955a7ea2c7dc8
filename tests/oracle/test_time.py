"""Predicted times against Nsight Compute on an H200: launches that were predicted before they were measured."""

from __future__ import annotations

import json
import tarfile
from pathlib import Path
from typing import Any

import pytest

from artifact_inspector.api.launches import pair_launches, predict_launches
from artifact_inspector.execution.launch_requests import parse_document
from artifact_inspector.execution.prediction import Prediction
from artifact_inspector.files.cache import open_cache
from artifact_inspector.files.disassembly import disassemble, find_disassembler

ARCHIVE = Path(__file__).parent / "measured" / "time.tar.xz"
TOOL = find_disassembler(None)


pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def launches(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[dict[str, Any], Prediction]]:
    folder = tmp_path_factory.mktemp("time")
    with tarfile.open(ARCHIVE) as archive:
        archive.extractall(folder, filter="data")
    rows = json.loads((folder / "time" / "launches.json").read_text())
    requests = parse_document(json.dumps({"launches": rows}), "launches")
    pairs = pair_launches(open_cache(folder / "time" / "cache"), None, [], requests)
    return list(
        zip(rows, predict_launches(pairs, lambda _, binary: disassemble(binary, TOOL), gpu="H200"), strict=True)
    )


@pytest.mark.skipif(TOOL is None, reason="needs nvdisasm")
def test_times_are_near_what_was_measured(launches: list[tuple[dict[str, Any], Prediction]]) -> None:
    assert [prediction.kernel for _, prediction in launches] == [
        "k_decode", "k_spmm", "k_gn", "k_amax", "k_scan", "k_quant",
    ]  # fmt: skip
    for row, prediction in launches:
        assert prediction.time is not None
        assert prediction.time.low <= row["us"] <= prediction.time.high
        assert prediction.time.us == pytest.approx(row["us"], rel=0.3), prediction.kernel
        assert prediction.counters.dram_bytes_read is not None
        assert row["dram_bytes_read"] <= 1.03 * prediction.counters.dram_bytes_read.high


@pytest.mark.skipif(TOOL is None, reason="needs nvdisasm")
def test_only_the_sparse_product_has_ctas_with_unequal_work(launches: list[tuple[dict[str, Any], Prediction]]) -> None:
    for _, prediction in launches:
        assert prediction.time is not None
        assert (prediction.time.imbalance != 1) == (prediction.kernel == "k_spmm")
