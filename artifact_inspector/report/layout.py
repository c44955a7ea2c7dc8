"""Text elements that adapt to the available width."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderResult
from rich.measure import Measurement
from rich.text import Text

from artifact_inspector.analysis.order.facts import RegionFacts
from artifact_inspector.model import Verdict
from artifact_inspector.report.words import cut_signature

_SHADES = "█▒"


@dataclass(frozen=True, slots=True)
class Pieces:
    """Short texts separated by dots; a line breaks between two texts, never inside one."""

    pieces: Sequence[str | Text]
    style: str = ""
    gap: str = " · "

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        widths = [cell_len(str(piece)) for piece in self.pieces]
        return Measurement(max(widths, default=0), sum(widths) + len(self.gap) * max(0, len(widths) - 1))

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        line: list[str | Text] = []
        for piece in self.pieces:
            width = sum(cell_len(str(one)) + len(self.gap) for one in (*line, piece)) - len(self.gap)
            if line and width > options.max_width:
                yield self._joined(line)
                line = []
            line.append(piece)
        yield self._joined(line)

    def _joined(self, line: Sequence[str | Text]) -> Text:
        texts = (Text(one) if isinstance(one, str) else one for one in line)
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
        yield Text(
            cut_signature(self.signature, options.max_width), self.style, no_wrap=True, overflow="ellipsis"
        )


def cut(words: str, most: int | None) -> str:
    """The text, cut to `most` characters with an ellipsis; None for all of it.

    Example:
        >>> cut("64×128×128 bf16 w8 s3 BK=128", 22)
        '64×128×128 bf16 w8 s3…'
    """
    return words if most is None or len(words) <= most else f"{words[: most - 1].rstrip()}…"


def phrase_text(region: RegionFacts, phrase: str | None = None) -> Text:
    """A region's verdict with its style; a verdict is neither good nor bad, so it is not red or green.

    Args:
        phrase: the text to style; the region's phrase by default.
    """
    return Text(region.phrase if phrase is None else phrase, _STYLES.get(region.verdict, "bold"))


_STYLES = {Verdict.UNKNOWN: "bold magenta", Verdict.NO_LOADS: "dim", Verdict.NO_COMPUTE: "dim"}


@dataclass(frozen=True, slots=True)
class Strip:
    """A range of memory drawn as a strip of `width` characters."""

    start: int
    length: int
    parts: int
    """Buffers in the range, shaded alternately."""
    whole: int
    width: int
    """Columns."""

    def __str__(self) -> str:
        cell = self.whole / self.width
        first = min(int(self.start / cell), self.width - 1)
        stop = min(self.width, max(first + 1, round((self.start + self.length) / cell)))
        shades = [_SHADES[place * self.parts // (stop - first) % 2] for place in range(stop - first)]
        return "·" * first + "".join(shades) + "·" * (self.width - stop)

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        return Measurement(self.width, self.width)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield Text(str(self), no_wrap=True)
