"""`inspect-kernel watch`: a row for each kernel as a program compiles it, and a summary at the end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, Group, RenderResult
from rich.text import Text

from artifact_inspector.facts.kernel import KernelFacts
from artifact_inspector.findings import find_findings
from artifact_inspector.report.kernel_rows import Cells, fit_table, kernel_cells
from artifact_inspector.report.phrases import plural

NON_ROW_LINES = 5
"""Lines of a screen that are not rows."""
HASH_LENGTH = 6
"""Characters of a hash."""


def line_of(kernel: KernelFacts) -> str:
    """A kernel on one line, for a pipe; findings by code."""
    row = {heading: str(cell) for heading, cell in _row(kernel).items()}
    facts = [f"{heading} {row[heading]}" for heading in ("smem", "MMA", "wait", "regs") if row[heading]]
    labels = {"changed at": "changed at ", "what limits it": "", "state": ""}
    further = [label + row[heading] for heading, label in labels.items() if row[heading]]
    head = f"{row['kernel']} {row['hash']} {row['target']}"
    return " · ".join([head, f"w{row['warps']} s{row['stages']}", *facts, row["verdict"], *further])


def _row(kernel: KernelFacts) -> Cells:
    return {**kernel_cells(kernel), "hash": Text(kernel.artifact.hash[:HASH_LENGTH], "dim")}


@dataclass(frozen=True, slots=True)
class WatchReport:
    """The latest kernels, as many as fit on the screen."""

    kernels: Sequence[KernelFacts]
    root: str
    """The cache directory."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        count = len(self.kernels)
        yield Text(f"{count} {plural('kernel', count)} · Ctrl-C stops · {self.root}", "bold", no_wrap=True)
        if not self.kernels:
            return
        rows = [_row(kernel) for kernel in self.kernels[-max(1, console.size.height - NON_ROW_LINES) :]]
        fitted = fit_table(rows, (), options.max_width)
        yield Group(Text(fitted.constants, "dim"), fitted.table)


@dataclass(frozen=True, slots=True)
class WatchSummary:
    """The summary of the kernels that were compiled."""

    kernels: Sequence[KernelFacts]
    seconds: float

    def __rich_console__(self, _console: Console, _options: ConsoleOptions) -> RenderResult:
        count = len(self.kernels)
        yield Text(f"{count} {plural('kernel', count)} in {self.seconds:.0f} s", "bold")
        verdicts = Counter(kernel.verdict or "none" for kernel in self.kernels)
        findings = Counter(code for kernel in self.kernels for code in {x.code for x in find_findings(kernel)})
        if verdicts:
            yield Text(f"verdicts: {_describe_counts(verdicts)}")
        if findings:
            yield Text(f"findings: {_describe_counts(findings)}")


def _describe_counts(counts: Counter[str]) -> str:
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return ", ".join(f"{label} {count}" for label, count in ordered)
