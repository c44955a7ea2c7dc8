"""The loads in flight in each region: straight-line code as executed, loops in their steady state.

The function is walked in execution order. Each loop is repeated until it leaves a set of loads in flight that it has
left before, and the last iteration is measured. Blocks that a branch may skip are treated as executed. At a merge of
two branches, the walk continues from the one with more loads in flight.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from artifact_inspector.analysis.flow.function_code import FunctionCode
from artifact_inspector.analysis.flow.traversal import group_by_key
from artifact_inspector.analysis.order.regions import Region
from artifact_inspector.analysis.overlap.memory_events import (
    GroupCommit,
    IssuedOperation,
    MemoryEvent,
    QueueWait,
    RegisterMoves,
    RegisterReads,
    ScoreboardWait,
    find_memory_events,
)
from artifact_inspector.analysis.overlap.queue_state import InFlightOperation, QueueState
from artifact_inspector.model import COMPUTES, Queue
from artifact_inspector.model.limits import LOADS_IN_FLIGHT

MAX_TRIPS = 80
"""Iterations after which a loop counts as unsettled. vmcnt, the deepest queue, counts to 63."""
MAX_VISITS = 400
"""Visits per block, on average, after which no loop is repeated: deeply nested loops."""


class CompletedLoad(NamedTuple):
    """A load from its issue to its completion."""

    load: int
    """Index of the instruction."""
    completion: int
    """Index of the instruction that completes it."""
    back_edges: int
    """Back edges taken in between, of the innermost loop around the completion."""
    is_after_loop: bool
    """True if the completion is after the loop that contains the load."""


class ExecutedWait(NamedTuple):
    """The most recent execution of a wait."""

    queue_wait: QueueWait
    in_flight_before: int
    """Loads (matrix operations) of its queue in flight before it."""
    in_flight_after: int
    groups: int | None
    """Groups, or phases of its barriers, in flight after it."""
    drains: bool
    """It completes the last load in flight that was issued in the loop around it."""


@dataclass(slots=True)
class RegionMeasurement:
    """Measurements from the most recent pass through a region's blocks."""

    loads: int = 0
    bytes: int | None = 0
    """Total of all threads of the block; None if a load of unknown width was in flight."""
    computes: int = 0
    overlapped_computes: int = 0
    commits: int = 0
    """Number of groups of copies closed."""
    distances: list[int] = field(default_factory=list)
    waits: dict[int, ExecutedWait] = field(default_factory=dict)
    """By instruction."""
    levels: dict[int, tuple[int, int]] = field(default_factory=dict)
    """By instruction: loads in flight before and after it."""
    bytes_after: dict[int, int | None] = field(default_factory=dict)
    """By the same instructions: bytes in flight after it, of all threads; None if unknown."""
    block_entries: dict[int, tuple[int, int | None]] = field(default_factory=dict)
    """By the first instruction of each block: loads and bytes in flight before it."""
    completions: dict[CompletedLoad, None] = field(default_factory=dict)
    """Completions of its loads."""
    unused_loads: set[int] = field(default_factory=set)
    """Loads whose registers are never used."""
    unknown_loads: set[int] = field(default_factory=set)
    """Loads whose completion the format does not show."""
    has_phases: bool = False
    """Copies complete at barriers here, or are waited for here."""
    is_bounded: bool = False
    """A barrier phase ended because the barrier was reused, not at a wait."""


def walk_function(code: FunctionCode, regions: Sequence[Region], threads: int | None) -> InFlightWalk:
    """The walk through a function.

    Args:
        threads: threads of a block, to convert copies made by the whole block; None if unknown.
    """
    walk = InFlightWalk(code, find_memory_events(code), regions, threads)
    walk.run()
    return walk


