"""A finding on a page, with the text of its source lines."""

from __future__ import annotations

from dataclasses import dataclass

from artifact_inspector.findings import Finding, Remark, Severity
from artifact_inspector.findings.limit import Limit, LimitedBy
from artifact_inspector.model import SourceLine
from artifact_inspector.report.findings import describe_evidence
from artifact_inspector.report.html.sources import Sources

MAX_QUOTES = 3
"""Most source lines shown with a finding."""


@dataclass(frozen=True, slots=True)
class QuotedLine:
    """A source line of a finding."""

    name: str
    text: str | None
    """None if its file was not found."""


@dataclass(frozen=True, slots=True)
class FindingView:
    """One finding, or the limit of a kernel."""

    code: str
    name: str
    level: str
    """`warning`, `note`, or `none` without a finding."""
    message: str
    evidence: str
    quotes: tuple[QuotedLine, ...]
    code_location: str
    """Stage and line of the code to show, `ptx:193`; empty if the evidence has no line."""


def view_finding(finding: Finding, sources: Sources) -> FindingView:
    """The content of a finding."""
    level = "warning" if finding.severity is Severity.WARNING else "note"
    return _make_view(finding.code, finding.name, level, finding.remark.message, finding.remark, sources)


def view_limit(limit: Limit, first: Finding | None, sources: Sources) -> FindingView:
    """The content of the limit of a kernel.

    Args:
        first: the finding that states the limit; None if there is none.
    """
    if first is not None:
        return view_finding(first, sources)
    level = "note" if limit.by is LimitedBy.WORK else "none"
    return _make_view(limit.code, "", level, limit.description, limit, sources)


def _make_view(code: str, name: str, level: str, message: str, remark: Remark | Limit, sources: Sources) -> FindingView:
    quotes = tuple(
        QuotedLine(str(source), sources.line(source)) for source in dict.fromkeys(remark.sources[:MAX_QUOTES])
    )
    code_location = ""
    if remark.stage is not None and remark.lines:
        code_location = f"{remark.stage.value}:{remark.lines[0]}"
    elif remark.sources:
        first = remark.sources[0]
        code_location = first.innermost if isinstance(first, SourceLine) else first
    return FindingView(code, name, level, message, describe_evidence(remark), quotes, code_location)
