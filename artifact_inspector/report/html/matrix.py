"""The page of one kernel in all its variants: configurations × targets and versions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from artifact_inspector.comparison.matrix import Form, Matrix, shown_columns
from artifact_inspector.report.html.book import Book, bind
from artifact_inspector.report.html.cache import bind_leaves
from artifact_inspector.report.html.kernel import KernelView
from artifact_inspector.report.html.table import NOT_KNOWN, kernel_table, tallies
from artifact_inspector.vocabulary.fact import Value
from artifact_inspector.vocabulary.names import STEPS


@dataclass(frozen=True, slots=True)
class Figure:
    """A quantity that the pivot table can show."""

    key: str
    heading: str
    unit: str
    is_number: bool


@dataclass(frozen=True, slots=True)
class Cell:
    """A variant in the pivot table."""

    row: int
    column: int
    id: str
    """Id of its detail page; empty for none."""
    values: tuple[Value, ...]
    """One value per figure."""


@dataclass(frozen=True, slots=True)
class Pivot:
    """Configurations as rows, targets and versions as columns."""

    figures: tuple[Figure, ...]
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    cells: tuple[Cell, ...]


def matrix_page(matrix: Matrix, views: Sequence[KernelView]) -> str:
    """The HTML of all variants of a kernel.

    Args:
        views: the detail page of each variant; empty for the tables only.
    """
    kernels = [form.kernel for form in matrix.forms]
    labels = [form.label for form in matrix.forms]
    leaves = bind_leaves(kernels, labels, views)
    ids = [leaf.id for leaf in leaves] or [""] * len(kernels)
    book = Book(
        f"{matrix.name}: {len(kernels)} variants",
        f"{matrix.name}: {len(kernels)} variants",
        tallies=tallies(kernels),
        table=kernel_table(kernels, ids, labels),
        pivot=_pivot(matrix, ids),
    )
    return bind(book, leaves)


def _pivot(matrix: Matrix, ids: Sequence[str]) -> Pivot:
    steps = [step for step in STEPS if any(step in form.verdicts for form in matrix.forms)]
    columns = [c for c in shown_columns() if any(c.name in form.figures for form in matrix.forms)]
    rows = list(dict.fromkeys(form.label for form in matrix.forms))
    across = list(dict.fromkeys(_place(form) for form in matrix.forms))
    return Pivot(
        (
            *(Figure(f"verdict-{step}", f"verdict at {step}", "", False) for step in reversed(steps)),
            *(Figure(column.name, column.heading, column.unit, True) for column in columns),
        ),
        tuple(rows),
        tuple(across),
        tuple(
            Cell(
                rows.index(form.label),
                across.index(_place(form)),
                name,
                (
                    *(_told(form.verdicts, step) for step in reversed(steps)),
                    *(_told(form.figures, column.name) for column in columns),
                ),
            )
            for form, name in zip(matrix.forms, ids, strict=True)
        ),
    )


def _told(values: Mapping[str, Value], key: str) -> Value:
    found = values.get(key, "")
    return NOT_KNOWN if found is None else found


def _place(form: Form) -> str:
    return f"{form.summary.target or 'unknown'} · {form.summary.triton or 'unknown'}"
