"""What got worse between two sides: totals, then one sentence of cause per kernel, worst first."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, RenderResult
from rich.padding import Padding
from rich.text import Text

from artifact_inspector.comparison.corpus import Degree
from artifact_inspector.comparison.regressions import KernelOutcome, Regressions
from artifact_inspector.report.corpus import describe_unmatched
from artifact_inspector.report.fact_groups import STYLES
from artifact_inspector.report.phrases import plural
from artifact_inspector.vocabulary.fact import Sign
from artifact_inspector.vocabulary.variant_labels import Compiled, find_varying, label_forms


@dataclass(frozen=True, slots=True)
class RegressReport:
    """The totals, then each kernel that changed."""

    regressions: Regressions
    show_all: bool = False
    """True to list kernels that are neither better nor worse too."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        regressions = self.regressions
        worse = regressions.count(Sign.WORSE)
        yield Text(summarise_outcomes(regressions), STYLES[Sign.WORSE] if worse else "bold", overflow="fold")
        listed = [outcome for outcome in regressions.outcomes if self.show_all or outcome.direction is not Sign.NEUTRAL]
        forms = [Compiled(outcome.change.right.artifact, outcome.change.right.program) for outcome in listed]
        labels = label_forms(forms, find_varying(form.artifact for form in forms))
        for outcome, label in zip(listed, labels, strict=True):
            candidate = outcome.change.right
            yield ""
            head = Text(candidate.artifact.display_name, "bold", overflow="fold")
            head.append(f"  {candidate.target or 'target unknown'} {label} {candidate.artifact.hash[:12]}", "dim")
            yield head
            for sentence in describe_outcome(outcome):
                style = STYLES[outcome.direction] if sentence.startswith(outcome.direction.capitalize()) else ""
                yield Padding(Text(sentence, style, overflow="fold"), (0, 0, 0, 2))
        for sentence in describe_unmatched(regressions.corpus):
            yield Text(f"\n{sentence}", overflow="fold")
        for side, problem in regressions.corpus.problems:
            yield Text(f"{side} {problem.path}: {problem.problem}", "bold red", overflow="fold")


def summarise_outcomes(regressions: Regressions) -> str:
    """The totals, such as `12 kernels compared: 2 worse, 1 better, 3 neutral, 6 unchanged`."""
    count = len(regressions.corpus.changes)
    counts = [f"{regressions.count(sign)} {sign}" for sign in Sign]
    return f"{count} {plural('kernel', count)} compared: {', '.join(counts)}, {regressions.unchanged} unchanged."


def describe_outcome(outcome: KernelOutcome) -> Iterator[str]:
    """The cause in one sentence, then the predicted time."""
    if outcome.headline is not None:
        yield outcome.headline.sentence
    elif outcome.change.degree is Degree.CODE:
        yield "The code differs, but no fact does."
    else:
        listed = ", ".join(dict.fromkeys(fact.title for fact in outcome.change.facts[:4]))
        yield f"No fact differs except {listed}." if listed else "No file is comparable."
    if outcome.price is not None:
        yield outcome.price.sentence
