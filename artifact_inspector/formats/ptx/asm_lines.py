"""What the table of lines says of inline asm, beside the place of the call that it stands for."""

from __future__ import annotations

import re

from artifact_inspector.model import LOADS, Instruction

_LINE = re.compile(r"\s*\.loc\s+\d+\s+(\d{1,9})\b")


class AsmLines:
    """The `.loc` lines of a function's inline asm, while it is read.

    LLVM 23 and later count the lines of an asm on from that of its call.
    """

    def __init__(self, instructions: list[Instruction]) -> None:
        """`instructions` of the function, to which the reader adds."""
        self._instructions = instructions
        self._marks: dict[int, str | None] = {}
        """The `.loc` that holds inside an asm from an instruction on; None outside, and where it begins."""

    def locate(self, mark: str | None) -> None:
        """A `.loc` stands here, or, with None, an asm begins or ends."""
        self._marks[len(self._instructions)] = mark

    def counted_on(self) -> dict[int, int]:
        """The loads that the table has at another line than that of the call, with that line."""
        found: dict[int, int] = {}
        starts = [*self._marks, len(self._instructions)]
        for (start, mark), stop in zip(self._marks.items(), starts[1:], strict=True):
            line = None if mark is None else _LINE.match(mark)
            for at in range(start, stop) if line is not None else ():
                _, _, kind, location, *_ = self._instructions[at]
                if line is not None and kind in LOADS and location and location[0].line != int(line[1]):
                    found[at] = int(line[1])
        return found
