"""What accesses of one warp cost, held against rows that Nsight Compute's source page showed on an H200."""

from __future__ import annotations

import numpy as np
import pytest

from artifact_inspector.execution.interpreter.global_memory import GlobalMemory, TensorMemory
from artifact_inspector.execution.interpreter.wavefronts import count_l1_bypass_wavefronts, count_wavefronts
from artifact_inspector.execution.launch import KernelLaunch, Tensor

LANES = np.arange(32)
ROWS = (LANES // 8 * 128 + LANES % 8 * 16)[None, :]
"""Shared addresses of 16 bytes side by side."""
EVERY = np.ones((1, 32), bool)


def origins(reads: str, row: int, apart: int) -> np.ndarray:
    """What lanes read, so many of them from each row, rows so many bytes apart; -1 where there is a `z`."""
    found = LANES // row * apart + LANES % row * 16
    return np.where([letter == "r" for letter in reads], found, -1)[None, :]


@pytest.mark.parametrize(
    ("reads", "row", "apart", "measured"),
    [
        ("r" * 32, 8, 128, (4, 4)),  # matmul_persistent: each row of 128 bytes is one line
        ("r" * 32, 4, 4096, (8, 4)),  # matmul: rows of 64 bytes
        ("z" * 32, 8, 4096, (4, 4)),  # its last blocks of K: zeros only
        ("r" * 8 + "z" * 24, 8, 4096, (5, 5)),  # grouped_gemm: one row of the tile is left
        ("rrzz" * 8, 4, 2016, (12, 6)),  # matmul_uneven: K ends within the row
        ("r" * 16 + "z" * 16, 4, 512, (10, 6)),  # a product of bytes: the rows that are read share their banks
        ("r" * 8 + "z" * 24, 4, 256, (7, 5)),  # chunk_fwd_kernel_h of sequences of unequal length
    ],
)
def test_a_copy_past_the_l1_is_written_line_by_line_and_zeros_by_all_lanes(
    reads: str, row: int, apart: int, measured: tuple[int, int]
) -> None:
    assert count_l1_bypass_wavefronts(ROWS, 16, EVERY, origins(reads, row, apart)) == measured


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


@pytest.mark.parametrize("extents", [(200, 1), (40, 24), (300, 3)])
def test_ctas_at_even_distances_mark_what_each_of_them_touches(extents: tuple[int, int]) -> None:
    random = np.random.default_rng(sum(extents))
    memory = TensorMemory("x", Tensor((1 << 20,), "fp32", pointer=1 << 20))
    memory.split_granules(4)
    expected = np.zeros_like(memory.read_marks)
    columns, rows = (np.arange(extent) for extent in extents)
    for width in (1, 7, 64):
        lanes = memory.start + 4 * random.choice(512, width, replace=False)
        offsets = 4 * (64 * columns[:, None] + 20_000 * rows).ravel()
        memory.touch_offsets(memory.read_marks, lanes, random.permutation(offsets), 4)
        expected[(lanes[:, None] + offsets - memory.base) // 4] = 1
    memory.mark_pending()
    assert np.array_equal(memory.read_marks, expected)


@pytest.mark.parametrize("seed", range(6))
def test_marks_of_any_granule_are_those_of_single_elements(seed: int) -> None:
    """Accesses of any width and alignment, also at offsets of CTAs, against sets of bytes."""
    random = np.random.default_rng(seed)
    launch = KernelLaunch((1, 1, 1), {"x": Tensor((8192,), "fp16", pointer=(1 << 20) + 2 * seed)})
    memory = GlobalMemory(launch)
    (region,) = memory.regions
    expected = {True: np.zeros(1 << 15, bool), False: np.zeros(1 << 15, bool)}
    for size in random.permutation([16, 32, 16, 8, 4, 2, 8])[: 2 + seed].tolist():
        is_write, step = bool(random.integers(2)), int(random.choice([2, size]))
        start = region.start if step == 2 else region.start + -region.start % size
        lanes = start + step * random.choice(200, 40, replace=False)
        offsets = size * np.sort(random.choice(100, 5, replace=False))
        if not memory.touch_offsets(lanes, offsets, size, is_write=is_write):
            lanes = (lanes[:, None] + offsets).ravel()
            assert not memory.touch(lanes, size, is_write=is_write).size
            offsets = np.zeros(1, np.int64)
        at = lanes[:, None, None] + offsets[:, None] + np.arange(size) - region.base
        expected[is_write][at] = True
    region.mark_pending()
    for is_write, marks in ((False, region.read_marks), (True, region.written_marks)):
        touched = marks.repeat(region.granule_bytes).astype(bool)
        assert np.array_equal(touched, expected[is_write][: len(touched)])
    assert memory.count_unique_bytes() == (expected[False].sum(), expected[True].sum())
