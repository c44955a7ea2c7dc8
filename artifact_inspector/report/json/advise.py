"""Causes and remedies as JSON: `advise --json`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from artifact_inspector.diagnosis.cause import Cause, Diagnosis
from artifact_inspector.diagnosis.remedy import Remedy, RemedySearch
from artifact_inspector.report.json._document import Document
from artifact_inspector.report.json._encoding import INLINED, define_shape, hidden, named, rounded

define_shape(
    Cause, lambda x: (named("cause", x.kind), x.line, rounded(x.share, 3), x.text, *hidden(x.more_lines, x.note))
)  # fmt: skip
define_shape(
    Diagnosis, lambda x: (
        x.kernel, x.hash, x.target, x.gpu, x.grid, rounded(x.microseconds, 3), rounded(x.roofline_microseconds, 3),
        x.summary, x.causes, x.notes, *hidden(x.bound, x.sampled_microseconds),
    ),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class AdvisedLaunch:
    """One launch of a kernel."""

    diagnosis: Diagnosis = field(metadata=INLINED)
    remedies: tuple[Remedy, ...]
    """Changes that lower the predicted time; empty if none was tried, or none helps."""
    tried: int
    """Configurations that were compiled and simulated."""


@dataclass(frozen=True, kw_only=True)
class AdviceDocument(Document):
    """What takes the time of launches, and what helps: `inspect-kernel advise CACHE NAME --json`."""

    kernels: tuple[AdvisedLaunch, ...]


def advice_document(diagnoses: Sequence[Diagnosis], searches: Sequence[RemedySearch | None]) -> AdviceDocument:
    """Diagnoses and remedies, as JSON."""
    rows = []
    for diagnosis, found in zip(diagnoses, searches, strict=True):
        search = found or RemedySearch((), 0, "")
        notes = (*diagnosis.notes, *filter(None, [search.reason]))
        rows.append(AdvisedLaunch(replace(diagnosis, notes=notes), search.remedies, search.tried))
    return AdviceDocument(kernels=tuple(rows))
