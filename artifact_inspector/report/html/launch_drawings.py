"""The pictures of a launch that was run on paper; loaded with numpy, where there is one."""

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
"""To shared memory, of one line and opcode each, that can be looked at."""


def draw_launch(
    found: Prediction, peaks: Peaks | None, resident: Residency | None = None
) -> Iterator[Drawing]:
    """The pictures of a launch."""
    if found.cta_order is not None and found.cta_order.tiles:
        yield make_drawing(
            "grid",
            "Grid of CTAs",
            "Which tile each CTA writes, and in which wave it runs.",
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
            "Which banks the lanes of one warp ask, and which wavefront serves each; the worst accesses.",
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
            "What warps of a multiprocessor compute and wait for, as the model has it; nothing was measured.",
            {"all": lambda: residency(resident, width=WIDTH, style=False)},
        )
    place = find_roofline(found.counters, peaks)
    if place is not None:
        yield make_drawing(
            "roofline",
            "Roofline",
            "What the product can do at most at the intensity of this launch; no time was measured.",
            {"all": lambda: roofline([(found.kernel, place)], width=NARROW + 120, style=False)},
            is_wide=False,
        )
