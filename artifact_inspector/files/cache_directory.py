"""The user's cache directory, where data is kept between runs."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from artifact_inspector.errors import CacheError
from artifact_inspector.files.writer import write_bytes


def user_cache() -> Path | None:
    """The tool's directory in the user's cache directory, not created yet; None without a home directory.

    Source: XDG Base Directory Specification; a relative path must be ignored.
    """
    named = os.environ.get("XDG_CACHE_HOME", "").strip()
    try:
        root = Path(named) if named and Path(named).is_absolute() else Path.home() / ".cache"
    except RuntimeError:
        return None
    return root / "artifact-inspector"


def is_disabled(variable: str) -> bool:
    """Whether an environment variable disables a cache for reading and writing."""
    return os.environ.get(variable, "").lower() == "off"


def write_private(path: Path, content: bytes) -> None:
    """Write a private file; ignores a directory that cannot be written."""
    with contextlib.suppress(OSError, CacheError):
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_bytes(path, content)
