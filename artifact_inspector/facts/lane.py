"""A function at one stage as it runs, with the words that go with its events."""

from __future__ import annotations

from dataclasses import dataclass

from artifact_inspector.analysis.overlap.track import Flight, Level, Step, Stretch, Track
from artifact_inspector.model import Function, Module, SourceLine, Stage


@dataclass(frozen=True, slots=True)
class Place:
    """An instruction for people."""

    line: int
    """Of the stage's file."""
    opcode: str
    text: str
    """The whole instruction as the file has it: untrusted."""
    source: SourceLine | None


@dataclass(frozen=True, slots=True)
class Event:
    """A run of instructions of one kind."""

    step: Step
    first: Place

    @property
    def letter(self) -> str:
        """Of its kind, as in a signature."""
        return self.step.kind.letter


@dataclass(frozen=True, slots=True)
class Loading:
    """Loads from their issue to what completes them."""

    flight: Flight
    issue: Place
    completion: Place | None
    """None where nothing tells what completes them."""


@dataclass(frozen=True, slots=True)
class Lane:
    """One function at one stage."""

    stage: Stage
    function: str
    file: str
    instructions: int
    events: tuple[Event, ...]
    loadings: tuple[Loading, ...]
    levels: tuple[Level, ...]
    stretches: tuple[Stretch, ...]

    def stretch(self, region: str) -> Stretch | None:
        """The loop, partition or function of that name."""
        return next((found for found in self.stretches if found.region == region), None)


def make_lane(module: Module, function: Function, track: Track) -> Lane:
    """A track with the words of its instructions."""
    instructions = function.instructions

    def place(index: int) -> Place:
        found = instructions[index]
        source = SourceLine.of(found.location) if found.location else None
        return Place(found.line, found.opcode, found.text, source)

    events = tuple(Event(step, place(step.at)) for step in track.steps)
    return Lane(
        module.stage,
        track.function,
        module.name,
        track.instructions,
        events,
        tuple(
            Loading(flight, events[flight.step].first, None if flight.at is None else place(flight.at))
            for flight in track.flights
        ),
        track.levels,
        track.stretches,
    )
