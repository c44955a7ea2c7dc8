"""`export`: the same rows in three formats, each value equal to that of the JSON, and the documented schema."""

from __future__ import annotations

import json
import re
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import polars
import pyarrow.parquet
import pytest
from saved import FIXTURES, ROOT
from typer.testing import CliRunner

from artifact_inspector import inspect
from artifact_inspector.api.notebook import inspect_cache
from artifact_inspector.cli import app
from artifact_inspector.facts.inspection import inspect_cache as read_cache
from artifact_inspector.files.cache import open_cache
from artifact_inspector.vocabulary.rows import FACTS, Of
from artifact_inspector.vocabulary.tables import _FACTS, COLUMNS, RowKind, columns_of, fact_rows

CACHE = FIXTURES / "3.9.0"
PAGE = ROOT / "docs" / "how-to" / "export-facts.md"
TYPES = {"TEXT": str, "BIGINT": int, "DOUBLE": (int, float), "BOOLEAN": bool}


def export(kind: str, path: Path, cache: Path = CACHE, *options: str) -> str:
    done = CliRunner().invoke(app, ["export", str(cache), f"--{kind}", str(path), "--no-index", *options])
    assert done.exit_code == 0, done.output
    return done.stdout


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> list[dict]:
    path = tmp_path_factory.mktemp("export") / "facts.ndjson"
    export("ndjson", path, CACHE, "--label", "night")
    return [json.loads(line) for line in path.read_text().splitlines()]


@pytest.mark.long
def test_each_kernel_has_a_row_with_the_values_of_its_json(rows: list[dict]) -> None:
    printed = json.loads(CliRunner().invoke(app, [str(CACHE), "--json", "--no-index"]).stdout)["kernels"]
    kernels = {row["directory"]: row for row in rows if row["row"] == "kernel"}
    assert len(kernels) == len(printed) > 10
    compared = set()
    for kernel in printed:
        row = kernels[kernel["directory"]]
        assert (row["kernel"], row["hash"], row["target"], row["label"]) == (
            kernel["name"], kernel["hash"], kernel["target"]["arch"], "night",
        )  # fmt: skip
        assert (row["verdict"], row["region"]) == (kernel["verdict"], kernel["main_region"]) or not kernel["stages"]
        assert row["bytes"] == sum(
            f.stat().st_size for f in (CACHE / kernel["directory"]).iterdir() if f.name[:2] != "__"
        )
        for name, fact in _FACTS.items():
            if fact.of in (Of.KERNEL, Of.FILE) and fact.key in kernel["facts"]:
                value = kernel["facts"][fact.key]
                assert row[name] == (", ".join(value) if isinstance(value, list) else value), (name, kernel["name"])
                compared.add(name)
    assert len(compared) > 20


@pytest.mark.long
def test_each_region_has_a_row_at_each_stage(rows: list[dict]) -> None:
    for kernel in read_cache(open_cache(CACHE)):
        mine = [r for r in rows if r["row"] == "region" and r["directory"] == kernel.artifact.directory]
        assert [(r["stage"], r["region"], r["verdict"]) for r in mine] == [
            (stage.value, region.id, region.verdict)
            for stage, facts in kernel.stages.items()
            for region in facts.regions
        ]
        assert sum(r["is_main"] for r in mine if r["stage"] == kernel.last.stage.value) == 1


@pytest.mark.exhaustive
def test_every_row_has_every_column_in_its_type(rows: list[dict]) -> None:
    rows = [*rows, *(row for kernel in read_cache(open_cache(FIXTURES)) for row in fact_rows(kernel, "all"))]
    filled = set()
    for row in rows:
        assert list(row) == [column.name for column in COLUMNS]
        for column in COLUMNS:
            value = row[column.name]
            if value is not None:
                assert isinstance(value, TYPES[column.type]), (column, value)
                assert RowKind(row["row"]) in column.rows, (column, row["row"])
                filled.add(column.name)
    never = {c.name for c in COLUMNS} - filled
    spilling = {"trip_scratch_loads", "trip_scratch_stores"}  # no saved kernel has a loop that spills
    assert never <= {"grid", "arguments", "is_tuning", "constants", "trips", *spilling}, never


def test_every_fact_is_a_column() -> None:
    assert set(_FACTS.values()) == {fact for fact in FACTS if fact.key != "verdict.{step}"}


@pytest.mark.long
def test_three_formats_have_the_same_rows(rows: list[dict], tmp_path: Path) -> None:
    printed = export("parquet", tmp_path / "f.parquet", CACHE, "--label", "night")
    assert pyarrow.parquet.read_table(tmp_path / "f.parquet").to_pylist() == rows
    kinds = [row["row"] for row in rows]
    assert f"{kinds.count('kernel')} kernel rows, {kinds.count('region')} region rows, 0 launch rows." in printed
    export("sqlite", tmp_path / "f.db", CACHE, "--label", "night")
    database = sqlite3.connect(tmp_path / "f.db")
    for kind in RowKind:
        names = [column.name for column in columns_of(kind)]
        expected = [tuple(row[name] for name in names) for row in rows if row["row"] == kind]
        assert database.execute(f"SELECT {', '.join(names)} FROM {kind}").fetchall() == expected
    database.close()
    assert {path.name for path in tmp_path.iterdir()} == {"f.parquet", "f.db"}


