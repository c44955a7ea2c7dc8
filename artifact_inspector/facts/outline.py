"""The outline of a stage: what every view reads of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from artifact_inspector.analysis.order.region_facts import RegionFacts
from artifact_inspector.model import EventKind, Trait

COUNTED = tuple(kind for kind in EventKind if kind.letter and kind not in (EventKind.UNKNOWN, EventKind.SCHEDULE_HINT))
"""Kinds whose instructions are counted per file."""
ROW_LOADS = "ldmatrix"
"""Count of the shared loads that read rows of a tile for a warp: `ldmatrix`, in SASS `LDSM`."""
SWAPS = "compare_and_swap"
"""Count of the atomics that compare and swap."""
EXPANDABLE = "expandable_atomic"
"""Count of the atomics that a later compiler may expand into a compare-and-swap loop."""
CAS_LOOPS = "compare_and_swap_loop"
"""Count of the compare-and-swap loops that a compiler made of atomics."""
COUNTED_TRAITS = {
    ROW_LOADS: (EventKind.SHARED_LOAD, Trait.READS_ROWS),
    SWAPS: (EventKind.ATOMIC, Trait.SWAPS),
    EXPANDABLE: (EventKind.ATOMIC, Trait.EXPANDABLE),
}
"""Further counts of a file, each of a kind's instructions with a trait; left out where there are none."""


def may_gain_swap_loops(counts: Mapping[str, int]) -> bool:
    """Whether only a later stage shows the compare-and-swap loops: ptxas decides on an atomic of float16."""
    return not counts.get(CAS_LOOPS) and bool(counts.get(EXPANDABLE))


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
