"""The L2 model: recorded accesses, their order, and LRU misses, each against a direct simulation."""

from __future__ import annotations

from collections import Counter
from types import SimpleNamespace

import numpy as np
import pytest

from artifact_inspector.execution.cta_order import _order_name
from artifact_inspector.execution.interpreter.access_stream import AccessStream
from artifact_inspector.execution.interpreter.footprints import PAIR, SECTOR, FootprintAccess
from artifact_inspector.execution.interpreter.global_memory import TensorMemory
from artifact_inspector.execution.l2_cache import estimate_l2, lru_misses, schedule_ctas
from artifact_inspector.execution.launch import KernelLaunch, Tensor
from artifact_inspector.execution.launch_counters import _CounterTotals
from artifact_inspector.execution.prediction import L2Prediction
from artifact_inspector.report.prediction import _hit_rates

ROW = 256  # sectors


def launch(ctas: int, rows: int = 64) -> KernelLaunch:
    """Two tensors of some rows."""
    size = rows * ROW * SECTOR
    a, b = Tensor((size,), "u8", pointer=1 << 20), Tensor((size,), "u8", pointer=(1 << 20) + 2 * size)
    return KernelLaunch(grid=(ctas, 1, 1), arguments={"a": a, "b": b})


def direct_misses(lines: list[int], capacity: int) -> list[bool]:
    """LRU as a list, the most recent line first."""
    cached: list[int] = []
    misses = []
    for line in lines:
        misses.append(line not in cached)
        if line in cached:
            cached.remove(line)
        cached.insert(0, line)
        del cached[capacity:]
    return misses


@pytest.mark.parametrize("capacity", [1, 2, 7, 40, 1000])
def test_misses_are_those_of_a_list_of_recent_lines(capacity: int) -> None:
    random = np.random.default_rng(capacity)
    lines = np.concatenate([random.integers(0, 60, 800), np.arange(90), np.arange(90)])
    assert lru_misses(lines.astype(np.int32), capacity).tolist() == direct_misses(lines.tolist(), capacity)


def lanes_of(first: int, count: int) -> np.ndarray:
    return (first + np.arange(count) * 16)[None, :].astype(np.int64)


