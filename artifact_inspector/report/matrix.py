"""One kernel in all its variants: a grid of verdicts and a table of configurations."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.measure import Measurement
from rich.padding import Padding
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from artifact_inspector.comparison.matrix import Form, Matrix, shown_columns
from artifact_inspector.model import Verdict
from artifact_inspector.report.diff import value_text
from artifact_inspector.report.layout import Pieces, cut, phrase_text
from artifact_inspector.report.why import causes_block
from artifact_inspector.report.words import describe_verdict
from artifact_inspector.vocabulary.names import STEPS

LEAST_LABEL = 16
"""Least characters of a variant's label in a column."""
UNBOUNDED = 10**4


@dataclass(frozen=True, slots=True)
class MatrixReport:
    """The grid of targets × stages, then a row for each variant."""

    matrix: Matrix

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        count = len(self.matrix.forms)
        yield Text(f"{self.matrix.name}: {count} variant{'s' if count != 1 else ''}", "bold")
        yield ""
        grid = _grid(self.matrix)
        width = Measurement.get(console, options.update(width=UNBOUNDED), grid).minimum
        fits = width <= options.max_width and _widest(console, options, grid) <= options.max_width
        yield grid if fits else _cards(grid)
        yield ""
        configurations: RenderableType
        constant, configurations = _configurations(self.matrix, None)
        too_much = Measurement.get(console, options.update(width=UNBOUNDED), configurations).maximum
        too_much -= options.max_width
        if too_much > 0:
            longest = max(len(form.label) for form in self.matrix.forms)
            constant, shorter = _configurations(self.matrix, longest - too_much)
            configurations = shorter if longest - too_much >= LEAST_LABEL else _cards(configurations)
        if constant:
            yield Text(constant, "dim")
        yield configurations
        yield ""
        if count > 1:
            yield causes_block(self.matrix.causes)
            yield ""
        yield _key(self.matrix)


def _widest(console: Console, options: ConsoleOptions, table: Table) -> int:
    """The width of the printed table; cells that cannot be cut can make it wider than requested."""
    lines = Segment.split_lines(console.render(table, options))
    return max((sum(segment.cell_length for segment in line) for line in lines), default=0)


def _grid(matrix: Matrix) -> Table:
    """Verdicts of the main loop; targets with equal verdicts share a row."""
    steps = [step for step in STEPS if any(step in form.verdicts for form in matrix.forms)]
    lines: dict[tuple[tuple[str, ...], tuple[str | None, ...]], list[Form]] = {}
    for form in matrix.forms:
        known = form.verdicts
        verdicts = tuple(known[step] or "unknown" if step in known else None for step in steps)
        lines.setdefault((_configured(form), verdicts), []).append(form)
    headings = ("Triton", "variant")
    varying = [at for at in range(len(headings)) if len({config[at] for config, _ in lines}) > 1]
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for at in varying:
        table.add_column(headings[at], no_wrap=True)
    names = [len(form.summary.target or "unknown") for form in matrix.forms]
    table.add_column("target", overflow="fold", min_width=max(names, default=0) + 1)
    for step in steps:
        table.add_column(step, no_wrap=True)
    labels = [form.label or "?" for form in matrix.forms]  # in their numeric order
    for (config, verdicts), forms in sorted(
        lines.items(), key=lambda x: (x[0][0][0], labels.index(x[0][0][1]))
    ):
        cells: list[RenderableType] = [config[at] for at in varying]
        cells.append(", ".join(dict.fromkeys(form.summary.target or "unknown" for form in forms)))
        before = None
        for step, verdict in zip(steps, verdicts, strict=True):
            text = Text("–", "dim") if verdict is None else phrase_text(forms[0].regions[step], verdict)
            if verdict is not None and before is not None and verdict != before:
                text.stylize("yellow")
            before = verdict or before
            cells.append(text)
        table.add_row(*cells)
    return table


def _cards(table: Table) -> RenderableType:
    """Each row as lines of its own, with headings before the values: for a narrow terminal."""
    columns = [(str(column.header), tuple(column.cells)) for column in table.columns]
    lines: list[RenderableType] = []
    for row in range(table.row_count):
        pieces = [Text.assemble((f"{name} ", "dim"), cells[row]) for name, cells in columns]  # type: ignore[arg-type]
        lines += [pieces[0], Padding(Pieces(pieces[1:]), (0, 0, 0, 2))]
    return Group(*lines)


def _configured(form: Form) -> tuple[str, ...]:
    return (form.summary.triton or "?", form.label or "?")


def _configurations(matrix: Matrix, most: int | None) -> tuple[str, Table]:
    """The values that all variants share, and a row for each variant.

    Args:
        most: characters of a label.
    """
    figures = [
        column for column in shown_columns() if any(column.name in form.figures for form in matrix.forms)
    ]
    headings = ["Triton", "variant", "target", *matrix.options]
    rows = [
        [*_configured(form), form.summary.target or "?", *_options(form, matrix)] for form in matrix.forms
    ]
    same = [at for at in range(len(headings)) if len(rows) > 1 and len({row[at] for row in rows}) == 1]
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0), header_style="dim")
    for at, heading in enumerate(headings):
        if at not in same:
            table.add_column(heading, no_wrap=True)
    for column in figures:
        table.add_column(column.heading, justify="right", no_wrap=True)
    table.add_column("verdict", no_wrap=True)
    table.add_column("hash", style="dim", no_wrap=True)
    for form, row in zip(matrix.forms, rows, strict=True):
        words = [cut(cell, most) if headings[at] == "variant" else cell for at, cell in enumerate(row)]
        cells: list[RenderableType] = [cell for at, cell in enumerate(words) if at not in same]
        cells += [_figure(form, column.name) for column in figures]
        region = form.kernel.principal_region
        cells.append(Text("–") if region is None else phrase_text(region))
        cells.append(form.kernel.artifact.hash[:8])
        table.add_row(*cells)
    return " · ".join(f"{headings[at]} {rows[0][at]}" for at in same), table


def _options(form: Form, matrix: Matrix) -> list[str]:
    return [value_text(form.summary.options.get(name)) for name in matrix.options]


def _figure(form: Form, name: str) -> str:
    value = form.figures.get(name)
    return "?" if value is None and name in form.figures else value_text(value)


def _key(matrix: Matrix) -> Table:
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(no_wrap=True, style="dim")
    grid.add_column(overflow="fold", style="dim")
    for word, meaning in _meanings(matrix):
        grid.add_row(word, meaning)
    return grid


def _meanings(matrix: Matrix) -> Iterator[tuple[str, str]]:
    verdicts = {region.verdict for form in matrix.forms for region in form.regions.values()}
    for verdict in sorted(verdicts - {Verdict.UNKNOWN}):
        yield verdict, describe_verdict(verdict) or ""
    for column in shown_columns():
        if any(column.name in form.figures for form in matrix.forms):
            yield column.heading, column.unit
    if any(value is None for form in matrix.forms for value in form.figures.values()):
        yield "?", "not available; registers, spills and blocks need a binary in the cache"
