"""A cache while a program compiles: a row for each kernel as it comes, and a summary at the end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from rich.console import Console, ConsoleOptions, Group, RenderResult
from rich.measure import Measurement
from rich.text import Text

from artifact_inspector.facts.kernel import KernelFacts
from artifact_inspector.findings import find_findings
from artifact_inspector.report.rows import Row, card, columns_of, table_of
from artifact_inspector.report.text import UNBOUNDED
from artifact_inspector.report.words import plural

ROUND_ABOUT = 5
"""Lines of a screen that are no rows."""
DIGEST = 6
"""Characters of a hash."""


def line_of(kernel: KernelFacts) -> str:
    """A kernel in one line, for a pipe; a finding by its code."""
    row = _row(kernel)
    facts = [f"shared {row.shared}", f"MMA {row.mma}", f"wait {row.wait}"]
    facts += [f"registers {row.registers}"] if row.registers else []
    changed = [f"changed at {row.changed}"] if row.changed else []
    findings = [f"AI {row.findings}"] if row.findings else []
    state = [row.state] if row.state else []
    head = f"{row.name} {row.hash} {row.target}"
    return " · ".join(
        [head, f"w{row.warps} s{row.stages}", *facts, str(row.verdict), *changed, *findings, *state]
    )


def _row(kernel: KernelFacts) -> Row:
    return replace(Row.of(kernel), hash=kernel.artifact.hash[:DIGEST])


@dataclass(frozen=True, slots=True)
class WatchReport:
    """The kernels that came last, as many as a screen holds."""

    kernels: Sequence[KernelFacts]
    root: str
    """What is watched."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        count = len(self.kernels)
        yield Text(f"{self.root} · {count} {plural('kernel', count)} · Ctrl-C ends", "bold", no_wrap=True)
        if not self.kernels:
            return
        rows = [_row(kernel) for kernel in self.kernels[-max(1, console.size.height - ROUND_ABOUT) :]]
        for compact in (False, True):
            columns, constants = columns_of(rows, (), compact=compact)
            table = table_of(columns, compact=compact)
            if Measurement.get(console, options.update(width=UNBOUNDED), table).maximum <= options.max_width:
                yield Group(Text(constants, "dim"), table)
                return
        yield Group(*map(card, rows[-max(1, console.size.height // 4) :]))


@dataclass(frozen=True, slots=True)
class WatchSummary:
    """What came while a cache was watched."""

    kernels: Sequence[KernelFacts]
    seconds: float

    def __rich_console__(self, _console: Console, _options: ConsoleOptions) -> RenderResult:
        count = len(self.kernels)
        yield Text(f"{count} {plural('kernel', count)} in {self.seconds:.0f} s", "bold")
        verdicts = Counter(kernel.verdict or "none" for kernel in self.kernels)
        found = Counter(code for kernel in self.kernels for code in {x.code for x in find_findings(kernel)})
        if verdicts:
            yield Text(f"verdicts: {_counted(verdicts)}")
        if found:
            yield Text(f"findings: {_counted(found)}")


def _counted(counts: Counter[str]) -> str:
    ordered = sorted(counts.items(), key=lambda one: (-one[1], one[0]))
    return ", ".join(f"{word} {count}" for word, count in ordered)
