"""Whether a change reached the code, as JSON: `try --json`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from artifact_inspector.comparison.reach import ComparedFile
from artifact_inspector.report.change_effect import EffectReport
from artifact_inspector.report.json._document import Document
from artifact_inspector.report.json._encoding import define_shape
from artifact_inspector.report.json.comparison import CategoryName

define_shape(ComparedFile, "stage=suffix likeness", without="kind")
define_shape(
    EffectReport,
    "kernel=label against=baseline reached=reach.reached effect=sentence at"
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
    results: tuple[EffectReport, ...]


def reach_document(reports: Sequence[EffectReport]) -> ReachDocument:
    """The answers as JSON."""
    return ReachDocument(reached=any(report.reach.reached for report in reports), results=tuple(reports))
