"""Which launches a command is asked for: a file's, the command line's, or those on record beside a cache."""

import json
from pathlib import Path

import pytest

from artifact_inspector.cli._launches import read_requests
from artifact_inspector.compiling.ask.manifest import MANIFEST
from artifact_inspector.errors import UsageError
from artifact_inspector.files.cache import Cache, open_cache

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
    (one,) = read_requests([], "3", None, cache, "another")
    assert (one.grid, one.arguments) == ((3,), {})
    with pytest.raises(UsageError, match="needs a grid"):
        read_requests([], None, None, cache, "another")
