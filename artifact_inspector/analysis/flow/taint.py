"""Dataflow through registers and shared memory in execution order, for code without SSA form.

One forward pass over a sequence of instructions: a load's data carries its group's bit until a compute uses it. Shared
memory is one location: stored data becomes readable at the next barrier.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from operator import or_

from artifact_inspector.analysis.flow.function_code import FunctionCode
from artifact_inspector.model import COMPUTES, LOADS, EventKind

_CARRIERS = LOADS | {EventKind.SHARED_LOAD, EventKind.SHARED_STORE, EventKind.BARRIER}
"""Kinds that may introduce data or move it through shared memory while no register holds any."""
_CHANGING = LOADS | COMPUTES | {EventKind.SHARED_LOAD}
"""Kinds whose result carries different data than their operands."""


def find_first_computes(
    code: FunctionCode,
    indices: Sequence[int],
    groups: Mapping[int, int],
    trips: int = 1,
    also: frozenset[EventKind] = frozenset(),
) -> dict[int, int]:
    """The computes that are the first to use loaded data, each with its groups as a bit set.

    Args:
        indices: of instructions, in execution order.
        groups: group number of each load, by instruction index. Other loads carry nothing. For a compute, the group of
            its result.
        trips: number of passes over the sequence; 2 lets data cross a loop's back edge.
        also: kinds to report in addition to computes.
    """
    groups_by_compute: dict[int, int] = {}
    if not groups:
        return groups_by_compute
    instructions, operands = code.instructions, code.operands
    walk = _TaintState(groups)
    registers = walk.registers
    reported_kinds = COMPUTES | also
    for _ in range(trips):
        for index in indices:
            instruction = instructions[index]
            kind = instruction.kind
            if not registers and kind not in _CARRIERS and index not in groups:
                continue
            if kind is EventKind.BARRIER:
                walk.publish()
                continue
            results, reads = operands(index)
            data = 0 if registers.keys().isdisjoint(reads) else walk.groups_in(reads)
            if data and kind in reported_kinds:
                groups_by_compute[index] = groups_by_compute.get(index, 0) | data
            if kind is EventKind.SHARED_STORE:
                walk.stored = (walk.stored or 0) | data
                continue
            if kind in _CHANGING:
                data = walk.result_groups(index, kind, data)
            if data:
                walk.write(results, data, keeps=instruction.guard is not None)
            elif instruction.guard is None:
                for name in results:
                    registers.pop(name, None)
    return groups_by_compute


class _TaintState:
    """The location of loaded data while instructions are processed."""

    def __init__(self, groups: Mapping[int, int]) -> None:
        self.groups = groups
        self.registers: dict[str, int] = {}
        """Registers that hold data → its groups."""
        self.readable = 0
        """Groups of the data in shared memory at the last barrier."""
        self.stored: int | None = None
        """Groups of the data stored since then; None if there was no store."""

    def publish(self) -> None:
        """Process a barrier: stored data becomes readable."""
        if self.stored is not None:
            self.readable, self.stored = self.stored, None

    def groups_in(self, names: Sequence[str]) -> int:
        """Groups of the data in some registers."""
        return reduce(or_, map(self.registers.__getitem__, filter(self.registers.__contains__, names)), 0)

    def result_groups(self, index: int, kind: EventKind, data: int) -> int:
        """Groups of the data that an instruction of a `_CHANGING` kind produces."""
        if kind is EventKind.SHARED_LOAD:
            return data | self.readable | (self.stored or 0)
        data = 1 << self.groups[index] if index in self.groups else 0
        if kind is EventKind.ASYNC_COPY:
            self.readable |= data
        return data

    def write(self, names: Sequence[str], data: int, *, keeps: bool) -> None:
        """Record the data of registers. A guarded instruction may leave their old data."""
        for name in names:
            self.registers[name] = self.registers.get(name, 0) | data if keeps else data
