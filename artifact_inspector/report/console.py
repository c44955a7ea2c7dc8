"""Writes reports to a stream with its width, colour and encoding, and without control characters.

Also renders reports as plain text for other front ends.
"""

from __future__ import annotations

import io
import os
import shutil
import sys
from dataclasses import dataclass
from typing import TextIO

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.segment import Segment

from artifact_inspector.model.escaping import escape_unprintable
from artifact_inspector.report.ci_escaping import escape_commands
from artifact_inspector.report.line_limit import cut, is_brief

PIPE_WIDTH = 200
"""Columns where no terminal sets a width: wide enough that tables are not cut."""
MIN_WIDTH = 32
MAX_WIDTH = 10_000
"""Most columns that a report is laid out for."""
_DIGITS = 10

_PLAIN = "white-space: pre; overflow-x: auto; line-height: 1.25; font-family: monospace"
_ASCII = str.maketrans({"…": "...", "–": "-", "×": "x", "÷": "/", "·": "|", "→": "->", "�": "?"})


def make_console(stream: TextIO) -> Console:
    """A console on a stream; honours COLUMNS and NO_COLOR, and prints markup in names literally."""
    columns = os.environ.get("COLUMNS", "")
    size = shutil.get_terminal_size()  # unlike rich, it accepts a number of 5,000 digits
    if columns.isdecimal() and len(columns) < _DIGITS and int(columns) > 0:
        width: int | None = min(int(columns), MAX_WIDTH)
    elif stream.isatty():
        width = min(size.columns, MAX_WIDTH) if columns else None
    else:
        width = PIPE_WIDTH
    console = Console(file=stream, width=width, height=size.lines, highlight=False, markup=False, emoji=False)
    if console.width < MIN_WIDTH:
        console.width = MIN_WIDTH
    return console


def is_width_limited(console: Console) -> bool:
    """Whether the width limits the layout: a terminal or an explicit COLUMNS, not a pipe."""
    return console.is_terminal or console.width != PIPE_WIDTH


def show(report: RenderableType, stream: TextIO) -> None:
    """Write a report to a stream in one call; its short version with `--brief`."""
    brief_report = getattr(report, "brief", None) if is_brief() and stream is sys.stdout else None
    report = report if brief_report is None else brief_report()
    console = make_console(stream)
    with console.capture() as captured:
        console.print(Printable(report), crop=False)
    _write_brief(_strip_padding(captured.get()), stream)


def write_lines(text: str, stream: TextIO) -> None:
    """Write plain lines, without control characters; on standard output, at most as many as `--brief` allows."""
    _write_brief(escape_unprintable(text), stream)


def _write_brief(text: str, stream: TextIO) -> None:
    write(cut(text) if stream is sys.stdout else text, stream)


def to_text(report: RenderableType, width: int) -> str:
    """A report as plain text, `width` columns wide."""
    console = Console(file=io.StringIO(), width=width, height=1, color_system=None, highlight=False, markup=False)
    with console.capture() as captured:
        console.print(Printable(report), crop=False)
    return escape_commands(_strip_padding(captured.get()))


def _strip_padding(text: str) -> str:
    return "".join(f"{line.rstrip()}\n" for line in text.splitlines())


def write(text: str, stream: TextIO, *, commands: bool = False) -> None:
    """Write text in the encoding of the stream; characters that it lacks are replaced by ASCII.

    Args:
        commands: the text is a list of commands to a CI system, and is not escaped.
    """
    text = text if commands else escape_commands(text)
    encoding = (stream.encoding or "utf-8").lower().replace("_", "-")
    if not encoding.startswith("utf"):
        text = text.translate(_ASCII).encode(encoding, "replace").decode(encoding)
    elif not text.isascii():
        text = text.encode("utf-8", "replace").decode("utf-8")
    stream.write(text)
    stream.flush()


@dataclass(frozen=True, slots=True)
class Printable:
    """A renderable whose text has no control characters; the text of a cache file is not trusted."""

    content: RenderableType

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for segment in console.render(self.content, options):
            yield Segment(escape_unprintable(segment.text), segment.style, segment.control)
