from __future__ import annotations
from dataclasses import dataclass
from artifact_inspector.memory_checks.problems import MemoryProblem

@dataclass(frozen=True, slots=True)
class SharedMemoryCheck:
    """Errors in shared memory."""

    problems: tuple[MemoryProblem, ...] = ()
    undecided: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def check_shared_memory(loaded, launch):
    return SharedMemoryCheck()
