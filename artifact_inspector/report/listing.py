"""The lines of a region in the file of a stage, with their events in the margin."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import NamedTuple

from rich.console import Console, ConsoleOptions, OverflowMethod, RenderResult
from rich.syntax import Syntax
from rich.text import Text

from artifact_inspector.analysis.order.region_facts import RegionFacts, signature_of
from artifact_inspector.facts.kernel import StageFacts
from artifact_inspector.model import EventKind, Instruction, Module
from artifact_inspector.model.text import SourceText
from artifact_inspector.report.layout import WrappedTexts, phrase_text
from artifact_inspector.report.lexers.scanner import lexer_for
from artifact_inspector.report.phrases import legend, load_statements, plural
from artifact_inspector.vocabulary.letters import LETTERS

THEME = "ansi_dark"
"""The terminal's own sixteen colours: readable on any background."""
MAX_FULL_LINES = 100
"""Most lines of a region that is listed in full by default."""
MAX_INLINE_GAP = 2
"""Most omitted lines that are printed anyway: replacing them by a count would save nothing."""


class ListedLine(NamedTuple):
    """One line of a stage's file."""

    number: int
    events: str
    """Letters of its instructions with their count, `L4`; empty for a line without events."""
    in_flight: int | None
    """Loads in flight after it; only on a line where the number changes."""
    text: str


class Excerpt(NamedTuple):
    """The shown lines of a region: the first and last of equal events, and some lines around them."""

    shown_lines: frozenset[int]
    """Numbers of the lines."""
    marks: Mapping[int, tuple[str, ...]]
    """Line → heading before it: `round 1 loads k flash_attention.py:51`."""
    kinds: Mapping[int, Counter[EventKind]]
    """Line → its instructions, by kind."""

    def describe(self, first: int, last: int) -> str:
        """`… 214 lines: 160 address and integer instructions, 31 moves`."""
        count = last - first + 1
        counts: Counter[str] = Counter()
        for line in range(first, last + 1):
            for kind, number in self.kinds.get(line, Counter()).items():
                counts[_UNLETTERED_NAMES.get(kind) or LETTERS[kind]] += number
        texts = [f"{number} {plural(name, number)}" for name, number in counts.most_common(3)]
        return f"… {count} {plural('line', count)}" + (f": {', '.join(texts)}" if texts else "")


_UNLETTERED_NAMES = {
    EventKind.INTEGER: "address and integer instruction", EventKind.MOVE: "move", EventKind.BRANCH: "jump",
    EventKind.LOCAL_LOAD: "reload of a register", EventKind.LOCAL_STORE: "spill of a register",
    EventKind.SCALAR_LOAD: "scalar load", EventKind.SHUFFLE: "shuffle", EventKind.OTHER: "other instruction",
}  # fmt: skip
"""Names of instructions without a letter."""


def make_excerpt(module: Module, region: RegionFacts, lines: Sequence[ListedLine], context: int) -> Excerpt:
    """The lines of a region with events, and some lines around them.

    Args:
        context: lines to keep before and after each of them.
    """
    kinds: dict[int, Counter[EventKind]] = {}
    for function in module.functions:
        for instruction in function.instructions:
            kinds.setdefault(instruction.line, Counter())[instruction.kind] += 1
    marks = _marks(region)
    kept_lines = set(marks) | {line.number for line in lines if line.in_flight is not None}
    for _, run in groupby((line for line in lines if line.events), key=lambda line: line.events):
        numbers = [line.number for line in run]
        kept_lines.update((numbers[0], numbers[-1]))
    ordered = sorted(kept_lines)

    def is_near(number: int) -> bool:
        at = bisect_left(ordered, number - context)
        return at < len(ordered) and ordered[at] <= number + context

    return Excerpt(frozenset(line.number for line in lines if is_near(line.number)), marks, kinds)


def _marks(region: RegionFacts) -> dict[int, tuple[str, ...]]:
    marks_by_line: dict[int, list[str]] = {}
    for number, item in enumerate(region.rounds, 1):
        statement_text = ", ".join(load_statements(item))
        for first, last, label in (
            (item.first_load, item.last_load, f"loads {statement_text}"),
            (item.first_compute, item.last_compute, f"computes on {statement_text}"),
        ):
            if first is not None and last is not None:
                marks_by_line.setdefault(first, []).append(
                    f"round {number} {label}" + ("" if last <= first else f", to line {last}")
                )
    return {line: tuple(label) for line, label in marks_by_line.items()}


def list_lines(source: SourceText, module: Module, region: RegionFacts, levels: Mapping[int, int]) -> list[ListedLine]:
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
    """Line → letters of its instructions with their count, `L4`; only lines with events."""
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
    excerpt: Excerpt | None = None
    """The lines to show; None for all."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        head = Text(no_wrap=True, overflow="ignore").append(self.stage.file, "bold")
        yield head.append(f"  {self.region.id}  ").append_text(phrase_text(self.region))
        yield from self._rows(console)
        if any(line.events for line in self.lines):
            yield ""
            levels = any(line.in_flight is not None for line in self.lines)
            texts = ["first column: loads in flight after the line"] if levels else []
            yield WrappedTexts([*texts, *legend(line.events for line in self.lines)], "dim")
            if any(is_shown is None for is_shown, _ in self._runs()):
                yield Text(f"{len(self.lines)} lines in total; --context N shows N around each event", "dim")

    def _rows(self, console: Console) -> Iterator[Text]:
        code = "\n".join(line.text.expandtabs(4) for line in self.lines)
        lexer = lexer_for(self.stage.stage)
        text = Syntax(code, lexer, theme=THEME).highlight(code) if not console.no_color else Text(code)
        highlighted = list(text.split("\n", allow_blank=True))
        numbers = len(str(self.lines[-1].number)) if self.lines else 1
        events = max((len(line.events) for line in self.lines), default=0)
        levels = max((len(str(x.in_flight)) for x in self.lines if x.in_flight is not None), default=0)
        margin = " " * (levels + bool(levels) + events + 1 + numbers + 1)
        overflow: OverflowMethod = "ellipsis" if console.is_terminal else "ignore"
        for is_shown, indices in self._runs():
            if is_shown is None:
                assert self.excerpt is not None
                ends = self.lines[indices[0]].number, self.lines[indices[-1]].number
                yield Text(margin + self.excerpt.describe(*ends), "dim italic", no_wrap=True, overflow="fold")
                continue
            for index in indices:
                line = self.lines[index]
                for mark in () if self.excerpt is None else self.excerpt.marks.get(line.number, ()):
                    yield Text(f"{margin}── {mark}", "bold", no_wrap=True, overflow=overflow)
                level = "" if line.in_flight is None else str(line.in_flight)
                event, number = (f"{line.events:>{events}} ", "bold yellow"), (f"{line.number:>{numbers}} ", "dim")
                row = Text.assemble((f"{level:>{levels}}{' ' * bool(levels)}", "cyan"), event, number)
                row.append_text(highlighted[index])
                row.rstrip()
                row.no_wrap, row.overflow = True, overflow
                yield row

    def _runs(self) -> Iterator[tuple[bool | None, list[int]]]:
        """Runs of consecutive lines by index: True if shown, None if replaced by a count."""
        if self.excerpt is None:
            yield True, list(range(len(self.lines)))
            return
        shown_lines = self.excerpt.shown_lines
        for is_shown, run in groupby(range(len(self.lines)), key=lambda at: self.lines[at].number in shown_lines):
            indices = list(run)
            yield (True if is_shown or len(indices) <= MAX_INLINE_GAP else None), indices
