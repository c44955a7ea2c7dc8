"""Rows of the first directories of a large cache, on a terminal."""

import io
import sys

import pytest

from artifact_inspector.cli import _first_page
from tests.fuzz.many import make_cache


@pytest.fixture
def printed(monkeypatch, tmp_path):
    """What is printed of a cache of four kernels, if a large one has at least `fewest`."""
    make_cache(4, tmp_path)
    (tmp_path / ".compiling-1-x").mkdir()

    def show(fewest, stream):
        monkeypatch.setattr(_first_page, "FEWEST_DIRECTORIES", fewest)
        monkeypatch.setattr(_first_page, "_PAGE", 2)
        monkeypatch.setattr(sys, "stderr", stream)
        _first_page.print_first_page(tmp_path)
        return stream.getvalue()

    return show, tmp_path


def test_the_first_directories_by_name_are_listed(printed):
    show, root = printed
    text = show(4, io.StringIO())
    directories = sorted(path for path in root.iterdir() if path.name[0].isalnum())
    rows = [(next(path.glob("*.ttir")).stem, next(path.glob("*.json")).read_text()) for path in directories[:2]]
    targets = ["sm_90" if '"arch": 90' in metadata else "sm_80" for _, metadata in rows]
    assert "The first 2 of 4 directories" in text
    listed = [line for line in text.splitlines() if "sm_" in line]
    assert sorted((line.split()[0], next(x for x in targets if x in line)) for line in listed) == sorted(
        (stem, target) for (stem, _), target in zip(rows, targets, strict=True)
    )


def test_a_small_cache_gets_none(printed):
    show, _ = printed
    assert show(5, io.StringIO()) == ""
