"""Steps that end at a time limit: the results before it are kept, and the process that runs them ends."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator

import pytest

from artifact_inspector.api.time_limit import collect_within


def test_all_steps_that_end_in_time_are_kept() -> None:
    assert collect_within(60, lambda: iter(("a", "b"))) == (["a", "b"], True)


def test_a_step_that_takes_too_long_is_stopped() -> None:
    def steps() -> Iterator[int]:
        yield os.getpid()
        time.sleep(60)
        yield 0

    begin = time.monotonic()
    (process,), is_complete = collect_within(1.0, steps)
    assert not is_complete
    assert time.monotonic() - begin < 30
    with pytest.raises(ProcessLookupError):
        os.kill(process, 0)


def test_a_step_that_fails_is_not_complete() -> None:
    def steps() -> Iterator[int]:
        yield 1
        raise SystemExit(3)

    assert collect_within(60, steps) == ([1], False)
