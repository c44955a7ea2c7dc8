"""A summary of many kernels: counts by target and verdict, then one row per name with all its variants."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, RenderResult
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from artifact_inspector.facts.kernel import KernelFacts
from artifact_inspector.findings import Finding, Severity, find_findings
from artifact_inspector.report.layout import Pieces
from artifact_inspector.report.rows import shorten
from artifact_inspector.report.words import plural

MOST_WORDS = 3
"""Words in a cell; further ones are counted."""


@dataclass(frozen=True, slots=True)
class Overview:
    """The summary, then as many kernel names as fit."""

    kernels: Sequence[KernelFacts]
    most: int
    """Groups to show."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield ""
        yield _summary(self.kernels)
        groups: dict[str, list[KernelFacts]] = {}
        for kernel in self.kernels:
            groups.setdefault(kernel.artifact.display_name, []).append(kernel)
        shown = list(groups.items())[: self.most]
        yield Padding(_groups(shown), (1, 0, 0, 0))
        forms = sum(len(found) for _, found in list(groups.items())[self.most :])
        if forms:
            names = len(groups) - len(shown)
            left = f"Not shown: {names} more {plural('name', names)} with {forms} {plural('kernel', forms)}"
            yield Text(f"\n{left}", "bold")
        yield Text(
            "List the variants of one kernel with a NAME, every kernel with --limit 0. Filter and sort with "
            "--finding AI007, --verdict serial, --sort spills, --newest.",
            "dim",
        )


def _summary(kernels: Sequence[KernelFacts]) -> Table:
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(no_wrap=True, style="dim")
    grid.add_column()
    told = [kernel.artifact for kernel in kernels]
    grid.add_row("targets", Pieces(_counted(str(x.target or "unknown") for x in told)))
    grid.add_row("Triton", Pieces(_counted(str(x.triton_version or "unknown") for x in told)))
    grid.add_row("verdicts", Pieces(_counted(kernel.verdict or "none" for kernel in kernels)))
    found = [list(dict.fromkeys(map(_kind, find_findings(kernel)))) for kernel in kernels]
    counts = Counter(kind for kinds in found for kind in kinds)
    if counts:
        ordered = sorted(counts, key=lambda kind: (kind[0] is not Severity.WARNING, -counts[kind]))
        said = [
            Text(f"{code} {name} {counts[severity, code, name]}", _STYLES[severity])
            for severity, code, name in ordered
        ]
        grid.add_row("findings", Pieces(said))
    return grid


_STYLES = {Severity.WARNING: "yellow", Severity.NOTE: ""}


def _kind(finding: Finding) -> tuple[Severity, str, str]:
    return finding.severity, finding.code, finding.name


def _groups(groups: Iterable[tuple[str, Sequence[KernelFacts]]]) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column("kernel", no_wrap=True)
    table.add_column("variants", justify="right", no_wrap=True)
    table.add_column("targets", overflow="fold")
    table.add_column("verdicts", overflow="fold")
    table.add_column("spilled", justify="right", no_wrap=True)
    table.add_column("findings AI…", overflow="fold", style="dim")
    for name, kernels in groups:
        spills = [kernel.resources.spill_bytes.value or 0 for kernel in kernels]
        codes = {found.code.removeprefix("AI") for kernel in kernels for found in find_findings(kernel)}
        table.add_row(
            shorten(name),
            str(len(kernels)),
            _few(str(x.artifact.target or "unknown") for x in kernels),
            _few(x.verdict or "none" for x in kernels),
            f"{max(spills)} B" if any(spills) else "",
            " ".join(sorted(codes)),
        )
    return table


def _counted(words: Iterable[str]) -> list[str]:
    return [f"{word} {count}" for word, count in Counter(words).most_common()]


def _few(words: Iterable[str]) -> str:
    found = [word for word, _ in Counter(words).most_common()]
    more = f" +{len(found) - MOST_WORDS}" if len(found) > MOST_WORDS else ""
    return ", ".join(found[:MOST_WORDS]) + more
