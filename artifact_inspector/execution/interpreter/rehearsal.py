"""Global memory while it is tried what would be touched: it is kept, and happens later or not at all."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from artifact_inspector.execution.interpreter.footprints import Access
from artifact_inspector.execution.interpreter.memory import Memory, Region, Touch


class Refused(Exception):  # noqa: N818 - no error: it has to be done one after the other
    """What is tried depends on the order in which it happens."""


class Rehearsal(Memory):
    """Memory whose marks and contents stay as they are until `perform`.

    Args:
        memory: where it happens then.
        rows: CTAs that run at a time, of which there are as many again for each trip that is tried.
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
        """Do what was tried."""
        for touch in self._touched:
            touch()
        if self._kept is not None and self._memory.footprints is not None:
            self._memory.footprints.add_all(self._kept.accesses, self._rows)


class _Kept:
    """Accesses that are kept for later."""

    def __init__(self, footprints: Any) -> None:
        self._footprints = footprints
        self._wrote: set[int] = set()
        self.accesses: list[Access] = []

    def add(self, access: Access) -> None:
        """Note an access when it is performed."""
        if not access.reads and not self._footprints.has_written(access.ctas):
            self._wrote.add(access.step)
            if len(self._wrote) > 1:  # which comes first is told
                raise Refused
        self.accesses.append(access)
