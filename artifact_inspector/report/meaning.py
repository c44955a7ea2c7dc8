"""Definitions of finding codes, verdicts, facts, stages and degrees of change, for `--explain`."""

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
    """One definition of a word."""

    word: str
    kind: str
    """`finding`, `verdict`, `fact`, `stage` or `degree of change`."""
    page: str


def explain_word(word: str) -> list[Meaning]:
    """All definitions of a word: a finding's code or name, a verdict, a fact's key or column, a stage.

    Raises:
        UsageError: the word is unknown; the remedy lists similar words.
    """
    sought = word.strip().lower()
    known = list(_meanings())
    found = [meaning for names, meaning in known if sought in names]
    if not found:
        # a row's key starts with a region and ends with a stage: loop1.verdict.ttgir
        bare = sought.partition(".")[2] or sought
        found = [meaning for names, meaning in known if bare in names]
    if not found:
        every = sorted({name for names, _ in known for name in names})
        near = get_close_matches(sought, every, 5, 0.5)
        raise UsageError(
            f"Unknown term {word!r}.",
            f"Did you mean {', '.join(near)}?"
            if near
            else "Expected a finding (AI001), a verdict (pipelined) or a fact's key.",
        )
    return list(dict.fromkeys(found))


def _meanings() -> Iterator[tuple[set[str], Meaning]]:
    for rule in RULES:
        said = f"{rule.severity.value}. {rule.explanation}"
        yield {rule.code.lower(), rule.name}, Meaning(f"{rule.code} {rule.name}", "finding", said)
    for verdict in VERDICTS:
        said = f"Order of loads and computes of a region at one stage: {describe_verdict(verdict)}."
        yield {verdict}, Meaning(verdict, "verdict", said)
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
    Degree.IDENTICAL: "Every file that both kernels have is identical, byte for byte.",
    Degree.BENIGN: "Only names, source locations, numbering or the order of constants differ.",
    Degree.CODE: "The code differs in more than names, but every fact is equal.",
    Degree.CHANGED: "Facts differ; the categories list which.",
    Degree.UNKNOWN: "The two kernels have no file in common to compare.",
}
