"""Write what happens in a captured program as events, for the calling process to read.

An event is a JSON object with its kind under `event`, and the statement of the program that led to it. All processes of
a program write events as they happen, so that the kernels captured before a failure or a stop are kept.
"""

from __future__ import annotations

import json
import os
import site
import sys
import sysconfig
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

from artifact_inspector.compiling.arguments import memory_layout, storage_offset
from artifact_inspector.files.tensor_values import store_arguments, store_bytes
from artifact_inspector.hardware.targets import Target

_OWN = str(Path(__file__).parents[1])
_STANDARD = tuple({f"{sysconfig.get_path(name)}{os.sep}" for name in ("stdlib", "platstdlib")})
_INSTALLED = tuple(
    {
        f"{path}{os.sep}"
        for path in (
            sysconfig.get_path("purelib"),
            sysconfig.get_path("platlib"),
            *site.getsitepackages(),
            *(path for path in sys.path if Path(path).name in ("site-packages", "dist-packages")),
        )
    }
)
_LIBRARY_PACKAGES = ("triton", "torch")
"""Packages whose frames lie between a program and its launches."""
# code that they generate has no module name, and a file name without a file
_GENERATED = tuple(f"{root}{name}{os.sep}" for root in ("", *_INSTALLED) for name in _LIBRARY_PACKAGES)


class CallSite(NamedTuple):
    """A statement of the running program."""

    line: str
    """`file:line` of the statement itself, which may be in a library's wrapper."""
    caller: str
    """`file:line` of the program's own statement: the innermost frame outside installed packages."""


def find_call_site() -> CallSite:
    """The statement of the program that called into Triton, torch or this package."""
    nearest = caller = generated_line = None
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        file, module = frame.f_code.co_filename, str(frame.f_globals.get("__name__", "")).partition(".")[0]
        is_standard = file.startswith(_STANDARD) and not file.startswith(_INSTALLED)
        if file == "<string>":  # `python -c`, or a function that Triton or torch generated
            generated_line = f"{file}:{frame.f_lineno}"
        elif not (is_standard or file.startswith((_OWN, "<frozen", *_GENERATED)) or module in _LIBRARY_PACKAGES):
            nearest = nearest or _format_location(file, frame.f_lineno)
            if not file.startswith(_INSTALLED):
                caller = _format_location(file, frame.f_lineno)
                break
        frame = frame.f_back
    nearest = nearest or generated_line or "?"
    return CallSite(nearest, caller or generated_line or nearest)


def _format_location(file: str, line: int) -> str:
    """The path relative to the current directory or to installed packages, or else absolute."""
    for root in (*_INSTALLED, f"{os.getcwd()}{os.sep}"):  # noqa: PTH109 - called at every launch
        if file.startswith(root):
            file = file[len(root) :]
            break
    return f"{file}:{line}"


Event = Mapping[str, Any]
MAX_RECORDED_LAUNCHES = 32
"""Largest number of distinct launches of a kernel whose arguments are recorded."""


