"""Ends worker processes with the process that started them, whatever ends it.

Forked workers watch a pipe whose writing end only their parent has. The system closes it when the parent ends,
also by SIGKILL. Started programs use the parent-death signal of Linux instead, because they inherit no pipe.

Source: pipe(7), prctl(2) PR_SET_PDEATHSIG.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from contextlib import suppress

_PARENT_DEATH_SIGNAL = 1
_lock = threading.Lock()
_writer: int | None = None
"""The writing end of the pipe that workers of this process watch."""
_reader: int | None = None
_parent_reader: int | None = None
"""In a forked process: the reading end of its parent's pipe."""
_process_groups: set[int] = set()
"""Process groups of the tools that this process runs."""


def prepare_workers() -> None:
    """Create the pipe that workers watch; call it before the first fork."""
    global _reader, _writer
    with _lock:
        if _writer is None and hasattr(os, "register_at_fork"):
            if _reader is None and _parent_reader is None:
                os.register_at_fork(after_in_child=_enter_child)
            _reader, _writer = os.pipe()


def _enter_child() -> None:
    """In every forked process: give up the parent's writing end, or the pipe would never close."""
    global _lock, _reader, _writer, _parent_reader
    _lock = threading.Lock()
    _process_groups.clear()
    if _writer is not None:
        with suppress(OSError):
            os.close(_writer)
        if _parent_reader is not None:
            with suppress(OSError):
                os.close(_parent_reader)
        _parent_reader, _reader, _writer = _reader, None, None


def end_with_parent() -> None:
    """In a forked worker: exit as soon as the parent has ended. Calls return at once."""
    if _parent_reader is not None:
        threading.Thread(target=_wait_for_parent, args=(_parent_reader,), daemon=True).start()


def _wait_for_parent(reader: int) -> None:
    with suppress(OSError):
        os.read(reader, 1)
    kill_tools()
    os._exit(1)


def end_workers() -> None:
    """End all workers of this process, and the tools that they run."""
    global _reader, _writer
    kill_tools()
    reader, writer = _reader, _writer
    _reader, _writer = None, None
    for descriptor in (reader, writer):
        if descriptor is not None:
            with suppress(OSError):
                os.close(descriptor)


def add_tool(process_group: int) -> None:
    """Note a running tool, which ends with this process."""
    _process_groups.add(process_group)


def remove_tool(process_group: int) -> None:
    """Forget a tool that has ended."""
    _process_groups.discard(process_group)


def kill_tools() -> None:
    """Kill the tools that this process runs."""
    for group in tuple(_process_groups):
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(group, signal.SIGKILL)


def kill_with_parent(parent: int) -> None:
    """Let the system kill this process when its parent ends, so that nothing is published later.

    On systems without that signal (macOS), a compile that began is finished.

    Args:
        parent: process ID of the parent; this process exits at once if it has ended already.
    """
    if sys.platform != "linux":
        return
    from ctypes import CDLL  # opens a library when it is imported, which reading a cache must not do

    with suppress(OSError, AttributeError):
        CDLL(None).prctl(_PARENT_DEATH_SIGNAL, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


def end_on_signals() -> None:
    """Unwind on SIGTERM and SIGHUP, so that temporary directories are removed; workers end at once.

    A signal that is ignored (`nohup`) stays ignored. Forked processes exit at once.
    """
    numbers = [signal.SIGTERM, signal.SIGHUP]
    numbers = [number for number in numbers if signal.getsignal(number) is not signal.SIG_IGN]

    def unwind(number: int, _frame: object) -> None:
        end_workers()
        sys.exit(128 + number)

    def reset() -> None:
        for number in numbers:
            signal.signal(number, signal.SIG_DFL)

    for number in numbers:
        signal.signal(number, unwind)
    os.register_at_fork(after_in_child=reset)
