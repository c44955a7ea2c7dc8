"""Comparisons as Markdown for a comment on a pull request."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from artifact_inspector.comparison.corpus import Change, Corpus, Degree
from artifact_inspector.comparison.decisive_phrases import value_text
from artifact_inspector.comparison.fact_pair import State
from artifact_inspector.comparison.headline import headlines_of_pair
from artifact_inspector.comparison.matching import Candidate
from artifact_inspector.comparison.pair import Comparison
from artifact_inspector.comparison.regressions import Regressions
from artifact_inspector.model.escaping import escape_unprintable
from artifact_inspector.report.corpus import (
    describe_change,
    describe_gates,
    describe_outcome,
    describe_uncompared,
    describe_unmatched,
    summarise_corpus,
    summarise_outcomes,
)
from artifact_inspector.report.diff import (
    describe_divergence,
    describe_equal_orders,
    describe_verdict_change,
    side_labels,
)
from artifact_inspector.vocabulary.fact import Sign

MAX_KERNELS = 50
MAX_FACTS = 4
_MARKUP = re.compile(r"[\\`*\[\]<&|@~]")
MAX_CHARACTERS = 60_000
"""GitHub accepts comments of at most 65,536."""


def corpus_markdown(corpus: Corpus, gates: Sequence[str], *, is_strict: bool = True) -> str:
    """Two caches: the summary, then a row for each kernel that changed, worst first."""
    lines = [f"**{' · '.join(summarise_corpus(corpus))}**", ""]
    if corpus.by_category:
        lines += [" · ".join(f"{name} {count}" for name, count in corpus.by_category.items()), ""]
    lines += [f"⚠ {_plain(sentence)}" for sentence in describe_gates(corpus, gates, is_strict=is_strict)]
    listed_changes = [change for change in corpus.changes if change.degree not in (Degree.IDENTICAL, Degree.BENIGN)]
    if listed_changes:
        lines += ["", "| kernel | target | changed | what |", "|---|---|---|---|"]
        lines += [_row(change) for change in listed_changes[:MAX_KERNELS]]
        if len(listed_changes) > MAX_KERNELS:
            lines.append(f"| … | | | and {len(listed_changes) - MAX_KERNELS} more |")
    return _cut_to_comment([*lines, *_details((*describe_unmatched(corpus), *describe_uncompared(corpus)))])


def regressions_markdown(regressions: Regressions, *, lists_all: bool = False) -> str:
    """What got worse and better: the totals, then a row for each kernel, worst first; neutral ones with `lists_all`."""
    outcomes = [x for x in regressions.outcomes if lists_all or x.change.direction is not Sign.NEUTRAL]
    lines = [f"**{_plain(summarise_outcomes(regressions))}**", ""]
    lines += ["| kernel | target | | what |", "|---|---|---|---|"] if outcomes else []
    for outcome in outcomes[:MAX_KERNELS]:
        kernel, direction = outcome.change.right, outcome.change.direction
        lines.append(
            f"| {_name(kernel)} | {_plain(kernel.target or '?')} | {direction} | {_plain(describe_outcome(outcome))} |"
        )
    if len(outcomes) > MAX_KERNELS:
        lines.append(f"| … | | | and {len(outcomes) - MAX_KERNELS} more |")
    return _cut_to_comment([*lines, *_details(describe_unmatched(regressions.corpus))])


def pair_markdown(pair: Comparison) -> str:
    """Two kernels: the first divergence, and the facts that differ."""
    labels = side_labels(pair)
    lines = list(_attribution(pair, labels))
    lines += ["", f"| | unit | {_plain(labels[0])} | {_plain(labels[1])} |", "|---|---|---|---|"]
    for fact in (*pair.options, *pair.facts):
        if fact.state is State.SAME or (fact.state is State.NOT_COMPARED and fact.left is fact.right is None):
            continue
        name = " ".join(symbol for symbol in (fact.region, fact.label.strip()) if symbol)
        values = [value_text(value) for value in (fact.left, fact.right)]
        if fact.state is State.NOT_COMPARED:
            values = ["?" if value == "–" else value for value in values]
        lines.append(f"| {_plain(name)} | {_plain(fact.unit)} | {_plain(values[0])} | {_plain(values[1])} |")
    lines += ["", *(f"- not compared: {_plain(note)}" for note in pair.notes)] if pair.notes else []
    return _cut_to_comment(lines)


def _attribution(pair: Comparison, labels: tuple[str, str]) -> Iterator[str]:
    diverging_regions = [region for region in pair.regions if region.first_divergence is not None]
    if not diverging_regions:
        headline = next(iter(headlines_of_pair(pair)), None)
        if headline is not None:
            yield f"**{_plain(headline.sentence)}**"
            yield ""
        yield "**No fact differs.**" if pair.is_same else describe_equal_orders(pair)
    yield from (f"**{_plain(describe_divergence(pair, region) or '')}**" for region in diverging_regions)
    yield ""
    for region in pair.regions:
        if region.is_principal:
            yield from (
                f"- {_plain(describe_verdict_change(turn, labels, region.name))}" for turn in region.verdict_changes
            )


def _row(change: Change) -> str:
    sentences = list(describe_change(change))
    ellipsis = [f"and {len(sentences) - MAX_FACTS} more"] if len(sentences) > MAX_FACTS else []
    cell = "<br>".join(_plain(sentence) for sentence in [*sentences[:MAX_FACTS], *ellipsis])
    categories = " ".join(change.categories) or change.degree.value
    return f"| {_name(change.right)} | {_plain(change.right.target or '?')} | {categories} | {cell} |"


def _name(kernel: Candidate) -> str:
    return f"{_code(kernel.artifact.display_name)} {_plain(kernel.artifact.hash[:8])}"


def _details(sentences: Iterable[str]) -> Iterator[str]:
    """The first line of each, with the others folded; one element each, so that no cut leaves it open."""
    for sentence in sentences:
        head, _, body = sentence.partition("\n")
        yield from ("", f"<details><summary>{_plain(head)}</summary>\n\n{_block(body)}\n</details>")


def _plain(text: str) -> str:
    """Text without markup: no end of a table cell, no mention, no CI command."""
    return _MARKUP.sub(_escape_markup, escape_unprintable(text).replace("\n", " "))


def _escape_markup(markup_match: re.Match[str]) -> str:
    character = markup_match[0]
    return {"<": "&lt;", "&": "&amp;", "@": "&#64;"}.get(character, f"\\{character}")


def _code(text: str) -> str:
    """Inline code in a sentence or a table cell; the text cannot end it."""
    plain = _plain(text)
    return f"`{text}`" if plain == text else f"<code>{plain}</code>"


def _block(text: str) -> str:
    """A code block; the text cannot end it."""
    fence = "`" * max([3, *(len(run) + 1 for run in re.findall("`+", text))])
    return f"{fence}\n{escape_unprintable(text)}\n{fence}"


def _cut_to_comment(lines: Sequence[str]) -> str:
    """As many whole elements as fit in a comment."""
    kept_lines, size = [], 0
    for line in lines:
        size += len(line) + 1
        if size > MAX_CHARACTERS:
            kept_lines += ["", "… cut to the size of a comment; `--format json` has everything"]
            break
        kept_lines.append(line)
    return "\n".join(kept_lines) + "\n"