def test_launches_on_record_are_rows(tmp_path: Path) -> None:
    shutil.copytree(FIXTURES / "3.6.0" / "sm_80" / "softmax", tmp_path / "cache")
    (entry,) = open_cache(tmp_path / "cache").entries
    tensor = {"shape": [4], "stride": [1], "dtype": "int32", "alignment": 16, "values": [1, 2, 3, 4]}
    launches = [
        {
            "grid": [4, 1, 1],
            "args": {"x": tensor, "n": 7},
            "hash": entry.hash,
            "kernel": "softmax_kernel",
            "target": "sm_80",
        },
        {"grid": [2, 3, 1], "args": {}, "hash": entry.hash, "kernel": "softmax_kernel", "tuning": True},
        {"grid": [1, 1, 1], "args": {}, "hash": "another"},
    ]
    (tmp_path / "cache" / "inspect-kernel.json").write_text(json.dumps({"schema_version": 1, "launches": launches}))
    export("ndjson", tmp_path / "f.ndjson", tmp_path / "cache")
    exported = [json.loads(line) for line in (tmp_path / "f.ndjson").read_text().splitlines()]
    rows = [row for row in exported if row["row"] == "launch"]
    assert [(row["grid"], row["is_tuning"], row["target"]) for row in rows] == [
        ("[4, 1, 1]", False, "sm_80"),
        ("[2, 3, 1]", True, None),
    ]
    assert {row["hash"] for row in rows} == {entry.hash}
    del tensor["values"]
    assert json.loads(rows[0]["arguments"]) == {"x": tensor, "n": 7}


def test_a_failed_write_leaves_the_old_file(tmp_path: Path) -> None:
    (tmp_path / "f.db").write_text("old")
    done = CliRunner().invoke(app, ["export", str(tmp_path / "none"), "--sqlite", str(tmp_path / "f.db")])
    assert (done.exit_code, (tmp_path / "f.db").read_text()) == (3, "old")
    done = CliRunner().invoke(app, ["export", str(CACHE), "--ndjson", str(tmp_path / "no" / "f")])
    assert done.exit_code == 3
    assert "could not be written" in done.stderr
    assert CliRunner().invoke(app, ["export", str(CACHE)]).exit_code == 2
    assert [path.name for path in tmp_path.iterdir()] == ["f.db"]


def test_the_columns_on_the_page_are_current(request: pytest.FixtureRequest) -> None:
    text = PAGE.read_text(encoding="utf-8")
    lines = [f"| `{c.name}` | {c.type} | {' '.join(c.rows)} | {c.meaning} |" for c in COLUMNS]
    table = "\n".join(["| column | type | rows | meaning |", "|---|---|---|---|", *lines, ""])
    current = re.sub(r"(?<=<!-- columns -->\n).*(?=<!-- end of columns -->)", lambda _: table, text, flags=re.S)
    if request.config.getoption("--update-docs", default=False):
        PAGE.write_text(current, encoding="utf-8")
    else:
        assert text == current, "run pytest tests/unit/test_export.py --update-docs"


@pytest.mark.exhaustive
def test_the_queries_of_the_page_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for version in ("3.6.0", "3.9.0"):
        export("parquet", tmp_path / f"facts-{version}.parquet", FIXTURES / version, "--label", version)
    page = PAGE.read_text(encoding="utf-8")
    program = "import duckdb, json, sys; print(json.dumps([duckdb.sql(q).fetchall() for q in sys.argv[1:]]))"
    queries = re.findall(r"```sql\n(.*?)```", page, re.S)  # its module prints a page of leaks when this process ends
    done = subprocess.run([sys.executable, "-c", program, *queries], capture_output=True, check=True, text=True)
    worst, trend, lost = json.loads(done.stdout)
    assert [row[0] for row in trend] == ["3.6.0", "3.9.0"]
    assert sum(row[1] for row in trend) == sum(len(open_cache(FIXTURES / v).entries) for v in ("3.6.0", "3.9.0"))
    assert worst == sorted(worst, key=lambda row: (row[0], -row[3]))
    assert all(row[3] > 0 for row in worst)
    assert all(any("pipelined" in verdict for verdict in row[3]) for row in lost)
    names: dict = {}
    exec(re.findall(r"```py\n(.*?)```", page, re.S)[0], names)
    assert names["worst"]["shared_bytes"].to_list() == sorted(names["worst"]["shared_bytes"], reverse=True)


def frame_names(frame: Callable) -> list[str]:
    return list(frame().columns)


def test_kernels_and_caches_are_data_frames() -> None:
    kernel = inspect(next((FIXTURES / "3.6.0" / "sm_80" / "softmax").iterdir()))
    expected = kernel.to_records()
    assert kernel.to_polars().to_dicts() == expected
    assert kernel.to_pandas()["verdict"].tolist() == [row["verdict"] for row in expected]
    kernels = inspect_cache(str(FIXTURES / "3.6.0" / "sm_80" / "softmax"))
    assert kernels.to_polars().equals(polars.from_dicts(expected, infer_schema_length=None))
    assert frame_names(kernels.to_pandas) == list(expected[0])
    assert len(list(kernels)) == 1  # a frame does not use up the kernels
