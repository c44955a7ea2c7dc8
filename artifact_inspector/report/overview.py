"""A summary of many kernels: counts by target and verdict, then one row per name with all its variants."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, RenderResult
from rich.measure import Measurement
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from artifact_inspector.facts.kernel import KernelFacts
from artifact_inspector.findings import Finding, Severity, find_findings
from artifact_inspector.report.kernel_rows import MAX_NAME_WIDTH, shorten
from artifact_inspector.report.layout import WrappedTexts
from artifact_inspector.report.phrases import plural

UNBOUNDED = 10**4
"""A width at which no table is cut."""
MAX_VALUES = 3
"""Words in a cell; further ones are counted."""


@dataclass(frozen=True, slots=True)
class Overview:
    """The summary, then as many kernel names as fit."""

    kernels: Sequence[KernelFacts]
    max_groups: int
    """Groups to show."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield ""
        yield _summary(self.kernels)
        groups: dict[str, list[KernelFacts]] = {}
        for kernel in self.kernels:
            groups.setdefault(kernel.artifact.display_name, []).append(kernel)
        shown_groups = list(groups.items())[: self.max_groups]
        yield Padding(_fitting_groups(shown_groups, console, options), (1, 0, 0, 0))
        omitted_count = sum(len(variants) for _, variants in list(groups.items())[self.max_groups :])
        if omitted_count:
            names = len(groups) - len(shown_groups)
            kernels = f"{omitted_count} {plural('kernel', omitted_count)}"
            omitted_text = f"Not shown: {names} more {plural('name', names)} with {kernels}"
            yield Text(f"\n{omitted_text}", "bold")
        yield Text(
            "List the variants of one kernel with a NAME, every kernel with --limit 0. Filter and sort with "
            "--finding AI007, --verdict serial, --sort spills, --newest.",
            "dim",
        )


def _summary(kernels: Sequence[KernelFacts]) -> Table:
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(no_wrap=True, style="dim")
    grid.add_column()
    artifacts = [kernel.artifact for kernel in kernels]
    grid.add_row("targets", WrappedTexts(_count_values(str(x.target or "unknown") for x in artifacts)))
    grid.add_row("Triton", WrappedTexts(_count_values(str(x.triton_version or "unknown") for x in artifacts)))
    grid.add_row("verdicts", WrappedTexts(_count_values(kernel.verdict or "none" for kernel in kernels)))
    kinds_by_kernel = [list(dict.fromkeys(map(_kind, find_findings(kernel)))) for kernel in kernels]
    counts = Counter(kind for kinds in kinds_by_kernel for kind in kinds)
    if counts:
        ordered = sorted(counts, key=lambda kind: (kind[0] is not Severity.WARNING, -counts[kind]))
        texts = [
            Text(f"{code} {name} {counts[severity, code, name]}", _STYLES[severity]) for severity, code, name in ordered
        ]
        grid.add_row("findings", WrappedTexts(texts))
    return grid


_STYLES = {Severity.WARNING: "yellow", Severity.NOTE: ""}


def _kind(finding: Finding) -> tuple[Severity, str, str]:
    return finding.severity, finding.code, finding.name


_LAYOUTS = (
    *((descriptions, MAX_NAME_WIDTH) for descriptions in range(MAX_VALUES, 0, -1)),
    *((1, width) for width in (30, 24, 16, 10)),
)
"""Words per cell and characters of a name, the most complete table first."""


def _fitting_groups(
    groups: Sequence[tuple[str, Sequence[KernelFacts]]], console: Console, options: ConsoleOptions
) -> Table:
    """The table with as many words per cell as fit, and with shorter names if not even one fits."""
    for max_words, name_width in _LAYOUTS:
        table = _groups(groups, max_words, name_width)
        if Measurement.get(console, options.update(width=UNBOUNDED), table).maximum <= options.max_width:
            break
    return table


def _groups(groups: Iterable[tuple[str, Sequence[KernelFacts]]], max_words: int, name_width: int) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column("kernel", no_wrap=True)
    table.add_column("variants", justify="right", no_wrap=True)
    table.add_column("targets", no_wrap=True)
    table.add_column("verdicts", no_wrap=True)
    table.add_column("spilled", justify="right", no_wrap=True)
    table.add_column("findings", no_wrap=True, style="dim")
    for name, kernels in groups:
        spills = [kernel.resources.spill_bytes.value or 0 for kernel in kernels]
        codes = Counter(finding.code.removeprefix("AI") for x in kernels for finding in find_findings(x))
        table.add_row(
            shorten(name, name_width),
            str(len(kernels)),
            _most_frequent((str(x.artifact.target or "unknown") for x in kernels), max_words),
            _most_frequent((x.verdict or "none" for x in kernels), max_words),
            f"{max(spills)} B" if any(spills) else "",
            _most_frequent(sorted(codes), max_words),
        )
    return table


def _count_values(values: Iterable[str]) -> list[str]:
    return [f"{text} {count}" for text, count in Counter(values).most_common()]


def _most_frequent(values: Iterable[str], max_values: int) -> str:
    distinct_values = [text for text, _ in Counter(values).most_common()]
    ellipsis = f" +{len(distinct_values) - max_values}" if len(distinct_values) > max_values else ""
    return ", ".join(distinct_values[:max_values]) + ellipsis
