"""The causes of a launch's predicted time, the first one first, and what helps."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from rich.console import Console, ConsoleOptions, RenderResult
from rich.text import Text

from artifact_inspector.diagnosis.assumed_launch import ASSUMED
from artifact_inspector.diagnosis.cause import CauseKind, Diagnosis
from artifact_inspector.diagnosis.remedy import RemedySearch
from artifact_inspector.report.phrases import format_us

BRIEF_CAUSES = 2
OVERLAP = "A share is the time saved without that cause only; causes overlap, so shares can exceed 100 % together"


@dataclass(frozen=True, slots=True)
class AdviceReport:
    """Diagnoses of launches."""

    diagnoses: Sequence[Diagnosis]
    searches: Sequence[RemedySearch | None]
    """The remedies of each; None if none were tried."""
    is_brief: bool = False
    """True for the two most important causes and changes only."""

    def brief(self) -> AdviceReport:
        """The report of `--brief`."""
        return replace(self, is_brief=True)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for index, (diagnosis, search) in enumerate(zip(self.diagnoses, self.searches, strict=True)):
            if index:
                yield Text("")
            yield from self._describe(diagnosis, search)

    def _describe(self, diagnosis: Diagnosis, search: RemedySearch | None) -> Iterator[Text]:
        assumed, other_notes = (
            [f"{note[0].upper()}{note[1:]}." for note in diagnosis.notes if note.startswith(ASSUMED) is is_assumed]
            for is_assumed in (True, False)
        )
        yield Text(_describe_launch(diagnosis), style="dim")
        for note in assumed:
            yield Text(f"{note} Give the real launch with --launch, or capture it.", style="yellow")
        yield Text(diagnosis.summary, style="bold")
        if search is not None:
            yield from _describe_remedies(search, is_brief=self.is_brief)
        others = diagnosis.causes[1 : BRIEF_CAUSES if self.is_brief else None]
        for cause in others:
            if cause.kind is not CauseKind.BOUND:
                yield Text(f"Also {cause.text[0].lower() if cause.line is None else cause.text[0]}{cause.text[1:]}")
        if sum(cause.share or 0.0 for cause in diagnosis.causes) > 1:
            yield Text(f"{OVERLAP}.", style="dim")
        for note in other_notes[: 1 if self.is_brief else None]:
            yield Text(note, style="dim")


def _describe_remedies(search: RemedySearch, *, is_brief: bool) -> Iterator[Text]:
    for remedy in search.remedies[: BRIEF_CAUSES if is_brief else None]:
        costs = f" It costs {', '.join(remedy.costs)}." if remedy.costs else ""
        yield Text(f"Change {remedy.change}: {remedy.prediction}; it acts on {remedy.cause}.{costs}")
        if remedy.patch is not None and not is_brief:
            yield Text(remedy.patch.rstrip(), style="dim")
    if search.reason:
        yield Text(search.reason, style="dim" if search.remedies else "")


def _describe_launch(diagnosis: Diagnosis) -> str:
    grid = "×".join(map(str, diagnosis.grid))
    sentence = f"{diagnosis.kernel} {diagnosis.hash[:12]}, {diagnosis.target}, grid {grid}"
    if diagnosis.microseconds is None or diagnosis.roofline_microseconds is None:
        return sentence + "."
    return (
        f"{sentence}: predicted {format_us(diagnosis.microseconds)} µs on {diagnosis.gpu}, "
        f"roofline {format_us(diagnosis.roofline_microseconds)} µs."
    )
