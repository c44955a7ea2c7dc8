"""What the types of several documents share."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated, Literal, TypedDict

from artifact_inspector.files.cache import Problem
from artifact_inspector.model import Stage

__all__ = ["SCHEMA_VERSION", "Lines", "ProblemJson", "SchemaVersion", "StageName", "Words", "problem_list"]

SCHEMA_VERSION: Literal[1] = 1
SchemaVersion = Literal[1]


@dataclass(frozen=True)
class Words:
    """The words that a text field may hold now; more may come within a schema version."""

    words: tuple[str, ...]


StageName = Annotated[str, Words(tuple(stage.value for stage in Stage))]
Lines = tuple[int, int]
"""First and last line."""


class ProblemJson(TypedDict):
    """Something that could not be read, or only in part."""

    path: str
    """From the cache directory."""
    problem: str


def problem_list(problems: Iterable[Problem]) -> list[ProblemJson]:
    """Each problem once, in order."""
    return [{"path": found.path, "problem": found.problem} for found in dict.fromkeys(problems)]
