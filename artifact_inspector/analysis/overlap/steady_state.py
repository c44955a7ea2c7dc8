"""The loads in flight in each region: straight-line code as executed, loops in their steady state.

The function is walked in execution order. Each loop is repeated until it leaves a set of loads in flight
that it has left before, and the last iteration is measured. Blocks that a branch may skip are treated as
executed. At a merge of two branches, the walk continues from the one with more loads in flight.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from artifact_inspector.analysis.flow.code import Code
from artifact_inspector.analysis.order.regions import Region
from artifact_inspector.analysis.overlap.memory_events import (
    Clears,
    Commit,
    Event,
    Issue,
    Moves,
    Reads,
    WaitFor,
    find_memory_events,
)
from artifact_inspector.analysis.overlap.scoreboard import Flight, Scoreboard
from artifact_inspector.model import COMPUTES, Language, Module, Queue
from artifact_inspector.model.limits import CARRIED

MOST_TRIPS = 80
"""Iterations after which a loop counts as unsettled. vmcnt, the deepest queue, counts to 63."""
MOST_VISITS = 400
"""Visits per block, on average, after which no loop is repeated: deeply nested loops."""


class Flown(NamedTuple):
    """A load from its issue to its completion."""

    load: int
    """Index of the instruction."""
    at: int
    """Index of the instruction that completes it."""
    turns: int
    """Back edges taken in between, of the innermost loop around the completion."""
    behind: bool
    """True if the completion is after the loop that contains the load."""


class PassedWait(NamedTuple):
    """The most recent execution of a wait."""

    what: WaitFor
    before: int
    """Loads (matrix operations) of its queue in flight before it."""
    after: int
    groups: int | None
    """Groups, or phases of its barriers, in flight after it."""
    drains: bool
    """It completes the last load in flight that was issued in the loop around it."""


@dataclass(slots=True)
class Measure:
    """Measurements from the most recent pass through a region's blocks."""

    loads: int = 0
    bytes: int | None = 0
    """Total of all threads of the block; None if a load of unknown width was in flight."""
    computes: int = 0
    covered: int = 0
    commits: int = 0
    """Number of groups of copies closed."""
    distances: list[int] = field(default_factory=list)
    waits: dict[int, PassedWait] = field(default_factory=dict)
    """By instruction."""
    levels: dict[int, tuple[int, int]] = field(default_factory=dict)
    """By instruction: loads in flight before and after it."""
    weights: dict[int, int | None] = field(default_factory=dict)
    """By the same instructions: bytes in flight after it, of all threads; None if unknown."""
    entered: dict[int, tuple[int, int | None]] = field(default_factory=dict)
    """By the first instruction of each block: loads and bytes in flight before it."""
    flown: dict[Flown, None] = field(default_factory=dict)
    """Completions of its loads."""
    unread: set[int] = field(default_factory=set)
    """Loads whose registers are never used."""
    untold: set[int] = field(default_factory=set)
    """Loads whose completion the format does not show."""
    has_phases: bool = False
    """Copies complete at barriers here, or are waited for here."""
    bounded: bool = False
    """A barrier phase ended because the barrier was reused, not at a wait."""


def walk_through(
    code: Code, regions: Sequence[Region], module: Module, language: Language, threads: int | None
) -> Walk:
    """The walk through a function.

    Args:
        threads: threads of a block, to convert copies made by the whole block; None if unknown.
    """
    walk = Walk(code, find_memory_events(code, module, language), regions, threads)
    walk.run()
    return walk


