"""An entry goes into the cache whole or not at all: compiled aside, then moved in."""

from __future__ import annotations

import json
import os
import re
import shutil
import tempfile
from pathlib import Path

from artifact_inspector.files.scratch import is_alive

_PREFIX = ".compiling-"


def entry_metadata(directory: Path) -> Path | None:
    """The metadata of a complete entry: the file that Triton's group file lists, written last."""
    for group in directory.glob("__grp__*.json"):
        metadata = directory / group.name.removeprefix("__grp__")
        if metadata.is_file():
            return metadata
    return None


def staging_directory(out: Path) -> Path:
    """A new directory inside the cache, on the same disk; what dead processes left there goes."""
    sweep(out)
    return Path(tempfile.mkdtemp(prefix=f"{_PREFIX}{os.getpid()}-", dir=out))


def sweep(out: Path) -> None:
    """Remove from a cache what compiles of processes that have ended left beside the entries."""
    for left in out.glob(f"{_PREFIX}*"):
        match = re.match(rf"{re.escape(_PREFIX)}(\d+)-", left.name)
        if match and not is_alive(int(match[1])):
            shutil.rmtree(left, ignore_errors=True)


def publish(staging: Path, entry: str, out: Path) -> Path:
    """Move an entry from one cache to another, the file that makes it complete last.

    Triton's group file lists the others by absolute paths, which are rewritten.

    Returns:
        Its directory in `out`.
    """
    source, destination = staging / entry, out / entry
    destination.mkdir(exist_ok=True)
    files = sorted(source.iterdir(), key=lambda path: (path.name.startswith("__grp__"), path.name))
    for path in files:
        if path.is_dir() or path.name == "lock":
            continue
        if path.name.startswith("__grp__"):
            group = json.loads(path.read_text())
            group["child_paths"] = {name: str(destination / name) for name in group["child_paths"]}
            path.write_text(json.dumps(group))
        path.replace(destination / path.name)
    return destination
