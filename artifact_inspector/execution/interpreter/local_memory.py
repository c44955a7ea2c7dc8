"""Local memory of lanes, at addresses that are the same in all of them."""

from __future__ import annotations

from collections.abc import Sequence

from artifact_inspector.execution.interpreter.machine import Machine
from artifact_inspector.execution.interpreter.values import Value


def load_local(machine: Machine, address: Value, word_count: int, missing_input: str) -> list[Value]:
    """Words of each lane; the missing input names those that were not stored."""
    words = machine.local_memory.lane_words
    values = [words.get(address + 4 * n) if isinstance(address, int) else None for n in range(word_count)]
    return [machine.unknown_value(missing_input) if value is None else value for value in values]


def store_local(machine: Machine, address: int, values: Sequence[Value]) -> None:
    """Store words of the active lanes."""
    for word_index, value in enumerate(values):
        machine.local_memory.store_word(address + 4 * word_index, value, machine.active_mask)
