"""Parts of the JSON documents as items of an answer, most important keys first."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from artifact_inspector.facts.kernel import KernelFacts
from artifact_inspector.facts.modules import read_source
from artifact_inspector.files.cache import Artifact
from artifact_inspector.findings import Finding, find_findings
from artifact_inspector.report.json import encode
from artifact_inspector.report.json.cache import kernel_document
from artifact_inspector.report.phrases import describe_changes, describe_verdict
from artifact_inspector.serving.catalog import PARTS
from artifact_inspector.serving.compiled_lines import describe_variant
from artifact_inspector.vocabulary.fact import Absent
from artifact_inspector.vocabulary.rows import columns, figure_of

DEFAULT_PARTS = PARTS[:3]
"""Parts of a kernel that are returned by default."""
MAX_EVIDENCE = 3
"""Lines of a file that a finding quotes."""
Item = dict[str, Any]


def identity(artifact: Artifact) -> Item:
    """Name, hash and target: what identifies a kernel in requests."""
    return {
        "kernel": artifact.display_name,
        "hash": artifact.hash[:12],
        "target": None if artifact.target is None else artifact.target.arch,
        "variant": describe_variant(artifact),
    }


def list_item(kernel: KernelFacts) -> Item:
    """One kernel as a short row of a list."""
    row = row_item(kernel)
    return {key: row[key] for key in _LIST_KEYS if row.get(key) is not None}


_LIST_KEYS = ("kernel", "hash", "target", "variant", "order", "registers", "spills", "shared", "occupancy", "findings")


def row_item(kernel: KernelFacts) -> Item:
    """One kernel as a row of a list: order, numbers, codes of its findings."""
    artifact, region = kernel.artifact, kernel.principal_region
    figures = {fact.column.name: figure_of(fact, kernel) for fact in columns() if fact.column is not None}
    return {
        **identity(artifact),
        "triton": None if artifact.triton_version is None else str(artifact.triton_version),
        "order": None if region is None else region.phrase,
        **{name: encode(value) for name, value in figures.items() if value is not Absent.ABSENT},
        "findings": list(dict.fromkeys(finding.code for finding in find_findings(kernel))),
    }


def finding_items(kernel: KernelFacts, selected_findings: Iterable[Finding] | None = None) -> Iterator[Item]:
    """The findings of a kernel, each with lines of its files as evidence."""
    for finding in find_findings(kernel) if selected_findings is None else selected_findings:
        remark = finding.remark
        yield {
            "code": finding.code,
            "name": finding.name,
            "severity": finding.severity.value,
            "message": remark.message,
            "sources": [str(encode(source)) for source in remark.sources[:MAX_EVIDENCE]],
            "stage": None if remark.stage is None else remark.stage.value,
            "lines": list(remark.lines[: 2 * MAX_EVIDENCE]),
            "evidence": _quote_lines(kernel, finding),
        }


def kernel_items(kernel: KernelFacts, part_names: Sequence[str], region: str | None = None) -> Iterator[Item]:
    """One kernel, part after part.

    Args:
        part_names: members of `PARTS`, in the requested order.
        region: restricts `order` and `regions` to this region.
    """
    document = kernel_document(kernel)
    for part_name in part_names:
        part = {"part": part_name}
        if part_name == "summary":
            stage = None if kernel.last is None else kernel.last.stage
            changes = [" ".join(change) for change in describe_changes(kernel, kernel.principal or "")]
            means = None if kernel.verdict is None else describe_verdict(kernel.verdict, stage)
            yield {**part, **row_item(kernel), "region": kernel.principal, "means": means, "changes": changes}
        elif part_name == "findings":
            yield from ({**part, **item} for item in finding_items(kernel))
        elif part_name == "order":
            yield from _order_items(kernel, region or kernel.principal)
        elif part_name == "stages":
            for stage, stage_document in document.stages.items():
                yield {**part, "stage": stage.value, **_drop_keys(encode(stage_document), "regions", "waits")}
        elif part_name == "regions":
            for stage, stage_document in document.stages.items():
                for region_document in encode(stage_document.regions):
                    if region in (None, region_document["id"]):
                        yield {**part, "stage": stage.value, **region_document}
        else:
            value = encode(getattr(document, part_name))
            members = [_drop_keys(value, "sources")] if isinstance(value, Mapping) else value or ()
            yield from ({**part, **member} for member in members)


def _order_items(kernel: KernelFacts, region: str | None) -> Iterator[Item]:
    for stage, facts in kernel.stages.items():
        region_facts = None if region is None else facts.region(region)
        if region_facts is not None:
            yield {
                "part": "order",
                "stage": stage.value,
                "region": region_facts.id,
                "order": region_facts.phrase,
                "signature": region_facts.signature,
                "lines": list(region_facts.lines),
            }


def drop_empty(item: Mapping[str, Any], *keys: str) -> Item:
    """An item without unknown, zero and empty values, and without some keys."""
    return {key: value for key, value in item.items() if value not in (None, 0, "", [], {}) and key not in keys}


def _drop_keys(item: Mapping[str, Any], *keys: str) -> Item:
    return {key: value for key, value in item.items() if key not in keys}


def _quote_lines(kernel: KernelFacts, finding: Finding) -> list[str]:
    """Lines of the stage that the finding was derived from, with their numbers."""
    stage = finding.remark.stage
    if stage is None or not finding.remark.lines or stage.value not in kernel.artifact.files:
        return []
    source = read_source(kernel.artifact, stage, [], None)
    if source is None:
        return []
    return [
        f"{stage.value}:{line}: {source.line_text(line).strip()[:160]}" for line in finding.remark.lines[:MAX_EVIDENCE]
    ]
