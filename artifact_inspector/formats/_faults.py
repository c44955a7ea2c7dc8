"""What could not be read of a file, told by line and only so often, and what ends the reading."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NoReturn

from artifact_inspector.errors import ParseError
from artifact_inspector.model import Function
from artifact_inspector.model.limits import PROBLEMS, Limit
from artifact_inspector.model.text import SourceText

UNCLOSED = "is not closed"
"""How every format says of a function that the file ends, or another begins, inside it."""


class Faults:
    """The faults of one file; those behind the first `limits.PROBLEMS` are only counted."""

    def __init__(self, source: SourceText) -> None:
        self._source = source
        self._told: list[str] = []
        self._most = PROBLEMS.most
        self._count = 0
        self._missing: set[str] = set()
        self.is_whole = True
        """False as soon as something shows that the file is cut off."""

    def tell(self, line: int, fault: str) -> None:
        """Something is passed over."""
        self._count += 1
        if self._count <= self._most:
            self._told.append(f"line {line}: {fault}")

    def cut_off(self, line: int, fault: str) -> None:
        """Something shows that the file is cut off."""
        self.is_whole = False
        self.tell(line, fault)

    def missing(self, line: int, name: str) -> None:
        """A line names what the file holds nowhere; told once for each name."""
        if name not in self._missing:
            self._missing.add(name)
            self.cut_off(line, f"{name} is nowhere in the file, which must be cut off")

    def refuse(self, line: int, limit: Limit) -> NoReturn:
        """End the reading: the file goes beyond a limit."""
        raise ParseError(
            f"more than {limit.most} {limit.what}",
            self._source.span_of_line(line),
            f"No compiler writes so much; set {limit.switch} to read it all the same.",
        )

    def distinct(self, functions: Iterable[Function]) -> tuple[Function, ...]:
        """The functions without those whose name another has before them: no compiler writes such a file."""
        found: dict[str, Function] = {}
        for function in functions:
            if found.setdefault(function.name, function) is not function:
                self.tell(
                    function.line, f"function {function.name} is there already, and this one is passed over"
                )
        return tuple(found.values())

    @property
    def problems(self) -> tuple[str, ...]:
        """All faults as sentences."""
        left = self._count - len(self._told)
        return (*self._told, f"{left} more of its faults are not told") if left else tuple(self._told)
