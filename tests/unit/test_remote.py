"""Jobs go to the workers of a Dask scheduler, and their entries come back into one cache."""

from importlib.util import find_spec

import pytest

from artifact_inspector.compiling import KernelRequest, compile_kernels
from artifact_inspector.errors import CompileError
from artifact_inspector.files import cluster
from artifact_inspector.files.cache import open_cache

pytestmark = pytest.mark.skipif(
    find_spec("distributed") is None or find_spec("triton") is None,
    reason="Needs the extra `dask`, and Triton (Linux).",
)


@pytest.fixture
def scheduler():
    from distributed import LocalCluster

    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster:
        yield cluster.scheduler_address


@pytest.mark.exhaustive
def test_a_cluster_fills_the_callers_cache_and_compiles_nothing_twice(scheduler, tmp_path):
    requests = [KernelRequest("softmax"), KernelRequest("no_such.py:kernel")]
    targets = ["sm_80", "gfx942"]
    here = compile_kernels(requests, targets, tmp_path / "here")
    there = compile_kernels(requests, targets, tmp_path / "there", scheduler=scheduler)
    assert [(row.kernel, row.target, row.message) for row in there] == [
        (row.kernel, row.target, row.message) for row in here
    ]
    # the same keys, whoever compiled
    assert [row.directory and row.directory.name for row in there] == [
        row.directory and row.directory.name for row in here
    ]
    made = open_cache(tmp_path / "there")
    assert [entry.state for entry in made.entries] == ["complete"] * 2
    assert not made.problems
    again = compile_kernels(requests, targets, tmp_path / "there", scheduler=scheduler)
    assert [row.is_cached for row in again if row.message is None] == [True] * 2
    # Triton itself finds the entries there: their group files name them where they are
    local = compile_kernels(requests, targets, tmp_path / "there")
    assert [row.is_cached for row in local if row.message is None] == [True] * 2


@pytest.mark.long
def test_where_no_scheduler_answers_the_address_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr(cluster, "CONNECT_SECONDS", 0.5)
    with pytest.raises(CompileError, match=r"No Dask scheduler responds at tcp://127\.0\.0\.1:9"):
        compile_kernels([KernelRequest("softmax")], ["sm_80"], tmp_path, scheduler="tcp://127.0.0.1:9")
