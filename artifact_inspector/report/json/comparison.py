"""Comparisons as JSON: two kernels, two caches, one kernel in every form."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal, TypedDict

from artifact_inspector.comparison.corpus import GATES, Change, Corpus, Degree
from artifact_inspector.comparison.matching import Axis, Candidate, Difference, Matching
from artifact_inspector.comparison.matrix import COLUMNS, Matrix
from artifact_inspector.comparison.pair import (
    FactPair,
    Pair,
    Parting,
    RegionPair,
    Side,
    StagePair,
    State,
    Turn,
)
from artifact_inspector.report.json._types import SCHEMA_VERSION, Lines, SchemaVersion, StageName, Words
from artifact_inspector.report.json.stages import Verdict
from artifact_inspector.vocabulary.rows import CATEGORIES, STEPS, Value

__all__ = [
    "CategoryName",
    "ChangeJson",
    "CorpusJson",
    "DegreeName",
    "FactJson",
    "GateName",
    "IdentityJson",
    "MatrixJson",
    "PairJson",
    "change",
    "corpus_document",
    "identity",
    "matrix_document",
    "pair_document",
]

AxisName = Annotated[str, Words(tuple(axis.value for axis in Axis))]
CategoryName = Annotated[str, Words(CATEGORIES)]
DegreeName = Annotated[str, Words(tuple(degree.value for degree in Degree))]
GateName = Annotated[str, Words(GATES)]
SideName = Annotated[str, Words(("left", "right"))]
StepName = Annotated[str, Words(STEPS)]


class IdentityJson(TypedDict):
    """What a kernel is known by."""

    name: str
    hash: str
    directory: str
    """Of its entry, from the cache directory."""
    target: str | None
    """Its architecture, as `sm_80` or `gfx942`."""
    triton_version: str | None
    signature: tuple[str, ...] | None
    """Types of its arguments, `*fp16:16` for a pointer that 16 divides; null without tensor-level IR."""
    tiles: tuple[str, ...] | None
    """Shapes of what it loads, multiplies and stores."""
    options: dict[str, Value]
    """What was chosen when it was compiled, by the metadata."""


class DifferenceJson(TypedDict):
    """One thing in which two kernels are not the same kernel."""

    axis: AxisName
    what: str
    left: Value
    right: Value


class FactJson(TypedDict):
    """One fact of two kernels."""

    key: str
    """What it is called wherever kernels are compared, as `loop1.verdict.ttgir`."""
    category: Annotated[str, Words((*CATEGORIES, "options"))]
    label: str
    unit: str | None
    region: str | None
    """`loop1`, `straight`: by its order in the program; null for the whole kernel."""
    left: Value
    """Null where that kernel lacks it, or does not know it."""
    right: Value
    state: Annotated[str, Words(tuple(state.value for state in State))]
    why: str | None
    """For what is not compared: the reason."""


class PartingJson(TypedDict):
    """Where the verdicts of two kernels first differ."""

    step: StepName
    components: tuple[str, ...]
    """Who may have done it: one, or several where stages in between are missing."""
    left: str
    right: str
    left_lines: tuple[Lines, ...]
    """First and last line of each round, in the file of the stage."""
    right_lines: tuple[Lines, ...]


class TurnJson(TypedDict):
    """Where a kernel's verdict first differs from its own previous stage."""

    side: SideName
    step: StepName
    components: tuple[str, ...]
    before: str
    after: str
    lines: tuple[Lines, ...]


class PlacedRoundJson(TypedDict):
    """Where one round stands."""

    loads: int
    first_load: int | None
    last_load: int | None
    first_compute: int | None
    last_compute: int | None


class SideJson(TypedDict):
    """A region at one stage of one kernel."""

    stage: StageName
    verdict: Verdict
    phrase: str
    """The verdict as it is printed."""
    signature: str
    rounds: list[PlacedRoundJson]


class StagePairJson(TypedDict):
    """A region at one stage of both kernels."""

    step: StepName
    agree: bool | None
    """Whether both have the same verdict; null where it cannot be told."""
    left: SideJson | None
    right: SideJson | None


