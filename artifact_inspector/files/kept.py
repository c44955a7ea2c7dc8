"""Where what is found once is kept for the next run: the user's cache directory."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from artifact_inspector.errors import CacheError
from artifact_inspector.files.writing import write_bytes


def user_cache() -> Path | None:
    """The directory of this tool in the user's cache directory, not made yet; None without a home.

    Source: XDG Base Directory Specification; a path that is not absolute is to be ignored.
    """
    named = os.environ.get("XDG_CACHE_HOME", "").strip()
    try:
        root = Path(named) if named and Path(named).is_absolute() else Path.home() / ".cache"
    except RuntimeError:
        return None
    return root / "artifact-inspector"


def is_off(switch: str) -> bool:
    """Whether an environment variable says that nothing is to be kept, nor taken from there."""
    return os.environ.get(switch, "").lower() == "off"


def keep(path: Path, content: bytes) -> None:
    """Write a file that nobody else may read; a directory that cannot be written is no fault."""
    with contextlib.suppress(OSError, CacheError):
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_bytes(path, content)
