"""What share of its reads the L2 serves, against Nsight Compute on an H200 (`lts__t_sectors_srcunit_tex_op_read`)."""

from __future__ import annotations

import statistics
import tarfile
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from artifact_inspector.api.launches import pair_launches, predict_launches
from artifact_inspector.execution.interpreter.footprints import TensorReads
from artifact_inspector.execution.launch_requests import parse_document_of
from artifact_inspector.execution.timing import merged_reads
from artifact_inspector.execution.timing.costs import CtaCostModel
from artifact_inspector.files.cache import open_cache
from artifact_inspector.files.disassembly import disassemble, find_disassembler

ARCHIVE = Path(__file__).parent / "measured" / "merged.tar.xz"
TOOL = find_disassembler(None)
H200 = 132
READS_IN_STEP = [
    (1, 4096, 1.0), (2, 4096, 0.5), (4, 4096, 0.258), (8, 4096, 0.267), (16, 4096, 0.276), (32, 4096, 0.269),
    (4096, 1, 0.263), (1, 66, 1.0), (1, 44, 1.0), (1, 33, 1.0), (1, 16, 0.97), (1, 8, 0.485), (1, 7, 0.424), (1, 4, 0.273),
    (1, 2, 0.275),
]  # fmt: skip
"""CTA `i` of 132 reads part `i / DIVISOR % PARTS`, all of them in step: divisor, parts, measured share."""
PRODUCTS = [
    (2048, 128, 128, 8, 2, 0.629), (2048, 128, 128, 1, 2, 0.66), (2048, 128, 128, 4, 2, 0.563), (2048, 128, 128, 16, 2, 0.648),
    (2048, 128, 256, 8, 1, 0.35), (2048, 64, 128, 8, 2, 0.485), (2048, 128, 64, 2, 2, 0.484), (2048, 64, 64, 8, 4, 0.575),
    (4096, 128, 128, 8, 2, 0.743), (4096, 128, 128, 1, 2, 0.74), (4096, 128, 128, 4, 2, 0.734), (4096, 128, 128, 16, 2, 0.705),
    (4096, 128, 256, 8, 1, 0.659), (4096, 64, 128, 8, 2, 0.669), (4096, 128, 64, 2, 2, 0.571), (4096, 64, 64, 8, 4, 0.717),
]  # fmt: skip
"""Rows and columns of a grouped product, its tile, `GROUP_SIZE_M`, resident CTAs, measured share of both tensors."""


def share(parts: np.ndarray, resident: int) -> float:
    reads = TensorReads(0, [], dict.fromkeys(range(len(parts)), 0), dict(enumerate(parts.tolist())))
    footprints = SimpleNamespace(reads_by_tensor={"x": reads})
    return merged_reads.shares_served(footprints, H200, resident)["x"]  # type: ignore[arg-type]


@pytest.mark.parametrize(("divisor", "parts", "measured"), READS_IN_STEP)
def test_a_gpc_merges_four_reads_in_step(
    divisor: int, parts: int, measured: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(merged_reads, "_FIRST_WAVE_SHARE", 1.0)
    assert share(np.arange(H200) // divisor % parts, 1) == pytest.approx(measured, abs=0.04)


def test_products_merge_most_reads_of_their_first_wave() -> None:
    errors = []
    for size, rows, columns, group, resident, measured in PRODUCTS:
        across, ctas = size // columns, np.arange(size // rows * (size // columns))
        first = ctas // (group * across) * group
        height = np.minimum(size // rows - first, group)
        m, n = first + ctas % (group * across) % height, ctas % (group * across) // height
        served = (rows * share(m, resident) + columns * share(n, resident)) / (rows + columns)
        errors.append(abs(served - measured))
    assert statistics.median(errors) < 0.12
    assert max(errors) < 0.25


def test_an_l1_that_keeps_weights_reads_them_once_for_each_multiprocessor() -> None:
    weights = TensorReads(0, [], dict.fromkeys(range(1320), 0), dict.fromkeys(range(1320), 0))
    rows = TensorReads(0, [], dict.fromkeys(range(1320), 0), {cta: cta * 4 for cta in range(1320)})
    footprints = SimpleNamespace(reads_by_tensor={"w": weights, "x": rows})
    shares = merged_reads.shares_past_l1(footprints, H200)  # type: ignore[arg-type]
    assert shares == {"w": pytest.approx(0.1), "x": 1.0}


def test_a_second_pass_begins_when_its_tensor_was_read() -> None:
    """Step 1 reads a tensor, 2 reads it again beside 1, 3 reads it again afterwards."""
    traffic = SimpleNamespace(new_sectors={1: 8, 2: 0, 3: 0}, tensor_of_step={1: "x", 2: "x", 3: "x"})
    model = SimpleNamespace(sample=SimpleNamespace(trace=[1, 2, 1, 2, 3, 3]), traffic=traffic)
    assert CtaCostModel._second_passes(model) == {3}  # type: ignore[arg-type]


@pytest.mark.long
@pytest.mark.skipif(TOOL is None, reason="needs nvdisasm")
def test_the_l2_of_a_product_is_as_busy_as_measured(tmp_path: Path) -> None:
    """Measured: 55.0 µs, L2 53 %, L1 36 %, multiprocessors 33 %, so that latency limits it."""
    with tarfile.open(ARCHIVE) as archive:
        archive.extractall(tmp_path, filter="data")
    cache = open_cache(tmp_path / "cache")
    half = {"dtype": "fp16", "shape": [8192, 1024]}
    arguments = {"x": half, "g": half, "w": {"dtype": "fp16", "shape": [1024, 1024]}, "m": 8192, "n": 1024, "k": 1024}
    requests = parse_document_of({"grid": [16, 16], "args": arguments}, "weight_grad")
    pairs = pair_launches(cache, None, [], requests)
    (prediction,) = predict_launches(pairs, lambda _, binary: disassemble(binary, TOOL), gpu="H200")
    assert prediction.time is not None
    assert prediction.time.bound == "latency"
    assert prediction.time.us == pytest.approx(55.0, rel=0.15)
