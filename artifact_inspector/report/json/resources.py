"""What a kernel takes of a multiprocessor, as JSON, and what that leaves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, get_type_hints

from artifact_inspector.analysis.resources.occupancy import Occupancy
from artifact_inspector.analysis.resources.usage import Contradiction, ResourceFigure, Resources
from artifact_inspector.facts.kernel import KernelFacts
from artifact_inspector.hardware.targets import Limits, Target
from artifact_inspector.report.json._encoding import TextExamples, define_shape

if TYPE_CHECKING:
    from artifact_inspector.passes.retargeting import RetargetedKernel

_FIGURES = {
    {"static_shared": "static_shared_bytes", "shared": "shared_bytes"}.get(name, name): name
    for name, kind in get_type_hints(Resources).items()
    if kind is ResourceFigure and name != "tensor_columns"
}
"""Key → figure of `Resources`."""

define_shape(
    Resources,
    " ".join(f"{key}={name}.value" for key, name in _FIGURES.items()),
    without="tensor_columns workgroup_processor contradictions",
)
define_shape(
    Limits,
    "static=shared_per_block_static opt_in=shared_per_block",
    without="matrix_unit multiprocessor source",
    title="SharedLimits",
)
define_shape(
    Occupancy,
    "blocks_per_sm=blocks warps_per_sm=warps limited_by max_warps unit blocks_by_resource",
    types={
        "unit": Annotated[str, TextExamples(("SM", "CU", "WGP"))],
        "limited_by": tuple[str, ...],
        "blocks_by_resource": Mapping[str, int],
    },
)


@dataclass(frozen=True, slots=True)
class FigureSources:
    """The file and field that each figure is from; for a figure that is null, why it is."""

    resources: Resources


define_shape(
    FigureSources, " ".join(f"{key}=resources.{name}.source" for key, name in _FIGURES.items()), without="resources"
)


@dataclass(frozen=True, slots=True)
class ResourcesDocument:
    """What one kernel takes."""

    resources: Resources
    sources: FigureSources
    shared_limits: Limits | None
    occupancy: Occupancy | None
    """On the kernel's own target; null where that is not known."""
    occupancy_on: Mapping[str, Occupancy]
    """Architecture → occupancy there, for the targets of `--on`, if this same binary's figures held;
    `blocks_per_sm` is null for another vendor's, and for waves of another width."""
    occupancy_compiled_on: Mapping[str, Occupancy]
    """Architecture → occupancy of the kernel compiled for it from its TTIR. Empty for several kernels, without
    Triton, without TTIR, or if the compile fails."""
    contradictions: tuple[Contradiction, ...]


define_shape(ResourcesDocument, inline="resources")


def resources_document(
    kernel: KernelFacts, others: Sequence[Target], elsewhere: Sequence[RetargetedKernel] = ()
) -> ResourcesDocument:
    """The resources of a kernel.

    Args:
        others: further targets to give the occupancy for.
        elsewhere: the kernel compiled for these.
    """
    target = kernel.artifact.target
    return ResourcesDocument(
        resources=kernel.resources,
        sources=FigureSources(kernel.resources),
        shared_limits=None if target is None else target.limits,
        occupancy=kernel.occupancy,
        occupancy_on={str(other_target): kernel.occupancy_on(other_target) for other_target in others},
        occupancy_compiled_on={str(x.target): x.occupancy for x in elsewhere if x.occupancy is not None},
        contradictions=kernel.contradictions,
    )
