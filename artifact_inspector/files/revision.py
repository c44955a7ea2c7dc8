"""The Python files of a checkout as they were at a revision, in a directory of our own.

git lists and writes them; nothing in the checkout or in its index is touched. What is no Python file is left
out, for a kernel is imported from there, and no data is. Submodules are left out too.

Source: git's manual, `read-tree` and `checkout-index`; GIT_INDEX_FILE for an index of our own.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from artifact_inspector.errors import UsageError
from artifact_inspector.files.scratch import scratch_directory
from artifact_inspector.files.tools import find_on_path

MOST_KEPT = 8
"""Revisions; the one that was used longest ago goes first."""
SECONDS = 60.0
"""That one call of git may take."""


@dataclass(frozen=True, slots=True)
class Revision:
    """Where the files of a checkout lie as they were."""

    commit: str
    """Its full hash."""
    top: Path
    """Of the checkout."""
    tree: Path
    """The directory that stands for `top`."""

    def moved(self, path: Path) -> Path:
        """Where a file of the checkout lies in this state of it.

        Raises:
            UsageError: it was not there.
        """
        place = self.tree / path.resolve().relative_to(self.top)
        if not place.is_file():
            name = path.resolve().relative_to(self.top).as_posix()
            raise UsageError(
                f"{name} is not in {self.commit[:12]}.",
                "Name a later revision, or the file that it was then.",
            )
        return place


def read_revision(file: Path, word: str, keep: Path) -> Revision:
    """The Python files around a file, as they were at a revision.

    Args:
        file: in a checkout.
        word: as git reads it: `HEAD~1`, a branch, a hash.
        keep: the directory that holds such states, one for each commit; made where it is missing.

    Raises:
        UsageError: there is no git, no checkout around the file, or no such revision.
    """
    git = find_on_path(["git"])
    if git is None:
        raise UsageError(f"There is no git to ask for {word}.", "Compare with a file or a cache directory.")
    here = file.resolve().parent
    top = _said(git, here, "rev-parse", "--show-toplevel")
    if top is None:
        raise UsageError(
            f"{file} is in no git checkout, so there is no {word} of it.",
            "Compare with a file or a cache directory.",
        )
    commit = _said(git, here, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{word}^{{commit}}")
    if commit is None:
        raise UsageError(
            f"{word} is no revision here, no file and no cache directory.",
            "Name one of them: HEAD~1, other.py, or the directory of a Triton cache.",
        )
    tree = keep / commit
    if tree.is_dir():
        os.utime(tree)
    else:
        _write_tree(git, Path(top), commit, tree)
        _forget_oldest(keep)
    return Revision(commit, Path(top), tree)


def _write_tree(git: Path, top: Path, commit: str, tree: Path) -> None:
    """All of it, or nothing: it takes its name when it is whole."""
    tree.parent.mkdir(parents=True, exist_ok=True)
    with scratch_directory() as scratch:
        own = {"GIT_INDEX_FILE": str(Path(scratch, "index"))}
        listed = _run(git, top, ["ls-tree", "-r", "-z", "--name-only", commit], {}).stdout
        names = [name for name in listed.split(b"\0") if name.endswith(b".py")]
        made = Path(tempfile.mkdtemp(prefix=f".{commit[:12]}-", dir=tree.parent))
        try:
            _run(git, top, ["read-tree", commit], own)
            asked = b"".join(name + b"\0" for name in names)
            _run(git, top, ["checkout-index", "-q", "-z", "--stdin", f"--prefix={made}/"], own, asked)
            made.rename(tree)
        except OSError:
            if not tree.is_dir():  # somebody else may have been faster
                raise
        finally:
            shutil.rmtree(made, ignore_errors=True)


def _forget_oldest(keep: Path) -> None:
    kept = sorted(
        (path for path in keep.iterdir() if path.name[0] != "."), key=lambda path: path.stat().st_mtime
    )
    for path in kept[:-MOST_KEPT]:
        shutil.rmtree(path, ignore_errors=True)


def _said(git: Path, directory: Path, *words: str) -> str | None:
    """What git says, without the end of the line; None where it refuses."""
    answer = _run(git, directory, words, {}, may_fail=True)
    return None if answer.returncode else os.fsdecode(answer.stdout).rstrip("\n")


def _run(
    git: Path,
    directory: Path,
    words: Sequence[str],
    settings: dict[str, str],
    given: bytes = b"",
    *,
    may_fail: bool = False,
) -> subprocess.CompletedProcess[bytes]:
    try:
        answer = subprocess.run(
            [str(git), "-C", str(directory), *words],
            env={**os.environ, **settings, "GIT_OPTIONAL_LOCKS": "0"},
            input=given,
            capture_output=True,
            check=False,
            timeout=SECONDS,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise UsageError(f"git {words[0]} did not answer: {error}.") from None
    if answer.returncode and not may_fail:
        said = answer.stderr.decode(errors="replace").strip().splitlines()
        raise UsageError(f"git {words[0]} failed: {said[-1] if said else answer.returncode}.")
    return answer
