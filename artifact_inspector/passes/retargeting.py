"""Compile a kernel of a cache for other GPUs, from its saved TTIR."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as installed
from pathlib import Path
from typing import NamedTuple

from artifact_inspector.analysis.resources.occupancy import Occupancy
from artifact_inspector.analysis.resources.usage import Resources
from artifact_inspector.compiling.ask.compile import recompile_texts
from artifact_inspector.errors import InspectorError
from artifact_inspector.facts.inspection import inspect_artifact
from artifact_inspector.facts.kernel import KernelFacts
from artifact_inspector.files.scratch import scratch_directory
from artifact_inspector.hardware.targets import Target
from artifact_inspector.passes.subject import subject_of_entry

_SHARED_OPTIONS = frozenset({"num_warps", "num_stages", "num_ctas"})
"""Options with the same meaning for all vendors; the others are dropped for another vendor's GPU."""


class RetargetedKernel(NamedTuple):
    """Resources and occupancy of a kernel compiled for another GPU."""

    target: Target
    triton: str
    """Version of the Triton that compiled it."""
    occupancy: Occupancy | None
    resources: Resources | None
    message: str | None
    """Why it could not be compiled; None if it compiled."""


def compile_for_targets(kernel: KernelFacts, targets: Sequence[Target]) -> tuple[RetargetedKernel, ...]:
    """Compile a kernel for other targets with the installed Triton; no user code runs.

    Its own target is skipped. An entry without TTIR, and a missing Triton, are reported as messages.
    """
    return tuple(_compile_for_target(kernel, target) for target in targets if target != kernel.artifact.target)


def _compile_for_target(kernel: KernelFacts, target: Target) -> RetargetedKernel:
    try:
        triton_version = installed("triton")
        subject = subject_of_entry(kernel.artifact, triton_version)
        options = dict(subject.request["options"])
        if subject.target.backend is not target.backend:
            options = {name: value for name, value in options.items() if name in _SHARED_OPTIONS}
        with scratch_directory() as scratch:
            text = subject.saved_ttir or ""
            (recompilation,) = recompile_texts([(text, options)], subject.name, target, Path(scratch))
            if recompilation.artifact is None:
                return RetargetedKernel(target, triton_version, None, None, recompilation.message or "it was refused")
            facts = inspect_artifact(recompilation.artifact)
            return RetargetedKernel(target, triton_version, facts.occupancy, facts.resources, None)
    except PackageNotFoundError:
        return RetargetedKernel(target, "", None, None, "Triton is not installed here")
    except InspectorError as error:
        return RetargetedKernel(target, "", None, None, error.message)
