"""Two states of one kernel compiled at the same time: as it is, and as it was or would be otherwise."""

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
    """A kernel at one time."""

    request: KernelRequest
    label: str
    """What it is called: `HEAD~1`, a file, `as it is`."""
    instead: tuple[Path, Path] | None = None
    """The checkout, and where its older state lies; None for the files as they are."""


def as_it_was(request: KernelRequest, word: str) -> State:
    """The kernel of the same name in another file, or in the same file at a revision.

    Args:
        request: the kernel as it is, by `FILE.py:KERNEL`.
        word: `OTHER.py`, `OTHER.py:KERNEL`, or a revision as git reads it.

    Raises:
        UsageError: there is no such file, revision, or file at that revision.
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
            f"{request.place} is no file here that could have been otherwise at {word}.",
            "Name a kernel as FILE.py:KERNEL, or say what is to change: --with num_stages=4.",
        )
    was = read_revision(own, word, cache_directory() / "revisions")
    return State(replace(request, place=_place(was.moved(own), name)), word, (was.top, was.tree))


def compile_states(
    states: tuple[State, State] | tuple[State],
    targets: Iterable[str],
    out: Path | None = None,
    **settings: Any,
) -> list[list[CompileResult]]:
    """The results of each state, in the order of `compile_kernels`.

    States of one file are compiled by one process. Those of two have a process each, for modules of one name
    may lie beside both.

    Args:
        out: the cache to fill; by default one of our own, where nothing is compiled twice.
        settings: further arguments of `compile_kernels`.

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
