"""Whether a change reached the code, as JSON: `try --json`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from artifact_inspector.comparison.reach import Compared
from artifact_inspector.report.change_effect import EffectReport
from artifact_inspector.report.json._document import Document
from artifact_inspector.report.json._encoding import shape
from artifact_inspector.report.json.comparison import CategoryName

shape(Compared, "stage=suffix likeness", without="kind")
shape(
    EffectReport,
    "kernel=label against=before reached=reach.reached answer=sentence at"
    " same_from stages=reach.files launch=reach.launch categories=reach.categories"
    " headline price facts=reach.facts left right notes=reach.notes",
    types={"categories": tuple[CategoryName, ...]},
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReachDocument(Document):
    """Whether a change reached the code: `inspect-kernel try --json`."""

    document: Literal["reach"] = "reach"
    reached: bool
    """Whether it did for any target."""
    answers: tuple[EffectReport, ...]


def reach_document(answers: Sequence[EffectReport]) -> ReachDocument:
    """The answers as JSON."""
    return ReachDocument(reached=any(answer.reach.reached for answer in answers), answers=tuple(answers))
