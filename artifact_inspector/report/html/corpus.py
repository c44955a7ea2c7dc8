"""The page of two caches: a table of changes, worst first, and a detail page for each pair."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from artifact_inspector.comparison.corpus import Change, Corpus, Degree
from artifact_inspector.facts.modules import Disassemble
from artifact_inspector.report.corpus import (
    describe_changes_of,
    describe_gates,
    describe_lonely,
    describe_uncompared,
    summary_pieces,
)
from artifact_inspector.report.html.book import MOST_LEAVES, Aside, Book, bind, name_leaves
from artifact_inspector.report.html.pair import leaf_of_pair, view_pair
from artifact_inspector.report.html.sources import ReadSource, Sources
from artifact_inspector.report.html.table import Column, Line, Table, Tally
from artifact_inspector.vocabulary.forms import Compiled, label_form

MOST_SENTENCES = 6
_COLUMNS = (
    Column("kernel", "kernel", "", False, True),
    Column("variant", "variant", "", False, True),
    Column("target", "target", "", False, True),
    Column("changed", "changed", "degree of change", False, True),
    Column("about", "about", "categories of the differing facts", False, is_long=True),
    Column("facts", "facts", "number of differing facts", True),
    Column("what", "what", "changes, the most costly first", False, is_long=True),
)


def corpus_page(
    corpus: Corpus,
    gates: tuple[str, ...],
    read: ReadSource,
    disassemble: Disassemble | None = None,
    *,
    passes: Sequence[str] = (),
    alone: bool = False,
) -> str:
    """The comparison of two caches, or of two kernels.

    Args:
        passes: sentences on the compiler pass behind each fact of the two kernels.
        gates: the facts to fail on.
        alone: show the only pair without the table.
    """
    told = [change for change in corpus.changes if change.pair is not None][:MOST_LEAVES]
    names = dict(
        zip(
            map(id, told),
            name_leaves([x.left.artifact.hash + x.right.artifact.hash for x in told]),
            strict=True,
        )
    )
    leaves = [
        leaf_of_pair(view_pair(change.pair, Sources(read), disassemble, passes), names[id(change)])
        for change in told
        if change.pair is not None
    ]
    alone = alone and len(leaves) == 1
    lines = [_line(change, names.get(id(change), "")) for change in corpus.changes]
    degrees = Counter(change.degree.value for change in corpus.changes)
    book = Book(
        f"{told[0].left.artifact.display_name}: two variants compared" if alone else "two caches compared",
        " · ".join(summary_pieces(corpus)),
        sentences=tuple(describe_gates(corpus, gates)),
        asides=tuple(_aside(said) for said in (*describe_lonely(corpus), *describe_uncompared(corpus))),
        tallies=(
            Tally("changed", "degree of change", tuple(degrees.most_common())),
            Tally("about", "about", tuple(corpus.by_category.items())),
        ),
        table=Table("kernels of both caches", _COLUMNS, tuple(lines)),
        problems=tuple(f"{side} {found.path}: {found.problem}" for side, found in corpus.problems),
    )
    return bind(book, leaves, alone=alone)


def _line(change: Change, name: str) -> Line:
    artifact = change.left.artifact
    said = list(describe_changes_of(change)) if change.degree is Degree.CHANGED else []
    more = len(said) - MOST_SENTENCES
    return Line(
        name,
        (
            artifact.display_name,
            label_form(Compiled(artifact, change.left.program), {}),
            change.left.target or "unknown",
            change.degree.value,
            change.categories,
            len(change.facts),
            "; ".join([*said[:MOST_SENTENCES], *([f"and {more} more"] if more > 0 else [])]),
        ),
    )


def _aside(said: str) -> Aside:
    """A paragraph as a heading with a list."""
    head, *lines = said.split("\n")
    return Aside(head, tuple(line.strip() for line in lines))
