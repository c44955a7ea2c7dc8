"""Compile a kernel of a cache for other GPUs, from its saved TTIR."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as installed
from pathlib import Path
from typing import NamedTuple

from artifact_inspector.analysis.resources.occupancy import Occupancy
from artifact_inspector.analysis.resources.taken import Resources
from artifact_inspector.compiling.ask.again import compile_again
from artifact_inspector.errors import InspectorError
from artifact_inspector.facts.inspection import inspect_artifact
from artifact_inspector.facts.kernel import KernelFacts
from artifact_inspector.files.scratch import scratch_directory
from artifact_inspector.hardware.targets import Target
from artifact_inspector.passes.subject import of_entry

_OF_EVERY_VENDOR = frozenset({"num_warps", "num_stages", "num_ctas"})
"""Options with the same meaning for all vendors; the others are dropped for another vendor's GPU."""


class Elsewhere(NamedTuple):
    """Resources and occupancy of a kernel compiled for another GPU."""

    target: Target
    triton: str
    """Version of the Triton that compiled it."""
    occupancy: Occupancy | None
    resources: Resources | None
    message: str | None
    """Why it could not be compiled; None if it compiled."""


def compile_elsewhere(kernel: KernelFacts, targets: Sequence[Target]) -> tuple[Elsewhere, ...]:
    """Compile a kernel for other targets with the installed Triton; no user code runs.

    Its own target is skipped. An entry without TTIR, and a missing Triton, are reported as messages.
    """
    return tuple(_compiled(kernel, target) for target in targets if target != kernel.artifact.target)


def _compiled(kernel: KernelFacts, target: Target) -> Elsewhere:
    try:
        here = installed("triton")
        subject = of_entry(kernel.artifact, here)
        options = dict(subject.ask["options"])
        if subject.target.backend is not target.backend:
            options = {name: value for name, value in options.items() if name in _OF_EVERY_VENDOR}
        with scratch_directory() as scratch:
            text = subject.saved or ""
            (made,) = compile_again([(text, options)], subject.name, target, Path(scratch))
            if made.artifact is None:
                return Elsewhere(target, here, None, None, made.message or "it was refused")
            found = inspect_artifact(made.artifact)
            return Elsewhere(target, here, found.occupancy, found.resources, None)
    except PackageNotFoundError:
        return Elsewhere(target, "", None, None, "Triton is not installed here")
    except InspectorError as error:
        return Elsewhere(target, "", None, None, error.message)
