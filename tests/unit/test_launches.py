"""Which launches a command is asked for: a file's, the command line's, or those on record beside a cache."""

import json
from pathlib import Path

import pytest

from artifact_inspector.cli._launches import read_requests
from artifact_inspector.errors import UsageError
from artifact_inspector.facts.selection import parse_filters
from artifact_inspector.files.cache import Cache, open_cache
from artifact_inspector.files.records import MANIFEST

RECORDED = {"kernel": "scale", "hash": None, "grid": [7, 1, 1], "args": {"M": 512, "N": 64}}


@pytest.fixture
def cache(tmp_path: Path) -> Cache:
    entry = tmp_path / "ENTRY"
    entry.mkdir()
    (entry / "scale.ttir").write_text("module {\n}\n")
    (tmp_path / MANIFEST).write_text(json.dumps({"launches": [RECORDED]}))
    return open_cache(tmp_path)


def test_a_launch_on_record_is_taken_where_nothing_is_said(cache: Cache) -> None:
    (one,) = read_requests([], None, None, cache, "scale")
    assert (one.grid, one.arguments) == ((7, 1, 1), {"M": 512, "N": 64})


def test_an_argument_alone_is_another_one_for_the_launch_on_record(cache: Cache) -> None:
    (one,) = read_requests(["M=32"], None, None, cache, "scale")
    assert (one.grid, one.arguments) == ((7, 1, 1), {"M": 32, "N": 64})


def test_a_grid_alone_is_another_one_for_the_launch_on_record(cache: Cache) -> None:
    (one,) = read_requests([], "cdiv(M,BLOCK_M)", None, cache, "scale")
    assert one.grid[0] == "cdiv(M,BLOCK_M)"
    assert one.arguments == {"M": 512, "N": 64}


def test_a_grid_and_arguments_are_a_launch_of_their_own(cache: Cache) -> None:
    (one,) = read_requests(["M=32"], "3", None, cache, "scale")
    assert (one.grid, one.arguments) == ((3,), {"M": 32})


def test_a_grid_alone_is_enough_where_no_launch_is_on_record(cache: Cache) -> None:
    for grid in ("3", None):
        with pytest.raises(UsageError, match="No kernel here is called 'another'"):
            read_requests([], grid, None, cache, "another")
    (cache.root / MANIFEST).unlink()
    (one,) = read_requests([], "3", None, cache, "scale")
    assert (one.grid, one.arguments) == ((3,), {})
    with pytest.raises(UsageError, match="no grid was given"):
        read_requests([], None, None, cache, "scale")


def test_an_argument_that_no_launch_on_record_has_is_refused(cache: Cache) -> None:
    known = list(RECORDED["args"])
    with pytest.raises(UsageError, match="have no argument nowhere") as found:
        read_requests(["nowhere=4"], None, None, cache, "scale")
    assert all(name in str(found.value.remedy) for name in known)
    with pytest.raises(UsageError) as found:
        read_requests([f"{known[0]}x=4"], None, None, cache, "scale")
    assert found.value.remedy == f"Did you mean {known[0]}?"
    assert read_requests(["num_warps=8"], None, None, cache, "scale")[0].arguments["num_warps"] == 8


@pytest.fixture
def tuned(tmp_path: Path) -> Cache:
    """Of an autotuned program: a form that was launched for each of two GPUs, and one that was only tried."""
    launches = []
    for letter, arch, launched in (("a", 80, True), ("b", 90, True), ("c", 80, False)):
        entry = tmp_path / letter
        entry.mkdir()
        (entry / "scale.ttir").write_text("module {\n}\n")
        target = {"backend": "cuda", "arch": arch, "warp_size": 32}
        warps = 4 if launched else 8
        document = {"hash": letter * 64, "target": target, "name": "scale", "num_warps": warps}
        (entry / "scale.json").write_text(json.dumps(document))
        if launched:
            launches.append({**RECORDED, "hash": letter * 64, "target": f"sm_{arch}"})
    (tmp_path / MANIFEST).write_text(json.dumps({"launches": launches}))
    return open_cache(tmp_path)


def test_only_launches_of_the_target_that_is_asked_for_are_taken(tuned: Cache) -> None:
    (one,) = read_requests([], None, None, tuned, "scale", parse_filters(["sm_90"]))
    assert one.kernel_hash == "b" * 64


def test_a_form_that_was_never_launched_needs_a_grid_and_takes_the_arguments_of_one_that_was(
    tuned: Cache,
) -> None:
    only = parse_filters(["sm_80", "w8"])
    with pytest.raises(UsageError, match="other variants of this kernel: scale aaaaaa for sm_80, grid 7,1,1") as caught:
        read_requests([], None, None, tuned, "scale", only)
    assert "--grid" in str(caught.value.remedy)
    (one,) = read_requests([], "3", None, tuned, "scale", only)
    assert (one.kernel_hash, one.grid, one.arguments) == (None, (3,), {"M": 512, "N": 64})


def test_with_a_grid_every_form_can_be_put_in_order(tuned: Cache) -> None:
    wanted = parse_filters(["sm_80"])
    (one,) = read_requests([], "3", None, tuned, "scale", wanted, all_variants=True)
    assert one.kernel_hash is None
    (own,) = read_requests([], "3", None, tuned, "scale", wanted)
    assert own.kernel_hash == "a" * 64
