"""Comparisons as JSON: two kernels, two caches, all variants of a kernel, a change of one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated

from artifact_inspector.comparison.corpus import GATES, Change, Corpus, Degree
from artifact_inspector.comparison.fact_pair import FactPair
from artifact_inspector.comparison.headline import Headline, headlines_of_pair
from artifact_inspector.comparison.line_changes import LineChange, find_line_changes
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
from artifact_inspector.comparison.pair_price import LaunchWork, PairPrice
from artifact_inspector.comparison.reach import ComparedFile
from artifact_inspector.comparison.regressions import KernelOutcome, Regressions
from artifact_inspector.comparison.variant_causes import Causes, EntryDifference
from artifact_inspector.facts.kernel import KernelFacts
from artifact_inspector.files.cache import Artifact, Problem
from artifact_inspector.findings import Finding
from artifact_inspector.report.change_effect import EffectReport, RemedyTrial
from artifact_inspector.report.json._document import Document
from artifact_inspector.report.json._encoding import (
    INLINED,
    TextExamples,
    define_shape,
    hidden,
    named,
    narrowed,
    null_if_empty,
    present,
    rounded,
    words,
)
from artifact_inspector.report.json.cache import Verdict, identity
from artifact_inspector.vocabulary.fact import Sign, Value
from artifact_inspector.vocabulary.names import STEPS
from artifact_inspector.vocabulary.rows import CATEGORIES

CategoryName = Annotated[str, TextExamples(CATEGORIES)]
GateName = Annotated[str, TextExamples(GATES)]
SideName = Annotated[str, TextExamples(("left", "right"))]
StepName = Annotated[str, TextExamples(STEPS)]

define_shape(
    Candidate, lambda x: (
        named("name", x.artifact.display_name), x.artifact.hash, x.artifact.directory, x.target,
        x.artifact.triton_version, present(x.program).signature, present(x.program).tiles, x.options,
        *hidden(x.artifact, x.problems, x.find_program),
    ), title="Identity",
)  # fmt: skip
define_shape(
    FactPair, lambda x: (
        x.key, narrowed(x.category, words(*CATEGORIES, "options")), named("label", x.title), null_if_empty(x.unit),
        null_if_empty(x.region), x.left, x.right, x.state, null_if_empty(x.reason), x.direction, rounded(x.price, 3),
        *hidden(x.label, x.step, x.unknown),
    ), title="Fact",
)  # fmt: skip
define_shape(
    PairPrice, lambda x: (
        rounded(x.ratio, 3), rounded(x.left_cycles, 1), rounded(x.right_cycles, 1), x.left_bottleneck,
        x.right_bottleneck, x.launch, x.gpu, null_if_empty(x.problem), x.bank_conflicts, x.work,
        rounded(x.left_overlap, 3), rounded(x.right_overlap, 3), rounded(x.left_microseconds, 3),
        rounded(x.right_microseconds, 3), x.left_roofline, x.right_roofline,
        *hidden(x.facts, x.is_validated, x.same_within),
    ),
)  # fmt: skip
define_shape(LaunchWork, lambda x: (x.amount, x.left, x.right, *hidden(x.kind)))
define_shape(
    Headline, lambda x: (
        x.fact.key, x.fact.direction, x.sentence, x.source, null_if_empty(x.reason),
        *hidden(x.fact, x.phrase, x.origin),
    ),
)  # fmt: skip
define_shape(FirstDivergence, lambda x: (narrowed(x.step, StepName),))
define_shape(VerdictChange, lambda x: (narrowed(x.side, SideName), narrowed(x.step, StepName)))
define_shape(
    KernelRegion, lambda x: (
        x.stage, narrowed(x.region.verdict, Verdict), x.region.phrase, x.region.signature, x.rounds,
        *hidden(x.region),
    ),
)  # fmt: skip
define_shape(StagePair, lambda x: (narrowed(x.step, StepName), x.agree, *hidden(x.compared)))
define_shape(RegionPair, lambda x: (x.name, x.left, x.right, named("is_main", x.is_principal)))
define_shape(
    Change, lambda x: (
        x.left, x.right, x.degree, narrowed(x.categories, tuple[CategoryName, ...]), x.differences,
        present(x.pair).first_divergence, narrowed(x.direction, Sign), x.headline, x.facts,
        named("not_compared", x.notes), x.reason, null_if_empty(x.first_difference),
        *hidden(x.compared_facts, x.pair, x.lines, x.headlines, x.explanation, x.problems, x.price),
    ),
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class PairDocument(Document):
    """Two kernels compared: `inspect-kernel diff --json` of two kernels."""

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
    line_changes: tuple[LineChange, ...]
    """Source lines on which an iteration has more or fewer waits, barriers, scratch accesses or conversions."""


@dataclass(frozen=True, slots=True)
class AmbiguousGroup:
    """Kernels of both sides with several possible pairs."""

    left: tuple[Candidate, ...]
    right: tuple[Candidate, ...]


@dataclass(frozen=True, slots=True)
class SideProblem:
    """Something on one side that could not be read, or only in part."""

    side: SideName
    problem: Problem = field(metadata=INLINED)


@dataclass(frozen=True, kw_only=True)
class CorpusDocument(Document):
    """Two caches compared: `inspect-kernel diff --json` of two caches."""

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


@dataclass(frozen=True, kw_only=True)
class MatrixDocument(Document):
    """All variants of a kernel in a cache: `inspect-kernel matrix --json`."""

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
        line_changes=tuple(find_line_changes(pair)),
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


define_shape(
    KernelOutcome, lambda x: (
        named("name", x.change.right.artifact.display_name), narrowed(x.change.direction, Sign), x.change.headline,
        narrowed(x.change.price, PairPrice | None),
        x.change.left, x.change.right, x.change.degree, x.change.facts, x.passes, x.remedies,
        x.trials, null_if_empty(x.untried), *hidden(x.change),
    ),
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class RegressDocument(Document):
    """What got worse between two sides: `inspect-kernel regress --json`."""

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


@dataclass(frozen=True, kw_only=True)
class ReasonsDocument(Document):
    """Differences of two entries of a cache: `inspect-kernel why CACHE A B --json`."""

    left: str
    """Hash of the entry."""
    right: str
    """Hash of the other."""
    reasons: tuple[EntryDifference, ...]


@dataclass(frozen=True, kw_only=True)
class CausesDocument(Document):
    """Why a kernel has its number of variants: `inspect-kernel why CACHE NAME --json`."""

    name: str
    """Of the kernel."""
    causes: Causes


define_shape(ComparedFile, lambda x: (named("stage", x.suffix), x.likeness, *hidden(x.kind)))
define_shape(
    EffectReport, lambda x: (
        named("kernel", x.label), named("against", x.baseline), x.reach.reached, named("effect", x.sentence), x.at,
        x.same_from, named("stages", x.reach.files), x.reach.launch,
        narrowed(x.reach.categories, tuple[CategoryName, ...]), x.headline, x.price, x.reach.facts, x.left, x.right,
        x.reach.notes,
    ),
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class ReachDocument(Document):
    """Whether a change reached the code: `inspect-kernel try --json`."""

    reached: bool
    """Whether it did for any target."""
    results: tuple[EffectReport, ...]


def reach_document(reports: Sequence[EffectReport]) -> ReachDocument:
    """The answers as JSON."""
    return ReachDocument(reached=any(report.reach.reached for report in reports), results=tuple(reports))


define_shape(
    RemedyTrial, lambda x: (
        narrowed(x.finding, Finding), x.switch, x.effect, present(x.reach).reached, x.is_resolved,
        narrowed(x.categories, tuple[CategoryName, ...]), x.facts, x.message, *hidden(x.reach),
    ),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class KernelRemedies:
    """One kernel with what was tried of it."""

    artifact: Artifact
    trials: tuple[RemedyTrial, ...]
    notes: tuple[str, ...]
    """On how it was compiled."""


define_shape(KernelRemedies, lambda x: (*identity(x.artifact), *hidden(x.artifact)))


@dataclass(frozen=True, kw_only=True)
class RemediesDocument(Document):
    """What the switches that findings suggest make of kernels: `inspect-kernel findings --try --json`."""

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
