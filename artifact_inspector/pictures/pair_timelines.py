"""The timelines of two kernels on one scale, aligned by rounds, with the first divergence marked."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import pairwise

from artifact_inspector.comparison.pair import Comparison, RegionPair
from artifact_inspector.errors import UsageError
from artifact_inspector.facts.lane import Lane
from artifact_inspector.facts.scene import Scene, find_scene
from artifact_inspector.model import COMPUTES, Stage
from artifact_inspector.pictures._canvas import Canvas, cut_text
from artifact_inspector.pictures._timeline_strip import GUTTER, MARGIN, StripPainter, TimelineStrip
from artifact_inspector.pictures.timeline import column_widths, draw_legend
from artifact_inspector.vocabulary.names import step_of

MAX_ROUNDS = 12
"""Most rounds that are aligned."""


def pair_timelines(
    pair: Comparison,
    labels: tuple[str, str] = ("left", "right"),
    *,
    responsible_pass: str = "",
    stages: Collection[Stage] | None = None,
    width: float = 960,
    style: bool = True,
) -> str:
    """The timelines of the compared region of two kernels, as SVG.

    Args:
        responsible_pass: the pass that made them differ, if known.
        stages: the stages to show; by default the first divergence, the stage before it, and the last.

    Raises:
        UsageError: they have no region in common.
    """
    region = _region(pair)
    scenes = [find_scene(pair.left, region.left, stages), find_scene(pair.right, region.right, stages)]
    rows = _rows(scenes)
    divergence, y = region.first_divergence, 34.0
    if stages is None and divergence is not None:
        rows = _select_steps(rows, divergence.step)
    columns = column_widths([strip for _, row in rows for _, strip in row], width - GUTTER - MARGIN)
    canvas = Canvas()
    title = f"{scenes[0].kernel} ({labels[0]}) · {scenes[1].kernel} ({labels[1]})"
    canvas.text(MARGIN, 20, cut_text(title, width - 2 * MARGIN, 13), "head")
    for step, row in rows:
        if divergence is not None and step == divergence.step:
            canvas.line(MARGIN, y + 4, width - MARGIN, y + 4, "thick stop dashed")
            component = responsible_pass or " or ".join(divergence.components)
            text = f"▼ {step}: first divergence{f': {component}' if component else ''}"
            canvas.text(MARGIN, y + 18, cut_text(text, width - 2 * MARGIN, 11), "alarm bold")
            y += 26
        for side, strip in row:
            scene, lane = scenes[side], strip.lane
            texts = [f"{labels[side]}  {lane.stage.value} {scene.region}", scene.verdicts.get(lane.stage, "")]
            lane_text = "  ".join(filter(None, texts))
            canvas.text(GUTTER, y + 8, cut_text(lane_text, width - GUTTER, 9), "small bold")
            with canvas.side(labels[side]):
                y = StripPainter(canvas, scene, strip, columns).draw(y + 12) + 10
        y += 10
    y = draw_legend(canvas, scenes, y, width)
    name = f"Timelines of {labels[0]} and {labels[1]}"
    divergence_text = "equal at every stage" if divergence is None else f"first divergence at {divergence.step}"
    return canvas.render(width, y + 8, name, f"{title}: {divergence_text}", style=style)


def _region(pair: Comparison) -> RegionPair:
    """The first region with a divergence, else the main one."""
    both = [region for region in pair.regions if region.left is not None and region.right is not None]
    diverging = [region for region in both if region.first_divergence is not None]
    best_region = next(iter([*diverging, *both]), None)
    if best_region is None:
        raise UsageError("The two kernels have no region in common.")
    return best_region


_Rows = list[tuple[str, list[tuple[int, TimelineStrip]]]]
"""Compiler stages, each with its strips and their sides."""


def _select_steps(rows: _Rows, divergence_step: str) -> _Rows:
    """The stage of the first divergence, the one before it, and the last."""
    steps = [step for step, _ in rows]
    at = steps.index(divergence_step) if divergence_step in steps else 0
    kept_indices = {max(0, at - 1), at, len(rows) - 1}
    return [row for number, row in enumerate(rows) if number in kept_indices]


def _rows(scenes: Sequence[Scene]) -> _Rows:
    steps = dict.fromkeys(
        step_of(stage) for stage in Stage if any(lane.stage is stage for scene in scenes for lane in scene.lanes)
    )
    rows = []
    for step in steps:
        row = [(side, lane) for side, scene in enumerate(scenes) for lane in scene.lanes
               if step_of(lane.stage) == step]  # fmt: skip
        marks = [_round_starts(lane, scenes[side].region) for side, lane in row]
        count = min(map(len, marks))
        rows.append(
            (step, [(side, _strip(lane, scenes[side].region, round_marks[:count]))
                    for (side, lane), round_marks in zip(row, marks, strict=True)])
        )  # fmt: skip
    return rows


def _round_starts(lane: Lane, region: str | None) -> list[int]:
    """The instructions at which the computes of each round begin, while the rounds are in order."""
    first: dict[int, int] = {}
    for event in lane.events:
        number = event.step.round
        if number is not None and event.step.region == region and event.step.kind in COMPUTES:
            first.setdefault(number, event.step.start)
    marks: list[int] = []
    for number in range(1, min(len(first), MAX_ROUNDS) + 1):
        if number not in first or (marks and first[number] <= marks[-1]):
            break
        marks.append(first[number])
    return marks


def _strip(lane: Lane, region: str | None, marks: Sequence[int]) -> TimelineStrip:
    stretch = lane.span_of(region or "")
    assert stretch is not None
    edges = [stretch.start, *(mark for mark in marks if stretch.start < mark < stretch.stop), stretch.stop]
    return TimelineStrip(lane, "", tuple(pairwise(edges)))
