"""Why the facts of a kernel differ from its record, according to its files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from artifact_inspector.comparison.fact_pair import FactPair, codes_of
from artifact_inspector.facts.kernel import KernelFacts
from artifact_inspector.findings import find_findings
from artifact_inspector.model.location import base_name
from artifact_inspector.model.region import RegionId
from artifact_inspector.vocabulary.fact import Category
from artifact_inspector.vocabulary.names import is_loop_name, name_regions, step_of

_OF_LOADS = frozenset(category.value for category in (Category.VERDICT, Category.WAITS, Category.IN_FLIGHT))


class ChangeReason(NamedTuple):
    """What explains a change, with the line of the user's code."""

    description: str
    evidence: str
    """`ttir line 27`; empty if only the source line is known."""
    source: str | None
    """`matmul.py:40`; None if no line is known."""


class Explanation(NamedTuple):
    """A reason, and the categories of the facts that it explains; it says nothing about others."""

    reason: ChangeReason
    categories: frozenset[str]


def find_reason(
    kernel: KernelFacts, facts: Sequence[FactPair], names: Mapping[str, str], lines: Mapping[str, int]
) -> Explanation | None:
    """The reason for the differing facts, from the files of the right kernel.

    Why a loop is not pipelined, else the message of a new finding, else the first stage with a different verdict.

    Args:
        names: of the kernel's regions.
        lines: region by its name → its line in the source.
    """
    differing = [fact for fact in facts if fact.differs]
    verdicts = [fact for fact in differing if fact.category == Category.VERDICT]
    regions = {fact.region for fact in verdicts}
    for region, pipeline in kernel.pipelines.items():
        name = names.get(region, region)
        if name in regions and pipeline.unpipelined_reason is not None:
            evidence = ", ".join(f"{e.stage.value} line {e.line}" for e in pipeline.evidence[:2])
            source = _line_of(kernel, lines.get(name))
            description = f"{_name_place(name, lines)} is not pipelined: {pipeline.unpipelined_reason}"
            return Explanation(ChangeReason(description, evidence, source), _OF_LOADS)
    new = {
        code
        for fact in differing
        if fact.category == Category.FINDINGS
        for code in codes_of(fact.right) - codes_of(fact.left)
    }
    for finding in find_findings(kernel):
        if finding.code in new:
            sources = finding.remark.sources
            reason = ChangeReason(f"{finding.code}: {finding.remark.message}", "", sources[0] if sources else None)
            return Explanation(reason, frozenset({Category.FINDINGS.value}))
    if not verdicts:
        return None
    first = verdicts[0]
    stage = next((candidate_stage for candidate_stage in kernel.stages if step_of(candidate_stage) == first.step), None)
    if stage is None:
        return None
    region_name = _name_place(first.region, lines)
    description = f"the order of loads and computes in {region_name} first differs at {stage.value} ({stage.producer})"
    return Explanation(ChangeReason(description, "", _line_of(kernel, lines.get(first.region))), _OF_LOADS)


def lines_of(kernel: KernelFacts) -> dict[str, int]:
    """Name of a region → its first source line, if the kernel's stages have locations."""
    line_by_name: dict[str, int] = {}
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
        region_id = RegionId.parse(region)
        line = region_id.position if region_id.position is not None and region_id.is_line else min(sources, default=0)
        if line:
            line_by_name[name] = line
    return line_by_name


def _name_place(region: str, lines: Mapping[str, int]) -> str:
    return f"the loop at line {lines[region]}" if is_loop_name(region) and region in lines else region


def _line_of(kernel: KernelFacts, line: int | None) -> str | None:
    location = None if kernel.program is None else kernel.program.location
    if line is None or location is None:
        return None
    return f"{base_name(location.file)}:{line}"
