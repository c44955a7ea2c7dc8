"""Findings as JSON: `findings --json`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Annotated, Literal, TypedDict

from artifact_inspector.findings import Finding, Severity, find_findings
from artifact_inspector.report.json._types import (
    SCHEMA_VERSION,
    ProblemJson,
    SchemaVersion,
    StageName,
    Words,
    problem_list,
)

if TYPE_CHECKING:
    from artifact_inspector.facts.kernel import KernelFacts
    from artifact_inspector.files.cache import Problem

__all__ = ["FindingJson", "FindingsJson", "finding_document", "findings_document"]

_SEVERITIES = Words(tuple(severity.value for severity in Severity))


class FindingJson(TypedDict):
    """A rule's remark on one place of a kernel."""

    code: str
    """`AI001` and on; a code keeps its meaning for good."""
    name: str
    """The rule's name, as `clustered-loads`."""
    severity: Annotated[str, _SEVERITIES]
    message: str
    """One sentence: the fact with its figures."""
    stage: StageName | None
    """The stage whose lines are the evidence; null where the evidence is no text."""
    lines: tuple[int, ...]
    """Of that stage's file."""
    sources: tuple[str, ...]
    """Lines of the user's code, `file.py:line`."""


class KernelFindingsJson(TypedDict):
    """One kernel with its findings."""

    name: str
    hash: str
    directory: str
    """From the cache directory."""
    target: str | None
    """Its architecture, as `sm_80` or `gfx942`."""
    findings: list[FindingJson]


class FindingsJson(TypedDict):
    """What stands out in each kernel: `inspect-kernel findings --json`."""

    schema_version: SchemaVersion
    document: Literal["findings"]
    kernels: list[KernelFindingsJson]
    problems: list[ProblemJson]
    """What could not be read; nothing was found there."""


def findings_document(kernels: Sequence[KernelFacts], problems: Iterable[Problem] = ()) -> FindingsJson:
    """Kernels with their findings and nothing else.

    Args:
        problems: those of the cache; the kernels' own are added.
    """
    return {
        "schema_version": SCHEMA_VERSION,
        "document": "findings",
        "kernels": [
            {
                "name": kernel.artifact.display_name,
                "hash": kernel.artifact.hash,
                "directory": kernel.artifact.directory,
                "target": None if kernel.artifact.target is None else kernel.artifact.target.arch,
                "findings": [finding_document(finding) for finding in find_findings(kernel)],
            }
            for kernel in kernels
        ],
        "problems": problem_list([*problems, *(found for kernel in kernels for found in kernel.problems)]),
    }


def finding_document(finding: Finding) -> FindingJson:
    """One finding."""
    remark = finding.remark
    return {
        "code": finding.code,
        "name": finding.name,
        "severity": finding.severity.value,
        "message": remark.message,
        "stage": None if remark.stage is None else remark.stage.value,
        "lines": remark.lines,
        "sources": remark.sources,
    }
