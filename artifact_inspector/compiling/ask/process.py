"""The compiling process as its caller sees it: asks go in, rows come out, and it ends with the caller."""

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
"""That the import of one kernel's file may take."""
_WORKER = """
import sys
sys.path[:] = [path for path in sys.path if path]
from artifact_inspector.compiling.worker.__main__ import main
main()
"""
# the working directory may hold a copy.py, which is no library's: it is looked into behind Triton's import
_ROOT = Path(__file__).resolve().parents[3]
# what would make another program of Triton than a launch on a GPU is
_FOREIGN = ("TRITON_INTERPRET", "TRITON_CACHE_MANAGER")


@dataclass(frozen=True, slots=True)
class Interpreter:
    """A Python with a Triton, and how it is started."""

    command: Sequence[str]
    environment: Mapping[str, str] = field(default_factory=dict)
    """Variables set for it."""
    version: str | None = None
    """Of its Triton, where it was asked for by version."""
    lends: Sequence[str] = ()
    """Directories of this Python whose packages that one can use."""

    def with_instead(self, directory: Path, other: Path) -> Interpreter:
        """The same, with what lies in a directory taken from another one, which holds another state of it."""
        paths = self.environment.get("PYTHONPATH", "").split(os.pathsep)
        inside = [Path(path) for path in paths if path and Path(path) != _ROOT and directory in _all_of(path)]
        moved = [str(other / path.resolve().relative_to(directory)) for path in inside]
        return replace(
            self, environment={**self.environment, "PYTHONPATH": os.pathsep.join([*moved, *paths])}
        )


def _all_of(path: str) -> tuple[Path, ...]:
    """A directory and all that it lies in."""
    whole = Path(path).resolve()
    return (whole, *whole.parents)


def this_interpreter() -> Interpreter:
    """The Python that runs this, with its Triton.

    Raises:
        CompileError: Triton cannot be imported here; the remedy says what to do.
    """
    if sys.platform != "linux":
        raise CompileError(
            f"Triton cannot compile on {sys.platform}: its compiler exists for Linux only.",
            "Compile on Linux (no GPU is needed) and inspect the cache directory here.",
        )
    if find_spec("triton") is None:
        raise CompileError(
            "Triton is not installed.", f"Install it: {sys.executable} -m pip install 'triton>=3.4'."
        )
    # what the caller can import, the child can: the kernels may lie in a checkout
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
    """The rows of some asks, as `_worker` writes them, each with `ask`, the position of its ask.

    An ask whose file ends the process that imports it, or does not return, is a row for each of its
    targets, and the others are asked again.

    Args:
        interpreter: that compiles.
        asks: as `_worker` reads them.
        workers: compiles at a time.
        time_limit: seconds that one compile may take.
        planned: called with the number of rows when it is known.

    Raises:
        CompileError: the process could not start, or ended with jobs undone.
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
        if status == 0 and reading is None:  # else a file that was imported ended it
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
            # what ends with 0 complained of nothing: what was printed is chatter, maybe another module's
            last = complaint.splitlines()[-1] if complaint and status else f"exit status {status}"
            why = f"ended the process that imported it ({last})"
        yield from _blamed(number, blamed, why, complaint, interpreter.version)


def _blamed(
    number: int, ask: Mapping[str, Any], why: str, details: str, version: str | None
) -> Iterator[dict[str, Any]]:
    """Rows for an ask whose file cannot be imported in any process."""
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
            "remedy": f"Check that `python {file or ask['place']}` ends, with no GPU.",
            "details": details,
        }


class _Watch:
    """Ends a process that is silent for too long while it imports."""

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
    """A started worker."""

    def __init__(self, process: subprocess.Popen[str], errors: IO[bytes]) -> None:
        assert process.stdout is not None
        self.lines: Iterator[str] = iter(process.stdout)
        self.kill = process.kill
        self._process, self._errors = process, errors

    def end(self) -> tuple[int, str]:
        """Its exit status and what it said on standard error."""
        status = self._process.wait()
        self._errors.seek(0)
        return status, self._errors.read().decode(errors="replace").strip()


@contextmanager
def _process(interpreter: Interpreter, request: str) -> Iterator[_Process]:
    """A worker with its request; it and its children end with the block."""
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
            # a process that ended before it read says why on standard error
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
