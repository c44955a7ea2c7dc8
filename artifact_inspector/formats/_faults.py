"""Problems of a file: reported with their lines, limited in number, or fatal."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NoReturn

from artifact_inspector.errors import ParseError
from artifact_inspector.model import Function
from artifact_inspector.model.limits import PROBLEMS, Limit
from artifact_inspector.model.text import SourceText

UNCLOSED = "is not closed"
"""The wording of all formats for a function that has no end."""


class Faults:
    """The problems of one file; those after the first `limits.PROBLEMS` are only counted."""

    def __init__(self, source: SourceText) -> None:
        self._source = source
        self._told: list[str] = []
        self._most = PROBLEMS.most
        self._count = 0
        self._missing: set[str] = set()
        self.is_whole = True
        """False once something shows that the file is truncated."""

    def tell(self, line: int, fault: str) -> None:
        """Report something that is ignored."""
        self._count += 1
        if self._count <= self._most:
            self._told.append(f"line {line}: {fault}")

    def cut_off(self, line: int, fault: str) -> None:
        """Report something that shows that the file is truncated."""
        self.is_whole = False
        self.tell(line, fault)

    def missing(self, line: int, name: str) -> None:
        """Report a reference without definition in the file; once per name."""
        if name not in self._missing:
            self._missing.add(name)
            self.cut_off(line, f"{name} is not defined in the file, which must be truncated")

    def refuse(self, line: int, limit: Limit) -> NoReturn:
        """Stop parsing: the file exceeds a limit."""
        raise ParseError(
            f"more than {limit.most} {limit.what}",
            self._source.span_of_line(line),
            f"No compiler writes so much; set {limit.switch} to read it anyway.",
        )

    def distinct(self, functions: Iterable[Function]) -> tuple[Function, ...]:
        """The functions with distinct names; later duplicates are reported and dropped."""
        found: dict[str, Function] = {}
        for function in functions:
            if found.setdefault(function.name, function) is not function:
                self.tell(function.line, f"duplicate function {function.name} is ignored")
        return tuple(found.values())

    @property
    def problems(self) -> tuple[str, ...]:
        """All problems as sentences."""
        left = self._count - len(self._told)
        return (*self._told, f"{left} more problems are not shown") if left else tuple(self._told)