@pytest.mark.parametrize("form", ["offsets", "rows", "masked"])
def test_every_form_of_an_access_records_the_same_pairs(form: str) -> None:
    run = launch(8)
    stream = AccessStream(run, 1 << 16, samples_per_cache=512)
    base = run.tensors["a"].pointer or 0
    ctas = np.arange(8)
    offsets = ctas * ROW * SECTOR
    lanes = lanes_of(base + 48, 64)
    if form == "offsets":
        access = FootprintAccess(3, ctas, lanes, None, True, cta_offsets=offsets)
    elif form == "rows":
        access = FootprintAccess(3, ctas, lanes + offsets[:, None], None, True)
    else:
        padded = np.concatenate([lanes + offsets[:, None], np.full((8, 4), base + 9 * ROW * SECTOR)], axis=1)
        access = FootprintAccess(3, ctas, padded, padded < base + 9 * ROW * SECTOR, True)
    stream.add(access)
    events = stream.events()
    expected = {
        (cta, pair)
        for cta in range(8)
        for pair in {(base + 48 + cta * ROW * SECTOR + 16 * lane) // PAIR for lane in range(64)}
        if pair in set(stream.pairs.tolist())
    }
    recorded = list(zip(events.ctas.tolist(), stream.pairs[events.samples].tolist(), strict=True))
    assert len(recorded) == len(set(recorded)) > 8
    assert set(recorded) == expected
    assert set(events.steps.tolist()) == {3}


def test_iterations_are_recorded_as_if_one_by_one() -> None:
    run, rows = launch(4), 4
    base = run.tensors["a"].pointer or 0
    together, singly = (AccessStream(run, 1 << 16, samples_per_cache=512) for _ in range(2))
    trips, ctas = np.repeat(np.arange(6), rows), np.tile(np.arange(rows), 6)
    offsets = [ctas * ROW * SECTOR + trips * 128, ctas * 64 + trips * ROW * SECTOR]
    together.add_iterations(
        [
            FootprintAccess(step, ctas, lanes_of(base, 8), None, True, cta_offsets=offset)
            for step, offset in enumerate(offsets)
        ],
        rows,
    )
    for trip in range(6):
        for step, offset in enumerate(offsets):
            singly.add(
                FootprintAccess(step, np.arange(rows), lanes_of(base, 8), None, True, cta_offsets=offset[trips == trip])
            )
    first, second = (sorted(zip(*(column.tolist() for column in s.events()), strict=True)) for s in (together, singly))
    assert first == second
    assert first
    assert together.lengths.tolist() == singly.lengths.tolist() == [12] * 4


def test_ctas_replace_those_that_end_and_the_oldest_is_ahead() -> None:
    assert [points[0][0] for points in schedule_ctas([4, 1, 1, 1], 1, 2, 0.0)] == [0.0, 0.0, 1.0, 2.0]
    even, uneven = (schedule_ctas([10] * 3, 2, 1, advantage) for advantage in (0.0, 0.1))
    assert (even[0][-1], even[1][-1]) == ((10.0, 10.0), (10.0, 10.0))
    assert uneven[0][-1][0] < uneven[1][-1][0] < uneven[2][-1][0]
    assert all(points[-1][1] == 10 for points in uneven)


def swept(rows: int, capacity_rows: float, sweeps: int = 3) -> float:
    """Fetches per sector of one CTA that reads some rows several times."""
    run = launch(1)
    stream = AccessStream(run, int(capacity_rows * ROW * SECTOR))
    base = run.tensors["a"].pointer or 0
    for _ in range(sweeps):
        for row in range(rows):
            address = base + row * ROW * SECTOR
            stream.add(FootprintAccess(0, np.zeros(1, np.int64), lanes_of(address, 2 * ROW), None, True))
    return estimate_l2(stream, 1, 1, int(capacity_rows * ROW * SECTOR)).fetches_per_pair


def test_a_sweep_is_fetched_once_if_it_fits_and_every_time_if_not() -> None:
    assert swept(20, 64) == 1
    assert swept(60, 64) == 3


def test_requests_for_both_halves_of_a_pair_are_a_miss_and_a_hit() -> None:
    run = launch(1)
    stream = AccessStream(run, 1 << 20)
    for half in (0, SECTOR):
        lanes = np.arange((1 << 20) + half, (1 << 20) + 64 * PAIR, PAIR)[None]
        stream.add(FootprintAccess(0, np.arange(1), lanes, None, True))
    estimate = estimate_l2(stream, 1, 1, 1 << 20)
    assert (estimate.hit_rate, estimate.fetches_per_pair) == (0.5, 1.0)
    l2 = L2Prediction(0, estimate.hit_rate, {"a": 0.5}, {})
    assert _hit_rates(l2) == "50% of requests for pairs of sectors (a 50%)"


@pytest.mark.long
def test_an_estimate_is_that_of_all_sectors_in_execution_order() -> None:
    """CTAs of a small matrix product, against a cache that holds every sector."""
    run = launch(64)
    bases = [tensor.pointer or 0 for tensor in run.tensors.values()]
    capacity_rows, per_cta = 40, 16
    l2_bytes = capacity_rows * ROW * SECTOR
    stream = AccessStream(run, l2_bytes, samples_per_cache=512)
    row_of, column_of = np.arange(64) // 8, np.arange(64) % 8
    accesses = []
    for trip in range(per_cta):
        for base, tile in zip(bases, (row_of, column_of), strict=True):
            starts = (tile * 8 * ROW + trip * ROW // 2) * SECTOR
            stream.add(FootprintAccess(0, np.arange(64), lanes_of(base, ROW), None, True, cta_offsets=starts))
            accesses.append((base + starts) // SECTOR)
    lines: list[int] = []
    for wave in range(16):  # four CTAs at a time, in lockstep
        for starts in accesses:
            for cta in range(4 * wave, 4 * wave + 4):
                lines += range(starts[cta], starts[cta] + ROW // 2)
    expected = np.mean([sum(direct(lines, round(capacity_rows * ROW * share))) for share in (0.7, 0.75, 0.8)])
    distinct = len(set(lines))
    estimate = estimate_l2(stream, 1, 4, l2_bytes)
    assert estimate.fetches_per_pair == pytest.approx(expected / distinct, rel=0.1)
    assert estimate.low <= expected / distinct <= estimate.high
    assert 1 - estimate.hit_rate == pytest.approx(expected / len(lines), rel=0.1)


def direct(lines: list[int], capacity: int) -> list[bool]:
    """LRU with the time of the last use of each line."""
    last_use: dict[int, None] = {}
    misses = []
    for line in lines:
        misses.append(line not in last_use)
        last_use.pop(line, None)
        last_use[line] = None
        if len(last_use) > capacity:
            last_use.pop(next(iter(last_use)))
    return misses


def test_thinning_the_sample_keeps_each_sector_complete() -> None:
    run = launch(4)
    stream = AccessStream(run, 1 << 16, samples_per_cache=512)
    base = run.tensors["a"].pointer or 0
    for _ in range(5):
        stream.add(FootprintAccess(0, np.arange(4), lanes_of(base, 4 * ROW), None, True, cta_offsets=np.zeros(4, int)))
    count, spacing = len(stream.events().samples), stream.spacing
    stream._thin_out()
    assert stream.spacing == 2 * spacing
    assert len(stream.events().samples) == pytest.approx(count / 2, rel=0.2)
    assert set(Counter(stream.events().samples.tolist()).values()) == {20}


@pytest.mark.parametrize("group", [1, 2, 3, 4, 7, 8, 12])
def test_the_order_of_grouped_tiles_has_its_name(group: int) -> None:
    """The order of Triton's tutorial on matrix multiplication, on 8 × 5 tiles."""
    rows, columns = 8, 5
    tiles = []
    for pid in range(rows * columns):
        first = pid // (group * columns) * group
        size = min(rows - first, group)
        tiles.append((first + pid % (group * columns) % size, pid % (group * columns) // size))
    names = {1: "row-major", 8: "column-major", 12: "column-major"}
    assert _order_name(tiles) == names.get(group, f"grouped by {group}")
    assert _order_name([tiles[-1], *tiles[:-1]]) is None


@pytest.mark.parametrize(("kind", "executed", "expected", "written"), [
    ("local_load", 0, (640, 640), 0),
    ("local_load", 2, (640, 64 * 100 + 2 * 32 * 16), 0),
    ("local_store", 2, (640, 64 * 100), 2 * 32 * 16),
])  # fmt: skip
def test_traffic_of_a_kernel_that_spills_is_a_range(
    kind: str, executed: int, expected: tuple[int, int], written: int
) -> None:
    """Ten pairs of sectors are requested ten times each; two warps access 16 bytes per lane of local memory of unknown size."""
    steps = [
        SimpleNamespace(index=0, kind="global_load", opcode="LDG.E", line=1, source_place=None),
        SimpleNamespace(index=1, kind=kind, opcode="LDL.128", line=2, source_place=None),
    ]
    run = SimpleNamespace(
        loaded=SimpleNamespace(program=SimpleNamespace(steps=steps, code_bytes=0), cubin=None),
        counters=SimpleNamespace(
            threads_executed=[320, 32 * executed], sectors=[100, 0], missing_inputs={}, unknown_pointers={}
        ),
        memory=SimpleNamespace(count_sectors=lambda: (10, 0), count_fetched=lambda: {"x": 640}, count_filled=dict),
        unfinished=(),
        uncounted_steps=frozenset(),
    )
    totals = _CounterTotals(run, 50 << 20, None, 132)  # type: ignore[arg-type]
    read, stored = totals._dram_bytes_read(), totals._dram_bytes_written()
    assert read is not None
    assert stored is not None
    assert (read.low, read.high) == expected
    assert (stored.low, stored.high) == (0, written)


@pytest.mark.parametrize(("dtype", "first"), [("fp32", 0), ("fp16", 8), ("u8", 3)])
def test_pairs_of_sectors_are_fetched_and_sectors_that_are_written_in_part_are_filled(dtype: str, first: int) -> None:
    """Against sets of addresses, for a tensor that begins inside of a pair."""
    tensor = Tensor((40_000,), dtype, pointer=(1 << 20) + 32)
    memory = TensorMemory("x", tensor)
    memory.split_granules(tensor.bits // 8)
    random, size = np.random.default_rng(first), tensor.bits // 8
    read, written = (np.unique(random.integers(0, 40_000, 900)) for _ in range(2))
    memory.touch(memory.read_marks, tensor.pointer + read * size, size)
    memory.touch(memory.written_marks, tensor.pointer + written * size, size)
    pairs = {(tensor.pointer + int(at) * size) // PAIR for at in read}
    sectors = Counter((tensor.pointer + int(at) * size) // SECTOR for at in written)
    read_sectors = {(tensor.pointer + int(at) * size) // SECTOR for at in read}
    partly = [sector for sector, count in sectors.items() if count * size < SECTOR and sector not in read_sectors]
    assert memory.count_touched(*memory.fetched_marks, unit=PAIR)[1] == len(pairs)
    assert memory.count_partly_written() == len(partly)
