"""Waves of CTAs: the figures of the text book, from a saved kernel run on paper."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from saved import ROOT

from artifact_inspector.execution import cta_order as cta_order_module
from artifact_inspector.execution.cta_order import CtaOrder, ReadBox, find_cta_order
from artifact_inspector.execution.interpreter.footprints import FootprintAccess, Footprints
from artifact_inspector.execution.interpreter.global_memory import GlobalMemory
from artifact_inspector.execution.kernel_loader import load_kernel
from artifact_inspector.execution.launch import KernelLaunch, Tensor
from artifact_inspector.execution.prediction import predict_counters
from artifact_inspector.execution.simulation import simulate_launch
from artifact_inspector.files.cache import open_cache

M, N, K = 1152, 288, 288
"""Nine tiles of 128 by nine of 32, nine blocks of 32 along K."""


@cache
def nine_by_nine() -> CtaOrder:
    (entry,) = open_cache(ROOT / "fixtures" / "3.6.0" / "gfx942" / "matmul_grouped").entries
    arguments = {
        "a_ptr": Tensor((M, K), "fp16"), "b_ptr": Tensor((K, N), "fp16"), "c_ptr": Tensor((M, N), "fp16"),
        "M": M, "N": N, "K": K, "stride_am": K, "stride_bk": N, "stride_cm": N,
    }  # fmt: skip
    run = simulate_launch(load_kernel(entry, None), KernelLaunch((81, 1, 1), arguments), footprints=True)
    found = predict_counters(run, 1 << 30, (9, "as given")).cta_order
    assert found is not None
    return found


def test_a_wave_of_nine_reads_90_blocks_row_by_row_and_54_grouped_by_three_of_162_asked_for() -> None:
    others = {other.name: other.first_wave_tiles for other in nine_by_nine().alternatives}
    assert others["row-major"] == 90
    assert others["grouped by 3"] == 54
    assert nine_by_nine().waves[0].tiles_requested == 162


def test_each_cta_reads_its_row_of_a_and_its_column_of_b() -> None:
    order = nine_by_nine()
    assert [cta.wave for cta in order.ctas[:10]] == [0] * 9 + [1]
    for cta in order.ctas:
        assert cta.tile is not None
        row, column = cta.tile
        assert cta.reads == (
            ReadBox("a_ptr", (128 * row, 128 * row + 128), (0, K)),
            ReadBox("b_ptr", (0, K), (32 * column, 32 * column + 32)),
        )
    # the kernel goes down eight rows of tiles, then to the next column
    assert [cta.tile for cta in order.ctas[:9]] == [(n, 0) for n in range(8)] + [(0, 1)]


@pytest.mark.parametrize("most_intervals", [1 << 20, 1])
def test_what_ctas_read_is_told_in_sectors_however_large_the_tensor_is(
    most_intervals: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cta_order_module, "_MOST_INTERVALS", most_intervals)
    launch = KernelLaunch((2, 1, 1), {"a_ptr": Tensor((1 << 20, 1 << 12), "fp16", pointer=1 << 40)})
    footprints = Footprints(launch)
    lanes = (1 << 40) + 16 * np.arange(128)
    ctas = np.arange(2)
    for row in (0, 1 << 13):
        footprints.add(FootprintAccess(0, ctas, lanes + row + (ctas * 1024)[:, None], None, True))
    footprints.end_portion()
    order = find_cta_order(launch, footprints, {}, 2, "as given", None)
    assert (order.bytes_requested, order.distinct_bytes_read) == (2 * 2 * 2048, 2 * 3072)
    assert order.ctas[1].reads == (ReadBox("a_ptr", (0, 2), (512, 1536)),)


def test_blocks_are_not_counted_where_a_cta_reads_a_part_of_one() -> None:
    launch = KernelLaunch((2, 1, 1), {"a_ptr": Tensor((2, 776), "fp32", pointer=1 << 40)})
    for lanes, told in ((768, 2), (776, None)):
        footprints = Footprints(launch)
        footprints.add(
            FootprintAccess(
                0, np.arange(2), (1 << 40) + 4 * np.arange(lanes) + 3104 * np.arange(2)[:, None], None, True
            )
        )
        footprints.end_portion()
        tile = {"a_ptr": 3072}
        (wave,) = find_cta_order(launch, footprints, tile, 2, "as given", None).waves
        assert (wave.tiles_requested, wave.distinct_tiles) == (told, told)


def test_each_xcd_reads_what_its_own_ctas_need() -> None:
    """A grid of 4×4 tiles: CTA 4r+c reads row r of A and column c of B, one sector of each; two caches get CTAs in turn."""
    base = 1 << 20
    tensors = {"a_ptr": Tensor((4, 8), "fp32", pointer=base), "b_ptr": Tensor((4, 8), "fp32", pointer=2 * base)}
    launch = KernelLaunch((16, 1, 1), {**tensors, "c_ptr": Tensor((4, 32), "fp32", pointer=3 * base)})
    footprints, ctas = Footprints(launch), np.arange(16)
    rows, columns = np.divmod(ctas, 4)
    for step, addresses in enumerate((base + 32 * rows, 2 * base + 32 * columns)):
        footprints.add(FootprintAccess(step, ctas, addresses[:, None], None, True))
    footprints.add(FootprintAccess(2, ctas, (3 * base + 128 * rows + 32 * columns)[:, None], None, False))
    footprints.end_portion()
    tile_bytes = {"a_ptr": 32, "b_ptr": 32}
    one, two = (find_cta_order(launch, footprints, tile_bytes, 16, "as given", False, caches) for caches in (1, 2))
    by_hand = [32 * len({*rows[part], *(columns[part] + 9)}) for part in (ctas[::2], ctas[1::2])]
    assert (one.distinct_bytes_read, two.distinct_bytes_read) == (8 * 32, sum(by_hand))
    assert (two.l2_caches, two.waves[0].distinct_tiles) == (2, 12)
    reads = {other.name: other.distinct_bytes_read for other in two.alternatives}
    assert not any("XCD" in other.name for other in one.alternatives)
    assert reads["row-major"] == 32 * 12  # both read all rows, each half of the columns
    assert reads["row-major, contiguous for each XCD"] == 32 * 12  # each reads half of the rows, both all columns
    assert reads["grouped by 2"] == 32 * 12
    assert len(reads) == 2 * len(one.alternatives)


def test_footprints_of_neighbours_that_read_alike_or_not_are_those_of_each_cta() -> None:
    """Ten CTAs read rows of two kinds in turn and in runs; each footprint is the set of sectors that it reads."""
    base = 1 << 20
    launch = KernelLaunch((10, 1, 1), {"a_ptr": Tensor((64, 512), "fp32", pointer=base)})
    footprints = Footprints(launch)
    kinds = [0, 0, 1, 0, 1, 1, 1, 0, 2, 2]
    lanes = {0: 4 * np.arange(32), 1: 64 * np.arange(32), 2: 4 * np.arange(32) + 16}
    expected: dict[int, set[int]] = {}
    for cta, kind in enumerate(kinds):
        for repeat in range(1 + cta % 2):
            addresses = base + 2048 * (3 * cta + repeat) + lanes[kind]
            footprints.add(FootprintAccess(0, np.array([cta]), addresses[None], None, True))
            expected.setdefault(cta, set()).update((addresses // 32).tolist())
    footprints.end_portion()
    reads = footprints.reads_by_tensor["a_ptr"]
    for cta, sectors in expected.items():
        shape, start = reads.shapes[reads.shape_of_cta[cta]], reads.start_of_cta[cta]
        found = {n for a, b in zip(shape.starts.tolist(), shape.stops.tolist(), strict=True) for n in range(a, b)}
        assert {n + start + base // 32 for n in found} == sectors, cta
    assert len(reads.shapes) == len({(kinds[cta], cta % 2) for cta in expected})


def test_ctas_that_read_the_same_sectors_otherwise_have_one_footprint() -> None:
    """One CTA reads 2 bytes per lane 16 times, at offsets that it shares with another; a third reads 64 at once."""
    base = 1 << 20
    footprints = Footprints(KernelLaunch((3, 1, 1), {"a_ptr": Tensor((4096,), "fp16", pointer=base)}))
    two, shared, lanes = np.array([0, 1]), np.array([0, 2048]), base + 64 * np.arange(4)
    for byte in range(0, 64, 2):
        footprints.add(FootprintAccess(0, two, (lanes + byte)[None], None, True, cta_offsets=shared))
    assert [len(portion.entries) for portion in footprints._portions.values()] == [1]
    rows = base + 4096 + 4 * np.arange(64)
    footprints.add(FootprintAccess(1, np.array([2]), rows[None], None, True))
    footprints.end_portion()
    reads = footprints.reads_by_tensor["a_ptr"]
    assert reads.shape_of_cta == {0: 0, 1: 0, 2: 0}
    assert reads.start_of_cta == {0: 0, 1: 64, 2: 128}
    assert [(shape.starts.tolist(), shape.stops.tolist()) for shape in reads.shapes] == [([0], [8])]


def test_sectors_of_every_element_size_are_those_with_a_mark() -> None:
    for dtype, size in (("fp8e4nv", 1), ("fp16", 2), ("fp32", 4), ("fp64", 8)):
        launch = KernelLaunch((1, 1, 1), {"a_ptr": Tensor((999,), dtype, pointer=1 << 20)})
        (region,) = GlobalMemory(launch).regions
        region.split_granules(size)
        elements = np.random.default_rng(size).choice(999, 40, replace=False)
        addresses = (1 << 20) + elements * size
        region.touch(region.read_marks, addresses[:20], size)
        assert region.count_touched(region.read_marks) == (20 * size, len(set((addresses[:20] // 32).tolist())))
        region.touch(region.written_marks, addresses[20:], size)
        both = region.count_touched(region.read_marks, region.written_marks)
        assert both == (40 * size, len(set((addresses // 32).tolist())))
        region.touch(region.read_marks, addresses[20:30], size)  # counted again after a further access
        assert region.count_touched(region.read_marks)[0] == 30 * size


def test_ctas_that_leave_a_tensor_for_another_in_the_same_memory_are_recorded() -> None:
    first, second = Tensor((1024,), "fp32", pointer=1 << 20), Tensor((1024,), "fp32", pointer=(1 << 20) + 2048)
    footprints = Footprints(KernelLaunch((4, 1, 1), {"a": first, "b": second}))
    ctas, lanes = np.arange(4), np.arange(64, dtype=np.int64)[None, :] * 4
    footprints.add(FootprintAccess(0, ctas, lanes + (1 << 20), None, True, cta_offsets=ctas * 1536))
    footprints.end_portion()
    assert footprints.accesses_of_cta.tolist() == [1] * 4
    assert set(footprints.reads_by_tensor) == {"a", "b"}
