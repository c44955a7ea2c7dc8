"""The outline of a stage: what every view reads of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from artifact_inspector.analysis.order.region_facts import RegionFacts
from artifact_inspector.model import EventKind

COUNTED = tuple(kind for kind in EventKind if kind.letter and kind not in (EventKind.UNKNOWN, EventKind.SCHEDULE_HINT))
"""Kinds whose instructions are counted per file."""
ROW_LOADS = "ldmatrix"
"""Count of the shared loads that read rows of a tile for a warp: `ldmatrix`, in SASS `LDSM`."""


@dataclass(frozen=True, slots=True)
class Outline:
    """Facts of a stage that are kept together in the index, since every view reads them."""

    file: str
    """Its name in the directory of the kernel."""
    instructions: int
    unknown: Mapping[str, int]
    counts: Mapping[str, int]
    regions: tuple[RegionFacts, ...]
    attributes: Mapping[str, str]
    is_complete: bool = True
    """False for a truncated file."""