class RegionPairJson(TypedDict):
    """A region of the program in both kernels."""

    name: str
    """`loop1`, `straight`: by its order in the program."""
    left: str | None
    """Its id there; null where that kernel has no such region."""
    right: str | None
    principal: bool
    stages: list[StagePairJson]
    parting: PartingJson | None
    turns: list[TurnJson]


class PairJson(TypedDict):
    """Two kernels held against each other: `inspect-kernel diff --json` of two kernels."""

    schema_version: SchemaVersion
    document: Literal["pair"]
    left: IdentityJson
    right: IdentityJson
    same: bool
    differences: list[DifferenceJson]
    """In what they are not the same kernel."""
    parting: PartingJson | None
    """Of the first region that parts, the principal one before all others."""
    options: list[FactJson]
    facts: list[FactJson]
    regions: list[RegionPairJson]
    """The principal one first."""
    not_compared: tuple[str, ...]


class ChangeJson(TypedDict):
    """One kernel on both sides."""

    left: IdentityJson
    right: IdentityJson
    degree: DegreeName
    categories: list[CategoryName]
    """What the differing facts are about, most telling first."""
    differences: list[DifferenceJson]
    parting: PartingJson | None
    facts: list[FactJson]
    """Those that differ, most telling first."""
    not_compared: tuple[str, ...]


class GroupJson(TypedDict):
    """Kernels of both sides of which several could be meant."""

    left: list[IdentityJson]
    right: list[IdentityJson]


class SideProblemJson(TypedDict):
    """Something on one side that could not be read, or only in part."""

    side: SideName
    path: str
    """From that side's cache directory."""
    problem: str


class CorpusJson(TypedDict):
    """Two caches held against each other: `inspect-kernel diff --json` of two caches."""

    schema_version: SchemaVersion
    document: Literal["corpus"]
    same: bool
    across: list[AxisName]
    """What was allowed to differ."""
    counts: dict[DegreeName, int]
    """How much they changed → kernels."""
    by_category: dict[CategoryName, int]
    """Category → kernels whose facts differ in it."""
    gates: list[GateName]
    """What it was asked to fail on."""
    failures: list[GateName]
    """Those that are shut."""
    kernels: list[ChangeJson]
    """Worst first."""
    only_left: list[IdentityJson]
    only_right: list[IdentityJson]
    ambiguous: list[GroupJson]
    problems: list[SideProblemJson]


class FormJson(TypedDict):
    """One compilation of a kernel."""

    kernel: IdentityJson
    verdicts: dict[StepName, str | None]
    """Of the principal region, by stage; null where it is not known, absent without the stage."""
    figures: dict[Annotated[str, Words(tuple(column.name for column in COLUMNS))], Value]
    """Absent where it does not apply, null where it is not known."""


class MatrixJson(TypedDict):
    """One kernel in every form that a cache has: `inspect-kernel matrix --json`."""

    schema_version: SchemaVersion
    document: Literal["matrix"]
    name: str
    forms: list[FormJson]


def pair_document(pair: Pair) -> PairJson:
    """Two kernels: what they are, what differs, and who made them differ."""
    return {
        "schema_version": SCHEMA_VERSION,
        "document": "pair",
        "left": identity(pair.sides[0]),
        "right": identity(pair.sides[1]),
        "same": pair.is_same,
        "differences": [_difference(found) for found in pair.differences],
        "parting": None if pair.parting is None else _parting(pair.parting),
        "options": [_fact(fact) for fact in pair.options],
        "facts": [_fact(fact) for fact in pair.facts],
        "regions": [_region(region) for region in pair.regions],
        "not_compared": pair.notes,
    }


def corpus_document(corpus: Corpus, gates: Sequence[str]) -> CorpusJson:
    """Two caches: the summary, then every kernel, worst first."""
    matching = corpus.matching
    return {
        "schema_version": SCHEMA_VERSION,
        "document": "corpus",
        "same": corpus.is_same,
        "across": across(matching),
        "counts": {degree.value: corpus.count(degree) for degree in Degree},
        "by_category": corpus.by_category,
        "gates": list(gates),
        "failures": list(corpus.failures(gates)),
        "kernels": [change(found) for found in corpus.changes],
        "only_left": [identity(candidate) for candidate in matching.left],
        "only_right": [identity(candidate) for candidate in matching.right],
        "ambiguous": ambiguous(matching),
        "problems": [
            {"side": side, "path": problem.path, "problem": problem.problem}
            for side, problem in corpus.problems
        ],
    }


