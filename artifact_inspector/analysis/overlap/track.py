"""A function as it runs: its events in execution order, and every load from its issue to its completion.

Loops stand once, as they are in their steady state. Places are those of instructions in execution order.
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
    """Instructions of one kind that stand one behind the other, those of no event between them left out."""

    kind: EventKind
    times: int
    at: int
    """Index of the first."""
    lines: tuple[int, int]
    start: int
    """Place of the first."""
    stop: int
    """Place behind the last."""
    region: str
    round: int | None
    """Of loads and computes that belong to one, from 1 on."""


class Flight(NamedTuple):
    """Loads of one step that are complete with the same instruction."""

    step: int
    """Number of their step."""
    loads: int
    bytes: float | None
    """Per thread, together; None where those of some are not known."""
    start: int
    """Place of the first."""
    end: int | None
    """Place of the instruction that they are complete with; None where nothing tells that."""
    at: int | None
    """Its index."""
    turns: int
    """How often the innermost loop around that instruction went round in between."""
    behind: bool
    """It stands behind the loop that they stand in."""
    by_wait: bool
    """It is a wait; else it uses what they load, or waits for it by its control code."""
    bounded: bool
    """They are over there at the latest: it needs their register or barrier again."""


class Level(NamedTuple):
    """What is in flight from one place to the next."""

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
    """Why what is in flight in it cannot be told."""


@dataclass(frozen=True, slots=True)
class Track:
    """A function as it runs."""

    function: str
    instructions: int
    steps: tuple[Step, ...]
    flights: tuple[Flight, ...]
    levels: tuple[Level, ...]
    stretches: tuple[Stretch, ...]
    """The whole function first, then partitions and loops, outer ones first."""


def find_track(walk: Walk, name: str, prefix: str, rounds: Mapping[int, int]) -> Track:
    """The track of a function that was gone through.

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
    """The levels in execution order, each where it begins; a loop begins with what its last trip left."""
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
    # A block that begins behind a change says last what is in flight there.
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
    """First and last instruction of a block; none where it is empty."""
    found = code.function.blocks[block]
    return (found.start, found.stop - 1) if found.start < found.stop else ()


def _plain(number: Fraction) -> int | float:
    return number.numerator if number.denominator == 1 else float(number)
