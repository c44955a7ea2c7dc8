"""When the loads of a kernel are issued and complete, as JSON: `timeline --json`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from artifact_inspector.analysis.overlap.execution_track import RegionSpan
from artifact_inspector.facts.lane import Event, LoadSpan
from artifact_inspector.facts.scene import Scene
from artifact_inspector.model import EventKind
from artifact_inspector.report.json._document import Document
from artifact_inspector.report.json._encoding import TextExamples, define_shape

define_shape(
    Event,
    "kind=step.kind.count_name repetitions=step.repetitions region=step.region round=step.round start=step.start"
    " stop=step.stop lines=step.lines opcode=first.opcode text=first.text source=first.source",
    without="step first",
    types={"kind": Annotated[str, TextExamples(tuple(kind.count_name for kind in EventKind if kind.letter))]},
)
define_shape(
    LoadSpan,
    "event=flight.step loads=flight.loads bytes=flight.bytes start=flight.start end=flight.end"
    " back_edges=flight.back_edges is_after_loop=flight.is_after_loop"
    " is_by_wait=flight.is_by_wait is_bounded=flight.is_bounded",
    without="flight",
)
define_shape(RegionSpan, "region kind start stop depth unknown_reason")


@dataclass(frozen=True, slots=True, kw_only=True)
class TimelineDocument(Document):
    """Each stage of a kernel as it runs: `inspect-kernel timeline CACHE NAME --json`."""

    document: Literal["timeline"] = "timeline"
    scene: Scene


define_shape(TimelineDocument, inline="scene")
