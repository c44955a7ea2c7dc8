"""Global memory of a speculative run: accesses are buffered and applied later, or discarded."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from artifact_inspector.execution.interpreter.footprints import Access
from artifact_inspector.execution.interpreter.memory import Memory, Region, Touch


class Refused(Exception):  # noqa: N818 - no error: it has to run sequentially
    """The result of the speculative run depends on the order of iterations."""


class Rehearsal(Memory):
    """Memory whose marks and contents stay unchanged until `perform`.

    Args:
        memory: receives the accesses.
        rows: CTAs of one iteration.
    """

    def __init__(self, memory: Memory, rows: int) -> None:
        self.__dict__.update(memory.__dict__)
        self._memory = memory
        self._rows = rows
        self._touched: list[Callable[[], None]] = []
        self._kept = None if memory.footprints is None else _Kept(memory.footprints)
        self.footprints = self._kept  # type: ignore[assignment]

    def _note(self, region: Region, touch: Touch, reads: bool, writes: bool, updates: bool) -> None:
        if writes and region.content is not None:
            raise Refused
        self._touched.append(lambda: self._memory._note(region, touch, reads, writes, updates))

    def perform(self) -> None:
        """Apply the buffered accesses."""
        for touch in self._touched:
            touch()
        if self._kept is not None and self._memory.footprints is not None:
            self._memory.footprints.add_all(self._kept.accesses, self._rows)


class _Kept:
    """Buffered footprint accesses."""

    def __init__(self, footprints: Any) -> None:
        self._footprints = footprints
        self._wrote: set[int] = set()
        self.accesses: list[Access] = []

    def add(self, access: Access) -> None:
        """Buffer an access."""
        if not access.reads and not self._footprints.has_written(access.ctas):
            self._wrote.add(access.step)
            if len(self._wrote) > 1:  # their order would be lost
                raise Refused
        self.accesses.append(access)
