"""Build the kernels, launches and notes of a captured program from its events."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from artifact_inspector.compiling.capture.recorder import CallSite, Event
from artifact_inspector.hardware.targets import Target, parse_target


@dataclass(frozen=True, slots=True)
class Launch:
    """All launches of one kernel from one statement with the same grid."""

    grid: tuple[int, ...]
    """CTAs in x, y and z; if one is zero, nothing would run."""
    location: str
    """`file:line` of the launch."""
    caller: str
    """`file:line` of the program's own statement that led to the launch; without a library, `location`."""
    count: int
    """Number of launches; a lower bound if the program was killed."""


@dataclass(frozen=True, slots=True)
class CapturedKernel:
    """One kernel that a program would launch on one GPU, specialised for its arguments."""

    name: str
    """Name of the Python function."""
    hash: str | None
    """Triton's hash, as in the entry's metadata; None if the compiler refused the kernel."""
    target: Target
    signature: Mapping[str, str]
    """Argument → type with its hint, as `compile --signature` takes it: `*fp16:16`, `i32:1`."""
    constexprs: Mapping[str, str]
    """Argument → value in Python's notation."""
    options: Mapping[str, Any]
    """num_warps, num_stages and num_ctas, and other options that differ from Triton's defaults."""
    launches: tuple[Launch, ...]
    """Empty if it was only compiled: by `warmup`, or as a configuration that the autotuner did not choose."""
    benchmark_launches: int
    """Number of launches by an autotuner to time it."""
    compiled_for: CallSite
    """The launch that first needed it."""
    seconds: float
    """Duration of the compile; 0 for a cache hit."""
    directory: Path | None
    """Directory of its cache entry; None if the compiler refused the kernel."""
    message: str | None
    """The compiler's error message; None if it compiled."""
    shortage: str | None
    """The GPU resource that it exceeds, so that a real launch would fail; else None."""
    kernel_path: str | None = None
    """`FILE.py:KERNEL`, if it can be imported from that file."""


@dataclass(frozen=True, slots=True)
class Note:
    """A difference between the captured run and a run on a GPU."""

    text: str
    location: str | None
    """`file:line` of the program's own statement, if known."""
    targets: tuple[Target, ...]


def merge_notes(notes: Iterable[Note]) -> list[Note]:
    """Merge equal notes of several runs; each lists all of its targets."""
    targets: dict[tuple[str, str | None], list[Target]] = {}
    for note in notes:
        targets.setdefault((note.text, note.location), []).extend(note.targets)
    return [Note(text, location, tuple(note_targets)) for (text, location), note_targets in targets.items()]


def find_kernels(events: Iterable[Event]) -> list[CapturedKernel]:
    """The kernels in a list of events, in the order of their first launch.

    A kernel that several processes compiled occurs once, with the sum of their launches.
    """
    compiled: dict[tuple[str, str], Event] = {}
    counts: dict[tuple[str, str], dict[tuple[Any, ...], int]] = {}
    shortages: dict[tuple[str, str], str] = {}
    for event in events:
        if "kernel" not in event:
            continue
        key = (event["kernel"], event["target"])
        if event["event"] == "compiled":
            compiled.setdefault(key, event)
        elif event["event"] == "shortage":
            shortages[key] = event["message"]
        elif event["event"] == "launched":
            launch = (event["process"], event["benchmark"], tuple(event["grid"]), event["place"], event["caller"])
            # counts only grow: the last one written is the total
            counts.setdefault(key, {})[launch] = event["times"]
    return [_build_kernel(event, counts.get(key, {}), shortages.get(key)) for key, event in compiled.items()]


def find_launches(events: Sequence[Event]) -> list[dict[str, Any]]:
    """The distinct launches of compiled kernels, in the form of `compiling.arguments`, with their kernel.

    A launch that only an autotuner made, to time a configuration that it did not choose, is marked `tuning`.
    """
    compile_events = [x for x in events if x["event"] == "compiled" and x["directory"] is not None]
    names = {(x["kernel"], x["target"]): x["name"] for x in compile_events}
    launches: dict[str, dict[str, Any]] = {}
    for event in events:
        key = (event.get("kernel"), event.get("target"))
        if event["event"] == "given" and key in names:
            launch = {
                "hash": key[0],
                "kernel": names[key],
                "target": key[1],
                "grid": event["grid"],
                "args": event["args"],
            }
            launch_key = json.dumps(launch, sort_keys=True)
            if not event["tuning"]:
                launches[launch_key] = launch
            else:
                launches.setdefault(launch_key, {**launch, "tuning": True})
    return list(launches.values())


def find_notes(events: Iterable[Event]) -> list[Note]:
    """Differences from a run on a GPU, each once with its targets."""
    targets_of_note: dict[tuple[str, str | None], list[Target]] = {}
    tuned_kernels: dict[Target, dict[str, str]] = {}
    for event in events:
        if event["event"] == "note":
            targets = targets_of_note.setdefault((event["text"], event["place"]), [])
            if event["target"] is not None and (target := parse_target(event["target"])) not in targets:
                targets.append(target)
        elif event["event"] == "tuned":
            name, target = event["name"], parse_target(event["target"])
            tuned_kernels.setdefault(target, {})[name] = f"{event['compiled']} of {event['configs']} of {name}"
    text_prefix = "Some autotuner configurations were not compiled (--configs all compiles them)"
    return [
        *(
            Note(f"{text_prefix}: {', '.join(names.values())}.", None, (target,))
            for target, names in tuned_kernels.items()
        ),
        *(Note(text, location, tuple(targets)) for (text, location), targets in targets_of_note.items()),
    ]


def _build_kernel(event: Event, counts: Mapping[tuple[Any, ...], int], shortage: str | None) -> CapturedKernel:
    launches: dict[tuple[tuple[int, ...], str, str], int] = {}
    benchmarked = 0
    for (_, benchmark, grid, location, caller), times in counts.items():
        if benchmark:
            benchmarked += times
        else:
            launches[grid, location, caller] = launches.get((grid, location, caller), 0) + times
    return CapturedKernel(
        name=event["name"],
        hash=None if event["directory"] is None else event["kernel"],
        target=parse_target(event["target"]),
        signature=event["signature"],
        constexprs=event["constexprs"],
        options=event["options"],
        launches=tuple(Launch(*launch, times) for launch, times in launches.items()),
        benchmark_launches=benchmarked,
        compiled_for=CallSite(event["place"], event["caller"]),
        seconds=event["seconds"],
        directory=None if event["directory"] is None else Path(event["directory"]),
        message=event["message"],
        shortage=shortage,
        kernel_path=event.get("defined"),
    )
