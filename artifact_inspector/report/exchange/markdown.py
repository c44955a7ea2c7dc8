"""Comparisons as Markdown that fits the comment of a pull request."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from artifact_inspector.comparison.corpus import Change, Corpus, Degree
from artifact_inspector.comparison.pair import Pair, State
from artifact_inspector.report.corpus import (
    describe_changes_of,
    describe_gates,
    describe_lonely,
    describe_uncompared,
    summary_pieces,
)
from artifact_inspector.report.diff import describe_parting, describe_turn, side_labels, value_text

__all__ = ["corpus_markdown", "pair_markdown"]

MOST_KERNELS = 50
MOST_FACTS = 4
MOST_CHARACTERS = 60_000
"""GitHub takes comments of at most 65,536."""


def corpus_markdown(corpus: Corpus, gates: Sequence[str]) -> str:
    """Two caches: the summary, then a row for each kernel that changed, worst first."""
    lines = [f"**{' · '.join(summary_pieces(corpus))}**", ""]
    if corpus.by_category:
        lines += [" · ".join(f"{name} {count}" for name, count in corpus.by_category.items()), ""]
    lines += [f"⚠ {sentence}" for sentence in describe_gates(corpus, gates)]
    told = [change for change in corpus.changes if change.degree not in (Degree.IDENTICAL, Degree.BENIGN)]
    if told:
        lines += ["", "| kernel | target | changed | what |", "|---|---|---|---|"]
        lines += [_row(change) for change in told[:MOST_KERNELS]]
        if len(told) > MOST_KERNELS:
            lines.append(f"| … | | | and {len(told) - MOST_KERNELS} more |")
    for sentence in (*describe_lonely(corpus), *describe_uncompared(corpus)):
        head, _, rest = sentence.partition("\n")
        # one piece, that no cut may leave open
        lines += ["", f"<details><summary>{head}</summary>\n\n```\n{rest}\n```\n</details>"]
    return _bounded(lines)


def pair_markdown(pair: Pair) -> str:
    """Two kernels: who made them differ, and the facts that do."""
    labels = side_labels(pair)
    lines = list(_attribution(pair, labels))
    lines += ["", f"| | unit | {_cell(labels[0])} | {_cell(labels[1])} |", "|---|---|---|---|"]
    for fact in (*pair.options, *pair.facts):
        if fact.state is State.SAME or (fact.state is State.NOT_COMPARED and fact.left is fact.right is None):
            continue
        name = " ".join(part for part in (fact.region, fact.label.strip()) if part)
        values = [value_text(value) for value in (fact.left, fact.right)]
        if fact.state is State.NOT_COMPARED:
            values = ["?" if value == "–" else value for value in values]
        lines.append(f"| {_cell(name)} | {_cell(fact.unit)} | {_cell(values[0])} | {_cell(values[1])} |")
    lines += ["", *(f"- not compared: {note}" for note in pair.notes)] if pair.notes else []
    return _bounded(lines)


def _attribution(pair: Pair, labels: tuple[str, str]) -> Iterator[str]:
    parted = [region for region in pair.regions if region.parting is not None]
    if not parted:
        yield (
            "**No fact differs.**"
            if pair.is_same
            else "**The verdicts agree at every stage that both have.**"
        )
    yield from (f"**{describe_parting(pair, region)}**" for region in parted)
    yield ""
    for region in pair.regions:
        if region.is_principal:
            yield from (f"- {describe_turn(turn, labels, region.name)}" for turn in region.turns)


def _row(change: Change) -> str:
    said = list(describe_changes_of(change))
    more = [f"and {len(said) - MOST_FACTS} more"] if len(said) > MOST_FACTS else []
    artifact = change.left.artifact
    name = f"`{artifact.display_name}` {artifact.hash[:8]}"
    what = "<br>".join(_cell(sentence) for sentence in [*said[:MOST_FACTS], *more])
    categories = " ".join(change.categories) or change.degree.value
    return f"| {_cell(name)} | {_cell(change.left.target or '?')} | {categories} | {what} |"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ").replace("<", "&lt;")


def _bounded(lines: Sequence[str]) -> str:
    """As many whole pieces as fit a comment."""
    kept, size = [], 0
    for line in lines:
        size += len(line) + 1
        if size > MOST_CHARACTERS:
            kept += ["", "… cut: a comment holds no more; `--format json` has it all"]
            break
        kept.append(line)
    return "\n".join(kept) + "\n"
