"""Concurrent parts of a kernel: warp-specialised partitions, and the slots of a ping-pong loop."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from artifact_inspector.analysis.flow.function_code import FunctionCode
from artifact_inspector.analysis.flow.schedule_trace import DEFAULT, trace_schedule
from artifact_inspector.analysis.order.reference_regions import loop_names
from artifact_inspector.analysis.order.regions import Region
from artifact_inspector.model import LOADS, EventKind, Function, Instruction, Trait
from artifact_inspector.model.language import WarpRequest
from artifact_inspector.model.region import RegionKind
from artifact_inspector.model.schedule import ScheduleEvent, ScheduleRole

_MEMORY = {EventKind.GLOBAL_LOAD, EventKind.ASYNC_COPY, EventKind.GLOBAL_STORE, EventKind.ATOMIC}
_MEMORY |= {EventKind.SHARED_LOAD, EventKind.SHARED_STORE}
_HINTS = frozenset({EventKind.SCHEDULE_HINT})
_WORK = LOADS | {EventKind.MATRIX}
_TRAITS = {EventKind.BARRIER: Trait.AT_BARRIER, EventKind.WAIT: Trait.AT_BARRIER}
_COMPLETIONS = {ScheduleRole.COPY: "copies", ScheduleRole.MATRIX: "MMA", ScheduleRole.ARRIVAL: "arrivals"}


@dataclass(frozen=True, slots=True)
class PartitionFacts:
    """Contents of one partition of a warp-specialised kernel. Counts are static and include inner loops."""

    name: str
    """`default`, `partition0` …"""
    warps: int | None
    registers_requested: int | None
    """Per thread; None for the default partition, which gets the remaining registers."""
    registers: int | None
    """Per thread, as set in the PTX; None if not found."""
    loads: int
    """Loads and asynchronous copies."""
    matrix: int
    """Matrix operations."""
    barriers: int
    """Barriers, and waits for and arrivals at a barrier in shared memory."""
    events: dict[EventKind, int]
    """Instructions of all kinds."""
    loops: tuple[str, ...] = ()
    """Its loops with copies or matrix operations."""


@dataclass(frozen=True, slots=True)
class BarrierFacts:
    """Barriers in shared memory by which partitions wait for each other, from the executed schedule."""

    name: str
    """Of the allocation."""
    slots: int
    """Barriers of the allocation that a partition waits for."""
    completed_by: tuple[str, ...]
    """`partition0 copies`, `partition1 MMA`, `default arrivals`."""
    waits: tuple[str, ...]
    """The partitions that wait for them."""


@dataclass(frozen=True, slots=True)
class PartitionSchedule:
    """How partitions hand data to each other: the first trips of their loops, executed with integers only."""

    events: tuple[ScheduleEvent, ...]
    names: Mapping[int, str]
    """Allocation → its name."""
    barriers: tuple[BarrierFacts, ...]


@dataclass(frozen=True, slots=True)
class PingPongSlot:
    """The operations between two schedule hints (or barriers) of a loop."""

    first: int
    """Line of its first memory or matrix operation."""
    last: int
    kind: str
    """`memory`, `matrix` or `mixed`."""
    memory: int
    """Memory operations."""
    matrix: int
    """Matrix operations."""
    priority: int | None
    """Last value set by `s_setprio`; None before the first."""

    @property
    def lines(self) -> tuple[int, int]:
        """First and last line."""
        return self.first, self.last


def find_partitions(
    code: FunctionCode, last: Function | None = None, regions: Iterable[Region] = ()
) -> tuple[PartitionFacts, ...]:
    """The partitions of a function in text order; empty if there are none.

    Args:
        last: the same kernel in PTX, whose `setmaxnreg` sets the registers of the partitions.
        regions: of the function; other loops have the name of their line.
    """
    function = code.function
    if not function.partitions:
        return ()
    instructions = () if last is None else last.instructions
    limits = {limit for instruction in instructions for limit in code.language.warp_request(instruction).registers}
    facts: list[PartitionFacts] = []
    request, launch_warps = WarpRequest(), code.language.launch_parameters(code.module).warps
    region_ids = {region.loop: region.id for region in regions if region.kind is RegionKind.LOOP}
    names = {loop: region_ids.get(loop, name) for loop, name in enumerate(loop_names(code))}
    for partition in function.partitions:
        start = function.blocks[partition.first].start
        if partition.name == DEFAULT:
            request = code.language.warp_request(function.instructions[start - 1])
        inside = range(start, function.blocks[partition.stop - 1].stop)
        number = partition.name.removeprefix("partition")
        is_requested = number.isdecimal() and int(number) < len(request.registers)
        requested_registers = request.registers[int(number)] if is_requested else None
        blocks = frozenset(range(partition.first, partition.stop))
        loops = {loop for index in code.find(_WORK, blocks) if (loop := code.flow.loop_at(index)) is not None}
        kinds = Counter(function.instructions[index].kind for index in inside)
        facts.append(
            PartitionFacts(
                name=partition.name,
                warps=launch_warps if partition.name == DEFAULT else request.warps.get(number),
                registers_requested=requested_registers,
                registers=_granted_registers(requested_registers, limits),
                loads=sum(kinds[kind] for kind in LOADS),
                matrix=kinds[EventKind.MATRIX],
                barriers=sum(
                    code.has_trait(i, _TRAITS.get(function.instructions[i].kind, Trait.ARRIVES)) for i in inside
                ),
                events=dict(kinds),
                loops=tuple(names[loop] for loop in sorted(loops)),
            )
        )
    return tuple(facts)


def find_partition_schedule(code: FunctionCode) -> PartitionSchedule | None:
    """The schedule of a function's partitions; None if it has none, or no barriers between them."""
    trace = code.compute_once(trace_schedule) if code.function.partitions else None
    if trace is None or not any(event.cause is not None for event in trace.events):
        return None

    roots = {slot.root for event in trace.events for slot in event.slots}
    names = {root: code.language.source_name(code.instructions[root]) for root in sorted(roots)}
    waits = [event for event in trace.events if event.role is ScheduleRole.PHASE_WAIT]
    barriers: list[BarrierFacts] = []
    for root in sorted({event.slots[0].root for event in waits}):
        of_root = [event for event in waits if event.slots[0].root == root]
        causes = [trace.events[event.cause] for event in of_root if event.cause is not None]
        completions = tuple(sorted({f"{cause.lane} {_COMPLETIONS[cause.role]}" for cause in causes}))
        slots, lanes = {event.slots[0].slot for event in of_root}, {event.lane for event in of_root}
        barriers.append(BarrierFacts(names[root], len(slots), completions, tuple(sorted(lanes))))
    return PartitionSchedule(tuple(trace.events), names, tuple(barriers))


