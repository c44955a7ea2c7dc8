"""One kernel in all its variants: a grid of verdicts, a table of configurations, and why each was compiled."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.measure import Measurement
from rich.padding import Padding
from rich.segment import Segment
from rich.table import Column, Table
from rich.text import Text

from artifact_inspector.comparison.decisive_phrases import value_text
from artifact_inspector.comparison.matrix import Matrix, Variant, shown_columns
from artifact_inspector.comparison.variant_causes import Causes, EntryDifference, KeyPartKind
from artifact_inspector.model import OrderVerdict
from artifact_inspector.report.kernel_blocks import worst_block
from artifact_inspector.report.layout import (
    WrappedTexts,
    cut_text,
    folded_column,
    number_column,
    phrase_text,
    plain_table,
    text_column,
)
from artifact_inspector.report.phrases import describe_verdict, plural
from artifact_inspector.vocabulary.fact import FactColumn
from artifact_inspector.vocabulary.names import STEPS
from artifact_inspector.vocabulary.selection import sort_kernels

MIN_LABEL_WIDTH = 16
"""Least characters of a variant's label in a column."""
UNBOUNDED = 10**4


@dataclass(frozen=True, slots=True)
class MatrixReport:
    """The grid of targets × stages, then a row for each variant."""

    matrix: Matrix
    cache: str = "."
    """Where the variants lie, as the user named it."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        count = len(self.matrix.variants)
        yield Text(f"{self.matrix.name}: {count} {plural('variant', count)}", "bold")
        yield from worst_block(self.cache, sort_kernels([x.kernel for x in self.matrix.variants], "cost"))
        yield ""
        grid = _grid(self.matrix)
        width = Measurement.get(console, options.update(width=UNBOUNDED), grid).minimum
        fits = width <= options.max_width and _printed_width(console, options, grid) <= options.max_width
        yield grid if fits else _cards(grid)
        yield ""
        constant, configurations, hidden = _fitting_configurations(self.matrix, console, options)
        if constant:
            yield Text(constant, "dim")
        yield configurations
        if hidden:
            yield Text(f"Hidden at this width: {', '.join(hidden)}. --json has every column.", "dim")
        yield ""
        if count > 1:
            yield causes_block(self.matrix.causes)
            yield ""
        yield _legend(self.matrix)


def _printed_width(console: Console, options: ConsoleOptions, table: Table) -> int:
    """The width of the printed table; cells that cannot be cut can make it wider than requested."""
    lines = Segment.split_lines(console.render(table, options))
    return max((sum(segment.cell_length for segment in line) for line in lines), default=0)


def _grid(matrix: Matrix) -> Table:
    """Verdicts of the main loop; targets with equal verdicts share a row."""
    steps = [step for step in STEPS if any(step in form.verdicts for form in matrix.variants)]
    lines: dict[tuple[tuple[str, ...], tuple[str | None, ...]], list[Variant]] = {}
    for form in matrix.variants:
        verdict_by_step = form.verdicts
        verdicts = tuple(verdict_by_step[step] or "unknown" if step in verdict_by_step else None for step in steps)
        lines.setdefault((_version_and_variant(form), verdicts), []).append(form)
    headings = ("Triton", "variant")
    varying = [at for at in range(len(headings)) if len({config[at] for config, _ in lines}) > 1]
    table = plain_table()
    for at in varying:
        table.add_column(headings[at], no_wrap=True)
    names = [len(form.summary.target or "unknown") for form in matrix.variants]
    table.add_column("target", overflow="fold", min_width=max(names, default=0) + 1)
    for step in steps:
        table.add_column(step, no_wrap=True)
    labels = [form.label or "?" for form in matrix.variants]  # in their numeric order
    for (config, verdicts), forms in sorted(lines.items(), key=lambda x: (x[0][0][0], labels.index(x[0][0][1]))):
        cells: list[RenderableType] = [config[at] for at in varying]
        cells.append(", ".join(dict.fromkeys(form.summary.target or "unknown" for form in forms)))
        previous = None
        for step, verdict in zip(steps, verdicts, strict=True):
            text = Text("–", "dim") if verdict is None else phrase_text(forms[0].regions[step], verdict)
            if verdict is not None and previous is not None and verdict != previous:
                text.stylize("yellow")
            previous = verdict or previous
            cells.append(text)
        table.add_row(*cells)
    return table


def _cards(table: Table) -> RenderableType:
    """Each row as lines of its own, with headings before the values: for a narrow terminal."""
    columns = [(str(column.header), tuple(column.cells)) for column in table.columns]
    lines: list[RenderableType] = []
    for row in range(table.row_count):
        pieces = [Text.assemble((f"{name} ", "dim"), cells[row]) for name, cells in columns]  # type: ignore[arg-type]
        lines += [pieces[0], Padding(WrappedTexts(pieces[1:]), (0, 0, 0, 2))]
    return Group(*lines)


def _version_and_variant(form: Variant) -> tuple[str, ...]:
    return (form.summary.triton or "?", form.label or "?")


def _fitting_configurations(
    matrix: Matrix, console: Console, options: ConsoleOptions
) -> tuple[str, RenderableType, tuple[str, ...]]:
    """The shared values, the table of variants cut to the width, and the headings that it hides."""
    figures = [column for column in shown_columns() if any(column.name in form.figures for form in matrix.variants)]
    longest = max(len(form.label) for form in matrix.variants)
    for shown_count in range(len(figures), -1, -1):
        constant, table = _configurations(matrix, None, figures[:shown_count])
        excess = Measurement.get(console, options.update(width=UNBOUNDED), table).maximum - options.max_width
        if excess > 0 and longest - excess >= MIN_LABEL_WIDTH:
            constant, table = _configurations(matrix, longest - excess, figures[:shown_count])
            excess = Measurement.get(console, options.update(width=UNBOUNDED), table).maximum
            excess -= options.max_width
        if excess <= 0:
            return constant, table, tuple(column.heading for column in figures[shown_count:])
    constant, table = _configurations(matrix, None, figures)
    return constant, _cards(table), ()


def _configurations(matrix: Matrix, max_label: int | None, columns: Sequence[FactColumn]) -> tuple[str, Table]:
    """The values that all variants share, and a row for each variant. `max_label`: characters of a label."""
    headings = ["Triton", "variant", "target", *matrix.options]
    rows = [
        [
            *_version_and_variant(x),
            x.summary.target or "?",
            *(value_text(x.summary.options.get(n)) for n in matrix.options),
        ]
        for x in matrix.variants
    ]
    same = [at for at in range(len(headings)) if len(rows) > 1 and len({row[at] for row in rows}) == 1]
    table = plain_table(gap=1)
    for at, heading in enumerate(headings):
        if at not in same:
            table.add_column(heading, no_wrap=True)
    for column in columns:
        table.add_column(column.heading, justify="right", no_wrap=True)
    table.add_column("verdict", no_wrap=True)
    table.add_column("hash", style="dim", no_wrap=True)
    for form, row in zip(matrix.variants, rows, strict=True):
        row_cells = [cut_text(cell, max_label) if headings[at] == "variant" else cell for at, cell in enumerate(row)]
        cells: list[RenderableType] = [cell for at, cell in enumerate(row_cells) if at not in same]
        cells += [_figure_text(form, column.name) for column in columns]
        region = form.kernel.principal_region
        cells.append(Text("–") if region is None else phrase_text(region))
        cells.append(form.kernel.artifact.hash[:8])
        table.add_row(*cells)
    return " · ".join(f"{headings[at]} {rows[0][at]}" for at in same), table


def _figure_text(form: Variant, name: str) -> str:
    value = form.figures.get(name)
    return "?" if value is None and name in form.figures else value_text(value)


def _legend(matrix: Matrix) -> Table:
    grid = Table.grid(Column(no_wrap=True, style="dim"), Column(overflow="fold", style="dim"), padding=(0, 2, 0, 0))
    for term, meaning in _define_terms(matrix):
        grid.add_row(term, meaning)
    return grid


def _define_terms(matrix: Matrix) -> Iterator[tuple[str, str]]:
    verdicts = {region.verdict for form in matrix.variants for region in form.regions.values()}
    for verdict in sorted(verdicts - {OrderVerdict.UNKNOWN}):
        yield verdict, describe_verdict(verdict) or ""
    for column in shown_columns():
        if any(column.name in form.figures for form in matrix.variants):
            yield column.heading, column.unit
    if any(value is None for form in matrix.variants for value in form.figures.values()):
        yield "?", "not available; registers, spills and blocks need a binary in the cache"


MAX_VALUES = 6


@dataclass(frozen=True, slots=True)
class ReasonsReport:
    """The differences of two cache entries."""

    labels: tuple[str, str]
    reasons: Sequence[EntryDifference]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        if self.reasons[0].key_part.cause is KeyPartKind.UNKNOWN:
            for label in self.labels:
                yield Text(label, overflow="fold")
            yield ""
            yield Text("The files of the two entries show no difference.", "bold")
            yield Text(
                "Triton's cache key also covers the compiler's files and environment variables (TRITON_…). "
                "Cache entries do not record these.",
                overflow="fold",
            )
            return
        fixed = [folded_column(heading, no_wrap=True) for heading in ("differs in", "")]
        table = plain_table(*fixed, *map(folded_column, self.labels))
        for respect, left, right in self.reasons:
            table.add_row(Text(str(respect.cause), "bold"), respect.name, left, right)
        yield table


@dataclass(frozen=True, slots=True)
class CausesReport:
    """The causes of a kernel's variants."""

    name: str
    causes: Causes

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        count = self.causes.variant_count
        yield Text(f"{self.name}: {count} {plural('variant', count)}", "bold")
        yield ""
        yield causes_block(self.causes)


def causes_block(causes: Causes) -> RenderableType:
    """The properties that vary, and the number of variants that each causes."""
    if not causes.varying:
        return Text("Their files show no difference." if causes.variant_count > 1 else "There is only one variant.")
    table = plain_table(
        text_column("differs in"), text_column(""), number_column("causes"), folded_column("values × variants")
    )
    for cause in causes.varying:
        values = [f"{value} ×{count}" for value, count in cause.values.items()]
        ellipsis = f", {len(values) - MAX_VALUES} more" if len(values) > MAX_VALUES else ""
        text = ", ".join(values[:MAX_VALUES]) + ellipsis
        table.add_row(Text(str(cause.key_part.cause), "bold"), cause.key_part.name, str(cause.variants_caused), text)
    if causes.indistinguishable:
        variants = f"{causes.indistinguishable} more {plural('variant', causes.indistinguishable)}"
        text = f"{variants} whose files show no difference"
        table.add_row(Text(str(KeyPartKind.UNKNOWN), "bold"), "", str(causes.indistinguishable), text)
    return Group(table, Text("causes: variants caused only by this property", "dim", overflow="fold"))
