"""Converts reports to HTML for notebooks: real tables, no cut text, memory strips as wide as their cells."""

from __future__ import annotations

import html
import io
from collections.abc import Iterable, Iterator

from rich.console import Console, ConsoleRenderable, Group, RenderableType, RichCast
from rich.padding import Padding
from rich.style import Style
from rich.table import Table
from rich.terminal_theme import DEFAULT_TERMINAL_THEME
from rich.text import Text

from artifact_inspector.model.printable import escaped
from artifact_inspector.report.layout import Pieces, Signature, Strip

_WIDE = 10**4
"""Columns of the layout, so that only the page wraps lines."""
_PLAIN = "color:inherit;background:none;font-family:inherit"
_TABLE = "border-collapse:collapse;border:none;margin:0;font-size:inherit;color:inherit;background:none"
_CELL = "padding:1px 1em 1px 0;border:none;vertical-align:top;white-space:pre-wrap;color:inherit"
_HEAD = "font-weight:normal;opacity:.65"
_INDENT = 0.6
"""Width of one column of indentation, in em."""


def to_html(report: RenderableType) -> str:
    """A report as an HTML fragment with inline styles; colours are inherited from the page."""
    console = Console(file=io.StringIO(), width=_WIDE, height=1, highlight=False, markup=False)
    body = "".join(_block(report, console))
    return f'<div style="{_PLAIN};line-height:1.35;overflow-x:auto">{body}</div>'


def _block(found: RenderableType, console: Console) -> Iterator[str]:
    """The HTML blocks of a renderable."""
    if isinstance(found, RichCast):
        found = found.__rich__()
    if isinstance(found, str):
        found = Text(found)
    if isinstance(found, Text):
        yield f'<div style="white-space:pre-wrap;min-height:.5em">{_inline(found, console)}</div>'
    elif isinstance(found, Table):
        yield _table(found, console)
    elif isinstance(found, Padding):
        inside = "".join(_block(found.renderable, console))
        margins = f"{found.top * 0.6:g}em 0 {found.bottom * 0.6:g}em {found.left * _INDENT:g}em"
        yield f'<div style="margin:{margins}">{inside}</div>'
    elif isinstance(found, Group):
        yield from _each(found.renderables, console)
    elif isinstance(found, Pieces | Signature | Strip):
        yield f"<div>{_inline(found, console)}</div>"
    elif isinstance(found, ConsoleRenderable):
        yield from _each(
            (x for x in found.__rich_console__(console, console.options) if not hasattr(x, "control")),
            console,
        )


def _each(parts: Iterable[object], console: Console) -> Iterator[str]:
    for part in parts:
        yield from _block(part, console)  # type: ignore[arg-type]


def _inline(found: object, console: Console) -> str:
    """The HTML of the content of a cell or a line."""
    if isinstance(found, str):
        return html.escape(escaped(found))
    if isinstance(found, Text):
        base = console.get_style(found.style)
        return "".join(
            _span(part.text, base + (part.style or Style.null())) for part in found.render(console)
        )
    if isinstance(found, Pieces):
        return found.gap.join(f"<span>{_inline(piece, console)}</span>" for piece in found.pieces)
    if isinstance(found, Signature):
        return f"<code style='{_PLAIN}'>{html.escape(escaped(found.signature))}</code>"
    if isinstance(found, Strip):
        return _strip(found)
    return "".join(_block(found, console))  # type: ignore[arg-type]


def _span(text: str, style: Style | None) -> str:
    said = html.escape(escaped(text))
    css = "" if style is None else style.get_html_style(DEFAULT_TERMINAL_THEME)
    return f'<span style="{css}">{said}</span>' if css else said


def _table(table: Table, console: Console) -> str:
    align = ["" if column.justify == "left" else f";text-align:{column.justify}" for column in table.columns]
    rows = []
    if table.show_header and any(str(column.header) for column in table.columns):
        cells = (
            f'<th style="{_CELL};{_HEAD}{side or ";text-align:left"}">{_inline(column.header, console)}</th>'
            for column, side in zip(table.columns, align, strict=True)
        )
        rows.append(f"<tr>{''.join(cells)}</tr>")
    for row in zip(*(list(column.cells) for column in table.columns), strict=True):
        cells = (
            f'<td style="{_CELL}{side or ";text-align:left"}">{_inline(cell, console)}</td>'
            for cell, side in zip(row, align, strict=True)
        )
        rows.append(f'<tr style="background:none">{"".join(cells)}</tr>')
    return f'<table style="{_TABLE}">{"".join(rows)}</table>'


def _strip(found: Strip) -> str:
    """The HTML of a memory strip; its buffers are shaded alternately."""
    each = found.length / found.parts
    parts = "".join(
        '<span style="position:absolute;top:0;bottom:0;'
        f"left:{100 * (found.start + n * each) / found.whole:.3g}%;"
        f"width:{100 * each / found.whole:.3g}%;background:currentColor;opacity:{0.75 - 0.35 * (n % 2):g}"
        '"></span>'
        for n in range(found.parts)
    )
    frame = "position:relative;display:block;min-width:12em;height:.8em;border:1px solid currentColor"
    return f'<span style="{frame}">{parts}</span>'
