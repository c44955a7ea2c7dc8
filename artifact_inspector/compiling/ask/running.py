"""Run a program with no GPU, once for each target, and take every kernel that it would launch."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from artifact_inspector.compiling.ask.captured import (
    CapturedKernel,
    Note,
    find_kernels,
    find_launches,
    find_notes,
)
from artifact_inspector.compiling.ask.capturing import CONFIGS, OUT, checked_directory, manifest_rows
from artifact_inspector.compiling.ask.compile import TIME_LIMIT_SECONDS
from artifact_inspector.compiling.ask.manifest import record
from artifact_inspector.compiling.ask.process import this_interpreter
from artifact_inspector.compiling.capture.recorder import Event
from artifact_inspector.errors import UsageError
from artifact_inspector.hardware.targets import Target, parse_target

__all__ = ["ProgramRun", "capture_program"]

POLL_SECONDS = 0.05
_SETTING = "INSPECT_KERNEL_CAPTURE"
_STARTUP = Path(__file__).parents[1] / "capture" / "startup"
# A kernel under the interpreter is none that could be compiled; one that is always compiled anew would be
# compiled outside of the child that keeps the program from its crashes; other places keep nothing for us.
_UNWANTED = ("TRITON_INTERPRET", "TRITON_ALWAYS_COMPILE", "TRITON_CACHE_MANAGER")


@dataclass(frozen=True, slots=True)
class ProgramRun:
    """How a program ran for one target."""

    target: Target
    status: int
    """Its exit status; of a signal, as a shell gives it: 128 and its number."""
    output: str
    """What it printed on both streams, where it did not go to standard error as it came."""
    kernels: tuple[CapturedKernel, ...]
    notes: tuple[Note, ...]
    problem: tuple[str, str | None] | None
    """Why nothing was captured, and what to do about it; None where something was."""


def capture_program(
    command: Sequence[str],
    targets: Iterable[str],
    out: Path | str = OUT,
    *,
    configs: int | None = CONFIGS,
    time_limit: float = TIME_LIMIT_SECONDS,
) -> list[ProgramRun]:
    """Run a program once for each target, with no GPU, and take every kernel that it would launch.

    The runs go on at the same time, as many as there are processors. The first one's output goes to our
    standard error as it comes, that of the others into their results; only the first can read standard input.

    Args:
        command: the program and its arguments; `python` means the interpreter that runs this.
        targets: as `parse_target` reads them.
        out: the Triton cache to fill.
        configs: configurations to compile of an autotuned kernel, spread out; None for all.
        time_limit: seconds that one compile may take.

    Raises:
        UsageError: no command, one that cannot be started, no target or an unknown one.
        KeyboardInterrupt: stopped by the user; what was compiled is in the cache.
    """
    wanted = tuple(dict.fromkeys(parse_target(text) for text in targets))
    directory = checked_directory(wanted, Path(out), configs)
    if sys.platform != "linux":
        this_interpreter()
    if not command:
        raise UsageError("There is no program to run.", "Name it behind --: … -- python their_script.py")
    program = _program(command[0])
    waiting = [
        _Running(target, [program, *command[1:]], directory, configs, time_limit, live=place == 0)
        for place, target in enumerate(wanted)
    ]
    runs: list[_Running] = list(waiting)
    running: list[_Running] = []
    try:
        while waiting or running:
            while waiting and len(running) < (os.cpu_count() or 1):
                running.append(waiting.pop(0))
                running[-1].start()
            time.sleep(POLL_SECONDS)
            running = [one for one in running if one.status is None]
        results = [one.result() for one in runs]
        launches = [launch for one in runs for launch in find_launches(one.events())]
        record(directory, manifest_rows(kernel for run in results for kernel in run.kernels), launches)
        return results
    finally:
        for one in runs:
            one.end()


class _Running:
    """A program on its way, for one target."""

    def __init__(
        self,
        target: Target,
        command: Sequence[str],
        directory: Path,
        configs: int | None,
        time_limit: float,
        *,
        live: bool,
    ) -> None:
        self.target, self._command, self._live = target, command, live
        self._scratch = Path(tempfile.mkdtemp(prefix="inspect-kernel-"))
        self._directory = directory
        self._events = self._scratch / "events"
        self._settings = {
            "targets": [str(target)],
            "directory": str(directory),
            "configs": configs,
            "time_limit": time_limit,
            "events": str(self._events),
            "own": {"artifact_inspector": str(Path(__file__).parents[3])},
            "others": _needed_packages(),
        }
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it.

        Raises:
            UsageError: it cannot be started.
        """
        environment = {
            **{name: value for name, value in os.environ.items() if name not in _UNWANTED},
            _SETTING: json.dumps(self._settings),
            "TRITON_CACHE_DIR": str(self._directory),
            "PYTHONPATH": os.pathsep.join(filter(None, [str(_STARTUP), os.environ.get("PYTHONPATH")])),
        }
        # standard output is for the report
        output = None if self._live else (self._scratch / "output").open("wb")
        try:
            self._process = subprocess.Popen(
                self._command,
                env=environment,
                stdin=None if self._live else subprocess.DEVNULL,
                stdout=sys.stderr.fileno() if output is None else output,
                stderr=output or None,
            )
        except OSError as error:
            raise UsageError(
                f"{self._command[0]} cannot be run: {error.strerror}.",
                "Begin with the interpreter: -- python their_script.py",
            ) from None
        finally:
            if output is not None:
                output.close()

    @property
    def status(self) -> int | None:
        """The exit status, as a shell gives it; None while it runs."""
        if self._process is None:
            return None
        status = self._process.poll()
        return 128 - status if status is not None and status < 0 else status

    def events(self) -> list[Event]:
        """What happened until now."""
        if not self._events.exists():
            return []
        # the last line may be half written
        lines = self._events.read_bytes().split(b"\n")[:-1]
        return [json.loads(line) for line in lines]

    def result(self) -> ProgramRun:
        """What came of it."""
        events = self.events()
        output = self._scratch / "output"
        kernels = tuple(find_kernels(events))
        return ProgramRun(
            self.target,
            self.status or 0,
            "" if self._live else output.read_text(errors="replace"),
            kernels,
            tuple(find_notes(events)),
            _problem(events, self._command, captured=bool(kernels), failed=bool(self.status)),
        )

    def end(self) -> None:
        """End it if it still runs, and leave nothing behind."""
        if self._process is not None and self._process.poll() is None:
            self._process.terminate()
            try:
                self._process.wait(timeout=5)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        shutil.rmtree(self._scratch, ignore_errors=True)


