"""Write what happens in a captured program as events, for the calling process to read.

An event is a JSON object with its kind under `event`. All processes of a program write events as they happen,
so that the kernels captured before a failure or a stop are kept.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from artifact_inspector.compiling.capture.places import find_place
from artifact_inspector.hardware.targets import Target

Event = Mapping[str, Any]
MOST_GIVEN = 32
"""Largest number of distinct launches of a kernel whose arguments are recorded."""


class Recorder:
    """Writes events of a program; threads may share one recorder.

    Args:
        write: called with each event.
        most: number of launches after which the process ends; None for no limit.
    """

    def __init__(self, write: Callable[[Event], None], most: int | None = None) -> None:
        self._most = most
        self._write = write
        self._lock = threading.Lock()
        self._times: dict[str, int] = {}
        self._launches: dict[str, Event] = {}
        self._written: set[str] = set()
        self._given: dict[str, int] = {}

    def happened(self, event: str, **more: object) -> None:
        """Write an event."""
        self._write({"event": event, **more})

    def launched(self, kernel: str, target: Target, grid: Sequence[int], *, benchmark: bool) -> None:
        """Count a launch; the count is written whenever it has doubled, and by `finish`."""
        place = find_place()
        event = {
            "event": "launched",
            "kernel": kernel,
            "target": str(target),
            "grid": [int(size) for size in grid],
            "place": place.line,
            "caller": place.caller,
            "benchmark": benchmark,
            "process": os.getpid(),
        }
        key = json.dumps(event)
        with self._lock:
            self._launches[key] = event
            times = self._times[key] = self._times.get(key, 0) + 1
        if times & (times - 1) == 0:
            self._write({**event, "times": times})
        if 0 in grid:
            self.note("A grid dimension is zero: nothing would run.", target, place.caller)
        if self._most is not None and not benchmark and self._launched() >= self._most:
            self._end()

    def _launched(self) -> int:
        return sum(times for key, times in self._times.items() if not self._launches[key]["benchmark"])

    def _end(self) -> None:
        """End the process as if its program had ended, after the last requested launch."""
        self.finish()
        self._write({"event": "enough", "launches": self._launched()})
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError, ValueError):
                stream.flush()
        os._exit(0)

    def given(
        self, kernel: str, target: Target, grid: Sequence[int], args: Mapping[str, Any], *, tuning: bool
    ) -> None:
        """Write the arguments of a launch; each distinct launch once, up to a limit."""
        event = {
            "event": "given",
            "kernel": kernel,
            "target": str(target),
            "grid": [int(size) for size in grid],
            "args": args,
            "tuning": tuning,
        }
        key = json.dumps(event, default=str)
        with self._lock:
            if key in self._written or self._given.get(kernel, 0) >= MOST_GIVEN:
                return
            self._written.add(key)
            self._given[kernel] = self._given.get(kernel, 0) + 1
        self._write(json.loads(key))

    def note(self, text: str, target: Target | None = None, place: str | None = None) -> None:
        """Write a difference from a run on a GPU, once."""
        event = {
            "event": "note",
            "text": text,
            "place": place,
            "target": None if target is None else str(target),
        }
        key = json.dumps(event)
        with self._lock:
            if key in self._written:
                return
            self._written.add(key)
        self._write(event)

    @property
    def has_launched(self) -> bool:
        """Whether anything was launched so far."""
        return bool(self._launches)

    def finish(self) -> None:
        """Write the final launch counts."""
        with self._lock:
            final = [{**event, "times": self._times[key]} for key, event in self._launches.items()]
        for event in final:
            if event["process"] == os.getpid():
                self._write(event)


def append_to(path: Path) -> Callable[[Event], None]:
    """Create a function that appends events to a file as JSON lines; processes may share the file."""
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

    def write(event: Event) -> None:
        os.write(descriptor, (json.dumps(event) + "\n").encode())

    return write
