"""The timeline: a lane for each stage, its events in order, every load from issue to completion."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from itertools import groupby, islice, pairwise
from typing import TYPE_CHECKING

from artifact_inspector.analysis.overlap.execution_track import RegionSpan
from artifact_inspector.facts.lane import Lane
from artifact_inspector.facts.scene import Scene, find_scene
from artifact_inspector.model import EventKind, RegionKind, Stage
from artifact_inspector.model.region import RegionId
from artifact_inspector.pictures._block_row import needed_width
from artifact_inspector.pictures._canvas import Canvas, cut_text
from artifact_inspector.pictures._timeline_strip import GUTTER, MARGIN, StripPainter, TimelineStrip, events_in
from artifact_inspector.vocabulary.letters import LETTERS

if TYPE_CHECKING:
    from artifact_inspector.facts.kernel import KernelFacts

MAX_NOTES = 4
MAX_STRIPS = 32
"""Most functions and warp partitions of a stage that are drawn."""
MIN_COLUMN_WIDTH = 14.0
"""Least pixels of a column."""


def timeline(
    kernel: KernelFacts,
    region: str | None = None,
    stages: Collection[Stage] | None = None,
    *,
    width: float = 960,
    style: bool = True,
) -> str:
    """The timeline of a kernel as SVG.

    Args:
        region: id of a loop or partition; None for the whole kernel.
        stages: the stages to show; None for all.
        width: in pixels.
        style: include the style rules; see `Canvas.render`.

    Raises:
        UsageError: the kernel has no such region or stage.
    """
    return draw_scene(find_scene(kernel, region, stages), width=width, style=style)


def draw_scene(scene: Scene, *, width: float = 960, style: bool = True) -> str:
    """A scene as SVG."""
    canvas = Canvas()
    head = f"{scene.kernel} · {scene.target}" if scene.target else scene.kernel
    canvas.text(MARGIN, 20, cut_text(head, width - 2 * MARGIN, 13), "head")
    strips = list(make_strips(scene))
    columns = column_widths(strips, width - GUTTER - MARGIN)
    y = 34.0
    for strip in strips:
        y = StripPainter(canvas, scene, strip, columns).draw(y) + 16
    y = draw_legend(canvas, [scene], y, width)
    return canvas.render(width, y + 8, f"Timeline of {scene.kernel}", _summary(scene), style=style)


def _summary(scene: Scene) -> str:
    lane_texts = []
    for lane in scene.lanes:
        letters = " ".join(f"{event.letter}{event.step.repetitions}" for event in lane.events[:60])
        ellipsis = f" and {len(lane.events) - 60} more" if len(lane.events) > 60 else ""
        lane_texts.append(f"{lane.stage.value}: {letters}{ellipsis}")
    return "Events in execution order. " + ". ".join(lane_texts)


# -- strips of a lane ----------------------------------------------------------------------------------------


def make_strips(scene: Scene) -> Iterator[TimelineStrip]:
    """The strips of a scene, in the order of its lanes; at most `MAX_STRIPS` per stage."""
    for _, lanes in groupby(scene.lanes, lambda lane: lane.stage):
        yield from islice((strip for lane in lanes for strip in _strips(scene, lane)), MAX_STRIPS)


def _strips(scene: Scene, lane: Lane) -> Iterator[TimelineStrip]:
    stretch = lane.spans[0] if scene.region is None else lane.span_of(scene.region)
    assert stretch is not None
    partitions = [] if scene.region is not None else _parallel_stretches(scene, lane)
    if partitions:
        yield from (
            TimelineStrip(lane, partition.region, ((partition.start, partition.stop),)) for partition in partitions
        )
        return
    loop = None if scene.region is not None or scene.principal is None else lane.span_of(scene.principal)
    if loop is None or loop.kind is not RegionKind.LOOP:
        yield TimelineStrip(lane, "", ((stretch.start, stretch.stop),))
    else:
        yield TimelineStrip(lane, "", tuple(pairwise((stretch.start, loop.start, loop.stop, stretch.stop))))


def _parallel_stretches(scene: Scene, lane: Lane) -> list[RegionSpan]:
    """Code that different warps run at the same time: partitions, or the loops that they became."""
    stretches = [stretch for stretch in lane.spans if stretch.kind is RegionKind.PARTITION]
    if not stretches and scene.principal is not None:
        name = scene.principal
        stretches = [
            candidate
            for candidate in lane.spans
            if name in (candidate.region, RegionId.parse(candidate.region).loop_id)
        ]
    return stretches if len(stretches) > 1 else []


def column_widths(strips: Sequence[TimelineStrip], room: float) -> list[float]:
    """Widths of the parts: the largest needs of the strips, scaled to the available width."""
    part_count = max(len(strip.cuts) for strip in strips)
    needs = [MIN_COLUMN_WIDTH] * part_count
    for strip in strips:
        if len(strip.cuts) == part_count:
            for number, (start, stop) in enumerate(strip.cuts):
                needs[number] = max(needs[number], min(needed_width(events_in(strip.lane, start, stop)), 4 * room))
    total = sum(needs)
    if total > room and part_count == 3:  # the loop matters most
        sides = min(needs[0], room * 0.3), min(needs[2], room * 0.25)
        needs, total = [sides[0], room - sum(sides), sides[1]], room
    return [need * room / total for need in needs]


# -- legend ------------------------------------------------------------------------------------------------


def draw_legend(canvas: Canvas, scenes: Sequence[Scene], y: float, width: float) -> float:
    """Draw letters and notes below the lanes; returns the bottom."""
    lanes = [lane for scene in scenes for lane in scene.lanes]
    present = {event.step.kind for lane in lanes for event in lane.events}
    texts = [f"{kind.letter} {name}" for kind, name in LETTERS.items() if kind in present]
    if EventKind.WAIT in present:
        texts.append("line down from W: loads that the wait completes")
    if any(loading.flight.back_edges for lane in lanes for loading in lane.load_spans):
        texts.append("+n: complete n iterations later")
    notes = list(dict.fromkeys(note for scene in scenes for note in scene_notes(scene)))
    y = canvas.flow(texts, MARGIN, y, width) + 14
    return canvas.notes(notes, MARGIN, y + 8, width, "small alarm") - 8


def scene_notes(scene: Scene) -> list[str]:
    """Notes on what is missing in a scene."""
    notes = [*_describe_omitted(scene), *_describe_unknown(scene), *scene.missing]
    if len(notes) > MAX_NOTES:
        notes[MAX_NOTES:] = [f"… and {len(notes) - MAX_NOTES} more"]
    return notes


def _describe_omitted(scene: Scene) -> Iterator[str]:
    for stage, count in Counter(lane.stage for lane in scene.lanes for _ in _strips(scene, lane)).items():
        if count > MAX_STRIPS:
            yield f"{stage.value}: the first {MAX_STRIPS} of {count:,} functions and partitions are drawn"


def _describe_unknown(scene: Scene) -> Iterator[str]:
    for lane in scene.lanes:
        for stretch in lane.spans:
            if stretch.unknown_reason is not None and scene.region in (None, stretch.region):
                yield f"{lane.stage.value} {stretch.region}: loads in flight unknown: {stretch.unknown_reason}"
