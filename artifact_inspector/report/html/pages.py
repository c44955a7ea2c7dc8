"""The pages of a cache, of all variants of a kernel, and of two caches: a table with a detail page for each row."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from artifact_inspector.comparison.corpus import Change, Corpus, Degree
from artifact_inspector.comparison.matrix import Matrix, Variant
from artifact_inspector.facts.kernel import KernelFacts
from artifact_inspector.facts.modules import Disassemble
from artifact_inspector.files.cache import Cache
from artifact_inspector.findings import find_findings
from artifact_inspector.report.corpus import (
    describe_change,
    describe_gates,
    describe_uncompared,
    describe_unmatched,
    summarise_corpus,
)
from artifact_inspector.report.html.kernel import KernelView, make_detail
from artifact_inspector.report.html.pair import make_pair_detail
from artifact_inspector.report.html.sources import NO_SOURCES, ReadSource, Sources, view_finding
from artifact_inspector.report.html.table_page import (
    MAX_DETAILS,
    UNKNOWN_CELL,
    WORSE,
    DetailPage,
    ListSection,
    TableColumn,
    TableData,
    TablePage,
    TableRow,
    Tally,
    figure_cells,
    kernel_table,
    name_details,
    render_pages,
    tallies,
)
from artifact_inspector.report.kernel_rows import kernel_cells
from artifact_inspector.report.phrases import plural
from artifact_inspector.vocabulary.fact import Value
from artifact_inspector.vocabulary.finding_facts import describe_limit
from artifact_inspector.vocabulary.names import STEPS
from artifact_inspector.vocabulary.rows import columns as vocabulary_columns
from artifact_inspector.vocabulary.selection import cost_of, sort_kernels
from artifact_inspector.vocabulary.variant_labels import Compiled, find_varying, label_form, label_forms


def cache_page(cache: Cache, kernels: Sequence[KernelFacts], views: Sequence[KernelView]) -> str:
    """The HTML of a cache: a single kernel's page, a table with detail pages, or the table only.

    Args:
        views: their detail pages; empty for pages of findings and facts only.
    """
    labels = label_forms([Compiled(kernel.artifact, kernel.program) for kernel in kernels], find_varying(cache.entries))
    details = make_details(kernels, labels, views)
    names = name_details([kernel.artifact.hash for kernel in kernels])
    is_single = len(kernels) == 1 and bool(views)
    rows = {id(kernel): row for *row, kernel in zip(names, labels, kernels, strict=True)}
    by_cost = sort_kernels(kernels, "cost")
    count = f"{len(kernels)} {plural('kernel', len(kernels))}"
    book = TablePage(
        kernels[0].artifact.display_name if is_single else f"{count} in {cache.container or cache.root.name}",
        f"{count} in {cache.title}",
        () if is_single else _worst(by_cost),
        tallies=tallies(kernels),
        table=kernel_table(by_cost, *zip(*(rows[id(kernel)] for kernel in by_cost), strict=True)),
        problems=tuple(f"{problem.path}: {problem.problem}" for problem in cache.problems),
        findings={} if views else dict(zip(names, map(_view_findings, kernels), strict=True)),
    )
    return render_pages(book, details, is_single=is_single)


def view_row(kernel: KernelFacts) -> None:
    """Compute what a page without detail pages shows of a kernel."""
    kernel_cells(kernel)
    figure_cells(kernel)
    cost_of(kernel)
    _ = kernel.program, kernel.verdict


def _worst(by_cost: Sequence[KernelFacts]) -> tuple[str, ...]:
    return tuple(f"Worst: {text}" for text in [describe_limit(by_cost)] if text)


def _view_findings(kernel: KernelFacts) -> list[dict[str, object]]:
    sources = Sources(NO_SOURCES)
    return [view_finding(finding, sources) for finding in find_findings(kernel)]


def make_details(
    kernels: Sequence[KernelFacts], labels: Sequence[str], views: Sequence[KernelView]
) -> list[DetailPage]:
    """A detail page for each view."""
    names = name_details([kernel.artifact.hash for kernel in kernels])
    return [make_detail(*arguments) for arguments in zip(views, names, labels, strict=False)]


def matrix_page(matrix: Matrix, views: Sequence[KernelView]) -> str:
    """The HTML of all variants of a kernel. `views`: the detail page of each variant; empty for the tables only."""
    kernels = [form.kernel for form in matrix.variants]
    labels = [form.label for form in matrix.variants]
    details = make_details(kernels, labels, views)
    ids = [leaf.id for leaf in details] or [""] * len(kernels)
    book = TablePage(
        f"{matrix.name}: {len(kernels)} variants",
        f"{matrix.name}: {len(kernels)} variants",
        _worst(sort_kernels(kernels, "cost")),
        tallies=tallies(kernels),
        table=kernel_table(kernels, ids, labels),
        pivot=_pivot(matrix, ids),
    )
    return render_pages(book, details)


def _pivot(matrix: Matrix, ids: Sequence[str]) -> dict[str, list[Any]]:
    """Configurations as rows, targets and versions as columns; a cell has a value for each figure."""
    steps = [step for step in reversed(STEPS) if any(step in form.verdicts for form in matrix.variants)]
    columns = [
        (fact.column, WORSE[fact.direction])
        for fact in vocabulary_columns()
        if fact.column is not None and any(fact.column.name in form.figures for form in matrix.variants)
    ]
    verdicts = [(f"verdict-{step}", f"verdict at {step}", "", False, "") for step in steps]
    figures = [*verdicts, *((column.name, column.heading, column.unit, True, worse) for column, worse in columns)]
    rows = list(dict.fromkeys(form.label for form in matrix.variants))
    column_names = list(dict.fromkeys(map(_column_name, matrix.variants)))
    cells = []
    for form, name in zip(matrix.variants, ids, strict=True):
        values = [_cell_value(form.verdicts, step) for step in steps]
        values += [_cell_value(form.figures, column.name) for column, _ in columns]
        place = {"row": rows.index(form.label), "column": column_names.index(_column_name(form))}
        cells.append({**place, "id": name, "values": values})
    names = ("key", "heading", "unit", "is_number", "worse")
    quantities = [dict(zip(names, figure, strict=True)) for figure in figures]
    return {"figures": quantities, "rows": rows, "columns": column_names, "cells": cells}


def _cell_value(values: Mapping[str, Value], key: str) -> Value:
    cell_value = values.get(key, "")
    return UNKNOWN_CELL if cell_value is None else cell_value


def _column_name(form: Variant) -> str:
    return f"{form.summary.target or 'unknown'} · {form.summary.triton or 'unknown'}"


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
    hashes = [change.left.artifact.hash + change.right.artifact.hash for change in compared]
    names = dict(zip(map(id, compared), name_details(hashes), strict=True))
    details = [
        make_pair_detail(change.pair, Sources(read_source), names[id(change)], disassemble, passes)
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
    head, *lines = paragraph.split("\n")
    return ListSection(head, tuple(line.strip() for line in lines))
