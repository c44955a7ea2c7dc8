"""Temporary directories, removed on exit, or by a later run if the process was killed."""

from __future__ import annotations

import os
import re
import shutil
import stat
import tempfile
import time
from contextlib import suppress
from functools import cache
from pathlib import Path

_PREFIX = "inspect-kernel-"
_MAX_AGE = 3600
"""Age in seconds after which a directory counts as unused: processes of other containers cannot be
checked."""


def scratch_directory() -> tempfile.TemporaryDirectory[str]:
    """A private directory whose name contains the process ID."""
    _remove_stale_once()
    return tempfile.TemporaryDirectory(prefix=f"{_PREFIX}{os.getpid()}-")


@cache
def _remove_stale_once() -> None:
    with suppress(OSError):
        remove_stale(Path(tempfile.gettempdir()))


def remove_stale(parent: Path) -> None:
    """Remove the directories of this user's dead processes."""
    for directory in parent.glob(f"{_PREFIX}*"):
        match = re.fullmatch(rf"{_PREFIX}(\d+)-\w+", directory.name)
        if match and _is_own_and_stale(directory) and not is_alive(int(match[1])):
            shutil.rmtree(directory, ignore_errors=True)


def _is_own_and_stale(directory: Path) -> bool:
    with suppress(OSError):
        stat_result = directory.lstat()
        is_own = not hasattr(os, "getuid") or stat_result.st_uid == os.getuid()
        return stat.S_ISDIR(stat_result.st_mode) and is_own and time.time() - stat_result.st_mtime > _MAX_AGE
    return False


def is_alive(pid: int) -> bool:
    """Whether a process runs; True if unknown."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        return True
    return True
