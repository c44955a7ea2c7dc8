"""Run each compile in a child process, forked from a process that has already imported Triton.

If LLVM aborts a child, or it exceeds its time limit, only its own row is lost.
"""

from __future__ import annotations

import gc
import json
import os
import re
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TextIO

from artifact_inspector.compiling.compile_errors import describe_error
from artifact_inspector.compiling.publishing import publish, staging_directory
from artifact_inspector.compiling.stage_reuse import StageRecord, remember
from artifact_inspector.files.lifetime import kill_with_parent

_ERROR_LINE = re.compile(r"(?:error:|LLVM ERROR|ssertion|ptxas fatal)(?!.*while processing an MLIR pass pipeline$)")
POLL_SECONDS = 0.005
MESSAGE_LINES = 12
DETAIL_CHARACTERS = 200_000


@dataclass(frozen=True, slots=True)
class CompileJob:
    """One compile: the function to call in a child process, and the directory for its result."""

    label: Mapping[str, Any]
    """Columns that identify the compile in its row."""
    key: str
    """Equal for two compiles that produce the same cache entry."""
    out_directory: Path
    compile: Callable[[Path], str]
    """Compiles into a directory, as a Triton cache with one entry, and returns the entry's name."""
    record: StageRecord = field(default_factory=StageRecord)
    """Filled by `compile` if its stages may be reused."""


@dataclass(frozen=True, slots=True)
class _Child:
    jobs: tuple[CompileJob, ...]
    """All work with one key; compiled once."""
    start_time: float
    staging: Path
    result_file: TextIO
    """The child's JSON result; empty when it died."""
    output_file: TextIO
    """Output of the child and its compilers."""


def run_jobs(jobs: Iterable[CompileJob], workers: int, time_limit: float) -> Iterator[dict[str, Any]]:
    """Run every compile in its own child process, at most `workers` at a time.

    Args:
        jobs: the compiles; those with equal keys are compiled once.

    Yields:
        One row for each compile, in order of completion: its label with `seconds`, `is_cached`, `directory` or
        None, `message` or None, and `details`.
    """
    grouped: dict[str, list[CompileJob]] = {}
    for job in jobs:
        grouped.setdefault(job.key, []).append(job)
    pending = [tuple(jobs_of_key) for jobs_of_key in grouped.values()][::-1]
    running: dict[int, _Child] = {}
    parent_pid = os.getppid()
    try:
        while pending or running:
            while pending and len(running) < workers:
                pid, child = _fork_child(pending.pop())
                running[pid] = child
            for pid, child in list(running.items()):
                seconds = time.monotonic() - child.start_time
                ended, status = os.waitpid(pid, os.WNOHANG)
                if ended or seconds > time_limit:
                    if not ended:
                        _kill(pid)
                    del running[pid]
                    row = _finish_child(child, seconds, status if ended else None, time_limit)
                    shutil.rmtree(child.staging, ignore_errors=True)
                    for repetition, job in enumerate(child.jobs):
                        yield {**job.label, **row, "cached": repetition > 0}
            if os.getppid() != parent_pid:
                sys.exit(1)  # the calling process has ended and reads no rows
            time.sleep(POLL_SECONDS)
    finally:
        for pid, child in running.items():
            _kill(pid)
            shutil.rmtree(child.staging, ignore_errors=True)


def _fork_child(jobs: tuple[CompileJob, ...]) -> tuple[int, _Child]:
    # files, not pipes: a compiler may print more than a pipe holds, and it is read only when the child ends
    result_file, output_file = tempfile.TemporaryFile("w+"), tempfile.TemporaryFile("w+", errors="replace")  # noqa: SIM115 - closed by _row
    child = _Child(jobs, time.monotonic(), staging_directory(jobs[0].out_directory), result_file, output_file)
    worker_pid = os.getpid()
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            gc.freeze()  # a collection would copy the pages of the parent's objects
            os.setsid()  # the compilers it starts are killed with its process group
            kill_with_parent(worker_pid)
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            os.dup2(output_file.fileno(), 1)
            os.dup2(output_file.fileno(), 2)
            result: dict[str, Any]
            try:
                entry = jobs[0].compile(child.staging)
                directory = publish(child.staging, entry, jobs[0].out_directory)
                result = {"directory": str(directory), "stages": jobs[0].record.as_json()}
            except BaseException as error:  # noqa: BLE001 - Triton raises many types, and each is a row
                result = describe_error(error)
            json.dump(result, result_file)
            result_file.flush()
            status = 0
        finally:
            os._exit(status)
    return pid, child


def _finish_child(child: _Child, seconds: float, status: int | None, time_limit: float) -> dict[str, Any]:
    """The row of a finished child; a `status` of None means that it exceeded the time limit."""
    child.result_file.seek(0)
    child.output_file.seek(0)
    result_text = child.result_file.read()
    child_result = json.loads(result_text) if result_text else {}
    details = child.output_file.read()
    child.result_file.close()
    child.output_file.close()
    message = child_result.get("message")
    if status is None:
        message = f"took longer than {time_limit:g} s"
    elif not child_result:
        code = os.waitstatus_to_exitcode(status)
        end = f"was ended by {signal.Signals(-code).name}" if code < 0 else f"exited with {code} and no result"
        message = f"the compiler {end}"
    if message is None:
        remember(child_result.get("stages"), Path(child_result["directory"]))
    else:
        # MLIR, LLVM and ptxas print the reason to standard error; the exception often has none
        error_lines = [line for line in details.splitlines() if _ERROR_LINE.search(line)]
        details = "\n".join(filter(None, (details.rstrip(), message.strip())))
        message = "\n".join(_shorten([*dict.fromkeys(error_lines), *message.strip().splitlines()]))
    return {
        "seconds": round(seconds, 3),
        "directory": None if message is not None else child_result.get("directory"),
        "message": message,
        "remedy": child_result.get("remedy"),
        "kind": child_result.get("kind", "refused"),
        "details": details[-DETAIL_CHARACTERS:] if message is not None else None,
    }


def _shorten(lines: list[str]) -> list[str]:
    """The first and the last lines of a message: compilers print whole modules in between."""
    if len(lines) <= MESSAGE_LINES:
        return lines
    return [*lines[: MESSAGE_LINES // 2], "…", *lines[-(MESSAGE_LINES // 2) :]]


def _kill(pid: int) -> None:
    """Kill a child and the compilers that it started."""
    with suppress(ProcessLookupError, PermissionError):
        # the child may not be a group leader yet; then it has started no compilers
        os.killpg(pid, signal.SIGKILL)
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
    with suppress(ChildProcessError):
        os.waitpid(pid, 0)
