"""Compiles and simulates changed configurations of a launch, and keeps those that help."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from artifact_inspector.compiling.ask.compile import compile_kernels, count_processors
from artifact_inspector.compiling.ask.request import ConstantText, KernelRequest
from artifact_inspector.diagnosis.cause import CauseKind, Diagnosis
from artifact_inspector.diagnosis.changes import Change, changed_grid, propose_changes
from artifact_inspector.diagnosis.diagnose import diagnose
from artifact_inspector.diagnosis.remedy import Remedy, RemedySearch
from artifact_inspector.errors import CacheError, CompileError, UsageError
from artifact_inspector.execution.argument_matching import match_launch
from artifact_inspector.execution.kernel_loader import load_kernel
from artifact_inspector.execution.launch_requests import LaunchRequest
from artifact_inspector.execution.simulation import simulate_launch
from artifact_inspector.execution.timing.candidates import RankingCandidate
from artifact_inspector.execution.timing.ranking import RankedLaunch, rank_launches
from artifact_inspector.execution.timing.variations import VARIABLE_OPTIONS, recorded_compile
from artifact_inspector.facts.inspection import inspect_artifact
from artifact_inspector.facts.modules import Disassemble
from artifact_inspector.files.cache import Artifact, open_cache

MOST_REMEDIES = 3
LEAST_GAIN = 1.05
"""Predicted time before ÷ after from which a change counts: below, the model's error is larger."""
NOTHING_HELPS = "No configuration tried helps"
_BATCH = 4
_SEARCH_SHARE = 2 / 3
"""Share of the budget for compiling; what is left is for verifying the best."""


def search_remedies(
    pair: tuple[Artifact, LaunchRequest],
    diagnosis: Diagnosis,
    make_disassembler: Callable[[Sequence[Artifact]], Disassemble | None],
    directory: Path,
    *,
    gpu: str | None = None,
    steps: int = 50_000_000,
    kernel: str | None = None,
    budget: float = 60.0,
    progress: Callable[[str], None] = lambda label: None,
) -> RemedySearch:
    """The changes of a configuration that lower the predicted time of a launch.

    Args:
        pair: the kernel with its launch.
        diagnosis: of the launch.
        make_disassembler: for some entries.
        directory: cache directory to compile into.
        gpu: product name.
        steps: instructions after which a kernel counts as endless.
        kernel: `FILE.py:KERNEL`, the file to import for a kernel that is not part of this package.
        budget: seconds after which no further configuration is compiled.
        progress: called with each configuration before it is compiled.
    """
    entry, request = pair
    if not diagnosis.causes:
        return RemedySearch((), 0, "")
    if diagnosis.microseconds is None or entry.target is None:
        return RemedySearch((), 0, "No configuration was tried: times are not predicted for this kernel.")
    try:
        record = recorded_compile(entry)
        kernel_path = record.resolve_kernel_path(entry.display_name, kernel)
    except UsageError as error:
        return RemedySearch((), 0, f"No configuration was tried: {error.message} {error.remedy or ''}".strip())
    deadline = time.monotonic() + budget
    options = {name: entry.metadata.get(name) for name in ("num_warps", "num_stages")}
    kinds: list[CauseKind] = [cause.kind for cause in diagnosis.causes]
    changes = [
        (change, grid)
        for change in propose_changes(kinds, options, entry.constants, entry.target.warp_size)
        if (grid := changed_grid(request, entry.constants, change)) is not None
    ]
    ranked: list[tuple[RankedLaunch, RankingCandidate, Change]] = []
    tried = 0
    while changes and time.monotonic() < deadline - budget * (1 - _SEARCH_SHARE):
        batch, changes = changes[:_BATCH], changes[_BATCH:]
        requests = [
            KernelRequest(
                kernel_path,
                record.types,
                {**record.constants, **_constants(change)},
                {**record.options, **{name: value for name, value in change.items() if name in VARIABLE_OPTIONS}},
                is_untrusted=True,
            )
            for change, _ in batch
        ]
        progress(_describe(batch[0][0]))
        try:
            results = compile_kernels(requests, [record.target], directory)
        except CompileError as error:
            return RemedySearch((), 0, f"No configuration was tried: {error.message}")
        entries = {one.directory: one for one in open_cache(directory).entries}
        compiled = [
            (RankingCandidate(entries[result.directory.name], replace(request, grid=grid, kernel_hash=None),
                              entries[result.directory.name].constants, _describe(change)), change)
            for (change, grid), result in zip(batch, results, strict=True)
            if result.directory is not None
        ]  # fmt: skip
        if not compiled:
            continue
        candidates = [candidate for candidate, _ in compiled]
        try:
            rows = rank_launches(
                candidates,
                make_disassembler([candidate.artifact for candidate in candidates]),
                gpu=gpu,
                limit=steps,
                processors=count_processors(),
            )
        except (UsageError, CacheError):
            continue
        tried += len(rows)
        ranked += [(row, *compiled[row.launch]) for row in rows if row.score is not None and row.identical_to is None]
    ranked.sort(key=lambda one: one[0].score or 0.0)
    best = [one[1:] for one in ranked]
    return _verify(pair, diagnosis, best, tried, make_disassembler, gpu=gpu, steps=steps, deadline=deadline)


