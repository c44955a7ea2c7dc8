"""The accesses of a speculative run: they are applied once the run is proven, or dropped."""

from __future__ import annotations

from collections.abc import Callable

from artifact_inspector.execution.interpreter.footprints import AccessRecorder, FootprintAccess
from artifact_inspector.execution.interpreter.observation import GlobalAccess


class OrderDependent(Exception):  # noqa: N818 - no error: it has to run sequentially
    """The result of the speculative run depends on the order of iterations."""


class Journal:
    """Accesses in the order of execution, of all iterations at once.

    Args:
        footprints: what the recorded accesses are for.
    """

    def __init__(self, footprints: AccessRecorder | None) -> None:
        self.footprints = footprints
        self.touches: list[Callable[[], None]] = []
        """Marks to be set in tensors."""
        self.accesses: list[FootprintAccess] = []
        self.observed: list[GlobalAccess] = []
        self._writing_steps: set[int] = set()

    def add(self, access: FootprintAccess) -> None:
        """Record an access.

        Raises:
            OrderDependent: several steps write first; their order would be lost.
        """
        if not access.is_read and self.footprints is not None and not self.footprints.has_written(access.ctas):
            self._writing_steps.add(access.step)
            if len(self._writing_steps) > 1:
                raise OrderDependent
        self.accesses.append(access)
