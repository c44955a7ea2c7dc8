"""Why a kernel was compiled again: the differences of two entries, or of all variants of a kernel."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.table import Table
from rich.text import Text

from artifact_inspector.comparison.variant_causes import Causes, EntryDifference, KeyPartKind
from artifact_inspector.report.phrases import plural

MAX_VALUES = 6


@dataclass(frozen=True, slots=True)
class ReasonsReport:
    """The differences of two cache entries."""

    labels: tuple[str, str]
    reasons: Sequence[EntryDifference]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        if self.reasons[0].key_part.cause is KeyPartKind.UNKNOWN:
            for label in self.labels:
                yield Text(label, overflow="fold")
            yield ""
            yield Text("The files of the two entries show no difference.", "bold")
            yield Text(
                "Triton's cache key also covers the compiler's files and environment variables (TRITON_…). "
                "Cache entries do not record these.",
                overflow="fold",
            )
            return
        table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
        for heading in ("differs in", "", *self.labels):
            table.add_column(heading, overflow="fold", no_wrap=heading in ("differs in", ""))
        for respect, left, right in self.reasons:
            table.add_row(Text(str(respect.cause), "bold"), respect.name, left, right)
        yield table


@dataclass(frozen=True, slots=True)
class CausesReport:
    """The causes of a kernel's variants."""

    name: str
    causes: Causes

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        count = self.causes.variant_count
        yield Text(f"{self.name}: {count} {plural('variant', count)}", "bold")
        yield ""
        yield causes_block(self.causes)


def causes_block(causes: Causes) -> RenderableType:
    """The properties that vary, and the number of variants that each causes."""
    if not causes.varying:
        return Text("Their files show no difference." if causes.variant_count > 1 else "There is only one variant.")
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column("differs in", no_wrap=True)
    table.add_column("", no_wrap=True)
    table.add_column("causes", justify="right", no_wrap=True)
    table.add_column("values × variants", overflow="fold")
    for cause in causes.varying:
        values = [f"{value} ×{count}" for value, count in cause.values.items()]
        ellipsis = f", {len(values) - MAX_VALUES} more" if len(values) > MAX_VALUES else ""
        text = ", ".join(values[:MAX_VALUES]) + ellipsis
        table.add_row(Text(str(cause.key_part.cause), "bold"), cause.key_part.name, str(cause.variants_caused), text)
    if causes.indistinguishable:
        variants = f"{causes.indistinguishable} more {plural('variant', causes.indistinguishable)}"
        text = f"{variants} whose files show no difference"
        table.add_row(Text(str(KeyPartKind.UNKNOWN), "bold"), "", str(causes.indistinguishable), text)
    key = "causes: variants caused only by this property"
    return Group(table, Text(key, "dim", overflow="fold"))
