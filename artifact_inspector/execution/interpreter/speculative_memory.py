"""Global memory of a speculative run: accesses are buffered and applied later, or discarded."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from artifact_inspector.execution.interpreter.footprints import FootprintAccess
from artifact_inspector.execution.interpreter.global_memory import GlobalMemory, TensorMemory, TouchMarker
from artifact_inspector.execution.interpreter.observation import BufferedObserver


class OrderDependent(Exception):  # noqa: N818 - no error: it has to run sequentially
    """The result of the speculative run depends on the order of iterations."""


class SpeculativeMemory(GlobalMemory):
    """Memory whose marks and contents stay unchanged until `apply_buffered`.

    Args:
        memory: receives the accesses.
        rows: CTAs of one iteration.
    """

    def __init__(self, memory: GlobalMemory, rows: int) -> None:
        self.__dict__.update(memory.__dict__)
        self._memory = memory
        self._rows = rows
        self._buffered_touches: list[Callable[[], None]] = []
        self._buffered_footprints = None if memory.footprints is None else _BufferedFootprints(memory.footprints)
        self.footprints = self._buffered_footprints  # type: ignore[assignment]
        self._buffered_observer = None if memory.observer is None else BufferedObserver()
        self.observer = self._buffered_observer

    def _record_touch(self, region: TensorMemory, touch: TouchMarker, reads: bool, writes: bool, updates: bool) -> None:
        if writes and region.content is not None:
            raise OrderDependent
        self._buffered_touches.append(lambda: self._memory._record_touch(region, touch, reads, writes, updates))

    def apply_buffered(self) -> None:
        """Apply the buffered accesses."""
        for touch in self._buffered_touches:
            touch()
        if self._buffered_footprints is not None and self._memory.footprints is not None:
            self._memory.footprints.add_iterations(self._buffered_footprints.accesses, self._rows)
        if self._buffered_observer is not None and self._memory.observer is not None:
            self._buffered_observer.forward(self._memory.observer)


class _BufferedFootprints:
    """Buffered footprint accesses."""

    def __init__(self, footprints: Any) -> None:
        self._footprints = footprints
        self._writing_steps: set[int] = set()
        self.accesses: list[FootprintAccess] = []

    def add(self, access: FootprintAccess) -> None:
        """Buffer an access."""
        if not access.is_read and not self._footprints.has_written(access.ctas):
            self._writing_steps.add(access.step)
            if len(self._writing_steps) > 1:  # their order would be lost
                raise OrderDependent
        self.accesses.append(access)
