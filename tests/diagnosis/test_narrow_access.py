"""Narrow accesses are those of the simulated instructions."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from artifact_inspector.diagnosis import memory_causes


@pytest.mark.parametrize(("width", "count"), [(2, 1), (8, 1), (16, 0)])
def test_the_widest_accesses_are_not_narrow(width: int, count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A `buffer_store_dwordx4` stores 16 B per thread, whatever its cache lines."""

    def report(model: Any, kind: Any, line: str, steps: Any, reason: str) -> str:
        return reason

    monkeypatch.setattr(memory_causes, "_attribute_contiguous", report)
    steps: Any = [SimpleNamespace(index=0)]
    model: Any = SimpleNamespace(
        counters=SimpleNamespace(bytes_requested=[64 * width]),
        traffic=SimpleNamespace(active_lanes={0: 64}, requested_lines={0: 64 if width == 16 else 8}),
        is_amd=width == 16,
        chasing_lines=(),
    )
    reasons = list(memory_causes._access_in_pieces(model, "k.py:3", steps))
    assert len(reasons) == count
    assert all(f"accesses {width} B at a time" in str(reason) for reason in reasons)


def test_lanes_with_a_cache_line_each_are_uncoalesced(monkeypatch: pytest.MonkeyPatch) -> None:
    def report(model: Any, kind: Any, line: str, steps: Any, reason: str) -> tuple[str, str]:
        return kind.value, reason

    monkeypatch.setattr(memory_causes, "_attribute_contiguous", report)
    model: Any = SimpleNamespace(
        counters=SimpleNamespace(bytes_requested=[32 * 4]),
        traffic=SimpleNamespace(active_lanes={0: 32}, requested_lines={0: 32}),
        is_amd=False,
        chasing_lines=(),
    )
    ((kind, reason),) = memory_causes._access_in_pieces(model, "k.py:3", [SimpleNamespace(index=0)])
    assert kind == "uncoalesced"
    assert "separate cache lines, 32 times as many" in reason
