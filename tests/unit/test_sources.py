"""Lines of the source are quoted only from the file that was compiled."""

from __future__ import annotations

from pathlib import Path

import pytest

from artifact_inspector.files.sources import find_source, source_line_reader
from artifact_inspector.model import Frame

TEXT = "import triton\n\n@triton.jit\ndef add(x, y):\n    z = load(x)\n"
PLACE = Frame("/src/lib/add.py", 3, 1)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "add.py").write_text(TEXT)
    return tmp_path


def test_a_line_is_that_of_the_file_that_was_compiled(tree: Path) -> None:
    quote = source_line_reader(PLACE, "add", tree)
    assert quote("add.py:5") == "z = load(x)"
    assert quote("add.py:5 via :9") == "z = load(x)"
    assert find_source(PLACE.file, tree) == "lib/add.py"


@pytest.mark.parametrize("where", ["other.py:5", "add.py:2", "add.py:99", "add.py:0", "add.py", ""])
def test_of_other_files_and_lines_nothing_is_quoted(tree: Path, where: str) -> None:
    assert source_line_reader(PLACE, "add", tree)(where) is None


def test_a_file_whose_kernel_stands_elsewhere_now_is_not_quoted(tree: Path) -> None:
    (tree / "lib" / "add.py").write_text("\n" * 40 + TEXT)
    assert source_line_reader(PLACE, "add", tree)("add.py:45") is None
    assert source_line_reader(None, "add", tree)("add.py:5") is None


def test_a_name_that_leaves_the_tree_is_not_followed(tree: Path) -> None:
    assert source_line_reader(Frame("../lib/add.py", 3, 1), "add", tree / "lib")("add.py:5") is None
