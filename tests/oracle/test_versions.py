"""What releases of Triton are known to do is what compiling with them shows, with no GPU.

Needs environments with older Tritons: those in the user's cache directory are used, and with
`TRITON_VERSIONS=make` missing ones are made there.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path

import pytest
from launches_of_releases import VERSIONS, compile_missing, outcomes

from artifact_inspector.compiling import CompileResult, KernelRequest, compile_kernels
from artifact_inspector.compiling.ask.environments import cache_directory, find_interpreter
from artifact_inspector.errors import CompileError
from artifact_inspector.facts.inspection import inspect_cache
from artifact_inspector.files.cache import open_cache
from artifact_inspector.model import Stage


def need(versions: Sequence[str]) -> None:
    if sys.platform != "linux":
        pytest.skip("Triton compiles on Linux only.")
    for version in versions:
        place = cache_directory() / "triton" / version
        is_here = place.exists() or metadata.version("triton") == version
        if not is_here and os.environ.get("TRITON_VERSIONS") != "make":
            pytest.skip(f"There is no environment with Triton {version}; TRITON_VERSIONS=make makes one.")
        try:
            find_interpreter(version)
        except CompileError as error:
            pytest.skip(str(error))


def sweep(tmp_path: Path, kernel: str, targets: list[str], versions: list[str]) -> list[CompileResult]:
    need(versions)
    return compile_kernels([KernelRequest(kernel)], targets, tmp_path / "cache", tritons=versions)


@pytest.mark.long
def test_the_loads_of_the_gemv_stand_in_front_in_3_2_and_where_they_were_written_in_3_3(tmp_path: Path) -> None:
    results = sweep(tmp_path, "gemv_splitk", ["gfx942"], ["3.2.0", "3.3.1"])
    assert [(row.triton, row.message) for row in results] == [("3.2.0", None), ("3.3.1", None)]
    verdicts = {}
    for row in results:
        assert row.directory is not None
        (kernel,) = inspect_cache(open_cache(row.directory))
        verdicts[row.triton] = (kernel.verdict, kernel.changed_at)
    assert verdicts["3.2.0"][0] == "clustered"
    assert verdicts["3.3.1"][0] == "interleaved"
    assert verdicts["3.2.0"][1] is Stage.TTGIR


@pytest.mark.long
def test_an_entry_has_the_key_of_the_fixture_that_the_same_release_made(tmp_path: Path) -> None:
    results = sweep(tmp_path, "gemv_splitk", ["sm_75"], ["3.0.0", "3.2.0", "3.3.1"])
    saved = Path(__file__).parents[2] / "fixtures"
    for row in results:
        assert row.directory is not None
        (entry,) = (saved / str(row.triton) / "sm_75" / "gemv_splitk").iterdir()
        assert row.directory.name == entry.name


@pytest.mark.parametrize("version", [pytest.param(name, marks=pytest.mark.exhaustive) for name in VERSIONS])
def test_a_launch_touches_what_the_interpreter_does_whichever_release_compiled_it(version: str, tmp_path: Path) -> None:
    """What is not known waits for an atomic, or is of data that were not given."""
    need([version])
    compile_missing(tmp_path, version, ["sm_80", "gfx942"])
    found = [*outcomes(tmp_path, version)]
    assert len(found) > 20
    assert [row for row in found if row.differs] == []
    assert [row for row in found if row.unknown and not ("atomic" in row.unknown or "values of" in row.unknown)] == []
