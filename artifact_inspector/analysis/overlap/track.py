"""A function as executed: its events in execution order, and every load from issue to completion.

Loops appear once, in their steady state. Positions are those of instructions in execution order.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

from artifact_inspector.analysis.flow.code import Code
from artifact_inspector.analysis.overlap.inflight import find_untold
from artifact_inspector.analysis.overlap.memory_events import Issue, WaitFor
from artifact_inspector.analysis.overlap.steady_state import Walk
from artifact_inspector.model import COMPUTES, LOADS, EventKind, RegionKind

_NUMBERED = LOADS | COMPUTES
"""Kinds that belong to rounds."""
_SHOWN = frozenset(kind for kind in EventKind if kind.letter) - {EventKind.UNKNOWN}


class Step(NamedTuple):
    """Consecutive instructions of one kind, ignoring instructions without an event in between."""

    kind: EventKind
    times: int
    at: int
    """Index of the first instruction."""
    lines: tuple[int, int]
    start: int
    """Position of the first."""
    stop: int
    """Position after the last."""
    region: str
    round: int | None
    """Round number from 1, for loads and computes that belong to one."""


class Flight(NamedTuple):
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
    at: int | None
    """Its index."""
    turns: int
    """Back edges taken in between, of the innermost loop around that instruction."""
    behind: bool
    """The completion is after the loop that contains the loads."""
    by_wait: bool
    """A wait completes them. Otherwise an instruction uses their data, or waits by its control code."""
    bounded: bool
    """Upper bound: the instruction reuses their register or barrier, so they must be complete."""


class Level(NamedTuple):
    """The loads in flight from one position to the next."""

    start: int
    loads: int
    bytes: float | None
    """Per thread."""


class Stretch(NamedTuple):
    """A loop or a partition."""

    region: str
    kind: RegionKind
    start: int
    stop: int
    depth: int
    untold: str | None
    """Why the loads in flight are unknown."""


@dataclass(frozen=True, slots=True)
class Track:
    """A function as executed."""

    function: str
    instructions: int
    steps: tuple[Step, ...]
    flights: tuple[Flight, ...]
    levels: tuple[Level, ...]
    stretches: tuple[Stretch, ...]
    """The function first, then partitions and loops, outer ones first."""


def find_track(walk: Walk, name: str, prefix: str, rounds: Mapping[int, int]) -> Track:
    """The track of a function that was walked through.

    Args:
        prefix: of the names of its regions.
        rounds: the numbers of rounds, by instruction.
    """
    code = walk.code
    steps = tuple(_steps(walk, prefix, rounds))
    return Track(
        name,
        len(code.function.instructions),
        steps,
        tuple(_flights(walk, steps)),
        tuple(_levels(walk)),
        tuple(_stretches(walk, prefix)),
    )


def _steps(walk: Walk, prefix: str, rounds: Mapping[int, int]) -> Iterator[Step]:
    code, flow = walk.code, walk.code.flow
    instructions = code.function.instructions
    home = {block: prefix + region.id for region in walk.regions for block in region.blocks}
    last: Step | None = None
    for index in code.find(_SHOWN):
        found = instructions[index]
        region, place = home[flow.block_of[index]], flow.position[index]
        number = rounds.get(index) if found.kind in _NUMBERED else None
        if last is not None and (last.kind, last.region, last.round) == (found.kind, region, number):
            first, line = last.lines
            lines = (min(first, found.line), max(line, found.line))
            last = last._replace(times=last.times + 1, lines=lines, stop=place + 1)
            continue
        if last is not None:
            yield last
        last = Step(found.kind, 1, index, (found.line, found.line), place, place + 1, region, number)
    if last is not None:
        yield last


def _flights(walk: Walk, steps: tuple[Step, ...]) -> Iterator[Flight]:
    position = walk.code.flow.position
    starts = [step.start for step in steps]
    moved = _moved(walk)
    waits = {at for found in walk.events for at, what in found if isinstance(what, WaitFor)}
    flown = [one for measure in walk.measures for one in measure.flown]
    landed = {one.load for one in flown}
    together: dict[tuple[int, int | None, int, bool], list[int]] = {}

    def add(load: int, at: int | None, turns: int, behind: bool) -> None:
        step = bisect_right(starts, position[load]) - 1
        together.setdefault((step, at, turns, behind), []).append(load)

    for one in flown:
        add(*one)
    for load in moved.keys() - landed:
        add(load, None, 0, False)
    # several of a step in the order of their first loads
    for (step, at, turns, behind), loads in sorted(together.items(), key=lambda x: (x[0][0], min(x[1]))):
        sizes = [moved[load] for load in loads]
        known = [size for size in sizes if size is not None]
        yield Flight(
            step=step,
            loads=len(loads),
            bytes=_plain(sum(known, Fraction())) if len(known) == len(sizes) else None,
            start=min(position[load] for load in loads),
            end=None if at is None else position[at],
            at=at,
            turns=turns,
            behind=behind,
            by_wait=at in waits,
            bounded=at in moved,
        )


def _moved(walk: Walk) -> dict[int, Fraction | None]:
    """Bytes per thread of every load that enters a queue."""
    found: dict[int, Fraction | None] = {}
    for at, what in (event for events in walk.events for event in events):
        if isinstance(what, Issue) and what.is_load:
            size, threads = what.transfer.bytes, walk.threads if what.transfer.of_block else 1
            found[at] = None if size is None or threads is None else Fraction(size, threads)
    return found


def _levels(walk: Walk) -> Iterator[Level]:
    """The levels in execution order. A loop starts with the state at the end of its last iteration."""
    position = walk.code.flow.position
    changes = [
        (position[at] + 1, after, measure.weights[at])
        for measure in walk.measures
        for at, (_, after) in measure.levels.items()
    ]
    changes += [
        (position[at], *entered) for measure in walk.measures for at, entered in measure.entered.items()
    ]
    last: tuple[int, int | None] = (0, 0)
    # If several changes have one position, the state at the start of the block is last.
    for place, loads, weight in sorted(changes, key=lambda change: change[0]):
        if (loads, weight) != last:
            last = (loads, weight)
            yield Level(place, loads, None if weight is None else _plain(Fraction(weight, walk.threads or 1)))


def _stretches(walk: Walk, prefix: str) -> Iterator[Stretch]:
    code, untold = walk.code, find_untold(walk)
    for region in walk.regions:
        if region.remains is not None:
            continue
        whole = [index for block in region.whole for index in _ends(code, block)]
        places = [code.flow.position[index] for index in whole]
        why = "; ".join(untold[region.id]) or None
        start, stop = (min(places), max(places) + 1) if places else (0, 0)
        yield Stretch(prefix + region.id, region.kind, start, stop, region.depth, why)


def _ends(code: Code, block: int) -> tuple[int, ...]:
    """First and last instruction of a block; () if it is empty."""
    found = code.function.blocks[block]
    return (found.start, found.stop - 1) if found.start < found.stop else ()


def _plain(number: Fraction) -> int | float:
    return number.numerator if number.denominator == 1 else float(number)
