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
from artifact_inspector.findings.not_pipelined import BY_DEFAULT
from artifact_inspector.formats.mlir.rewriting import with_default_precisions, with_input_precision, with_pointer_ranges
from artifact_inspector.hardware.targets import Target
from artifact_inspector.model import Backend
from artifact_inspector.passes.subject import subject_of_entry

FP8_CHUNK = 1 << 30
"""Triton's default on sm_90: all products of fp8 are summed in the tensor core's precision."""
TF32_BY_DEFAULT = ("gfx942",)
"""AMD targets for which Triton allows tf32, and then uses it for dots of 32-bit floats."""
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
    assumptions: tuple[str, ...] = ()
    """What another vendor's launch would decide."""


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
        text, assumptions = subject.saved_ttir or "", []
        if subject.target.backend is not target.backend:
            is_default = options.get("num_stages") == BY_DEFAULT[subject.target.backend]
            names = _SHARED_OPTIONS - {"num_stages"} if is_default else _SHARED_OPTIONS
            options = {name: value for name, value in options.items() if name in names}
            if is_default:
                assumptions.append(f"num_stages {BY_DEFAULT[target.backend]}, the default")
            is_amd = target.backend is Backend.HIP
            fp8_chunk = FP8_CHUNK if target.arch.number == 90 and not is_amd else 0
            if with_input_precision(text, "ieee") is not None:
                assumptions.append("the default precision of fp32 dots")
            has_tf32 = not is_amd or target.arch in TF32_BY_DEFAULT
            text = with_default_precisions(text, has_tf32=has_tf32, fp8_chunk=fp8_chunk)
            text = with_pointer_ranges(text) if is_amd else text
            assumptions.append("tensors below 2 GiB" if is_amd else "descriptors and hoisted code as for AMD")
        with scratch_directory() as scratch:
            (recompilation,) = recompile_texts(
                [(text, options)], subject.name, target, Path(scratch), is_retargeted=True
            )
            if recompilation.artifact is None:
                return RetargetedKernel(target, triton_version, None, None, recompilation.message or "it was refused")
            facts = inspect_artifact(recompilation.artifact)
            return RetargetedKernel(target, triton_version, facts.occupancy, facts.resources, None, tuple(assumptions))
    except PackageNotFoundError:
        return RetargetedKernel(target, "", None, None, "Triton is not installed here")
    except InspectorError as error:
        return RetargetedKernel(target, "", None, None, error.message)
