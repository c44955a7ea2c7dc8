"""Comparisons as JSON: two kernels, two caches, all variants of a kernel."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

from artifact_inspector.comparison.corpus import GATES, Change, Corpus, Degree
from artifact_inspector.comparison.fact_pair import FactPair
from artifact_inspector.comparison.headline import Headline, headlines_of_pair
from artifact_inspector.comparison.matching import Axis, Candidate, Difference, Matching
from artifact_inspector.comparison.matrix import Matrix, shown_columns
from artifact_inspector.comparison.pair import (
    Comparison,
    FirstDivergence,
    KernelRegion,
    RegionPair,
    StagePair,
    VerdictChange,
)
from artifact_inspector.comparison.pair_price import PairPrice
from artifact_inspector.comparison.variant_causes import Causes
from artifact_inspector.files.cache import Problem
from artifact_inspector.report.json._document import Document
from artifact_inspector.report.json._encoding import TextExamples, define_shape
from artifact_inspector.report.json.stages import Verdict
from artifact_inspector.vocabulary.fact import Sign, Value
from artifact_inspector.vocabulary.names import STEPS
from artifact_inspector.vocabulary.rows import CATEGORIES

CategoryName = Annotated[str, TextExamples(CATEGORIES)]
GateName = Annotated[str, TextExamples(GATES)]
SideName = Annotated[str, TextExamples(("left", "right"))]
StepName = Annotated[str, TextExamples(STEPS)]

define_shape(
    Candidate,
    "name=artifact.display_name hash=artifact.hash directory=artifact.directory target"
    " triton_version=artifact.triton_version signature=program.signature tiles=program.tiles options",
    without="artifact problems",
    title="Identity",
)
define_shape(
    FactPair,
    "key category label=title unit region",
    without="step unknown",
    empty="unit region reason",
    types={"category": Annotated[str, TextExamples((*CATEGORIES, "options"))]},
    title="Fact",
)
define_shape(PairPrice, empty="problem", rounded={"ratio": 3, "left_cycles": 1, "right_cycles": 1})
define_shape(
    Headline,
    "key=fact.key direction=fact.direction sentence source reason",
    without="fact phrase origin",
    empty="reason",
)
define_shape(FirstDivergence, types={"step": StepName})
define_shape(VerdictChange, types={"step": StepName, "side": SideName})
define_shape(
    KernelRegion,
    "stage verdict=region.verdict phrase=region.phrase signature=region.signature rounds",
    without="region",
    types={"verdict": Verdict},
)
define_shape(StagePair, "step agree", without="compared", types={"step": StepName})
define_shape(RegionPair, "name left right is_main=is_principal")
define_shape(
    Change,
    "left right degree categories differences first_divergence=pair.first_divergence direction headline facts"
    " not_compared=notes",
    without="compared_facts pair lines headlines",
    empty="first_difference",
    types={"categories": tuple[CategoryName, ...], "direction": Sign},
)


@dataclass(frozen=True, slots=True, kw_only=True)
class PairDocument(Document):
    """Two kernels compared: `inspect-kernel diff --json` of two kernels."""

    document: Literal["pair"] = "pair"
    left: Candidate
    right: Candidate
    same: bool
    differences: tuple[Difference, ...]
    """The properties in which they are not the same kernel."""
    first_divergence: FirstDivergence | None
    """Of the first region that differs, the main loop before all others."""
    options: tuple[FactPair, ...]
    facts: tuple[FactPair, ...]
    regions: tuple[RegionPair, ...]
    """The main loop first."""
    not_compared: tuple[str, ...]
    headline: Headline | None
    """The decisive fact as a sentence; null if no fact is better or worse."""
    price: PairPrice | None
    """The predicted times of a launch of both; null if no launch is given or on record."""


@dataclass(frozen=True, slots=True)
class AmbiguousGroup:
    """Kernels of both sides with several possible pairs."""

    left: tuple[Candidate, ...]
    right: tuple[Candidate, ...]


@dataclass(frozen=True, slots=True)
class SideProblem:
    """Something on one side that could not be read, or only in part."""

    side: SideName
    problem: Problem


define_shape(SideProblem, inline="problem")


@dataclass(frozen=True, slots=True, kw_only=True)
class CorpusDocument(Document):
    """Two caches compared: `inspect-kernel diff --json` of two caches."""

    document: Literal["corpus"] = "corpus"
    same: bool
    across: tuple[Axis, ...]
    """What was allowed to differ."""
    counts: Mapping[Degree, int]
    """How much they changed → kernels."""
    by_category: Mapping[CategoryName, int]
    """Category → kernels whose facts differ in it."""
    gates: tuple[GateName, ...]
    """The gates that were checked."""
    failures: tuple[GateName, ...]
    """The gates that failed."""
    kernels: tuple[Change, ...]
    """Worst first."""
    only_left: tuple[Candidate, ...]
    only_right: tuple[Candidate, ...]
    ambiguous: tuple[AmbiguousGroup, ...]
    problems: tuple[SideProblem, ...]


@dataclass(frozen=True, slots=True)
class VariantDocument:
    """One compilation of a kernel."""

    kernel: Candidate
    verdicts: Mapping[StepName, str | None]
    """Of the main loop, by stage; null if unknown, absent without the stage."""
    figures: Mapping[Annotated[str, TextExamples(tuple(column.name for column in shown_columns()))], Value]
    """Absent if it does not apply, null if unknown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MatrixDocument(Document):
    """All variants of a kernel in a cache: `inspect-kernel matrix --json`."""

    document: Literal["matrix"] = "matrix"
    name: str
    variants: tuple[VariantDocument, ...]
    causes: Causes
    """Why it has so many variants."""


def pair_document(pair: Comparison, headline: Headline | None = None, price: PairPrice | None = None) -> PairDocument:
    """Two kernels: identities, differences, and the responsible components."""
    left, right = pair.sides
    return PairDocument(
        left=left,
        right=right,
        same=pair.is_same,
        differences=pair.differences,
        first_divergence=pair.first_divergence,
        options=pair.options,
        facts=pair.facts,
        regions=pair.regions,
        not_compared=pair.notes,
        headline=headline or next(iter(headlines_of_pair(pair)), None),
        price=price,
    )


def corpus_document(corpus: Corpus, gates: Sequence[str]) -> CorpusDocument:
    """Two caches: the summary, then every kernel, worst first."""
    return CorpusDocument(
        same=corpus.is_same,
        across=across(corpus.matching),
        counts={degree: corpus.count(degree) for degree in Degree},
        by_category=corpus.by_category,
        gates=tuple(gates),
        failures=corpus.failures(gates),
        kernels=corpus.changes,
        only_left=corpus.matching.left,
        only_right=corpus.matching.right,
        ambiguous=ambiguous(corpus.matching),
        problems=tuple(SideProblem(side, problem) for side, problem in corpus.problems),
    )


def matrix_document(matrix: Matrix) -> MatrixDocument:
    """One kernel in all its variants."""
    forms = [VariantDocument(Candidate(form.kernel.artifact), form.verdicts, form.figures) for form in matrix.variants]
    return MatrixDocument(name=matrix.name, variants=tuple(forms), causes=matrix.causes)


def across(matching: Matching) -> tuple[Axis, ...]:
    """What was allowed to differ."""
    return tuple(axis for axis in Axis if axis in matching.across)


def ambiguous(matching: Matching) -> tuple[AmbiguousGroup, ...]:
    """Groups with several possible pairs."""
    return tuple(AmbiguousGroup(left, right) for left, right in matching.ambiguous)
