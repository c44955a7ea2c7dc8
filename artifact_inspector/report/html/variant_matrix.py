"""The page of one kernel in all its variants: configurations × targets and versions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from artifact_inspector.comparison.matrix import Matrix, Variant, shown_columns
from artifact_inspector.report.html.cache import make_details
from artifact_inspector.report.html.kernel import KernelView
from artifact_inspector.report.html.table import UNKNOWN_CELL, kernel_table, tallies
from artifact_inspector.report.html.table_page import TablePage, render_pages
from artifact_inspector.vocabulary.fact import Value
from artifact_inspector.vocabulary.names import STEPS


@dataclass(frozen=True, slots=True)
class PivotQuantity:
    """A quantity that the pivot table can show."""

    key: str
    heading: str
    unit: str
    is_number: bool


@dataclass(frozen=True, slots=True)
class PivotCell:
    """A variant in the pivot table."""

    row: int
    column: int
    id: str
    """Id of its detail page; empty for none."""
    values: tuple[Value, ...]
    """One value per figure."""


@dataclass(frozen=True, slots=True)
class PivotTable:
    """Configurations as rows, targets and versions as columns."""

    figures: tuple[PivotQuantity, ...]
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    cells: tuple[PivotCell, ...]


def matrix_page(matrix: Matrix, views: Sequence[KernelView]) -> str:
    """The HTML of all variants of a kernel.

    Args:
        views: the detail page of each variant; empty for the tables only.
    """
    kernels = [form.kernel for form in matrix.variants]
    labels = [form.label for form in matrix.variants]
    details = make_details(kernels, labels, views)
    ids = [leaf.id for leaf in details] or [""] * len(kernels)
    book = TablePage(
        f"{matrix.name}: {len(kernels)} variants",
        f"{matrix.name}: {len(kernels)} variants",
        tallies=tallies(kernels),
        table=kernel_table(kernels, ids, labels),
        pivot=_pivot(matrix, ids),
    )
    return render_pages(book, details)


def _pivot(matrix: Matrix, ids: Sequence[str]) -> PivotTable:
    steps = [step for step in STEPS if any(step in form.verdicts for form in matrix.variants)]
    columns = [c for c in shown_columns() if any(c.name in form.figures for form in matrix.variants)]
    rows = list(dict.fromkeys(form.label for form in matrix.variants))
    column_names = list(dict.fromkeys(_column_name(form) for form in matrix.variants))
    return PivotTable(
        (
            *(PivotQuantity(f"verdict-{step}", f"verdict at {step}", "", False) for step in reversed(steps)),
            *(PivotQuantity(column.name, column.heading, column.unit, True) for column in columns),
        ),
        tuple(rows),
        tuple(column_names),
        tuple(
            PivotCell(
                rows.index(form.label),
                column_names.index(_column_name(form)),
                name,
                (
                    *(_cell_value(form.verdicts, step) for step in reversed(steps)),
                    *(_cell_value(form.figures, column.name) for column in columns),
                ),
            )
            for form, name in zip(matrix.variants, ids, strict=True)
        ),
    )


def _cell_value(values: Mapping[str, Value], key: str) -> Value:
    cell_value = values.get(key, "")
    return UNKNOWN_CELL if cell_value is None else cell_value


def _column_name(form: Variant) -> str:
    return f"{form.summary.target or 'unknown'} · {form.summary.triton or 'unknown'}"
