"""What a code, a verdict or a word of the reports means."""

from __future__ import annotations

from collections.abc import Iterator
from difflib import get_close_matches
from typing import NamedTuple

from artifact_inspector.comparison.corpus import Degree
from artifact_inspector.errors import UsageError
from artifact_inspector.findings import RULES
from artifact_inspector.model import Stage
from artifact_inspector.report.words import VERDICTS, describe_verdict
from artifact_inspector.vocabulary.rows import FACTS


class Meaning(NamedTuple):
    """One thing that a word can mean."""

    word: str
    kind: str
    """`finding`, `verdict`, `fact`, `stage` or `degree of change`."""
    page: str


def explain_word(word: str) -> list[Meaning]:
    """Everything that a word means: a finding's code or name, a verdict, a fact's key or column, a stage.

    Raises:
        UsageError: nothing here is called so; the remedy names what is near.
    """
    sought = word.strip().lower()
    known = list(_meanings())
    found = [meaning for names, meaning in known if sought in names]
    if not found:
        # a key of a row has the region in front and a stage behind: loop1.verdict.ttgir
        bare = sought.partition(".")[2] or sought
        found = [meaning for names, meaning in known if bare in names]
    if not found:
        every = sorted({name for names, _ in known for name in names})
        near = get_close_matches(sought, every, 5, 0.5)
        raise UsageError(
            f"Nothing here is called {word!r}.",
            f"Near it are {', '.join(near)}."
            if near
            else "Ask for a finding (AI001), a verdict or a fact's key.",
        )
    return list(dict.fromkeys(found))


def _meanings() -> Iterator[tuple[set[str], Meaning]]:
    for rule in RULES:
        said = f"{rule.severity.value}. {rule.explanation}"
        yield {rule.code.lower(), rule.name}, Meaning(f"{rule.code} {rule.name}", "finding", said)
    for verdict in VERDICTS:
        yield (
            {verdict},
            Meaning(verdict, "verdict", f"Of a region at one stage: {describe_verdict(verdict)}."),
        )
    for fact in FACTS:
        column = fact.column
        names = {fact.key.replace("{step}", step.value) for step in Stage} | {fact.label.strip().lower()}
        names |= {fact.brief.lower()} - {""}
        names |= set() if column is None else {column.name, column.heading.lower()}
        unit = f", {fact.unit}" if fact.unit else ""
        reading = f": {fact.reading}" if fact.reading else ""
        yield names, Meaning(fact.key, "fact", f"{fact.label.strip()}{unit}{reading} (about {fact.category})")
    for stage in Stage:
        yield {stage.value}, Meaning(stage.value, "stage", f"Made by {stage.made_by}.")
    for degree in Degree:
        yield {degree.value}, Meaning(degree.value, "degree of change", _DEGREES[degree])


_DEGREES = {
    Degree.IDENTICAL: "Every text and binary that both have is the same to the byte.",
    Degree.BENIGN: "Only names, places, numbering or the order of constants differ.",
    Degree.CODE: "Texts or binaries differ in more than names, yet no fact does.",
    Degree.CHANGED: "Facts differ; the categories say which.",
    Degree.UNKNOWN: "No file of one has its like in the other.",
}