class Walk:
    """A walk through a function that tracks the loads in flight and measures them by region."""

    def __init__(
        self, code: Code, events: list[tuple[Event, ...]], regions: Sequence[Region], threads: int | None
    ) -> None:
        self.code, self.regions, self.events, self.threads = code, regions, events, threads
        self._blocks, self._flow = code.function.blocks, code.flow
        self._region_of = {block: number for number, region in enumerate(regions) for block in region.blocks}
        self.measures = [Measure() for _ in regions]
        self._computes = sorted(code.find(COMPUTES))
        self._rank = code.rank
        self._predecessors: list[list[int]] = [[] for _ in self._blocks]
        for block in self._blocks:
            for successor in block.successors:
                self._predecessors[successor].append(block.index)
        self._reader: dict[int, int] = {}
        """Block → position in execution order of the last block that continues from its final state."""
        for number, before in enumerate(self._predecessors):
            ways = self._ways(number, before)
            self._reader.update((way, max(self._rank[number], self._reader.get(way, 0))) for way in ways)
        self._left: dict[int, Scoreboard] = {}
        """Loads in flight at the end of each block, at its last visit."""
        self._clock = 0
        """Number of instructions executed."""
        self._turns: dict[int, list[int]] = {}
        """Start of each iteration of each loop, on that clock."""
        self._visits = MOST_VISITS * len(self._blocks)
        self._room = CARRIED.most
        """Remaining budget for copying and comparing states."""
        self.unsettled: set[int] = set()
        self._inside: dict[int, list[int]] = {}
        """Regions of each loop, including the loops in it."""
        for number, region in enumerate(regions):
            loop = region.loop
            while loop is not None:
                self._inside.setdefault(loop, []).append(number)
                loop = self._flow.loops[loop].parent
        self._around = [
            frozenset[int]() if region.loop is None else frozenset(self._inside[region.loop])
            for region in regions
        ]
        """For each region that is a loop: its own region and those inside it."""
        self._copied = {
            what.array.start
            for found in events
            for _, what in found
            if isinstance(what, Issue) and what.array is not None
        }
        """Arrays of barriers at which copies arrive."""
        self._given = self._given_away()
        self.foreign = set[int]().union(*self._given.values())
        """Arrays of barriers whose copies are waited for by code that runs concurrently with the loop
        issuing them.
        """

    def run(self) -> None:
        """Walk through the function."""
        self._run(0, len(self._flow.order), None)

    def _run(self, place: int, stop: int, level: int | None, entered: Scoreboard | None = None) -> None:
        """Walk through blocks of the execution order inside one loop."""
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
                self._repeat(loop, place, state)
                blocks = self._flow.loops[loop].blocks
                for inner in blocks & self._left.keys():
                    if loop in self.unsettled:
                        self._left[inner] = Scoreboard()
                    elif loop in self._given:
                        self._left[inner].forget(self._given[loop])
                place += len(blocks)

    def _arriving(self, block: int) -> Scoreboard:
        """The loads in flight at the start of a block.

        A branch around some blocks is ignored: they are treated as executed. Of two branches, the one
        that leaves more loads in flight counts.
        """
        ways = [way for way in self._ways(block, self._predecessors[block]) if way in self._left]
        if not ways:
            return Scoreboard()
        way = max(ways, key=lambda p: (len(self._left[p].flying), self._rank[p]))
        left = self._left[way]
        place = self._rank[block]
        for other in ways:  # frees states that no block continues from
            if other != way and self._reader[other] == place and not self._is_latch(other):
                del self._left[other]
        return left if self._reader[way] == place else self._copied_of(left)

    def _is_latch(self, block: int) -> bool:
        rank = self._rank
        return any(rank.get(to, rank[block]) <= rank[block] for to in self._blocks[block].successors)

    def _copied_of(self, state: Scoreboard) -> Scoreboard:
        """A copy of the state to continue from; empty if the budget is used up."""
        return state.copy() if self._has_room(state) else Scoreboard()

    def _has_room(self, state: Scoreboard) -> bool:
        self._room -= state.size
        return not self.is_crowded

    @property
    def is_crowded(self) -> bool:
        """True if too many loads were in flight at branches to track them."""
        return self._room < 0

    def _ways(self, block: int, before: Sequence[int]) -> list[int]:
        """The predecessors of a block whose loads may be in flight at its start."""
        rank = self._rank
        ways = [p for p in before if p in rank and block in rank and rank[p] < rank[block]]
        last = max(ways, key=rank.__getitem__, default=block)
        return [p for p in ways if p == last or len(self._blocks[p].successors) == 1]

    def _repeat(self, loop: int, place: int, state: Scoreboard) -> None:
        """Repeat a loop until the loads in flight at its end match an earlier start."""
        natural = self._flow.loops[loop]
        stop = place + len(natural.blocks)
        if not self._has_room(state):
            state = Scoreboard()
        seen = {state.signature()}
        for _ in range(MOST_TRIPS):
            for number in self._inside.get(loop, ()):
                self.measures[number] = Measure()
            self._visits -= stop - place
            self._turns.setdefault(loop, []).append(self._clock)
            self._run(place, stop, loop, state)
            ends = [self._left[latch] for latch in natural.latches if latch in self._left]
            if not ends:
                return
            end = max(ends, key=lambda end: len(end.flying))
            if not self._has_room(end):
                break
            reached = end.signature()
            if reached in seen:
                return
            state = self._copied_of(end)
            seen.add(reached)
            if self._visits < 0:
                break
        around: int | None = loop
        while around is not None:  # its final state is unknown too
            self.unsettled.add(around)
            around = self._flow.loops[around].parent

    def _given_away(self) -> dict[int, set[int]]:
        """Arrays of barriers, by the loop that fills their buffers and never waits for them.

        Another partition waits for them concurrently. Which of its iterations matches which is unknown.
        """
        filled: dict[int, set[int]] = {}
        waited: dict[int, set[int]] = {}
        for block, events in enumerate(self.events):
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
        """Walk through a block."""
        block = self._blocks[index]
        region = self._region_of[index]
        measure = self.measures[region]
        at, flying = block.start, len(state.flying)
        if block.stop > block.start:
            self._note_level(measure, state)
            measure.entered[at] = (flying, self._weight(state))
        began = self._clock - block.start
        for event in self.events[index]:
            if flying:
                measure.covered += self._computes_between(at, event.at)
            at = event.at
            done: list[Flight] = []
            what = event.what
            if isinstance(what, Reads | Clears):
                done = state.read(what) if isinstance(what, Reads) else state.clear(what)
            elif isinstance(what, Issue):
                ended = state.issue(at, what, began + at, region)
                self._note_issue(index, at, what, ended)
            elif isinstance(what, Moves):
                state.move(what)
            elif isinstance(what, Commit):
                state.commit(what)
                measure.commits += what.queue is Queue.GROUP
            elif self._is_for_copies(what):
                done = self._wait(region, at, what, state)
            for flight in done:
                self._note_distance(flight, began + at, index)
                self._note_flown(flight, at, index)
            if len(state.flying) != flying:
                level = measure.levels.get(at, (flying,))[0]
                flying = len(state.flying)
                measure.levels[at] = (level, flying)
                measure.weights[at] = self._weight(state)
                self._note_level(measure, state)
        if flying:
            measure.covered += self._computes_between(at, block.stop)
        measure.computes += self._computes_between(block.start, block.stop)
        self._clock += block.stop - block.start
        self._left[index] = state

    def _wait(self, region: int, at: int, what: WaitFor, state: Scoreboard) -> list[Flight]:
        """Execute a wait for loads or copies. Returns the loads that it completes."""
        measure, inside = self.measures[region], self._around[region]
        measure.has_phases = measure.has_phases or what.wait.queue is Queue.PHASE
        before, _ = state.pending(what)
        own = state.flying_from(inside)
        is_foreign = what.array is not None and what.array.start in self.foreign
        done = [] if is_foreign else state.wait(what)
        drains = own > 0 and state.flying_from(inside) == 0
        measure.waits[at] = PassedWait(what, before, *state.pending(what), drains)
        return done

    def _computes_between(self, start: int, stop: int) -> int:
        return bisect_left(self._computes, stop) - bisect_left(self._computes, start)

    def _is_for_copies(self, what: WaitFor) -> bool:
        """False for a wait for a barrier at which no copy arrives."""
        return what.wait.queue is not Queue.PHASE or (
            bool(self._copied) and (what.array is None or what.array.start in self._copied)
        )

    def _note_issue(self, block: int, at: int, what: Issue, ended: list[Flight]) -> None:
        measure, queue = self.measures[self._region_of[block]], what.transfer.queue
        if queue is None:
            measure.untold.add(at)
        elif queue is Queue.USE and not what.registers and what.counter is None:
            measure.unread.add(at)
        elif queue is Queue.PHASE:
            measure.has_phases = True
            measure.bounded = measure.bounded or bool(ended)
        for flight in ended:
            self._note_flown(flight, at, block)

    def _note_level(self, measure: Measure, state: Scoreboard) -> None:
        measure.loads = max(measure.loads, len(state.flying))
        weight = self._weight(state)
        measure.bytes = None if weight is None or measure.bytes is None else max(measure.bytes, weight)

    def _weight(self, state: Scoreboard) -> int | None:
        """Bytes in flight, of all threads of the block; None if the size of a load is unknown."""
        if state.unknown or (state.of_block and self.threads is None):
            return None
        return state.of_thread * (self.threads or 1) + state.of_block

    def _note_flown(self, flight: Flight, at: int, block: int) -> None:
        """Record the completion of a load in the load's region."""
        flow = self._flow
        home, here = flow.loop_of[flow.block_of[flight.index]], flow.loop_of[block]
        turns = 0
        if here is not None:
            began = self._turns.get(here, [])
            turns = len(began) - bisect_right(began, flight.issued)
            if not flow.encloses(here, home):
                turns = max(0, turns - 1)  # the first of them entered the loop
        found = Flown(flight.index, at, turns, not flow.encloses(home, here))
        self.measures[self._region_of[flow.block_of[flight.index]]].flown[found] = None

    def _note_distance(self, flight: Flight, now: int, block: int) -> None:
        """Record the distance of a completion in the load's region, unless it is outside the load's loop."""
        home = self._flow.block_of[flight.index]
        if self._flow.encloses(self._flow.loop_of[home], self._flow.loop_of[block]):
            self.measures[self._region_of[home]].distances.append(now - flight.issued - 1)
