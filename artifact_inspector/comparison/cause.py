"""Why the facts of a kernel are others than those that were recorded: what its own files say of them now."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from artifact_inspector.comparison.fact_pair import FactPair
from artifact_inspector.facts.kernel import KernelFacts
from artifact_inspector.findings import find_findings
from artifact_inspector.model.location import base_name
from artifact_inspector.model.region import RegionId
from artifact_inspector.vocabulary.fact import Category, Value
from artifact_inspector.vocabulary.names import name_regions, step_of

_OF_LOADS = frozenset({Category.VERDICT, Category.WAITS, Category.IN_FLIGHT})


class Reason(NamedTuple):
    """What explains a change, with the line of the user's code that it is about."""

    description: str
    evidence: str
    """`ttir line 27`; empty where the words or the line of the source are all."""
    source: str | None
    """`matmul.py:40`; None where no line is known."""


def find_reason(
    kernel: KernelFacts, facts: Sequence[FactPair], names: Mapping[str, str], lines: Mapping[str, int]
) -> Reason | None:
    """The reason for the facts that differ, as the kernel on the right tells it.

    Why a loop is not pipelined, else what a new finding says, else the first stage that made another verdict.

    Args:
        names: of the kernel's regions.
        lines: region by its name → its line in the source.
    """
    apart = [fact for fact in facts if fact.differs]
    regions = {fact.region for fact in apart if fact.category in _OF_LOADS}
    for region, pipeline in kernel.pipelines.items():
        name = names.get(region, region)
        if name in regions and pipeline.unpipelined_reason is not None:
            evidence = ", ".join(f"{e.stage.value} line {e.line}" for e in pipeline.evidence[:2])
            return Reason(f"{name}: {pipeline.unpipelined_reason}", evidence, _line_of(kernel, lines.get(name)))
    new = {code for fact in apart if fact.category == Category.FINDINGS for code in _news(fact)}
    for finding in find_findings(kernel):
        if finding.code in new:
            sources = finding.remark.sources
            return Reason(f"{finding.code}: {finding.remark.message}", "", sources[0] if sources else None)
    verdicts = [fact for fact in apart if fact.category == Category.VERDICT]
    if not verdicts:
        return None
    first = verdicts[0]
    stage = next((one for one in kernel.stages if step_of(one) == first.step), None)
    if stage is None:
        return None
    description = f"{first.region}: the verdict first differs at {stage.value} ({stage.producer})"
    return Reason(description, "", _line_of(kernel, lines.get(first.region)))


def lines_of(kernel: KernelFacts) -> dict[str, int]:
    """Region by its name → its first line in the source, where the kernel's stages tell it."""
    found: dict[str, int] = {}
    for region, name in name_regions(kernel).items():
        sources = [
            int(line)
            for stage in kernel.stages.values()
            for facts in (stage.region(region),)
            if facts is not None
            for placed in facts.rounds
            for line in (source.chain[-1].rpartition(":")[2] for source in placed.sources)
            if line.isdecimal()
        ]
        own = RegionId.parse(region)
        line = own.position if own.position is not None and own.is_line else min(sources, default=0)
        if line:
            found[name] = line
    return found


def _news(fact: FactPair) -> frozenset[str]:
    return _codes(fact.right) - _codes(fact.left)


def _codes(value: Value) -> frozenset[str]:
    return frozenset(value) if isinstance(value, tuple) else frozenset()


def _line_of(kernel: KernelFacts, line: int | None) -> str | None:
    place = None if kernel.program is None else kernel.program.location
    if line is None or place is None:
        return None
    return f"{base_name(place.file)}:{line}"
