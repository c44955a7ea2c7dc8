"""Run the compiling process: send it requests and read its rows; it ends when the caller ends."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from pathlib import Path
from threading import Timer
from typing import IO, Any

from artifact_inspector.errors import CompileError

IMPORT_SECONDS = 120.0
"""Seconds that the import of one kernel's file may take."""
_WORKER_SCRIPT = """
import sys
sys.path[:] = [path for path in sys.path if path]
from artifact_inspector.compiling.worker.__main__ import main
main()
"""
# Triton is imported without the working directory on the path, which may hold a file such as copy.py
_ROOT = Path(__file__).resolve().parents[3]
# variables that make Triton behave unlike a launch on a GPU
_CLEARED_VARIABLES = ("TRITON_INTERPRET", "TRITON_CACHE_MANAGER")


@dataclass(frozen=True, slots=True)
class Interpreter:
    """A Python with a Triton, and the command that starts it."""

    command: Sequence[str]
    environment: Mapping[str, str] = field(default_factory=dict)
    """Environment variables to set."""
    version: str | None = None
    """Version of its Triton, if one was requested."""
    import_paths: Sequence[str] = ()
    """Import directories of the calling Python that this one can use."""

    def with_older_state(self, directory: Path, older_directory: Path) -> Interpreter:
        """The same interpreter, importing from `older_directory`, an older state of `directory`, in its place."""
        paths = self.environment.get("PYTHONPATH", "").split(os.pathsep)
        replaced_paths = []
        for path in (Path(path).resolve() for path in paths if path and Path(path) != _ROOT):
            if directory in (path, *path.parents):
                replaced_paths.append(str(older_directory / path.relative_to(directory)))
        pythonpath = os.pathsep.join([*replaced_paths, *paths])
        return replace(self, environment={**self.environment, "PYTHONPATH": pythonpath})


def current_interpreter() -> Interpreter:
    """The running Python, with its Triton.

    Raises:
        CompileError: Triton cannot be imported here.
    """
    if sys.platform != "linux":
        raise CompileError(
            f"Triton cannot compile on {sys.platform}: its compiler exists for Linux only.",
            "Compile on Linux (no GPU needed), and inspect the cache directory here.",
        )
    if find_spec("triton") is None:
        raise CompileError("Triton is not installed.", f"Install it: {sys.executable} -m pip install 'triton>=3.4'.")
    # the child imports from the caller's path: kernels may lie in a checkout
    paths = dict.fromkeys(path for path in [*sys.path, str(_ROOT)] if path)
    return Interpreter([sys.executable, "-c", _WORKER_SCRIPT], {"PYTHONPATH": os.pathsep.join(paths)})


def run_requests(
    interpreter: Interpreter,
    requests: Sequence[Mapping[str, Any]],
    *,
    workers: int,
    time_limit: float,
    planned: Callable[[int], None] | None = None,
) -> Iterator[dict[str, Any]]:
    """Send requests to a compiling process and yield its rows, each with `ask`, the index of its request.

    If a file ends the importing process, or its import does not return, its request yields an error row for
    each target, and the remaining requests are sent to a new process.

    Args:
        requests: requests in the format of `worker.__main__`.

    Raises:
        CompileError: the process could not start, or ended with unfinished jobs.
    """
    remaining = list(enumerate(requests))
    failed_rows = 0
    while remaining:
        numbers = [number for number, _ in remaining]
        asks = [request_document for _, request_document in remaining]
        request = {"asks": asks, "parent": os.getpid(), "workers": workers, "time_limit": time_limit}
        reading: int | None = None
        kept, key = _KEPT_WORKERS.get(), (repr(interpreter), all(ask.get("untrusted") for ask in asks))
        with ExitStack() as stack:
            idle = None if kept is None else kept.idle.pop(key, None)
            owner = stack if kept is None else kept.stack
            process, errors = idle or owner.enter_context(_start_worker(interpreter))
            assert process.stdin is not None
            with suppress(BrokenPipeError):  # one that ended before reading has written the reason to standard error
                print(json.dumps(request), file=process.stdin, flush=True)
                if kept is None:
                    process.stdin.close()
            watch = _ImportTimer(process.kill)
            for line in process.stdout or ():
                message = json.loads(line)
                if "reading" in message:
                    watch.restart()
                    reading = message["reading"]
                elif "jobs" in message:
                    reading = None
                    watch.stop()
                    if planned is not None:
                        planned(message["jobs"] + failed_rows)
                elif "processor_seconds" not in message:
                    yield {**message, "ask": numbers[message["ask"]]}
                elif kept is not None:
                    kept.idle[key], kept.seconds[process.pid] = (process, errors), message["processor_seconds"]
                    return
            watch.stop()
            status = process.wait()
            errors.seek(0)
            complaint = errors.read().decode(errors="replace").strip()
        if status == 0 and reading is None:  # otherwise an imported file ended the process
            return
        if reading is None:
            last = complaint.splitlines()[-1] if complaint else f"exit status {status}"
            raise CompileError(
                f"Triton could not be started: {last}.",
                f"Check that `{interpreter.command[0]} -c 'import triton'` works.",
            )
        number, failed_request = remaining.pop(reading)
        failed_rows += len(failed_request["targets"])
        reason = f"was not imported in {IMPORT_SECONDS:g} s"
        if not watch.has_expired:
            # after exit status 0, the printed text is not an error message
            last = complaint.splitlines()[-1] if complaint and status else f"exit status {status}"
            reason = f"ended the process that imported it ({last})"
        file = failed_request["place"].rpartition(":")[0] or failed_request["place"]
        remedy = f"Check that `python {file}` ends without a GPU."
        yield from failure_rows(
            number, failed_request, interpreter.version, f"{file} {reason}.", remedy, details=complaint
        )


