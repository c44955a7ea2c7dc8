"""Waits, barriers and scratch accesses by source line: as many as the text has."""

from __future__ import annotations

import re

import pytest
from saved import saved

from artifact_inspector.model import EventKind


@pytest.mark.parametrize(
    ("name", "kind", "pattern"),
    [
        ("3.6.0/gfx942/flash_attention", EventKind.BARRIER, r"^\s*s_barrier"),
        ("3.6.0/gfx942/register_spill", EventKind.LOCAL_LOAD, r"^\s*scratch_load"),
        ("3.6.0/sm_80/fused_linear", EventKind.WAIT, r"^\s*cp\.async\.wait"),
    ],
)
def test_the_lines_have_what_the_text_has(name: str, kind: EventKind, pattern: str) -> None:
    last = saved(name).facts.last
    assert last is not None
    lines = [line for work in last.work.values() for line in work.line_counts if line.kind == kind.count_name]
    assert sum(line.instructions for line in lines) == len(re.findall(pattern, saved(name).text(last.stage), re.M)) > 0
    file = name.rpartition("/")[2]
    assert {str(line.source).partition(":")[0] for line in lines} == {f"{file}.py"}
