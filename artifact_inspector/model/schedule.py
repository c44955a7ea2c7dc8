"""What operations of tensor-level IR do in a schedule that the program itself writes: buffers, barriers and phases."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum, auto
from typing import NamedTuple


class ScheduleRole(Enum):
    """What an operation does to buffers, barriers and asynchronous work."""

    NONE = auto()
    ALLOCATION = auto()
    INDEX = auto()
    """Selects one of an allocation's buffers or barriers."""
    VIEW = auto()
    """Another view of the same buffer."""
    REMOTE = auto()
    """A view of the same barrier in another CTA of the cluster."""
    COPY = auto()
    """From global memory into a buffer."""
    STORE = auto()
    """From registers into a buffer."""
    TRANSFER = auto()
    """From one buffer to another."""
    READ = auto()
    """From a buffer into registers."""
    INITIALISATION = auto()
    ARRIVAL = auto()
    EXPECTATION = auto()
    """An arrival whose phase completes with the bytes of copies."""
    PHASE_WAIT = auto()
    COPY_WAIT = auto()
    """A wait for groups of copies."""
    MATRIX = auto()
    MATRIX_WAIT = auto()
    COMMIT = auto()
    """A barrier arrival when the matrix operations issued so far complete."""

    __hash__ = object.__hash__


class ScheduleStep(NamedTuple):
    """One operation of a schedule."""

    role: ScheduleRole
    number: int = 1
    """Arrivals that a barrier expects or gets; matrix operations that a wait leaves in flight; CTAs of a cluster."""
    is_per_thread: bool = False
    """True for an arrival of each thread of the partition, and for a copy that arrives once for each warp."""
    is_asynchronous: bool = False
    """True for a matrix operation that a later wait completes."""
    predicate: str | None = None
    """The value without which the operation does nothing."""
    barrier: str | None = None
    """The barrier that a copy arrives at."""
    slots: int = 0
    """Leading extent of an allocation of buffers or barriers; 0 for a single one."""


class BufferView(NamedTuple):
    """A buffer or barrier: an allocation, and the indices into it."""

    root: int
    path: tuple[int | None, ...] = ()
    ctas: int = 1
    """CTAs of a cluster whose arrivals through this view reach the barrier of the first one."""

    @property
    def slot(self) -> BufferView:
        """The same buffer; index 0 of a single one is the buffer itself."""
        end = len(self.path)
        while end and self.path[end - 1] == 0:
            end -= 1
        return BufferView(self.root, self.path[:end])


class ScheduleEvent(NamedTuple):
    """An operation of a partition. Steps have no clock: a copy takes one, a matrix operation four."""

    lane: str
    """The partition."""
    role: ScheduleRole
    """`COPY`, `READ`, `MATRIX`, `ARRIVAL`, or `PHASE_WAIT` until the barrier completes."""
    line: int
    """Of the text."""
    start: int
    end: int
    slots: tuple[BufferView, ...]
    """The buffers or barriers that it accesses."""
    cause: int | None = None
    """Of a wait: the number of the event that completed the barrier; None if it was complete from the start."""


@dataclass(slots=True)
class ScheduleTrace:
    """The events of an executed schedule. Copies and loops are named by instruction and loop index."""

    distances: dict[int, set[int]] = field(default_factory=dict)
    """Copy → trips of its innermost loop between it and its computes in the same partition."""
    partition_distances: dict[int, int] = field(default_factory=dict)
    """Copy that other partitions consume → most later copies issued when its data was used."""
    consumers: dict[int, set[int]] = field(default_factory=dict)
    """Copy → innermost loops of the computes that consume it; -1 for none."""
    computes: dict[int, set[int]] = field(default_factory=dict)
    """Copy → the computes that consume it."""
    slots: dict[int, set[BufferView]] = field(default_factory=dict)
    """Copy, or load whose data is stored to a buffer → the buffers."""
    matrix_in_flight: dict[int, int] = field(default_factory=dict)
    """Loop → most matrix operations in flight at one of its waits for copies."""
    events: list[ScheduleEvent] = field(default_factory=list)
    """The first events of the partitions, in the order of execution."""
    unfollowed: dict[int, str] = field(default_factory=dict)
    """Loop that could not be followed → the reason."""
    is_concurrency_known: bool = True
    """False if a barrier does not complete by the arrivals that the program shows."""
