"""When each iteration of a pipelined loop is copied, waited for and computed on, trip by trip."""

from __future__ import annotations

from dataclasses import dataclass

from artifact_inspector.analysis.overlap.execution_track import LoadFlight
from artifact_inspector.errors import UsageError
from artifact_inspector.facts.kernel import KernelFacts
from artifact_inspector.facts.lane import Lane
from artifact_inspector.facts.scene import find_scene
from artifact_inspector.model import COMPUTES, LOADS, EventKind, PipelineKind, Stage

_ASYNCHRONOUS = (PipelineKind.GROUPS, PipelineKind.TENSORS, PipelineKind.DIRECT, PipelineKind.COPIES)


@dataclass(frozen=True, slots=True)
class Timetable:
    """A loop in its steady state; iterations are those of the source."""

    kernel: str
    region: str
    stage: Stage
    kind: PipelineKind
    distance: int
    """Iterations that its loads run ahead of the computes on them."""
    lag: int | None
    """Trips from the issue of a load to the wait (or use) that completes it; None where none is found."""
    buffers: int | None
    """Tiles that its buffers hold; None where loads go into registers, or it is not known."""
    order: tuple[EventKind, ...]
    """`ASYNC_COPY` or `GLOBAL_LOAD`, `WAIT` and a compute, in the order in which a trip has them first."""
    trips: int | None
    """Of the loop, where they are known."""
    epilogue_line: int | None
    """Of the wait behind the loop that leaves nothing in flight."""
    notes: tuple[str, ...]


def find_timetable(kernel: KernelFacts, region: str | None = None) -> Timetable:
    """The timetable of a loop, the main loop by default.

    Raises:
        UsageError: it is not pipelined; the message has the reason if it is known.
    """
    name = region or kernel.principal or ""
    pipeline = kernel.pipelines.get(name)
    title = f"{kernel.artifact.display_name} {name}".strip()
    if pipeline is None:
        raise UsageError(f"{title} is not a loop that could be pipelined.")
    distance = pipeline.distance
    if pipeline.kind is None or distance is None:
        raise UsageError(
            f"{title} is not pipelined{f': {pipeline.unpipelined_reason}' if pipeline.unpipelined_reason else '.'}"
        )
    notes = list(pipeline.notes)
    if isinstance(distance, tuple):
        notes.append(f"its loads run {distance[0]} to {distance[1]} iterations ahead; the picture shows the maximum")
        distance = distance[1]
    stage = next(reversed([stage for stage, facts in kernel.stages.items() if facts.region(name)]))
    lane = next(iter(find_scene(kernel, name, (stage,)).lanes))
    unrolled = max(1, next(facts.unroll_factor for facts in kernel.stages[stage].regions if facts.id == name))
    if unrolled > 1:
        notes.append(f"one trip of {stage.value} holds {unrolled} iterations")
    flights = [
        load_span.flight
        for load_span in lane.load_spans
        if not load_span.flight.is_after_loop
        and load_span.flight.end is not None
        and lane.events[load_span.flight.step].step.region == name
    ]
    longest = max(flights, key=lambda flight: (flight.back_edges, (flight.end or 0) - flight.start), default=None)
    return Timetable(
        kernel=kernel.artifact.display_name,
        region=name,
        stage=stage,
        kind=pipeline.kind,
        distance=distance,
        lag=None if longest is None else min(longest.back_edges * unrolled, distance),
        buffers=pipeline.buffers if pipeline.kind in _ASYNCHRONOUS else None,
        order=_order(lane, name, longest),
        trips=pipeline.trip_count,
        epilogue_line=pipeline.epilogue_line,
        notes=tuple(notes),
    )


def _order(lane: Lane, region: str, flight: LoadFlight | None) -> tuple[EventKind, ...]:
    """The loads of a flight, the wait for them and the first computes, in the order of one trip."""
    events = [event.step for event in lane.events if event.step.region == region]
    computes = COMPUTES if all(step.kind is not EventKind.MATRIX for step in events) else {EventKind.MATRIX}
    load, wait, compute = (
        next(((step.start, step.kind) for step in events if step.kind in kinds), None)
        for kinds in (LOADS, {EventKind.WAIT}, computes)
    )
    if flight is not None and flight.end is not None:
        load, wait = (flight.start, lane.events[flight.step].step.kind), wait and (flight.end, EventKind.WAIT)
    return tuple(kind for _, kind in sorted(filter(None, (load, wait, compute)), key=lambda item: item[0]))