def matrix_document(matrix: Matrix) -> MatrixJson:
    """One kernel in all its forms."""
    return {
        "schema_version": SCHEMA_VERSION,
        "document": "matrix",
        "name": matrix.name,
        "forms": [
            {
                "kernel": identity(Candidate(form.kernel.artifact)),
                "verdicts": dict(form.verdicts),
                "figures": dict(form.figures),
            }
            for form in matrix.forms
        ],
    }


def across(matching: Matching) -> list[str]:
    """What was allowed to differ."""
    return [axis.value for axis in Axis if axis in matching.across]


def ambiguous(matching: Matching) -> list[GroupJson]:
    """Groups in which several could be meant."""
    return [
        {"left": [identity(x) for x in left], "right": [identity(x) for x in right]}
        for left, right in matching.ambiguous
    ]


def identity(candidate: Candidate) -> IdentityJson:
    """What a kernel is known by."""
    artifact, program = candidate.artifact, candidate.program
    return {
        "name": artifact.display_name,
        "hash": artifact.hash,
        "directory": artifact.directory,
        "target": candidate.target,
        "triton_version": artifact.triton_version,
        "signature": None if program is None else program.signature,
        "tiles": None if program is None else program.tiles,
        "options": dict(candidate.options),
    }


def change(found: Change) -> ChangeJson:
    """One kernel on both sides."""
    parting = None if found.pair is None else found.pair.parting
    return {
        "left": identity(found.left),
        "right": identity(found.right),
        "degree": found.degree.value,
        "categories": list(found.categories),
        "differences": [_difference(one) for one in found.differences],
        "parting": None if parting is None else _parting(parting),
        "facts": [_fact(fact) for fact in found.facts],
        "not_compared": found.notes,
    }


def _difference(found: Difference) -> DifferenceJson:
    return {"axis": found.axis.value, "what": found.what, "left": found.left, "right": found.right}


def _fact(fact: FactPair) -> FactJson:
    return {
        "key": fact.key,
        "category": fact.category,
        "label": fact.label.strip(),
        "unit": fact.unit or None,
        "region": fact.region or None,
        "left": fact.left,
        "right": fact.right,
        "state": fact.state.value,
        "why": fact.why or None,
    }


def _region(region: RegionPair) -> RegionPairJson:
    return {
        "name": region.name,
        "left": region.left,
        "right": region.right,
        "principal": region.is_principal,
        "stages": [_stage(stage) for stage in region.stages],
        "parting": None if region.parting is None else _parting(region.parting),
        "turns": [_turn(turn) for turn in region.turns],
    }


def _stage(stage: StagePair) -> StagePairJson:
    return {
        "step": stage.step,
        "agree": stage.agree,
        "left": None if stage.left is None else _side(stage.left),
        "right": None if stage.right is None else _side(stage.right),
    }


def _side(side: Side) -> SideJson:
    region = side.region
    return {
        "stage": side.stage.value,
        "verdict": region.verdict,
        "phrase": region.phrase,
        "signature": region.signature,
        "rounds": [
            {
                "loads": found.loads,
                "first_load": found.first_load,
                "last_load": found.last_load,
                "first_compute": found.first_compute,
                "last_compute": found.last_compute,
            }
            for found in region.rounds
        ],
    }


def _parting(parting: Parting) -> PartingJson:
    return {
        "step": parting.step,
        "components": parting.components,
        "left": parting.left,
        "right": parting.right,
        "left_lines": parting.left_lines,
        "right_lines": parting.right_lines,
    }


def _turn(turn: Turn) -> TurnJson:
    return {
        "side": turn.side,
        "step": turn.step,
        "components": turn.components,
        "before": turn.before,
        "after": turn.after,
        "lines": turn.lines,
    }
