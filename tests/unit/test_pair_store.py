"""What is kept of comparisons: a repeated one reads no kernel, gives equal results, and notices changed files."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from saved import FIXTURES

from artifact_inspector.comparison.corpus import Corpus, compare_corpora
from artifact_inspector.comparison.pair_store import PairStore
from artifact_inspector.facts.inspection import inspect_artifact
from artifact_inspector.facts.kernel import KernelFacts
from artifact_inspector.files.artifact import Artifact
from artifact_inspector.files.cache import open_cache
from artifact_inspector.files.index import Index

OLD, NEW = FIXTURES / "3.6.0" / "sm_80" / "gemv_splitk", FIXTURES / "3.9.0" / "sm_80" / "gemv_splitk"


def refuse(artifact: Artifact) -> KernelFacts:
    raise AssertionError(f"{artifact.display_name} was read")


@pytest.fixture
def compare(tmp_path: Path) -> Callable[..., Corpus]:
    old, new = (Path(shutil.copytree(source, tmp_path / name)) for source, name in ((OLD, "old"), (NEW, "new")))

    def compare_stored(inspect: Callable[[Artifact], KernelFacts], *, stores: bool = True) -> Corpus:
        sides = [open_cache(side).entries for side in (old, new)]
        if not stores:
            return compare_corpora(*sides, inspect)
        with PairStore((*sides[0], *sides[1]), lambda: Index(tmp_path / "index.sqlite3", pytest.fail)) as store:
            return compare_corpora(*sides, inspect, find_program=store.find_program, compare=store.compare)

    return compare_stored


def test_a_repeated_comparison_reads_no_kernel_and_is_equal(compare: Callable[..., Corpus]) -> None:
    (plain,) = compare(inspect_artifact, stores=False).changes
    (first,) = compare(inspect_artifact).changes
    (again,) = compare(refuse).changes
    assert plain.headline is not None
    for change in (first, again):
        assert change.facts == plain.facts
        assert replace(change, left=plain.left, right=plain.right) == replace(
            plain, pair=None, compared_facts=plain.facts
        )
        assert str(change.left) == str(plain.left)


def test_a_changed_file_is_compared_again(compare: Callable[..., Corpus], tmp_path: Path) -> None:
    compare(inspect_artifact)
    (ptx,) = (tmp_path / "new").rglob("*.ptx")
    ptx.write_text(ptx.read_text().replace("bar.sync", "bar.sync 	0; bar.sync", 1))
    with pytest.raises(AssertionError, match="was read"):
        compare(refuse)
