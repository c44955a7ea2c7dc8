"""Text elements that adapt to the available width."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderResult
from rich.measure import Measurement
from rich.padding import Padding
from rich.table import Column, Table
from rich.text import Text

from artifact_inspector.analysis.order.region_facts import RegionFacts
from artifact_inspector.model import OrderVerdict
from artifact_inspector.report.phrases import cut_signature

_SHADES = "█▒"


def next_command(*words: object) -> Text:
    """The command that continues after a report, on one line: a break inside a path could not be pasted."""
    # A bare name of a directory could be the name of a command.
    names = [f"./{word}" if isinstance(word, Path) and word.name == str(word) else str(word) for word in words]
    return Text(f"next   inspect-kernel {shlex.join(names)}", no_wrap=True, overflow="ignore")


def plain_table(*columns: Column | str, gap: int = 2) -> Table:
    """A table without borders, with `gap` blanks between its columns."""
    return Table(*columns, box=None, pad_edge=False, padding=(0, gap, 0, 0), header_style="dim")


def indented(text: str, style: str = "") -> Padding:
    """A line of text that is indented by two blanks."""
    return Padding(Text(text, style, overflow="fold"), (0, 0, 0, 2))


def text_column(heading: str = "", **options: Any) -> Column:
    """A column whose cells stay on one line."""
    return Column(heading, no_wrap=True, **options)


def number_column(heading: str) -> Column:
    """A column of numbers."""
    return Column(heading, no_wrap=True, justify="right")


def folded_column(heading: str = "", **options: Any) -> Column:
    """A column whose cells fold anywhere, so that nothing of them is cut."""
    return Column(heading, overflow="fold", **options)


@dataclass(frozen=True, slots=True)
class WrappedTexts:
    """Short texts separated by dots; a line breaks between two texts, never inside one."""

    texts: Sequence[str | Text]
    style: str = ""
    gap: str = " · "

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        widths = [cell_len(str(piece)) for piece in self.texts]
        return Measurement(max(widths, default=0), sum(widths) + len(self.gap) * max(0, len(widths) - 1))

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        line: list[str | Text] = []
        for next_text in self.texts:
            width = sum(cell_len(str(text)) + len(self.gap) for text in (*line, next_text)) - len(self.gap)
            if line and width > options.max_width:
                yield self._join(line)
                line = []
            line.append(next_text)
        yield self._join(line)

    def _join(self, line: Sequence[str | Text]) -> Text:
        texts = (Text(element) if isinstance(element, str) else element for element in line)
        text = Text(self.gap, overflow="fold").join(texts)
        text.style = self.style
        return text


@dataclass(frozen=True, slots=True)
class Signature:
    """A signature on one line; runs that do not fit are counted."""

    signature: str
    style: str = ""

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        return Measurement(min(24, len(self.signature)), max(1, len(self.signature)))

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield Text(cut_signature(self.signature, options.max_width), self.style, no_wrap=True, overflow="ellipsis")


def cut_text(text: str, max_length: int | None) -> str:
    """The text, cut to `max_length` characters with an ellipsis; None for all of it.

    Example:
        >>> cut_text("64×128×128 bf16 w8 s3 BK=128", 22)
        '64×128×128 bf16 w8 s3…'
    """
    return text if max_length is None or len(text) <= max_length else f"{text[: max_length - 1].rstrip()}…"


def phrase_text(region: RegionFacts, phrase: str | None = None) -> Text:
    """A region's verdict with its style; a verdict is neither good nor bad, so it is not red or green.

    Args:
        phrase: the text to style; the region's phrase by default.
    """
    return Text(region.phrase if phrase is None else phrase, _STYLES.get(region.verdict, "bold"))


_STYLES = {OrderVerdict.UNKNOWN: "bold magenta", OrderVerdict.NO_LOADS: "dim", OrderVerdict.NO_COMPUTE: "dim"}


@dataclass(frozen=True, slots=True)
class MemoryStrip:
    """A range of memory drawn as a strip of `width` characters."""

    start: int
    length: int
    buffers: int
    """Buffers in the range, shaded alternately."""
    total: int
    width: int
    """Columns."""

    def __str__(self) -> str:
        cell = self.total / self.width
        first = min(int(self.start / cell), self.width - 1)
        stop = min(self.width, max(first + 1, round((self.start + self.length) / cell)))
        shades = [_SHADES[index * self.buffers // (stop - first) % 2] for index in range(stop - first)]
        return "·" * first + "".join(shades) + "·" * (self.width - stop)

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        return Measurement(self.width, self.width)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield Text(str(self), no_wrap=True)
