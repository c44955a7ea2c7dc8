"""The pictures of a simulated launch; imported only with a launch, since it needs numpy."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from artifact_inspector.execution.prediction import Prediction, SharedAccess
from artifact_inspector.execution.roofline import find_roofline
from artifact_inspector.execution.timing.residency import Residency
from artifact_inspector.hardware.peaks import Peaks
from artifact_inspector.pictures.bank_conflicts import bank_conflicts
from artifact_inspector.pictures.cta_grid import cta_grid
from artifact_inspector.pictures.residency import residency
from artifact_inspector.pictures.roofline import roofline
from artifact_inspector.report.html.drawings import NARROW, WIDTH, Drawing, make_drawing

MOST_ACCESSES = 3
"""Most accesses to shared memory with a view, one per line and opcode."""


def draw_launch(
    found: Prediction, peaks: Peaks | None, resident: Residency | None = None
) -> Iterator[Drawing]:
    """The pictures of a launch."""
    if found.cta_order is not None and found.cta_order.tiles:
        yield make_drawing(
            "grid",
            "Grid of CTAs",
            "The tile that each CTA writes, and the wave in which it runs.",
            {"all": lambda: cta_grid(found, width=WIDTH, style=False)},
        )
    worst: dict[str, SharedAccess] = {}
    for one in found.shared_accesses:
        if one.line.conflicts:
            worst.setdefault(f"{one.line.source or one.line.line} {one.line.opcode}", one)
    if worst:
        yield make_drawing(
            "banks",
            "Bank conflicts",
            "Banks that the lanes of a warp access, and the wavefront of each; worst accesses first.",
            {
                name: partial(bank_conflicts, found, one, width=NARROW + 320, style=False)
                for name, one in list(worst.items())[:MOST_ACCESSES]
            },
            is_wide=False,
        )
    if resident is not None:
        yield make_drawing(
            "residency",
            "Resident warps",
            "What the warps of an SM compute and wait for, according to a model; not measured.",
            {"all": lambda: residency(resident, width=WIDTH, style=False)},
        )
    place = find_roofline(found.counters, peaks)
    if place is not None:
        yield make_drawing(
            "roofline",
            "Roofline",
            "The peak rate of the GPU at the arithmetic intensity of this launch; not measured.",
            {"all": lambda: roofline([(found.kernel, place)], width=NARROW + 120, style=False)},
            is_wide=False,
        )
