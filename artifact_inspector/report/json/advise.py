"""Causes and remedies as JSON: `advise --json`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from artifact_inspector.diagnosis.cause import Diagnosis
from artifact_inspector.diagnosis.remedy import Remedy, RemedySearch
from artifact_inspector.report.json._document import Document


@dataclass(frozen=True, slots=True)
class CauseRow:
    """One cause of the predicted time."""

    cause: str
    """Its kind: `bank-conflicts`, `spills` …"""
    line: str | None
    """`file.py:line`; null if it concerns the launch."""
    share: float | None
    """Share of the predicted time that the launch would save without it; null if times are not predicted."""
    text: str


@dataclass(frozen=True, slots=True)
class AdvisedLaunch:
    """One launch of a kernel."""

    kernel: str
    hash: str
    target: str
    gpu: str | None
    grid: tuple[int, int, int]
    microseconds: float | None
    """Predicted time."""
    roofline_microseconds: float | None
    """The time if only device memory or the matrix pipe limited it."""
    summary: str
    """The first sentence of the text report."""
    causes: tuple[CauseRow, ...]
    """The most important first; empty if nothing stands out."""
    remedies: tuple[Remedy, ...]
    """Changes that lower the predicted time; empty if none was tried, or none helps."""
    tried: int
    """Configurations that were compiled and simulated."""
    notes: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class AdviceDocument(Document):
    """What takes the time of launches, and what helps: `inspect-kernel advise CACHE NAME --json`."""

    kernels: tuple[AdvisedLaunch, ...]


def advice_document(diagnoses: Sequence[Diagnosis], searches: Sequence[RemedySearch | None]) -> AdviceDocument:
    """Diagnoses and remedies, as JSON."""
    return AdviceDocument(
        kernels=tuple(
            AdvisedLaunch(
                kernel=diagnosis.kernel,
                hash=diagnosis.hash,
                target=diagnosis.target,
                gpu=diagnosis.gpu,
                grid=diagnosis.grid,
                microseconds=_rounded(diagnosis.microseconds),
                roofline_microseconds=_rounded(diagnosis.roofline_microseconds),
                summary=diagnosis.summary,
                causes=tuple(
                    CauseRow(cause.kind.value, cause.line, _rounded(cause.share), cause.text)
                    for cause in diagnosis.causes
                ),
                remedies=() if search is None else search.remedies,
                tried=0 if search is None else search.tried,
                notes=diagnosis.notes + ((search.reason,) if search is not None and search.reason else ()),
            )
            for diagnosis, search in zip(diagnoses, searches, strict=True)
        )
    )


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 3)
