"""A function as executed: its events in execution order, and every load from issue to completion.

Loops appear once, in their steady state. Positions are those of instructions in execution order.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from itertools import groupby
from typing import NamedTuple

from artifact_inspector.analysis.flow.traversal import group_by_key
from artifact_inspector.analysis.overlap.loads_in_flight import find_unknown_reasons, plain_number
from artifact_inspector.analysis.overlap.memory_events import IssuedOperation, QueueWait
from artifact_inspector.analysis.overlap.steady_state import InFlightWalk
from artifact_inspector.model import COMPUTES, LOADS, EventKind, RegionKind

_NUMBERED = LOADS | COMPUTES
"""Kinds that belong to rounds."""
_SHOWN = frozenset(kind for kind in EventKind if kind.letter) - {EventKind.UNKNOWN}


class EventRun(NamedTuple):
    """Consecutive instructions of one kind, ignoring instructions without an event in between."""

    kind: EventKind
    repetitions: int
    first_index: int
    """Index of the first instruction."""
    lines: tuple[int, int]
    start: int
    """Position of the first."""
    stop: int
    """Position after the last."""
    region: str
    round: int | None
    """Round number from 1, for loads and computes that belong to one."""


class LoadFlight(NamedTuple):
    """Loads of one step that the same instruction completes."""

    step: int
    """Index of their step."""
    loads: int
    bytes: float | None
    """Total per thread; None if the size of a load is unknown."""
    start: int
    """Position of the first."""
    end: int | None
    """Position of the instruction that completes them; None if unknown."""
    completion_index: int | None
    """Its index."""
    back_edges: int
    """Back edges taken in between, of the innermost loop around that instruction."""
    is_after_loop: bool
    """The completion is after the loop that contains the loads."""
    is_by_wait: bool
    """A wait completes them. Otherwise an instruction uses their data, or waits by its control code."""
    is_bounded: bool
    """Upper bound: the instruction reuses their register or barrier, so they must be complete."""


class InFlightLevel(NamedTuple):
    """The loads in flight from one position to the next."""

    start: int
    loads: int
    bytes: float | None
    """Per thread."""


class RegionSpan(NamedTuple):
    """A loop or a partition."""

    region: str
    kind: RegionKind
    start: int
    stop: int
    depth: int
    unknown_reason: str | None
    """Why the loads in flight are unknown."""


@dataclass(frozen=True, slots=True)
class ExecutionTrack:
    """A function as executed."""

    function: str
    instructions: int
    steps: tuple[EventRun, ...]
    flights: tuple[LoadFlight, ...]
    levels: tuple[InFlightLevel, ...]
    spans: tuple[RegionSpan, ...]
    """The function first, then partitions and loops, outer ones first."""


def find_execution_track(walk: InFlightWalk, name: str, prefix: str, rounds: Mapping[int, int]) -> ExecutionTrack:
    """The track of a function that was walked through.

    Args:
        prefix: of the names of its regions.
        rounds: the numbers of rounds, by instruction.
    """
    steps = tuple(_steps(walk, prefix, rounds))
    flights, levels, spans = _flights(walk, steps), _levels(walk), _region_spans(walk, prefix)
    return ExecutionTrack(name, len(walk.code.instructions), steps, tuple(flights), tuple(levels), tuple(spans))


def _steps(walk: InFlightWalk, prefix: str, rounds: Mapping[int, int]) -> Iterator[EventRun]:
    code, flow = walk.code, walk.code.flow
    home = {block: prefix + region.id for region in walk.regions for block in region.blocks}

    def place(index: int) -> tuple[EventKind, str, int | None]:
        kind = code.instructions[index].kind
        return kind, home[flow.block_of[index]], rounds.get(index) if kind in _NUMBERED else None

    for (kind, region, number), run in groupby(code.find(_SHOWN), place):
        indices = list(run)
        lines = [code.instructions[index].line for index in indices]
        start, stop = flow.position[indices[0]], flow.position[indices[-1]] + 1
        yield EventRun(kind, len(indices), indices[0], (min(lines), max(lines)), start, stop, region, number)


def _flights(walk: InFlightWalk, steps: tuple[EventRun, ...]) -> Iterator[LoadFlight]:
    position = walk.code.flow.position
    starts = [step.start for step in steps]
    moved = _load_sizes(walk)
    waits = {at for block_events in walk.events for at, action in block_events if isinstance(action, QueueWait)}
    completions = [(*completion,) for measure in walk.measures for completion in measure.completions]
    never = moved.keys() - {load for load, *_ in completions}
    loads_by_completion = group_by_key(
        ((bisect_right(starts, position[load]) - 1, at, back_edges, is_after_loop), load)
        for load, at, back_edges, is_after_loop in (*completions, *((load, None, 0, False) for load in never))
    )
    # several of a step in the order of their first loads
    in_order = sorted(loads_by_completion.items(), key=lambda entry: (entry[0][0], min(entry[1])))
    for (step, at, back_edges, is_after_loop), loads in in_order:
        known_sizes = [size for load in loads if (size := moved[load]) is not None]
        yield LoadFlight(
            step=step,
            loads=len(loads),
            bytes=plain_number(sum(known_sizes, Fraction())) if len(known_sizes) == len(loads) else None,
            start=min(position[load] for load in loads),
            end=None if at is None else position[at],
            completion_index=at,
            back_edges=back_edges,
            is_after_loop=is_after_loop,
            is_by_wait=at in waits,
            is_bounded=at in moved,
        )


def _load_sizes(walk: InFlightWalk) -> dict[int, Fraction | None]:
    """Bytes per thread of every load that enters a queue."""
    sizes: dict[int, Fraction | None] = {}
    for at, action in (event for events in walk.events for event in events):
        if isinstance(action, IssuedOperation) and action.is_load:
            size, threads = action.transfer.bytes, walk.threads if action.transfer.is_per_block else 1
            sizes[at] = None if size is None or threads is None else Fraction(size, threads)
    return sizes


def _levels(walk: InFlightWalk) -> Iterator[InFlightLevel]:
    """The levels in execution order. A loop starts with the state at the end of its last iteration."""
    position = walk.code.flow.position
    changes = [
        (position[at] + 1, after, m.bytes_after[at]) for m in walk.measures for at, (_, after) in m.levels.items()
    ]
    changes += [(position[at], *entered) for m in walk.measures for at, entered in m.block_entries.items()]
    last: tuple[int, int | None] = (0, 0)
    # If several changes have one position, the state at the start of the block is last.
    for event_position, loads, weight in sorted(changes, key=lambda change: change[0]):
        if (loads, weight) != last:
            last = (loads, weight)
            size = None if weight is None else plain_number(Fraction(weight, walk.threads or 1))
            yield InFlightLevel(event_position, loads, size)


def _region_spans(walk: InFlightWalk, prefix: str) -> Iterator[RegionSpan]:
    code, unknown_reasons = walk.code, find_unknown_reasons(walk)
    for region in walk.regions:
        if region.residue is not None:
            continue
        blocks = [code.blocks[block] for block in region.enclosed_blocks]
        ends = [end for block in blocks if block.start < block.stop for end in (block.start, block.stop - 1)]
        positions = [code.flow.position[index] for index in ends]
        unknown_reason = "; ".join(unknown_reasons[region.id]) or None
        start, stop = (min(positions), max(positions) + 1) if positions else (0, 0)
        yield RegionSpan(prefix + region.id, region.kind, start, stop, region.depth, unknown_reason)
