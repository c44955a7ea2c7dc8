"""A finding as pages show it, with the text of its lines."""

from __future__ import annotations

from dataclasses import dataclass

from artifact_inspector.findings import Finding, Remark, Severity
from artifact_inspector.findings.limit import Limit, LimitedBy
from artifact_inspector.model import SourceLine
from artifact_inspector.report.findings import place_text
from artifact_inspector.report.html.sources import Sources

MOST_PLACES = 3
"""Lines of the source beside a finding."""


@dataclass(frozen=True, slots=True)
class Place:
    """A line of the user's code beside a finding."""

    name: str
    text: str | None
    """None where its file is not at hand."""


@dataclass(frozen=True, slots=True)
class Shown:
    """One finding, or what limits a kernel."""

    code: str
    name: str
    level: str
    """`warning`, `note`, or `none` where nothing was found."""
    message: str
    where: str
    places: tuple[Place, ...]
    goes_to: str
    """Stage and line where the code can be seen, `ptx:193`; empty where the evidence is no text."""


def show_finding(finding: Finding, sources: Sources) -> Shown:
    """A finding as the page shows it."""
    level = "warning" if finding.severity is Severity.WARNING else "note"
    return _shown(finding.code, finding.name, level, finding.remark.message, finding.remark, sources)


def show_limit(limit: Limit, first: Finding | None, sources: Sources) -> Shown:
    """What limits a kernel as the page shows it.

    Args:
        first: the finding that says so; None where another thing does.
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
