"""Definitions of finding codes, verdicts, facts, stages and degrees of change, for `--explain`."""

from __future__ import annotations

from collections.abc import Iterator
from difflib import get_close_matches
from typing import NamedTuple

from artifact_inspector.comparison.corpus import Degree
from artifact_inspector.errors import UsageError
from artifact_inspector.findings import RULES
from artifact_inspector.model import PipelineKind, Stage
from artifact_inspector.report.phrases import VERDICTS, describe_verdict
from artifact_inspector.vocabulary.rows import FACTS


class TermDefinition(NamedTuple):
    """One definition of a word."""

    term: str
    kind: str
    """`finding`, `verdict`, `fact`, `pipeline`, `stage` or `degree of change`."""
    text: str


def explain_term(term: str) -> list[TermDefinition]:
    """All definitions of a word: a finding's code or name, a verdict, a fact's key or column, a stage.

    Raises:
        UsageError: the word is unknown; the remedy lists similar words.
    """
    key = term.strip().lower()
    definitions = list(_define_all())
    matching_definitions = [meaning for names, meaning in definitions if key in names]
    if not matching_definitions:
        # a row's key starts with a region and ends with a stage: loop1.verdict.ttgir
        fact_key = key.partition(".")[2] or key
        matching_definitions = [meaning for names, meaning in definitions if fact_key in names]
    if not matching_definitions:
        similar_names = get_close_matches(key, sorted({name for names, _ in definitions for name in names}), 5, 0.5)
        raise UsageError(
            f"Unknown term {term!r}.",
            f"Did you mean {', '.join(similar_names)}?"
            if similar_names
            else "Expected a finding (AI001), a verdict (pipelined) or a fact's key.",
        )
    return list(dict.fromkeys(matching_definitions))


def _define_all() -> Iterator[tuple[set[str], TermDefinition]]:
    for rule in RULES:
        text = f"{rule.severity.value}. {rule.explanation}"
        yield {rule.code.lower(), rule.name}, TermDefinition(f"{rule.code} {rule.name}", "finding", text)
    for verdict in VERDICTS:
        text = f"Order of loads and computes of a region at one stage: {describe_verdict(verdict)}."
        yield {verdict}, TermDefinition(verdict, "verdict", text)
    for fact in FACTS:
        column = fact.column
        names = {fact.key.replace("{step}", step.value) for step in Stage} | {fact.label.strip().lower()}
        names |= {fact.brief.lower()} - {""}
        names |= set() if column is None else {column.name, column.heading.lower()}
        names |= {name.removesuffix("s") for name in names}
        unit = f", {fact.unit}" if fact.unit else ""
        reading = f": {fact.reading}" if fact.reading else ""
        yield (names, TermDefinition(fact.key, "fact", f"{fact.label.strip()}{unit}{reading} (about {fact.category})"))
    for kind, text in _PIPELINES.items():
        yield {kind.value}, TermDefinition(kind.value, "pipeline", text)
    for stage in Stage:
        yield {stage.value}, TermDefinition(stage.value, "stage", f"Made by {stage.producer}.")
    for degree in Degree:
        yield {degree.value}, TermDefinition(degree.value, "degree of change", _DEGREES[degree])


_PIPELINES = {
    PipelineKind.GROUPS: "The loop loads ahead by cp.async into shared memory.",
    PipelineKind.TENSORS: "The loop loads ahead by TMA into shared memory; an mbarrier reports each tile.",
    PipelineKind.DIRECT: "The loop loads ahead directly into AMD's shared memory (LDS).",
    PipelineKind.REGISTERS: "The loop loads ahead into registers, without asynchronous copies. What has arrived waits "
    "there, or in buffers of shared memory.",
    PipelineKind.COPIES: "The loop loads ahead by asynchronous copies; the target is unknown.",
}
_DEGREES = {
    Degree.IDENTICAL: "Every file that both kernels have is identical, byte for byte.",
    Degree.BENIGN: "Only names, source locations, numbering or the order of constants differ.",
    Degree.CODE: "The code differs in more than names, but every fact is equal.",
    Degree.CHANGED: "Facts differ; the categories list which.",
    Degree.UNKNOWN: "The two kernels have no file in common to compare.",
}
