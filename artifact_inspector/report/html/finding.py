"""A finding as pages show it, with the text of its lines."""

from __future__ import annotations

from dataclasses import dataclass

from artifact_inspector.findings import Finding, Severity
from artifact_inspector.model import SourceLine
from artifact_inspector.report.findings import place_text
from artifact_inspector.report.html.sources import Sources

__all__ = ["Place", "Shown", "show_finding"]

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
    """One finding."""

    code: str
    name: str
    level: str
    message: str
    where: str
    places: tuple[Place, ...]
    goes_to: str
    """Stage and line where the code can be seen, `ptx:193`; empty where the evidence is no text."""


def show_finding(finding: Finding, sources: Sources) -> Shown:
    """A finding as the page shows it."""
    remark = finding.remark
    places = tuple(
        Place(str(source), sources.line(source)) for source in dict.fromkeys(remark.sources[:MOST_PLACES])
    )
    goes_to = ""
    if remark.stage is not None and remark.lines:
        goes_to = f"{remark.stage.value}:{remark.lines[0]}"
    elif remark.sources:
        first = remark.sources[0]
        goes_to = first.innermost if isinstance(first, SourceLine) else first
    level = "warning" if finding.severity is Severity.WARNING else "note"
    return Shown(finding.code, finding.name, level, remark.message, place_text(remark), places, goes_to)
