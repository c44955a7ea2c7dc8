"""The page of one kernel: its limit, resources, findings, pictures, code and facts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from artifact_inspector.comparison.decisive_phrases import value_text
from artifact_inspector.facts.kept_diagnosis import diagnosis_of
from artifact_inspector.facts.kernel import KernelFacts
from artifact_inspector.facts.modules import Disassemble
from artifact_inspector.findings import find_findings, find_launch_findings
from artifact_inspector.findings.limit import find_first, find_limit
from artifact_inspector.hardware.peaks import Peaks
from artifact_inspector.report.html.code import LinkedCode, linked_code
from artifact_inspector.report.html.drawings import draw_kernel, draw_resources
from artifact_inspector.report.html.rendering import render_fragment
from artifact_inspector.report.html.sources import Sources, view_finding, view_limit
from artifact_inspector.report.html.table_page import DetailPage
from artifact_inspector.report.phrases import describe_changes, describe_target, describe_verdict, plural
from artifact_inspector.report.resources import describe_resources
from artifact_inspector.vocabulary.rows import summarise

if TYPE_CHECKING:
    from artifact_inspector.execution.prediction import Prediction
    from artifact_inspector.execution.timing.residency import Residency
    from artifact_inspector.report.html.code import Heat


@dataclass(frozen=True, slots=True)
class KernelView:
    """The content of the page of a kernel."""

    content: Mapping[str, object]
    """Name → value in the template."""
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
        residency: the modelled schedule of its first warps on an SM.
    """
    heat: dict[str, Heat] = {}
    launch_view: dict[str, object] | None = None
    if launch is not None:
        from artifact_inspector.report.html.launch import line_counters, view_launch

        heat, launch_view = line_counters(launch), view_launch(launch, sources, peaks, residency)
    code = linked_code({"": kernel}, sources, disassemble, heat)
    findings = find_findings(kernel)
    launch_findings = () if launch is None else find_launch_findings(launch)
    first, limit = find_first(findings, launch_findings), find_limit(kernel, launch_findings)
    artifact = kernel.artifact
    changes = () if kernel.principal is None else describe_changes(kernel, kernel.principal)
    content = {
        "name": artifact.display_name, "identity": [*identify(kernel)], "hash": artifact.hash,
        "directory": artifact.directory, "lead": limit.lead or "What limits it",
        "limit": view_limit(limit, first, sources),
        "diagnosis": "" if (kept := diagnosis_of(kernel)) is None else kept.summary,
        "findings": [view_finding(finding, sources) for finding in findings if finding is not first],
        "steps": [*_steps(kernel)], "region": kernel.principal or "",
        "changes": [" ".join(change) for change in changes], "resources": [*describe_resources(kernel, ())],
        "facts": _facts(kernel), "problems": [f"{problem.path}: {problem.problem}" for problem in kernel.problems],
        "occupancy": draw_resources(kernel), "drawings": [*draw_kernel(kernel)], "launch": launch_view, "code": code,
    }  # fmt: skip
    return KernelView(content, code)


def make_detail(view: KernelView, detail_id: str, variant: str) -> DetailPage:
    """The detail page of a kernel. `detail_id`: id of the detail page. `variant`: the label of its variant."""
    return DetailPage(
        detail_id, render_fragment("kernel.html", kernel=view.content, id=detail_id, form=variant), view.code
    )


def identify(kernel: KernelFacts) -> Iterator[str]:
    """Target, Triton version, warps, num_stages and shared memory of a kernel."""
    artifact = kernel.artifact
    yield describe_target(kernel)
    yield "Triton unknown" if artifact.triton_version is None else f"Triton {artifact.triton_version}"
    if artifact.num_warps is not None:
        yield f"{artifact.num_warps} {plural('warp', artifact.num_warps)}"
    if kernel.num_stages is not None:
        yield f"num_stages {kernel.num_stages}"
    if artifact.shared_bytes is not None:
        yield f"{artifact.shared_bytes} B of shared memory"


def _steps(kernel: KernelFacts) -> Iterator[dict[str, object]]:
    """The verdict at each stage, and whether the order of rounds changed there."""
    for stage, facts in kernel.stages.items():
        region, step = facts.region(kernel.principal or ""), {"stage": stage.value}
        if region is None:
            yield {**step, "phrase": "no such region", "reading": "", "changed": False}
        else:
            reading = describe_verdict(region.verdict, stage) or ""
            yield {**step, "phrase": region.phrase, "reading": reading, "changed": stage is kernel.changed_at}


def _facts(kernel: KernelFacts) -> list[tuple[str, list[dict[str, str]]]]:
    """By region; facts of the whole kernel first."""
    groups: dict[str, list[dict[str, str]]] = {}
    for row in summarise(kernel).rows:
        value = "?" if row.value is None else value_text(row.value)
        line = {"label": row.label.strip(), "value": value, "unit": row.unit, "stage": row.step}
        groups.setdefault(row.region or "whole kernel", []).append(line)
    return [*groups.items()]
