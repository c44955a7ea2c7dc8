"""A fact that is added in one place is in every view, and no view changes otherwise."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from saved import ROOT

FACT = '''

@region_fact(
    "shuffles", "shuffles", Unit.IN_CODE, category=Category.INSTRUCTIONS,
    direction=Direction.LESS_IS_BETTER, column=FactColumn("shuffles", "shfl", "shuffles in the code", 10),
    record="shuffles", brief="shuffles", story_label="shuffles",
)
def shuffles(of: RegionSubject) -> int:
    """Shuffles between the lanes of a warp."""
    return of.region.count(EventKind.SHUFFLE)
'''
"""A real fact, as somebody adds it."""

VIEWS = r"""
import json, sys
from pathlib import Path
from typer.testing import CliRunner
from artifact_inspector.api import Inspection
from artifact_inspector.cli import app
from artifact_inspector.facts.inspection import inspect_artifact
from artifact_inspector.files.cache import open_cache
from artifact_inspector.report.html.table_page import kernel_table
from artifact_inspector.report.json.schema import schema_of
from artifact_inspector.report.definitions import explain_term
from artifact_inspector.serving.items import row_item
from artifact_inspector.vocabulary.rows import FACTS

left, right, caches, name = sys.argv[1:]
run = lambda *words: CliRunner().invoke(app, [*words], env={"COLUMNS": "200"}).stdout
(entry,) = open_cache(Path(left)).entries
kernel = inspect_artifact(entry)
json.dump({
    "story": run(left, name, "--full"),
    "json": json.loads(run(left, "--json")),
    "schema": schema_of("cache"),
    "diff": run("diff", left, right),
    "diff_json": json.loads(run("diff", left, right, "--json")),
    "matrix": run("matrix", caches, name),
    "matrix_json": json.loads(run("matrix", caches, name, "--json")),
    "records": Inspection(kernel, open_cache(Path(left))).to_records(),
    "mcp": row_item(kernel),
    "page": [column.heading for column in kernel_table([kernel], [""], [""]).columns],
    "explain": [definition.text for definition in explain_term("shuffles")] if "shuffles" in {fact.key for fact in FACTS} else [],
}, sys.stdout, default=str)
"""

NAME = "gemv_splitk"
LEFT, RIGHT = (ROOT / "fixtures" / "3.6.0" / target / NAME for target in ("sm_90", "gfx942"))


def views_of(package: Path, caches: Path) -> dict[str, Any]:
    """Every view of the package in a directory."""
    environment = {**os.environ, "PYTHONPATH": str(package)}
    words = [sys.executable, "-c", VIEWS, str(LEFT), str(RIGHT), str(caches), NAME]
    answer = subprocess.run(words, capture_output=True, text=True, env=environment, cwd=package, check=False)
    assert answer.returncode == 0, answer.stderr
    views: dict[str, Any] = json.loads(answer.stdout)
    return views


@pytest.fixture(scope="module")
def caches(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Both kernels alone, for the matrix."""
    both = tmp_path_factory.mktemp("both")
    for side in (LEFT, RIGHT):
        shutil.copytree(side, both / side.parent.name)
    return both


@pytest.fixture(scope="module")
def before(caches: Path) -> dict[str, Any]:
    return views_of(ROOT, caches)


@pytest.fixture(scope="module")
def after(caches: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    root = tmp_path_factory.mktemp("copy")
    shutil.copytree(ROOT / "artifact_inspector", root / "artifact_inspector")
    with (root / "artifact_inspector" / "vocabulary" / "region_facts.py").open("a") as module:
        module.write(FACT)
    return views_of(root, caches)


@pytest.fixture(scope="module")
def shuffles() -> int:
    """Shuffles of the saved PTX, by its text."""
    (ptx,) = LEFT.rglob("*.ptx")
    return sum("shfl." in line for line in ptx.read_text().splitlines())


@pytest.mark.long
def test_the_json_has_it_for_each_region(after: dict[str, Any], shuffles: int) -> None:
    (kernel,) = after["json"]["kernels"]
    values = {key: value for key, value in kernel["facts"].items() if key.endswith(".shuffles")}
    assert shuffles
    assert sum(values.values()) == shuffles


@pytest.mark.long
def test_the_schema_describes_it_by_its_type_and_unit(after: dict[str, Any]) -> None:
    facts = after["schema"]["$defs"]["Kernel"]["properties"]["facts"]["patternProperties"]
    assert facts[r"^.+[.]shuffles$"] == {"type": "integer", "description": "shuffles, in the code"}


@pytest.mark.long
def test_the_page_of_a_kernel_lists_it(after: dict[str, Any], shuffles: int) -> None:
    lines = [line.split() for line in after["story"].splitlines() if line.split()[:1] == ["shuffles"]]
    assert ["shuffles", str(shuffles), "in", "the", "code"] in lines


@pytest.mark.long
def test_a_comparison_has_it(after: dict[str, Any]) -> None:
    facts = [fact for fact in after["diff_json"]["facts"] if fact["key"].endswith(".shuffles")]
    assert facts
    assert all(fact["unit"] == "in the code" for fact in facts)
    assert "shuffles" in after["diff"]


@pytest.mark.long
def test_the_matrix_has_a_column_for_it(after: dict[str, Any]) -> None:
    figures = [form["figures"]["shuffles"] for form in after["matrix_json"]["variants"]]
    assert any(figures)
    assert "shfl" in after["matrix"]


@pytest.mark.long
def test_records_pages_and_servers_have_it(after: dict[str, Any], shuffles: int) -> None:
    assert sum(row["shuffles"] for row in after["records"] if row["stage"] == "ptx") == shuffles
    assert all("shuffles" in row for row in after["records"])
    assert "shuffles" in json.dumps(after["mcp"])
    assert "shfl" in after["page"]
    assert after["explain"] == ["shuffles, in the code (about instructions)"]


def without(value: object, is_new: Callable[[str], bool]) -> object:
    """A document without the keys, rows and columns of the new fact."""
    if isinstance(value, dict):
        return {key: without(one, is_new) for key, one in value.items() if not is_new(key)}
    if isinstance(value, list):
        rows = (one for one in value if not (isinstance(one, dict) and is_new(str(one.get("key", "")))))
        return [without(one, is_new) for one in rows if not (isinstance(one, str) and is_new(one))]
    return value


@pytest.mark.long
@pytest.mark.parametrize("view", ["json", "schema", "diff_json", "matrix_json", "records", "mcp"])
def test_nothing_else_changes(before: dict[str, Any], after: dict[str, Any], view: str) -> None:
    assert without(after[view], lambda key: "shuffles" in key) == before[view]
