"""Trip count and induction values of a loop of tensor-level IR, if its bounds are constants."""

from __future__ import annotations

from typing import NamedTuple

from artifact_inspector.analysis.flow.function_code import FunctionCode


class LoopRange(NamedTuple):
    """The range of a loop with constant bounds."""

    start: int
    stop: int
    """Exclusive."""
    step: int

    @property
    def trip_count(self) -> int:
        """Trip count.

        Example:
            >>> LoopRange(0, 64, 32).trip_count, LoopRange(0, 65, 32).trip_count, LoopRange(8, 8, 1).trip_count
            (2, 3, 0)
        """
        return max(0, -((self.start - self.stop) // self.step))


def find_loop_range(code: FunctionCode, loop: int | None) -> LoopRange | None:
    """The range of a loop; None for no loop, and if a bound or the step is not constant."""
    if loop is None:
        return None
    opening = code.blocks[code.flow.loops[loop].header].start - 1
    if opening < 0:
        return None
    bounds = code.language.loop_header(code.instructions[opening]).bounds
    if bounds is None:
        return None
    start, stop, step = (_constant(code, name, opening) for name in bounds)
    if start is None or stop is None or step is None or step <= 0:
        return None
    return LoopRange(start, stop, step)


def _constant(code: FunctionCode, name: str, use_index: int) -> int | None:
    """The constant value of a name, from its last definition before an instruction."""
    defined = [index for index in code.definitions(name) if index < use_index]
    return code.language.axis_operation(code.instructions[defined[-1]]).value if defined else None
