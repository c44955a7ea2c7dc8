"""Run the compiling process: send it requests and read its rows; it ends when the caller ends."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from pathlib import Path
from threading import Timer
from typing import IO, Any

from artifact_inspector.errors import CompileError

IMPORT_SECONDS = 120.0
"""Seconds that the import of one kernel's file may take."""
_WORKER = """
import sys
sys.path[:] = [path for path in sys.path if path]
from artifact_inspector.compiling.worker.__main__ import main
main()
"""
# Triton is imported without the working directory on the path, which may hold a file such as copy.py
_ROOT = Path(__file__).resolve().parents[3]
# variables that make Triton behave unlike a launch on a GPU
_FOREIGN = ("TRITON_INTERPRET", "TRITON_CACHE_MANAGER")


@dataclass(frozen=True, slots=True)
class Interpreter:
    """A Python with a Triton, and the command that starts it."""

    command: Sequence[str]
    environment: Mapping[str, str] = field(default_factory=dict)
    """Environment variables to set."""
    version: str | None = None
    """Version of its Triton, if one was requested."""
    lends: Sequence[str] = ()
    """Import directories of the calling Python that this one can use."""

    def with_instead(self, directory: Path, other: Path) -> Interpreter:
        """The same interpreter, importing from `other`, an older state of `directory`, in its place."""
        paths = self.environment.get("PYTHONPATH", "").split(os.pathsep)
        inside = [Path(path) for path in paths if path and Path(path) != _ROOT and directory in _all_of(path)]
        moved = [str(other / path.resolve().relative_to(directory)) for path in inside]
        return replace(
            self, environment={**self.environment, "PYTHONPATH": os.pathsep.join([*moved, *paths])}
        )


def _all_of(path: str) -> tuple[Path, ...]:
    """A directory and all its parents."""
    whole = Path(path).resolve()
    return (whole, *whole.parents)


def this_interpreter() -> Interpreter:
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
        raise CompileError(
            "Triton is not installed.", f"Install it: {sys.executable} -m pip install 'triton>=3.4'."
        )
    # the child imports from the caller's path: kernels may lie in a checkout
    paths = dict.fromkeys(path for path in [*sys.path, str(_ROOT)] if path)
    return Interpreter([sys.executable, "-c", _WORKER], {"PYTHONPATH": os.pathsep.join(paths)})


def answers(
    interpreter: Interpreter,
    asks: Sequence[Mapping[str, Any]],
    *,
    workers: int,
    time_limit: float,
    planned: Callable[[int], None] | None = None,
) -> Iterator[dict[str, Any]]:
    """Send requests to a compiling process and yield its rows, each with `ask`, the index of its request.

    If a file ends the importing process, or its import does not return, its request yields an error row for
    each target, and the remaining requests are sent to a new process.

    Args:
        interpreter: the Python that compiles.
        asks: requests in the format of `worker.__main__`.
        workers: number of concurrent compiles.
        time_limit: seconds that one compile may take.
        planned: called with the number of rows when it is known.

    Raises:
        CompileError: the process could not start, or ended with unfinished jobs.
    """
    left = list(enumerate(asks))
    refused = 0
    while left:
        numbers = [number for number, _ in left]
        request = {"asks": [ask for _, ask in left], "workers": workers, "time_limit": time_limit}
        reading: int | None = None
        with _process(interpreter, json.dumps(request)) as process:
            watch = _Watch(process.kill, IMPORT_SECONDS)
            for line in process.lines:
                answer = json.loads(line)
                watch.restart()
                if "reading" in answer:
                    reading = answer["reading"]
                elif "jobs" in answer:
                    reading = None
                    watch.stop()
                    if planned is not None:
                        planned(answer["jobs"] + refused)
                else:
                    yield {**answer, "ask": numbers[answer["ask"]]}
            watch.stop()
            status, complaint = process.end()
        if status == 0 and reading is None:  # otherwise an imported file ended the process
            return
        if reading is None:
            last = complaint.splitlines()[-1] if complaint else f"exit status {status}"
            raise CompileError(
                f"Triton could not be started: {last}.",
                f"Check that `{interpreter.command[0]} -c 'import triton'` works.",
            )
        number, blamed = left.pop(reading)
        refused += len(blamed["targets"])
        why = f"was not imported in {IMPORT_SECONDS:g} s"
        if not watch.rang:
            # after exit status 0, the printed text is not an error message
            last = complaint.splitlines()[-1] if complaint and status else f"exit status {status}"
            why = f"ended the process that imported it ({last})"
        yield from _blamed(number, blamed, why, complaint, interpreter.version)


def _blamed(
    number: int, ask: Mapping[str, Any], why: str, details: str, version: str | None
) -> Iterator[dict[str, Any]]:
    """Error rows for a request whose file cannot be imported."""
    file, _, name = ask["place"].rpartition(":")
    for index, target in enumerate(ask["targets"]):
        yield {
            "ask": number,
            "index": index,
            "kernel": name or ask["place"],
            "target": target,
            "seconds": 0.0,
            "message": f"{file or ask['place']} {why}.",
            "triton": version,
            "remedy": f"Check that `python {file or ask['place']}` ends without a GPU.",
            "details": details,
        }


class _Watch:
    """A timer that kills a process whose import takes too long."""

    def __init__(self, end: Callable[[], None], seconds: float) -> None:
        self.rang = False
        self._end, self._seconds = end, seconds
        self._timer = self._start()

    def restart(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = self._start()

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _start(self) -> Timer | None:
        timer = Timer(self._seconds, self._ring)
        timer.daemon = True
        timer.start()
        return timer

    def _ring(self) -> None:
        self.rang = True
        self._end()


class _Process:
    """A running compiling process."""

    def __init__(self, process: subprocess.Popen[str], errors: IO[bytes]) -> None:
        assert process.stdout is not None
        self.lines: Iterator[str] = iter(process.stdout)
        self.kill = process.kill
        self._process, self._errors = process, errors

    def end(self) -> tuple[int, str]:
        """Wait for its end; returns the exit status and the text of standard error."""
        status = self._process.wait()
        self._errors.seek(0)
        return status, self._errors.read().decode(errors="replace").strip()


@contextmanager
def _process(interpreter: Interpreter, request: str) -> Iterator[_Process]:
    """Start a compiling process with its request; it and its children end with the block."""
    settings = {**os.environ, **interpreter.environment}
    for name in _FOREIGN:
        settings.pop(name, None)
    # a file, not a pipe: a kernel's file may print more than a pipe holds
    with tempfile.TemporaryFile() as errors:
        try:
            process = subprocess.Popen(
                list(interpreter.command),
                env=settings,
                text=True,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
            )
        except OSError as error:
            raise CompileError(f"{interpreter.command[0]} cannot be started: {error.strerror}.") from error
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            # a process that ended before reading has written the reason to standard error
            with suppress(BrokenPipeError):
                process.stdin.write(request)
                process.stdin.flush()
            with suppress(BrokenPipeError):
                process.stdin.close()
            yield _Process(process, errors)
        finally:
            process.terminate()
            process.wait()
            process.stdout.close()
