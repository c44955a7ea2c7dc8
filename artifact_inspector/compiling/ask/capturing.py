"""Capture every kernel that a block of Python would launch, without a GPU.

The kernels, launches and notes of a captured program are built from its events.
"""

from __future__ import annotations

import json
import threading
from ast import literal_eval
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from artifact_inspector.compiling.ask.compile import TIME_LIMIT_SECONDS
from artifact_inspector.compiling.ask.manifest import CAPTURED_PREFIX, add_to_manifest, create_directory
from artifact_inspector.compiling.ask.process import current_interpreter
from artifact_inspector.compiling.ask.request import CompileResult
from artifact_inspector.compiling.capture.known_tensors import KnownTensors
from artifact_inspector.compiling.capture.recorder import CallSite, Event, Recorder
from artifact_inspector.compiling.capture.torch_stand_in import TorchStandIn
from artifact_inspector.compiling.capture.triton_stand_in import TritonStandIn
from artifact_inspector.errors import UsageError
from artifact_inspector.hardware.targets import Target, parse_target


@dataclass(frozen=True, slots=True)
class Launch:
    """All launches of one kernel from one statement with the same grid."""

    grid: tuple[int, ...]
    """CTAs in x, y and z; if one is zero, nothing would run."""
    location: str
    """`file:line` of the launch."""
    caller: str
    """`file:line` of the program's own statement that led to the launch; equals `place` without a library in
    between."""
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

    @property
    def archs(self) -> tuple[str, ...]:
        """Of the runs that it is about."""
        return tuple(str(target.arch) for target in self.targets)


def merge_notes(notes: Iterable[Note]) -> list[Note]:
    """Merge equal notes of several runs; each lists all of its targets."""
    targets: dict[tuple[str, str | None], list[Target]] = {}
    for note in notes:
        targets.setdefault((note.text, note.location), []).extend(note.targets)
    return [
        Note(text, location, tuple(dict.fromkeys(note_targets))) for (text, location), note_targets in targets.items()
    ]


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
    filled = {x["storage"] for x in events if x["event"] == "filled"}
    launches: dict[str, dict[str, Any]] = {}
    for event in events:
        key = (event.get("kernel"), event.get("target"))
        if event["event"] == "given" and key in names:
            launch = {
                "hash": key[0], "kernel": names[key], "target": key[1], "grid": event["grid"],
                "args": event["args"],
                **({"interpreted": event["interpreted"]} if "interpreted" in event else {})
            }  # fmt: skip
            launch_key = json.dumps(launch, sort_keys=True)
            launch |= {field: event[field] for field in ("initialized", "created") if field in event}
            if names_of_filled := [name for name, at in event.get("created", {}).items() if at in filled]:
                launch["filled"] = names_of_filled
            if not event["tuning"]:
                launches[launch_key] = launch
            else:
                launches.setdefault(launch_key, {**launch, "tuning": True})
    return list(launches.values())


def find_notes(events: Iterable[Event]) -> list[Note]:
    """Differences from a run on a GPU, each once with its targets."""
    notes = []
    tuned_kernels: dict[Target, dict[str, str]] = {}
    for event in events:
        target = None if event.get("target") is None else parse_target(event["target"])
        if event["event"] == "note":
            notes.append(Note(event["text"], event["place"], () if target is None else (target,)))
        elif event["event"] == "tuned" and target is not None:
            share = "{compiled} of {configs} of {name}".format(**event)
            tuned_kernels.setdefault(target, {})[event["name"]] = share
    prefix = "Some autotuner configurations were not compiled (--configs all compiles them)"
    return [
        *(Note(f"{prefix}: {_list_first([*names.values()])}.", None, (of,)) for of, names in tuned_kernels.items()),
        *merge_notes(notes),
    ]


def _list_first(texts: Sequence[str]) -> str:
    omitted = f" and {len(texts) - MAX_LISTED_KERNELS} more kernels" if len(texts) > MAX_LISTED_KERNELS else ""
    return f"{', '.join(texts[:MAX_LISTED_KERNELS])}{omitted}"


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


MAX_LISTED_KERNELS = 3
DEFAULT_CONFIGS = 3
"""Default number of configurations that are compiled for an autotuned kernel."""
DEFAULT_DIRECTORY = Path("triton-cache")


