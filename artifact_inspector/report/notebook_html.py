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

from artifact_inspector.model.escaping import escape_unprintable
from artifact_inspector.report.layout import MemoryStrip, Signature, WrappedTexts

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
    body = "".join(_block(report, Console(file=io.StringIO(), width=_WIDE, height=1, highlight=False, markup=False)))
    return f'<div style="{_PLAIN};line-height:1.35;overflow-x:auto">{body}</div>'


def _block(renderable: RenderableType, console: Console) -> Iterator[str]:
    if isinstance(renderable, RichCast):
        renderable = renderable.__rich__()
    if isinstance(renderable, str):
        renderable = Text(renderable)
    if isinstance(renderable, Text):
        yield f'<div style="white-space:pre-wrap;min-height:.5em">{_inline(renderable, console)}</div>'
    elif isinstance(renderable, Table):
        yield _table(renderable, console)
    elif isinstance(renderable, Padding):
        inside = "".join(_block(renderable.renderable, console))
        margins = f"{renderable.top * 0.6:g}em 0 {renderable.bottom * 0.6:g}em {renderable.left * _INDENT:g}em"
        yield f'<div style="margin:{margins}">{inside}</div>'
    elif isinstance(renderable, Group):
        yield from _render_all(renderable.renderables, console)
    elif isinstance(renderable, WrappedTexts | Signature | MemoryStrip):
        yield f"<div>{_inline(renderable, console)}</div>"
    elif isinstance(renderable, ConsoleRenderable):
        yield from _render_all(
            (x for x in renderable.__rich_console__(console, console.options) if not hasattr(x, "control")), console
        )


def _render_all(renderables: Iterable[object], console: Console) -> Iterator[str]:
    for renderable in renderables:
        yield from _block(renderable, console)  # type: ignore[arg-type]


def _inline(content: object, console: Console) -> str:
    if isinstance(content, str):
        return html.escape(escape_unprintable(content))
    if isinstance(content, Text):
        base = console.get_style(content.style)
        return "".join(
            _span(segment.text, base + (segment.style or Style.null())) for segment in content.render(console)
        )
    if isinstance(content, WrappedTexts):
        return content.gap.join(f"<span>{_inline(piece, console)}</span>" for piece in content.texts)
    if isinstance(content, Signature):
        return f"<code style='{_PLAIN}'>{html.escape(escape_unprintable(content.signature))}</code>"
    if isinstance(content, MemoryStrip):
        return _strip(content)
    return "".join(_block(content, console))  # type: ignore[arg-type]


def _span(text: str, style: Style | None) -> str:
    escaped_text = html.escape(escape_unprintable(text))
    css = "" if style is None else style.get_html_style(DEFAULT_TERMINAL_THEME)
    return f'<span style="{css}">{escaped_text}</span>' if css else escaped_text


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


def _strip(strip: MemoryStrip) -> str:
    """The HTML of a memory strip; its buffers are shaded alternately."""
    buffer_length = strip.length / strip.buffers
    spans = "".join(
        '<span style="position:absolute;top:0;bottom:0;'
        f"left:{100 * (strip.start + n * buffer_length) / strip.total:.3g}%;"
        f"width:{100 * buffer_length / strip.total:.3g}%;background:currentColor;opacity:{0.75 - 0.35 * (n % 2):g}"
        '"></span>'
        for n in range(strip.buffers)
    )
    frame = "position:relative;display:block;min-width:12em;height:.8em;border:1px solid currentColor"
    return f'<span style="{frame}">{spans}</span>'
