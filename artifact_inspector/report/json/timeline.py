"""When the loads of a kernel are issued and complete, as JSON: `timeline --json`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from artifact_inspector.analysis.overlap.track import Stretch
from artifact_inspector.facts.lane import Event, Loading
from artifact_inspector.facts.scene import Scene
from artifact_inspector.model import EventKind
from artifact_inspector.report.json._document import Document
from artifact_inspector.report.json._encoding import Words, shape

shape(
    Event,
    "kind=step.kind.count_name times=step.times region=step.region round=step.round start=step.start"
    " stop=step.stop lines=step.lines opcode=first.opcode text=first.text source=first.source",
    without="step first",
    types={"kind": Annotated[str, Words(tuple(kind.count_name for kind in EventKind if kind.letter))]},
)
shape(
    Loading,
    "event=flight.step loads=flight.loads bytes=flight.bytes start=flight.start end=flight.end"
    " turns=flight.turns behind=flight.behind by_wait=flight.by_wait bounded=flight.bounded",
    without="flight",
)
shape(Stretch, "region kind start stop depth untold")


@dataclass(frozen=True, slots=True, kw_only=True)
class TimelineDocument(Document):
    """Each stage of a kernel as it runs: `inspect-kernel timeline CACHE NAME --json`."""

    document: Literal["timeline"] = "timeline"
    scene: Scene


shape(TimelineDocument, inline="scene")
