"""The process that compiles: imports Triton once, then forks a child for every kernel and target.

Reads one JSON request from its standard input and writes a line of JSON for each finished job, as they
come. A child that LLVM aborts, or that outlives its time, costs its own row and nothing else; the
process that asked never loads Triton, so it may have threads.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

__all__ = ["run", "serve"]

POLL_SECONDS = 0.01
MESSAGE_LINES = 12

Compile = Callable[[str, str], Path]
"""(where the reference is, target) → directory of the cache entry."""


@dataclass(frozen=True, slots=True)
class _Running:
    job: Mapping[str, Any]
    started: float
    answer: TextIO
    """What the child returns: JSON, or nothing when it died."""
    noise: TextIO
    """What the child and its compilers printed."""


def serve(compile_one: Compile) -> None:
    """Answer the request on standard input: a line of JSON for each job."""
    # a terminated worker must still end its children: turn the signal into an exit
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    request = json.load(sys.stdin)
    for row in run(compile_one, request["jobs"], request["workers"], request["time_limit"]):
        print(json.dumps(row), flush=True)


def run(
    compile_one: Compile, jobs: Iterable[Mapping[str, Any]], workers: int, time_limit: float
) -> Iterator[dict[str, Any]]:
    """Compile every job in a child of its own, at most `workers` at a time.

    Args:
        compile_one: what a child calls.
        jobs: each with `place`, `target` and `environment` (set in the child alone).
        workers: children at a time.
        time_limit: seconds that one may take.

    Yields:
        `{"job": the job, "seconds", "directory" or None, "message" or None}` in order of completion.
    """
    waiting = list(jobs)[::-1]
    running: dict[int, _Running] = {}
    try:
        while waiting or running:
            while waiting and len(running) < workers:
                pid, child = _start(compile_one, waiting.pop())
                running[pid] = child
            for pid, child in list(running.items()):
                seconds = time.monotonic() - child.started
                ended, status = os.waitpid(pid, os.WNOHANG)
                if ended or seconds > time_limit:
                    if not ended:
                        _kill(pid)
                    del running[pid]
                    yield _row(child, seconds, status if ended else None, time_limit)
            time.sleep(POLL_SECONDS)
    finally:
        for pid in running:
            _kill(pid)


def _start(compile_one: Compile, job: Mapping[str, Any]) -> tuple[int, _Running]:
    """Fork a child for a job: its process id, and where its answer will be."""
    # files, not pipes: a compiler may print more than a pipe holds, and nobody reads until it ends
    answer, noise = tempfile.TemporaryFile("w+"), tempfile.TemporaryFile("w+")  # noqa: SIM115 - closed by _row
    child = _Running(job, time.monotonic(), answer, noise)
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            os.setsid()  # so that the compilers it starts can be ended with it
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            os.dup2(noise.fileno(), 1)
            os.dup2(noise.fileno(), 2)
            os.environ.update(job["environment"])
            try:
                result = {"directory": str(compile_one(job["place"], job["target"]))}
            except BaseException as error:  # noqa: BLE001 - Triton raises many types, and each is a row
                result = {"message": f"{type(error).__name__}: {error}"}
            json.dump(result, answer)
            answer.flush()
            status = 0
        finally:
            os._exit(status)
    return pid, child


def _row(child: _Running, seconds: float, status: int | None, time_limit: float) -> dict[str, Any]:
    """The finished job as it is reported; a `status` of None means that its time ran out."""
    child.answer.seek(0)
    child.noise.seek(0)
    written = child.answer.read()
    answer = json.loads(written) if written else {}
    noise = [line for line in child.noise.read().splitlines() if line.strip()]
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
            for line in noise
            if any(mark in line for mark in ("error:", "LLVM ERROR", "ssertion"))
            and not line.endswith("while processing an MLIR pass pipeline")
        ]
        message = "\n".join([*dict.fromkeys(said), *message.strip().splitlines()][:MESSAGE_LINES])
    return {
        "job": child.job,
        "seconds": round(seconds, 3),
        "directory": None if message is not None else answer.get("directory"),
        "message": message,
    }


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


def _compile_here(place: str, target: str) -> Path:
    from artifact_inspector.compiling import _triton
    from artifact_inspector.targets import parse_target

    return _triton.compile_entry(_triton.load_reference(place), parse_target(target))


if __name__ == "__main__":
    # imported before the first fork, so that every child has it for nothing

    serve(_compile_here)
