"""Reads from device memory of launches that do not fit in L2, against Nsight Compute on an H200."""

from __future__ import annotations

import csv
import json
import tarfile
from pathlib import Path

import pytest

from artifact_inspector.api.launches import pair_launches, predict_launches
from artifact_inspector.execution.launch_requests import parse_document
from artifact_inspector.files.cache import Cache, open_cache
from artifact_inspector.hardware.targets import parse_target

ARCHIVE = Path(__file__).parent / "measured" / "l2.tar.xz"
SHAPE = ("M", "N", "K", "BLOCK_M", "BLOCK_N", "GROUP_SIZE_M")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("l2")
    with tarfile.open(ARCHIVE) as archive:
        archive.extractall(made, filter="data")
    return made / "l2"


@pytest.fixture(scope="module")
def cache(folder: Path) -> Cache:
    return open_cache(folder / "cache")


@pytest.mark.parametrize(
    ("directory", "shape", "order"),
    [
        pytest.param("NVDUHQDJ", (8192, 8192, 8192, 128, 256, 16), "grouped by 16", marks=pytest.mark.long),
        pytest.param("QNUUIK3I", (4096, 32768, 4096, 128, 128, 8), "grouped by 8", marks=pytest.mark.exhaustive),
    ],
)
def test_a_launch_reads_what_was_measured(
    folder: Path, cache: Cache, directory: str, shape: tuple[int, ...], order: str
) -> None:
    rows = list(csv.DictReader((folder / "launches.csv").open()))
    (row,) = [row for row in rows if tuple(int(row[name]) for name in SHAPE) == shape]
    m, n, k, block_m, block_n, _ = shape
    (entry,) = [entry for entry in cache.entries if directory in entry.directory]
    arguments = {
        "a_ptr": f"fp16[{m},{k}]", "b_ptr": f"fp16[{k},{n}]", "c_ptr": f"fp16[{m},{n}]",
        "M": m, "N": n, "K": k, "stride_am": k, "stride_bk": n, "stride_cm": n,
    }  # fmt: skip
    launch = {"hash": entry.hash, "grid": [m // block_m * n // block_n], "args": arguments}
    requests = parse_document(json.dumps({"launches": [launch]}), "launch")
    pairs = pair_launches(cache, None, [parse_target("sm_90")], requests)
    (prediction,) = predict_launches(pairs, None, gpu="H200")
    measured = float(row["dram__bytes_read.sum"])
    assert prediction.l2 is not None
    assert prediction.l2.dram_bytes_read == pytest.approx(measured, rel=0.15)
    assert prediction.counters.dram_bytes_read is not None
    assert prediction.counters.dram_bytes_read.low <= measured <= prediction.counters.dram_bytes_read.high
    assert prediction.cta_order is not None
    assert prediction.cta_order.name == order
    assert set(prediction.l2.hit_rate_by_tensor) == {"a_ptr", "b_ptr"}
    assert 0.5 < prediction.l2.hit_rate < 1
