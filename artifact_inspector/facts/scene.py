"""What a timeline shows of a kernel: a lane for each stage, with the text of its events.

A scene is computed on request. It is not a field of a kernel, and is not stored in the index.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from artifact_inspector.errors import UsageError
from artifact_inspector.facts.kernel import KernelFacts
from artifact_inspector.facts.kernel_reading import KernelReading
from artifact_inspector.facts.lane import Lane
from artifact_inspector.facts.reading import Unavailable, without_collection
from artifact_inspector.model import Stage


@dataclass(frozen=True, slots=True)
class Scene:
    """The lanes of a kernel in the order of its stages."""

    kernel: str
    target: str
    region: str | None
    """The region that is shown; None for the whole kernel."""
    principal: str | None
    """The main loop."""
    lanes: tuple[Lane, ...]
    verdicts: Mapping[Stage, str]
    """Of the region, or of the main loop, as they are printed."""
    missing: tuple[str, ...]
    """Sentences about missing stages."""


def find_scene(kernel: KernelFacts, region: str | None = None, stages: Collection[Stage] | None = None) -> Scene:
    """What a timeline of a kernel shows; its files are read unless they are in memory.

    Args:
        region: id of a loop or partition, as the reports name it; the whole kernel without one.
        stages: those to show; all that can be read without any.

    Raises:
        UsageError: the kernel has no such region, or none of the stages; the remedy lists those it has.
    """
    name = kernel.artifact.display_name
    have = list(kernel.stages)
    selected = [stage for stage in have if stages is None or stage in stages]
    if not selected:
        listed = ", ".join(stage.value for stage in have) or "none"
        raise UsageError(f"{name} has no such stage that could be read.", f"Expected one of {listed}.")
    every: list[Lane] = [lane for stage in selected for lane in _lanes(kernel, stage)]
    lanes = [lane for lane in every if region is None or lane.span_of(region) is not None]
    if not lanes:
        ids = dict.fromkeys(stretch.region for lane in every for stretch in lane.spans)
        raise UsageError(f"{name} has no region {region!r} that can be drawn.", f"It has {', '.join(ids) or 'none'}.")
    target = "" if kernel.artifact.target is None else str(kernel.artifact.target)
    region_name = region or kernel.principal
    verdicts = {
        stage: region_facts.phrase
        for stage in selected
        if region_name is not None and (region_facts := kernel.stages[stage].region(region_name)) is not None
    }
    drawn = {lane.stage for lane in lanes}
    missing = tuple(f"{stage.value} has no such region" for stage in selected if stage not in drawn)
    return Scene(name, target, region, kernel.principal, tuple(lanes), verdicts, missing)


def _lanes(kernel: KernelFacts, stage: Stage) -> Sequence[Lane]:
    """The lanes of a stage, from the files; none where they are unavailable."""
    facts = kernel.stages[stage]
    reading = facts.reading if facts.is_on_demand else KernelReading(kernel.artifact).at(stage)
    try:
        with without_collection():
            return reading.lanes
    except Unavailable:
        return ()
