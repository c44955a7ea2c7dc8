"""Parts of the JSON documents as items of an answer, most important keys first."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from artifact_inspector.comparison.corpus import Change, Corpus
from artifact_inspector.facts.kernel import KernelFacts
from artifact_inspector.facts.modules import read_source
from artifact_inspector.files.cache import Artifact
from artifact_inspector.findings import Finding, find_findings
from artifact_inspector.report.corpus import describe_changes_of
from artifact_inspector.report.json import (
    comparison,  # noqa: F401 - registers the encoding of the facts of a pair
    encode,
)
from artifact_inspector.report.json.cache import kernel_document
from artifact_inspector.report.words import describe_changes, describe_verdict
from artifact_inspector.vocabulary.fact import Absent
from artifact_inspector.vocabulary.rows import columns, figure_of

PARTS = ("summary", "findings", "order", "resources", "loads", "shared_bill", "remarks", "stages", "regions")
"""Parts of a kernel that can be requested; the first five by default."""
BY_DEFAULT = PARTS[:5]
MOST_EVIDENCE = 3
"""Lines of a file that a finding quotes."""
Item = dict[str, Any]


def identity(artifact: Artifact) -> Item:
    """Name, hash and target: what identifies a kernel in requests."""
    return {
        "kernel": artifact.display_name,
        "hash": artifact.hash[:12],
        "target": None if artifact.target is None else artifact.target.arch,
    }


def row_item(kernel: KernelFacts) -> Item:
    """One kernel as a row of a list: order, numbers, codes of its findings."""
    artifact, region = kernel.artifact, kernel.principal_region
    figures = {fact.column.name: figure_of(fact, kernel) for fact in columns() if fact.column is not None}
    return {
        **identity(artifact),
        "triton": None if artifact.triton_version is None else str(artifact.triton_version),
        "num_warps": artifact.num_warps,
        "num_stages": artifact.num_stages,
        "order": None if region is None else region.phrase,
        **{name: encode(value) for name, value in figures.items() if value is not Absent.ABSENT},
        "findings": list(dict.fromkeys(finding.code for finding in find_findings(kernel))),
    }


def finding_items(kernel: KernelFacts, found: Iterable[Finding] | None = None) -> Iterator[Item]:
    """The findings of a kernel, each with lines of its files as evidence."""
    for finding in find_findings(kernel) if found is None else found:
        remark = finding.remark
        yield {
            "code": finding.code,
            "name": finding.name,
            "severity": finding.severity.value,
            "message": remark.message,
            "sources": [str(encode(source)) for source in remark.sources[:MOST_EVIDENCE]],
            "stage": None if remark.stage is None else remark.stage.value,
            "lines": list(remark.lines[: 2 * MOST_EVIDENCE]),
            "evidence": _evidence(kernel, finding),
        }


def kernel_items(kernel: KernelFacts, parts: Sequence[str], region: str | None = None) -> Iterator[Item]:
    """One kernel, part after part.

    Args:
        parts: members of `PARTS`, in the requested order.
        region: restricts `order` and `regions` to this region.
    """
    document = kernel_document(kernel)
    for part in parts:
        if part == "summary":
            told = [f"{what} {where}" for what, where in describe_changes(kernel, kernel.principal or "")]
            meaning = None if kernel.verdict is None else describe_verdict(kernel.verdict)
            yield {
                "part": part,
                **row_item(kernel),
                "region": kernel.principal,
                "means": meaning,
                "changes": told,
            }
        elif part == "findings":
            yield from ({"part": part, **item} for item in finding_items(kernel))
        elif part == "order":
            yield from _order(kernel, region or kernel.principal)
        elif part == "stages":
            for stage, one in document.stages.items():
                yield {"part": part, "stage": stage.value, **_without(encode(one), "regions", "waits")}
        elif part == "regions":
            for stage, one in document.stages.items():
                for found in encode(one.regions):
                    if region in (None, found["id"]):
                        yield {"part": part, "stage": stage.value, **found}
        else:
            yield from _plain(part, encode(getattr(document, part)))


def change_items(corpus: Corpus) -> Iterator[Item]:
    """The differences of two sides: every fact for two kernels, every changed kernel for caches."""
    changes = corpus.changes
    if len(changes) == 1:
        (change,) = changes
        yield _changed(change)
        yield from ({"part": "fact", **encode(fact)} for fact in change.facts)
        return
    yield from (_changed(change) for change in changes if change.facts or change.degree.value != "identical")


def _changed(change: Change) -> Item:
    told = list(describe_changes_of(change))
    left, right = identity(change.left.artifact), identity(change.right.artifact)
    return {
        "part": "change",
        "left": left,
        "right": right,
        "degree": change.degree.value,
        "categories": list(change.categories),
        "changes": told[:8],
        "not_compared": list(change.notes),
    }


def _order(kernel: KernelFacts, region: str | None) -> Iterator[Item]:
    for stage, facts in kernel.stages.items():
        found = None if region is None else facts.region(region)
        if found is not None:
            yield {
                "part": "order",
                "stage": stage.value,
                "region": found.id,
                "order": found.phrase,
                "signature": found.signature,
                "file": facts.file,
                "lines": list(found.lines),
            }


def _plain(part: str, value: Any) -> Iterator[Item]:
    if isinstance(value, Mapping):
        yield {"part": part, **_without(value, "sources")}
    else:
        yield from ({"part": part, **one} for one in value or ())


def _without(item: Mapping[str, Any], *keys: str) -> Item:
    return {key: value for key, value in item.items() if key not in keys}


def _evidence(kernel: KernelFacts, finding: Finding) -> list[str]:
    """Lines of the stage that the finding was derived from, with their numbers."""
    stage = finding.remark.stage
    if stage is None or not finding.remark.lines or stage.value not in kernel.artifact.files:
        return []
    source = read_source(kernel.artifact, stage, [], None)
    if source is None:
        return []
    return [
        f"{stage.value}:{line}: {source.line_text(line).strip()[:160]}"
        for line in finding.remark.lines[:MOST_EVIDENCE]
    ]
