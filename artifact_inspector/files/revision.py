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
from artifact_inspector.files.scratch import prefix_beside, scratch_directory
from artifact_inspector.files.tools import find_on_path

MAX_REVISIONS = 8
"""Maximum number of revisions; the least recently used is removed first."""
TIMEOUT = 60.0
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

    def resolve(self, path: Path) -> Path:
        """The path of a file of the checkout at this revision.

        Raises:
            UsageError: it did not exist.
        """
        resolved = self.tree / path.resolve().relative_to(self.top)
        if not resolved.is_file():
            name = path.resolve().relative_to(self.top).as_posix()
            remedy = "Specify a later revision, or the path that the file had then."
            raise UsageError(f"{name} is not in {self.commit[:12]}.", remedy)
        return resolved


def read_revision(file: Path, revision: str, directory: Path) -> Revision:
    """The Python files around a file at a revision.

    Args:
        revision: a revision in git's syntax: `HEAD~1`, a branch, a hash.
        directory: the directory that holds such revisions, one for each commit; created if missing.

    Raises:
        UsageError: git is not installed, the file is in no checkout, or the revision does not exist.
    """
    git = find_on_path(["git"])
    remedy = "Compare with a file or a cache directory."
    if git is None:
        raise UsageError(f"git, which is needed to read {revision}, is not installed.", remedy)
    file_directory = file.resolve().parent
    top = _git_output(git, file_directory, "rev-parse", "--show-toplevel")
    if top is None:
        raise UsageError(f"{file} is not in a git checkout, so revision {revision} does not exist.", remedy)
    options = ("--verify", "--quiet", "--end-of-options")
    commit = _git_output(git, file_directory, "rev-parse", *options, f"{revision}^{{commit}}")
    if commit is None:
        remedy = "Specify one of them: HEAD~1, other.py, or the directory of a Triton cache."
        raise UsageError(f"{revision} is not a git revision, a file or a cache directory.", remedy)
    tree = directory / commit
    if tree.is_dir():
        os.utime(tree)
    else:
        _write_tree(git, Path(top), commit, tree)
        trees = sorted(
            (path for path in directory.iterdir() if path.name[0] != "."), key=lambda path: path.stat().st_mtime
        )
        for path in trees[:-MAX_REVISIONS]:
            shutil.rmtree(path, ignore_errors=True)
    return Revision(commit, Path(top), tree)


def _write_tree(git: Path, top: Path, commit: str, tree: Path) -> None:
    """Write the tree completely or not at all: it is renamed when complete."""
    tree.parent.mkdir(parents=True, exist_ok=True)
    with scratch_directory() as scratch:
        settings = {"GIT_INDEX_FILE": str(Path(scratch, "index"))}
        listed = _run_git(git, top, ["ls-tree", "-r", "-z", "--name-only", commit], {}).stdout
        names = [name for name in listed.split(b"\0") if name.endswith(b".py")]
        temporary_tree = Path(tempfile.mkdtemp(prefix=prefix_beside(tree), dir=tree.parent))
        try:
            _run_git(git, top, ["read-tree", commit], settings)
            stdin = b"".join(name + b"\0" for name in names)
            options = ["-q", "-z", "--stdin", f"--prefix={temporary_tree}/"]
            _run_git(git, top, ["checkout-index", *options], settings, stdin)
            temporary_tree.rename(tree)
        except OSError:
            if not tree.is_dir():  # another process may have been faster
                raise
        finally:
            shutil.rmtree(temporary_tree, ignore_errors=True)


def _git_output(git: Path, directory: Path, *arguments: str) -> str | None:
    """The output of git, without the final newline; None if it fails."""
    process = _run_git(git, directory, arguments, {}, may_fail=True)
    return None if process.returncode else os.fsdecode(process.stdout).rstrip("\n")


def _run_git(
    git: Path,
    directory: Path,
    arguments: Sequence[str],
    settings: dict[str, str],
    stdin: bytes = b"",
    *,
    may_fail: bool = False,
) -> subprocess.CompletedProcess[bytes]:
    try:
        environment = {**os.environ, **settings, "GIT_OPTIONAL_LOCKS": "0"}
        command = [str(git), "-C", str(directory), *arguments]
        process = subprocess.run(
            command, env=environment, input=stdin, capture_output=True, check=False, timeout=TIMEOUT
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise UsageError(f"git {arguments[0]} failed: {error}.") from None
    if process.returncode and not may_fail:
        error_lines = process.stderr.decode(errors="replace").strip().splitlines()
        raise UsageError(f"git {arguments[0]} failed: {error_lines[-1] if error_lines else process.returncode}.")
    return process
