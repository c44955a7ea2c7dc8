"""Partitions that compute and store the same tile, judged by the tile's own size."""

from __future__ import annotations

from pathlib import Path

import pytest

from artifact_inspector.api.launches import predict_launches
from artifact_inspector.cli._loading import make_disassembler
from artifact_inspector.diagnosis.cause import CauseKind
from artifact_inspector.diagnosis.launch_model import model_launch
from artifact_inspector.diagnosis.memory_causes import find_repeated_work
from artifact_inspector.execution.launch_requests import parse_document_of
from artifact_inspector.execution.timing.candidates import RankingCandidate
from artifact_inspector.facts.selection import select_kernels
from artifact_inspector.files.cache import open_cache
from artifact_inspector.hardware.targets import parse_target

FIXTURES = Path(__file__).parents[2] / "fixtures" / "3.6.0"


@pytest.mark.long
def test_both_partitions_store_the_whole_tile() -> None:
    (entry,) = select_kernels(open_cache(FIXTURES), "tma_warp_specialized", [parse_target("sm_90")])
    disassemble = make_disassembler([entry], None, sass=True)
    m, n, k = 128, 64, 64
    shapes = {"a_ptr": [m, k], "b_ptr": [n, k], "c_ptr": [m, n]}
    arguments = {name: {"dtype": "fp16", "shape": shape} for name, shape in shapes.items()} | {"M": m, "N": n, "K": k}
    (request,) = parse_document_of({"grid": [2, 2, 1], "args": arguments}, entry.display_name)
    (prediction,) = predict_launches([(entry, request)], disassemble)
    assert prediction.counters.total_flop == 2 * (2 * m * n * k)
    assert prediction.repeats_work
    assert prediction.notes[-1].startswith(
        "Partition0 and partition1 store the same bytes at tma_warp_specialized.py:22"
    )
    model = model_launch(RankingCandidate(entry, request, entry.constants), disassemble)
    (cause,) = find_repeated_work(model)
    assert (cause.kind, cause.line) == (CauseKind.REPEATED_WORK, "tma_warp_specialized.py:18")
    # the same kernel whose second partition stores other rows
    addresses, second = model.traffic.first_addresses, [s.index for s in model.steps if s.kind == "tensor_store"][1]
    addresses[second] = {(cta, at + 64): count for (cta, at), count in addresses[second].items()}
    assert not [*find_repeated_work(model)]
