"""Capture every kernel that a block of Python would launch, without a GPU."""

from __future__ import annotations

import threading
from ast import literal_eval
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from importlib.util import find_spec
from pathlib import Path

from artifact_inspector.compiling.ask.captured import CapturedKernel, Note, find_kernels, find_launches, find_notes
from artifact_inspector.compiling.ask.compile import TIME_LIMIT_SECONDS
from artifact_inspector.compiling.ask.manifest import CAPTURED_PREFIX, add_to_manifest, create_directory
from artifact_inspector.compiling.ask.process import current_interpreter
from artifact_inspector.compiling.ask.request import CompileResult
from artifact_inspector.compiling.capture.recorder import Event, Recorder
from artifact_inspector.compiling.capture.torch_stand_in import TorchStandIn
from artifact_inspector.compiling.capture.triton_stand_in import TritonStandIn
from artifact_inspector.errors import UsageError
from artifact_inspector.hardware.targets import Target, parse_target

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
        recorder = Recorder(events.append, directory=directory)
        captured_kernels = list_type(directory)
        stand_ins: list[TorchStandIn | TritonStandIn] = [
            TritonStandIn(parsed_targets, recorder, directory, configs, time_limit)
        ]
        if find_spec("torch") is not None:
            stand_ins.insert(0, TorchStandIn(parsed_targets[0], recorder))
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
