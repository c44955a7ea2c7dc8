"""A budget of processor time and memory for all simulations of a command, shared with the processes that it forks."""

from __future__ import annotations

import math
import mmap
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

from artifact_inspector.model.limits import SIMULATION_MIB, SIMULATION_SECONDS

if sys.platform != "win32":
    import resource

_SLOTS = 4096
"""Processes that can report their time; process IDs are taken modulo this number."""


class SimulationBudget:
    """Seconds of processor time, and what was spent so far by this process and those forked from it.

    It is spent, too, as soon as one of these processes has taken more memory than a simulation may.
    """

    def __init__(self, seconds: float, option: str, deadline: float = math.inf) -> None:
        self.seconds, self.option, self.deadline = seconds, option, deadline
        self._process = os.getpid()
        self._start = time.process_time()
        # forked processes write to the same memory
        shared = memoryview(mmap.mmap(-1, 8 * (_SLOTS + 1))).cast("d")  # numpy takes 0.1 s to import
        self._times, self._memory_exceeded = shared[:_SLOTS], shared[_SLOTS:]

    def __reduce__(self) -> tuple[object, tuple[()]]:
        """A process that receives counters has its own view of the shared memory."""
        return current_budget, ()

    def is_spent(self) -> bool:
        """Whether all processes together have used the budget."""
        if _memory_mib() > SIMULATION_MIB.value:
            self._memory_exceeded[0] = 1
        return bool(self.remaining < 0 or self._memory_exceeded[0])

    @property
    def remaining(self) -> float:
        """Seconds that all processes together have left."""
        process = os.getpid()
        used = time.process_time() - (self._start if process == self._process else 0.0)
        self._times[process % _SLOTS] = used
        return min(self.seconds - sum(self._times), self.deadline - time.monotonic())

    @property
    def reason(self) -> str:
        """Why a simulation stopped, and what to do."""
        if self._memory_exceeded[0]:
            return f"a process has taken more than {SIMULATION_MIB.value} MiB; {SIMULATION_MIB.variable} raises it"
        if time.monotonic() > self.deadline:
            return f"the time of the budget has passed; {self.option} raises it"
        return f"the budget of {self.seconds:g} s of processor time is spent; {self.option} raises it"


def _memory_mib() -> float:
    """Memory of this process; the most that it ever had outside of Linux, 0 where the system does not tell it.

    A server goes on after a call that took too much: the most that it ever had would refuse every later call.
    """
    if sys.platform == "linux":
        return int(Path("/proc/self/statm").read_bytes().split()[1]) * mmap.PAGESIZE / (1 << 20)
    if sys.platform == "win32":
        return 0
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (1 << 20 if sys.platform == "darwin" else 1 << 10)  # bytes there, KiB elsewhere


_current_budget: ContextVar[SimulationBudget | None] = ContextVar("_current_budget", default=None)


def current_budget() -> SimulationBudget | None:
    """The budget of the running command; None if it has none."""
    return _current_budget.get()


@contextmanager
def limit_simulation(seconds: float | None = None, *, wall: float = math.inf) -> Iterator[SimulationBudget]:
    """Limit the processor time of all simulations in the block to that of `--budget`, else to a default.

    `wall` seconds may pass, whatever else the processors do; a block ends with the one around it.
    """
    option, outer = SIMULATION_SECONDS.variable if seconds is None else "--budget", _current_budget.get()
    deadline = min(time.monotonic() + wall, math.inf if outer is None else outer.deadline)
    budget = SimulationBudget(SIMULATION_SECONDS.value if seconds is None else seconds, option, deadline)
    token = _current_budget.set(budget)
    try:
        yield budget
    finally:
        _current_budget.reset(token)
