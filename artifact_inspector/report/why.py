"""Why a kernel was compiled again, in words: of two entries, or of all forms of one kernel."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.table import Table
from rich.text import Text

from artifact_inspector.comparison.why import Cause, Causes, Reason
from artifact_inspector.report.words import plural

MOST_VALUES = 6


@dataclass(frozen=True, slots=True)
class ReasonsReport:
    """In what two entries differ."""

    labels: tuple[str, str]
    reasons: Sequence[Reason]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        if self.reasons[0].respect.cause is Cause.UNKNOWN:
            for label in self.labels:
                yield Text(label, overflow="fold")
            yield ""
            yield Text("Nothing in their files tells the two apart.", "bold")
            yield Text(
                "Triton's key also has the compiler's own files and environment variables (TRITON_…), "
                "which no entry keeps.",
                overflow="fold",
            )
            return
        table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
        for heading in ("compiled apart for", "", *self.labels):
            table.add_column(heading, overflow="fold", no_wrap=heading in ("compiled apart for", ""))
        for respect, left, right in self.reasons:
            table.add_row(Text(str(respect.cause), "bold"), respect.name, left, right)
        yield table


@dataclass(frozen=True, slots=True)
class CausesReport:
    """Why a kernel has as many forms as it has."""

    name: str
    causes: Causes

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        count = self.causes.forms
        yield Text(f"{self.name} in {count} {plural('form', count)}", "bold")
        yield ""
        yield causes_block(self.causes)


def causes_block(causes: Causes) -> RenderableType:
    """What varies among the forms, and how many of them that makes."""
    if not causes.varying:
        return Text("Nothing in their files tells them apart." if causes.forms > 1 else "There is one form.")
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column("compiled apart for", no_wrap=True)
    table.add_column("", no_wrap=True)
    table.add_column("fewer without", justify="right", no_wrap=True)
    table.add_column("values × forms", overflow="fold")
    for one in causes.varying:
        values = [f"{value} ×{count}" for value, count in one.values.items()]
        more = f", {len(values) - MOST_VALUES} more" if len(values) > MOST_VALUES else ""
        said = ", ".join(values[:MOST_VALUES]) + more
        table.add_row(Text(str(one.respect.cause), "bold"), one.respect.name, str(one.makes), said)
    if causes.alike:
        said = f"{causes.alike} more {plural('form', causes.alike)} that nothing in the files tells apart"
        table.add_row(Text(str(Cause.UNKNOWN), "bold"), "", str(causes.alike), said)
    key = "fewer without: forms that there would be fewer if this alone did not vary"
    return Group(table, Text(key, "dim", overflow="fold"))
