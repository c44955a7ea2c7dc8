"""Two signatures aligned, with gaps for runs that only the other one has."""

from __future__ import annotations

from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, RenderResult
from rich.measure import Measurement
from rich.text import Text

from artifact_inspector.comparison.alignment import SignatureColumn


@dataclass(frozen=True, slots=True)
class AlignedSignature:
    """One of two aligned signatures; runs that do not fit are counted."""

    columns: tuple[SignatureColumn, ...]
    side: int

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        text = Text(no_wrap=True)
        for number, column in enumerate(self.columns):
            width = max(len(column.left), len(column.right))
            remaining = len(self.columns) - number
            ellipsis = f"… {remaining} more"
            if len(text) + width + (0 if remaining == 1 else len(ellipsis) + 1) > options.max_width:
                text.append(ellipsis, "dim")
                break
            run, other_run = column[self.side], column[1 - self.side]
            text.append(f"{run:<{width}} ", "" if run == other_run else "bold")
        yield text

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        total_width = sum(max(len(column.left), len(column.right)) + 1 for column in self.columns)
        return Measurement(min(24, total_width), max(1, total_width))
