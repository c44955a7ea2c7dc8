"""A new fact is one function, one field, one row of the vocabulary: the views take it from there."""

from __future__ import annotations

import json

import pytest
from saved import ROOT, saved
from typer.testing import CliRunner

from artifact_inspector.api import Inspection
from artifact_inspector.cli import app
from artifact_inspector.files.cache import open_cache
from artifact_inspector.report.html.table import kernel_table
from artifact_inspector.vocabulary import rows
from artifact_inspector.vocabulary.fact import Category, Column, Fact, Of, Subject

NAME, HERE, THERE = "gemv_splitk", "3.6.0/sm_75/gemv_splitk", "3.6.0/sm_90/gemv_splitk"


def count_lines(of: Subject) -> int:
    """Lines from the first to the last of the regions of the last text."""
    assert of.stage is not None
    lines = [line for region in of.stage.regions for line in region.lines]
    return max(lines) - min(lines) + 1


ROW = Fact(
    "lines", Category.INSTRUCTIONS, "lines of code", "of the file", Of.FILE, count_lines,
    column=Column("lines", "lines", "lines of the last text", 9), record="code_lines",
)  # fmt: skip


@pytest.fixture
def new_fact(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows, "FACTS", (*rows.FACTS, ROW))


def expected(path: str) -> int:
    kernel = saved(path).facts
    assert kernel.last is not None
    return count_lines(Subject(kernel, kernel.last))


def run(*words: str) -> str:
    return CliRunner().invoke(app, [*words], env={"COLUMNS": "200"}).stdout


@pytest.mark.usefixtures("new_fact")
def test_a_new_row_is_a_row_of_the_kernel_with_its_unit() -> None:
    (row,) = (row for row in rows.summarise(saved(HERE).facts).rows if row.key == "lines")
    assert (row.value, row.unit, row.step) == (expected(HERE), "of the file", "assembly")


@pytest.mark.usefixtures("new_fact")
def test_a_new_row_is_told_where_two_kernels_differ_in_it() -> None:
    paths = [str(ROOT / "fixtures" / path) for path in (HERE, THERE)]
    assert expected(HERE) != expected(THERE)
    (fact,) = (one for one in json.loads(run("diff", *paths, "--json"))["facts"] if one["key"] == "lines")
    assert (fact["left"], fact["right"]) == (expected(HERE), expected(THERE))
    said = [line for line in run("diff", *paths).splitlines() if "lines of code" in line]
    assert len(said) == 1
    assert all(str(expected(path)) in said[0] for path in (HERE, THERE))


@pytest.mark.usefixtures("new_fact")
def test_a_new_row_with_a_column_is_one_of_the_matrix_and_sorts_it() -> None:
    directory = str(ROOT / "fixtures" / "3.6.0")
    (document,) = [json.loads(run("matrix", directory, NAME, "--json", "--sort", "-lines"))]
    figures = [form["figures"]["lines"] for form in document["forms"]]
    assert expected(HERE) in figures
    assert figures == sorted(figures, reverse=True)
    assert len(set(figures)) > 1
    text = run("matrix", directory, NAME)
    assert "lines of the last text" in text
    assert str(expected(HERE)) in text


@pytest.mark.usefixtures("new_fact")
def test_a_new_row_with_a_column_is_one_of_the_page_of_a_cache() -> None:
    table = kernel_table([saved(HERE).facts], [""], [""])
    at = [column.heading for column in table.columns].index("lines")
    assert table.lines[0].cells[at] == expected(HERE)


@pytest.mark.usefixtures("new_fact")
def test_a_new_row_with_a_name_in_records_stands_in_each_of_them() -> None:
    kernel = Inspection(saved(HERE).facts, open_cache(ROOT / "fixtures" / HERE))
    records = kernel.to_records()
    last = [record for record in records if record["stage"] == "ptx"]
    assert last
    assert {record["code_lines"] for record in last} == {expected(HERE)}
    assert all("code_lines" in record for record in records)


def test_without_the_row_no_view_tells_it() -> None:
    kernel = Inspection(saved(HERE).facts, open_cache(ROOT / "fixtures" / HERE))
    assert "code_lines" not in kernel.to_records()[0]
    assert "lines" not in rows.summarise(kernel.details).facts
