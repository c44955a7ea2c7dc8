"""What a kernel takes of a multiprocessor, as JSON, and what that leaves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, TypedDict

from artifact_inspector.report.json._types import Words

if TYPE_CHECKING:
    from artifact_inspector.analysis.resources.occupancy import Occupancy
    from artifact_inspector.analysis.resources.taken import Resources
    from artifact_inspector.facts.kernel import KernelFacts
    from artifact_inspector.hardware.targets import Target

__all__ = ["ResourcesJson", "resources"]


class SharedLimitsJson(TypedDict):
    """Bytes of shared memory that the target lets one block have."""

    static: int | None
    """Without asking for more."""
    opt_in: int | None
    """At most."""


class OccupancyJson(TypedDict):
    """Blocks and warps of a kernel that one multiprocessor can hold at a time."""

    blocks_per_sm: int | None
    """0 where not even one fits; null where a number is missing."""
    warps_per_sm: int | None
    limited_by: tuple[str, ...]
    """Resources that allow no more: `registers`, `shared memory`, `warps`, `blocks`, `barriers`."""
    warps_at_most: int | None
    """Warps that the unit can hold of the leanest kernel."""
    unit: Annotated[str, Words(("SM", "CU", "WGP"))]
    blocks_by_resource: dict[str, int]
    """Resource → blocks that it alone would allow."""
    missing: tuple[str, ...]
    """The numbers that are not known, in words."""


class ContradictionJson(TypedDict):
    """Two files that say different things of one fact."""

    sentence: str
    places: tuple[str, str]
    """Where each of the two stands: file and field."""


class FigureSourcesJson(TypedDict):
    """The file and field that each figure is from; for a figure that is null, why it is."""

    registers: str
    vector_registers: str
    accumulation_registers: str
    scalar_registers: str
    spill_bytes: str
    reload_bytes: str
    scalar_spills: str
    scratch_bytes: str
    static_shared_bytes: str
    shared_bytes: str
    warps_per_block: str
    barriers: str


class ResourcesJson(TypedDict):
    """What one kernel takes."""

    registers: int | None
    """Per thread; AMD: vector registers, with AccVGPRs where they share the file."""
    vector_registers: int | None
    """AMD: VGPRs proper, per thread."""
    accumulation_registers: int | None
    """AMD: AccVGPRs, per thread."""
    scalar_registers: int | None
    """AMD: per wave."""
    spill_bytes: int | None
    """Bytes per thread that the code's spill stores write when each is run once."""
    reload_bytes: int | None
    """Bytes per thread that the code's spill loads read when each is run once."""
    scalar_spills: int | None
    """AMD: scalar registers that are spilled to lanes of vector registers."""
    scratch_bytes: int | None
    """Local memory per thread."""
    static_shared_bytes: int | None
    """Per block, that the file itself asks for."""
    shared_bytes: int | None
    """Per block, as launched."""
    warps_per_block: int | None
    barriers: int | None
    """NVIDIA: hardware barriers per block."""
    sources: FigureSourcesJson
    shared_limits: SharedLimitsJson | None
    occupancy: OccupancyJson | None
    """On the kernel's own target; null where that is not known."""
    occupancy_on: dict[str, OccupancyJson]
    """Architecture → occupancy there, for the targets of `--on`."""
    contradictions: list[ContradictionJson]


def resources(kernel: KernelFacts, others: Sequence[Target]) -> ResourcesJson:
    """The resources of a kernel.

    Args:
        others: further targets to give the occupancy for.
    """
    taken = kernel.resources
    target = kernel.artifact.target
    limits = None if target is None else target.limits
    return {
        "registers": taken.registers.value,
        "vector_registers": taken.vector_registers.value,
        "accumulation_registers": taken.accumulation_registers.value,
        "scalar_registers": taken.scalar_registers.value,
        "spill_bytes": taken.spill_bytes.value,
        "reload_bytes": taken.reload_bytes.value,
        "scalar_spills": taken.scalar_spills.value,
        "scratch_bytes": taken.scratch_bytes.value,
        "static_shared_bytes": taken.static_shared.value,
        "shared_bytes": taken.shared.value,
        "warps_per_block": taken.warps_per_block.value,
        "barriers": taken.barriers.value,
        "sources": _sources(taken),
        "shared_limits": None
        if limits is None
        else {"static": limits.shared_per_block_static, "opt_in": limits.shared_per_block},
        "occupancy": None if kernel.occupancy is None else _occupancy(kernel.occupancy),
        "occupancy_on": {str(other): _occupancy(kernel.occupancy_on(other)) for other in others},
        "contradictions": [{"sentence": x.sentence, "places": x.places} for x in kernel.contradictions],
    }


def _sources(taken: Resources) -> FigureSourcesJson:
    return {
        "registers": taken.registers.source,
        "vector_registers": taken.vector_registers.source,
        "accumulation_registers": taken.accumulation_registers.source,
        "scalar_registers": taken.scalar_registers.source,
        "spill_bytes": taken.spill_bytes.source,
        "reload_bytes": taken.reload_bytes.source,
        "scalar_spills": taken.scalar_spills.source,
        "scratch_bytes": taken.scratch_bytes.source,
        "static_shared_bytes": taken.static_shared.source,
        "shared_bytes": taken.shared.source,
        "warps_per_block": taken.warps_per_block.source,
        "barriers": taken.barriers.source,
    }


def _occupancy(held: Occupancy) -> OccupancyJson:
    return {
        "blocks_per_sm": held.blocks,
        "warps_per_sm": held.warps,
        "limited_by": held.limited_by,
        "warps_at_most": held.warps_at_most,
        "unit": held.unit,
        "blocks_by_resource": dict(held.allowed),
        "missing": held.missing,
    }
