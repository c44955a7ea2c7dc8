"""The Python files of a checkout as they were, and nothing of the checkout touched."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from artifact_inspector.errors import UsageError
from artifact_inspector.files.revision import MAX_REVISIONS, read_revision

needs_git = pytest.mark.skipif(shutil.which("git") is None, reason="There is no git.")


def git(directory: Path, *words: str) -> str:
    who = ["-c", "user.name=a", "-c", "user.email=a@b"]
    return subprocess.run(
        ["git", "-C", str(directory), *who, *words], check=True, capture_output=True, encoding="utf-8"
    ).stdout.strip()


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    top = tmp_path / "checkout"
    (top / "inner").mkdir(parents=True)
    git(top, "init", "-q")
    (top / "inner" / "kernel.py").write_text("old = 1\n")
    (top / "inner" / "beside it.py").write_text("helper = 1\n")
    (top / "inner" / "weights.bin").write_bytes(b"data")
    git(top, "add", "-A")
    git(top, "commit", "-qm", "one")
    (top / "inner" / "kernel.py").write_text("new = 2\n")
    return top


@needs_git
def test_a_file_and_its_neighbours_are_there_as_they_were(checkout: Path, tmp_path: Path) -> None:
    was = read_revision(checkout / "inner" / "kernel.py", "HEAD", tmp_path / "kept")
    assert was.resolve(checkout / "inner" / "kernel.py").read_text() == "old = 1\n"
    assert (was.tree / "inner" / "beside it.py").is_file()
    assert not (was.tree / "inner" / "weights.bin").exists()
    assert (checkout / "inner" / "kernel.py").read_text() == "new = 2\n"
    assert git(checkout, "status", "--porcelain") == "M inner/kernel.py"


@needs_git
def test_a_revision_is_written_once_and_the_oldest_is_forgotten(checkout: Path, tmp_path: Path) -> None:
    file = checkout / "inner" / "kernel.py"
    first = read_revision(file, "HEAD", tmp_path / "kept")
    (first.tree / "mark").touch()
    assert read_revision(file, first.commit[:10], tmp_path / "kept").tree == first.tree
    assert (first.tree / "mark").exists()
    for number in range(MAX_REVISIONS):
        git(checkout, "commit", "-q", "--allow-empty", "-m", str(number))
        read_revision(file, "HEAD", tmp_path / "kept")
    assert len(list((tmp_path / "kept").iterdir())) == MAX_REVISIONS


@needs_git
@pytest.mark.parametrize("word", ["nonesuch", "--help", "HEAD~9", "-q"])
def test_what_git_does_not_know_is_refused_with_what_would_be_known(checkout: Path, tmp_path: Path, word: str) -> None:
    with pytest.raises(UsageError, match="is not a git revision"):
        read_revision(checkout / "inner" / "kernel.py", word, tmp_path / "kept")


@needs_git
def test_a_file_that_was_not_there_is_refused(checkout: Path, tmp_path: Path) -> None:
    (checkout / "fresh.py").write_text("")
    was = read_revision(checkout / "fresh.py", "HEAD", tmp_path / "kept")
    with pytest.raises(UsageError, match=r"fresh\.py is not in"):
        was.resolve(checkout / "fresh.py")


@needs_git
def test_a_file_outside_of_any_checkout_has_no_revision(tmp_path: Path) -> None:
    (tmp_path / "alone.py").touch()
    with pytest.raises(UsageError, match="is not in a git checkout"):
        read_revision(tmp_path / "alone.py", "HEAD", tmp_path / "kept")
