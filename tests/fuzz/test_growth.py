"""Kinds of files that grow: each is made and read when it is small, and one is measured as the command does it."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from tests.fuzz.checks import within
from tests.fuzz.growth import KINDS, Cost, count_steps, measure
from tests.fuzz.guided import READERS


def test_each_kind_of_file_is_made_and_read() -> None:
    readers = {kind: READERS[kind]() for kind in {kind for kind, _ in KINDS.values()}}
    for kind, make in KINDS.values():
        content = make(5_000)
        with within(2):
            readers[kind](content.encode() if isinstance(content, str) else content)


def test_a_file_is_measured_in_a_process_of_its_own() -> None:
    found = measure("ttgir: buffers, all alive", 100_000, "list")
    assert isinstance(found, Cost)
    assert 90_000 < found.size < 130_000
    assert 0 < found.seconds < 4
    assert 0 <= found.mib < 200


@pytest.mark.parametrize("name", ["ttir: partitions", "ptx: loops in sequence", "llir: functions"])
def test_the_page_of_a_file_takes_as_many_steps_as_the_file_is_long(name: str, tmp_path: Path) -> None:
    small, large = (count_steps(name, size, "page", tmp_path / str(size)) for size in (8_000, 32_000))
    assert math.log(large / small, 4) < 1.1
