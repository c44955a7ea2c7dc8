"""What the documents share."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from artifact_inspector.files.cache import Problem

SCHEMA_VERSION: Literal[2] = 2
SchemaVersion = Literal[2]


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """One printed document: its fields are its keys."""

    schema_version: SchemaVersion = SCHEMA_VERSION
    document: str


def each_once(problems: Iterable[Problem]) -> tuple[Problem, ...]:
    """Problems in order, each once."""
    return tuple(dict.fromkeys(problems))
