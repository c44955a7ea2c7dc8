"""Which accesses of sampled CTAs wait for a fetch, against sets of sectors in plain Python."""

from __future__ import annotations

import numpy as np
import pytest

from artifact_inspector.execution.interpreter.counters import StepCounters
from artifact_inspector.execution.interpreter.footprints import SECTOR, FootprintAccess
from artifact_inspector.execution.interpreter.global_memory import TensorSpan
from artifact_inspector.execution.interpreter.launch_log import LaunchLog
from artifact_inspector.execution.timing.sampling import GlobalTraffic

START, BYTES = 1 << 20, 1 << 16


def _traffic() -> GlobalTraffic:
    return GlobalTraffic((TensorSpan("x", START, START + BYTES),))


def test_all_warps_wait_for_sectors_that_one_of_them_fetches() -> None:
    traffic = _traffic()
    row = START + np.tile(np.arange(32) * 4, 2)[None]  # two warps read the same 128 bytes
    traffic.add(FootprintAccess(0, np.array([0]), row, None, True))
    traffic.add(FootprintAccess(1, np.array([0]), row, None, True))
    assert (traffic.requested_sectors[0], traffic.new_sectors[0]) == (8, 4)
    assert (traffic.accesses, traffic.missing_accesses) == ({0: 1, 1: 1}, {0: 1, 1: 0})
    assert traffic.accesses_of_cta == {0: 2}


@pytest.mark.parametrize("seed", range(6))
def test_accesses_with_a_new_sector_are_counted_one_by_one_and_side_by_side(seed: int) -> None:
    random = np.random.default_rng(seed)
    ctas, trips = np.array([3, 9]), 7
    addresses = [START + random.integers(0, 900, (trips * len(ctas), 64)) * 8 for _ in range(2)]
    masks = [random.random((trips * len(ctas), 64)) < random.choice([0.02, 0.3]) for _ in range(2)]
    touched: dict[int, set[int]] = {3: set(), 9: set()}
    accesses, missing, of_cta = [0, 0], [0, 0], {3: 0, 9: 0}
    for row in range(trips * len(ctas)):
        cta = int(ctas[row % 2])
        for step in range(2):
            sectors = {int(at) // SECTOR for at in addresses[step][row][masks[step][row]]}
            accesses[step] += bool(sectors)
            missing[step] += bool(sectors - touched[cta])
            of_cta[cta] += bool(sectors)
            touched[cta] |= sectors

    side_by_side, one_by_one = _traffic(), _traffic()
    rows = np.tile(ctas, trips)
    side_by_side.add_iterations(
        [FootprintAccess(step, rows, addresses[step], masks[step], True) for step in range(2)], len(ctas)
    )
    for trip in range(trips):
        now = slice(trip * len(ctas), (trip + 1) * len(ctas))
        for step in range(2):
            one_by_one.add(FootprintAccess(step, ctas, addresses[step][now], masks[step][now], True))
    for traffic in (side_by_side, one_by_one):
        assert [traffic.accesses[step] for step in range(2)] == accesses
        assert [traffic.missing_accesses[step] for step in range(2)] == missing
        assert traffic.accesses_of_cta == of_cta


def test_two_warps_that_execute_one_instruction_by_themselves_are_two_accesses() -> None:
    traffic = _traffic()
    rows = START + np.arange(5)[:, None] * 256 + np.arange(32)[None] * 4
    both = [FootprintAccess(0, np.zeros(5, np.int64), rows + offset, None, True) for offset in (0, 128)]
    traffic.add_iterations(both, 1)
    assert (traffic.accesses, traffic.missing_accesses) == ({0: 10}, {0: 10})


def test_boxes_that_warps_copy_together_are_one_access() -> None:
    traffic = _traffic()
    boxes = np.repeat(np.arange(3), 2)  # a row of the machine for each trip, and two boxes in each
    addresses = START + np.arange(6)[:, None] * 128 + np.arange(8)[None] * 16
    traffic.add_iterations([FootprintAccess(0, np.zeros(6, np.int64), addresses, None, True, boxes)], 1)
    assert (traffic.accesses, traffic.missing_accesses, traffic.new_sectors) == ({0: 3}, {0: 3}, {0: 24})


def test_a_log_keeps_equal_rows_once_and_gives_those_of_some_ctas_back() -> None:
    ctas, lanes = np.arange(40, 50).repeat(8), np.arange(64) * 8
    starts = START + np.arange(len(ctas)) ** 2 * 8  # at which every third row has another order of lanes
    addresses = starts[:, None] + np.where(np.arange(len(ctas))[:, None] % 3, lanes, lanes[::-1])
    masks = np.where(np.arange(len(ctas))[:, None] % 2, lanes < 100, lanes < 200)
    whole = FootprintAccess(0, ctas, addresses, masks, True)
    one_row = FootprintAccess(1, ctas, lanes[None], lanes[None] > 8, True, cta_offsets=starts)
    random = FootprintAccess(
        2, ctas, START + np.random.default_rng(0).integers(0, 1 << 12, addresses.shape), None, True
    )
    log = LaunchLog(StepCounters(3, 10), is_exact=False)
    log.add_iterations([whole, one_row, random], len(ctas))
    assert log.kept_bytes < whole.addresses.nbytes // 8 + random.addresses.nbytes
    rows, (found,) = np.flatnonzero((ctas == 43) | (ctas == 48)), log.accesses_of(np.array([43, 48]))
    assert found[1] == len(ctas)
    for kept, was in zip(found[0], (whole, one_row, random), strict=True):
        assert kept.rows is not None
        assert kept.rows.tolist() == rows.tolist()
        assert kept.ctas.tolist() == ctas[rows].tolist()
        offsets = 0 if kept.cta_offsets is None else kept.cta_offsets[:, None]
        assert np.array_equal(
            kept.addresses + offsets, was.addresses[rows] if len(was.addresses) > 1 else lanes + starts[rows, None]
        )
        assert was.mask is None or np.array_equal(
            *np.broadcast_arrays(kept.mask, was.mask[rows] if len(was.mask) > 1 else was.mask)
        )
