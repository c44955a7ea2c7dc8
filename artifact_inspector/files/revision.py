"""Checks out the Python files of a git revision into the tool's own directory.

The user's checkout and its index are not touched. Other files and submodules are left out: kernels are only
imported from there.

Source: git's manual, `read-tree` and `checkout-index`; GIT_INDEX_FILE for a separate index.
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
"""Maximum number of revisions; the least recently used is removed first."""
SECONDS = 60.0
"""Timeout of one git command."""


@dataclass(frozen=True, slots=True)
class Revision:
    """The files of a checkout at a revision."""

    commit: str
    """Full hash."""
    top: Path
    """Top directory of the user's checkout."""
    tree: Path
    """The directory that corresponds to `top`."""

    def moved(self, path: Path) -> Path:
        """The path of a file of the checkout at this revision.

        Raises:
            UsageError: it did not exist.
        """
        place = self.tree / path.resolve().relative_to(self.top)
        if not place.is_file():
            name = path.resolve().relative_to(self.top).as_posix()
            raise UsageError(
                f"{name} is not in {self.commit[:12]}.",
                "Specify a later revision, or the path that the file had then.",
            )
        return place


def read_revision(file: Path, word: str, keep: Path) -> Revision:
    """The Python files around a file at a revision.

    Args:
        file: a file in a checkout.
        word: a revision in git's syntax: `HEAD~1`, a branch, a hash.
        keep: the directory that holds such revisions, one for each commit; created if missing.

    Raises:
        UsageError: git is not installed, the file is in no checkout, or the revision does not exist.
    """
    git = find_on_path(["git"])
    if git is None:
        raise UsageError(
            f"git, which is needed to read {word}, is not installed.",
            "Compare with a file or a cache directory.",
        )
    here = file.resolve().parent
    top = _said(git, here, "rev-parse", "--show-toplevel")
    if top is None:
        raise UsageError(
            f"{file} is not in a git checkout, so revision {word} does not exist.",
            "Compare with a file or a cache directory.",
        )
    commit = _said(git, here, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{word}^{{commit}}")
    if commit is None:
        raise UsageError(
            f"{word} is not a git revision, a file or a cache directory.",
            "Specify one of them: HEAD~1, other.py, or the directory of a Triton cache.",
        )
    tree = keep / commit
    if tree.is_dir():
        os.utime(tree)
    else:
        _write_tree(git, Path(top), commit, tree)
        _forget_oldest(keep)
    return Revision(commit, Path(top), tree)


def _write_tree(git: Path, top: Path, commit: str, tree: Path) -> None:
    """Write the tree completely or not at all: it is renamed when complete."""
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
            if not tree.is_dir():  # another process may have been faster
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
    """The output of git, without the final newline; None if it fails."""
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
        raise UsageError(f"git {words[0]} failed: {error}.") from None
    if answer.returncode and not may_fail:
        said = answer.stderr.decode(errors="replace").strip().splitlines()
        raise UsageError(f"git {words[0]} failed: {said[-1] if said else answer.returncode}.")
    return answer
