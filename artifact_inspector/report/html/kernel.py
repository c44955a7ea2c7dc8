"""The page of one kernel: its limit, resources, findings, pictures, code and facts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from artifact_inspector.comparison.headline import value_text
from artifact_inspector.facts.kernel import KernelFacts
from artifact_inspector.facts.modules import Disassemble
from artifact_inspector.findings import find_findings, find_launch_findings
from artifact_inspector.findings.limit import find_first, find_limit
from artifact_inspector.hardware.peaks import Peaks
from artifact_inspector.report.html.code import LinkedCode, linked_code
from artifact_inspector.report.html.drawings import PictureSection, draw_kernel, draw_resources
from artifact_inspector.report.html.rendering import render_fragment
from artifact_inspector.report.html.sources import FindingView, Sources, view_finding, view_limit
from artifact_inspector.report.html.table_page import DetailPage
from artifact_inspector.report.phrases import describe_changes, describe_target, describe_verdict, plural
from artifact_inspector.report.resources import describe_resources
from artifact_inspector.vocabulary.rows import summarise

if TYPE_CHECKING:
    from artifact_inspector.execution.prediction import Prediction
    from artifact_inspector.execution.timing.residency import Residency
    from artifact_inspector.report.html.code import Heat
    from artifact_inspector.report.html.launch import LaunchView


@dataclass(frozen=True, slots=True)
class StageVerdict:
    """The verdict at one stage."""

    stage: str
    phrase: str
    reading: str
    changed: bool
    """True if the order of rounds changed at this stage."""


@dataclass(frozen=True, slots=True)
class FactLine:
    """One fact."""

    label: str
    value: str
    unit: str
    stage: str


@dataclass(frozen=True, slots=True)
class KernelView:
    """The content of the page of a kernel."""

    name: str
    identity: tuple[str, ...]
    hash: str
    directory: str
    lead: str
    """Heading of the limit."""
    limit: FindingView
    findings: tuple[FindingView, ...]
    steps: tuple[StageVerdict, ...]
    region: str
    changes: tuple[str, ...]
    resources: tuple[tuple[str, str], ...]
    facts: tuple[tuple[str, tuple[FactLine, ...]], ...]
    """By region; facts of the whole kernel first."""
    problems: tuple[str, ...]
    occupancy: PictureSection
    drawings: tuple[PictureSection, ...]
    launch: LaunchView | None
    """None without a predicted launch."""
    code: LinkedCode


def view_kernel(
    kernel: KernelFacts,
    sources: Sources,
    disassemble: Disassemble | None = None,
    launch: Prediction | None = None,
    peaks: Peaks | None = None,
    residency: Residency | None = None,
) -> KernelView:
    """The content of the page of a kernel; reads its files again for the pictures.

    Args:
        launch: the prediction of a launch.
        peaks: of the target GPU.
        residency: the modelled schedule of its first warps on an SM.
    """
    heat: dict[str, Heat] = {}
    launch_view: LaunchView | None = None
    if launch is not None:
        from artifact_inspector.report.html.launch import line_counters, view_launch

        heat, launch_view = line_counters(launch), view_launch(launch, sources, peaks, residency)
    code = linked_code({"": kernel}, sources, disassemble, heat)
    findings = find_findings(kernel)
    launch_findings = () if launch is None else find_launch_findings(launch)
    first, limit = find_first(findings, launch_findings), find_limit(kernel, launch_findings)
    artifact = kernel.artifact
    return KernelView(
        name=artifact.display_name,
        identity=tuple(identify(kernel)),
        hash=artifact.hash,
        directory=artifact.directory,
        lead=limit.lead or "What limits it",
        limit=view_limit(limit, first, sources),
        findings=tuple(view_finding(finding, sources) for finding in findings if finding is not first),
        steps=tuple(_steps(kernel)),
        region=kernel.principal or "",
        changes=()
        if kernel.principal is None
        else tuple(" ".join(x) for x in describe_changes(kernel, kernel.principal)),
        resources=tuple(describe_resources(kernel, ())),
        facts=_facts(kernel),
        problems=tuple(f"{problem.path}: {problem.problem}" for problem in kernel.problems),
        occupancy=draw_resources(kernel),
        drawings=tuple(draw_kernel(kernel)),
        launch=launch_view,
        code=code,
    )


def make_detail(view: KernelView, detail_id: str, variant: str) -> DetailPage:
    """The detail page of a kernel.

    Args:
        detail_id: id of the detail page.
        variant: the label of its variant.
    """
    return DetailPage(detail_id, render_fragment("kernel.html", kernel=view, id=detail_id, form=variant), view.code)


def identify(kernel: KernelFacts) -> Iterator[str]:
    """Target, Triton version, warps, num_stages and shared memory of a kernel."""
    artifact = kernel.artifact
    yield describe_target(kernel)
    yield "Triton unknown" if artifact.triton_version is None else f"Triton {artifact.triton_version}"
    if artifact.num_warps is not None:
        yield f"{artifact.num_warps} {plural('warp', artifact.num_warps)}"
    if artifact.num_stages is not None:
        yield f"num_stages {artifact.num_stages}"
    if artifact.shared_bytes is not None:
        yield f"{artifact.shared_bytes} B of shared memory"


def _steps(kernel: KernelFacts) -> Iterator[StageVerdict]:
    changed = kernel.changed_at
    for stage, facts in kernel.stages.items():
        region = facts.region(kernel.principal or "")
        if region is None:
            yield StageVerdict(stage.value, "no such region", "", False)
        else:
            yield StageVerdict(stage.value, region.phrase, describe_verdict(region.verdict) or "", stage is changed)


def _facts(kernel: KernelFacts) -> tuple[tuple[str, tuple[FactLine, ...]], ...]:
    groups: dict[str, list[FactLine]] = {}
    for row in summarise(kernel).rows:
        value = "?" if row.value is None else value_text(row.value)
        line = FactLine(row.label.strip(), value, row.unit, row.step)
        groups.setdefault(row.region or "whole kernel", []).append(line)
    return tuple((name, tuple(lines)) for name, lines in groups.items())
