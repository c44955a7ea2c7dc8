"""What became of kernels with the switches that their findings suggest, as JSON: `findings --try --json`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from artifact_inspector.facts.kernel import KernelFacts
from artifact_inspector.files.cache import Artifact
from artifact_inspector.report.json._document import Document
from artifact_inspector.report.json._encoding import define_shape
from artifact_inspector.report.json._finding import Finding
from artifact_inspector.report.json.comparison import CategoryName
from artifact_inspector.report.remedies import RemedyTrial

define_shape(
    RemedyTrial,
    "finding switch effect reached=reach.reached is_resolved categories facts message",
    without="reach",
    types={"finding": Finding, "categories": tuple[CategoryName, ...]},
)


@dataclass(frozen=True, slots=True)
class KernelRemedies:
    """One kernel with what was tried of it."""

    artifact: Artifact
    trials: tuple[RemedyTrial, ...]
    notes: tuple[str, ...]
    """On how it was compiled."""


define_shape(
    KernelRemedies,
    "name=artifact.display_name hash=artifact.hash directory=artifact.directory target=artifact.target.arch",
    without="artifact",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class RemediesDocument(Document):
    """What the switches that findings suggest make of kernels: `inspect-kernel findings --try --json`."""

    document: Literal["remedies"] = "remedies"
    kernels: tuple[KernelRemedies, ...]
    findings_without_switch: int
    """Findings that no switch is a remedy of."""


def remedies_document(
    kernels: Sequence[tuple[KernelFacts, Sequence[RemedyTrial], Sequence[str]]], untried: int
) -> RemediesDocument:
    """What was tried, as JSON."""
    return RemediesDocument(
        kernels=tuple(KernelRemedies(kernel.artifact, tuple(tried), tuple(notes)) for kernel, tried, notes in kernels),
        findings_without_switch=untried,
    )
