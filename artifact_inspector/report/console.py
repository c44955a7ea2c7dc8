"""Where reports are written: width, colour and encoding of a stream, and nothing unprintable on it."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TextIO

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.segment import Segment

__all__ = ["make_console", "show", "write"]

PIPE_WIDTH = 200
"""Columns where no terminal sets a limit: wide enough that tables need no cut."""
LEAST_WIDTH = 32

_ASCII = str.maketrans({"…": "...", "–": "-", "×": "x", "÷": "/", "·": "|", "→": "->", "�": "?"})


def make_console(stream: TextIO) -> Console:
    """A console on a stream; COLUMNS and NO_COLOR are honoured, markup in names is not."""
    columns = os.environ.get("COLUMNS", "")
    width = int(columns) if columns.isdecimal() and int(columns) > 0 else None
    if width is None and not stream.isatty():
        width = PIPE_WIDTH
    console = Console(file=stream, width=width, highlight=False, markup=False, emoji=False)
    if console.width < LEAST_WIDTH:
        console.width = LEAST_WIDTH
    return console


def show(report: RenderableType, stream: TextIO) -> None:
    """Write a report to a stream in one piece."""
    console = make_console(stream)
    with console.capture() as captured:
        console.print(_Printable(report), crop=False)
    # tables pad their last column; nobody wants to copy that
    write("".join(f"{line.rstrip()}\n" for line in captured.get().splitlines()), stream)


def write(text: str, stream: TextIO) -> None:
    """Write text in whatever encoding the stream has; what it lacks is written in ASCII."""
    encoding = (stream.encoding or "utf-8").lower().replace("_", "-")
    if not encoding.startswith("utf"):
        text = text.translate(_ASCII).encode(encoding, "replace").decode(encoding)
    elif not text.isascii():
        text = text.encode("utf-8", "replace").decode("utf-8")
    stream.write(text)
    stream.flush()


@dataclass(frozen=True, slots=True)
class _Printable:
    """A renderable whose text can move no cursor: files hold what their author liked."""

    content: RenderableType

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        return _clean(console.render(self.content, options))


def _clean(segments: Iterable[Segment]) -> Iterator[Segment]:
    for segment in segments:
        text = segment.text
        if not text.isprintable() and text != "\n":
            text = "".join(c if c.isprintable() or c == "\n" else chr(0xFFFD) for c in text)
        yield Segment(text, segment.style, segment.control)
