"""A budget of processor time for all simulations of a command, shared with the processes that it forks."""

from __future__ import annotations

import mmap
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import numpy as np

_SLOTS = 4096
"""Processes that can report their time; process IDs are taken modulo this number."""


class SimulationBudget:
    """Seconds of processor time, and what was spent so far by this process and those forked from it."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._process = os.getpid()
        self._start = time.process_time()
        # forked processes write to the same memory
        self._times = np.frombuffer(mmap.mmap(-1, 8 * _SLOTS), np.float64)

    def is_spent(self) -> bool:
        """Whether all processes together have used the budget."""
        process = os.getpid()
        used = time.process_time() - (self._start if process == self._process else 0.0)
        self._times[process % _SLOTS] = used
        return bool(self._times.sum() > self.seconds)

    @property
    def reason(self) -> str:
        """Why a simulation stopped, and what to do."""
        return f"the budget of {self.seconds:g} s of processor time is spent; --budget raises it"


_current_budget: ContextVar[SimulationBudget | None] = ContextVar("_current_budget", default=None)


def current_budget() -> SimulationBudget | None:
    """The budget of the running command; None if it has none."""
    return _current_budget.get()


@contextmanager
def limit_simulation(seconds: float) -> Iterator[SimulationBudget]:
    """Limit the processor time of all simulations in the block."""
    budget = SimulationBudget(seconds)
    token = _current_budget.set(budget)
    try:
        yield budget
    finally:
        _current_budget.reset(token)
