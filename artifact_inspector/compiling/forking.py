"""One child process for each compile, forked from a process that has imported Triton for all of them.

A child that LLVM aborts, or that outlives its time, costs its own row and nothing else.
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
    """One compile: what is to be called in a child, and where its result goes."""

    label: Mapping[str, Any]
    """What the row says of it."""
    key: str
    """Equal for work that would make the same entry."""
    out: Path
    compile: Callable[[Path], str]
    """Fills a directory with a Triton cache that holds the entry; returns the entry's name."""


@dataclass(frozen=True, slots=True)
class _Running:
    work: tuple[Work, ...]
    """All of one key; compiled once."""
    started: float
    staging: Path
    answer: TextIO
    """What the child returns: JSON, or nothing when it died."""
    noise: TextIO
    """What the child and its compilers printed."""


def run(work: Iterable[Work], workers: int, time_limit: float) -> Iterator[dict[str, Any]]:
    """Do every piece of work in a child of its own, at most `workers` at a time.

    Args:
        work: what is to be compiled; what has the same key is compiled once.
        workers: children at a time.
        time_limit: seconds that one may take.

    Yields:
        The label of each with `seconds`, `cached`, `directory` or None, `message` or None and `details`,
        in order of completion.
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
                sys.exit(1)  # nobody is left to read the answers
            time.sleep(POLL_SECONDS)
    finally:
        for pid, child in running.items():
            _kill(pid)
            shutil.rmtree(child.staging, ignore_errors=True)


def _start(work: tuple[Work, ...]) -> tuple[int, _Running]:
    """Fork a child for a job: its process id, and where its answer will be."""
    # files, not pipes: a compiler may print more than a pipe holds, and nobody reads until it ends
    answer, noise = tempfile.TemporaryFile("w+"), tempfile.TemporaryFile("w+", errors="replace")  # noqa: SIM115 - closed by _row
    child = _Running(work, time.monotonic(), staging_directory(work[0].out), answer, noise)
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            os.setsid()  # so that the compilers it starts can be ended with it
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
    """Have the kernel end this process when its parent ends: a stopped program publishes nothing any more.

    Source: prctl(2), PR_SET_PDEATHSIG. Where there is none (musl, macOS), a compile that began is finished.
    """
    from ctypes import CDLL

    with suppress(OSError, AttributeError):
        CDLL(None).prctl(1, signal.SIGKILL)


def _row(child: _Running, seconds: float, status: int | None, time_limit: float) -> dict[str, Any]:
    """The finished job as it is reported; a `status` of None means that its time ran out."""
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
        # what MLIR, LLVM and ptxas say goes to standard error; the exception often says only that they failed
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
    """The first lines and the last ones, between which a compiler may print a program."""
    if len(lines) <= MESSAGE_LINES:
        return lines
    return [*lines[: MESSAGE_LINES // 2], "…", *lines[-(MESSAGE_LINES // 2) :]]


def _manner(status: int) -> str:
    """How a child ended, in words."""
    if os.WIFSIGNALED(status):
        return f"was ended by {signal.Signals(os.WTERMSIG(status)).name}"
    return f"exited with {os.waitstatus_to_exitcode(status)} and no result"


def _kill(pid: int) -> None:
    """End a child and the compilers that it started."""
    with suppress(ProcessLookupError, PermissionError):
        # the child may not have become a group leader yet; then it alone is there to be ended
        os.killpg(pid, signal.SIGKILL)
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
    with suppress(ChildProcessError):
        os.waitpid(pid, 0)
