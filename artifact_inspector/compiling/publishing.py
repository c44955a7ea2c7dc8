"""Add entries to a Triton cache atomically: compile into a staging directory, then move the files."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from pathlib import Path

from artifact_inspector.files.scratch import owned_prefix, remove_stale

_PREFIX = ".compiling-"


class _CacheKeyError(Exception):
    """Raised out of a compile when Triton has computed the key and opens the cache; carries the key."""


def read_cache_key(compile: Callable[[], object]) -> str | None:
    """The key that Triton computes for a compile, which ends there; None if it opens no cache."""
    from triton.compiler import compiler  # only in processes that have Triton

    def stop(key: str) -> None:
        raise _CacheKeyError(key)

    manager, compiler.get_cache_manager = compiler.get_cache_manager, stop
    try:
        compile()
    except _CacheKeyError as key_error:
        return str(key_error)
    finally:
        compiler.get_cache_manager = manager
    return None


def entry_metadata(directory: Path) -> Path | None:
    """The metadata file of a complete entry, None for an incomplete one: its group file is written last."""
    for group in directory.glob("__grp__*.json"):
        metadata = directory / group.name.removeprefix("__grp__")
        if metadata.is_file():
            return metadata
    return None


def staging_directory(out: Path) -> Path:
    """A new staging directory inside the cache; those of processes that have ended are removed."""
    remove_stale_staging(out)
    return Path(tempfile.mkdtemp(prefix=owned_prefix(_PREFIX), dir=out))


def remove_stale_staging(out: Path) -> None:
    """Remove staging directories that processes left in a cache when they ended.

    Another container or host may share the cache: its directories stay for a day.
    """
    remove_stale(out, _PREFIX)


def publish(staging: Path, entry: str, out: Path) -> Path:
    """Move an entry from one cache to another, and its group file last, which makes it complete.

    The group file lists the other files by absolute paths, which are rewritten.

    Returns:
        The entry's directory in `out`.
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
