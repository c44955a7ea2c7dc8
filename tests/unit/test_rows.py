"""A list in a pipe is laid out by hand, as rich would lay it out, and hashes are cut to what tells them apart."""

from __future__ import annotations

import io
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from rich.console import Console
from rich.text import Text
from saved import saved

from artifact_inspector.report.kernel_rows import (
    _COLUMNS,
    RenderedColumn,
    fit_table,
    make_lines,
    make_table,
    short_hashes,
)

WORDS = st.text(st.characters(codec="utf-8"), max_size=12)


def by_rich(columns: list[RenderedColumn]) -> list[str]:
    console = Console(file=io.StringIO(), width=10_000, color_system=None, highlight=False, markup=False)
    with console.capture() as captured:
        console.print(make_table(columns, compact=False), crop=False)
    return [line.rstrip() for line in captured.get().splitlines()]


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.tuples(WORDS, st.booleans(), WORDS, WORDS), min_size=1, max_size=4))
def test_plain_lines_are_what_rich_makes_of_the_table(told: list[tuple[str, bool, str, str]]) -> None:
    columns = [RenderedColumn(heading, right, [one, Text(two)]) for heading, right, one, two in told]
    lines = make_lines(columns)
    if lines is not None:
        assert lines == by_rich(columns)


def test_words_of_two_columns_each_and_numbers_stand_straight() -> None:
    columns = [RenderedColumn("名", False, ["核", "a"]), RenderedColumn("n", True, ["10", "7"])]
    assert make_lines(columns) == by_rich(columns) == ["名   n", "核  10", "a    7"]


def test_a_name_that_is_no_plain_word_is_left_to_rich() -> None:
    assert make_lines([RenderedColumn("kernel", False, ["two\nlines"])]) is None


def test_as_much_of_a_hash_is_shown_as_tells_kernels_of_a_name_apart() -> None:
    artifact = saved("3.6.0/sm_80/matmul_grouped").artifact

    def told(*hashes: str) -> list[str]:
        kernels: list[Any] = [
            SimpleNamespace(artifact=replace(artifact, hash=one, directory=f"at{place}"))
            for place, one in enumerate(hashes)
        ]
        return short_hashes(kernels)

    assert told("ABCDEFGH") == [""]
    assert told("ABCDEFGH", "ABCDEFGI", "XYZXYZXYZ") == ["ABCDEFGH", "ABCDEFGI", "XYZXYZXY"]
    assert told("ABCDEFGH", "ABCDEFGH", "XYZXYZXYZ") == ["at0", "at1", "XYZXYZ"]


def test_a_list_of_copies_keeps_its_five_columns_at_80_characters() -> None:
    cells = dict.fromkeys((heading for heading, *_ in _COLUMNS), "1234")
    row = {
        **cells, "kernel": "a_kernel_with_a_long_name_of_many_words", "hash": "3.6.0/sm_90/" + "directory" * 6,
        "prefix": "abcdef", "what limits it": "wait in loop serialises wgmma, narrow loads",
        "verdict": "warp-specialised(2)", "state": "",
    }  # fmt: skip
    headings = fit_table([row, {**row, "target": "gfx1100", "equal": "×28"}], (), 80).headings
    assert {"kernel", "hash", "target", "what limits it", "verdict"} <= headings
