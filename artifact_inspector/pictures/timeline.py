"""The timeline: a lane for each stage, its events in order, every load from issue to completion."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from itertools import groupby, islice, pairwise
from typing import TYPE_CHECKING

from artifact_inspector.analysis.overlap.track import Stretch
from artifact_inspector.facts.lane import Lane
from artifact_inspector.facts.scene import Scene, find_scene
from artifact_inspector.model import EventKind, RegionKind, Stage
from artifact_inspector.model.region import RegionId
from artifact_inspector.pictures._canvas import Canvas, cut, width_of
from artifact_inspector.pictures._row import demand
from artifact_inspector.pictures._strip import GUTTER, MARGIN, Drawing, Strip, inside
from artifact_inspector.vocabulary.letters import LETTERS

if TYPE_CHECKING:
    from artifact_inspector.facts.kernel import KernelFacts

MOST_NOTES = 4
MOST_STRIPS = 32
"""Most functions and warp partitions of a stage that are drawn."""
LEAST = 14.0
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
    canvas.text(MARGIN, 20, cut(head, width - 2 * MARGIN, 13), "head")
    strips = list(strips_of(scene))
    columns = columns_of(strips, width - GUTTER - MARGIN)
    y = 34.0
    for strip in strips:
        y = Drawing(canvas, scene, strip, columns).draw(y) + 16
    y = legend(canvas, [scene], y, width)
    return canvas.render(width, y + 8, f"Timeline of {scene.kernel}", _summary(scene), style=style)


def _summary(scene: Scene) -> str:
    """A description of the picture."""
    said = []
    for lane in scene.lanes:
        letters = " ".join(f"{event.letter}{event.step.times}" for event in lane.events[:60])
        more = f" and {len(lane.events) - 60} more" if len(lane.events) > 60 else ""
        said.append(f"{lane.stage.value}: {letters}{more}")
    return "Events in execution order. " + ". ".join(said)


# -- strips of a lane ----------------------------------------------------------------------------------------


def strips_of(scene: Scene) -> Iterator[Strip]:
    """The strips of a scene, in the order of its lanes; at most `MOST_STRIPS` per stage."""
    for _, lanes in groupby(scene.lanes, lambda lane: lane.stage):
        yield from islice((strip for lane in lanes for strip in _strips(scene, lane)), MOST_STRIPS)


def _strips(scene: Scene, lane: Lane) -> Iterator[Strip]:
    whole = lane.stretches[0] if scene.region is None else lane.stretch(scene.region)
    assert whole is not None
    apart = [] if scene.region is not None else _side_by_side(scene, lane)
    if apart:
        yield from (Strip(lane, part.region, ((part.start, part.stop),)) for part in apart)
        return
    loop = None if scene.region is not None or scene.principal is None else lane.stretch(scene.principal)
    if loop is None or loop.kind is not RegionKind.LOOP:
        yield Strip(lane, "", ((whole.start, whole.stop),))
    else:
        ends = (whole.start, loop.start, loop.stop, whole.stop)
        yield Strip(lane, "", tuple(pairwise(ends)))


def _side_by_side(scene: Scene, lane: Lane) -> list[Stretch]:
    """Code that different warps run at the same time: partitions, or the loops that they became."""
    found = [part for part in lane.stretches if part.kind is RegionKind.PARTITION]
    if not found and scene.principal is not None:
        name = scene.principal
        found = [one for one in lane.stretches if name in (one.region, RegionId.parse(one.region).whole)]
    return found if len(found) > 1 else []


def columns_of(strips: Sequence[Strip], room: float) -> list[float]:
    """Widths of the parts: the largest needs of the strips, scaled to the available room."""
    parts = max(len(strip.cuts) for strip in strips)
    needs = [LEAST] * parts
    for strip in strips:
        if len(strip.cuts) == parts:
            for number, (start, stop) in enumerate(strip.cuts):
                needs[number] = max(needs[number], min(demand(inside(strip.lane, start, stop)), 4 * room))
    total = sum(needs)
    if total > room and parts == 3:  # the loop matters most
        sides = min(needs[0], room * 0.3), min(needs[2], room * 0.25)
        needs, total = [sides[0], room - sum(sides), sides[1]], room
    return [need * room / total for need in needs]


# -- legend ------------------------------------------------------------------------------------------------


def legend(canvas: Canvas, scenes: Sequence[Scene], y: float, width: float) -> float:
    """Draw letters and notes below the lanes; returns the bottom."""
    lanes = [lane for scene in scenes for lane in scene.lanes]
    present = {event.step.kind for lane in lanes for event in lane.events}
    said = [f"{kind.letter} {name}" for kind, name in LETTERS.items() if kind in present]
    if EventKind.WAIT in present:
        said.append("line down from W: loads that the wait completes")
    if any(loading.flight.turns for lane in lanes for loading in lane.loadings):
        said.append("+n: complete n iterations later")
    notes = list(dict.fromkeys(note for scene in scenes for note in notes_of(scene)))
    x = float(MARGIN)
    for piece in said:
        room = width_of(piece, 9) + 16
        if x + room > width - MARGIN:
            x, y = float(MARGIN), y + 13
        canvas.text(x, y + 8, piece, "small faint")
        x += room
    y += 14
    for note in notes:
        canvas.text(MARGIN, y + 8, cut(note, width - 2 * MARGIN, 9), "small alarm")
        y += 13
    return y


def notes_of(scene: Scene) -> list[str]:
    """Notes on what is missing in a scene."""
    notes = [*_left_out(scene), *_untold(scene), *scene.missing]
    if len(notes) > MOST_NOTES:
        notes[MOST_NOTES:] = [f"… and {len(notes) - MOST_NOTES} more"]
    return notes


def _left_out(scene: Scene) -> Iterator[str]:
    counts = Counter(lane.stage for lane in scene.lanes for _ in _strips(scene, lane))
    for stage, count in counts.items():
        if count > MOST_STRIPS:
            yield f"{stage.value}: the first {MOST_STRIPS} of {count:,} functions and partitions are drawn"


def _untold(scene: Scene) -> Iterator[str]:
    for lane in scene.lanes:
        for stretch in lane.stretches:
            if stretch.untold is not None and scene.region in (None, stretch.region):
                yield f"{lane.stage.value} {stretch.region}: loads in flight unknown: {stretch.untold}"
