"""Where this tool keeps what it made for a user: by the XDG rules, as Triton compiles on Linux only."""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["cache_directory"]


def cache_directory() -> Path:
    """The user's cache directory for this tool; not made yet."""
    base = os.environ.get("XDG_CACHE_HOME", "").strip()
    return Path(base if base else Path.home() / ".cache", "artifact-inspector")
