"""Compile two states of one kernel concurrently: the current one, and an older or changed one."""

from __future__ import annotations

import re
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from artifact_inspector.compiling.ask.compile import compile_kernels, default_out, processors
from artifact_inspector.compiling.ask.environments import cache_directory
from artifact_inspector.compiling.ask.request import KernelRequest
from artifact_inspector.compiling.ask.result import CompileResult
from artifact_inspector.errors import UsageError
from artifact_inspector.files.revision import read_revision

_FILE = re.compile(r"(.+\.py)(?::([\w.]+))?")


@dataclass(frozen=True, slots=True)
class State:
    """One state of a kernel to compile."""

    request: KernelRequest
    label: str
    """Name for display: `HEAD~1`, a file, `as it is`."""
    instead: tuple[Path, Path] | None = None
    """The checkout and the directory with its older state; None for the current files."""


def as_it_was(request: KernelRequest, word: str) -> State:
    """The kernel of the same name in another file, or in the same file at a revision.

    Args:
        request: the current kernel, by `FILE.py:KERNEL`.
        word: `OTHER.py`, `OTHER.py:KERNEL`, or a git revision.

    Raises:
        UsageError: the file or revision does not exist, or the revision does not have the file.
    """
    here, there = _FILE.fullmatch(request.place), _FILE.fullmatch(word)
    own, name = (Path(here[1]), here[2] or "") if here is not None else (None, "")
    if there is not None:
        path = Path(there[1])
        if not path.is_file():
            raise UsageError(f"There is no file {path}.", "Name a file, a revision or a cache directory.")
        return State(replace(request, place=_place(path, there[2] or name)), word)
    if own is None or not own.is_file():
        raise UsageError(
            f"{request.place} is not a file with an older state at {word}.",
            "Name a kernel as FILE.py:KERNEL, or change an option: --with num_stages=4.",
        )
    was = read_revision(own, word, cache_directory() / "revisions")
    return State(replace(request, place=_place(was.moved(own), name)), word, (was.top, was.tree))


def compile_states(
    states: tuple[State, State] | tuple[State],
    targets: Iterable[str],
    out: Path | None = None,
    **settings: Any,
) -> list[list[CompileResult]]:
    """Compile each state; returns their results in the order of `compile_kernels`.

    One process compiles the states of one file. Two files have a process each, since modules of the same name
    may lie beside both.

    Args:
        states: one state or two.
        targets: as `parse_target` reads them.
        out: the cache to fill; by default one in the user's cache directory.
        settings: other arguments of `compile_kernels`.

    Raises:
        UsageError, CompileError: as `compile_kernels`.
    """
    targets = list(targets)
    out = default_out() if out is None else out
    places = {(state.request.place.partition(":")[0], state.instead) for state in states}
    if len(places) == 1:
        rows = compile_kernels(
            [state.request for state in states], targets, out, instead=states[0].instead, **settings
        )
        each = len(rows) // len(states)
        return [rows[at * each : (at + 1) * each] for at in range(len(states))]
    workers = max(1, (settings.pop("workers", None) or processors()) // len(states))
    with ThreadPoolExecutor(len(states)) as threads:
        jobs = [
            threads.submit(
                partial(compile_kernels, workers=workers, instead=state.instead, **settings),
                [state.request],
                targets,
                out,
            )
            for state in states
        ]
        return [job.result() for job in jobs]


def _place(file: Path, name: str) -> str:
    return f"{file}:{name}" if name else str(file)
