"""A function at one stage as it runs, with the text of its events."""

from __future__ import annotations

from dataclasses import dataclass

from artifact_inspector.analysis.overlap.execution_track import (
    EventRun,
    ExecutionTrack,
    InFlightLevel,
    LoadFlight,
    RegionSpan,
)
from artifact_inspector.model import Function, Module, SourceLine, Stage


@dataclass(frozen=True, slots=True)
class InstructionLabel:
    """An instruction as it is displayed."""

    line: int
    """Of the stage's file."""
    opcode: str
    text: str
    """The whole instruction as the file has it: untrusted."""
    source: SourceLine | None


@dataclass(frozen=True, slots=True)
class Event:
    """A run of instructions of one kind."""

    step: EventRun
    first: InstructionLabel

    @property
    def letter(self) -> str:
        """Of its kind, as in a signature."""
        return self.step.kind.letter


@dataclass(frozen=True, slots=True)
class LoadSpan:
    """Loads from their issue to what completes them."""

    flight: LoadFlight
    issue: InstructionLabel
    completion: InstructionLabel | None
    """None if unknown."""


@dataclass(frozen=True, slots=True)
class Lane:
    """One function at one stage."""

    stage: Stage
    function: str
    file: str
    instructions: int
    events: tuple[Event, ...]
    load_spans: tuple[LoadSpan, ...]
    levels: tuple[InFlightLevel, ...]
    spans: tuple[RegionSpan, ...]

    def span_of(self, region: str) -> RegionSpan | None:
        """The loop, partition or function of that name."""
        return next((span for span in self.spans if span.region == region), None)


def make_lane(module: Module, function: Function, track: ExecutionTrack) -> Lane:
    """A track with the text of its instructions."""
    instructions = function.instructions

    def label_instruction(index: int) -> InstructionLabel:
        instruction = instructions[index]
        source = SourceLine.from_location(instruction.location) if instruction.location else None
        return InstructionLabel(instruction.line, instruction.opcode, instruction.text, source)

    events = tuple(Event(step, label_instruction(step.first_index)) for step in track.steps)
    return Lane(
        module.stage,
        track.function,
        module.name,
        track.instructions,
        events,
        tuple(
            LoadSpan(
                flight,
                events[flight.step].first,
                None if flight.completion_index is None else label_instruction(flight.completion_index),
            )
            for flight in track.flights
        ),
        track.levels,
        track.spans,
    )
