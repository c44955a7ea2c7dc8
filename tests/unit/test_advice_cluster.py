"""`advise --scheduler`: the same text as one process; a failure concerns one launch; results are kept."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from saved import FIXTURES
from typer.testing import CliRunner

from artifact_inspector.api import advice_cluster
from artifact_inspector.cli import app
from artifact_inspector.diagnosis.cause import Diagnosis
from artifact_inspector.files.cluster import map_jobs

COPY = FIXTURES / "3.6.0" / "sm_80" / "copy"


def advise(cache: Path, *options: str) -> tuple[int, str, str]:
    done = CliRunner().invoke(app, ["advise", str(cache), "--budget", "0", *options])
    return done.exit_code, done.stdout, done.stderr


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A kernel, one whose files no worker has, one that ends its worker, and one without TTIR."""
    monkeypatch.setenv("ARTIFACT_INSPECTOR_INDEX", "")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home"))
    shutil.copytree(COPY, tmp_path / "cache")
    (entry,) = tmp_path.glob("cache/*/")
    for name in ("ABSENT", "KILLER", "OPAQUE"):
        (file,) = Path(shutil.copytree(entry, entry.with_name(name))).glob("[!_]*.json")
        file.write_text(file.read_text("utf-8").replace("{", f'{{"copy": "{name}", ', 1), "utf-8")
    for file in tmp_path.glob("cache/OPAQUE/*.*ir"):
        file.unlink()
    return tmp_path / "cache"


def test_each_launch_fails_by_itself_and_a_second_run_does_the_others(cache, monkeypatch) -> None:
    ran: list[str] = []

    def map_here(_scheduler, function, jobs):
        for number, job in enumerate(jobs):
            name = job[0].directory
            ran.append(name)
            if name == "KILLER":
                yield number, OSError("the worker ended")
            else:
                yield number, None if name == "ABSENT" else function(job)

    def diagnose(pairs, *_arguments, **_options):
        return [Diagnosis(entry.directory, "", "", None, request.grid, None, None, (), "") for entry, request in pairs]

    monkeypatch.setattr(advice_cluster, "map_jobs", map_here)
    monkeypatch.setattr(advice_cluster, "diagnose_launches", diagnose)
    code, printed, problems = advise(cache, "--scheduler", "tcp://x")
    assert printed.count("grid 32768×1×1") == 2
    assert ("ABSENT" in printed, code) == (True, 3)
    assert problems.startswith("2 of 4 launches were not diagnosed: copy")
    assert len(ran) == 4
    assert advise(cache, "--scheduler", "tcp://x")[:2] == (3, printed)
    assert sorted(ran[4:]) == ["KILLER"]


@pytest.mark.exhaustive
def test_a_cluster_prints_what_one_process_prints() -> None:
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=None) as cluster:
        assert advise(COPY, "--scheduler", cluster.scheduler_address) == advise(COPY)
        assert list(map_jobs(cluster.scheduler_address, len, ["a"])) == [(0, 1)]
