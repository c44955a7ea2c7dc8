"""Addresses of one warp on shared and global memory against what Nsight Compute counted of them on an H200."""

from __future__ import annotations

import csv
import io
import json
import tarfile
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from artifact_inspector.execution.memory import count_sectors, count_wavefronts

ARCHIVE = Path(__file__).parent / "measured" / "counters.tar.xz"
BESIDE = 4
"""Sectors that each launch reads beside the pattern: the addresses themselves, 32 numbers of 4 bytes."""


class Pattern(NamedTuple):
    """One launch of one warp."""

    kind: str
    size: int
    addresses: tuple[int, ...]
    wavefronts: int
    ideal: int
    sectors: int


@cache
def patterns() -> tuple[Pattern, ...]:
    with tarfile.open(ARCHIVE) as archive:
        texts = {}
        for name in ("cases.json", "shared.csv"):
            member = archive.extractfile(name)
            assert member is not None
            texts[name] = member.read().decode()
    lines = [line for line in io.StringIO(texts["shared.csv"]) if not line.startswith("==")]
    measured = [row for row in csv.DictReader(lines) if row["ID"]]
    cases = json.loads(texts["cases.json"])
    return tuple(
        Pattern(
            kind,
            size,
            tuple(where),
            int(row["memory_l1_wavefronts_shared"]),
            int(row["memory_l1_wavefronts_shared_ideal"]),
            int(row["l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum"]),
        )
        for (kind, size, _, where), row in zip(cases, measured, strict=True)
    )


def of(kind: str, size: int) -> list[tuple[Pattern, np.ndarray]]:
    found = [pattern for pattern in patterns() if (pattern.kind, pattern.size) == (kind, size)]
    assert len(found) == 41
    return [(pattern, np.array([pattern.addresses], np.int64)) for pattern in found]


@pytest.mark.parametrize("size", [4, 8, 16])
@pytest.mark.parametrize("kind", ["ld", "st"])
def test_wavefronts_of_every_pattern_are_those_counted(kind: str, size: int) -> None:
    for pattern, addresses in of(kind, size):
        counted = count_wavefronts(addresses, size, None, loads=kind == "ld")
        assert counted == (pattern.wavefronts, pattern.ideal), pattern


@pytest.mark.parametrize("size", [4, 8, 16])
def test_sectors_of_every_pattern_are_those_counted(size: int) -> None:
    for pattern, addresses in of("gld", size):
        assert count_sectors(addresses, None) + BESIDE == pattern.sectors, pattern
