"""A finding on a page, with the text of its source lines."""

from __future__ import annotations

from dataclasses import dataclass

from artifact_inspector.findings import Finding, Remark, Severity
from artifact_inspector.findings.limit import Limit, LimitedBy
from artifact_inspector.model import SourceLine
from artifact_inspector.report.findings import place_text
from artifact_inspector.report.html.sources import Sources

MOST_PLACES = 3
"""Most source lines shown with a finding."""


@dataclass(frozen=True, slots=True)
class Place:
    """A source line of a finding."""

    name: str
    text: str | None
    """None if its file was not found."""


@dataclass(frozen=True, slots=True)
class Shown:
    """One finding, or the limit of a kernel."""

    code: str
    name: str
    level: str
    """`warning`, `note`, or `none` without a finding."""
    message: str
    where: str
    places: tuple[Place, ...]
    goes_to: str
    """Stage and line of the code to show, `ptx:193`; empty if the evidence has no line."""


def show_finding(finding: Finding, sources: Sources) -> Shown:
    """The content of a finding."""
    level = "warning" if finding.severity is Severity.WARNING else "note"
    return _shown(finding.code, finding.name, level, finding.remark.message, finding.remark, sources)


def show_limit(limit: Limit, first: Finding | None, sources: Sources) -> Shown:
    """The content of the limit of a kernel.

    Args:
        first: the finding that states the limit; None if there is none.
    """
    if first is not None:
        return show_finding(first, sources)
    level = "note" if limit.by is LimitedBy.WORK else "none"
    return _shown(limit.code, "", level, limit.words, limit, sources)


def _shown(code: str, name: str, level: str, words: str, at: Remark | Limit, sources: Sources) -> Shown:
    places = tuple(Place(str(one), sources.line(one)) for one in dict.fromkeys(at.sources[:MOST_PLACES]))
    goes_to = ""
    if at.stage is not None and at.lines:
        goes_to = f"{at.stage.value}:{at.lines[0]}"
    elif at.sources:
        first = at.sources[0]
        goes_to = first.innermost if isinstance(first, SourceLine) else first
    return Shown(code, name, level, words, place_text(at), places, goes_to)
