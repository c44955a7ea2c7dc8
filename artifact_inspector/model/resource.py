"""Resources that limit the number of resident blocks, and a file's statements about its kernel's use of them."""

from __future__ import annotations

from typing import NamedTuple

from artifact_inspector.model.string_enum import StringEnum


class Resource(StringEnum):
    """A resource that a multiprocessor has a fixed amount of, and blocks consume."""

    BLOCKS = "blocks"
    WARPS = "warps"
    REGISTERS = "registers"
    BARRIERS = "barriers"
    SHARED = "shared memory"
    TENSOR = "tensor memory"


class ResourceFigure(NamedTuple):
    """A number, or the reason why it is unknown."""

    value: int | None
    source: str
    """File and field of the number; for None the reason."""


class ResourceKey(StringEnum):
    """Kinds of figures, by the name of the field that states them."""

    REQUIRED_THREADS = "reqntid"
    """Threads per block that a launch must have."""
    MOST_THREADS = "maxntid"
    LOCAL = "local"
    """Bytes of local arrays per thread, as declared."""
    VECTOR_REGISTERS = "vgpr_count"
    ACCUMULATION_REGISTERS = "agpr_count"
    SCALAR_REGISTERS = "sgpr_count"
    VECTOR_SPILLS = "vgpr_spill_count"
    SCALAR_SPILLS = "sgpr_spill_count"
    LANES = "wavefront_size"
    SCRATCH = "private_segment_fixed_size"
    STATIC_SHARED = "group_segment_fixed_size"
    THREADS = "max_flat_workgroup_size"
    WORKGROUP_PROCESSOR = "workgroup_processor_mode"
    """1 if a block may run on both compute units of a workgroup processor."""
