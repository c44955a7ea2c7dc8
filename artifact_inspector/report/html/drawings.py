"""The pictures of a kernel as a page shows them: each with a title, how to read it, and parts to look at."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from markupsafe import Markup

from artifact_inspector.comparison.pair import Pair
from artifact_inspector.errors import UsageError
from artifact_inspector.facts.kernel import KernelFacts
from artifact_inspector.model import RegionKind
from artifact_inspector.pictures.timeline import timeline
from artifact_inspector.report.diff import side_labels

__all__ = ["Drawing", "View", "draw_kernel", "draw_pair"]

WIDTH = 1240
MOST_REGIONS = 6
"""Loops that can be looked at on their own."""


@dataclass(frozen=True, slots=True)
class View:
    """One way to look at a picture."""

    name: str
    svg: Markup


@dataclass(frozen=True, slots=True)
class Drawing:
    """A picture, in one or several parts."""

    id: str
    title: str
    reading: str
    """How to read it."""
    views: tuple[View, ...]
    missing: str = ""
    """Why there is none."""


def draw_kernel(kernel: KernelFacts) -> Iterator[Drawing]:
    """The pictures that a kernel's files give."""
    yield _timeline(kernel)


def draw_pair(pair: Pair) -> Iterator[Drawing]:
    """The pictures of two kernels."""
    views = []
    for label, kernel in zip(side_labels(pair), (pair.left, pair.right), strict=True):
        drawn = _timeline(kernel)
        views += [View(f"{label}: {view.name}", view.svg) for view in drawn.views]
    yield Drawing("timelines", "Timelines", "", tuple(views), "" if views else "Neither can be drawn.")


def _timeline(kernel: KernelFacts) -> Drawing:
    regions: dict[str, None] = {}
    for stage in kernel.stages.values():
        for region in stage.regions:
            if region.kind is not RegionKind.STRAIGHT and region.in_program:
                regions[region.id] = None
    views: list[View] = []
    missing = ""
    for name in (None, *list(regions)[:MOST_REGIONS]):
        try:
            svg = timeline(kernel, name, width=WIDTH, style=False)
        except UsageError as error:
            missing = missing or error.message
            continue
        views.append(View(name or "the whole kernel", Markup(svg)))
    return Drawing(
        "timeline",
        "Timeline",
        "A lane for each stage, its events in the order in which they run. Below them every load from its "
        "issue to what completes it, and what is in flight. Choose an event to see its line.",
        tuple(views),
        missing if not views else "",
    )
