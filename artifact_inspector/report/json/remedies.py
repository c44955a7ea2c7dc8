"""What became of kernels with the switches that their findings suggest, as JSON: `findings --try --json`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from artifact_inspector.comparison.pair import FactPair
from artifact_inspector.facts.kernel import KernelFacts
from artifact_inspector.files.cache import Artifact
from artifact_inspector.findings import Switch
from artifact_inspector.report.json._document import Document
from artifact_inspector.report.json._encoding import shape
from artifact_inspector.report.json._finding import Finding
from artifact_inspector.report.json.comparison import CategoryName
from artifact_inspector.report.remedies import Tried, describe_tried


@dataclass(frozen=True, slots=True)
class TriedDocument:
    """One switch, and what became of the kernel with it."""

    finding: Finding
    switch: Switch
    answer: str
    """What it changed, as a sentence."""
    reached: bool | None
    """Whether it reached the code; null where the kernel was not compiled with it."""
    is_gone: bool | None
    """Whether no finding of that code is made any more."""
    categories: tuple[CategoryName, ...]
    """What the differing facts are about, most telling first."""
    facts: tuple[FactPair, ...]
    """Those that differ."""
    message: str | None
    """Why the kernel was not compiled."""


@dataclass(frozen=True, slots=True)
class KernelRemedies:
    """One kernel with what was tried of it."""

    artifact: Artifact
    tried: tuple[TriedDocument, ...]
    notes: tuple[str, ...]
    """On how it was compiled."""


shape(
    KernelRemedies,
    "name=artifact.display_name hash=artifact.hash directory=artifact.directory target=artifact.target.arch",
    without="artifact",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class RemediesDocument(Document):
    """What the switches that findings suggest make of kernels: `inspect-kernel findings --try --json`."""

    document: Literal["remedies"] = "remedies"
    kernels: tuple[KernelRemedies, ...]
    untried: int
    """Findings that no switch is a remedy of."""


def remedies_document(
    kernels: Sequence[tuple[KernelFacts, Sequence[Tried], Sequence[str]]], untried: int
) -> RemediesDocument:
    """What was tried, as JSON."""
    return RemediesDocument(
        kernels=tuple(
            KernelRemedies(kernel.artifact, tuple(map(_tried, tried)), tuple(notes))
            for kernel, tried, notes in kernels
        ),
        untried=untried,
    )


def _tried(one: Tried) -> TriedDocument:
    change = None if one.reach is None else one.reach.change
    return TriedDocument(
        finding=one.finding,
        switch=one.switch,
        answer=describe_tried(one),
        reached=None if one.reach is None else one.reach.reached,
        is_gone=one.is_gone,
        categories=() if change is None else change.categories,
        facts=() if change is None else change.facts,
        message=one.message,
    )
