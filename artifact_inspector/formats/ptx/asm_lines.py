"""Lines of loads in inline asm according to the line table, in addition to the line of the asm call."""

from __future__ import annotations

import re

from artifact_inspector.model import LOADS, Instruction

_LINE = re.compile(r"\s*\.loc\s+\d+\s+(\d{1,9})\b")


class AsmLines:
    """Collects the `.loc` lines in a function's inline asm during parsing.

    LLVM 23 and later count the lines of an asm from the line of its call.
    """

    def __init__(self, instructions: list[Instruction]) -> None:
        """`instructions`: of the function; the parser appends to it."""
        self._instructions = instructions
        self._marks: dict[int, str | None] = {}
        """Instruction index → the `.loc` inside an asm from there on; None outside, and at the start of an asm."""

    def record(self, mark: str | None) -> None:
        """Record a `.loc`, or with None the start or end of an asm."""
        self._marks[len(self._instructions)] = mark

    def differing_lines(self) -> dict[int, int]:
        """Loads whose line in the table differs from that of the asm call → that line."""
        lines: dict[int, int] = {}
        starts = [*self._marks, len(self._instructions)]
        for (start, mark), stop in zip(self._marks.items(), starts[1:], strict=True):
            line = None if mark is None else _LINE.match(mark)
            for at in range(start, stop) if line is not None else ():
                _, _, kind, location, *_ = self._instructions[at]
                if line is not None and kind in LOADS and location and location[0].line != int(line[1]):
                    lines[at] = int(line[1])
        return lines
