"""The page of two caches: a table of changes, worst first, and a detail page for each pair."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from artifact_inspector.comparison.corpus import Change, Corpus, Degree
from artifact_inspector.facts.modules import Disassemble
from artifact_inspector.report.corpus import (
    describe_change,
    describe_gates,
    describe_uncompared,
    describe_unmatched,
    summarise_corpus,
)
from artifact_inspector.report.html.pair import make_pair_detail, view_pair
from artifact_inspector.report.html.sources import ReadSource, Sources
from artifact_inspector.report.html.table import TableColumn, TableData, TableRow, Tally
from artifact_inspector.report.html.table_page import MAX_DETAILS, ListSection, TablePage, name_details, render_pages
from artifact_inspector.vocabulary.variant_labels import Compiled, label_form

MAX_SENTENCES = 6
_COLUMNS = (
    TableColumn("kernel", "kernel", "", False, True),
    TableColumn("variant", "variant", "", False, True),
    TableColumn("target", "target", "", False, True),
    TableColumn("changed", "changed", "degree of change", False, True),
    TableColumn("about", "about", "categories of the differing facts", False, is_long=True),
    TableColumn("facts", "facts", "number of differing facts", True),
    TableColumn("what", "what", "changes, the most costly first", False, is_long=True),
)


def corpus_page(
    corpus: Corpus,
    gates: tuple[str, ...],
    read_source: ReadSource,
    disassemble: Disassemble | None = None,
    *,
    passes: Sequence[str] = (),
    is_single: bool = False,
) -> str:
    """The comparison of two caches, or of two kernels.

    Args:
        passes: sentences on the compiler pass behind each fact of the two kernels.
        gates: the facts to fail on.
        is_single: show the only pair without the table.
    """
    compared = [change for change in corpus.changes if change.pair is not None][:MAX_DETAILS]
    names = dict(
        zip(
            map(id, compared),
            name_details([x.left.artifact.hash + x.right.artifact.hash for x in compared]),
            strict=True,
        )
    )
    details = [
        make_pair_detail(view_pair(change.pair, Sources(read_source), disassemble, passes), names[id(change)])
        for change in compared
        if change.pair is not None
    ]
    is_single = is_single and len(details) == 1
    lines = [_table_row(change, names.get(id(change), "")) for change in corpus.changes]
    degrees = Counter(change.degree.value for change in corpus.changes)
    book = TablePage(
        f"{compared[0].left.artifact.display_name}: two variants compared" if is_single else "two caches compared",
        " · ".join(summarise_corpus(corpus)),
        sentences=tuple(describe_gates(corpus, gates)),
        asides=tuple(
            _list_section(paragraph) for paragraph in (*describe_unmatched(corpus), *describe_uncompared(corpus))
        ),
        tallies=(
            Tally("changed", "degree of change", tuple(degrees.most_common())),
            Tally("about", "about", tuple(corpus.by_category.items())),
        ),
        table=TableData("kernels of both caches", _COLUMNS, tuple(lines)),
        problems=tuple(f"{side} {problem.path}: {problem.problem}" for side, problem in corpus.problems),
    )
    return render_pages(book, details, is_single=is_single)


def _table_row(change: Change, name: str) -> TableRow:
    artifact = change.left.artifact
    sentences = list(describe_change(change)) if change.degree is Degree.CHANGED else []
    omitted = len(sentences) - MAX_SENTENCES
    return TableRow(
        name,
        (
            artifact.display_name,
            label_form(Compiled(artifact, change.left.program), {}),
            change.left.target or "unknown",
            change.degree.value,
            change.categories,
            len(change.facts),
            "; ".join([*sentences[:MAX_SENTENCES], *([f"and {omitted} more"] if omitted > 0 else [])]),
        ),
    )


def _list_section(paragraph: str) -> ListSection:
    """A paragraph as a heading with a list."""
    head, *lines = paragraph.split("\n")
    return ListSection(head, tuple(line.strip() for line in lines))