def _program(name: str) -> str:
    """The file to run; `python` is the interpreter that we run in, which has Triton or can have it."""
    return sys.executable if name in ("python", "python3") else name


def _needed_packages() -> dict[str, str]:
    """Where the packages lie that the stand-ins need beside ours: name → the directory that holds it."""
    spec = find_spec("elftools")
    return {} if spec is None or spec.origin is None else {"elftools": str(Path(spec.origin).parents[1])}


def _problem(
    events: Sequence[Event], command: Sequence[str], *, captured: bool, failed: bool
) -> tuple[str, str | None] | None:
    """Why a run captured nothing or failed, where that is more than its traceback tells."""
    if captured and not failed:
        return None
    kinds = {event["event"]: event for event in events}
    if "failed" in kinds:
        return kinds["failed"]["message"], kinds["failed"]["remedy"]
    if "started" not in kinds:
        return (
            f"{command[0]} ran no Python that could be captured.",
            "Name the interpreter, without -I, -E or -S: -- python their_script.py",
        )
    missing = {event["module"]: event["python"] for event in events if event["event"] == "missing"}
    for module in ("triton", "torch"):
        if module in missing:
            rest = " ".join(["/path/to/python", *command[1:]])
            return (
                f"{missing[module]} has no {module}, which the program wanted to import.",
                f"Install it there, or name the interpreter that has it: -- {rest}",
            )
    if failed:
        return None
    if any(event["event"] == "imported" and event["module"] == "triton" for event in events):
        return "The program imported Triton and launched no kernel.", None
    return "The program never imported Triton, so it launched no kernel.", None
