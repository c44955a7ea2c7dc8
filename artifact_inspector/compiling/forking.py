"""Run each compile in a child process, forked from a process that has already imported Triton.

If LLVM aborts a child, or it exceeds its time limit, only its own row is lost.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

from artifact_inspector.compiling.publishing import publish, staging_directory
from artifact_inspector.compiling.refusal import explain

POLL_SECONDS = 0.005
MESSAGE_LINES = 12
DETAIL_CHARACTERS = 200_000


@dataclass(frozen=True, slots=True)
class Work:
    """One compile: the function to call in a child process, and the directory for its result."""

    label: Mapping[str, Any]
    """Columns that identify the compile in its row."""
    key: str
    """Equal for two compiles that produce the same cache entry."""
    out: Path
    compile: Callable[[Path], str]
    """Compiles into a directory, as a Triton cache with one entry, and returns the entry's name."""


@dataclass(frozen=True, slots=True)
class _Running:
    work: tuple[Work, ...]
    """All work with one key; compiled once."""
    started: float
    staging: Path
    answer: TextIO
    """The child's JSON result; empty when it died."""
    noise: TextIO
    """Output of the child and its compilers."""


def run(work: Iterable[Work], workers: int, time_limit: float) -> Iterator[dict[str, Any]]:
    """Run every compile in its own child process, at most `workers` at a time.

    Args:
        work: the compiles; those with equal keys are compiled once.
        workers: number of concurrent children.
        time_limit: seconds that one child may run.

    Yields:
        One row for each compile, in order of completion: its label with `seconds`, `cached`, `directory` or
        None, `message` or None, and `details`.
    """
    grouped: dict[str, list[Work]] = {}
    for one in work:
        grouped.setdefault(one.key, []).append(one)
    waiting = [tuple(same) for same in grouped.values()][::-1]
    running: dict[int, _Running] = {}
    asked_by = os.getppid()
    try:
        while waiting or running:
            while waiting and len(running) < workers:
                pid, child = _start(waiting.pop())
                running[pid] = child
            for pid, child in list(running.items()):
                seconds = time.monotonic() - child.started
                ended, status = os.waitpid(pid, os.WNOHANG)
                if ended or seconds > time_limit:
                    if not ended:
                        _kill(pid)
                    del running[pid]
                    row = _row(child, seconds, status if ended else None, time_limit)
                    shutil.rmtree(child.staging, ignore_errors=True)
                    for again, one in enumerate(child.work):
                        yield {**one.label, **row, "cached": again > 0}
            if os.getppid() != asked_by:
                sys.exit(1)  # the calling process has ended and reads no rows
            time.sleep(POLL_SECONDS)
    finally:
        for pid, child in running.items():
            _kill(pid)
            shutil.rmtree(child.staging, ignore_errors=True)


def _start(work: tuple[Work, ...]) -> tuple[int, _Running]:
    """Fork a child for a compile; returns its process id and its state."""
    # files, not pipes: a compiler may print more than a pipe holds, and it is read only when the child ends
    answer, noise = tempfile.TemporaryFile("w+"), tempfile.TemporaryFile("w+", errors="replace")  # noqa: SIM115 - closed by _row
    child = _Running(work, time.monotonic(), staging_directory(work[0].out), answer, noise)
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            os.setsid()  # the compilers it starts are killed with its process group
            _end_with_parent()
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            os.dup2(noise.fileno(), 1)
            os.dup2(noise.fileno(), 2)
            result: dict[str, Any]
            try:
                entry = work[0].compile(child.staging)
                result = {"directory": str(publish(child.staging, entry, work[0].out))}
            except BaseException as error:  # noqa: BLE001 - Triton raises many types, and each is a row
                result = explain(error)
            json.dump(result, answer)
            answer.flush()
            status = 0
        finally:
            os._exit(status)
    return pid, child


def _end_with_parent() -> None:
    """Let the operating system kill this process when its parent ends, so that nothing is published later.

    Source: prctl(2), PR_SET_PDEATHSIG. On systems without it (macOS), a compile that began is finished.
    """
    from ctypes import CDLL

    with suppress(OSError, AttributeError):
        CDLL(None).prctl(1, signal.SIGKILL)


def _row(child: _Running, seconds: float, status: int | None, time_limit: float) -> dict[str, Any]:
    """The row of a finished child; a `status` of None means that it exceeded the time limit."""
    child.answer.seek(0)
    child.noise.seek(0)
    written = child.answer.read()
    answer = json.loads(written) if written else {}
    details = child.noise.read()
    child.answer.close()
    child.noise.close()
    message = answer.get("message")
    if status is None:
        message = f"took longer than {time_limit:g} s"
    elif not answer:
        message = "the compiler " + _manner(status)
    if message is not None:
        # MLIR, LLVM and ptxas print the reason to standard error; the exception often has none
        said = [
            line
            for line in details.splitlines()
            if any(mark in line for mark in ("error:", "LLVM ERROR", "ssertion", "ptxas fatal"))
            and not line.endswith("while processing an MLIR pass pipeline")
        ]
        details = "\n".join(filter(None, (details.rstrip(), message.strip())))
        message = "\n".join(_shortened([*dict.fromkeys(said), *message.strip().splitlines()]))
    return {
        "seconds": round(seconds, 3),
        "directory": None if message is not None else answer.get("directory"),
        "message": message,
        "remedy": answer.get("remedy"),
        "kind": answer.get("kind", "refused"),
        "details": details[-DETAIL_CHARACTERS:] if message is not None else None,
    }


def _shortened(lines: list[str]) -> list[str]:
    """The first and the last lines of a message: compilers print whole modules in between."""
    if len(lines) <= MESSAGE_LINES:
        return lines
    return [*lines[: MESSAGE_LINES // 2], "…", *lines[-(MESSAGE_LINES // 2) :]]


def _manner(status: int) -> str:
    """How a child process ended, as the end of a sentence."""
    if os.WIFSIGNALED(status):
        return f"was ended by {signal.Signals(os.WTERMSIG(status)).name}"
    return f"exited with {os.waitstatus_to_exitcode(status)} and no result"


def _kill(pid: int) -> None:
    """Kill a child and the compilers that it started."""
    with suppress(ProcessLookupError, PermissionError):
        # the child may not be a group leader yet; then it has started no compilers
        os.killpg(pid, signal.SIGKILL)
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
    with suppress(ChildProcessError):
        os.waitpid(pid, 0)
