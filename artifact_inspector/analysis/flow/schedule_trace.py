"""A schedule that the program itself writes, executed with integers only: buffers, barriers and phases.

Loops run for two passes over the buffers and two more trips, rounded up to whole passes. A copy fills a buffer; a
compute that reads the buffer, or a register loaded from it, consumes the copy. Partitions run concurrently: those with
copies first, so that they run as far ahead as their barriers allow; asynchronous matrix operations complete only when
nothing else can proceed.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from artifact_inspector.analysis.flow.function_code import FunctionCode
from artifact_inspector.analysis.flow.ssa_values import PassedValue
from artifact_inspector.model import COMPUTES, LOADS, EventKind, Trait
from artifact_inspector.model.schedule import BufferView, ScheduleEvent, ScheduleRole, ScheduleStep, ScheduleTrace

DEFAULT = "default"
"""Name of the partition with the code that no other one runs; it goes on after the others end."""
_MAX_STEPS = 200_000
_OUTER_TRIPS = 3
"""Trips of a loop around others, if its bounds are unknown."""
_MAX_SLOTS = 32
_MAX_EVENTS = 2000
_MATRIX_STEPS = 4


class _Trip(NamedTuple):
    """An iteration of a loop."""

    loop: int
    instance: int
    """Entries of the loop so far."""
    number: int


class _Fill(NamedTuple):
    """One execution of a copy."""

    copy: int
    number: int
    """Earlier executions of the same copy."""
    thread: int
    trips: tuple[_Trip, ...]


_Data = frozenset[_Fill]
_Value = int | BufferView | _Data | None


@dataclass(slots=True)
class _Barrier:
    expected: int = 1
    arrived: int = 0
    completed: int = 0
    """Phases."""
    cause: int | None = None
    """The last event that a phase waited for."""

    def arrive(self, count: int) -> None:
        self.arrived += count
        if self.arrived >= self.expected:
            self.arrived -= self.expected
            self.completed += 1


def trace_schedule(code: FunctionCode) -> ScheduleTrace | None:
    """Execute the schedule of a function; None without loads, or without buffers of tensor-level IR."""
    if code.language.access_operands is None or LOADS.isdisjoint(code.of_kind):
        return None
    steps = [code.language.schedule_step(instruction, code.module) for instruction in code.instructions]
    if not any(step.role is ScheduleRole.ALLOCATION for step in steps):
        return None
    return _Execution(code, steps).run()


class _Thread:
    """A partition, or the whole kernel."""

    def __init__(self, number: int, blocks: range, environment: dict[int, _Value], trips: tuple[_Trip, ...]) -> None:
        self.number, self.blocks, self.environment = number, blocks, environment
        self.trips = list(trips)
        self.counters: dict[str, int | None] = {}
        """Loop variables by name."""
        self.counts: dict[int, tuple[int, int | None, int | None]] = {}
        """Loop → trips, first value and step."""
        self.pending: list[int] = []
        """Asynchronous matrix operations in flight, each by its number."""
        self.lane, self.width = DEFAULT, 0
        """The partition, and its threads."""
        self.clock = self.matrix_end = 0
        """Steps until its next event, and until its last matrix operation completes."""
        self.last_matrix: int | None = None
        """Its event."""
        self.is_blocked_by: tuple[BufferView, int] | None = None
        self.events: Iterator[None] = iter(())


class _Execution:
    def __init__(self, code: FunctionCode, steps: list[ScheduleStep]) -> None:
        self.code, self.steps, self.values = code, steps, code.values
        self.trace = ScheduleTrace()
        slots = [step.slots for step in steps if step.slots <= _MAX_SLOTS]
        buffers = max((1, *slots))
        # whole passes over the buffers: an enclosing loop may begin each of its trips at the first one
        self.trips = -(-(2 * buffers + 2) // buffers) * buffers
        self.memory: dict[BufferView, _Data] = {}
        self.barriers: defaultdict[BufferView, _Barrier] = defaultdict(_Barrier)
        self.copy_barriers: set[BufferView] = set()
        self.fills: defaultdict[int, int] = defaultdict(int)
        self.unclear: set[int] = set()
        """Allocations into which a copy goes to an unknown buffer."""
        self.leads: dict[_Fill, int] = {}
        """Lead of a copy when its buffer was read into registers: the buffer may be filled again before the compute."""
        self.instances: defaultdict[int, int] = defaultdict(int)
        self.issued = 0
        self.deferred: deque[tuple[list[BufferView], list[int], int | None]] = deque()
        """The barriers at which matrix operations arrive when they complete, and the event of the last one."""
        self.threads: list[_Thread] = []
        self.started = 0
        self.budget = _MAX_STEPS
        self.header_of = {loop.header: index for index, loop in enumerate(code.flow.loops)}
        self.outer = {loop.parent for loop in code.flow.loops}
        self.partitions = {partition.first: partition for partition in code.function.partitions}
        self.loop_of_stop = {
            value: loop
            for loop in reversed(range(len(code.flow.loops)))
            if (bounds := self._bounds(loop))
            and (value := self.values.reads[self._opening(loop)].get(bounds[1])) is not None
        }

    def run(self) -> ScheduleTrace:
        self._start(0, {}, ())
        while self.budget > 0:
            thread = next((t for t in self.threads if self._is_ready(t)), None)
            if thread is not None:
                if next(thread.events, self) is self:
                    self.threads.remove(thread)
            elif self.deferred:
                self._complete(*self.deferred.popleft())
            elif self.trace.consumers or not self._skip_wait():
                break
        blocking = [self.barriers[t.is_blocked_by[0]] for t in self.threads if t.is_blocked_by is not None]
        if any(0 < barrier.arrived < barrier.expected for barrier in blocking):
            self.trace.is_concurrency_known = False  # other CTAs, or each thread of a warp, arrive too
        if self.budget <= 0 and not self.trace.consumers:
            self.trace.unfollowed.update((loop, "it has too many steps") for loop in range(len(self.code.flow.loops)))
        return self.trace

    def _start(self, block: int, environment: dict[int, _Value], trips: tuple[_Trip, ...]) -> None:
        partition = self.partitions.get(block)
        blocks = range(len(self.code.blocks)) if partition is None else range(partition.first, partition.stop)
        self.started += 1
        thread = _Thread(self.started, blocks, dict(environment), trips)
        first = min(self.partitions, default=None)
        warps = self.code.language.launch_parameters(self.code.module).warps
        if partition is not None and first is not None:
            request = self.code.language.warp_request(self.code.instructions[self.code.blocks[first].start - 1])
            thread.lane, warps = partition.name, request.warps.get(partition.name.removeprefix("partition"))
            thread.clock = max((t.clock for t in self.threads), default=0)
        thread.width = 32 * (warps or 0)
        thread.events = self._execute(thread)
        self.threads.append(thread)
        self.threads.sort(key=lambda t: (not self._has_copies(t), t.number))

    def _has_copies(self, thread: _Thread) -> bool:
        others = [p for p in self.partitions.values() if thread.blocks.start < p.first and p.name != DEFAULT]
        return any(
            block in thread.blocks and not any(p.first <= block < p.stop for p in others)
            for block in map(self.code.flow.block_of.__getitem__, self.code.find(LOADS))
        )

    def _is_ready(self, thread: _Thread) -> bool:
        if thread.is_blocked_by is None:
            return True
        view, phase = thread.is_blocked_by
        return self.barriers[view].completed % 2 != phase

    def _skip_wait(self) -> bool:
        """Let a thread pass a barrier that the arrivals in the program do not complete; False if none waits."""
        self.trace.is_concurrency_known = False
        for thread in self.threads:
            if thread.is_blocked_by is not None:
                self.barriers[thread.is_blocked_by[0]].completed += 1
                return True
        return False

    def _complete(self, views: list[BufferView], operations: list[int], cause: int | None) -> None:
        for thread in self.threads:
            thread.pending = [operation for operation in thread.pending if operation not in operations]
        for view in views:
            self.barriers[view].cause = cause
            self.barriers[view].arrive(1)

    def _record(self, thread: _Thread, index: int, slots: Iterable[BufferView], cause: int | None = None) -> int | None:
        """Add an event of a partition; returns its number."""
        events, role = self.trace.events, self.steps[index].role
        if self.started < 2 or len(events) >= _MAX_EVENTS:
            return None
        start, end = thread.clock, thread.clock + 1
        if role is ScheduleRole.MATRIX:
            start = max(start, thread.matrix_end)
            thread.matrix_end = end = start + _MATRIX_STEPS
        elif role is ScheduleRole.PHASE_WAIT:
            end = start if cause is None else max(start, events[cause].end)
        is_in_flight = role is ScheduleRole.MATRIX and self.steps[index].is_asynchronous
        thread.clock = thread.clock + 1 if is_in_flight else end
        events.append(
            ScheduleEvent(thread.lane, role, self.code.instructions[index].line, start, end, tuple(slots), cause)
        )
        return len(events) - 1

    def _execute(self, thread: _Thread) -> Iterator[None]:
        """Execute a thread; pauses where another may run."""
        code, block = self.code, thread.blocks.start
        while True:
            instructions = range(code.blocks[block].start, code.blocks[block].stop)
            for index in instructions:
                self.budget -= 1
                if self.budget <= 0:
                    return
                if self.steps[index].role is ScheduleRole.PHASE_WAIT:
                    yield from self._wait(thread, index)
                if self._step(thread, index):
                    yield
            successors = code.blocks[block].successors
            last = instructions[-1] if instructions else None
            if not successors:
                return
            if successors[0] in self.partitions:
                for successor in successors[1:]:
                    self._start(successor, thread.environment, tuple(thread.trips))
                following = successors[0]
            else:
                following = self._next(thread, block, last, successors)
            if following not in thread.blocks:
                return
            block = self._enter(thread, following)

    def _next(self, thread: _Thread, block: int, last: int | None, successors: tuple[int, ...]) -> int:
        """The block that a branch goes to."""
        code = self.code
        loop = next((self.header_of[s] for s in successors if s in self.header_of and s <= block), None)
        if loop is not None:
            again = code.flow.loops[loop].header
            others = [successor for successor in successors if successor != again]
            counted = thread.counts.get(loop)
            trip = next((trip.number for trip in reversed(thread.trips) if trip.loop == loop), 0)
            continues = not others or (counted is not None and trip + 1 < counted[0])
            self._pass_values(thread, last, is_continued=continues)
            return again if continues else others[0]
        if len(successors) == 1:
            return successors[0]
        condition = self._value(thread, last, 0) if last is not None else None
        if isinstance(condition, int):
            return successors[0 if condition else 1]
        inside = thread.trips[-1] if thread.trips else None
        if inside is not None and successors[1] not in code.flow.loops[inside.loop].blocks:  # the condition of a loop
            limit = _OUTER_TRIPS if inside.loop in self.outer else self.trips
            return successors[0 if inside.number < limit else 1]
        return successors[0]

    def _enter(self, thread: _Thread, block: int) -> int:
        """Count the trips of loops that a jump enters, repeats or leaves; returns the block to execute."""
        loops = self.code.flow.loops
        while thread.trips and block not in loops[thread.trips[-1].loop].blocks:
            thread.trips.pop()
        loop = self.header_of.get(block)
        if loop is None:
            return block
        if thread.trips and thread.trips[-1].loop == loop:
            thread.trips[-1] = thread.trips[-1]._replace(number=thread.trips[-1].number + 1)
        else:
            self.instances[loop] += 1
            thread.trips.append(_Trip(loop, self.instances[loop], 0))
            self._count(thread, loop)
            if thread.counts.get(loop, (1,))[0] == 0:
                return self._enter(thread, self._skip_loop(thread, loop))
        opening = self.code.blocks[block].start - 1
        variable = self.code.language.axis_operation(self.code.instructions[opening]).variable if opening >= 0 else ""
        if variable and loop in thread.counts:
            _, first, step = thread.counts[loop]
            number = thread.trips[-1].number
            thread.counters[variable] = None if first is None or step is None else first + number * step
        return block

    def _count(self, thread: _Thread, loop: int) -> None:
        """Determine the trips of a counted loop."""
        opening, bounds = self._opening(loop), self._bounds(loop)
        if opening < 0 or not self.code.has_trait(opening, Trait.COUNTED_LOOP):
            return
        numbers = [self._named(thread, opening, name) for name in bounds or ()]
        first, stop, step = (number if isinstance(number, int) else None for number in (numbers or [None] * 3))
        count = _OUTER_TRIPS if loop in self.outer else self.trips
        if first is not None and stop is not None and step:
            count = max(0, min(-((first - stop) // step), 2 * self.trips))
        elif first is not None and step is not None and bounds is not None:
            value = self.values.reads[opening].get(bounds[1])
            if value is not None:  # the code after the loop counts the same trips
                thread.environment[value] = first + count * step
        thread.counts[loop] = (count, first, step)

    def _opening(self, loop: int) -> int:
        return self.code.blocks[self.code.flow.loops[loop].header].start - 1

    def _bounds(self, loop: int) -> tuple[str, str, str] | None:
        opening = self._opening(loop)
        is_counted = opening >= 0 and self.code.has_trait(opening, Trait.COUNTED_LOOP)
        return self.code.language.loop_header(self.code.instructions[opening]).bounds if is_counted else None

    def _assume_stop(self, thread: _Thread, loop: int) -> int | None:
        """The end that an unknown number gives a loop: other code counts the same trips."""
        first, _, step = (self._named(thread, self._opening(loop), name) for name in self._bounds(loop) or ("",) * 3)
        count = _OUTER_TRIPS if loop in self.outer else self.trips
        return first + count * step if isinstance(first, int) and isinstance(step, int) else None

    def _assume_operand(self, thread: _Thread, index: int, numbers: list[int | None], result: int | None) -> None:
        """Set the unknown operand of a sum or difference whose result is assumed: other code uses the operand too."""
        if result is None or len(numbers) != 2 or numbers.count(None) != 1:
            return
        known = next(number for number in numbers if number is not None)
        value = self.values.reads[index].get(self.code.operands(index).reads[numbers.index(None)])
        calculate = self.code.language.integer_value
        for guess in (result - known, result + known):
            operands = [guess if number is None else number for number in numbers]
            if value is not None and calculate(self.code.instructions[index], operands) == result:
                thread.environment[value] = guess

    def _skip_loop(self, thread: _Thread, loop: int) -> int:
        """Leave a loop without trips: its results are its first values. Returns the block after it."""
        natural = self.code.flow.loops[loop]
        latch = natural.latches[-1]
        end = self.code.blocks[latch].stop - 1
        passed = self.values.flows[end]
        arguments = [p for p in passed if p.is_back_edge]
        for argument, result in zip(arguments, [p for p in passed if not p.is_back_edge], strict=False):
            thread.environment[result.target] = thread.environment.get(argument.target)
        return next(s for s in self.code.blocks[latch].successors if s != natural.header)

    def _pass_values(self, thread: _Thread, index: int | None, *, is_continued: bool = True) -> None:
        flows: list[PassedValue] = [] if index is None else self.values.flows[index]
        new = {p.target: thread.environment.get(p.source) for p in flows if is_continued or not p.is_back_edge}
        thread.environment.update(new)

    def _named(self, thread: _Thread, index: int, name: str) -> _Value:
        value = self.values.reads[index].get(name)
        return thread.counters.get(name) if value is None else thread.environment.get(value)

    def _value(self, thread: _Thread, index: int, operand: int) -> _Value:
        reads = self.code.operands(index).reads
        return self._named(thread, index, reads[operand]) if operand < len(reads) else None

    def _wait(self, thread: _Thread, index: int) -> Iterator[None]:
        view, phase = self._value(thread, index, 0), self._value(thread, index, 1)
        if not self._is_active(thread, index) or isinstance(view, int):
            return  # a named barrier orders warps, and no copies
        if not isinstance(view, BufferView) or not isinstance(phase, int):
            self.trace.is_concurrency_known = False
            return
        thread.is_blocked_by = view.slot, phase & 1
        while not self._is_ready(thread):
            yield
        thread.is_blocked_by = None
        self._record(thread, index, [view], self.barriers[view.slot].cause)

    def _is_active(self, thread: _Thread, index: int) -> bool:
        predicate = self.steps[index].predicate
        return predicate is None or self._named(thread, index, predicate) != 0

    def _step(self, thread: _Thread, index: int) -> bool:
        """Execute one operation; True if another thread may run after it."""
        step, code = self.steps[index], self.code
        results = self.values.results[index]
        if step.role is ScheduleRole.ALLOCATION:
            thread.environment[results[0]] = BufferView(index)
        operands = [self._named(thread, index, name) for name in code.operands(index).reads]
        if step.role is not ScheduleRole.NONE:
            if self._is_active(thread, index):
                self._perform(thread, index, operands)
            return step.role not in (ScheduleRole.INDEX, ScheduleRole.VIEW, ScheduleRole.ALLOCATION)
        kind = code.instructions[index].kind
        if kind is EventKind.BRANCH:
            if not any(p.is_back_edge for p in self.values.flows[index]):
                self._pass_values(thread, index)
            return False
        data = _Data().union(*(operand for operand in operands if isinstance(operand, frozenset)))
        if kind is EventKind.GLOBAL_LOAD:
            data = _Data({self._fill(thread, index)})
        elif data and kind in COMPUTES:
            self._consume(thread, index, data)
            data = _Data()
        if results:
            numbers = [operand if isinstance(operand, int) else None for operand in operands]
            number = None if data else code.language.integer_value(code.instructions[index], numbers)
            if number is None and not data and results[0] in self.loop_of_stop:
                number = self._assume_stop(thread, self.loop_of_stop[results[0]])
                self._assume_operand(thread, index, numbers, number)
            value: _Value = data or number
            for result in results:
                thread.environment[result] = value
        return False

    def _perform(self, thread: _Thread, index: int, operands: list[_Value]) -> None:
        role = self.steps[index].role
        views = [operand for operand in operands if isinstance(operand, BufferView)]
        results = self.values.results[index]
        if role is ScheduleRole.COPY:
            self._copy(thread, index, views)
        elif role is ScheduleRole.MATRIX:
            self._multiply(thread, index, operands, views)
        elif role in (ScheduleRole.INDEX, ScheduleRole.VIEW) and views:
            path = tuple(operand if isinstance(operand, int) else None for operand in operands[1:])
            is_index = role is ScheduleRole.INDEX
            thread.environment[results[0]] = BufferView(views[0].root, views[0].path + path) if is_index else views[0]
        elif role is ScheduleRole.REMOTE and views:
            rank = operands[1] if len(operands) > 1 else None
            count = 1 if not isinstance(rank, int) else self.steps[index].number if rank == 0 else 0
            thread.environment[results[0]] = views[0]._replace(ctas=count)
        elif role in (ScheduleRole.STORE, ScheduleRole.ALLOCATION):
            data = _Data().union(*(operand for operand in operands if isinstance(operand, frozenset)))
            for view in views[-1:] if role is ScheduleRole.STORE else [BufferView(index)]:
                self.memory[view.slot] = data
                for fill in data:
                    self.trace.slots.setdefault(fill.copy, set()).add(view.slot)
        elif role is ScheduleRole.TRANSFER and len(views) > 1:
            self.memory[views[1].slot] = self._read(thread, views[0])
        elif role is ScheduleRole.READ and views and results:
            data = self._read(thread, views[0])
            thread.environment[results[0]] = data or None
            self.leads.update((fill, self._lead(fill)) for fill in data if fill not in self.leads)
            self._record(thread, index, views[:1])
        else:
            self._synchronise(thread, index, views)
        if role in (ScheduleRole.MATRIX, ScheduleRole.MATRIX_WAIT):
            thread.environment.update(dict.fromkeys(results))

    def _synchronise(self, thread: _Thread, index: int, views: list[BufferView]) -> None:
        """Arrive at a barrier, or pass a wait."""
        role, count = self.steps[index].role, self.steps[index].number
        slots = [view.slot for view in views]
        if role in (ScheduleRole.ARRIVAL, ScheduleRole.EXPECTATION, ScheduleRole.COMMIT) and not slots:
            self.trace.is_concurrency_known = False  # of another CTA
        if role is ScheduleRole.INITIALISATION and slots:
            self.barriers[slots[0]] = _Barrier(count)
        elif role in (ScheduleRole.ARRIVAL, ScheduleRole.EXPECTATION) and slots:
            if role is ScheduleRole.ARRIVAL:
                self.barriers[slots[0]].cause = self._record(thread, index, views)
            if self.steps[index].is_per_thread:
                count *= thread.width
                self.trace.is_concurrency_known &= bool(thread.width)
            count *= views[0].ctas
            self.barriers[slots[0]].arrive(count)
        elif role is ScheduleRole.COMMIT and slots:
            self.deferred.append((slots[:1], list(thread.pending), thread.last_matrix))
        elif role is ScheduleRole.MATRIX_WAIT:
            thread.pending = thread.pending[max(0, len(thread.pending) - count) :]
        is_of_copies = role is ScheduleRole.PHASE_WAIT and not self.copy_barriers.isdisjoint(slots[:1])
        if (is_of_copies or role is ScheduleRole.COPY_WAIT) and thread.trips:
            loop, in_flight = thread.trips[-1].loop, self.trace.matrix_in_flight
            in_flight[loop] = max(in_flight.get(loop, 0), len(thread.pending))

    def _copy(self, thread: _Thread, index: int, views: list[BufferView]) -> None:
        barrier = self.steps[index].barrier
        arrives = None if barrier is None else self._named(thread, index, barrier)
        if isinstance(arrives, BufferView):
            self.copy_barriers.add(arrives.slot)
        targets = [view for view in views if view != arrives]
        if not targets or None in targets[0].path:
            self.unclear.update(view.root for view in targets)
            self._lose(thread, "the buffer that a copy fills is not known")
            return
        self.trace.slots.setdefault(index, set()).add(targets[0].slot)
        self.memory[targets[0].slot] = _Data({self._fill(thread, index)})
        event = self._record(thread, index, targets[:1])
        if isinstance(arrives, BufferView):
            self.barriers[arrives.slot].cause = event
            if self.steps[index].is_per_thread:
                self.barriers[arrives.slot].arrive(thread.width // 32)

    def _fill(self, thread: _Thread, index: int) -> _Fill:
        self.fills[index] += 1
        return _Fill(index, self.fills[index] - 1, thread.number, tuple(thread.trips))

    def _multiply(self, thread: _Thread, index: int, operands: list[_Value], views: list[BufferView]) -> None:
        barriers = [view.slot for view in views if view.slot in self.barriers]
        data = _Data().union(*(operand for operand in operands if isinstance(operand, frozenset)))
        data = data.union(*(self._read(thread, view) for view in views if view.slot not in self.barriers))
        self._consume(thread, index, data)
        if self.steps[index].is_asynchronous:
            self.issued += 1
            thread.pending.append(self.issued)
        thread.last_matrix = self._record(thread, index, (view for view in views if view.slot not in barriers))
        if barriers:
            self.deferred.append((barriers, list(thread.pending), thread.last_matrix))

    def _read(self, thread: _Thread, view: BufferView) -> _Data:
        """The copies whose data is in a buffer."""
        if None in view.path or view.root in self.unclear:
            self._lose(thread, "the buffer that an operation reads is not known")
        return self.memory.get(view.slot, _Data())

    def _lose(self, thread: _Thread, reason: str) -> None:
        self.trace.unfollowed.update((trip.loop, reason) for trip in thread.trips)

    def _lead(self, fill: _Fill) -> int:
        """Later executions of a copy so far."""
        return self.fills[fill.copy] - 1 - fill.number

    def _consume(self, thread: _Thread, index: int, data: _Data) -> None:
        trace, trips = self.trace, {(trip.loop, trip.instance): trip.number for trip in thread.trips}
        for fill in data:
            trace.computes.setdefault(fill.copy, set()).add(index)
            trace.consumers.setdefault(fill.copy, set()).add(thread.trips[-1].loop if thread.trips else -1)
            if fill.thread != thread.number:
                lead = self.leads.get(fill, self._lead(fill))
                trace.partition_distances[fill.copy] = max(trace.partition_distances.get(fill.copy, 0), lead)
            elif fill.trips:
                inner = fill.trips[-1]
                number = trips.get((inner.loop, inner.instance))
                if number is not None:
                    trace.distances.setdefault(fill.copy, set()).add(number - inner.number)
