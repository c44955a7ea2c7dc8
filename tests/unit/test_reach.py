"""A change reached the code where the code that runs differs, and nowhere else."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from saved import FIXTURES, saved

from artifact_inspector.comparison.corpus import compare_candidates
from artifact_inspector.comparison.likeness import Likeness
from artifact_inspector.comparison.matching import Axis, Candidate, Difference, Facet
from artifact_inspector.comparison.reach import Reach, find_reach
from artifact_inspector.facts.inspection import inspect_artifact
from artifact_inspector.files.cache import Artifact, open_cache
from artifact_inspector.report.change_effect import describe_effect

NVIDIA, AMD = "3.6.0/sm_80/matmul_grouped", "3.6.0/gfx942/matmul_grouped"


def entry(path: Path) -> Artifact:
    (only,) = open_cache(path).entries
    return only


def copy(kernel: str, there: Path) -> Path:
    shutil.copytree(FIXTURES / kernel, there)
    return there


def edit(directory: Path, suffix: str, old: str, new: str) -> None:
    (file,) = directory.rglob(f"*.{suffix}")
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new))


def reach(before: Path, after: Path) -> Reach:
    return find_reach(entry(before), entry(after), inspect_artifact)


@pytest.mark.parametrize("kernel", [NVIDIA, AMD])
def test_a_kernel_against_itself_is_the_same_from_ttir_on(kernel: str) -> None:
    found = reach(FIXTURES / kernel, FIXTURES / kernel)
    assert found.reached is False
    assert {one.likeness for one in found.files} == {Likeness.IDENTICAL}
    assert describe_effect(found) == "No change: TTIR and all later stages are identical."


def test_places_and_names_of_files_are_no_change(tmp_path: Path) -> None:
    copied = copy(NVIDIA, tmp_path / "copy")
    (file,) = copied.rglob("*.ttir")
    source = file.read_text().partition('loc("')[2].partition('"')[0]
    for suffix in ("ttir", "ttgir", "llir"):
        edit(copied, suffix, Path(source).name, "elsewhere.py")
    found = reach(FIXTURES / NVIDIA, copied)
    assert found.files[0].likeness is Likeness.ALIKE
    assert found.reached is False


def test_a_change_that_the_compiler_undoes_names_the_stage_from_which_on_all_is_the_same(tmp_path: Path) -> None:
    copied = copy(NVIDIA, tmp_path / "copy")
    edit(copied, "ttir", "tt.divisibility = 16", "tt.divisibility = 32")
    found = reach(FIXTURES / NVIDIA, copied)
    assert found.first_difference is not None
    assert found.first_difference.suffix == "ttir"
    assert describe_effect(found) == "No change: TTGIR and all later stages are identical."


def test_another_tile_is_neither_better_nor_worse_where_nothing_decides() -> None:
    found = reach(FIXTURES / NVIDIA, FIXTURES / NVIDIA)
    change = compare_candidates(
        Candidate(entry(FIXTURES / NVIDIA)), Candidate(entry(FIXTURES / NVIDIA)), inspect_artifact
    )
    tiles = Difference(Axis.CONFIG, Facet.TILES, ("load 256",), ("load 1024",))
    unknown = replace(found, launch=("shared",), change=replace(change, differences=(tiles,)))
    assert describe_effect(unknown).startswith(
        "Changed, better or worse unknown, since the tiles differ: the launch changed"
    )


def test_other_code_is_told_with_the_facts_that_differ() -> None:
    found = reach(FIXTURES / "3.6.0/sm_75/matmul_grouped", FIXTURES / NVIDIA)
    assert found.reached is True
    assert describe_effect(found).startswith("The code changed (from TTGIR on): ")
    assert "MMA" in describe_effect(found)


def test_a_launch_that_takes_more_shared_memory_is_another_one_though_the_code_is_the_same(tmp_path: Path) -> None:
    copied = copy(NVIDIA, tmp_path / "copy")
    (file,) = copied.rglob("matmul_kernel.json")
    metadata = json.loads(file.read_text())
    file.write_text(json.dumps({**metadata, "shared": metadata["shared"] + 1024}))
    found = reach(FIXTURES / NVIDIA, copied)
    assert found.launch == ("shared",)
    assert found.reached is True
    assert describe_effect(found).startswith("The launch changed: ")


def test_nothing_is_said_where_nothing_is_there_to_compare() -> None:
    kernel = saved(NVIDIA).artifact
    bare = replace(kernel, files={"ttir": kernel.files["ttir"]})
    other = replace(kernel, files={"cubin": kernel.files["cubin"]})
    found = find_reach(bare, other, inspect_artifact)
    assert found.reached is None
    assert describe_effect(found).startswith("Unknown")


def test_a_file_that_cannot_be_read_is_no_proof_of_sameness(tmp_path: Path) -> None:
    copied = copy(NVIDIA, tmp_path / "copy")
    (file,) = copied.rglob("*.cubin")
    file.write_bytes(b"no ELF")
    assert reach(FIXTURES / NVIDIA, copied).reached is None


def test_binaries_of_two_names_are_not_compared() -> None:
    kernel = saved(NVIDIA).artifact
    found = find_reach(kernel, replace(kernel, name="other"), inspect_artifact)
    assert "binary" not in {one.kind for one in found.files}
    assert any("their binaries were not compared" in note for note in found.notes)
