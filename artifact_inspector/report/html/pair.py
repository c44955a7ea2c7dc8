"""The page of two kernels: the first divergence, the facts of both, and their files linked by source."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from artifact_inspector.comparison.consequence import rank_of
from artifact_inspector.comparison.pair import FactPair, Pair, RegionPair, Side, StagePair, State
from artifact_inspector.facts.modules import Disassemble
from artifact_inspector.model import Consequence
from artifact_inspector.report.diff import describe_parting, describe_turn, side_labels, value_text
from artifact_inspector.report.html.book import Leaf
from artifact_inspector.report.html.code import Code, linked_code
from artifact_inspector.report.html.drawings import Drawing, draw_pair
from artifact_inspector.report.html.kernel import identify
from artifact_inspector.report.html.page import fragment
from artifact_inspector.report.html.sources import Sources
from artifact_inspector.vocabulary.rows import CATEGORIES


@dataclass(frozen=True, slots=True)
class PairSide:
    """One of the two kernels."""

    label: str
    name: str
    identity: tuple[str, ...]
    hash: str


@dataclass(frozen=True, slots=True)
class StepLine:
    """A region at one stage of both kernels."""

    stage: str
    left: str
    right: str
    agree: bool | None
    """None if it cannot be compared."""
    parts: bool
    """True for the first divergence."""
    who: str
    """The compiler component of the stage; only for the first divergence."""


@dataclass(frozen=True, slots=True)
class RegionLines:
    """A region at every stage."""

    name: str
    ids: str
    lines: tuple[StepLine, ...]


@dataclass(frozen=True, slots=True)
class FactCells:
    """One fact of both kernels."""

    label: str
    unit: str
    left: str
    right: str
    why: str
    """Why it was not compared."""
    is_decisive: bool
    """True if it affects whether the kernel launches or how fast it is."""


@dataclass(frozen=True, slots=True)
class PairView:
    """The content of the page of two kernels."""

    title: str
    sides: tuple[PairSide, PairSide]
    differences: tuple[tuple[str, str, str], ...]
    """Names and values of what distinguishes the two."""
    partings: tuple[str, ...]
    turns: tuple[str, ...]
    passes: tuple[str, ...]
    regions: tuple[RegionLines, ...]
    apart: tuple[FactCells, ...]
    """Facts that differ, the most costly first."""
    open: tuple[FactCells, ...]
    """Facts that could not be compared."""
    same: tuple[FactCells, ...]
    notes: tuple[str, ...]
    drawings: tuple[Drawing, ...]
    code: Code


def view_pair(
    pair: Pair, sources: Sources, disassemble: Disassemble | None = None, passes: Sequence[str] = ()
) -> PairView:
    """The content of the page of two kernels.

    Args:
        passes: sentences on the compiler pass behind each fact; empty if not requested.
    """
    labels = side_labels(pair)
    facts = (*pair.options, *pair.facts)
    apart = sorted((fact for fact in facts if fact.differs), key=_rank)
    parting = pair.parting
    told = [region for region in pair.regions if region.is_principal or region.parting is not None]
    names = (pair.left.artifact.display_name, pair.right.artifact.display_name)
    return PairView(
        title=names[0] if names[0] == names[1] else f"{names[0]} and {names[1]}",
        sides=(
            PairSide(labels[0], names[0], tuple(identify(pair.left)), pair.left.artifact.hash),
            PairSide(labels[1], names[1], tuple(identify(pair.right)), pair.right.artifact.hash),
        ),
        differences=tuple(
            (one.what, value_text(one.left), value_text(one.right)) for one in pair.differences
        ),
        partings=tuple(filter(None, (describe_parting(pair, region) for region in pair.regions))),
        turns=tuple(describe_turn(turn, labels, region.name) for region in told for turn in region.turns),
        passes=tuple(passes),
        regions=tuple(map(_region, told)),
        apart=tuple(map(_cells, apart)),
        open=tuple(_cells(fact) for fact in facts if fact.state is State.NOT_COMPARED),
        same=tuple(_cells(fact) for fact in facts if fact.state is State.SAME),
        notes=pair.notes,
        drawings=tuple(draw_pair(pair)),
        code=linked_code(
            {labels[0]: pair.left, labels[1]: pair.right},
            sources,
            disassemble,
            look_at="" if parting is None else parting.step,
        ),
    )


def leaf_of_pair(view: PairView, name: str) -> Leaf:
    """The detail page of two kernels."""
    return Leaf(name, fragment("pair.html", pair=view, id=name), view.code)


def _rank(fact: FactPair) -> tuple[int, int]:
    if fact.category not in CATEGORIES:
        return Consequence.REST.rank, len(CATEGORIES)
    return rank_of(fact), CATEGORIES.index(fact.category)


def _cells(fact: FactPair) -> FactCells:
    left, right = (
        "?" if value is None and fact.state is State.NOT_COMPARED else value_text(value)
        for value in (fact.left, fact.right)
    )
    label = f"{fact.region}: {fact.title}" if fact.region else fact.title
    return FactCells(
        label, fact.unit, left, right, fact.why, fact.differs and _rank(fact)[0] < Consequence.IN_FLIGHT.rank
    )


def _region(region: RegionPair) -> RegionLines:
    ids = dict.fromkeys(name for name in (region.left, region.right) if name not in (None, region.name))
    return RegionLines(region.name, " | ".join(map(str, ids)), tuple(_steps(region)))


def _steps(region: RegionPair) -> Iterator[StepLine]:
    for stage in region.stages:
        parts = region.parting is not None and stage.step == region.parting.step
        who = " or ".join(region.parting.components) if parts and region.parting is not None else ""
        yield StepLine(
            _stage_name(stage),
            _phrase(stage.left, stage),
            _phrase(stage.right, stage),
            stage.agree,
            parts,
            who,
        )


def _stage_name(stage: StagePair) -> str:
    names = dict.fromkeys(side.stage.value for side in (stage.left, stage.right) if side is not None)
    return " | ".join(names) or stage.step


def _phrase(side: Side | None, stage: StagePair) -> str:
    if side is None:
        return "no such region" if stage.compared else "no such stage"
    return side.region.phrase
