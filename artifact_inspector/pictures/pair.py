"""The timelines of two kernels on one scale, aligned by rounds, with the first divergence marked."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import pairwise

from artifact_inspector.comparison.pair import Pair, RegionPair
from artifact_inspector.errors import UsageError
from artifact_inspector.facts.lane import Lane
from artifact_inspector.facts.scene import Scene, find_scene
from artifact_inspector.model import COMPUTES, Stage
from artifact_inspector.pictures._canvas import Canvas, cut
from artifact_inspector.pictures._strip import GUTTER, MARGIN, Drawing, Strip
from artifact_inspector.pictures.timeline import columns_of, legend
from artifact_inspector.vocabulary.names import step_of

MOST_ROUNDS = 12
"""Most rounds that are aligned."""


def pair_timelines(
    pair: Pair,
    labels: tuple[str, str] = ("left", "right"),
    *,
    made_by: str = "",
    stages: Collection[Stage] | None = None,
    width: float = 960,
    style: bool = True,
) -> str:
    """The timelines of the compared region of two kernels, as SVG.

    Args:
        pair: the two kernels.
        labels: their names.
        made_by: the pass that made them differ, if known.
        stages: the stages to show; by default the first divergence, the stage before it, and the last.

    Raises:
        UsageError: they have no region in common.
    """
    region = _region(pair)
    scenes = [
        find_scene(kernel, name, stages)
        for kernel, name in ((pair.left, region.left), (pair.right, region.right))
    ]
    rows = _rows(scenes)
    if stages is None and region.parting is not None:
        rows = _decisive(rows, region.parting.step)
    columns = columns_of([strip for _, row in rows for _, strip in row], width - GUTTER - MARGIN)
    canvas = Canvas()
    title = f"{scenes[0].kernel} ({labels[0]}) · {scenes[1].kernel} ({labels[1]})"
    canvas.text(MARGIN, 20, cut(title, width - 2 * MARGIN, 13), "head")
    parting, y = region.parting, 34.0
    marked = False
    for step, row in rows:
        if parting is not None and step == parting.step and not marked:
            y, marked = (
                _mark(canvas, y, width, f"{step}: first divergence", parting.components, made_by),
                True,
            )
        for side, strip in row:
            scene = scenes[side]
            canvas.text(
                GUTTER, y + 8, cut(_what(labels[side], scene, strip.lane), width - GUTTER, 9), "small bold"
            )
            with canvas.side(labels[side]):
                y = Drawing(canvas, scene, strip, columns).draw(y + 12) + 10
        y += 10
    y = legend(canvas, scenes, y, width)
    said = "equal at every stage" if parting is None else f"first divergence at {parting.step}"
    return canvas.render(
        width, y + 8, f"Timelines of {labels[0]} and {labels[1]}", f"{title}: {said}", style=style
    )


def _region(pair: Pair) -> RegionPair:
    """The first region with a divergence, else the main one."""
    both = [region for region in pair.regions if region.left is not None and region.right is not None]
    parted = [region for region in both if region.parting is not None]
    found = next(iter([*parted, *both]), None)
    if found is None:
        raise UsageError("The two kernels have no region in common.")
    return found


_Rows = list[tuple[str, list[tuple[int, Strip]]]]
"""Compiler stages, each with its strips and their sides."""


def _decisive(rows: _Rows, parting: str) -> _Rows:
    """The stage of the first divergence, the one before it, and the last."""
    steps = [step for step, _ in rows]
    at = steps.index(parting) if parting in steps else 0
    kept = {max(0, at - 1), at, len(rows) - 1}
    return [row for number, row in enumerate(rows) if number in kept]


def _rows(scenes: Sequence[Scene]) -> _Rows:
    """The lanes of both by compiler stage, each with its side and cut into its rounds."""
    steps = dict.fromkeys(
        step_of(stage)
        for stage in Stage
        if any(lane.stage is stage for scene in scenes for lane in scene.lanes)
    )
    rows = []
    for step in steps:
        row = [(side, lane) for side, scene in enumerate(scenes) for lane in scene.lanes
               if step_of(lane.stage) == step]  # fmt: skip
        marks = [_marks(lane, scenes[side].region) for side, lane in row]
        count = min(map(len, marks))
        rows.append(
            (step, [(side, _strip(lane, scenes[side].region, found[:count]))
                    for (side, lane), found in zip(row, marks, strict=True)])
        )  # fmt: skip
    return rows


def _marks(lane: Lane, region: str | None) -> list[int]:
    """The instructions at which the computes of each round begin, while the rounds are in order."""
    first: dict[int, int] = {}
    for event in lane.events:
        number = event.step.round
        if number is not None and event.step.region == region and event.step.kind in COMPUTES:
            first.setdefault(number, event.step.start)
    marks: list[int] = []
    for number in range(1, min(len(first), MOST_ROUNDS) + 1):
        if number not in first or (marks and first[number] <= marks[-1]):
            break
        marks.append(first[number])
    return marks


def _strip(lane: Lane, region: str | None, marks: Sequence[int]) -> Strip:
    whole = lane.stretch(region or "")
    assert whole is not None
    edges = [whole.start, *(mark for mark in marks if whole.start < mark < whole.stop), whole.stop]
    return Strip(lane, "", tuple(pairwise(edges)))


def _what(label: str, scene: Scene, lane: Lane) -> str:
    verdict = scene.verdicts.get(lane.stage, "")
    return f"{label}  {lane.stage.value} {scene.region}" + (f"  {verdict}" if verdict else "")


def _mark(
    canvas: Canvas, y: float, width: float, said: str, components: Sequence[str], made_by: str
) -> float:
    """Draw a horizontal line with the compiler component; returns its bottom."""
    canvas.line(MARGIN, y + 4, width - MARGIN, y + 4, "thick stop dashed")
    who = made_by or " or ".join(components)
    canvas.text(
        MARGIN, y + 18, cut(f"▼ {said}{f': {who}' if who else ''}", width - 2 * MARGIN, 11), "alarm bold"
    )
    return y + 26
