"""The memory operations in flight at one point of a program, by queue."""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Iterable, Set, Sized

from artifact_inspector.analysis.overlap.memory_events import Clears, Commit, Issue, Moves, Reads, WaitFor
from artifact_inspector.model import Queue

_GROUPED = (Queue.GROUP, Queue.MATRIX)
"""Queues whose members are closed into groups by commits, and waited for by group."""


class Flight:
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


class Scoreboard:
    """The operations in flight, and which of them each wait would leave."""

    def __init__(self) -> None:
        self.flying: set[Flight] = set()
        """The loads in flight."""
        self.of_thread = self.of_block = self.unknown = 0
        """Bytes in flight per thread and per block, and the number of loads of unknown width."""
        self._from: dict[int, int] = {}
        """Number of loads in flight, by region."""
        self._open: dict[Queue, list[Flight]] = {queue: [] for queue in _GROUPED}
        """Copies (or matrix operations) that no commit has closed into a group."""
        self._groups: dict[Queue, deque[tuple[Flight, ...]]] = {queue: deque() for queue in _GROUPED}
        self._phases: dict[int, deque[tuple[Flight, ...]]] = {}
        self._fresh: dict[int | None, int | None] = {}
        """Arrays of barriers with a newly opened phase → the bytes it expects. Key None: array unknown."""
        self._in_order: dict[Queue, deque[Flight | None]] = {}
        """None for a slot that is not occupied by a load."""
        self._inside: dict[Queue, int] = {}
        """Operations in the groups of a queue, or loads in an ordered queue."""
        self._holders: dict[str, tuple[Flight, ...]] = {}
        self._counted: dict[int, list[Flight]] = {}
        """Loads by the scoreboard that counts them."""
        self._names: dict[Flight, int] = {}
        """Number of registers that hold data of a load."""

    def copy(self) -> Scoreboard:
        """An independent copy of the state."""
        twin = Scoreboard()
        twin.flying = self.flying.copy()
        twin.of_thread, twin.of_block, twin.unknown = self.of_thread, self.of_block, self.unknown
        twin._from = self._from.copy()
        twin._open = {queue: flights.copy() for queue, flights in self._open.items()}
        twin._groups = {queue: groups.copy() for queue, groups in self._groups.items()}
        twin._phases = {array: phases.copy() for array, phases in self._phases.items()}
        twin._fresh = self._fresh.copy()
        twin._in_order = {queue: places.copy() for queue, places in self._in_order.items()}
        twin._inside = self._inside.copy()
        twin._holders = self._holders.copy()
        twin._counted = {counter: flights.copy() for counter, flights in self._counted.items()}
        twin._names = self._names.copy()
        return twin

    @property
    def size(self) -> int:
        """Cost measure for copying or comparing the state."""
        kept: list[Sized] = [*self._open.values(), *self._groups.values(), *self._in_order.values()]
        kept += [self.flying, self._holders, self._phases]
        return 1 + sum(map(len, kept))

    def signature(self) -> Hashable:
        """The instructions in flight. Equal signatures mean that execution continues in the same way."""

        def indices(flights: Iterable[Flight | None]) -> tuple[int, ...]:
            return tuple([-1 if flight is None else flight.index for flight in flights])

        is_over = self.flying.isdisjoint
        self._holders = {name: held for name, held in self._holders.items() if not is_over(held)}
        return (
            tuple(map(indices, self._open.values())),
            tuple(tuple(map(indices, groups)) for groups in self._groups.values()),
            tuple((array, tuple(map(indices, phases))) for array, phases in sorted(self._phases.items())),
            tuple((queue.name, indices(places)) for queue, places in self._in_order.items()),
            frozenset([(name, indices(flights)) for name, flights in self._holders.items()]),
            tuple(
                (counter, indices(flights)) for counter, flights in sorted(self._counted.items()) if flights
            ),
        )

    # -- effects of instructions: each method returns the loads that it completes
    # --------------------------

    def issue(self, index: int, what: Issue, clock: int, region: int) -> list[Flight]:
        """Put an operation into its queue. Reusing a register ends the load that it held."""
        transfer, queue = what.transfer, what.transfer.queue
        flight = Flight(index, clock, region, transfer.bytes, of_block=transfer.of_block)
        ended: list[Flight] = []
        if queue is Queue.USE and what.counter is not None:
            self._counted.setdefault(what.counter, []).append(flight)
        elif queue is Queue.USE:
            if not what.registers:
                return ended
            for name in what.registers:
                if what.joins:
                    self._holders[name] = (*self._holders.get(name, ()), flight)
                else:
                    ended += self._let_go(name)
                    self._holders[name] = (flight,)
            self._names[flight] = len(what.registers)
        elif queue in _GROUPED:
            self._open[queue].append(flight)
            if what.closes:
                self._close(queue)
        elif queue is Queue.PHASE:
            if what.array is None:
                return ended
            ended += self._arrive(flight, what)
        elif queue is not None:
            self._in_order.setdefault(queue, deque()).append(flight if what.is_load else None)
            self._inside[queue] = self._inside.get(queue, 0) + what.is_load
        if what.is_load and queue is not None:
            self.flying.add(flight)
            self._weigh(flight, 1)
        return ended

    def _arrive(self, flight: Flight, what: Issue) -> list[Flight]:
        """Add a copy to the newest phase of its barriers, or start the next phase."""
        assert what.array is not None
        start, slots = what.array
        phases = self._phases.setdefault(start, deque())
        opened = [key for key in (start, None) if key in self._fresh]
        expected = [self._fresh.pop(key) for key in opened]
        if phases and not opened:
            if flight.unknown and not phases[-1][0].unknown:
                flight.unknown = (
                    False  # the first copy of the phase carries the bytes that its barrier expects
                )
            phases[-1] += (flight,)
            return []
        if flight.unknown and expected and expected[0] is not None:
            flight.of_block, flight.unknown = expected[0], False
        phases.append((flight,))
        # A barrier starts no phase before the previous one is complete, no matter which code waits for
        # it.
        if slots is None or len(phases) <= slots:
            return []
        return self._complete(phases.popleft())

    def commit(self, what: Commit) -> None:
        """Close a group, or open the next phase of a barrier."""
        if what.queue in _GROUPED:
            self._close(what.queue)
        else:
            expected = None if what.expects is None else what.expects.bytes
            self._fresh[None if what.array is None else what.array.start] = expected

    def _close(self, queue: Queue) -> None:
        self._groups[queue].append(tuple(self._open[queue]))
        self._inside[queue] = self._inside.get(queue, 0) + len(self._open[queue])
        self._open[queue].clear()

    def wait(self, what: WaitFor) -> list[Flight]:
        """Complete the operations that a wait waits for."""
        queue, depth = what.wait.queue, what.wait.depth
        if queue is Queue.PHASE:
            phases = None if what.array is None else self._phases.get(what.array.start)
            return self._complete(phases.popleft()) if phases else []
        if depth is None:
            return []
        if queue in _GROUPED:
            groups = self._groups[queue]
            done = [flight for _ in range(len(groups) - depth) for flight in groups.popleft()]
            self._inside[queue] = self._inside.get(queue, 0) - len(done)
            if what.wait.closes:
                done += self._open[queue]
                self._open[queue].clear()
            return self._complete(done)
        places = self._in_order.get(queue, deque())
        passed = [places.popleft() for _ in range(len(places) - depth)]
        first = [flight for flight in passed if flight is not None]
        self._inside[queue] = self._inside.get(queue, 0) - len(first)
        return self._complete(first)

    def clear(self, what: Clears) -> list[Flight]:
        """Complete the loads that some scoreboards count."""
        return self._complete(
            flight for counter in what.counters for flight in self._counted.pop(counter, ())
        )

    def read(self, what: Reads) -> list[Flight]:
        """Complete the loads that write the registers read."""
        done: list[Flight] = []
        for name in what.names:
            done += self._complete(self._holders.pop(name, ()))
        return done

    def move(self, what: Moves) -> list[Flight]:
        """Copy values to further names. Loads that no register holds any more end."""
        holders = self._holders
        held: dict[str, tuple[Flight, ...]] = {}
        for target, sources in what.pairs:
            names = sources if what.always else (target, *sources)
            all_held = dict.fromkeys(flight for name in names for flight in holders.get(name, ()))
            held[target] = tuple(flight for flight in all_held if flight in self.flying)
        for flights in held.values():
            for flight in flights:
                self._names[flight] += 1
        ended: list[Flight] = []
        for target, flights in held.items():
            ended += self._let_go(target)
            if flights:
                holders[target] = flights
        return ended

    def forget(self, arrays: Iterable[int]) -> None:
        """Drop the copies of some barriers: other code waits for them."""
        for start in arrays:
            for phase in self._phases.pop(start, ()):
                self._complete(phase)

    def flying_from(self, regions: Set[int]) -> int:
        """Number of loads in flight from some regions."""
        if len(regions) < len(self._from):
            return sum(self._from.get(region, 0) for region in regions)
        return sum(count for region, count in self._from.items() if region in regions)

    # -- queue state for waits
    # ----------------------------------------------------------------------------

    def pending(self, what: WaitFor) -> tuple[int, int | None]:
        """Loads (matrix operations) in flight in a wait's queue, and its number of groups or phases."""
        queue = what.wait.queue
        if queue in _GROUPED:
            return len(self._open[queue]) + self._inside.get(queue, 0), len(self._groups[queue])
        if queue is Queue.PHASE:
            phases = () if what.array is None else self._phases.get(what.array.start, ())
            return sum(map(len, phases)), len(phases)
        return self._inside.get(queue, 0), None

    def _complete(self, flights: Iterable[Flight]) -> list[Flight]:
        done = [flight for flight in dict.fromkeys(flights) if flight in self.flying]
        self.flying.difference_update(done)
        for flight in done:
            self._names.pop(flight, None)
            self._weigh(flight, -1)
        return done

    def _weigh(self, flight: Flight, sign: int) -> None:
        self.of_thread += sign * flight.of_thread
        self.of_block += sign * flight.of_block
        self.unknown += sign * flight.unknown
        count = self._from.get(flight.region, 0) + sign
        if count:
            self._from[flight.region] = count
        else:  # keeps the copies of the state small
            self._from.pop(flight.region, None)

    def _let_go(self, name: str) -> list[Flight]:
        """Release the loads that a register holds."""
        ended: list[Flight] = []
        for flight in self._holders.pop(name, ()):
            if flight in self.flying:
                self._names[flight] -= 1
                if self._names[flight] <= 0:
                    ended += self._complete((flight,))
        return ended
