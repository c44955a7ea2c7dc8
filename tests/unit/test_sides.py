"""What names a side of a comparison: a cache, a kernel of one, a target, a version."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest
from saved import FIXTURES

from artifact_inspector.comparison.sides import CacheSelector, narrow_side, parse_cache_selector
from artifact_inspector.errors import UsageError
from artifact_inspector.facts.selection import parse_filters, select_kernels
from artifact_inspector.files.cache import Artifact, Cache, open_cache
from artifact_inspector.model import TritonVersion

EVERY = open_cache(FIXTURES / "3.6.0")


@pytest.mark.parametrize(
    ("text", "directory", "name"),
    [
        ("cache", "cache", None),
        ("some/cache:gemv", "some/cache", "gemv"),
        ("cache:1c20507", "cache", "1c20507"),
        ("a:b:gemv", "a:b", "gemv"),
        ("cache:", "cache:", None),
        (":gemv", ":gemv", None),
        ("a:b/c", "a:b/c", None),
        ("C:\\cache", "C:\\cache", None),
        ("C:cache", "C:cache", None),
        ("D:\\cache:gemv", "D:\\cache", "gemv"),
    ],
)
def test_a_name_stands_behind_the_last_colon(text: str, directory: str, name: str | None) -> None:
    assert parse_cache_selector(text) == CacheSelector(Path(directory), name)


@pytest.mark.skipif(os.name == "nt", reason="Windows has no colons in names")
def test_a_directory_that_bears_the_whole_as_its_name_is_meant(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert parse_cache_selector("some:cache") == CacheSelector(Path("some"), "cache")
    (tmp_path / "some:cache").mkdir()
    assert parse_cache_selector("some:cache") == CacheSelector(Path("some:cache"), None)


def test_a_letter_is_a_drive_unless_there_is_such_a_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert parse_cache_selector("a:gemv") == CacheSelector(Path("a:gemv"), None)
    (tmp_path / "a").mkdir()
    assert parse_cache_selector("a:gemv") == CacheSelector(Path("a"), "gemv")


def test_a_tilde_is_the_home_directory(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    assert parse_cache_selector("~/cache:gemv") == CacheSelector(tmp_path / "cache", "gemv")
    (tmp_path / "cache").mkdir()
    assert parse_cache_selector("~/cache") == CacheSelector(tmp_path / "cache", None)


def narrowed(*selectors: str, name: str | None = None, cache: Cache = EVERY) -> tuple[Artifact, ...]:
    return narrow_side(cache, CacheSelector(Path(), name), selectors, lambda c, word: select_kernels(c, word, []))


def test_nothing_said_leaves_all() -> None:
    assert narrowed() == EVERY.entries


def test_a_gpu_is_its_architecture() -> None:
    assert {str(x.target) for x in narrowed("T4")} == {"sm_75"}
    assert narrowed("T4") == narrowed("sm_75")
    assert {str(x.target) for x in narrowed("MI300X")} == {"gfx942"}


def test_selectors_are_taken_together() -> None:
    (only,) = narrowed("sm_80", "softmax")
    assert "softmax" in only.display_name
    assert str(only.target) == "sm_80"
    assert narrowed("softmax", "sm_80") == narrowed("sm_80", name="softmax") == (only,)
    assert narrowed(only.hash[:12]) == (only,)


@pytest.mark.parametrize("word", ["3.6.0", "3.6"])
def test_a_version_is_that_of_the_caches_kernels(word: str) -> None:
    assert narrowed(word) == EVERY.entries


@pytest.mark.parametrize(
    ("told", "word", "fits"),
    [
        ("3.0/3.1", "3.0.0", True),
        ("3.0/3.1", "3.1.0", True),
        ("3.0/3.1", "3.2.0", False),
        ("3.2", "3.2.0", True),
        ("3.2", "3.2.1", True),
        ("3.2.0", "3.2.1", False),
        ("3.10.0", "3.1", False),
        ("3.1", "3.10.0", False),
        ("3.6.0+git1234", "3.6.0", False),
        (None, "3.2.0", False),
    ],
)
def test_an_older_cache_tells_no_more_than_its_minor_version(told: str | None, word: str, fits: bool) -> None:
    cache = replace(EVERY, entries=(replace(EVERY.entries[0], triton_version=told and TritonVersion(told)),))
    if fits:
        assert narrowed(word, cache=cache) == cache.entries
    else:
        with pytest.raises(UsageError, match=rf"No kernel here is of Triton {word}\."):
            narrowed(word, cache=cache)


@pytest.mark.parametrize(
    ("selectors", "message", "remedy"),
    [
        (["2.1.0"], "No kernel here is of Triton 2.1.0.", "Choose from 3.6.0."),
        (["V100"], "No kernel here is for sm_70", "sm_75"),
        (["sm_75", "sm_80"], "No kernel here is for sm_80", "Choose from sm_75."),
        (["nonsense"], "nonsense", ""),
        (["flash_attention", "softmax"], "softmax", ""),
    ],
)
def test_a_side_that_is_left_without_kernels_is_refused_with_what_there_is(
    selectors: list[str], message: str, remedy: str
) -> None:
    with pytest.raises(UsageError) as raised:
        narrowed(*selectors)
    assert message in raised.value.message
    assert remedy in (raised.value.remedy or "")


@pytest.mark.parametrize(("words", "left"), [(["w4"], {4}), (["warps=4"], {4}), (["num_warps=8"], {8})])
def test_warps_choose(words: list[str], left: set[int]) -> None:
    assert {x.num_warps for x in narrowed(*words)} == left


def test_stages_a_tile_and_an_option_choose() -> None:
    assert {x.num_stages for x in narrowed("s4")} == {4}
    assert {x.display_name for x in narrowed("128x32x32", "sm_80")} == {"matmul_kernel"}
    assert narrowed("128×32×32") == narrowed("128x32x32")
    assert narrowed("enable_fp_fusion=true") != ()


def test_a_constant_of_our_own_record_chooses() -> None:
    entries = tuple(replace(x, constants={"GROUP_M": n}) for n, x in enumerate(EVERY.entries[:4]))
    (only,) = narrowed("GROUP_M=2", cache=replace(EVERY, entries=entries))
    assert only is entries[2]


def test_what_is_of_one_kind_is_enough_and_kinds_are_taken_together() -> None:
    found = select_kernels(EVERY, None, parse_filters(["sm_75,sm_80", "s4"]))
    assert {(str(x.target), x.num_stages) for x in found} == {("sm_75", 4), ("sm_80", 4)}


def test_what_there_is_stands_in_the_refusal() -> None:
    with pytest.raises(UsageError) as raised:
        select_kernels(EVERY, "softmax", parse_filters(["w3"]))
    assert raised.value.message == "No kernel here has 3 warps."
    assert "4 (" in (raised.value.remedy or "")