class Recorder:
    """Writes events of a program; threads may share one recorder.

    Args:
        max_launches: number of launches after which the process ends; None for no limit.
        directory: the cache, which receives the values of large tensors; None to keep them in the events.
    """

    def __init__(
        self, write: Callable[[Event], None], max_launches: int | None = None, directory: Path | None = None
    ) -> None:
        self._write, self._max_launches, self._directory = write, max_launches, directory
        self._lock = threading.Lock()
        self._launch_counts: dict[str, int] = {}
        self._launches: dict[str, Event] = {}
        self._written_keys: set[str] = set()
        self._recorded_counts: dict[str, int] = {}

    def write_event(self, event: str, **fields: object) -> None:
        """Write an event."""
        self._write({"event": event, **fields})

    def count_launch(self, kernel: str, target: Target, grid: Sequence[int], *, benchmark: bool) -> None:
        """Count a launch; the count is written whenever it has doubled, and by `finish`."""
        call_site = find_call_site()
        event: dict[str, Any] = {"event": "launched", "kernel": kernel, "target": str(target)}
        event |= {"grid": [int(size) for size in grid], "place": call_site.line, "caller": call_site.caller}
        event |= {"benchmark": benchmark, "process": os.getpid()}
        key = json.dumps(event)
        with self._lock:
            self._launches[key] = event
            times = self._launch_counts[key] = self._launch_counts.get(key, 0) + 1
        if times & (times - 1) == 0:
            self._write({**event, "times": times})
        if 0 in grid:
            self.write_note("A grid dimension is zero: nothing would run.", target, call_site.caller)
        if self._max_launches is not None and not benchmark and self._count_all_launches() >= self._max_launches:
            self._end_process()

    def _count_all_launches(self) -> int:
        return sum(times for key, times in self._launch_counts.items() if not self._launches[key]["benchmark"])

    def _end_process(self) -> None:
        """End the process as if its program had ended, after the last requested launch."""
        self.finish()
        self._write({"event": "enough", "launches": self._count_all_launches()})
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError, ValueError):
                stream.flush()
        os._exit(0)

    def record_arguments(
        self,
        kernel: str,
        target: Target,
        grid: Sequence[int],
        args: Mapping[str, Any],
        origin: Mapping[str, Any],
        *,
        tuning: bool,
        interpreted: Mapping[str, Any] | None = None,
    ) -> None:
        """Write the arguments of a launch; each distinct launch once, up to a limit that is reported.

        Args:
            origin: `initialized`, the tensors that have values before the first such launch, and `created`, the
                number of the storage of each that was created without.
        """
        if self._directory is not None:
            args = store_arguments(self._directory, args, {})
        event: dict[str, Any] = {"event": "given", "kernel": kernel, "target": str(target)}
        event |= {"grid": [int(size) for size in grid], "args": args, "tuning": tuning}
        event |= {} if interpreted is None else {"interpreted": interpreted}
        key = json.dumps(event, default=str)
        with self._lock:
            if key in self._written_keys:
                return
            is_recorded = self._recorded_counts.get(kernel, 0) < MAX_RECORDED_LAUNCHES
            if is_recorded:
                self._written_keys.add(key)
                self._recorded_counts[kernel] = self._recorded_counts.get(kernel, 0) + 1
        if is_recorded:
            self._write({**event, **origin})
        else:
            self.write_note(
                f"A kernel has more than {MAX_RECORDED_LAUNCHES} different launches: the arguments of the first "
                f"{MAX_RECORDED_LAUNCHES} are recorded.",
                target,
            )

    def store_contents(self, tensor: Any, before: bytes, after: bytes) -> dict[str, str] | None:
        """Store the bytes of a tensor's storage before and after a launch, from its first to its last element."""
        if self._directory is None:
            return None
        size = int(tensor.element_size())
        first = storage_offset(tensor)
        shape, stride = memory_layout(tensor)
        if any(step < 0 for step in stride):
            return None
        last = sum((extent - 1) * step for extent, step in zip(shape, stride, strict=True))
        span = slice(first, first + (last + 1) * size)
        return {
            name: store_bytes(self._directory, content[span])
            for name, content in (("before", before), ("after", after))
        }

    def write_note(self, text: str, target: Target | None = None, location: str | None = None) -> None:
        """Write a difference from a run on a GPU, once."""
        event = {"event": "note", "text": text, "place": location, "target": None if target is None else str(target)}
        key = json.dumps(event)
        with self._lock:
            if key in self._written_keys:
                return
            self._written_keys.add(key)
        self._write(event)

    @property
    def has_launched(self) -> bool:
        """Whether anything was launched so far."""
        return bool(self._launches)

    def finish(self) -> None:
        """Write the final launch counts."""
        with self._lock:
            final = [{**event, "times": self._launch_counts[key]} for key, event in self._launches.items()]
        for event in final:
            if event["process"] == os.getpid():
                self._write(event)


def event_writer(path: Path) -> Callable[[Event], None]:
    """Create a function that appends events to a file as JSON lines; processes may share the file."""
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

    def write(event: Event) -> None:
        os.write(descriptor, (json.dumps(event) + "\n").encode())

    return write
