"""Registers alive in machine code, against what ptxas reserved for it (as `ptxas -v` prints, and a cubin has)."""

from __future__ import annotations

import tarfile
from pathlib import Path
from statistics import median

import pytest

from artifact_inspector.facts.pressure import pressure_of
from artifact_inspector.files.cache import open_cache
from artifact_inspector.files.disassembly import disassemble, find_disassembler

ARCHIVE = Path(__file__).parent / "measured" / "unseen.tar.xz"
TOOL = find_disassembler()


@pytest.mark.long
@pytest.mark.skipif(TOOL is None, reason="it takes an nvdisasm")
@pytest.mark.parametrize("every", [40, *(pytest.param(every, marks=pytest.mark.exhaustive) for every in (4, 1))])
def test_ptxas_reserves_what_is_alive_at_the_peak_and_a_little_more(every: int, tmp_path: Path) -> None:
    with tarfile.open(ARCHIVE) as archive:
        kernels = [member for member in archive.getmembers() if member.name.startswith("cache/")]
        places = sorted({member.name.split("/")[1] for member in kernels})[::every]
        archive.extractall(
            tmp_path, [member for member in kernels if member.name.split("/")[1] in places], filter="data"
        )
    shares = []
    for entry in open_cache(tmp_path / "cache").entries:
        found = pressure_of(entry, lambda _suffix, binary: disassemble(binary, TOOL))
        assert found.allocated is not None
        assert found.peak <= found.allocated, entry.path
        shares.append(found.peak / found.allocated)
    assert len(shares) == len(places)
    assert median(shares) > 0.85