def _granted_registers(requested: int | None, limits: set[int]) -> int | None:
    """The register count that the PTX sets for a request: rounded to a multiple of 8 (PTX ISA, `setmaxnreg`)."""
    rounded = () if requested is None else (requested // 8 * 8, -(-requested // 8) * 8)
    return next((count for count in rounded if count in limits), None)


def find_slots(code: FunctionCode, region: Region) -> tuple[PingPongSlot, ...]:
    """The operations of a loop's body between hints, in execution order; empty if it has no hints."""
    if region.loop is None or not any(_is_hint(code, index) for index in code.find(_HINTS, region.blocks)):
        return ()
    slots: list[PingPongSlot] = []
    open_: list[Instruction] = []
    priority: int | None = None
    for index in code.indices(region.blocks):
        instruction = code.instructions[index]
        if instruction.kind is EventKind.BARRIER or _is_hint(code, index):
            slots += _slot(open_, priority)
            open_ = []
            new_priority = code.language.warp_request(instruction).priority
            priority = priority if new_priority is None else new_priority
        elif instruction.kind in _MEMORY or instruction.kind is EventKind.MATRIX:
            open_.append(instruction)
    return (*slots, *_slot(open_, priority))


def _is_hint(code: FunctionCode, index: int) -> bool:
    is_hint = code.instructions[index].kind is EventKind.SCHEDULE_HINT
    return is_hint and not code.has_trait(index, Trait.POSITIONLESS)


def _slot(events: list[Instruction], priority: int | None) -> list[PingPongSlot]:
    if not events:
        return []
    matrix = sum(1 for event in events if event.kind is EventKind.MATRIX)
    memory = len(events) - matrix
    kind = "mixed" if matrix and memory else "matrix" if matrix else "memory"
    lines = [event.line for event in events]
    return [PingPongSlot(min(lines), max(lines), kind, memory, matrix, priority)]
