"""Two files of one kind are the same to the byte, the same program, different, or not to be read."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from saved import FIXTURES, saved

from artifact_inspector.comparison.likeness import BINARY, Likeness, kinds_of, likeness_of
from artifact_inspector.files.cache import Artifact, open_cache

KERNEL = "3.6.0/sm_80/masked_add"


def edited(tmp_path: Path, suffix: str, old: str, new: str) -> Artifact:
    shutil.copytree(FIXTURES / KERNEL, tmp_path / "copy")
    (file,) = (tmp_path / "copy").rglob(f"*.{suffix}")
    text = file.read_bytes().replace(old.encode(), new.encode())
    assert text != file.read_bytes()
    file.write_bytes(text)
    (only,) = open_cache(tmp_path / "copy").entries
    return only


def test_files_are_named_by_their_kind_in_the_order_of_compilation() -> None:
    assert list(kinds_of(saved("3.6.0/sm_80/copy").artifact.files)) == [
        "ttir",
        "ttgir",
        "llir",
        "assembly",
        "sass",
        BINARY,
    ]
    assert kinds_of(saved("3.6.0/gfx942/masked_add").artifact.files)["assembly"] == "amdgcn"


@pytest.mark.parametrize(
    ("old", "new", "likeness"),
    [
        ("masked_add.py", "other.py", Likeness.ALIKE),
        ("%mask", "%guard", Likeness.ALIKE),
        ("arith.addf", "arith.mulf", Likeness.DIFFERENT),
    ],
)
def test_a_text_is_compared_but_for_names_and_places(tmp_path: Path, old: str, new: str, likeness: Likeness) -> None:
    assert likeness_of(saved(KERNEL).artifact, edited(tmp_path, "ttir", old, new), "ttir") is likeness


def test_the_same_bytes_are_identical_and_two_languages_different() -> None:
    nvidia, amd = saved(KERNEL).artifact, saved("3.6.0/gfx942/masked_add").artifact
    assert likeness_of(nvidia, nvidia, "ttir") is Likeness.IDENTICAL
    assert likeness_of(nvidia, amd, "assembly") is Likeness.DIFFERENT
