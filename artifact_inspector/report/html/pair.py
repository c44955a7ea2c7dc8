"""The page of two kernels: the first divergence, the facts of both, and their files linked by source."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from artifact_inspector.comparison.consequence import rank_of
from artifact_inspector.comparison.decisive_phrases import value_text
from artifact_inspector.comparison.fact_pair import FactPair, State
from artifact_inspector.comparison.pair import Comparison, KernelRegion, RegionPair, StagePair
from artifact_inspector.facts.modules import Disassemble
from artifact_inspector.model import Consequence
from artifact_inspector.report.diff import describe_divergence, describe_verdict_change, side_labels
from artifact_inspector.report.html.code import linked_code
from artifact_inspector.report.html.drawings import draw_pair
from artifact_inspector.report.html.kernel import identify
from artifact_inspector.report.html.rendering import render_fragment
from artifact_inspector.report.html.sources import Sources
from artifact_inspector.report.html.table_page import DetailPage
from artifact_inspector.vocabulary.rows import CATEGORIES


def make_pair_detail(
    pair: Comparison,
    sources: Sources,
    detail_id: str,
    disassemble: Disassemble | None = None,
    passes: Sequence[str] = (),
) -> DetailPage:
    """The detail page of two kernels. `passes`: sentences on the compiler pass behind each fact, if requested."""
    labels = side_labels(pair)
    kernels = dict(zip(labels, (pair.left, pair.right), strict=True))
    facts = (*pair.options, *pair.facts)
    divergence = pair.first_divergence
    listed_regions = [region for region in pair.regions if region.is_principal or region.first_divergence is not None]
    code = linked_code(kernels, sources, disassemble, first_stage="" if divergence is None else divergence.step)
    view = {
        "title": " and ".join(dict.fromkeys(kernel.artifact.display_name for kernel in kernels.values())),
        "sides": [
            {"label": label, "identity": [*identify(kernel)], "artifact": kernel.artifact}
            for label, kernel in kernels.items()
        ],
        "divergences": [*filter(None, (describe_divergence(pair, region) for region in pair.regions))],
        "verdict_changes": [
            describe_verdict_change(change, labels, region.name)
            for region in listed_regions
            for change in region.verdict_changes
        ],
        "passes": passes,
        "regions": [
            {
                "name": region.name,
                "ids": " | ".join(
                    dict.fromkeys(x for x in (region.left, region.right) if x not in (None, region.name))
                ),
                "lines": [*_steps(region)],
            }
            for region in listed_regions
        ],
        "differing": [*map(_cells, sorted((fact for fact in facts if fact.differs), key=_rank))],
        "incomparable": [_cells(fact) for fact in facts if fact.state is State.NOT_COMPARED],
        "equal": [_cells(fact) for fact in facts if fact.state is State.SAME],
        "notes": pair.notes,
        "drawings": [*draw_pair(pair)],
        "code": code,
    }
    return DetailPage(detail_id, render_fragment("pair.html", pair=view, id=detail_id), code)


def _rank(fact: FactPair) -> tuple[int, int]:
    if fact.category not in CATEGORIES:
        return Consequence.OTHER.rank, len(CATEGORIES)
    return rank_of(fact), CATEGORIES.index(fact.category)


def _cells(fact: FactPair) -> dict[str, object]:
    """One fact of both kernels; it is decisive if it affects whether the kernel launches or how fast it is."""
    left, right = (
        "?" if value is None and fact.state is State.NOT_COMPARED else value_text(value)
        for value in (fact.left, fact.right)
    )
    label = f"{fact.region}: {fact.title}" if fact.region else fact.title
    is_decisive = fact.differs and _rank(fact)[0] < Consequence.IN_FLIGHT.rank
    named = {"label": label, "unit": fact.unit, "reason": fact.reason}
    return {**named, "left": left, "right": right, "is_decisive": is_decisive}


def _steps(region: RegionPair) -> Iterator[dict[str, object]]:
    """The region at each stage of both kernels, and the compiler component of the first divergence."""
    divergence = region.first_divergence
    for stage in region.stages:
        is_divergence = divergence is not None and stage.step == divergence.step
        names = dict.fromkeys(side.stage.value for side in (stage.left, stage.right) if side is not None)
        yield {
            "stage": " | ".join(names) or stage.step,
            "left": _phrase(stage.left, stage),
            "right": _phrase(stage.right, stage),
            "agree": stage.agree,
            "is_divergence": is_divergence,
            "component": " or ".join(divergence.components) if is_divergence and divergence is not None else "",
        }


def _phrase(side: KernelRegion | None, stage: StagePair) -> str:
    if side is None:
        return "no such region" if stage.compared else "no such stage"
    return side.region.phrase
