"""Ends worker processes with the process that started them, whatever ends it.

Forked workers watch a pipe whose writing end only their parent has. The system closes it when the parent ends,
also by SIGKILL. Started programs use the parent-death signal of Linux instead, because they inherit no pipe.

Source: pipe(7), prctl(2) PR_SET_PDEATHSIG.
"""

from __future__ import annotations

import os
import select
import signal
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

_PARENT_DEATH_SIGNAL = 1
_lock = threading.Lock()
_writer: int | None = None
"""The writing end of the pipe that workers of this process watch."""
_reader: int | None = None
_parent_reader: int | None = None
"""In a forked process: the reading end of its parent's pipe."""
starting_tool = threading.Lock()
"""Held from the start of a tool until `add_tool`: else a tool that just started would be missed."""
_process_groups: set[int] = set()
"""Process groups of the tools that this process runs."""
_is_ending = False
"""Tools that start from now on are killed at once: a thread may be between starting one and noting it."""
_REPEAT_SECONDS = 1.0
"""Time in which a second signal is the same request: `timeout` signals a program, and then its process group."""


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
    global _lock, _reader, _writer, _parent_reader, starting_tool
    _lock, starting_tool = threading.Lock(), threading.Lock()
    _process_groups.clear()
    if _writer is not None:
        with suppress(OSError):
            os.close(_writer)
        if _parent_reader is not None:
            with suppress(OSError):
                os.close(_parent_reader)
        _parent_reader, _reader, _writer = _reader, None, None
    if signal.getsignal(signal.SIGTERM) is _leave_to_thread:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.set_wakeup_fd(-1)


def end_with_parent() -> None:
    """In a forked worker: exit with its tools as soon as the parent has ended, or on SIGTERM. Calls return at once.

    A pool sends SIGTERM to its other workers when one has ended.
    """
    if _parent_reader is None:
        return
    signal_reader, signal_writer = os.pipe()
    os.set_blocking(signal_writer, False)
    signal.signal(signal.SIGTERM, _leave_to_thread)
    signal.set_wakeup_fd(signal_writer)
    threading.Thread(target=_wait_for_end, args=(_parent_reader, signal_reader), daemon=True).start()


def _leave_to_thread(_number: int, _frame: object) -> None:
    """The thread of `end_with_parent` reads the signal, also while the main thread is in a long call."""


def _wait_for_end(parent_reader: int, signal_reader: int) -> None:
    with suppress(OSError, ValueError):
        while parent_reader not in (ready := select.select([parent_reader, signal_reader], [], [])[0]):
            if ready and signal.SIGTERM in os.read(signal_reader, 64):
                break
    starting_tool.acquire(timeout=1)
    kill_tools()
    with suppress(OSError, ValueError):  # programs that a library started, such as Triton's ptxas
        for children in Path("/proc/self/task").glob("*/children"):
            for child in children.read_text().split():
                os.kill(int(child), signal.SIGKILL)
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
    if _is_ending:
        kill_tools()


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
    """Unwind on SIGINT, SIGTERM and SIGHUP, so that temporary directories are removed; workers end at once.

    A signal that is ignored (`nohup`) stays ignored. Forked processes exit at once, and so does one that gets another
    signal while it unwinds: an exception in the middle of cleaning up could leave a lock locked.
    """
    start = 0.0
    numbers = [signal.SIGTERM, signal.SIGHUP, signal.SIGINT]
    numbers = [number for number in numbers if signal.getsignal(number) is not signal.SIG_IGN]

    def unwind(number: int, _frame: object) -> None:
        global _is_ending
        nonlocal start
        if start:
            if time.monotonic() - start > _REPEAT_SECONDS:
                end_workers()
                os._exit(128 + number)
            return
        if starting_tool.locked():  # perhaps by this thread, and an exception now would lose the tool
            signal.signal(signal.SIGALRM, lambda *_: unwind(number, None))
            signal.setitimer(signal.ITIMER_REAL, 0.02)
            return
        if number == signal.SIGINT:
            _raise_until_caught(KeyboardInterrupt())
        _is_ending, start = True, time.monotonic()
        end_workers()
        _raise_until_caught(SystemExit(128 + number))

    def reset() -> None:
        for number in numbers:
            signal.signal(number, signal.SIG_DFL)

    for number in numbers:
        signal.signal(number, unwind)
    os.register_at_fork(after_in_child=reset)


def _raise_until_caught(ending: BaseException) -> None:
    """Raise an exception, and again where a callback of a fork or a destructor ignored it."""
    report = sys.unraisablehook

    def raise_again(_number: int, _frame: object) -> None:
        raise ending

    def notice(ignored: sys.UnraisableHookArgs) -> None:
        if ignored.exc_value is ending:
            signal.setitimer(signal.ITIMER_REAL, 0.05)
        else:
            report(ignored)

    signal.signal(signal.SIGALRM, raise_again)
    sys.unraisablehook = notice
    raise ending
