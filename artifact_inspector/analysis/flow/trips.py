"""How often a loop of tensor-level IR runs, and over which numbers, where its bounds are constants."""

from __future__ import annotations

from typing import NamedTuple

from artifact_inspector.analysis.flow.code import Code


class Trips(NamedTuple):
    """The numbers that a loop counts through; the program has them as constants."""

    start: int
    stop: int
    """Behind the last."""
    step: int

    @property
    def passes(self) -> int:
        """How often the loop runs.

        Example:
            >>> Trips(0, 64, 32).passes, Trips(0, 65, 32).passes, Trips(8, 8, 1).passes
            (2, 3, 0)
        """
        return max(0, -((self.start - self.stop) // self.step))


def find_trips(code: Code, loop: int | None) -> Trips | None:
    """Of a loop of the function; None for no loop, and where a bound or the step is no constant."""
    if loop is None:
        return None
    opening = code.function.blocks[code.flow.loops[loop].header].start - 1
    if opening < 0:
        return None
    bounds = code.language.loop_header(code.function.instructions[opening]).bounds
    if bounds is None:
        return None
    start, stop, step = (_constant(code, name, opening) for name in bounds)
    if start is None or stop is None or step is None or step <= 0:
        return None
    return Trips(start, stop, step)


def _constant(code: Code, name: str, before: int) -> int | None:
    """The number that a value is, by its last definition in front of an instruction."""
    defined = [index for index in code.definitions(name) if index < before]
    return code.language.axes(code.function.instructions[defined[-1]]).value if defined else None
