"""Traffic of spilled registers against Nsight Compute on an H200: a launch whose frames fit in L2, and one beyond it."""

from __future__ import annotations

import json
import tarfile
from pathlib import Path

import pytest

from artifact_inspector.api.launches import pair_launches, predict_launches
from artifact_inspector.execution.launch_requests import parse_document
from artifact_inspector.files.cache import open_cache
from artifact_inspector.files.disassembly import disassemble, find_disassembler

ARCHIVE = Path(__file__).parent / "measured" / "spills.tar.xz"
TOOL = find_disassembler(None)
pytestmark = [pytest.mark.long, pytest.mark.skipif(TOOL is None, reason="needs nvdisasm")]


def test_the_traffic_of_spills_is_what_was_measured(tmp_path: Path) -> None:
    with tarfile.open(ARCHIVE) as archive:
        archive.extractall(tmp_path, filter="data")
    rows = json.loads((tmp_path / "spills" / "launches.json").read_text())
    requests = parse_document(json.dumps({"launches": rows}), "launches")
    pairs = pair_launches(open_cache(tmp_path / "spills" / "cache"), None, [], requests)
    found = list(predict_launches(pairs, lambda _, binary: disassemble(binary, TOOL), gpu="H200"))
    for row, prediction in zip(rows, found, strict=True):
        counters, time = prediction.counters, prediction.time
        assert counters.local_load_sectors == row["local_load_sectors"]
        assert counters.local_store_sectors == row["local_store_sectors"]
        total = row["local_load_sectors"] + row["local_store_sectors"]
        assert sum(line.local_sectors or 0 for line in prediction.by_line) == total
        read, written = counters.dram_bytes_read, counters.dram_bytes_written
        assert read is not None
        assert written is not None
        assert time is not None
        assert 0.97 * read.low <= row["dram_bytes_read"] <= 1.03 * read.high
        assert written.low <= row["dram_bytes_written"] <= written.high
        assert time.low <= row["us"] <= time.high
    fitting, large = (prediction.counters.dram_bytes_read for prediction in found)
    assert fitting is not None
    assert large is not None
    assert fitting.low == fitting.high
    assert large.low < large.high
