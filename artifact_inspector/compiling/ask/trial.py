"""Compile two states of one kernel concurrently: the current one, and an older or changed one."""

from __future__ import annotations

import re
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from artifact_inspector.compiling.ask.compile import compile_kernels, count_processors, default_directory
from artifact_inspector.compiling.ask.environments import cache_directory
from artifact_inspector.compiling.ask.request import CompileResult, KernelRequest
from artifact_inspector.errors import UsageError
from artifact_inspector.files.revision import read_revision

_KERNEL_PATH = re.compile(r"(.+\.py)(?::([\w.]+))?")


@dataclass(frozen=True, slots=True)
class KernelState:
    """One state of a kernel to compile."""

    request: KernelRequest
    label: str
    """Name for display: `HEAD~1`, a file, `as it is`."""
    older_state: tuple[Path, Path] | None = None
    """The checkout and the directory with its older state; None for the current files."""


def older_kernel_state(request: KernelRequest, revision: str) -> KernelState:
    """The kernel of the same name in another file, or in the same file at a revision.

    Args:
        request: the current kernel, by `FILE.py:KERNEL`.
        revision: `OTHER.py`, `OTHER.py:KERNEL`, or a git revision.

    Raises:
        UsageError: the file or revision does not exist, or the revision does not have the file.
    """
    own_path_match, other_path_match = (_KERNEL_PATH.fullmatch(request.kernel_path), _KERNEL_PATH.fullmatch(revision))
    own_file, name = (Path(own_path_match[1]), own_path_match[2] or "") if own_path_match is not None else (None, "")
    if other_path_match is not None:
        path = Path(other_path_match[1])
        if not path.is_file():
            raise UsageError(f"There is no file {path}.", "Name a file, a revision or a cache directory.")
        return KernelState(replace(request, kernel_path=_join_kernel_path(path, other_path_match[2] or name)), revision)
    if own_file is None or not own_file.is_file():
        raise UsageError(
            f"{request.kernel_path} is not a file with an older state at {revision}.",
            "Name a kernel as FILE.py:KERNEL, or change an option: --with num_stages=4.",
        )
    checkout = read_revision(own_file, revision, cache_directory() / "revisions")
    request = replace(request, kernel_path=_join_kernel_path(checkout.resolve(own_file), name))
    return KernelState(request, revision, (checkout.top, checkout.tree))


def compile_states(
    states: tuple[KernelState, KernelState] | tuple[KernelState],
    targets: Iterable[str],
    out: Path | None = None,
    **settings: Any,
) -> list[list[CompileResult]]:
    """Compile each state; returns their results in the order of `compile_kernels`.

    One process compiles the states of one file. Two files have a process each, since modules of the same name
    may lie beside both.

    Args:
        out: the cache to fill; by default one in the user's cache directory.
        settings: other arguments of `compile_kernels`.

    Raises:
        UsageError, CompileError: as `compile_kernels`.
    """
    targets = list(targets)
    out = default_directory() if out is None else out
    sources = {(state.request.kernel_path.partition(":")[0], state.older_state) for state in states}
    if len(sources) == 1:
        requests = [state.request for state in states]
        rows = compile_kernels(requests, targets, out, older_state=states[0].older_state, **settings)
        rows_per_state = len(rows) // len(states)
        return [rows[at * rows_per_state : (at + 1) * rows_per_state] for at in range(len(states))]
    workers = max(1, (settings.pop("workers", None) or count_processors()) // len(states))
    with ThreadPoolExecutor(len(states)) as threads:
        jobs = []
        for state in states:
            compile_state = partial(compile_kernels, workers=workers, older_state=state.older_state, **settings)
            jobs.append(threads.submit(compile_state, [state.request], targets, out))
        return [job.result() for job in jobs]


def _join_kernel_path(file: Path, name: str) -> str:
    return f"{file}:{name}" if name else str(file)
