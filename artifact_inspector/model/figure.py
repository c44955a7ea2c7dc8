"""What a file says of the hardware that its kernel takes: a number, and the field that says so."""

from __future__ import annotations

from typing import NamedTuple

from artifact_inspector.model.word import Word


class Figure(NamedTuple):
    """A number, or why it is not known."""

    value: int | None
    source: str
    """The file and the field that say so; for None the reason, in words."""


class FigureKey(Word):
    """What a figure is of, by the name of the field that says it."""

    REQUIRED_THREADS = "reqntid"
    """Per block, and no other number."""
    MOST_THREADS = "maxntid"
    LOCAL = "local"
    """Bytes of the arrays that a thread has to itself, by declaration."""
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
    """1 where a block may run on both compute units of a workgroup processor."""