class InFlightWalk:
    """A walk through a function that tracks the loads in flight and measures them by region."""

    def __init__(
        self, code: FunctionCode, events: list[tuple[MemoryEvent, ...]], regions: Sequence[Region], threads: int | None
    ) -> None:
        self.code, self.regions, self.events, self.threads = code, regions, events, threads
        self._blocks, self._flow = code.blocks, code.flow
        self._region_of = {block: number for number, region in enumerate(regions) for block in region.blocks}
        self.measures = [RegionMeasurement() for _ in regions]
        self._computes = sorted(code.find(COMPUTES))
        self._rank = code.rank
        self._predecessors: list[list[int]] = [[] for _ in self._blocks]
        for block in self._blocks:
            for successor in block.successors:
                self._predecessors[successor].append(block.index)
        self._last_reader: dict[int, int] = {}
        """Block → position in execution order of the last block that continues from its final state."""
        for number, predecessors in enumerate(self._predecessors):
            for p in self._forward_predecessors(number, predecessors):
                self._last_reader[p] = max(self._rank[number], self._last_reader.get(p, 0))
        self._final_states: dict[int, QueueState] = {}
        """Loads in flight at the end of each block, at its last visit."""
        self._clock = 0
        """Number of instructions executed."""
        self._iteration_starts: dict[int, list[int]] = {}
        """Start of each iteration of each loop, on that clock."""
        self._visit_budget = MAX_VISITS * len(self._blocks)
        self._copy_budget = LOADS_IN_FLIGHT.value
        """Remaining budget for copying and comparing states."""
        self.unsettled_loops: set[int] = set()
        self._regions_in_loop = group_by_key(
            (loop, number) for number, region in enumerate(regions) for loop in self._flow.enclosing(region.loop)
        )
        """Regions of each loop, including the loops in it."""
        self._nested_regions = [
            frozenset(self._regions_in_loop.get(region.loop, ()) if region.loop is not None else ())
            for region in regions
        ]
        """For each region that is a loop: its own region and those inside it."""
        actions = [event.action for block_events in events for event in block_events]
        self._copied_barriers = {
            a.array.start for a in actions if isinstance(a, IssuedOperation) and a.array is not None
        }
        """Arrays of barriers at which copies arrive."""
        self._foreign_by_loop = self._find_foreign_barriers()
        self.foreign_barriers = set[int]().union(*self._foreign_by_loop.values())
        """Arrays of barriers whose copies are waited for by code that runs concurrently with the loop issuing them."""

    def run(
        self, position: int = 0, stop: int | None = None, level: int | None = None, entered: QueueState | None = None
    ) -> None:
        """Walk through blocks of the execution order inside one loop."""
        stop = len(self._flow.order) if stop is None else stop
        while position < stop:
            block = self._flow.order[position]
            around = [loop for loop in self._flow.enclosing(self._flow.loop_of[block]) if loop != level]
            loop = next((loop for loop in around if self._flow.loops[loop].parent == level), None)
            state = self._state_at_entry(block) if entered is None else entered
            entered = None
            if loop is None:
                self._run_block(block, state)
                position += 1
            else:
                self._run_loop(loop, position, state)
                blocks = self._flow.loops[loop].blocks
                for inner in blocks & self._final_states.keys():
                    if loop in self.unsettled_loops:
                        self._final_states[inner] = QueueState()
                    elif loop in self._foreign_by_loop:
                        self._final_states[inner].drop_copies(self._foreign_by_loop[loop])
                position += len(blocks)

    def _state_at_entry(self, block: int) -> QueueState:
        """The loads in flight at the start of a block.

        A branch around some blocks is ignored: they are treated as executed. Of two branches, the one that leaves more
        loads in flight counts.
        """
        states, rank = self._final_states, self._rank
        forward = [p for p in self._forward_predecessors(block, self._predecessors[block]) if p in states]
        if not forward:
            return QueueState()
        predecessor = max(forward, key=lambda p: (len(states[p].loads_in_flight), rank[p]))
        final_state = states[predecessor]
        for other in forward:  # frees states that no block continues from
            is_latch = any(rank[to] <= rank[other] for to in self._blocks[other].successors)
            if other != predecessor and self._last_reader[other] == rank[block] and not is_latch:
                del states[other]
        return final_state if self._last_reader[predecessor] == rank[block] else self._copied_of(final_state)

    def _copied_of(self, state: QueueState) -> QueueState:
        """A copy of the state to continue from; empty if the budget is used up."""
        return state.copy() if self._has_room(state) else QueueState()

    def _has_room(self, state: QueueState) -> bool:
        self._copy_budget -= state.size
        return not self.is_crowded

    @property
    def is_crowded(self) -> bool:
        """True if too many loads were in flight at branches to track them."""
        return self._copy_budget < 0

    def _forward_predecessors(self, block: int, predecessors: Sequence[int]) -> list[int]:
        """The predecessors of a block whose loads may be in flight at its start."""
        rank = self._rank
        forward = [p for p in predecessors if p in rank and block in rank and rank[p] < rank[block]]
        last = max(forward, key=rank.__getitem__, default=block)
        return [p for p in forward if p == last or len(self._blocks[p].successors) == 1]

    def _run_loop(self, loop: int, position: int, state: QueueState) -> None:
        """Repeat a loop until the loads in flight at its end match an earlier start."""
        natural = self._flow.loops[loop]
        stop = position + len(natural.blocks)
        if not self._has_room(state):
            state = QueueState()
        visited_signatures = {state.signature()}
        for _ in range(MAX_TRIPS):
            for number in self._regions_in_loop.get(loop, ()):
                self.measures[number] = RegionMeasurement()
            self._visit_budget -= stop - position
            self._iteration_starts.setdefault(loop, []).append(self._clock)
            self.run(position, stop, loop, state)
            ends = [self._final_states[latch] for latch in natural.latches if latch in self._final_states]
            if not ends:
                return
            end = max(ends, key=lambda end: len(end.loads_in_flight))
            if not self._has_room(end):
                break
            reached = end.signature()
            if reached in visited_signatures:
                return
            state = self._copied_of(end)
            visited_signatures.add(reached)
            if self._visit_budget < 0:
                break
        self.unsettled_loops.update(self._flow.enclosing(loop))  # the final state of the outer ones is unknown too

    def _find_foreign_barriers(self) -> dict[int, set[int]]:
        """Arrays of barriers, by the loop that fills their buffers and never waits for them.

        Another partition waits for them concurrently. Which of its iterations matches which is unknown.
        """
        filled: dict[int, set[int]] = {}
        waited: dict[int, set[int]] = {}
        for block, events in enumerate(self.events):
            loop = self._flow.loop_of[block]
            for _, action in events:
                if isinstance(action, IssuedOperation) and action.array is not None and loop is not None:
                    filled.setdefault(loop, set()).add(action.array.start)
                elif isinstance(action, QueueWait) and action.array is not None:
                    for around in self._flow.enclosing(loop):
                        waited.setdefault(around, set()).add(action.array.start)
        return {loop: foreign for loop, arrays in filled.items() if (foreign := arrays - waited.get(loop, set()))}

    def _run_block(self, index: int, state: QueueState) -> None:
        block = self._blocks[index]
        region = self._region_of[index]
        measure = self.measures[region]
        at, flying = block.start, len(state.loads_in_flight)
        if block.stop > block.start:
            self._note_level(measure, state)
            measure.block_entries[at] = (flying, self._weight(state))
        began = self._clock - block.start
        for event in self.events[index]:
            if flying:
                measure.overlapped_computes += self._computes_between(at, event.instruction_index)
            at, action = event.instruction_index, event.action
            done: list[InFlightOperation] = []
            if isinstance(action, RegisterReads | ScoreboardWait):
                done = state.read_registers(action) if isinstance(action, RegisterReads) else state.clear(action)
            elif isinstance(action, IssuedOperation):
                self._note_issue(index, at, action, state.issue(at, action, began + at, region))
            elif isinstance(action, RegisterMoves):
                state.move(action)
            elif isinstance(action, GroupCommit):
                state.commit(action)
                measure.commits += action.queue is Queue.GROUP
            elif self._is_for_copies(action):
                done = self._wait(region, at, action, state)
            for flight in done:
                self._note_completion(flight, at, index, waited_until=began + at)
            if len(state.loads_in_flight) != flying:
                level = measure.levels.get(at, (flying,))[0]
                flying = len(state.loads_in_flight)
                measure.levels[at] = (level, flying)
                measure.bytes_after[at] = self._weight(state)
                self._note_level(measure, state)
        if flying:
            measure.overlapped_computes += self._computes_between(at, block.stop)
        measure.computes += self._computes_between(block.start, block.stop)
        self._clock += block.stop - block.start
        self._final_states[index] = state

    def _wait(self, region: int, at: int, queue_wait: QueueWait, state: QueueState) -> list[InFlightOperation]:
        """Execute a wait for loads or copies. Returns the loads that it completes."""
        measure, inside = self.measures[region], self._nested_regions[region]
        is_phase, array = queue_wait.wait.queue is Queue.PHASE, queue_wait.array
        measure.has_phases = measure.has_phases or is_phase
        in_flight_before, own_loads = state.pending(queue_wait)[0], state.count_from(inside)
        is_foreign = array is not None and array.start in self.foreign_barriers
        done = [] if is_foreign else state.wait(queue_wait)
        drains = own_loads > 0 and state.count_from(inside) == 0
        measure.waits[at] = ExecutedWait(queue_wait, in_flight_before, *state.pending(queue_wait), drains)
        return done

    def _computes_between(self, start: int, stop: int) -> int:
        return bisect_left(self._computes, stop) - bisect_left(self._computes, start)

    def _is_for_copies(self, queue_wait: QueueWait) -> bool:
        """False for a wait for a barrier at which no copy arrives."""
        array, copied = queue_wait.array, self._copied_barriers
        return queue_wait.wait.queue is not Queue.PHASE or (bool(copied) and (array is None or array.start in copied))

    def _note_issue(self, block: int, at: int, operation: IssuedOperation, ended: list[InFlightOperation]) -> None:
        measure, queue = self.measures[self._region_of[block]], operation.transfer.queue
        if queue is None:
            measure.unknown_loads.add(at)
        elif queue is Queue.USE and not operation.registers and operation.scoreboard is None:
            measure.unused_loads.add(at)
        elif queue is Queue.PHASE:
            measure.has_phases = True
            measure.is_bounded = measure.is_bounded or bool(ended)
        for flight in ended:
            self._note_completion(flight, at, block)

    def _note_level(self, measure: RegionMeasurement, state: QueueState) -> None:
        measure.loads = max(measure.loads, len(state.loads_in_flight))
        weight = self._weight(state)
        measure.bytes = None if weight is None or measure.bytes is None else max(measure.bytes, weight)

    def _weight(self, state: QueueState) -> int | None:
        """Bytes in flight, of all threads of the block; None if the size of a load is unknown."""
        is_unknown = state.unknown_sizes or (state.bytes_per_block and self.threads is None)
        return None if is_unknown else state.bytes_per_thread * (self.threads or 1) + state.bytes_per_block

    def _note_completion(
        self, flight: InFlightOperation, at: int, block: int, *, waited_until: int | None = None
    ) -> None:
        """Record the completion of a load in its region, and the distance unless it is outside of its loop."""
        flow = self._flow
        home = flow.block_of[flight.index]
        home_loop, loop = flow.loop_of[home], flow.loop_of[block]
        began = [] if loop is None else self._iteration_starts.get(loop, [])
        back_edges = len(began) - bisect_right(began, flight.issued)
        if not flow.encloses(loop, home_loop):
            back_edges = max(0, back_edges - 1)  # the first of them entered the loop
        is_inside = flow.encloses(home_loop, loop)
        completion = CompletedLoad(flight.index, at, back_edges, not is_inside)
        measure = self.measures[self._region_of[home]]
        measure.completions[completion] = None
        if is_inside and waited_until is not None:
            measure.distances.append(waited_until - flight.issued - 1)
