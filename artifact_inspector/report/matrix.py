"""One kernel in all its forms: a grid of verdicts, and a table of configurations."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.table import Table
from rich.text import Text

from artifact_inspector.comparison.matrix import COLUMNS, Form, Matrix
from artifact_inspector.report.diff import value_text
from artifact_inspector.report.text import phrase_text
from artifact_inspector.report.words import describe_verdict
from artifact_inspector.summary import STEPS

__all__ = ["MatrixReport"]


@dataclass(frozen=True, slots=True)
class MatrixReport:
    """The grid of targets × stages, then a row for each form."""

    matrix: Matrix

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        matrix = self.matrix
        count = len(matrix.forms)
        yield Text(f"{matrix.name} in {count} form{'s' if count != 1 else ''}", "bold")
        yield ""
        yield _grid(matrix)
        yield ""
        yield _configurations(matrix)
        yield ""
        yield from _key(matrix)


def _grid(matrix: Matrix) -> Table:
    """Verdicts of the principal region; forms with the same answer share a line."""
    steps = [step for step in STEPS if any(step in form.verdicts for form in matrix.forms)]
    versions = {form.summary.triton for form in matrix.forms}
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column("target", overflow="fold")
    if len(versions) > 1:
        table.add_column("Triton", overflow="fold")
    table.add_column("forms", justify="right")
    for step in steps:
        table.add_column(step, no_wrap=True)
    lines: dict[tuple[str | None, ...], list[Form]] = {}
    for form in matrix.forms:
        lines.setdefault(tuple(_verdict(form, step) for step in steps), []).append(form)
    for verdicts, forms in lines.items():
        cells: list[RenderableType] = [_joined(form.summary.target for form in forms)]
        cells += [_joined(form.summary.triton for form in forms)] if len(versions) > 1 else []
        cells.append(str(len(forms)))
        before = None
        for verdict in verdicts:
            text = Text("–", "dim") if verdict is None else phrase_text(verdict)
            if verdict is not None and before is not None and verdict != before:
                text.stylize("yellow")
            before = verdict or before
            cells.append(text)
        table.add_row(*cells)
    return table


def _verdict(form: Form, step: str) -> str | None:
    if step not in form.verdicts:
        return None
    return form.verdicts[step] or "unknown"


def _joined(words: Iterator[str | None]) -> str:
    return ", ".join(dict.fromkeys(word or "unknown" for word in words))


def _configurations(matrix: Matrix) -> Table:
    versions = {form.summary.triton for form in matrix.forms}
    columns = [column for column in COLUMNS if any(column.name in form.figures for form in matrix.forms)]
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for heading, right in (("tiles", False), ("warps", True), ("stages", True), ("target", False)):
        table.add_column(heading, justify="right" if right else "left", no_wrap=True)
    if len(versions) > 1:
        table.add_column("Triton", no_wrap=True)
    for name in matrix.options:
        table.add_column(name, overflow="fold")
    for column in columns:
        table.add_column(f"{column.heading}\n{column.unit}".rstrip(), justify="right")
    table.add_column("verdict", no_wrap=True)
    table.add_column("hash", style="dim", no_wrap=True)
    for form in matrix.forms:
        tiles, warps, stages = form.configuration
        cells: list[RenderableType] = [
            tiles,
            value_text(warps),
            value_text(stages),
            form.summary.target or "?",
        ]
        cells += [form.summary.triton or "?"] if len(versions) > 1 else []
        cells += [value_text(form.summary.options.get(name)) for name in matrix.options]
        for column in columns:
            known = column.name in form.figures
            cells.append(
                "?"
                if known and form.figures[column.name] is None
                else value_text(form.figures.get(column.name))
            )
        region = form.kernel.principal_region
        cells.append(Text("–") if region is None else phrase_text(region.phrase))
        cells.append(form.kernel.artifact.hash[:8])
        table.add_row(*cells)
    return table


def _key(matrix: Matrix) -> Iterator[RenderableType]:
    words = {
        verdict.partition("(")[0].partition(" {")[0]
        for f in matrix.forms
        for verdict in f.verdicts.values()
        if verdict
    }
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(no_wrap=True, style="dim")
    grid.add_column(overflow="fold", style="dim")
    for word in sorted(words):
        grid.add_row(word, describe_verdict(word))
    grid.add_row("–, ?", "does not apply; not known (no binary in the cache)")
    yield grid
