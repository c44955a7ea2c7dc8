"""Directories for a while: gone afterwards, and by a later run where a process was killed."""

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
"""Seconds after which nobody writes to one any more: a process of another container cannot be asked."""


def scratch_directory() -> tempfile.TemporaryDirectory[str]:
    """A private directory that is named after this process."""
    _sweep_once()
    return tempfile.TemporaryDirectory(prefix=f"{_PREFIX}{os.getpid()}-")


@cache
def _sweep_once() -> None:
    with suppress(OSError):
        sweep(Path(tempfile.gettempdir()))


def sweep(place: Path) -> None:
    """Remove what killed processes of this user left in a directory."""
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
    """Whether a process runs; true where that is not known."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        return True
    return True
