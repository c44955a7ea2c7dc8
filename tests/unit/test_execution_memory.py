"""What accesses of one warp cost, held against rows that Nsight Compute's source page showed on an H200."""

from __future__ import annotations

import numpy as np
import pytest

from artifact_inspector.execution.wavefronts import (
    count_copied_past,
    count_wavefronts,
)

LANES = np.arange(32)
ROWS = (LANES // 8 * 128 + LANES % 8 * 16)[None, :]
"""Shared addresses of 16 bytes side by side."""
EVERY = np.ones((1, 32), bool)


def origins(reads: str, per_line: int) -> np.ndarray:
    """What lanes read, so many lanes from each line of 128 bytes; -1 where the pattern has a `z`."""
    found = LANES // per_line * 128
    return np.where([letter == "r" for letter in reads], found, -1)[None, :]


@pytest.mark.parametrize(
    ("reads", "per_line", "measured"),
    [
        ("r" * 32, 8, (4, 4)),  # matmul_persistent: each row of 128 bytes is one line
        ("r" * 32, 4, (8, 4)),  # matmul: rows of 64 bytes
        ("z" * 32, 8, (4, 4)),  # its last blocks of K: zeros only
        ("r" * 8 + "z" * 24, 8, (5, 5)),  # grouped_gemm: one row of the tile is left
        ("rrzz" * 8, 2, (12, 6)),  # matmul_uneven: K ends within the row
    ],
)
def test_a_copy_past_the_l1_is_written_line_by_line_and_zeros_by_all_lanes(
    reads: str, per_line: int, measured: tuple[int, int]
) -> None:
    assert count_copied_past(ROWS, 16, EVERY, origins(reads, per_line)) == measured


@pytest.mark.parametrize(
    ("addresses", "measured"),
    [
        (0 * LANES, (2, 2)),  # linear_scan: all lanes read the same 16 bytes
        (LANES // 8 * 128, (4, 4)),  # merge_16x16: joined, two quarters would conflict
        (LANES // 2 * 16, (2, 2)),
        (LANES * 16, (4, 4)),
    ],
)
def test_lanes_that_read_the_same_beside_each_other_are_served_together(
    addresses: np.ndarray, measured: tuple[int, int]
) -> None:
    assert count_wavefronts(addresses[None, :], 16, None, loads=True) == measured
    assert count_wavefronts(addresses[None, :], 16, None)[1] == 4


def test_a_single_lane_takes_one_wavefront() -> None:
    only = np.zeros((1, 32), bool)
    only[0, 5] = True
    for size in (4, 8, 16):
        for loads in (False, True):
            assert count_wavefronts(LANES[None, :] * size, size, only, loads=loads) == (1, 1)
