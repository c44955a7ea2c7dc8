"""Run a program without a GPU, once for each target, and capture every kernel that it would launch."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from artifact_inspector.compiling.ask.capturing import (
    DEFAULT_CONFIGS,
    DEFAULT_DIRECTORY,
    CapturedKernel,
    Note,
    find_kernels,
    find_launches,
    find_notes,
    manifest_rows,
    prepare_directory,
)
from artifact_inspector.compiling.ask.compile import TIME_LIMIT_SECONDS
from artifact_inspector.compiling.ask.environments import find_interpreter, parse_triton
from artifact_inspector.compiling.ask.manifest import add_to_manifest
from artifact_inspector.compiling.ask.process import Interpreter, current_interpreter
from artifact_inspector.compiling.capture.recorder import Event
from artifact_inspector.compiling.publishing import remove_stale_staging
from artifact_inspector.errors import UsageError
from artifact_inspector.files.scratch import scratch_directory
from artifact_inspector.hardware.targets import Target, parse_target

POLL_SECONDS = 0.05
_SETTINGS_VARIABLE = "INSPECT_KERNEL_CAPTURE"
_STARTUP_DIRECTORY = Path(__file__).parents[1] / "capture" / "startup"
# With these, kernels would be interpreted, recompiled outside of the child that isolates crashes, or cached elsewhere.
_CLEARED_VARIABLES = ("TRITON_INTERPRET", "TRITON_ALWAYS_COMPILE", "TRITON_CACHE_MANAGER")


@dataclass(frozen=True, slots=True)
class ProgramRun:
    """The run of a program for one target."""

    target: Target
    status: int
    """Exit status; 128 plus the signal number for a signal, as in a shell."""
    output: str
    """Text of both output streams; empty for a run whose output goes to standard error directly."""
    kernels: tuple[CapturedKernel, ...]
    notes: tuple[Note, ...]
    problem: tuple[str, str | None] | None
    """Why nothing was captured, and a remedy; None if kernels were captured."""

    @property
    def message(self) -> str | None:
        """Why nothing was captured, or what the program lacked."""
        return None if self.problem is None else " ".join(filter(None, self.problem))


def capture_program(
    command: Sequence[str],
    targets: Iterable[str],
    out: Path | str = DEFAULT_DIRECTORY,
    *,
    configs: int | None = DEFAULT_CONFIGS,
    time_limit: float = TIME_LIMIT_SECONDS,
    triton: str | None = None,
    launches: int | None = None,
    seconds: float | None = None,
    interprets: bool = False,
    notice: Callable[[str], None] = lambda sentence: None,
) -> list[ProgramRun]:
    """Run a program once for each target, without a GPU, and capture every kernel that it would launch.

    The runs are concurrent, one per processor. The output of the first goes to standard error directly, the
    output of the others into their results. Only the first run can read standard input.

    Args:
        command: the program and its arguments; `python` means the interpreter that runs this.
        configs: number of configurations to compile for an autotuned kernel, evenly spaced; None for all.
        time_limit: seconds that one compile may take.
        triton: another version of Triton to capture with, as `parse_triton` reads it. Its Python replaces
            `python`, and imports this one's packages (torch) if both have the same version.
        launches: number of launches after which each run is stopped.
        interprets: whether launches run in Triton's interpreter, so that the values of all tensors are recorded.
        notice: called with a sentence before an environment is created, which takes a minute.

    A run that is stopped, by these limits or by Ctrl-C, returns its launches so far.

    Raises:
        UsageError: there is no command, it cannot be started, or there is no known target.
    """
    parsed_targets = tuple(dict.fromkeys(parse_target(text) for text in targets))
    directory = prepare_directory(parsed_targets, Path(out), configs)
    if sys.platform != "linux":
        current_interpreter()
    if not command:
        raise UsageError("There is no program to run.", "Name it after --: … -- python their_script.py")
    if (launches is not None and launches < 1) or (seconds is not None and seconds <= 0):
        raise UsageError("Limits of launches and seconds must be positive.", "Give a number above 0.")
    if any("\0" in word for word in command):
        raise UsageError("The command has a NUL character.", "Give a command without it.")
    interpreter = None if triton is None else find_interpreter(*parse_triton(triton), notice=notice)
    command = [_find_program(command[0], interpreter), *command[1:]]
    settings: dict[str, Any] = {"configs": configs, "time_limit": time_limit, "launches": launches}
    settings |= {"interprets": interprets}
    variables: dict[str, str] = {}
    if interpreter is not None:
        if str(interpreter.command[0]) != sys.executable:  # packages that the program's own interpreter lacks
            settings["import_paths"] = list(interpreter.import_paths)
        # the linker that an older Triton needs for AMD; the program keeps its own import path
        variables = {name: text for name, text in interpreter.environment.items() if name.startswith("TRITON_")}
    runs = [
        _ProgramProcess(target, command, directory, settings, variables, is_live=position == 0)
        for position, target in enumerate(parsed_targets)
    ]
    _run_all(runs, seconds)
    try:
        results = [program_process.result() for program_process in runs]
        launches_ = [launch for program_process in runs for launch in find_launches(program_process.events())]
        add_to_manifest(directory, manifest_rows(kernel for run in results for kernel in run.kernels), launches_)
        return results
    finally:
        for program_process in runs:
            program_process.end()


def _run_all(runs: Sequence[_ProgramProcess], seconds: float | None) -> None:
    """Run programs concurrently, one per processor."""
    waiting, running = list(runs), list[_ProgramProcess]()
    try:
        while waiting or running:
            while waiting and len(running) < (os.cpu_count() or 1):
                running.append(waiting.pop(0))
                running[-1].start()
            time.sleep(POLL_SECONDS)
            for program_process in running:
                program_process.stop_after(seconds)
            running = [program_process for program_process in running if program_process.status is None]
    except KeyboardInterrupt:
        for program_process in runs:
            program_process.stop("by the user")


class _ProgramProcess:
    def __init__(
        self,
        target: Target,
        command: Sequence[str],
        directory: Path,
        settings: Mapping[str, Any],
        variables: Mapping[str, str],
        *,
        is_live: bool,
    ) -> None:
        self.target, self._command, self._directory, self._is_live = target, command, directory, is_live
        self._scratch_handle = scratch_directory()
        self._scratch = Path(self._scratch_handle.name)
        self._events = self._scratch / "events"
        package = {"artifact_inspector": str(Path(__file__).parents[3])}
        settings = {**settings, "targets": [str(target)], "directory": str(directory), "own": package}
        settings |= {"events": str(self._events), "parent": os.getpid()}
        self._environment = {
            **{name: value for name, value in os.environ.items() if name not in _CLEARED_VARIABLES},
            **variables,
            _SETTINGS_VARIABLE: json.dumps(settings),
            "TRITON_CACHE_DIR": str(directory),
            "PYTHONPATH": os.pathsep.join(filter(None, [str(_STARTUP_DIRECTORY), os.environ.get("PYTHONPATH")])),
        }
        self._process: subprocess.Popen[bytes] | None = None
        self._start_time = 0.0
        self._stop_reason: str | None = None

    def start(self) -> None:
        # standard output is reserved for the report
        output = None if self._is_live else (self._scratch / "output").open("wb")
        self._start_time = time.monotonic()
        try:
            self._process = subprocess.Popen(
                self._command,
                env=self._environment,
                stdin=None if self._is_live else subprocess.DEVNULL,
                stdout=sys.stderr.fileno() if output is None else output,
                stderr=output or None,
            )
        except OSError as error:
            remedy = "Begin with the interpreter: -- python their_script.py"
            raise UsageError(f"{self._command[0]} cannot be run: {error.strerror}.", remedy) from None
        finally:
            if output is not None:
                output.close()

    @property
    def status(self) -> int | None:
        """The exit status, as in a shell; None while the program runs."""
        if self._process is None:
            return None
        status = self._process.poll()
        return 128 - status if status is not None and status < 0 else status

    def stop_after(self, seconds: float | None) -> None:
        if seconds is not None and time.monotonic() - self._start_time > seconds and self.status is None:
            self.stop(f"after {seconds:g} s")

    def stop(self, reason: str) -> None:
        """Stop the program, or keep it from starting; its launches so far are kept."""
        if self._process is None or self.status is None:
            self._stop_reason = reason
            self._end_process()

    def events(self) -> list[Event]:
        if not self._events.exists():
            return []
        return [json.loads(line) for line in self._events.read_bytes().split(b"\n")[:-1]]  # the last may be incomplete

    def result(self) -> ProgramRun:
        events, output = self.events(), self._scratch / "output"
        kernels = tuple(find_kernels(events))
        enough = next((event["launches"] for event in events if event["event"] == "enough"), None)
        stopped = self._stop_reason if enough is None else f"after {enough} launches"
        status = 0 if stopped is not None else self.status or 0
        notes = tuple(find_notes(events))
        if stopped is not None:
            notes = (Note(f"The program was stopped {stopped}.", None, (self.target,)), *notes)
        problem = None
        if stopped is None or not kernels:
            problem = _describe_failure(events, self._command, captured=bool(kernels), failed=bool(status))
        if self._process is None:
            problem = (f"The program was stopped {stopped} before it ran for {self.target}.", None)
        text = output.read_text(errors="replace") if output.exists() else ""
        return ProgramRun(self.target, status, text, kernels, notes, problem)

    def end(self) -> None:
        """End the program if it still runs, and remove its temporary files."""
        self._end_process()
        remove_stale_staging(self._directory)
        self._scratch_handle.cleanup()

    def _end_process(self) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.terminate()
            try:
                self._process.wait(timeout=5)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()


def _find_program(name: str, interpreter: Interpreter | None) -> str:
    """The file to run; `python` means the interpreter with the requested Triton, or else our own."""
    by_name = name in ("python", "python3")
    if interpreter is None:
        return sys.executable if by_name else name
    if not by_name and name != sys.executable:
        raise UsageError(
            f"--triton replaces `python`, and {name} is another program.",
            "Run the program as: -- python their_script.py, or remove --triton.",
        )
    return str(interpreter.command[0])


def _describe_failure(
    events: Sequence[Event], command: Sequence[str], *, captured: bool, failed: bool
) -> tuple[str, str | None] | None:
    """Why a run captured nothing or failed, with a remedy; None if its traceback shows that."""
    if captured and not failed:
        return None
    events_by_kind = {event["event"]: event for event in events}
    if "failed" in events_by_kind:
        return events_by_kind["failed"]["message"], events_by_kind["failed"]["remedy"]
    if "started" not in events_by_kind:
        return (
            f"{command[0]} started no Python that could be captured.",
            "Name the interpreter, without -I, -E or -S: -- python their_script.py",
        )
    missing = {event["module"]: event["python"] for event in events if event["event"] == "missing"}
    uncaught_modules = {event["module"] for event in events if event["event"] == "uncaught"}
    for module in ("triton", "torch"):
        if module in missing and (module in uncaught_modules or not failed):
            corrected_command = " ".join(["/path/to/python", *command[1:]])
            return (
                f"{missing[module]} has no {module}, which the program imports.",
                f"Install it there, or name the interpreter that has it: -- {corrected_command}",
            )
    if failed:
        return None
    if any(event["event"] == "imported" and event["module"] == "triton" for event in events):
        return "The program imported Triton and launched no kernel.", None
    return "The program never imported Triton, so it launched no kernel.", None
