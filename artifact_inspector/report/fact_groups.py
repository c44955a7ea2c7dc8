"""Facts that differ, grouped by direction: worse, better, neutral; the decisive fact of each group first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import log

from rich.console import RenderableType
from rich.text import Text

from artifact_inspector.comparison.decisive_phrases import describe_values
from artifact_inspector.comparison.fact_pair import FactPair
from artifact_inspector.report.layout import indented
from artifact_inspector.report.phrases import plural
from artifact_inspector.vocabulary import kernel_facts
from artifact_inspector.vocabulary.fact import Category, Sign
from artifact_inspector.vocabulary.rows import fact_of

MAX_FACTS = 8
"""Most facts of a group; further ones are counted."""
STYLES = {Sign.WORSE: "bold red", Sign.BETTER: "bold green", Sign.NEUTRAL: "dim"}
_RESTATEMENTS = (kernel_facts.threads, kernel_facts.occupancy_share, kernel_facts.occupancy_limit)
"""Facts that repeat the number of blocks where that has a direction."""


def group_facts(facts: Sequence[FactPair]) -> dict[Sign, list[FactPair]]:
    """Direction → facts without those that repeat another, the dearest first; empty groups are left out.

    Args:
        facts: facts that differ, the decisive one first.
    """
    definitions = [fact_of(fact.key, fact.region) for fact in facts]
    has_blocks = any(
        definition is kernel_facts.blocks and fact.direction is not Sign.NEUTRAL
        for fact, definition in zip(facts, definitions, strict=True)
    )
    groups: dict[Sign, list[FactPair]] = {}
    for sign in Sign:
        members = [
            fact
            for fact, definition in zip(facts, definitions, strict=True)
            if fact.direction is sign and not (has_blocks and definition in _RESTATEMENTS)
        ]
        if members:
            groups[sign] = sorted(members, key=lambda fact: -abs(log(fact.price)) if fact.price else 0.0)
    return groups


def describe_groups(facts: Sequence[FactPair], limit: int = MAX_FACTS) -> Iterator[tuple[Sign, list[str]]]:
    """Each group with its facts as text.

    Args:
        facts: facts that differ, the decisive one first.
        limit: most facts of a group; neutral verdicts are left out, which reports show stage by stage.
    """
    for sign, members in group_facts(facts).items():
        listed = [fact for fact in members if sign is not Sign.NEUTRAL or fact.category != Category.VERDICT]
        omitted = len(listed) - limit
        texts = [describe_values(fact) for fact in listed[:limit]]
        texts += [f"and {omitted} more {plural('fact', omitted)} (--json lists all)"] if omitted > 0 else []
        if texts:
            yield sign, texts


def render_groups(facts: Sequence[FactPair], limit: int = MAX_FACTS) -> Iterator[RenderableType]:
    """The groups with a heading each: Worse, Better, Neutral."""
    for sign, texts in describe_groups(facts, limit):
        yield Text(sign.capitalize(), STYLES[sign])
        style = "dim" if sign is Sign.NEUTRAL else ""
        yield from (indented(text, style) for text in texts)
