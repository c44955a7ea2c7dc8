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
from artifact_inspector.report.html.drawings import NARROW, WIDTH, PictureSection, make_section

MAX_ACCESSES = 3
"""Most accesses to shared memory with a view, one per line and opcode."""


def draw_launch(
    prediction: Prediction, peaks: Peaks | None, residency_model: Residency | None = None
) -> Iterator[PictureSection]:
    """The pictures of a launch."""
    if prediction.cta_order is not None and prediction.cta_order.tiles:
        yield make_section(
            "grid",
            "Grid of CTAs",
            "The tile that each CTA writes, and the wave in which it runs.",
            {"all": lambda: cta_grid(prediction, width=WIDTH, style=False)},
        )
    worst_accesses: dict[str, SharedAccess] = {}
    for access in prediction.shared_accesses:
        if access.line.bank_conflicts:
            worst_accesses.setdefault(f"{access.line.source or access.line.line} {access.line.opcode}", access)
    if worst_accesses:
        yield make_section(
            "banks",
            "Bank conflicts",
            "Banks that the lanes of a warp access, and the wavefront of each; worst accesses first.",
            {
                name: partial(bank_conflicts, prediction, access, width=NARROW + 320, style=False)
                for name, access in list(worst_accesses.items())[:MAX_ACCESSES]
            },
            is_wide=False,
        )
    if residency_model is not None:
        yield make_section(
            "residency",
            "Resident warps",
            "What the warps of an SM compute and wait for, according to a model; not measured.",
            {"all": lambda: residency(residency_model, width=WIDTH, style=False)},
        )
    roofline_position = find_roofline(prediction.counters, peaks)
    if roofline_position is not None:
        yield make_section(
            "roofline",
            "Roofline",
            "The peak rate of the GPU at the arithmetic intensity of this launch; not measured.",
            {"all": lambda: roofline([(prediction.kernel, roofline_position)], width=NARROW + 120, style=False)},
            is_wide=False,
        )
