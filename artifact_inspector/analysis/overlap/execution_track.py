"""A function as executed: its events in execution order, and every load from issue to completion.

Loops appear once, in their steady state. Positions are those of instructions in execution order.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

from artifact_inspector.analysis.flow.function_code import FunctionCode
from artifact_inspector.analysis.overlap.loads_in_flight import find_unknown_reasons
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
    code = walk.code
    steps = tuple(_steps(walk, prefix, rounds))
    return ExecutionTrack(
        name,
        len(code.instructions),
        steps,
        tuple(_flights(walk, steps)),
        tuple(_levels(walk)),
        tuple(_region_spans(walk, prefix)),
    )


def _steps(walk: InFlightWalk, prefix: str, rounds: Mapping[int, int]) -> Iterator[EventRun]:
    code, flow = walk.code, walk.code.flow
    instructions = code.instructions
    home = {block: prefix + region.id for region in walk.regions for block in region.blocks}
    last: EventRun | None = None
    for index in code.find(_SHOWN):
        instruction = instructions[index]
        region, position = home[flow.block_of[index]], flow.position[index]
        number = rounds.get(index) if instruction.kind in _NUMBERED else None
        if last is not None and (last.kind, last.region, last.round) == (instruction.kind, region, number):
            first, line = last.lines
            lines = (min(first, instruction.line), max(line, instruction.line))
            last = last._replace(repetitions=last.repetitions + 1, lines=lines, stop=position + 1)
            continue
        if last is not None:
            yield last
        last = EventRun(
            instruction.kind, 1, index, (instruction.line, instruction.line), position, position + 1, region, number
        )
    if last is not None:
        yield last


def _flights(walk: InFlightWalk, steps: tuple[EventRun, ...]) -> Iterator[LoadFlight]:
    position = walk.code.flow.position
    starts = [step.start for step in steps]
    moved = _load_sizes(walk)
    waits = {at for block_events in walk.events for at, action in block_events if isinstance(action, QueueWait)}
    completions = [completion for measure in walk.measures for completion in measure.completions]
    completed_loads = {completion.load for completion in completions}
    loads_by_completion: dict[tuple[int, int | None, int, bool], list[int]] = {}

    def add(load: int, at: int | None, back_edge_count: int, after_loop: bool) -> None:
        step = bisect_right(starts, position[load]) - 1
        loads_by_completion.setdefault((step, at, back_edge_count, after_loop), []).append(load)

    for completion in completions:
        add(*completion)
    for load in moved.keys() - completed_loads:
        add(load, None, 0, False)
    # several of a step in the order of their first loads
    for (step, at, back_edges, is_after_loop), loads in sorted(
        loads_by_completion.items(), key=lambda x: (x[0][0], min(x[1]))
    ):
        sizes = [moved[load] for load in loads]
        known_sizes = [size for size in sizes if size is not None]
        yield LoadFlight(
            step=step,
            loads=len(loads),
            bytes=_plain(sum(known_sizes, Fraction())) if len(known_sizes) == len(sizes) else None,
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
        (position[at] + 1, loads_after, measure.bytes_after[at])
        for measure in walk.measures
        for at, (_, loads_after) in measure.levels.items()
    ]
    changes += [(position[at], *entered) for measure in walk.measures for at, entered in measure.block_entries.items()]
    last: tuple[int, int | None] = (0, 0)
    # If several changes have one position, the state at the start of the block is last.
    for event_position, loads, weight in sorted(changes, key=lambda change: change[0]):
        if (loads, weight) != last:
            last = (loads, weight)
            yield InFlightLevel(
                event_position, loads, None if weight is None else _plain(Fraction(weight, walk.threads or 1))
            )


def _region_spans(walk: InFlightWalk, prefix: str) -> Iterator[RegionSpan]:
    code, unknown_reasons = walk.code, find_unknown_reasons(walk)
    for region in walk.regions:
        if region.residue is not None:
            continue
        boundary_indices = [index for block in region.enclosed_blocks for index in _ends(code, block)]
        positions = [code.flow.position[index] for index in boundary_indices]
        unknown_reason = "; ".join(unknown_reasons[region.id]) or None
        start, stop = (min(positions), max(positions) + 1) if positions else (0, 0)
        yield RegionSpan(prefix + region.id, region.kind, start, stop, region.depth, unknown_reason)


def _ends(code: FunctionCode, block: int) -> tuple[int, ...]:
    """First and last instruction of a block; () if it is empty."""
    basic_block = code.blocks[block]
    return (basic_block.start, basic_block.stop - 1) if basic_block.start < basic_block.stop else ()


def _plain(number: Fraction) -> int | float:
    return number.numerator if number.denominator == 1 else float(number)
