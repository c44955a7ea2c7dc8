"""What the documents share, and those on the tool itself: an error, the result cache."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from artifact_inspector.errors import InspectorError
from artifact_inspector.files.cache import Problem
from artifact_inspector.findings import Finding, Remark
from artifact_inspector.report.json._encoding import define_shape, hidden, inlined

SCHEMA_VERSION: Literal[2] = 2

define_shape(Finding, lambda x: (x.code, x.name, x.severity, inlined(x.remark)))
define_shape(Remark, lambda x: (x.message, x.stage, x.lines, x.sources, x.called_from, *hidden(x.is_minor)))


@dataclass(frozen=True, kw_only=True)
class Document:
    """One printed document: its fields are its keys."""

    schema_version: Literal[2] = SCHEMA_VERSION
    document: str = ""

    def __init_subclass__(cls) -> None:
        """Name the document after its class: `memory_check` for `MemoryCheckDocument`."""
        words = "".join(f"_{c.lower()}" if c.isupper() else c for c in cls.__name__.removesuffix("Document"))
        cls.document = words[1:]
        cls.__annotations__["document"] = Literal[words[1:]]


def each_once(problems: Iterable[Problem]) -> tuple[Problem, ...]:
    """Problems in order, each once."""
    return tuple(dict.fromkeys(problems))


@dataclass(frozen=True, kw_only=True)
class ErrorDocument(Document):
    """Why there is nothing to print, from any command with `--json`, beside exit code 3."""

    message: str
    """What is wrong, in one or two sentences."""
    remedy: str | None
    """What to do about it."""
    kernels: tuple[object, ...] = ()
    """Always empty."""
    problems: tuple[Problem, ...]
    """The message again, where every other document has what could not be read."""


def error_document(error: InspectorError) -> ErrorDocument:
    """An error in the place of a document."""
    return ErrorDocument(message=error.message, remedy=error.remedy or None, problems=(Problem(".", error.message),))


@dataclass(frozen=True, kw_only=True)
class IndexDocument(Document):
    """The result cache: `inspect-kernel --index-info --json`."""

    file: Path
    """The file."""
    kernels: int
    bytes: int
    """Of their facts, as they are stored."""
