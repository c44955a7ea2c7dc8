"""The lines of a region as they stand in the stage's file, with their events in the margin."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from rich.console import Console, ConsoleOptions, OverflowMethod, RenderResult
from rich.syntax import Syntax
from rich.text import Text

from artifact_inspector.analysis.order.facts import RegionFacts, signature_of
from artifact_inspector.facts.kernel import StageFacts
from artifact_inspector.model import Instruction, Module
from artifact_inspector.model.text import SourceText
from artifact_inspector.report.layout import Pieces, phrase_text
from artifact_inspector.report.lexers.choice import lexer_for
from artifact_inspector.report.words import legend

__all__ = ["ListedLine", "Listing", "events_by_line", "list_lines"]

THEME = "ansi_dark"
"""The terminal's own sixteen colours: readable on any background."""


class ListedLine(NamedTuple):
    """One line of a stage's file."""

    number: int
    events: str
    """Letters of its instructions with their number, `L4`; empty for a line that holds no event."""
    in_flight: int | None
    """Loads in flight after it, on the line where the number changes."""
    text: str


def list_lines(
    source: SourceText, module: Module, region: RegionFacts, levels: Mapping[int, int]
) -> list[ListedLine]:
    """The lines of a region, from its first to its last instruction.

    Args:
        levels: line → loads in flight after it, where the number changes.
    """
    first, last = region.lines
    events = events_by_line(module)
    return [
        ListedLine(number, events.get(number, ""), levels.get(number), source.line_text(number))
        for number in range(first, last + 1)
    ]


def events_by_line(module: Module) -> dict[int, str]:
    """Line → letters of its instructions with their number, `L4`; lines that hold an event alone."""
    at: dict[int, list[Instruction]] = {}
    for function in module.functions:
        for instruction in function.instructions:
            if instruction.kind.letter:
                at.setdefault(instruction.line, []).append(instruction)
    return {line: _events(instructions) for line, instructions in at.items()}


def _events(instructions: Iterable[Instruction]) -> str:
    runs = signature_of(list(instructions)).split()
    return " ".join(run.removesuffix("1") if run[1:] == "1" else run for run in runs)


@dataclass(frozen=True, slots=True)
class Listing:
    """Highlighted lines of one region."""

    stage: StageFacts
    region: RegionFacts
    lines: Sequence[ListedLine]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        head = Text(no_wrap=True, overflow="ignore").append(self.stage.file, "bold")
        yield head.append(f"  {self.region.id}  ").append_text(phrase_text(self.region.phrase))
        code = "\n".join(line.text.expandtabs(4) for line in self.lines)
        lexer = lexer_for(self.stage.stage)
        text = Syntax(code, lexer, theme=THEME).highlight(code) if not console.no_color else Text(code)
        numbers = len(str(self.lines[-1].number)) if self.lines else 1
        events = max((len(line.events) for line in self.lines), default=0)
        levels = max((len(str(x.in_flight)) for x in self.lines if x.in_flight is not None), default=0)
        overflow: OverflowMethod = "ellipsis" if console.is_terminal else "ignore"
        for line, shown in zip(self.lines, text.split("\n", allow_blank=True), strict=False):
            level = "" if line.in_flight is None else str(line.in_flight)
            row = Text.assemble(
                (f"{level:>{levels}}", "cyan"),
                " " if levels else "",
                (f"{line.events:>{events}}", "bold yellow"),
                " ",
                (f"{line.number:>{numbers}}", "dim"),
                " ",
            )
            row.append_text(shown)
            row.rstrip()
            row.no_wrap, row.overflow = True, overflow
            yield row
        if events:
            yield ""
            said = ["first column: loads in flight from here on"] if levels else []
            yield Pieces([*said, *legend(line.events for line in self.lines)], "dim")
