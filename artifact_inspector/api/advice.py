"""Diagnoses launches of compiled kernels, and tries changes of their configuration."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from artifact_inspector.diagnosis.assumed_launch import assume_launch
from artifact_inspector.diagnosis.cause import Diagnosis
from artifact_inspector.diagnosis.diagnose import diagnose
from artifact_inspector.execution.launch_requests import LaunchRequest
from artifact_inspector.execution.timing.candidates import RankingCandidate
from artifact_inspector.facts.modules import Disassemble
from artifact_inspector.facts.selection import KernelFilter, select_kernels
from artifact_inspector.files.cache import Artifact, Cache
from artifact_inspector.hardware.targets import Target


def assume_launches(
    cache: Cache, name: str | None, targets: Sequence[KernelFilter | Target]
) -> list[tuple[Artifact, LaunchRequest]]:
    """Each matching kernel with an assumed launch that fills the GPU.

    Raises:
        UsageError: a kernel's arguments are not pointers and numbers, or are unknown.
    """
    return [(entry, assume_launch(entry)) for entry in select_kernels(cache, name, targets)]


def diagnose_launches(
    pairs: Sequence[tuple[Artifact, LaunchRequest]],
    disassemble: Disassemble | None,
    *,
    gpu: str | None = None,
    steps: int = 50_000_000,
    progress: Callable[[Artifact], None] = lambda entry: None,
) -> list[Diagnosis]:
    """The diagnosis of each launch.

    Args:
        pairs: kernels with their launches.
        disassemble: converts cubins to SASS.
        gpu: product name; None selects the default product of each target.
        steps: instructions after which a kernel counts as endless.
        progress: called with each kernel before it is simulated.

    Raises:
        UsageError: the arguments do not fit a kernel.
        CacheError: a kernel has no readable machine code.
    """
    diagnoses = []
    for entry, request in pairs:
        progress(entry)
        candidate = RankingCandidate(entry, request, entry.constants)
        diagnoses.append(diagnose(candidate, disassemble, gpu=gpu, limit=steps))
    return diagnoses