def _constants(change: Change) -> dict[str, ConstantText]:
    return {name: ConstantText(repr(value)) for name, value in change.items() if name not in VARIABLE_OPTIONS}


def _describe(change: Change) -> str:
    return " ".join(f"{name}={value}" for name, value in change.items())


def _verify(
    pair: tuple[Artifact, LaunchRequest],
    diagnosis: Diagnosis,
    ranked: Sequence[tuple[RankingCandidate, Change]],
    tried: int,
    make_disassembler: Callable[[Sequence[Artifact]], Disassemble | None],
    *,
    gpu: str | None,
    steps: int,
    deadline: float,
) -> RemedySearch:
    """The best changes that touch the same bytes, and remove or reduce the first cause."""
    entry, request = pair
    assert diagnosis.microseconds is not None
    remedies: list[Remedy] = []
    bytes_before: tuple[int, int] | None = None
    for position, (candidate, change) in enumerate(ranked):
        if len(remedies) == MOST_REMEDIES or (position and time.monotonic() > deadline):
            break
        disassemble = make_disassembler([entry, candidate.artifact])
        after = diagnose(candidate, disassemble, gpu=gpu, limit=steps)
        if after.microseconds is None or diagnosis.microseconds < LEAST_GAIN * after.microseconds:
            break
        if not _reduces(diagnosis, after):
            continue
        if any(name not in VARIABLE_OPTIONS and type(value) is int for name, value in change.items()):
            bytes_before = bytes_before or _unique_bytes(entry, request, entry.constants, disassemble, steps)
            if bytes_before is None or bytes_before != _unique_bytes(
                candidate.artifact, candidate.request, candidate.constants, disassemble, steps
            ):
                continue  # it computes something else, or that cannot be excluded
        gain = round(diagnosis.microseconds / after.microseconds, 2)
        remedies.append(Remedy(_describe(change), None, gain, _costs(entry, candidate.artifact, change), True))
    reason = "" if remedies else f"{NOTHING_HELPS} ({tried} tried)."
    return RemedySearch(tuple(remedies), tried, reason)


def _reduces(before: Diagnosis, after: Diagnosis) -> bool:
    """Whether the first cause is gone, or takes less time."""
    first = before.causes[0]
    same = [cause for cause in after.causes if cause.kind is first.kind and cause.line == first.line]
    if not same or first.kind is CauseKind.BOUND:
        return True
    time_before = (first.share or 0.0) * (before.microseconds or 0.0)
    return (same[0].share or 0.0) * (after.microseconds or 0.0) < time_before


def _unique_bytes(
    entry: Artifact, request: LaunchRequest, constants: Mapping[str, Any], disassemble: Disassemble | None, steps: int
) -> tuple[int, int] | None:
    """Distinct bytes that the launch reads and writes; None if it does not end or leaves its tensors."""
    loaded, launch = match_launch(load_kernel(entry, disassemble), request, constants)
    run = simulate_launch(loaded, launch, limit=steps)
    if run.unfinished or run.counters.missing_inputs or run.counters.out_of_bounds:
        return None
    return run.memory.count_unique_bytes()


def _costs(before: Artifact, after: Artifact, change: Change) -> tuple[str, ...]:
    """What the change takes in addition."""
    old, new = inspect_artifact(before, None), inspect_artifact(after, None)
    costs = []
    for name in ("registers", "shared"):
        value_before, value_after = getattr(old.resources, name).value, getattr(new.resources, name).value
        if value_before is not None and value_after is not None and value_after > value_before:
            unit = "registers per thread" if name == "registers" else "B of shared memory"
            costs.append(f"{value_after - value_before:,} {unit}")
    if old.occupancy and new.occupancy and (old.occupancy.warps or 0) > (new.occupancy.warps or 0):
        costs.append(f"occupancy ({old.occupancy.warps} → {new.occupancy.warps} warps)")
    if "tf32" in change.values():
        costs.append("precision (tf32 has 10 fraction bits)")
    return tuple(costs)