class CapturedKernels(list[CapturedKernel]):
    """The kernels of a `capture` block, filled in when the block ends; `inspect_cache` reads `directory`."""

    def __init__(self, directory: Path) -> None:
        super().__init__()
        self.directory = directory
        """The Triton cache that holds the kernels."""
        self.notes: list[Note] = []
        """Differences from a run on a GPU."""


_capture_lock = threading.Lock()


@contextmanager
def capture(
    targets: Iterable[str],
    out: Path | str = DEFAULT_DIRECTORY,
    *,
    configs: int | None = DEFAULT_CONFIGS,
    time_limit: float = TIME_LIMIT_SECONDS,
    list_type: Callable[[Path], CapturedKernels] = CapturedKernels,
) -> Iterator[CapturedKernels]:
    """Capture every kernel that the block would launch, without a GPU.

    Tensors may be on the CPU or on `meta`. Tensors made with `device="cuda"` are on the CPU and report
    `cuda:0`. Launches do nothing: a kernel's output holds zeros or its previous contents. Triton and torch
    are restored when the block ends.

    The block runs once and sees the first target as its GPU. Its launches are compiled for all targets.
    `capture_program` runs a program once for each target instead.

    Args:
        configs: number of configurations to compile for an autotuned kernel, evenly spaced; None for all.
        time_limit: seconds that one compile may take; a longer one is reported as a row.

    Yields:
        The list of kernels, filled when the block ends, also by an exception.

    Raises:
        UsageError: there is no target, an unknown one, or a capture block is already active.
        CompileError: Triton is not installed, or this version cannot be captured.
    """
    parsed_targets = tuple(dict.fromkeys(parse_target(text) for text in targets))
    directory = prepare_directory(parsed_targets, Path(out), configs)
    current_interpreter()
    if not _capture_lock.acquire(blocking=False):
        raise UsageError("A capture is already active in this process.", "End its block first, or pass it all targets.")
    try:
        events: list[Event] = []
        recorder, tensors = Recorder(events.append, directory=directory), KnownTensors()
        captured_kernels = list_type(directory)
        stand_ins: list[TorchStandIn | TritonStandIn] = [
            TritonStandIn(parsed_targets, recorder, directory, configs, time_limit, tensors)
        ]
        if find_spec("torch") is not None:
            stand_ins.insert(0, TorchStandIn(parsed_targets[0], recorder, tensors))
        with ExitStack() as stack:
            for stand_in in stand_ins:
                stack.callback(stand_in.remove)
                stand_in.install()
            try:
                yield captured_kernels
            finally:
                recorder.finish()
                captured_kernels.extend(find_kernels(events))
                captured_kernels.notes.extend(find_notes(events))
                add_to_manifest(directory, manifest_rows(captured_kernels), find_launches(events))
    finally:
        _capture_lock.release()


def prepare_directory(targets: Sequence[Target], out: Path, configs: int | None) -> Path:
    """The cache directory, created if it is missing.

    Raises:
        UsageError: there are no targets or no configurations, or the directory cannot be created.
    """
    if not targets:
        raise UsageError("No target to capture for.", "Name one: --target sm_90,gfx942")
    if configs is not None and configs < 1:
        raise UsageError(f"Cannot capture {configs} configurations.", "Expected a number from 1, or all.")
    return create_directory(out)


def _parse_constant(text: str) -> object:
    """A constant as `compile` records it: a Python value, or the name of a function or type as text."""
    try:
        value = literal_eval(text)
    except (ValueError, SyntaxError):
        return text
    return value if value is None or isinstance(value, (bool, int, float, str)) else text


def manifest_rows(kernels: Iterable[CapturedKernel]) -> list[CompileResult]:
    """Captured kernels as rows of the cache's manifest, as if each had been compiled by its signature."""
    return [
        CompileResult(
            kernel=kernel.name,
            target=kernel.target,
            seconds=kernel.seconds,
            directory=kernel.directory,
            message=kernel.message,
            kernel_path=kernel.kernel_path or f"{CAPTURED_PREFIX}{kernel.compiled_for.line}",
            is_cached=kernel.directory is not None and not kernel.seconds,
            types=tuple(f"{name}={type_}" for name, type_ in kernel.signature.items()),
            constants={name: _parse_constant(text) for name, text in kernel.constexprs.items()},
            options=kernel.options,
        )
        for kernel in kernels
    ]
