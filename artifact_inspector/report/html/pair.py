"""The page of two kernels: the first divergence, the facts of both, and their files linked by source."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from artifact_inspector.comparison.consequence import rank_of
from artifact_inspector.comparison.fact_pair import FactPair, State
from artifact_inspector.comparison.headline import value_text
from artifact_inspector.comparison.pair import Comparison, KernelRegion, RegionPair, StagePair
from artifact_inspector.facts.modules import Disassemble
from artifact_inspector.model import Consequence
from artifact_inspector.report.diff import describe_divergence, describe_verdict_change, side_labels
from artifact_inspector.report.html.code import LinkedCode, linked_code
from artifact_inspector.report.html.drawings import PictureSection, draw_pair
from artifact_inspector.report.html.kernel import identify
from artifact_inspector.report.html.rendering import render_fragment
from artifact_inspector.report.html.sources import Sources
from artifact_inspector.report.html.table_page import DetailPage
from artifact_inspector.vocabulary.rows import CATEGORIES


@dataclass(frozen=True, slots=True)
class KernelHeading:
    """One of the two kernels."""

    label: str
    name: str
    identity: tuple[str, ...]
    hash: str


@dataclass(frozen=True, slots=True)
class StageComparison:
    """A region at one stage of both kernels."""

    stage: str
    left: str
    right: str
    agree: bool | None
    """None if it cannot be compared."""
    is_divergence: bool
    """True for the first divergence."""
    component: str
    """The compiler component of the stage; only for the first divergence."""


@dataclass(frozen=True, slots=True)
class RegionComparison:
    """A region at every stage."""

    name: str
    ids: str
    lines: tuple[StageComparison, ...]


@dataclass(frozen=True, slots=True)
class FactComparison:
    """One fact of both kernels."""

    label: str
    unit: str
    left: str
    right: str
    reason: str
    """Why it was not compared."""
    is_decisive: bool
    """True if it affects whether the kernel launches or how fast it is."""


@dataclass(frozen=True, slots=True)
class PairView:
    """The content of the page of two kernels."""

    title: str
    sides: tuple[KernelHeading, KernelHeading]
    differences: tuple[tuple[str, str, str], ...]
    """Names and values of what distinguishes the two."""
    divergences: tuple[str, ...]
    verdict_changes: tuple[str, ...]
    passes: tuple[str, ...]
    regions: tuple[RegionComparison, ...]
    differing: tuple[FactComparison, ...]
    """Facts that differ, the most costly first."""
    incomparable: tuple[FactComparison, ...]
    """Facts that could not be compared."""
    equal: tuple[FactComparison, ...]
    notes: tuple[str, ...]
    drawings: tuple[PictureSection, ...]
    code: LinkedCode


def view_pair(
    pair: Comparison, sources: Sources, disassemble: Disassemble | None = None, passes: Sequence[str] = ()
) -> PairView:
    """The content of the page of two kernels.

    Args:
        passes: sentences on the compiler pass behind each fact; empty if not requested.
    """
    labels = side_labels(pair)
    facts = (*pair.options, *pair.facts)
    differing = sorted((fact for fact in facts if fact.differs), key=_rank)
    divergence = pair.first_divergence
    listed_regions = [region for region in pair.regions if region.is_principal or region.first_divergence is not None]
    names = (pair.left.artifact.display_name, pair.right.artifact.display_name)
    return PairView(
        title=names[0] if names[0] == names[1] else f"{names[0]} and {names[1]}",
        sides=(
            KernelHeading(labels[0], names[0], tuple(identify(pair.left)), pair.left.artifact.hash),
            KernelHeading(labels[1], names[1], tuple(identify(pair.right)), pair.right.artifact.hash),
        ),
        differences=tuple(
            (difference.facet, value_text(difference.left), value_text(difference.right))
            for difference in pair.differences
        ),
        divergences=tuple(filter(None, (describe_divergence(pair, region) for region in pair.regions))),
        verdict_changes=tuple(
            describe_verdict_change(change, labels, region.name)
            for region in listed_regions
            for change in region.verdict_changes
        ),
        passes=tuple(passes),
        regions=tuple(map(_region, listed_regions)),
        differing=tuple(map(_cells, differing)),
        incomparable=tuple(_cells(fact) for fact in facts if fact.state is State.NOT_COMPARED),
        equal=tuple(_cells(fact) for fact in facts if fact.state is State.SAME),
        notes=pair.notes,
        drawings=tuple(draw_pair(pair)),
        code=linked_code(
            {labels[0]: pair.left, labels[1]: pair.right},
            sources,
            disassemble,
            first_stage="" if divergence is None else divergence.step,
        ),
    )


def make_pair_detail(view: PairView, detail_id: str) -> DetailPage:
    """The detail page of two kernels."""
    return DetailPage(detail_id, render_fragment("pair.html", pair=view, id=detail_id), view.code)


def _rank(fact: FactPair) -> tuple[int, int]:
    if fact.category not in CATEGORIES:
        return Consequence.OTHER.rank, len(CATEGORIES)
    return rank_of(fact), CATEGORIES.index(fact.category)


def _cells(fact: FactPair) -> FactComparison:
    left, right = (
        "?" if value is None and fact.state is State.NOT_COMPARED else value_text(value)
        for value in (fact.left, fact.right)
    )
    label = f"{fact.region}: {fact.title}" if fact.region else fact.title
    return FactComparison(
        label, fact.unit, left, right, fact.reason, fact.differs and _rank(fact)[0] < Consequence.IN_FLIGHT.rank
    )


def _region(region: RegionPair) -> RegionComparison:
    ids = dict.fromkeys(name for name in (region.left, region.right) if name not in (None, region.name))
    return RegionComparison(region.name, " | ".join(map(str, ids)), tuple(_steps(region)))


def _steps(region: RegionPair) -> Iterator[StageComparison]:
    for stage in region.stages:
        is_divergence = region.first_divergence is not None and stage.step == region.first_divergence.step
        component = (
            " or ".join(region.first_divergence.components)
            if is_divergence and region.first_divergence is not None
            else ""
        )
        yield StageComparison(
            _stage_name(stage),
            _phrase(stage.left, stage),
            _phrase(stage.right, stage),
            stage.agree,
            is_divergence,
            component,
        )


def _stage_name(stage: StagePair) -> str:
    names = dict.fromkeys(side.stage.value for side in (stage.left, stage.right) if side is not None)
    return " | ".join(names) or stage.step


def _phrase(side: KernelRegion | None, stage: StagePair) -> str:
    if side is None:
        return "no such region" if stage.compared else "no such stage"
    return side.region.phrase
