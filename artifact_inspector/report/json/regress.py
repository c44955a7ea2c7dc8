"""What got worse between two sides, as JSON: `regress --json`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from artifact_inspector.comparison.matching import Axis, Candidate
from artifact_inspector.comparison.regressions import KernelOutcome, Regressions
from artifact_inspector.report.json._document import Document
from artifact_inspector.report.json._encoding import define_shape
from artifact_inspector.report.json.comparison import AmbiguousGroup, SideProblem, across, ambiguous
from artifact_inspector.vocabulary.fact import Sign

define_shape(
    KernelOutcome,
    "name=change.right.artifact.display_name direction headline price left=change.left right=change.right"
    " degree=change.degree facts=change.facts",
    without="change",
    types={"direction": Sign},
)


@dataclass(frozen=True, slots=True, kw_only=True)
class RegressDocument(Document):
    """What got worse between two sides: `inspect-kernel regress --json`."""

    document: Literal["regress"] = "regress"
    regressed: bool
    """True if any kernel got worse."""
    across: tuple[Axis, ...]
    """What was allowed to differ."""
    counts: Mapping[Sign, int]
    """Direction → kernels."""
    unchanged: int
    """Kernels whose code is equal."""
    kernels: tuple[KernelOutcome, ...]
    """Worst first; without kernels whose code is equal."""
    only_left: tuple[Candidate, ...]
    only_right: tuple[Candidate, ...]
    ambiguous: tuple[AmbiguousGroup, ...]
    problems: tuple[SideProblem, ...]


def regress_document(regressions: Regressions) -> RegressDocument:
    """The outcomes as JSON."""
    corpus = regressions.corpus
    return RegressDocument(
        regressed=regressions.count(Sign.WORSE) > 0,
        across=across(corpus.matching),
        counts={sign: regressions.count(sign) for sign in Sign},
        unchanged=regressions.unchanged,
        kernels=regressions.outcomes,
        only_left=corpus.matching.left,
        only_right=corpus.matching.right,
        ambiguous=ambiguous(corpus.matching),
        problems=tuple(SideProblem(side, problem) for side, problem in corpus.problems),
    )
