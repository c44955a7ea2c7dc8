"""Reading a stranger's cache: bounded, never waiting, whatever a name leads to."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from artifact_inspector.errors import CacheError
from artifact_inspector.files.cache import open_cache, read_stage
from artifact_inspector.files.reader import read_content, read_head, read_user_text
from artifact_inspector.model.limits import FILE_MIB, LIMITS, METADATA, InputLimit

PTX = ".version 8.7\n.target sm_80\n"


def entry(directory: Path) -> Path:
    directory.mkdir(parents=True)
    (directory / "k.json").write_text('{"num_warps": 4, "shared": 0, "hash": "x"}')
    (directory / "k.ptx").write_text(PTX)
    return directory


def test_a_sparse_file_of_a_gigabyte_is_not_read_and_the_kernel_stays(tmp_path: Path) -> None:
    with (entry(tmp_path / "x") / "k.llir").open("wb") as file:
        file.truncate(1 << 30)
    (found,) = open_cache(tmp_path).entries
    with pytest.raises(CacheError, match=f"1024 MiB, the limit is 64 MiB: set {FILE_MIB.variable}"):
        read_stage(found, "llir")
    assert read_stage(found, "ptx").source.text == PTX


def test_metadata_beyond_their_own_bound_are_told_with_the_way_to_read_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = entry(tmp_path / "x")
    (directory / "k.json").write_text(json.dumps({"num_warps": 7, **{f"k{n}": n for n in range(90_000)}}))
    (problem,) = open_cache(tmp_path).problems
    assert f"2 MiB, the limit is 1 MiB: set {METADATA.variable} to read it" in problem.problem
    monkeypatch.setenv(METADATA.variable, "2")
    cache = open_cache(tmp_path)
    assert (cache.problems, cache.entries[0].num_warps) == ((), 7)


def test_the_bound_can_be_set_and_a_bound_that_is_no_number_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(FILE_MIB.variable, "3")
    assert FILE_MIB.value == 3
    for text in ("", "-1", "9" * 5000, "²"):
        monkeypatch.setenv(FILE_MIB.variable, text)
        assert FILE_MIB.value == 64


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="There is no /proc.")
@pytest.mark.parametrize("place", ["/proc/kmsg", "/proc/self/maps", "/proc/kcore", "/dev/zero", "/dev/tty"])
def test_a_link_to_what_never_ends_is_read_as_nothing_or_refused(tmp_path: Path, place: str) -> None:
    directory = entry(tmp_path / "x")
    (directory / "k.ttir").symlink_to(place)
    for found in open_cache(tmp_path).entries:
        if "ttir" in found.files:
            with suppress(CacheError):
                assert read_stage(found, "ttir").source.text == ""


def test_a_pipe_in_place_of_a_stage_is_missed_and_one_that_comes_later_is_not_waited_for(tmp_path: Path) -> None:
    directory = entry(tmp_path / "x")
    os.mkfifo(directory / "k.llir")
    assert open_cache(tmp_path).problems == (("x/k.llir", "not a regular file: it is not read"),)
    (found,) = open_cache(tmp_path).entries
    (directory / "k.ptx").unlink()
    os.mkfifo(directory / "k.ptx")
    with pytest.raises(CacheError, match="not a regular file"):
        read_stage(found, "ptx")


def test_a_head_is_read_of_a_file_that_is_too_large_as_a_whole(tmp_path: Path) -> None:
    path = tmp_path / "k.ptx"
    path.write_text(PTX)
    assert read_head(path, 8) == b".version"
    with pytest.raises(OSError, match="the limit is"):
        read_content(path, 8)


def test_a_cache_of_such_things_is_listed_in_a_gigabyte_of_addresses_and_seconds(tmp_path: Path) -> None:
    directory = entry(tmp_path / "x")
    with (directory / "k.ttgir").open("wb") as file:
        file.truncate(8 << 30)
    os.mkfifo(directory / "k.llir")
    done = subprocess.run(
        [sys.executable, "-m", "artifact_inspector", str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30)),
    )
    assert done.returncode in (0, 3), done.stderr
    assert "the limit is" in done.stdout


def test_a_file_that_the_user_names_is_bounded_too_and_says_what_is_wrong_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "launch.json"
    file.write_text("{}")
    assert read_user_text(file) == "{}"
    file.write_bytes(b"\xff")
    with pytest.raises(OSError, match="it is not text"):
        read_user_text(file)
    monkeypatch.setenv(FILE_MIB.variable, "0")
    with pytest.raises(OSError, match="the limit is 0 MiB"):
        read_user_text(file)
    with pytest.raises(OSError, match="not a regular file"):
        read_user_text(tmp_path)


@pytest.mark.parametrize("limit", LIMITS, ids=lambda limit: limit.name)
def test_every_bound_stands_on_the_page_with_its_variable(limit: InputLimit) -> None:
    page = (Path(__file__).parents[2] / "docs" / "untrusted-caches.md").read_text(encoding="utf-8")
    assert f"| `{limit.variable}` | {limit.default:,} | {limit.subject} |" in page