def failure_rows(
    number: int, request: Mapping[str, Any], version: str | None, message: str, remedy: str | None, **fields: str
) -> Iterator[dict[str, Any]]:
    """One row for each target of a request that no process can compile."""
    for index, target in enumerate(request["targets"]):
        row = {"ask": number, "index": index, "kernel": request["place"].rpartition(":")[2], "target": target}
        yield {**row, "seconds": 0.0, "triton": version, "message": message, "remedy": remedy, **fields}


class _ImportTimer:
    def __init__(self, kill: Callable[[], None]) -> None:
        self.has_expired = False
        self._kill = kill
        self._start()

    def restart(self) -> None:
        self.stop()
        self._start()

    def stop(self) -> None:
        self._timer.cancel()

    def _start(self) -> None:
        self._timer = Timer(IMPORT_SECONDS, self._expire)
        self._timer.daemon = True
        self._timer.start()

    def _expire(self) -> None:
        self.has_expired = True
        self._kill()


_ENDING_SECONDS = 10
"""Seconds that a compiling process gets to remove its files."""
_Worker = tuple[subprocess.Popen[str], IO[bytes]]


@dataclass(frozen=True, slots=True)
class _KeptWorkers:
    stack: ExitStack
    idle: dict[tuple[str, bool], _Worker] = field(default_factory=dict)
    seconds: dict[int, float] = field(default_factory=dict)
    """Process → its processor time."""


_KEPT_WORKERS: ContextVar[_KeptWorkers | None] = ContextVar("kept workers", default=None)


@contextmanager
def keep_workers() -> Iterator[None]:
    """Within the block, a process of each interpreter gets all requests of this thread, so that it imports once.

    Untrusted requests have a process of their own: trusted ones import from the working directory.
    """
    if _KEPT_WORKERS.get() is not None:
        yield
        return
    with ExitStack() as stack:
        token = _KEPT_WORKERS.set(_KeptWorkers(stack))
        try:
            yield
        finally:
            _KEPT_WORKERS.reset(token)


def kept_processor_seconds() -> float:
    """Processor time of the kept processes, which the caller has not waited for."""
    kept = _KEPT_WORKERS.get()
    return 0.0 if kept is None else sum(kept.seconds.values())


@contextmanager
def _start_worker(interpreter: Interpreter) -> Iterator[_Worker]:
    """Start a compiling process; it and its children end with the block."""
    variables = {
        name: value
        for name, value in {**os.environ, **interpreter.environment}.items()
        if name not in _CLEARED_VARIABLES
    }
    # a file, not a pipe: a kernel's file may print more than a pipe holds
    with tempfile.TemporaryFile() as errors:
        pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": errors}
        try:
            process = subprocess.Popen([*interpreter.command], env=variables, text=True, **pipes)
        except OSError as error:
            raise CompileError(f"{interpreter.command[0]} cannot be started: {error.strerror}.") from error
        try:
            yield process, errors
        finally:
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdout.close()  # a process that writes into a full pipe would never end
            with suppress(BrokenPipeError):
                process.stdin.close()
            for end in (process.terminate, process.kill):
                end()
                with suppress(subprocess.TimeoutExpired):  # no wait without a limit: a signal may have kept its lock
                    process.wait(_ENDING_SECONDS)
