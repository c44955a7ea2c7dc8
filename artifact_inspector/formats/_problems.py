"""Problems of a file: reported with their lines, limited in number, or fatal."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NoReturn

from artifact_inspector.errors import ParseError
from artifact_inspector.model import Function, Module, Stage
from artifact_inspector.model.limits import PROBLEMS, InputLimit
from artifact_inspector.model.text import SourceText

NOT_CLOSED = "is not closed"
"""The wording of all formats for a function that has no end."""


class ProblemLog:
    """The problems of one file; those after the first `limits.PROBLEMS` are only counted."""

    def __init__(self, source: SourceText) -> None:
        self._source = source
        self._reported: list[str] = []
        self._max_reported = PROBLEMS.value
        self._count = 0
        self._missing_names: dict[str, int] = {}
        self.is_complete = True
        """False once something shows that the file is truncated."""

    def report(self, line: int, problem: str) -> None:
        """Report something that is ignored."""
        self._count += 1
        if self._count <= self._max_reported:
            self._reported.append(f"line {line}: {problem}")

    def report_truncation(self, line: int, problem: str) -> None:
        """Report something that shows that the file is truncated."""
        self.is_complete = False
        self.report(line, problem)

    def report_missing(self, line: int, name: str) -> None:
        """Report a reference without definition in the file; all names together make one problem."""
        self.is_complete = False
        self._missing_names.setdefault(name, line)

    def reject(self, line: int, limit: InputLimit) -> NoReturn:
        """Stop parsing: the file exceeds a limit."""
        raise ParseError(
            f"more than {limit.value} {limit.subject}",
            self._source.line_position(line),
            f"No compiler writes so much; set {limit.variable} to read it anyway.",
        )

    def build_module(
        self, stage: Stage, functions: Iterable[Function], attributes: dict[str, str], *, lacks: str, remedy: str
    ) -> Module:
        """The module of the file. Functions with the name of an earlier one are reported and dropped.

        Raises:
            ParseError: there are no functions; `lacks` names what the text does not have.
        """
        by_name: dict[str, Function] = {}
        for function in functions:
            if by_name.setdefault(function.name, function) is not function:
                self.report(function.line, f"duplicate function {function.name} is ignored")
        if not by_name:
            raise ParseError(lacks, self._source.position(0), remedy)
        unique = tuple(by_name.values())
        return Module(stage, self._source.name, unique, attributes, self.problems, is_complete=self.is_complete)

    @property
    def problems(self) -> tuple[str, ...]:
        """All problems as sentences."""
        omitted = self._count - len(self._reported)
        omission = [f"{omitted} more problems are not shown"] if omitted else []
        missing = []
        for name, line in list(self._missing_names.items())[:1]:
            count = len(self._missing_names)
            subject = f"{name} is" if count == 1 else f"{count} names, first {name}, are"
            missing = [f"line {line}: {subject} not defined in the file, which must be truncated"]
        return (*missing, *self._reported, *omission)
