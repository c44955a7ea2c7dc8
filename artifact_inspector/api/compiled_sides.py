"""Compiles one kernel twice, with two Triton releases or from two commits, to compare the results."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from artifact_inspector.compiling.ask.compile import compile_kernels, compile_states, older_kernel_state
from artifact_inspector.compiling.ask.request import CompileResult, KernelRequest
from artifact_inspector.errors import CompileError, UsageError
from artifact_inspector.files.cache import Artifact, open_cache

Sides = tuple[tuple[Artifact, ...], tuple[Artifact, ...]]


def compile_releases(
    request: KernelRequest,
    targets: Sequence[str],
    releases: Sequence[str],
    out: Path,
    notice: Callable[[str], None] = lambda sentence: None,
) -> Sides:
    """The kernel as two Triton releases compile it.

    Args:
        notice: called with a sentence before an environment is created.

    Raises:
        UsageError: there are not two releases.
        CompileError: a release does not compile the kernel.
    """
    _require_two(releases, "releases", "--triton 3.5.1,3.6.0")
    old, new = (
        _open_entries(compile_kernels([request], targets, out, tritons=[release], notice=notice), f"Triton {release}")
        for release in releases
    )
    return old, new


def compile_commits(
    request: KernelRequest, targets: Sequence[str], commits: Sequence[str], out: Path, tritons: Sequence[str] = ()
) -> Sides:
    """The kernel as two commits have it.

    Args:
        tritons: the version of Triton; empty for the installed one.

    Raises:
        UsageError: there are not two commits, or a commit lacks the file.
        CompileError: one of the two does not compile.
    """
    _require_two(commits, "commits", "--commits HEAD~1,HEAD")
    states = (older_kernel_state(request, commits[0]), older_kernel_state(request, commits[1]))
    old, new = compile_states(states, targets, out, tritons=tritons)
    return _open_entries(old, commits[0]), _open_entries(new, commits[1])


def _require_two(names: Sequence[str], noun: str, example: str) -> None:
    if len(names) != 2:
        raise UsageError(f"Expected two {noun}, not {len(names)}.", f"Write for example {example}.")


def _open_entries(rows: Sequence[CompileResult], label: str) -> tuple[Artifact, ...]:
    for row in rows:
        if row.directory is None:
            error = UsageError if row.is_usage_error else CompileError
            raise error(f"{label}: {row.message}", row.remedy)
    return tuple(open_cache(row.directory).entries[0] for row in rows if row.directory is not None)
