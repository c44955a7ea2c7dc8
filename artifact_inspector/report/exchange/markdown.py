"""Comparisons as Markdown for a comment on a pull request."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from artifact_inspector.comparison.corpus import Change, Corpus, Degree
from artifact_inspector.comparison.pair import Pair, State
from artifact_inspector.model.printable import escaped
from artifact_inspector.report.corpus import (
    describe_changes_of,
    describe_gates,
    describe_lonely,
    describe_uncompared,
    summary_pieces,
)
from artifact_inspector.report.diff import describe_parting, describe_turn, side_labels, value_text

MOST_KERNELS = 50
MOST_FACTS = 4
_MARKUP = re.compile(r"[\\`*\[\]<&|@~]")
MOST_CHARACTERS = 60_000
"""GitHub accepts comments of at most 65,536."""


def corpus_markdown(corpus: Corpus, gates: Sequence[str]) -> str:
    """Two caches: the summary, then a row for each kernel that changed, worst first."""
    lines = [f"**{' · '.join(summary_pieces(corpus))}**", ""]
    if corpus.by_category:
        lines += [" · ".join(f"{name} {count}" for name, count in corpus.by_category.items()), ""]
    lines += [f"⚠ {_plain(sentence)}" for sentence in describe_gates(corpus, gates)]
    told = [change for change in corpus.changes if change.degree not in (Degree.IDENTICAL, Degree.BENIGN)]
    if told:
        lines += ["", "| kernel | target | changed | what |", "|---|---|---|---|"]
        lines += [_row(change) for change in told[:MOST_KERNELS]]
        if len(told) > MOST_KERNELS:
            lines.append(f"| … | | | and {len(told) - MOST_KERNELS} more |")
    for sentence in (*describe_lonely(corpus), *describe_uncompared(corpus)):
        head, _, rest = sentence.partition("\n")
        # one element, so that no cut leaves it open
        lines += ["", f"<details><summary>{_plain(head)}</summary>\n\n{_block(rest)}\n</details>"]
    return _bounded(lines)


def pair_markdown(pair: Pair) -> str:
    """Two kernels: the first divergence, and the facts that differ."""
    labels = side_labels(pair)
    lines = list(_attribution(pair, labels))
    lines += ["", f"| | unit | {_plain(labels[0])} | {_plain(labels[1])} |", "|---|---|---|---|"]
    for fact in (*pair.options, *pair.facts):
        if fact.state is State.SAME or (fact.state is State.NOT_COMPARED and fact.left is fact.right is None):
            continue
        name = " ".join(part for part in (fact.region, fact.label.strip()) if part)
        values = [value_text(value) for value in (fact.left, fact.right)]
        if fact.state is State.NOT_COMPARED:
            values = ["?" if value == "–" else value for value in values]
        lines.append(f"| {_plain(name)} | {_plain(fact.unit)} | {_plain(values[0])} | {_plain(values[1])} |")
    lines += ["", *(f"- not compared: {_plain(note)}" for note in pair.notes)] if pair.notes else []
    return _bounded(lines)


def _attribution(pair: Pair, labels: tuple[str, str]) -> Iterator[str]:
    parted = [region for region in pair.regions if region.parting is not None]
    if not parted:
        yield (
            "**No fact differs.**"
            if pair.is_same
            else "**Both kernels order loads and computes the same way at every stage.**"
        )
    yield from (f"**{_plain(describe_parting(pair, region) or '')}**" for region in parted)
    yield ""
    for region in pair.regions:
        if region.is_principal:
            yield from (f"- {_plain(describe_turn(turn, labels, region.name))}" for turn in region.turns)


def _row(change: Change) -> str:
    said = list(describe_changes_of(change))
    more = [f"and {len(said) - MOST_FACTS} more"] if len(said) > MOST_FACTS else []
    artifact = change.left.artifact
    name = f"{_code(artifact.display_name)} {_plain(artifact.hash[:8])}"
    what = "<br>".join(_plain(sentence) for sentence in [*said[:MOST_FACTS], *more])
    categories = " ".join(change.categories) or change.degree.value
    return f"| {name} | {_plain(change.left.target or '?')} | {categories} | {what} |"


def _plain(text: str) -> str:
    """Text without markup: no end of a table cell, no mention, no CI command."""
    return _MARKUP.sub(_unmarked, escaped(text).replace("\n", " "))


def _unmarked(found: re.Match[str]) -> str:
    character = found[0]
    return {"<": "&lt;", "&": "&amp;", "@": "&#64;"}.get(character, f"\\{character}")


def _code(text: str) -> str:
    """Inline code in a sentence or a table cell; the text cannot end it."""
    plain = _plain(text)
    return f"`{text}`" if plain == text else f"<code>{plain}</code>"


def _block(text: str) -> str:
    """A code block; the text cannot end it."""
    fence = "`" * max([3, *(len(run) + 1 for run in re.findall("`+", text))])
    return f"{fence}\n{escaped(text)}\n{fence}"


def _bounded(lines: Sequence[str]) -> str:
    """As many whole elements as fit in a comment."""
    kept, size = [], 0
    for line in lines:
        size += len(line) + 1
        if size > MOST_CHARACTERS:
            kept += ["", "… cut to the size of a comment; `--format json` has everything"]
            break
        kept.append(line)
    return "\n".join(kept) + "\n"
