"""Temporary files and directories, removed on exit, or by a later run if the process was killed.

Their names have the owner: host, boot, PID namespace and process ID. A run removes what belongs to owners
that have ended. Where it cannot know (another host or container), it waits a day.
"""

from __future__ import annotations

import hashlib
import os
import platform
import re
import shutil
import stat
import tempfile
import time
from contextlib import suppress
from functools import cache
from pathlib import Path

_PREFIX = "inspect-kernel-"
_BESIDE = ".writing-"
"""Prefix of what is written beside its destination, and moved there when it is complete."""
_MAX_AGE = 24 * 3600
"""Age in seconds after which a directory of another host or container counts as unused."""
_OWNER = re.compile(r"(?:(?P<machine>[A-Za-z0-9]+\.[0-9a-f]{8})-)?(?P<pid>\d{1,10})-\w+", re.ASCII)


def scratch_directory() -> tempfile.TemporaryDirectory[str]:
    """A private directory whose name contains its owner."""
    parent = tempfile.gettempdir()
    _remove_stale_once(Path(parent), _PREFIX)
    return tempfile.TemporaryDirectory(prefix=owned_prefix(_PREFIX), dir=parent)


def prefix_beside(destination: Path) -> str:
    """The beginning of the name of what takes a path's place when it is complete, in the same directory."""
    _remove_stale_once(destination.parent, _BESIDE)
    return owned_prefix(_BESIDE)


def is_own_scratch(path: Path) -> bool:
    """Whether a path without links is inside a temporary directory of this process."""
    parent = Path(os.path.realpath(tempfile.gettempdir()))
    names = path.relative_to(parent).parts if path.is_relative_to(parent) else ()
    return bool(names) and names[0].startswith(owned_prefix(_PREFIX))


def owned_prefix(prefix: str) -> str:
    """The beginning of the name of a temporary file or directory of this process."""
    return f"{prefix}{machine_name()}-{os.getpid()}-"


@cache
def machine_name() -> str:
    """What process IDs refer to: the host's name, and a digest of its boot and of the PID namespace."""
    host = re.sub(r"[^A-Za-z0-9]", "", platform.node())[:24] or "host"
    boot, namespace = "", ""
    with suppress(OSError):
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    with suppress(OSError):
        namespace = os.readlink("/proc/self/ns/pid")  # noqa: PTH115 - not a path
    return f"{host}.{hashlib.sha256(f'{boot} {namespace}'.encode()).hexdigest()[:8]}"


@cache
def _remove_stale_once(parent: Path, prefix: str) -> None:
    remove_stale(parent, prefix)


def remove_stale(parent: Path, prefix: str = _PREFIX) -> None:
    """Remove the temporary files and directories of this user's processes that have ended."""
    with suppress(OSError):
        for path in parent.glob(f"{prefix}*"):
            owner = _OWNER.fullmatch(path.name.removeprefix(prefix))
            if owner is None or not _is_stale(path, owner["machine"], int(owner["pid"])):
                continue
            if path.is_dir():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink()


def _is_stale(path: Path, machine: str | None, pid: int) -> bool:
    with suppress(OSError):
        stat_result = path.lstat()
        is_own = not hasattr(os, "getuid") or stat_result.st_uid == os.getuid()
        if not is_own or not (stat.S_ISDIR(stat_result.st_mode) or stat.S_ISREG(stat_result.st_mode)):
            return False
        if machine == machine_name():
            return not is_alive(pid)
        return time.time() - stat_result.st_mtime > _MAX_AGE
    return False


def is_alive(pid: int) -> bool:
    """Whether a process runs; True if unknown. One that has ended, but that no parent waits for, does not."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        return True
    with suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2][1:2] != "Z"
    return True
