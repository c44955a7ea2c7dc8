"""Compile the reference kernels with no GPU and no torch, into an ordinary Triton cache."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from artifact_inspector.compiling.reference import REFERENCE_KERNELS
from artifact_inspector.errors import CompileError, UsageError
from artifact_inspector.targets import Target, parse_target

__all__ = ["CompileResult", "compile_reference"]

TIME_LIMIT_SECONDS = 300.0
_WORKER = "artifact_inspector.compiling._worker"


@dataclass(frozen=True, slots=True)
class CompileResult:
    """What became of one kernel for one target."""

    kernel: str
    """Name of the reference kernel, as in `REFERENCE_KERNELS`."""
    target: Target
    seconds: float
    directory: Path | None
    """The entry in the cache; None when the compiler refused."""
    message: str | None
    """What the compiler said when it refused, else None."""


def compile_reference(
    names: Iterable[str],
    targets: Iterable[str],
    out_dir: Path,
    *,
    progress: Callable[[CompileResult], None] | None = None,
    time_limit: float = TIME_LIMIT_SECONDS,
) -> list[CompileResult]:
    """One result for each kernel and target, in the order asked for; `out_dir` becomes a Triton cache.

    Every compile runs in a process of its own, as many at a time as there are processors, so that a
    compiler that aborts or hangs costs one row. What is in the cache already is not compiled again.
    Pointers of AMD kernels are marked as reaching less than 2 GiB (`tt.pointer_range = 32`): Triton's
    launcher marks almost every tensor so, and only then does the compiler use buffer loads.

    Args:
        names: reference kernels; none means all.
        targets: as `parse_target` reads them: `sm_75`, `gfx90a`, `cuda:80`, `hip:gfx942` …
        out_dir: made if it is missing.
        progress: called with each result when it is there.
        time_limit: seconds that one compile may take.

    Raises:
        UsageError: an unknown kernel or target.
        CompileError: Triton cannot be used here at all.
    """
    # repeating a kernel or target would compile it twice at the same time
    kernels = list(dict.fromkeys(names)) or list(REFERENCE_KERNELS)
    wanted = list(dict.fromkeys(parse_target(target) for target in targets))
    for name in kernels:
        if name not in REFERENCE_KERNELS:
            raise UsageError(
                f"There is no reference kernel {name!r}.", f"There are {', '.join(REFERENCE_KERNELS)}."
            )
    _require_triton()
    try:
        out_dir.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(
            f"Cannot write to {out_dir}: {error.strerror}.", "Name another directory."
        ) from error
    order = [(name, target) for name in kernels for target in wanted]
    environment = {"TRITON_CACHE_DIR": str(out_dir.resolve())}
    jobs = [
        {"index": index, "place": REFERENCE_KERNELS[name], "target": str(target), "environment": environment}
        for index, (name, target) in enumerate(order)
    ]
    results: dict[int, CompileResult] = {}
    request = {"jobs": jobs, "workers": os.cpu_count() or 1, "time_limit": time_limit}
    with _worker(json.dumps(request)) as rows:
        for line in rows:
            row = json.loads(line)
            index = row["job"]["index"]
            directory = None if row["directory"] is None else Path(row["directory"])
            name, target = order[index]
            results[index] = CompileResult(name, target, row["seconds"], directory, row["message"])
            if progress is not None:
                progress(results[index])
    return [results[index] for index in range(len(order))]


def _require_triton() -> None:
    """Raise a CompileError that says what to do where Triton cannot be imported."""
    if sys.platform != "linux":
        raise CompileError(
            f"Triton cannot compile on {sys.platform}: its compiler exists for Linux only.",
            "Compile on Linux (no GPU is needed) and inspect the cache directory here.",
        )
    if find_spec("triton") is None:
        raise CompileError(
            "Triton is not installed.", f"Install it: {sys.executable} -m pip install 'triton>=3.4'."
        )


@contextmanager
def _worker(request: str) -> Iterator[Iterable[str]]:
    """The lines that the compiling process answers; it and its children end with the block.

    Raises:
        CompileError: it could not start, or ended with jobs undone.
    """
    # what the caller can import, the child can: the kernels may lie in a checkout
    settings = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    # a kernel under the interpreter is no kernel that could be compiled
    settings.pop("TRITON_INTERPRET", None)
    command = [sys.executable, "-m", _WORKER]
    process = subprocess.Popen(
        command,
        env=settings,
        text=True,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    try:
        # a process that ended before it read says why on standard error
        with suppress(BrokenPipeError):
            process.stdin.write(request)
            process.stdin.flush()
        with suppress(BrokenPipeError):
            process.stdin.close()
        yield process.stdout
        complaint = process.stderr.read().strip()
        if process.wait() != 0:
            last = complaint.splitlines()[-1] if complaint else f"exit status {process.returncode}"
            raise CompileError(
                f"Triton could not be started: {last}.", "Check that `python -c 'import triton'` works."
            )
    finally:
        process.terminate()
        process.wait()
        process.stdout.close()
        process.stderr.close()
