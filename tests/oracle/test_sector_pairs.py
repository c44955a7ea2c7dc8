"""Device memory of sparse accesses, against Nsight Compute on an H200 (Triton 3.6, cold caches)."""

from __future__ import annotations

import tarfile
from pathlib import Path

import pytest

from artifact_inspector.api.launches import pair_launches, predict_launches
from artifact_inspector.execution.launch_requests import parse_document_of
from artifact_inspector.execution.prediction import Prediction
from artifact_inspector.files.cache import Cache, open_cache
from artifact_inspector.files.disassembly import disassemble, find_disassembler

ARCHIVE = Path(__file__).parent / "measured" / "pairs.tar.xz"
TOOL = find_disassembler(None)
BIG = {"shape": [1 << 29], "dtype": "fp32"}

pytestmark = pytest.mark.skipif(TOOL is None, reason="needs nvdisasm")


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Cache:
    folder = tmp_path_factory.mktemp("pairs")
    with tarfile.open(ARCHIVE) as archive:
        archive.extractall(folder, filter="data")
    return open_cache(folder / "cache")


def predict(cache: Cache, kernel: str, grid: int, **arguments: object) -> Prediction:
    (entry,) = [entry for entry in cache.entries if entry.display_name == kernel]
    requests = parse_document_of({"hash": entry.hash, "grid": [grid], "args": arguments}, kernel)
    pairs = pair_launches(cache, None, [], requests)
    (prediction,) = predict_launches(pairs, lambda _, binary: disassemble(binary, TOOL), gpu="H200")
    return prediction


@pytest.mark.parametrize(("grid", "stride", "measured", "us"), [
    (256, 16, 16_781_312, 6.24),
    (256, 64, 16_781_312, 8.19),
    pytest.param(4096, 16, 268_442_624, 62.2, marks=pytest.mark.long),
])  # fmt: skip
def test_a_read_of_one_sector_fetches_two(cache: Cache, grid: int, stride: int, measured: int, us: float) -> None:
    prediction = predict(cache, "strided", grid, x=BIG, out={"shape": [1 << 16], "dtype": "fp32"}, S=stride)
    read = prediction.counters.dram_bytes_read
    assert read is not None
    assert read.low == read.high == pytest.approx(measured, abs=6000)
    assert prediction.time is not None
    assert prediction.time.low <= us <= prediction.time.high


@pytest.mark.parametrize(("grid", "stride", "measured"), [
    (256, 32, 6_489_088),
    pytest.param(4096, 16, 130_486_272, marks=pytest.mark.long),
    (4096, 1, 3_072),
])  # fmt: skip
def test_the_rest_of_a_sector_that_is_written_in_part_is_read(
    cache: Cache, grid: int, stride: int, measured: int
) -> None:
    read = predict(cache, "put_strided", grid, x=BIG, S=stride).counters.dram_bytes_read
    assert read is not None
    assert read.low - 3000 <= measured <= read.high + 3000


def test_a_gather_without_its_indices_has_no_time(cache: Cache) -> None:
    arguments = {"idx": {"shape": [1 << 18], "dtype": "i32"}, "out": {"shape": [1 << 16], "dtype": "fp32"}}
    prediction = predict(cache, "gathered", 256, x=BIG, **arguments)
    assert prediction.time is None
    assert "values of idx" in prediction.unknown["dram_bytes_read"]
