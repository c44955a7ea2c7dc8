"""The memory operations in flight at one point of a program, by queue."""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Iterable, Set, Sized
from itertools import chain

from artifact_inspector.analysis.overlap.memory_events import (
    GroupCommit,
    IssuedOperation,
    QueueWait,
    RegisterMoves,
    RegisterReads,
    ScoreboardWait,
)
from artifact_inspector.model import Queue

_GROUPED = (Queue.GROUP, Queue.MATRIX)
"""Queues whose members are closed into groups by commits, and waited for by group."""


class InFlightOperation:
    """One issue of a memory operation. Each repetition of a load is a separate flight."""

    __slots__ = ("index", "issued", "of_block", "of_thread", "region", "unknown")

    def __init__(self, index: int, issued: int, region: int, moved: int | None, *, of_block: bool) -> None:
        self.index = index
        """The instruction."""
        self.issued = issued
        """Number of instructions executed before it."""
        self.region = region
        """Index of the region that contains it."""
        self.of_block = moved if of_block and moved is not None else 0
        self.of_thread = moved if not of_block and moved is not None else 0
        self.unknown = moved is None
        """True if its size is unknown."""


class QueueState:
    """The operations in flight, and which of them each wait would leave.

    The effects of instructions return the loads that they complete.
    """

    def __init__(self) -> None:
        self.loads_in_flight: set[InFlightOperation] = set()
        """The loads in flight."""
        self.bytes_per_thread = self.bytes_per_block = self.unknown_sizes = 0
        """Bytes in flight per thread and per block, and the number of loads of unknown width."""
        self._loads_by_region: dict[int, int] = {}
        """Number of loads in flight, by region."""
        self._open: dict[Queue, list[InFlightOperation]] = {queue: [] for queue in _GROUPED}
        """Copies (or matrix operations) that no commit has closed into a group."""
        self._groups: dict[Queue, deque[tuple[InFlightOperation, ...]]] = {queue: deque() for queue in _GROUPED}
        self._phases: dict[int, deque[tuple[InFlightOperation, ...]]] = {}
        self._opened_phases: dict[int | None, int | None] = {}
        """Arrays of barriers with a newly opened phase → the bytes it expects. Key None: array unknown."""
        self._in_order: dict[Queue, deque[InFlightOperation | None]] = {}
        """None for a slot that is not occupied by a load."""
        self._operation_counts: dict[Queue, int] = {}
        """Operations in the groups of a queue, or loads in an ordered queue."""
        self._loads_by_register: dict[str, tuple[InFlightOperation, ...]] = {}
        self._counted: dict[int, list[InFlightOperation]] = {}
        """Loads by the scoreboard that counts them."""
        self._register_counts: dict[InFlightOperation, int] = {}
        """Number of registers that hold data of a load."""

    def copy(self) -> QueueState:
        """An independent copy of the state."""
        duplicate = QueueState()
        duplicate.loads_in_flight = self.loads_in_flight.copy()
        duplicate.bytes_per_thread, duplicate.bytes_per_block = self.bytes_per_thread, self.bytes_per_block
        duplicate.unknown_sizes = self.unknown_sizes
        duplicate._loads_by_region = self._loads_by_region.copy()
        duplicate._open = {queue: flights.copy() for queue, flights in self._open.items()}
        duplicate._groups = {queue: groups.copy() for queue, groups in self._groups.items()}
        duplicate._phases = {array: phases.copy() for array, phases in self._phases.items()}
        duplicate._opened_phases = self._opened_phases.copy()
        duplicate._in_order = {queue: slots.copy() for queue, slots in self._in_order.items()}
        duplicate._operation_counts = self._operation_counts.copy()
        duplicate._loads_by_register = self._loads_by_register.copy()
        duplicate._counted = {counter: flights.copy() for counter, flights in self._counted.items()}
        duplicate._register_counts = self._register_counts.copy()
        return duplicate

    @property
    def size(self) -> int:
        """Cost measure for copying or comparing the state."""
        containers: list[Sized] = [*self._open.values(), *self._groups.values(), *self._in_order.values()]
        containers += [self.loads_in_flight, self._loads_by_register, self._phases]
        return 1 + sum(map(len, containers))

    def signature(self) -> Hashable:
        """The instructions in flight. Equal signatures mean that execution continues in the same way."""

        def indices(flights: Iterable[InFlightOperation | None]) -> tuple[int, ...]:
            return tuple([-1 if flight is None else flight.index for flight in flights])

        is_over = self.loads_in_flight.isdisjoint
        self._loads_by_register = {name: held for name, held in self._loads_by_register.items() if not is_over(held)}
        return (
            tuple(map(indices, self._open.values())),
            tuple(tuple(map(indices, groups)) for groups in self._groups.values()),
            tuple((array, tuple(map(indices, phases))) for array, phases in sorted(self._phases.items())),
            tuple((queue.name, indices(slots)) for queue, slots in self._in_order.items()),
            frozenset([(name, indices(flights)) for name, flights in self._loads_by_register.items()]),
            tuple((counter, indices(flights)) for counter, flights in sorted(self._counted.items()) if flights),
        )

    # -- effects of instructions: each method returns the loads that it completes ------------
    def issue(self, index: int, operation: IssuedOperation, clock: int, region: int) -> list[InFlightOperation]:
        """Put an operation into its queue. Reusing a register ends the load that it held."""
        transfer, queue = operation.transfer, operation.transfer.queue
        flight = InFlightOperation(index, clock, region, transfer.bytes, of_block=transfer.is_per_block)
        ended: list[InFlightOperation] = []
        if queue is Queue.USE and operation.scoreboard is not None:
            self._counted.setdefault(operation.scoreboard, []).append(flight)
        elif queue is Queue.USE:
            if not operation.registers:
                return ended
            for name in operation.registers:
                if operation.joins_previous:
                    self._loads_by_register[name] = (*self._loads_by_register.get(name, ()), flight)
                else:
                    ended += self._release(name)
                    self._loads_by_register[name] = (flight,)
            self._register_counts[flight] = len(operation.registers)
        elif queue in _GROUPED:
            self._open[queue].append(flight)
            if operation.closes_group:
                self._close(queue)
        elif queue is Queue.PHASE:
            if operation.array is None:
                return ended
            ended += self._arrive(flight, operation)
        elif queue is not None:
            self._in_order.setdefault(queue, deque()).append(flight if operation.is_load else None)
            self._operation_counts[queue] = self._operation_counts.get(queue, 0) + operation.is_load
        if operation.is_load and queue is not None:
            self.loads_in_flight.add(flight)
            self._count_bytes(flight, 1)
        return ended

    def _arrive(self, flight: InFlightOperation, operation: IssuedOperation) -> list[InFlightOperation]:
        """Add a copy to the newest phase of its barriers, or start the next phase."""
        assert operation.array is not None
        start, slots = operation.array
        phases = self._phases.setdefault(start, deque())
        opened = [key for key in (start, None) if key in self._opened_phases]
        expected = [self._opened_phases.pop(key) for key in opened]
        if phases and not opened:
            if flight.unknown and not phases[-1][0].unknown:
                flight.unknown = False  # the first copy of the phase carries the bytes that its barrier expects
            phases[-1] += (flight,)
            return []
        if flight.unknown and expected and expected[0] is not None:
            flight.of_block, flight.unknown = expected[0], False
        phases.append((flight,))
        # A barrier starts no phase before the previous one is complete, no matter which code waits for it.
        return [] if slots is None or len(phases) <= slots else self._complete(phases.popleft())

    def commit(self, group_commit: GroupCommit) -> None:
        """Close a group, or open the next phase of a barrier."""
        if group_commit.queue in _GROUPED:
            self._close(group_commit.queue)
        else:
            expected = None if group_commit.expected_transfer is None else group_commit.expected_transfer.bytes
            self._opened_phases[None if group_commit.array is None else group_commit.array.start] = expected

    def _close(self, queue: Queue) -> None:
        self._groups[queue].append(tuple(self._open[queue]))
        self._operation_counts[queue] = self._operation_counts.get(queue, 0) + len(self._open[queue])
        self._open[queue].clear()

    def wait(self, queue_wait: QueueWait) -> list[InFlightOperation]:
        """Complete the operations that a wait waits for."""
        queue, depth = queue_wait.wait.queue, queue_wait.wait.depth
        if queue is Queue.PHASE:
            phases = None if queue_wait.array is None else self._phases.get(queue_wait.array.start)
            return self._complete(phases.popleft()) if phases else []
        if depth is None:
            return []
        if queue in _GROUPED:
            groups = self._groups[queue]
            done = [flight for _ in range(len(groups) - depth) for flight in groups.popleft()]
            self._operation_counts[queue] = self._operation_counts.get(queue, 0) - len(done)
            if queue_wait.wait.includes_uncommitted:
                done += self._open[queue]
                self._open[queue].clear()
            return self._complete(done)
        slots = self._in_order.get(queue, deque())
        passed = [slots.popleft() for _ in range(len(slots) - depth)]
        first = [flight for flight in passed if flight is not None]
        self._operation_counts[queue] = self._operation_counts.get(queue, 0) - len(first)
        return self._complete(first)

    def clear(self, scoreboard_wait: ScoreboardWait) -> list[InFlightOperation]:
        """Complete the loads that some scoreboards count."""
        counted = (self._counted.pop(counter, ()) for counter in scoreboard_wait.scoreboards)
        return self._complete(flight for flights in counted for flight in flights)

    def read_registers(self, register_reads: RegisterReads) -> list[InFlightOperation]:
        """Complete the loads that write the registers read."""
        flights = [self._complete(self._loads_by_register.pop(name, ())) for name in register_reads.names]
        return list(chain.from_iterable(flights))

    def move(self, register_moves: RegisterMoves) -> list[InFlightOperation]:
        """Copy values to further names. Loads that no register holds any more end."""
        holders = self._loads_by_register
        moved_operations: dict[str, tuple[InFlightOperation, ...]] = {}
        for target, sources in register_moves.pairs:
            names = sources if register_moves.is_unconditional else (target, *sources)
            flights_of_names = dict.fromkeys(flight for name in names for flight in holders.get(name, ()))
            moved_operations[target] = tuple(flight for flight in flights_of_names if flight in self.loads_in_flight)
        for flights in moved_operations.values():
            for flight in flights:
                self._register_counts[flight] += 1
        ended: list[InFlightOperation] = []
        for target, flights in moved_operations.items():
            ended += self._release(target)
            if flights:
                holders[target] = flights
        return ended

    def drop_copies(self, arrays: Iterable[int]) -> None:
        """Drop the copies of some barriers: other code waits for them."""
        for start in arrays:
            for phase in self._phases.pop(start, ()):
                self._complete(phase)

    def count_from(self, regions: Set[int]) -> int:
        """Number of loads in flight from some regions."""
        if len(regions) < len(self._loads_by_region):
            return sum(self._loads_by_region.get(region, 0) for region in regions)
        return sum(count for region, count in self._loads_by_region.items() if region in regions)

    def pending(self, queue_wait: QueueWait) -> tuple[int, int | None]:
        """Loads (matrix operations) in flight in a wait's queue, and its number of groups or phases."""
        queue = queue_wait.wait.queue
        if queue in _GROUPED:
            return len(self._open[queue]) + self._operation_counts.get(queue, 0), len(self._groups[queue])
        if queue is Queue.PHASE:
            phases = () if queue_wait.array is None else self._phases.get(queue_wait.array.start, ())
            return sum(map(len, phases)), len(phases)
        return self._operation_counts.get(queue, 0), None

    def _complete(self, flights: Iterable[InFlightOperation]) -> list[InFlightOperation]:
        done = [flight for flight in dict.fromkeys(flights) if flight in self.loads_in_flight]
        self.loads_in_flight.difference_update(done)
        for flight in done:
            self._register_counts.pop(flight, None)
            self._count_bytes(flight, -1)
        return done

    def _count_bytes(self, flight: InFlightOperation, sign: int) -> None:
        self.bytes_per_thread += sign * flight.of_thread
        self.bytes_per_block += sign * flight.of_block
        self.unknown_sizes += sign * flight.unknown
        count = self._loads_by_region.get(flight.region, 0) + sign
        if count:
            self._loads_by_region[flight.region] = count
        else:  # keeps the copies of the state small
            self._loads_by_region.pop(flight.region, None)

    def _release(self, name: str) -> list[InFlightOperation]:
        ended: list[InFlightOperation] = []
        for flight in self._loads_by_register.pop(name, ()):
            if flight in self.loads_in_flight:
                self._register_counts[flight] -= 1
                if self._register_counts[flight] <= 0:
                    ended += self._complete((flight,))
        return ended
