"""`export -o DIRECTORY`: partitions equal to one process's export, resumable, each content parsed once; on a cluster."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import zipfile
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import pyarrow.parquet
import pytest
from saved import FIXTURES, ROOT
from typer.testing import CliRunner

from artifact_inspector.api import dataset
from artifact_inspector.cli import app
from artifact_inspector.errors import CacheError
from artifact_inspector.facts.fact_index import ReadOptions, read_kernels
from artifact_inspector.facts.kernel import read_everything
from artifact_inspector.facts.workers import find_cluster_facts, with_contents
from artifact_inspector.files import digests
from artifact_inspector.files.cache import open_cache
from artifact_inspector.files.cluster import map_jobs

needs_dask = pytest.mark.skipif(find_spec("distributed") is None, reason="Needs the extra `dask`.")


def read_rows(path: Path) -> list[str]:
    files = sorted(path.glob("*.parquet")) if path.is_dir() else [path]
    return sorted(json.dumps(row) for file in files for row in pyarrow.parquet.read_table(file).to_pylist())


def export(cache: Path, out: Path, *options: str) -> str:
    done = CliRunner().invoke(app, ["export", str(cache), "-o", str(out), *options])
    assert done.exit_code == 0, done.output
    return done.output


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    """Kernels of two GPUs with a record, and copies of them on a second node."""
    for target in ("sm_80", "gfx942"):
        shutil.copytree(FIXTURES / "3.6.0" / target / "softmax", tmp_path / "cache" / "node1" / target)
    shutil.copytree(tmp_path / "cache" / "node1", tmp_path / "cache" / "node2")
    (entry,) = (tmp_path / "cache" / "node1" / "sm_80").iterdir()
    launches = [{"grid": [4], "args": {}, "hash": json.loads(next(entry.glob("[!_]*.json")).read_text())["hash"]}]
    record = {"directory": f"node1/sm_80/{entry.name}", "constants": {"BLOCK": 8}}
    (tmp_path / "cache" / "inspect-kernel.json").write_text(json.dumps({"entries": [record], "launches": launches}))
    return tmp_path / "cache"


@pytest.mark.long
@pytest.mark.parametrize("is_archive", [False, True])
def test_a_directory_of_parts_has_the_rows_of_one_file(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, is_archive: bool
) -> None:
    monkeypatch.setattr(dataset, "KERNELS_PER_PARTITION", 3)
    if is_archive:
        packed = tmp_path / "packed"
        packed.mkdir()
        for node in cache.glob("node*"):
            with zipfile.ZipFile(packed / f"{node.name}.zip", "w") as archive:
                for file in node.rglob("*"):
                    archive.write(file, file.relative_to(node))
        cache = packed
    export(cache, tmp_path / "one.parquet", "--label", "night", "--no-index")
    printed = export(cache, tmp_path / "parts", "--label", "night")
    assert read_rows(tmp_path / "parts") == read_rows(tmp_path / "one.parquet")
    launches = 0 if is_archive else 1
    assert f"4 kernel rows, {len(read_rows(tmp_path / 'parts')) - 4 - launches} region rows" in printed
    assert "wrote 2 of 2 partitions" in printed
    assert f"parsed {2 if is_archive else 3} kernels" in printed  # the constants of one differ
    again = export(cache, tmp_path / "parts", "--label", "night")
    assert "wrote 0 of 2 partitions, parsed 0 kernels" in again
    assert again.split(";")[0] == printed.split(";")[0]


def test_a_run_that_was_stopped_continues_and_stale_parts_go(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dataset, "KERNELS_PER_PARTITION", 1)
    export(cache, tmp_path / "parts")
    rows, files = read_rows(tmp_path / "parts"), sorted((tmp_path / "parts").glob("part-*"))
    files[1].unlink()
    files[2].write_bytes(b"damaged")
    export(cache, tmp_path / "parts")
    printed = export(cache, tmp_path / "parts")
    assert read_rows(tmp_path / "parts") == rows
    assert "parsed 0 kernels" in printed
    shutil.rmtree(next((cache / "node2").iterdir()))
    export(cache, tmp_path / "parts")
    assert sum('"row": "kernel"' in row for row in read_rows(tmp_path / "parts")) == 3


def test_what_cannot_be_read_is_reported_first(cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dataset, "KERNELS_PER_PARTITION", 1)
    for path in cache.glob("node1/sm_80/*/*.ptx"):
        path.unlink()
    assert "is incomplete: .: 1 of 1 kernels have no machine code" in export(cache, tmp_path / "parts")
    (tmp_path / "none").mkdir()
    done = CliRunner().invoke(app, ["export", str(tmp_path / "none"), "-o", str(tmp_path / "parts")])
    assert (done.exit_code, "No kernels in" in done.stderr) == (3, True)
    assert CliRunner().invoke(app, ["export", str(cache), "-o", "x.csv"]).exit_code == 2
    assert CliRunner().invoke(app, ["export", str(cache), "-o", "x.db", "--scheduler", "tcp://x"]).exit_code == 2
    kernels = export(cache, tmp_path / "amd", "softmax", "-t", "gfx942")
    assert "2 kernel rows" in kernels


def test_the_query_of_the_trend_page_runs(cache: Path, tmp_path: Path) -> None:
    (tmp_path / "trend").mkdir()
    for day in ("2026-01-01", "2026-01-02"):
        export(cache / "node1", tmp_path / "trend" / f"{day}.parquet", "--label", day)
    (query,) = re.findall(r"```sql\n(.*?)```", (ROOT / "docs/how-to/ci-trend.md").read_text("utf-8"), re.S)
    program = "import duckdb, json, sys; print(json.dumps(duckdb.sql(sys.argv[1]).fetchall()))"
    done = subprocess.run([sys.executable, "-c", program, query], cwd=tmp_path, capture_output=True, check=True)
    rows = json.loads(done.stdout)
    assert [row[:3] for row in rows] == [
        [day, "softmax_kernel", target] for target in ("gfx942", "sm_80") for day in ("2026-01-01", "2026-01-02")
    ]


def test_machines_share_rows_at_an_address(cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache = next(cache.glob("node1/gfx942/*")).parent
    address = f"file://{tmp_path}/rows"
    first = export(cache, tmp_path / "a", "--index", address)
    stored = sorted(path for path in (tmp_path / "rows").rglob("*") if path.is_file())
    assert ("parsed 1 kernels" in first, len(stored)) == (True, 1)
    local_digest = digests.package_digest
    monkeypatch.setattr(  # another installation of the same release: files have other stamps
        digests,
        "package_digest",
        lambda *, is_portable=False, **_: local_digest(is_portable=True) if is_portable else b"x",
    )
    assert "parsed 0 kernels" in export(cache, tmp_path / "b", "--index", address)
    stored[0].write_bytes(stored[0].read_bytes()[:-3])
    assert "parsed 1 kernels" in export(cache, tmp_path / "c", "--index", address)
    assert read_rows(tmp_path / "a") == read_rows(tmp_path / "b") == read_rows(tmp_path / "c")
    shutil.rmtree(tmp_path / "rows")
    (tmp_path / "rows").touch()  # nothing can be stored
    assert "parsed 1 kernels" in export(cache, tmp_path / "d", "--index", address)
    done = CliRunner().invoke(app, ["export", str(cache), "-o", str(tmp_path / "e"), "--index", "nosuch://x"])
    assert (done.exit_code, "nosuch://x cannot be read" in done.stderr) == (3, True)


@pytest.fixture(scope="module")
def scheduler():
    from distributed import LocalCluster

    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster:
        yield cluster.scheduler_address


def end_first_worker(path: str) -> str:
    """The result of a job; its first run kills the worker."""
    if not Path(path).exists():
        Path(path).touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return path


def fail(_: object) -> None:
    raise ValueError("never")


@pytest.mark.exhaustive
@needs_dask
def test_a_cluster_writes_the_same_and_a_killed_worker_costs_nothing(scheduler, cache, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(dataset, "KERNELS_PER_PARTITION", 1)
    export(cache, tmp_path / "here")
    export(cache, tmp_path / "there", "--scheduler", scheduler)
    assert read_rows(tmp_path / "there") == read_rows(tmp_path / "here")
    marks = [str(tmp_path / name) for name in "abc"]
    assert sorted(map_jobs(scheduler, end_first_worker, marks)) == list(enumerate(marks))
    ((_, problem),) = map_jobs(scheduler, fail, [0])
    assert isinstance(problem, ValueError)


@pytest.mark.long
@needs_dask
def test_facts_of_a_cluster_equal_those_of_one_process(scheduler, cache, monkeypatch) -> None:
    monkeypatch.chdir(cache)  # the workers are elsewhere
    artifacts = open_cache(Path("node1")).entries
    here = list(read_kernels(artifacts, None))
    assert list(read_kernels(artifacts, None, ReadOptions(scheduler=scheduler))) == here


@pytest.mark.long
@needs_dask
def test_kernels_are_sent_to_workers_that_lack_the_cache(scheduler, cache, tmp_path) -> None:
    artifacts = open_cache(cache / "node1" / "sm_80").entries
    (here,) = read_kernels(artifacts, None)
    options = ReadOptions(scheduler=scheduler, sends_files=True)
    sent = list(find_cluster_facts(map(with_contents, artifacts), [0], read_everything, None, scheduler))
    moved = [replace(x, files={k: tmp_path / f.name for k, f in x.files.items()}) for x in artifacts]
    assert [bool(text) for _, text in sent] == [True]
    assert list(find_cluster_facts(iter(moved), [0], read_everything, None, scheduler)) == [(0, b"")]
    assert list(read_kernels(artifacts, None, options)) == [here]


@pytest.mark.long
@needs_dask
def test_an_absent_scheduler_is_named(cache, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr("artifact_inspector.files.cluster.CONNECT_SECONDS", 0.5)
    with pytest.raises(CacheError, match=r"No Dask scheduler responds at tcp://127\.0\.0\.1:9"):
        dataset.write_dataset(cache, tmp_path / "parts", scheduler="tcp://127.0.0.1:9")
