"""The table that holds this package beside others, on few kernels: every row runs, and says what it took."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
import rivals


@pytest.mark.long
def test_each_command_is_run_in_turn_and_has_a_row(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["rivals.py", "--kernels", "2", "--rounds", "1"])
    rivals.main()
    said, *rows = [line for line in capsys.readouterr().out.splitlines() if line]
    assert said.startswith("2 kernels, ")
    taken = {cells[1].strip(): [*map(float, cells[2:-1])] for cells in (row.split("|") for row in rows[2:])}
    expected = {
        "inspect-kernel CACHE",
        "the same, on one core",
        "the same, a second time",
        "inspect-kernel CACHE --json",
        "scan",
    }
    if find_spec("llvmlite") is not None:
        expected.add("llvmlite, the LLIR alone")
    assert expected <= taken.keys()
    assert all(processor > 0 and megabytes > 10 for processor, _, _, megabytes, _ in taken.values())
    assert taken["inspect-kernel CACHE"][-1] == 1


def test_copies_are_no_text_that_was_read_before(tmp_path: Path) -> None:
    count = len({file.parent for file in (rivals.ROOT / "fixtures").rglob("*.ttir")})
    made = rivals.made(count + 1, tmp_path / "cache")
    first, last = (next((made / f"{number:052}").glob("*.ttir")) for number in (0, count))
    assert last.name == first.name
    assert last.read_text() != first.read_text()
    assert last.read_text().startswith(first.read_text())
