"""Dataflow through registers and shared memory in execution order, for code without SSA rounds.

One forward pass over a run of instructions: a load's data carries its group's bit until a compute
uses it. Shared memory is one place: what is stored becomes readable at the next barrier.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from artifact_inspector.analysis.flow.code import Code
from artifact_inspector.model import COMPUTES, LOADS, EventKind

__all__ = ["find_first_computes"]


_CARRIERS = LOADS | {EventKind.SHARED_LOAD, EventKind.SHARED_STORE, EventKind.BARRIER}
"""Kinds that may bring data in or move it through shared memory when no register holds any."""


def find_first_computes(
    code: Code, indices: Sequence[int], groups: Mapping[int, int], trips: int = 1
) -> dict[int, int]:
    """The computes that take loaded data first, each with the groups it takes as a bit set.

    Args:
        indices: of instructions, in execution order.
        groups: group number of each load, by instruction index; other loads carry nothing.
        trips: how often the run is gone through; 2 lets data cross a loop's back edge.
    """
    found: dict[int, int] = {}
    if not groups:
        return found
    instructions, operands = code.function.instructions, code.operands
    registers: dict[str, int] = {}
    """Those that hold data, with its groups."""
    readable = 0
    stored: int | None = None  # None: nothing was stored since the last barrier
    for _ in range(trips):
        for index in indices:
            kind = instructions[index].kind
            if not registers and kind not in _CARRIERS:
                continue
            if kind is EventKind.BARRIER:
                if stored is not None:
                    readable, stored = stored, None
                continue
            results, reads = operands(index)
            data = 0
            for name in reads:
                if name in registers:
                    data |= registers[name]
            if kind in LOADS:
                bit = 1 << groups[index] if index in groups else 0
                if kind is EventKind.ASYNC_COPY:
                    readable |= bit
                data = bit
            elif kind in COMPUTES:
                if data:
                    found[index] = found.get(index, 0) | data
                data = 0
            elif kind is EventKind.SHARED_STORE:
                stored = (stored or 0) | data
                continue
            elif kind is EventKind.SHARED_LOAD:
                data |= readable | (stored or 0)
            if data:
                keeps = instructions[index].guard is not None
                for name in results:
                    registers[name] = registers.get(name, 0) | data if keeps else data
            elif instructions[index].guard is None:
                for name in results:
                    registers.pop(name, None)
    return found
