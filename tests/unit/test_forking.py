"""One function for many values, in processes of its own."""

from __future__ import annotations

import os
import signal

import pytest

from artifact_inspector.errors import CacheError, UsageError
from artifact_inspector.execution.timing.parallel_map import map_in_processes


def test_every_value_has_its_answer() -> None:
    here = os.getpid()
    found = dict(map_in_processes(lambda number: (number, os.getpid()), range(20), 2))
    assert set(found) == set(range(20))
    assert here not in found.values()


def test_an_error_ends_it_with_many_values_left() -> None:
    def refuse(number: int) -> int:
        raise UsageError(f"no {number}", "a remedy")

    with pytest.raises(UsageError, match="no ") as found:
        list(map_in_processes(refuse, range(200), 2))
    assert found.value.remedy == "a remedy"


def test_a_process_that_is_killed_is_told_of() -> None:
    with pytest.raises(CacheError, match="was killed"):
        list(map_in_processes(lambda _: os.kill(os.getpid(), signal.SIGKILL), range(4), 2))
