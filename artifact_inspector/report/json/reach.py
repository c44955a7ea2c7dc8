"""Whether a change reached the code, as JSON: `try --json`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from artifact_inspector.comparison.pair import FactPair
from artifact_inspector.comparison.reach import Compared
from artifact_inspector.report.json._document import Document
from artifact_inspector.report.json._encoding import shape
from artifact_inspector.report.json.comparison import CategoryName
from artifact_inspector.report.reach import Answer, describe_reach

shape(Compared, "stage=suffix likeness", without="kind")


@dataclass(frozen=True, slots=True)
class AnswerDocument:
    """What became of one change, for one target."""

    kernel: str
    """Its name, target and configuration."""
    against: str
    """What the old state is called."""
    reached: bool | None
    """Whether the code that runs differs; null where it cannot be told."""
    answer: str
    """The same as one sentence, with what changed."""
    at: str | None
    """The first stage that differs."""
    same_from: str | None
    """The first stage from which on all are identical."""
    stages: tuple[Compared, ...]
    launch: tuple[str, ...]
    """Keys of the metadata that a launch takes, and that differ."""
    categories: tuple[CategoryName, ...]
    """What the differing facts are about, most telling first."""
    facts: tuple[FactPair, ...]
    """Those that differ, most telling first."""
    left: str
    """The directory of the old entry."""
    right: str
    notes: tuple[str, ...]
    """What could not be compared."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReachDocument(Document):
    """Whether a change reached the code: `inspect-kernel try --json`."""

    document: Literal["reach"] = "reach"
    reached: bool
    """Whether it did for any target."""
    answers: tuple[AnswerDocument, ...]


def reach_document(answers: Sequence[Answer]) -> ReachDocument:
    """The answers as JSON."""
    return ReachDocument(
        reached=any(answer.reach.reached for answer in answers),
        answers=tuple(map(_answer, answers)),
    )


def _answer(answer: Answer) -> AnswerDocument:
    reach = answer.reach
    parts, same = reach.parts_at, reach.same_from
    left, right = answer.entries
    return AnswerDocument(
        kernel=answer.label,
        against=answer.before,
        reached=reach.reached,
        answer=describe_reach(reach),
        at=None if parts is None else parts.suffix,
        same_from=None if same is None else same.suffix,
        stages=reach.files,
        launch=reach.launch,
        categories=() if reach.change is None else reach.change.categories,
        facts=() if reach.change is None else reach.change.facts,
        left=left,
        right=right,
        notes=reach.notes,
    )
