"""Diagnoses launches of compiled kernels, and tries changes of their configuration."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

from artifact_inspector.api.option_compiles import request_for
from artifact_inspector.api.remedy_trial import has_launch_times, predict_time
from artifact_inspector.comparison.matching import digest_of
from artifact_inspector.compiling.ask.compile import compile_kernels
from artifact_inspector.diagnosis.assumed_launch import assume_launch
from artifact_inspector.diagnosis.cause import Diagnosis
from artifact_inspector.diagnosis.diagnose import diagnose, with_time
from artifact_inspector.errors import CompileError, InspectorError, UsageError
from artifact_inspector.execution.interpreter.budget import current_budget
from artifact_inspector.execution.launch_requests import LaunchRequest
from artifact_inspector.execution.timing.candidates import RankingCandidate
from artifact_inspector.execution.timing.variations import recorded_compile
from artifact_inspector.facts.modules import Disassemble
from artifact_inspector.facts.selection import KernelFilter, select_kernels
from artifact_inspector.files.cache import Artifact, Cache, open_cache
from artifact_inspector.hardware.targets import Target
from artifact_inspector.model import Stage

_SAMPLED_TIME = "the time is that of some CTAs: the budget ended before all were simulated"
_COMPARED_STAGES = (Stage.TTIR, Stage.PTX, Stage.AMDGCN)
"""What a change of a source or of Triton reaches; binaries have line numbers."""


def assume_launches(
    cache: Cache, name: str | None, targets: Sequence[KernelFilter | Target]
) -> list[tuple[Artifact, LaunchRequest]]:
    """Each matching kernel with an assumed launch that fills the GPU.

    Raises:
        UsageError: a kernel's arguments are not pointers and numbers, or are unknown.
    """
    return [(entry, assume_launch(entry)) for entry in select_kernels(cache, name, targets)]


def headline(
    entry: Artifact, disassemble: Disassemble | None, request: LaunchRequest | None = None, *, gpu: str | None = None
) -> str | None:
    """The first sentence about a kernel: its first cause, or that nothing stands out; None if it cannot be simulated.

    A distance from the roofline is that of sampled CTAs; `advise` simulates all.

    Args:
        request: its launch; None assumes one that fills the GPU.
    """
    try:
        return diagnose_launches([(entry, request or assume_launch(entry))], disassemble, gpu=gpu)[0].summary
    except InspectorError:
        return None


def diagnose_launches(
    pairs: Sequence[tuple[Artifact, LaunchRequest]],
    disassemble: Disassemble | None,
    *,
    gpu: str | None = None,
    steps: int = 50_000_000,
    progress: Callable[[Artifact], None] = lambda entry: None,
) -> list[Diagnosis]:
    """The diagnosis of each launch; only of the first ones, if a budget of `limit_simulation` is spent.

    Args:
        gpu: product name; None selects the default product of each target.
        steps: instructions after which a kernel counts as endless.
        progress: called with each kernel before it is simulated.

    Raises:
        UsageError: the arguments do not fit a kernel.
        CacheError: a kernel has no readable machine code.
    """
    diagnoses: list[Diagnosis] = []
    budget = current_budget()
    for entry, request in pairs:
        if diagnoses and budget is not None and budget.is_spent():
            note = f"{len(diagnoses)} of {len(pairs)} launches were diagnosed: {budget.reason}"
            diagnoses[-1] = replace(diagnoses[-1], notes=(note, *diagnoses[-1].notes))
            break
        progress(entry)
        candidate = RankingCandidate(entry, request, entry.constants)
        diagnoses.append(diagnose(candidate, disassemble, gpu=gpu, limit=steps))
    return diagnoses


def with_launch_times(
    pairs: Sequence[tuple[Artifact, LaunchRequest]],
    diagnoses: Sequence[Diagnosis],
    disassemble: Disassemble | None,
    *,
    gpu: str | None = None,
    steps: int = 50_000_000,
) -> list[Diagnosis]:
    """The diagnoses with the times that `predict` prints; a note for each whose time stays that of some CTAs."""
    timed = []
    for (entry, request), diagnosis in zip(pairs, diagnoses, strict=False):
        if diagnosis.gpu is not None and has_launch_times(entry):
            time = predict_time(RankingCandidate(entry, request, entry.constants), disassemble, gpu, steps)
            if time is None:
                diagnosis = replace(diagnosis, notes=(*diagnosis.notes, _SAMPLED_TIME))
            else:
                diagnosis = with_time(diagnosis, time.us, time.bound)
        timed.append(diagnosis)
    return timed


def replace_stale_entry(
    pair: tuple[Artifact, LaunchRequest], kernel: str, directory: Path
) -> tuple[Artifact, LaunchRequest]:
    """The launch with the kernel that the user's file compiles to now; a note reports code that is not on record.

    Edits of the file thereby have its line numbers, and their gains are relative to its code.

    Args:
        kernel: `FILE.py:KERNEL`; a pair of another kernel stays as it is.

    Raises:
        CompileError: the file no longer compiles with the recorded types.
        UsageError: it has no such kernel, or one with other arguments.
    """
    entry, request = pair
    if entry.display_name != kernel.rpartition(":")[2]:
        return pair
    try:
        record = recorded_compile(entry)
    except UsageError:
        return pair  # the search reports it
    if _is_current(entry, kernel):
        return pair  # importing the file of a library takes longer than all else
    (result,) = compile_kernels([request_for(kernel, record, {})], [record.target], directory)
    if result.directory is None:
        error = UsageError if result.is_usage_error else CompileError
        raise error(f"{kernel} does not compile with the recorded types: {result.message}", result.remedy)
    (current,) = (one for one in open_cache(directory).entries if one.directory == result.directory.name)
    if current.hash == entry.hash:
        return pair
    notes = request.notes
    if any(digest_of(entry, stage) != digest_of(current, stage) for stage in _COMPARED_STAGES):
        notes += (f"the recorded {entry.hash[:12]} is stale: the code that {kernel} compiles to is the baseline",)
    return current, replace(request, kernel_hash=None, notes=notes)


def _is_current(entry: Artifact, kernel: str) -> bool:
    """Whether this Triton compiled this file, and no source beside it, or of its package, changed since."""
    source, recorded = Path(kernel.rpartition(":")[0]).resolve(), entry.files.get("ttir")
    if not isinstance(recorded, Path) or find_spec("triton") is None or entry.triton_version != version("triton"):
        return False
    if f'loc("{source}"' not in recorded.read_text(encoding="utf-8", errors="replace"):
        return False
    top = source.parent
    while (top.parent / "__init__.py").exists():
        top = top.parent
    sources = top.rglob("*.py") if (top / "__init__.py").exists() else top.glob("*.py")
    compiled = recorded.stat().st_mtime_ns
    return all(one.stat().st_mtime_ns <= compiled for one in sources)
