"""Which loads have been issued and are not complete, at each place of a function.

The function is walked in execution order. Each loop is gone through until it leaves in flight what it
found in flight, and measured then: that is its steady state. Code outside loops is measured as it is
passed. Blocks that a branch may go around are read in line; where two arms meet, the walk goes on from
the one that leaves more loads in flight.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from artifact_inspector.analysis.memory_events import (
    Commit,
    Event,
    Issue,
    Moves,
    Reads,
    WaitFor,
    find_memory_events,
)
from artifact_inspector.analysis.regions import Code, Region
from artifact_inspector.analysis.rounds import COMPUTES
from artifact_inspector.analysis.scoreboard import Flight, Scoreboard
from artifact_inspector.model import Language, Module, Queue

__all__ = ["InFlight", "WaitEffect", "find_in_flight"]

MOST_TRIPS = 80
"""Trips after which a loop that does not settle is given up; vmcnt, the deepest queue, counts to 63."""
MOST_VISITS = 400
"""Visits per block, on average, after which no loop is gone through again: deeply nested loops."""


@dataclass(frozen=True, slots=True)
class WaitEffect:
    """What a wait finds in flight in its queue, and what it leaves."""

    line: int
    op: str
    depth: int | None
    queue: Queue
    before: int
    """Loads of its queue in flight in front of it."""
    after: int
    """Loads of its queue that it leaves in flight."""
    groups: int | None
    """Groups, or phases of its barriers, that it leaves; None where the queue counts single operations."""
    iterations: int | float | None
    """Iterations of the loop whose copies it may leave in flight: its depth ÷ groups committed in one."""


@dataclass(frozen=True, slots=True)
class InFlight:
    """The loads in flight in a region; of a loop in its steady state."""

    max_loads: int | None
    """Most load instructions (or operations, in tensor-level IR) issued and not complete."""
    max_bytes_per_thread: int | float | None
    """Most bytes of such loads for each thread; None where the width of some load is not known."""
    compute_covered: float | None
    """Share of the region's matrix and float instructions issued while a load is in flight."""
    distance: tuple[int, int] | None
    """Instructions between issue and completion of its loads, least and most."""
    waits: tuple[WaitEffect, ...]
    drains: tuple[int, ...]
    """Lines of the waits inside a loop that leave nothing of their queue in flight."""
    levels: tuple[tuple[int, int], ...]
    """(line, loads in flight after it), in execution order, where the number changes."""
    notes: tuple[str, ...]


def find_in_flight(
    code: Code, regions: Sequence[Region], module: Module, language: Language, threads: int | None
) -> dict[str, InFlight]:
    """What is in flight in each region, by its id.

    Args:
        threads: threads of a block, for what a copy moves for all of them; None where it is not known.
    """
    walk = _Walk(code, find_memory_events(code, module, language), regions, threads)
    walk.run()
    return {region.id: walk.facts(number, region) for number, region in enumerate(regions)}


@dataclass(slots=True)
class _Measure:
    """What a region showed when its blocks were last gone through."""

    loads: int = 0
    bytes: int | None = 0
    """Of all threads of the block together; None once a load of unknown width was in flight."""
    computes: int = 0
    covered: int = 0
    commits: int = 0
    """Groups of copies closed."""
    distances: list[int] = field(default_factory=list)
    waits: dict[int, tuple[WaitFor, int, int, int | None]] = field(default_factory=dict)
    """By instruction: the wait, loads of its queue before and after it, groups after it."""
    levels: dict[int, tuple[int, int]] = field(default_factory=dict)
    """By instruction: loads in flight before and after it."""
    unread: set[int] = field(default_factory=set)
    """Loads whose registers nothing uses."""
    bounded: bool = False
    """A phase of a barrier ended because the barrier was needed again, not at a wait."""


