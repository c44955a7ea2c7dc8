"""Sectors that many accesses touch at once, against sets in plain Python."""

from __future__ import annotations

import numpy as np
import pytest

from artifact_inspector.execution.timing.sampling import SectorTouches, touch_all

FIRST, SIZE = 1000, 4096


def _touches(start: int, trips: int, stride: int, width: int, lanes: int) -> SectorTouches:
    sectors = FIRST + start + np.arange(trips)[:, None] * stride + np.arange(width)[None] * lanes
    return SectorTouches(0, np.arange(trips), sectors)


@pytest.mark.parametrize(
    ("touched", "expected"),
    [
        ([_touches(0, 8, 2, 16, 128), _touches(64, 8, 2, 16, 128)], True),  # trips touch neighbours
        ([_touches(0, 8, 512, 16, 1), _touches(32, 4, 512, 16, 1)], True),  # lanes do
        ([_touches(0, 8, 2, 16, 4)], None),  # rows of successive trips overlap
        ([_touches(0, 8, 2, 16, 128), _touches(0, 8, 2, 16, 128)], None),
        ([_touches(4000, 8, 64, 16, 1)], None),  # some are past the end of the tensor
        ([_touches(-40, 8, 64, 16, 1)], None),
        ([_touches(0, 2, 4000, 1, 1)], None),  # too sparse to count the sectors between them
        ([SectorTouches(0, np.array([3, 3]), FIRST + np.arange(8).reshape(2, 4))], None),  # two rows of one access
    ],
)
def test_sectors_that_are_all_new_and_distinct_are_touched_at_once(
    touched: list[SectorTouches], expected: bool | None
) -> None:
    is_touched = np.zeros(SIZE, np.bool_)
    counts = [[x.sectors.size for x in touched], [len(x.sectors) for x in touched]]
    assert touch_all(is_touched, touched, FIRST) == (counts if expected else None)
    new = {int(sector) - FIRST for touches in touched for sector in touches.sectors.ravel()} if expected else set()
    assert set(np.flatnonzero(is_touched).tolist()) == new
    if expected:
        assert touch_all(is_touched, touched, FIRST) == [[0] * len(touched)] * 2
        assert set(np.flatnonzero(is_touched).tolist()) == new
        is_touched[touched[0].sectors[0, 0] - FIRST] = False
        assert touch_all(is_touched, touched, FIRST) is None


def test_one_row_may_have_been_touched_in_part() -> None:
    is_touched = np.zeros(SIZE, np.bool_)
    assert touch_all(is_touched, [_touches(8, 1, 1, 4, 1)], FIRST) == [[4], [1]]
    assert touch_all(is_touched, [_touches(6, 1, 1, 4, 1)], FIRST) == [[2], [1]]
    assert touch_all(is_touched, [_touches(6, 1, 1, 6, 1)], FIRST) == [[0], [0]]
    assert np.flatnonzero(is_touched).tolist() == [*range(6, 12)]
