"""Who does what at the same time: warp-specialised partitions, and the slots of a ping-pong loop."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass

from artifact_inspector.analysis.flow.code import Code
from artifact_inspector.analysis.order.regions import Region
from artifact_inspector.model import EventKind, Function, Instruction, Language, Module

__all__ = ["PartitionFacts", "Slot", "find_partitions", "find_slots"]

_REQUESTED = re.compile(r"requestedRegisters = array<i32: ([\d, ]+)>")
_WARPS = re.compile(r"\bpartition(\d+) num_warps\((\d+)\)")
_PRIORITY = re.compile(r"setprio\W+(?:i16 )?(\d+)")
_LIMIT = re.compile(r"(\d+)\s*;?$")
_LOADS = (EventKind.GLOBAL_LOAD, EventKind.ASYNC_COPY)
_MEMORY = frozenset(
    {
        EventKind.GLOBAL_LOAD,
        EventKind.ASYNC_COPY,
        EventKind.SHARED_LOAD,
        EventKind.SHARED_STORE,
        EventKind.GLOBAL_STORE,
        EventKind.ATOMIC,
    }
)
_HINTS = frozenset({EventKind.SCHEDULE_HINT})
_COARSE_HINT = "instruction_sched_hint"
"""Asks for an order within a loop and marks no place in it."""


@dataclass(frozen=True, slots=True)
class PartitionFacts:
    """What one partition of a warp-specialised kernel holds; counts are static, with the loops inside."""

    name: str
    """`default`, `partition0` …"""
    warps: int | None
    registers_requested: int | None
    """Per thread; None for the default partition, which gets what is left."""
    registers: int | None
    """Per thread, as the PTX sets it; None where that is not found."""
    loads: int
    """Loads and asynchronous copies."""
    matrix: int
    """Matrix operations."""
    barriers: int
    """Barriers, and waits for and arrivals at a barrier in shared memory."""
    events: dict[EventKind, int]
    """Instructions of all kinds."""


@dataclass(frozen=True, slots=True)
class Slot:
    """What stands between two schedule hints (or barriers) of a loop."""

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
    """What `s_setprio` last set, None before the first."""

    @property
    def lines(self) -> tuple[int, int]:
        """First and last line."""
        return self.first, self.last


def find_partitions(
    code: Code, module: Module, language: Language, last: Function | None = None
) -> tuple[PartitionFacts, ...]:
    """The partitions of a function in text order; empty where there are none.

    Args:
        last: the same kernel in PTX, whose `setmaxnreg` says what registers the partitions get.
    """
    function = code.function
    if not function.partitions:
        return ()
    limits = set() if last is None else _limits(last)
    found: list[PartitionFacts] = []
    requested: list[int] = []
    warps: dict[str, int] = {}
    for part in function.partitions:
        if part.name == "default":
            text = function.instructions[function.blocks[part.first].start - 1].text
            given = _REQUESTED.search(text)
            requested = [] if given is None else [int(n) for n in given[1].split(",")]
            warps = {number: int(count) for number, count in _WARPS.findall(text)}
        number = part.name.removeprefix("partition")
        wanted = requested[int(number)] if number.isdigit() and int(number) < len(requested) else None
        inside = function.instructions[
            function.blocks[part.first].start : function.blocks[part.stop - 1].stop
        ]
        kinds = Counter(instruction.kind for instruction in inside)
        found.append(
            PartitionFacts(
                part.name,
                _module_warps(module) if part.name == "default" else warps.get(number),
                wanted,
                _granted(wanted, limits),
                sum(kinds[kind] for kind in _LOADS),
                kinds[EventKind.MATRIX],
                sum(1 for instruction in inside if _is_barrier(instruction)),
                dict(kinds),
            )
        )
    return tuple(found)


def _is_barrier(instruction: Instruction) -> bool:
    if instruction.kind in (EventKind.BARRIER, EventKind.WAIT):
        return "barrier" in instruction.opcode
    return instruction.opcode.endswith(("arrive_barrier", "barrier_expect", "tc_gen5_commit"))


def _module_warps(module: Module) -> int | None:
    text = module.attributes.get("ttg.num-warps", "")
    return int(text) if text.isdigit() else None


def _limits(function: Function) -> set[int]:
    """Register counts that a PTX function sets at run time."""
    return {
        int(found[1])
        for x in function.instructions
        if x.opcode.startswith("setmaxnreg") and (found := _LIMIT.search(x.text)) is not None
    }


def _granted(wanted: int | None, limits: set[int]) -> int | None:
    """What the PTX sets for a request: it is rounded to a multiple of 8 (PTX ISA, `setmaxnreg`)."""
    if wanted is None:
        return None
    return next((n for n in (wanted // 8 * 8, -(-wanted // 8) * 8) if n in limits), None)


def find_slots(code: Code, region: Region) -> tuple[Slot, ...]:
    """What a loop's body holds from hint to hint, in execution order; empty for one without hints."""
    if region.loop is None:
        return ()
    instructions = code.function.instructions
    if not any(_is_hint(instructions[index]) for index in code.find(_HINTS, region.blocks)):
        return ()
    slots: list[Slot] = []
    open_: list[Instruction] = []
    priority: int | None = None
    for instruction in (instructions[index] for index in code.indices(region.blocks)):
        if _is_hint(instruction) or instruction.kind is EventKind.BARRIER:
            slots += _slot(open_, priority)
            open_ = []
            found = _PRIORITY.search(instruction.text)
            priority = int(found[1]) if found is not None else priority
        elif instruction.kind in _MEMORY or instruction.kind is EventKind.MATRIX:
            open_.append(instruction)
    return (*slots, *_slot(open_, priority))


def _is_hint(instruction: Instruction) -> bool:
    return instruction.kind is EventKind.SCHEDULE_HINT and not instruction.opcode.endswith(_COARSE_HINT)


def _slot(events: list[Instruction], priority: int | None) -> list[Slot]:
    if not events:
        return []
    matrix = sum(1 for event in events if event.kind is EventKind.MATRIX)
    memory = len(events) - matrix
    kind = "mixed" if matrix and memory else "matrix" if matrix else "memory"
    lines = [event.line for event in events]
    return [Slot(min(lines), max(lines), kind, memory, matrix, priority)]
