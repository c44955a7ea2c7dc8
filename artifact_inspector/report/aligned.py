"""Two signatures aligned, with gaps for runs that only the other one has."""

from __future__ import annotations

from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, RenderResult
from rich.measure import Measurement
from rich.text import Text

from artifact_inspector.comparison.alignment import Column


@dataclass(frozen=True, slots=True)
class Aligned:
    """One of two aligned signatures; runs that do not fit are counted."""

    columns: tuple[Column, ...]
    place: int

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        text = Text(no_wrap=True)
        for number, column in enumerate(self.columns):
            width = max(len(column.left), len(column.right))
            rest = len(self.columns) - number
            more = f"… {rest} more"
            if len(text) + width + (0 if rest == 1 else len(more) + 1) > options.max_width:
                text.append(more, "dim")
                break
            own, other = column[self.place], column[1 - self.place]
            text.append(f"{own:<{width}} ", "" if own == other else "bold")
        yield text

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        whole = sum(max(len(column.left), len(column.right)) + 1 for column in self.columns)
        return Measurement(min(24, whole), max(1, whole))
