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
_OLD = 3600
"""Age in seconds after which a directory counts as unused: processes of other containers cannot be
checked."""


def scratch_directory() -> tempfile.TemporaryDirectory[str]:
    """A private directory whose name contains the process ID."""
    _sweep_once()
    return tempfile.TemporaryDirectory(prefix=f"{_PREFIX}{os.getpid()}-")


@cache
def _sweep_once() -> None:
    with suppress(OSError):
        sweep(Path(tempfile.gettempdir()))


def sweep(place: Path) -> None:
    """Remove the directories of this user's dead processes."""
    for left in place.glob(f"{_PREFIX}*"):
        match = re.fullmatch(rf"{_PREFIX}(\d+)-\w+", left.name)
        if match and _is_own_and_old(left) and not is_alive(int(match[1])):
            shutil.rmtree(left, ignore_errors=True)


def _is_own_and_old(left: Path) -> bool:
    with suppress(OSError):
        found = left.lstat()
        is_own = not hasattr(os, "getuid") or found.st_uid == os.getuid()
        return stat.S_ISDIR(found.st_mode) and is_own and time.time() - found.st_mtime > _OLD
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
