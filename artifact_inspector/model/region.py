"""The words for a kernel's regions, and for how a loop among them is pipelined."""

from __future__ import annotations

from artifact_inspector.model.word import Word

__all__ = ["PipelineKind", "RegionKind", "SlotKind"]


class RegionKind(Word):
    """What a region is."""

    LOOP = "loop"
    STRAIGHT = "straight"
    """Code outside loops."""
    PARTITION = "partition"
    """What some of the warps run, where a kernel is warp-specialised."""


class PipelineKind(Word):
    """How the loads of a loop run ahead."""

    GROUPS = "cp.async groups"
    TENSORS = "TMA + mbarrier"
    DIRECT = "direct to LDS"
    """AMD's loads that write to shared memory."""
    REGISTERS = "register prefetch"
    COPIES = "groups of copies"
    """Of a target that is not known."""


class SlotKind(Word):
    """What stands between two schedule hints of a loop."""

    MEMORY = "memory"
    MATRIX = "matrix"
    MIXED = "mixed"
