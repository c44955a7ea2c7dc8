"""The pictures of a kernel on its page, each with a title, an explanation, and selectable views."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial

from markupsafe import Markup

from artifact_inspector.comparison.pair import Comparison
from artifact_inspector.errors import UsageError
from artifact_inspector.facts.kernel import KernelFacts
from artifact_inspector.model import RegionKind, Stage
from artifact_inspector.pictures.pair_timelines import pair_timelines
from artifact_inspector.pictures.resources import occupancy_bars, shared_map
from artifact_inspector.pictures.timeline import timeline
from artifact_inspector.pictures.timetable import timetable
from artifact_inspector.report.diff import side_labels

WIDTH, NARROW = 1240, 600
MAX_REGIONS = 6
"""Most loops with a view of their own."""


@dataclass(frozen=True, slots=True)
class PictureView:
    """One view of a picture."""

    name: str
    svg: Markup
    side: str = ""
    """In a comparison, the kernel whose code its events link to."""


@dataclass(frozen=True, slots=True)
class PictureSection:
    """A picture with one or more views."""

    id: str
    title: str
    explanation: str
    """How to read it."""
    views: tuple[PictureView, ...]
    missing: str = ""
    """Why there is none."""
    is_wide: bool = True


def draw_kernel(kernel: KernelFacts) -> Iterator[PictureSection]:
    """The pictures that apply to a kernel."""
    loops = list(_loops(kernel))[:MAX_REGIONS]
    yield make_section(
        "timeline",
        "Timeline",
        "One lane per stage, with its events in execution order. Below: each load from issue to completion, "
        "and the amount in flight. Click an event to see its line.",
        {
            "the whole kernel": partial(timeline, kernel, width=WIDTH, style=False),
            **{name: partial(timeline, kernel, name, width=WIDTH, style=False) for name in loops},
        },
    )
    pipelined_loops = [name for name in loops if name in kernel.pipelines and kernel.pipelines[name].kind is not None]
    if pipelined_loops:
        yield make_section(
            "timetable",
            "Timetable",
            "When each iteration is loaded, waited for and computed, and which buffer holds it.",
            {name: partial(timetable, kernel, name, width=WIDTH, style=False) for name in pipelined_loops},
        )
    if kernel.bill is not None and kernel.bill.entries:
        yield make_section(
            "shared",
            "Shared memory",
            "Offsets of the allocations of a block, and the lines of TTGIR at which they are live.",
            {"all": lambda: shared_map(kernel, width=WIDTH, style=False)},
        )


def draw_resources(kernel: KernelFacts) -> PictureSection:
    """The number of blocks that each resource allows."""
    return make_section("occupancy", "Occupancy", "", {"": lambda: occupancy_bars(kernel, width=NARROW, style=False)})


def draw_pair(pair: Comparison) -> Iterator[PictureSection]:
    """The pictures of two kernels."""
    labels = side_labels(pair)
    renderers: dict[str, Callable[[], str]] = {
        "first divergence": lambda: pair_timelines(pair, labels, width=WIDTH, style=False),
        "every stage": lambda: pair_timelines(pair, labels, stages=tuple(Stage), width=WIDTH, style=False),
    }
    for label, kernel in zip(labels, (pair.left, pair.right), strict=True):
        renderers[label] = partial(timeline, kernel, width=WIDTH, style=False)
    section = make_section(
        "timelines",
        "Timelines",
        "Both kernels on one scale, aligned by rounds, around the stage at which they first differ.",
        renderers,
    )
    views = (replace(view, side=view.name) if view.name in labels else view for view in section.views)
    yield replace(section, views=tuple(views))


def _loops(kernel: KernelFacts) -> Iterator[str]:
    """Loops and warp partitions of the program, each once."""
    known_ids: set[str] = set()
    for stage in kernel.stages.values():
        for region in stage.regions:
            if region.kind is not RegionKind.STRAIGHT and region.is_in_program and region.id not in known_ids:
                known_ids.add(region.id)
                yield region.id


def make_section(
    id: str, title: str, explanation: str, renderers: Mapping[str, Callable[[], str]], *, is_wide: bool = True
) -> PictureSection:
    """A picture with the views that can be drawn, or the reason if none can."""
    views: list[PictureView] = []
    missing = ""
    for name, render in renderers.items():
        try:
            views.append(PictureView(name, Markup(render())))
        except UsageError as error:
            missing = missing or error.message
    return PictureSection(id, title, explanation, tuple(views), "" if views else missing, is_wide)
