"""Verdicts, changes and distances against a second reading of the line and the figures beside them."""

from __future__ import annotations

import pytest
from saved import Saved, saved_kernels
from second_reading import departures


@pytest.mark.parametrize("kernel", saved_kernels(), ids=lambda kernel: kernel.path)
def test_no_verdict_contradicts_its_line_and_no_change_is_of_other_statements(kernel: Saved) -> None:
    assert list(departures(kernel.facts)) == []