class _Walk:
    """A walk through a function that keeps the loads in flight and measures them by region."""

    def __init__(
        self, code: Code, events: list[tuple[Event, ...]], regions: Sequence[Region], threads: int | None
    ) -> None:
        self._events, self._threads = events, threads
        self._instructions, self._blocks, self._flow = (
            code.function.instructions,
            code.function.blocks,
            code.flow,
        )
        self._region_of = {block: number for number, region in enumerate(regions) for block in region.blocks}
        self._measures = [_Measure() for _ in regions]
        self._computes = [i for i, x in enumerate(self._instructions) if x.kind in COMPUTES]
        self._rank = {block: place for place, block in enumerate(self._flow.order)}
        self._predecessors: list[list[int]] = [[] for _ in self._blocks]
        for block in self._blocks:
            for successor in block.successors:
                self._predecessors[successor].append(block.index)
        self._left: dict[int, Scoreboard] = {}
        """What was in flight at the end of each block, when it was last gone through."""
        self._clock = 0
        """Instructions gone through."""
        self._visits = MOST_VISITS * len(self._blocks)
        self._unsettled: set[int] = set()
        self._inside: dict[int, list[int]] = {}
        """Regions of each loop and of the loops in it."""
        for number, region in enumerate(regions):
            loop = region.loop
            while loop is not None:
                self._inside.setdefault(loop, []).append(number)
                loop = self._flow.loops[loop].parent
        copied = {
            what.array and what.array.start
            for found in events
            for _, what in found
            if isinstance(what, Issue) and what.transfer.queue is Queue.PHASE
        }
        self._copied = copied - {None}
        """Arrays of barriers at which copies arrive."""
        self._given = self._given_away()
        self._foreign = set[int]().union(*self._given.values())
        self._lost = [
            self._instructions[at].line
            for found in events
            for at, what in found
            if copied and not isinstance(what, Reads | Moves | Commit) and _is_lost(what)
        ]
        """Lines of copies and waits whose barrier cannot be told."""

    def run(self) -> None:
        """Go through the function."""
        self._run(0, len(self._flow.order), None)

    def _run(self, place: int, stop: int, level: int | None, entered: Scoreboard | None = None) -> None:
        """Go through blocks of the execution order that stand in one loop."""
        while place < stop:
            block = self._flow.order[place]
            loop = self._flow.loop_of[block]
            while loop is not None and loop != level and self._flow.loops[loop].parent != level:
                loop = self._flow.loops[loop].parent
            state = self._arriving(block) if entered is None else entered
            entered = None
            if loop is None or loop == level:
                self._pass(block, state)
                place += 1
            else:
                size = len(self._flow.loops[loop].blocks)
                self._repeat(loop, place, state)
                for inner in self._flow.loops[loop].blocks if loop in self._given else ():
                    self._left[inner].forget(self._given[loop])
                place += size

    def _arriving(self, block: int) -> Scoreboard:
        """What is in flight where a block begins.

        A branch around some blocks is no way into what follows them: they are read in line. Of two arms
        the one counts that leaves more loads in flight.
        """
        rank, blocks = self._rank, self._blocks
        ways = [p for p in self._predecessors[block] if rank[p] < rank[block] and p in self._left]
        if not ways:
            return Scoreboard()
        last = max(ways, key=rank.__getitem__)
        ways = [p for p in ways if p == last or len(blocks[p].successors) == 1]
        way = max(ways, key=lambda p: (len(self._left[p].flying), rank[p]))
        left = self._left[way]
        return left.copy() if len(blocks[way].successors) > 1 else left

    def _repeat(self, loop: int, place: int, state: Scoreboard) -> None:
        """Go through a loop until it leaves something in flight that it began with before."""
        natural = self._flow.loops[loop]
        stop = place + len(natural.blocks)
        seen = {state.signature()}
        for _ in range(MOST_TRIPS):
            for number in self._inside.get(loop, ()):
                self._measures[number] = _Measure()
            self._visits -= stop - place
            self._run(place, stop, loop, state)
            ends = [self._left[latch] for latch in natural.latches if latch in self._left]
            if not ends:
                return
            state = max(ends, key=lambda end: len(end.flying)).copy()
            reached = state.signature()
            if reached in seen:
                return
            seen.add(reached)
            if self._visits < 0:
                break
        self._unsettled.add(loop)

    def _given_away(self) -> dict[int, set[int]]:
        """Arrays of barriers by the loop that fills their buffers and never waits for them.

        Another partition does, side by side with the loop; which of its trips meets which is not said.
        """
        filled: dict[int, set[int]] = {}
        waited: dict[int, set[int]] = {}
        for block, events in enumerate(self._events):
            loop = self._flow.loop_of[block]
            for _, what in events:
                if isinstance(what, Issue | WaitFor) and what.array is not None:
                    start = what.array.start
                    if isinstance(what, Issue) and loop is not None:
                        filled.setdefault(loop, set()).add(start)
                    around = loop
                    while isinstance(what, WaitFor) and around is not None:
                        waited.setdefault(around, set()).add(start)
                        around = self._flow.loops[around].parent
        return {loop: given for loop, arrays in filled.items() if (given := arrays - waited.get(loop, set()))}

    def _pass(self, index: int, state: Scoreboard) -> None:
        """Go through a block."""
        block = self._blocks[index]
        measure = self._measures[self._region_of[index]]
        at, flying = block.start, len(state.flying)
        if block.stop > block.start:
            self._note_level(measure, state)
        began = self._clock - block.start
        for event in self._events[index]:
            if flying:
                measure.covered += self._computes_between(at, event.at)
            at = event.at
            done: list[Flight] = []
            what = event.what
            if isinstance(what, Reads):
                done = state.read(what)
            elif isinstance(what, Issue):
                ended = state.issue(at, what, began + at)
                if what.transfer.queue is Queue.USE and not what.registers:
                    measure.unread.add(at)
                measure.bounded = measure.bounded or (what.array is not None and bool(ended))
            elif isinstance(what, Moves):
                state.move(what)
            elif isinstance(what, Commit):
                state.commit(what)
                measure.commits += what.queue is Queue.GROUP
            elif self._is_for_copies(what):
                before, _ = state.pending(what)
                if what.array is None or what.array.start not in self._foreign:
                    done = state.wait(what)
                measure.waits[at] = (what, before, *state.pending(what))
            for flight in done:
                self._note_distance(flight, began + at, index)
            if len(state.flying) != flying:
                level = measure.levels.get(at, (flying,))[0]
                flying = len(state.flying)
                measure.levels[at] = (level, flying)
                self._note_level(measure, state)
        if flying:
            measure.covered += self._computes_between(at, block.stop)
        measure.computes += self._computes_between(block.start, block.stop)
        self._clock += block.stop - block.start
        self._left[index] = state

    def _computes_between(self, start: int, stop: int) -> int:
        return bisect_left(self._computes, stop) - bisect_left(self._computes, start)

    def _is_for_copies(self, what: WaitFor) -> bool:
        """False for a wait for a barrier at which no copy arrives."""
        return what.wait.queue is not Queue.PHASE or (
            what.array is not None and what.array.start in self._copied
        )

    def _note_level(self, measure: _Measure, state: Scoreboard) -> None:
        measure.loads = max(measure.loads, len(state.flying))
        if state.unknown or (state.of_block and self._threads is None):
            measure.bytes = None
        elif measure.bytes is not None:
            measure.bytes = max(measure.bytes, state.of_thread * (self._threads or 1) + state.of_block)

    def _note_distance(self, flight: Flight, now: int, block: int) -> None:
        """Count a completion for the region of its load, but none behind the load's own loop."""
        home = self._flow.block_of[flight.index]
        if self._flow.encloses(self._flow.loop_of[home], self._flow.loop_of[block]):
            self._measures[self._region_of[home]].distances.append(now - flight.issued - 1)

    def facts(self, number: int, region: Region) -> InFlight:
        """What a region showed."""
        measure = self._measures[number]
        notes = []
        waits = tuple(self._effect(at, *found, measure) for at, found in measure.waits.items())
        settled = region.loop not in self._unsettled
        if not settled:
            notes.append("what is in flight keeps growing from trip to trip")
        if region.remains is not None:
            settled = False
            notes.append("unrolled here: its loads are counted where they stand")
        if self._lost and self._touches_barriers(region):
            settled = False
            notes.append(f"which copies a barrier waits for cannot be told (line {self._lost[0]})")
        foreign = self._foreign_waits(measure)
        if measure.unread:
            notes.append(f"loads whose registers nothing uses are left out: {len(measure.unread)}")
        if foreign:
            settled = False
            notes.append(f"line {foreign[0]} waits for copies that are issued elsewhere")
        if measure.bounded:
            notes.append("copies end elsewhere: at most one phase of each of their barriers is in flight")
        computes = measure.computes if settled else 0
        distances = measure.distances if settled else []
        return InFlight(
            measure.loads if settled else None,
            _plain(Fraction(measure.bytes, self._threads or 1))
            if settled and measure.bytes is not None
            else None,
            measure.covered / computes if computes else None,
            (min(distances), max(distances)) if distances else None,
            waits,
            tuple(w.line for w in waits if region.loop is not None and w.before and not w.after),
            _levels((self._instructions[at].line, *change) for at, change in measure.levels.items())
            if settled
            else (),
            tuple(notes),
        )

    def _effect(
        self, at: int, what: WaitFor, before: int, after: int, groups: int | None, measure: _Measure
    ) -> WaitEffect:
        wait = what.wait
        iterations = None
        if wait.queue is Queue.GROUP and wait.depth is not None and measure.commits:
            iterations = _plain(Fraction(wait.depth, measure.commits))
        return WaitEffect(
            self._instructions[at].line,
            wait.op,
            wait.depth,
            wait.queue,
            before,
            after,
            groups,
            iterations,
        )

    def _touches_barriers(self, region: Region) -> bool:
        """True where copies arrive at barriers, or are waited for, in a region."""
        return any(
            (isinstance(what, Issue) and what.transfer.queue is Queue.PHASE)
            or (isinstance(what, WaitFor) and what.wait.queue is Queue.PHASE and what.array is None)
            or (isinstance(what, WaitFor) and self._is_for_copies(what))
            for block in region.blocks
            for _, what in self._events[block]
        )

    def _foreign_waits(self, measure: _Measure) -> list[int]:
        """Lines of the waits for barriers at which no copy of this path arrives."""
        phases = [
            (at, what.array.start, before)
            for at, (what, before, _, _) in measure.waits.items()
            if what.array is not None
        ]
        met = {start for _, start, before in phases if before} - self._foreign
        return [self._instructions[at].line for at, start, _ in phases if start not in met]


def _is_lost(what: Issue | WaitFor) -> bool:
    queue = what.transfer.queue if isinstance(what, Issue) else what.wait.queue
    return queue is Queue.PHASE and what.array is None


def _levels(changes: Iterable[tuple[int, int, int]]) -> tuple[tuple[int, int], ...]:
    """(line, after) of changes (line, before, after), one for each line that changes anything."""
    lines: dict[int, tuple[int, int]] = {}
    for line, before, after in changes:
        lines[line] = (lines.get(line, (before,))[0], after)
    return tuple((line, after) for line, (before, after) in lines.items() if before != after)


def _plain(number: Fraction) -> int | float:
    return number.numerator if number.denominator == 1 else float(number)
