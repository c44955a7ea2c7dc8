"""Compile a kernel before and after a change, and compare the code."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from artifact_inspector.compiling.ask.request import KernelRequest
from artifact_inspector.compiling.ask.result import CompileResult
from artifact_inspector.compiling.ask.trial import State, as_it_was, compile_states
from artifact_inspector.errors import CompileError, UsageError
from artifact_inspector.facts.selection import choose
from artifact_inspector.files.cache import Artifact, Cache, open_cache

if TYPE_CHECKING:
    from artifact_inspector.report.reach import Answer


def try_change(
    request: KernelRequest,
    targets: Iterable[str],
    against: str | None = None,
    *,
    changed: Mapping[str, str] | None = None,
    out: Path | None = None,
    **settings: Any,
) -> list[Answer]:
    """Compile both states of a kernel at the same time, and find the stages that the change reached.

    Args:
        request: the kernel in its current state.
        targets: GPUs as `parse_target` accepts them.
        against: a revision (`HEAD~1`), a file (`old.py`, `old.py:KERNEL`) or a cache (`CACHE`,
            `CACHE:HASH`) with the other state. Default: the same file if `changed` is given, else `HEAD`.
        changed: options, constants or argument types that differ in the new state only, as typed.
        out: the cache to fill; by default a cache of this package, where nothing is compiled twice.
        settings: further arguments of `compile_kernels`.

    Returns:
        One answer per target and configuration.

    Raises:
        UsageError: there is no other state, or several kernels match.
        CompileError: one state did not compile; the message is the compiler's.
    """
    before: State | Cache
    place: tuple[Path, str | None] | None = None
    new = State(replace(request, changed={**request.changed, **(changed or {})}), "as it is")
    label = against or ("the same without" if changed else "HEAD")
    if against is None and changed:
        before = State(request, label)
    else:
        place = _cache_of(label)
        before = as_it_was(request, label) if place is None else open_cache(place[0])
    states = (before, new) if isinstance(before, State) else (new,)
    with ThreadPoolExecutor(1) as beside:
        compiling = beside.submit(compile_states, states, targets, out, **settings)
        # import the comparison while the compilers run
        import_module("artifact_inspector.comparison.reach")
        made = compiling.result()
    rows = made[-1]
    if isinstance(before, State):
        old_rows = made[0]
        if len(old_rows) != len(rows):
            raise UsageError(
                f"{label} has {len(old_rows)} configurations, the new state has {len(rows)}.",
                "Give the constants of one with --const, or remove --configs.",
            )
        for row in old_rows:
            _refuse(row, f"{label}: ")
        olds = [_entry(row) for row in old_rows]
    for row in rows:
        _refuse(row)
    news = [_entry(row) for row in rows]
    if isinstance(before, Cache):
        olds = [_partner(one, before, None if place is None else place[1]) for one in news]
    return [_answer(label, *pair) for pair in zip(olds, news, rows, strict=True)]


def _cache_of(word: str) -> tuple[Path, str | None] | None:
    """Directory and name of `CACHE` or `CACHE:NAME`; None if there is no such directory."""
    if Path(word).expanduser().is_dir():
        return Path(word).expanduser(), None
    directory, _, name = word.rpartition(":")
    return (
        (Path(directory).expanduser(), name) if directory and Path(directory).expanduser().is_dir() else None
    )


def _answer(label: str, before: Artifact, after: Artifact, row: CompileResult) -> Answer:
    from artifact_inspector.comparison.reach import find_reach
    from artifact_inspector.facts.inspection import inspect_artifact
    from artifact_inspector.report.reach import Answer

    config = "" if row.config is None else f" {row.config}"
    name = f"{after.display_name} for {row.target}{config}"
    entries = tuple(_directory(one) for one in (before, after))
    return Answer(label, name, find_reach(before, after, inspect_artifact), entries[0], entries[1])


def _refuse(row: CompileResult, whose: str = "") -> None:
    if row.message is not None:
        raise (UsageError if row.usage else CompileError)(f"{whose}{row.message}", row.remedy)


def _entry(row: CompileResult) -> Artifact:
    assert row.directory is not None
    return open_cache(row.directory).entries[0]


def _directory(artifact: Artifact) -> str:
    file = next(iter(artifact.files.values()))
    return str(file.parent) if isinstance(file, Path) else artifact.directory


def _partner(kernel: Artifact, cache: Cache, name: str | None) -> Artifact:
    """The kernel of a cache to compare with: same name and target, then same variant.

    Raises:
        UsageError: none or several match.
    """
    targets = [] if kernel.target is None else [kernel.target]
    found = choose(cache, name or kernel.display_name, targets)
    if name is None:
        found = tuple(one for one in found if one.display_name == kernel.display_name)
    if not found:
        raise UsageError(
            f"{cache.root} has no {kernel.display_name} for {kernel.target}.", "Give the entry: CACHE:HASH."
        )
    if len(found) > 1:
        from artifact_inspector.comparison.matching import Axis, match

        pairs = match(found, [kernel], (Axis.VERSION,)).pairs
        if len(pairs) == 1:
            return pairs[0][0].artifact
        listed = ", ".join(one.hash[:12] for one in found[:6])
        raise UsageError(
            f"{len(found)} kernels of {cache.root} match {kernel.display_name} for {kernel.target}.",
            f"Give one as CACHE:HASH: {listed}{' …' if len(found) > 6 else ''}.",
        )
    return found[0]
