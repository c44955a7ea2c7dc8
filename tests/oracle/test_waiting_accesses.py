"""Kernels whose warps share what they load, or whose CTAs work unequally, as timed on an H200."""

from __future__ import annotations

import json
import tarfile
from pathlib import Path
from typing import Any

import pytest

from artifact_inspector.api.launches import pair_launches, predict_launches
from artifact_inspector.execution.argument_matching import match_launch
from artifact_inspector.execution.kernel_loader import load_kernel
from artifact_inspector.execution.launch_requests import LaunchRequest, parse_document
from artifact_inspector.execution.timing.candidates import RankingCandidate
from artifact_inspector.execution.timing.ranking import rank_launches
from artifact_inspector.execution.timing.sampling import sample_evenly
from artifact_inspector.files.cache import Artifact, open_cache
from artifact_inspector.files.disassembly import disassemble, find_disassembler

ARCHIVE = Path(__file__).parent / "measured" / "ranking-unseen.tar.xz"
KERNELS = {"selective_scan": (0, 1), "spmm": (0,)}
pytestmark = pytest.mark.long
Launches = dict[str, list[tuple[Artifact, LaunchRequest, float]]]


@pytest.fixture(scope="module")
def launches(tmp_path_factory: pytest.TempPathFactory) -> Launches:
    """Kernel → some of its configurations, with their time in µs."""
    place = tmp_path_factory.mktemp("waiting")
    with tarfile.open(ARCHIVE) as archive:
        tables: dict[str, Any] = {
            name: json.load(archive.extractfile(f"ranking/{name}.json"))  # type: ignore[arg-type]
            for name in KERNELS
        }
        rows = {name: [tables[name][at] for at in chosen] for name, chosen in KERNELS.items()}
        places = {row["launch"]["directory"] for some in rows.values() for row in some}
        kept = [member for member in archive.getmembers() if places & {*member.name.split("/")}]
        archive.extractall(place, kept, filter="data")
    cache = open_cache(place / "ranking" / "cache")
    found: Launches = {}
    for name, some in rows.items():
        document = {"launches": [{**row["launch"], "hash": row["launch"]["directory"]} for row in some]}
        pairs = pair_launches(cache, None, (), parse_document(json.dumps(document), "launches.json"))
        found[name] = [(*pair, row["ms"][0] * 1e3) for pair, row in zip(pairs, some, strict=True)]
    return found


def _disassemble(_: str, binary: bytes) -> str:
    return disassemble(binary, find_disassembler(None))


def test_warps_that_load_the_same_are_ranked_as_measured(launches: Launches) -> None:
    some = launches["selective_scan"]  # by 1 and 2 warps
    candidates = [RankingCandidate(entry, request, entry.constants) for entry, request, _ in some]
    ranked = rank_launches(candidates, _disassemble, gpu="H200")
    assert [row.launch for row in ranked] == sorted(range(2), key=lambda at: some[at][2])


@pytest.mark.exhaustive
def test_warps_that_load_the_same_wait_as_long_as_one(launches: Launches) -> None:
    for entry, request, us in launches["selective_scan"]:
        (found,) = predict_launches([(entry, request)], _disassemble, gpu="H200")
        assert found.time is not None
        assert found.time.us == pytest.approx(us, rel=0.15)


def test_more_ctas_are_sampled_where_they_work_unequally(launches: Launches) -> None:
    counts = {}
    for name, some in launches.items():
        loaded, launch = match_launch(load_kernel(some[0][0], _disassemble), some[0][1], some[0][0].constants)
        sample = sample_evenly(loaded, launch, 20_000_000)
        steps = loaded.program.steps
        on_trace = sum(steps[at].kind.startswith("global_") for at in sample.trace)
        counts[name] = len(sample.ctas)
        assert on_trace == pytest.approx(sample.accesses.mean(), rel=0.1)
    assert counts == {"selective_scan": 4, "spmm": 64}
