"""Addresses of one warp on shared and global memory against what Nsight Compute counted of them on an H200."""

from __future__ import annotations

import csv
import io
import json
import lzma
import tarfile
from collections import Counter
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from artifact_inspector.execution.interpreter.wavefronts import (
    LINE,
    count_atomics,
    count_copy_wavefronts,
    count_l1_bypass_wavefronts,
    count_sectors,
    count_wavefronts,
)

MORE = Path(__file__).parent / "measured" / "patterns.json.xz"
ARCHIVE = Path(__file__).parent / "measured" / "counters.tar.xz"
SECTORS = Path(__file__).parent / "measured" / "sectors.json.xz"
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


# ── With predicates, copies, matrices and atomics ────────────────────────────────────────────────

NOT_KNOWN = {("ld", 16): 10, ("cpp", 16): 4}
"""Loads of 16 bytes under a mask whose lanes want the same, copies past the L1 of three lines at random: how they
are served is not known."""


def predicted(kind: str, size: int, where: list[int], on: list[int], far: list[int]) -> tuple[int, int]:
    """By bits of `active_mask`: 1 is the guard, 2 whether a copy reads; `cp` and `cpz` have a guard, others none."""
    addresses, bits, lanes = np.array([where]), np.array([on]), np.arange(32)
    guard = bits & 1 != 0
    if kind in ("atom", "cas"):
        return count_atomics(addresses, size, guard, 2 if kind == "cas" else 1)
    if kind in ("ldsm", "ldsmt", "stsm"):
        return count_wavefronts(addresses.reshape(-1, 8), 16, (lanes < 8 * size).reshape(-1, 8))
    if kind == "cpp":
        return count_l1_bypass_wavefronts(addresses, size, guard, np.array([far]))
    if not kind.startswith("cp"):
        return count_wavefronts(addresses, size, guard, loads=kind == "ld")
    how = kind.partition(".")[0]
    reads = np.ones((1, 32), bool) if how == "cp" else bits & 2 != 0
    mask = guard if how in ("cp", "cpz") else np.ones((1, 32), bool)
    return count_copy_wavefronts(addresses, size, mask, np.where(reads, np.array([far]), -1))


def test_wavefronts_under_predicates_of_copies_matrices_and_atomics_are_those_counted() -> None:
    rows = json.loads(lzma.decompress(MORE.read_bytes()))
    assert len(rows) == 2449
    wrong = [
        (kind, size, name)
        for kind, size, name, where, on, far, *measured in rows
        if predicted(kind, size, where, on, far) != tuple(measured)
    ]
    assert Counter(row[:2] for row in wrong) == NOT_KNOWN
    assert not [name for *_, name in wrong if name.endswith("/all")]


@pytest.mark.parametrize(("kind", "row", "piece"), [("load", 32, 32), ("copy", 32, 32), ("copy past", 2, LINE)])
def test_sectors_of_16_bytes_a_lane_are_counted_as_measured(kind: str, row: int, piece: int) -> None:
    """Copies past the L1 ask for one sector for each line of two neighbouring lanes, even across its sectors."""
    wrong = []
    for which, name, far, on, sectors in json.loads(lzma.decompress(SECTORS.read_bytes())):
        if which == kind:
            lanes = np.array(far, np.int64).reshape(-1, row), np.array(on).reshape(-1, row) & 1 > 0
            if count_sectors(*lanes, piece) != sectors:
                wrong.append(name)
    assert not wrong
