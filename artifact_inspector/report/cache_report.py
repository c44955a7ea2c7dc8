"""A cache as a table: one row per kernel, or a summary of many, then unreadable and other files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.measure import Measurement
from rich.padding import Padding
from rich.segment import Segment
from rich.table import Column, Table
from rich.text import Text

from artifact_inspector.facts.kernel import KernelFacts
from artifact_inspector.files.artifact import LINKED_DIRECTORY
from artifact_inspector.files.autotuning import EntryTiming
from artifact_inspector.files.cache import Cache, Problem
from artifact_inspector.findings import Severity, find_findings
from artifact_inspector.hardware.targets import Target
from artifact_inspector.model import OrderVerdict
from artifact_inspector.report.console import is_width_limited
from artifact_inspector.report.kernel_blocks import timing_cell, worst_block
from artifact_inspector.report.kernel_rows import (
    LIMIT_GAP,
    MAX_NAME_WIDTH,
    RenderedColumn,
    blocks_text,
    fit_table,
    fold_rows,
    kernel_cells,
    make_columns,
    make_lines,
    make_rows,
    make_table,
    short_hashes,
    shorten,
)
from artifact_inspector.report.layout import WrappedTexts, folded_column, number_column, plain_table, text_column
from artifact_inspector.report.phrases import (
    TERMS,
    count_unknown,
    describe_notes,
    describe_unknown,
    describe_verdict,
    plural,
)
from artifact_inspector.vocabulary.selection import cost_of, sort_kernels
from artifact_inspector.vocabulary.variant_labels import Compiled, find_varying, label_forms

MAX_PROBLEMS = 20
MAX_LINKS = 5
"""Links to directories that a list names."""
UNBOUNDED = 10**5
"""A width at which no table is cut."""


@dataclass(frozen=True, slots=True)
class CacheReport:
    """The table of some kernels of a cache, its legend, and problems."""

    cache: Cache
    kernels: Sequence[KernelFacts]
    is_narrowed: bool
    """True if a name was given that all of these match."""
    other_targets: Sequence[Target] = ()
    """Further targets to report the occupancy on."""
    limit: int | None = None
    """Most rows to show, 0 for all; None for all in a pipe and two screens on a terminal."""
    is_sorted: bool = False
    """True with --sort: the first rows are shown, not a summary by name."""
    has_legend: bool = False
    """True to explain every word and column."""
    timings: Callable[[KernelFacts], Sequence[EntryTiming]] = lambda kernel: ()
    """The times that Triton's autotuner measured of a kernel."""

    @staticmethod
    def view(kernel: KernelFacts) -> None:
        """Compute the facts that the row of a kernel shows."""
        kernel_cells(kernel)
        cost_of(kernel)
        count_unknown(kernel)
        _ = kernel.program, kernel.principal_region  # for the label of its variant, and the legend

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        kernels = self.kernels if self.is_sorted else sort_kernels(self.kernels, "cost")
        shown_kernels = kernels[: self._max_rows(console)]
        if not self.kernels:
            yield Text(f"No kernels in {self.cache.title}.")
        elif len(shown_kernels) < len(self.kernels) and not (self.is_narrowed or self.is_sorted):
            yield self._title()
            yield from worst_block(self.cache.title, kernels, others=self.cache.others)
            yield Overview(kernels, len(shown_kernels))
            shown_kernels = kernels
        else:
            rows, headings = self._rows(console, options, shown_kernels)
            yield rows
            if omitted := len(self.kernels) - len(shown_kernels):
                yield Text(f"\n{omitted} more {plural('kernel', omitted)} not shown; --limit 0 lists all", "bold")
            yield from _explain_unknown(shown_kernels)
            yield _legend(shown_kernels, headings) if self.has_legend else _short_legend(shown_kernels, headings)
        beside = _other_files(self.cache)
        if beside is not None and not self.is_narrowed:
            yield beside
        yield from problems_block(self.kernels, () if self.is_narrowed else self.cache.problems)
        if self.is_narrowed:
            match = f"{len(self.kernels)} kernels match."
            yield Text(f"\n{match} To see one in full, give a longer name, a hash or --target.", "dim")

    def _max_rows(self, console: Console) -> int | None:
        """The number of rows to show; None for all."""
        if self.limit is not None:
            return self.limit or None
        return max(MIN_ROWS, 2 * console.size.height - NON_ROW_LINES) if console.is_terminal else None

    def _title(self) -> Text:
        count, total = len(self.kernels), len(self.cache.entries)
        text = f"{count} {plural('kernel', count)}" if count == total else f"{count} of {total} kernels"
        return Text(f"{text} in {self.cache.title}", "bold", no_wrap=True, overflow="ignore")

    def _rows(
        self, console: Console, options: ConsoleOptions, kernels: Sequence[KernelFacts]
    ) -> tuple[RenderableType, frozenset[str]]:
        labels = [""] * len(kernels)
        if len(kernels) > 1:
            labels = label_forms([Compiled(x.artifact, x.program) for x in kernels], find_varying(self.cache.entries))
        rows, title = make_rows(kernels, labels), self._title()
        worst = () if self.is_sorted else tuple(worst_block(self.cache.title, kernels, others=self.cache.others))
        further = [
            (f"on {target}", [blocks_text(kernel.occupancy_on(target)) for kernel in kernels])
            for target in self.other_targets
        ]
        if any(times := [timing_cell(self.timings(kernel)) for kernel in kernels]):
            further.append(("ms", times))
        if not further and self.limit != 0:
            rows = fold_rows(rows)
        if not is_width_limited(console):
            columns, _ = make_columns(rows, further, compact=False)
            return Group(title, *worst, "", UncutTable(columns)), frozenset(column.heading for column in columns)
        fitted = fit_table(rows, further, options.max_width)
        lead = Text(f" · {fitted.constants}" if fitted.constants else "").join([title, Text()])
        columns_of_row: list[RenderableType] = [lead, *worst, "", fitted.table]
        if fitted.hidden:
            hidden = f"Hidden at this width: {', '.join(fitted.hidden)}. --json has every column."
            columns_of_row += [Text(f"\n{hidden}", "dim")]
        return Group(*columns_of_row), fitted.headings


MIN_ROWS, NON_ROW_LINES = 20, 16
"""Rows that are always shown, and lines of a screen that are not rows."""


@dataclass(frozen=True, slots=True)
class UncutTable:
    """A table for a pipe: every row on one line of any length."""

    columns: Sequence[RenderedColumn]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        lines = make_lines(self.columns) if console.color_system is None and not console.record else None
        if lines is not None:
            yield Segment("\n".join([*lines, ""]))
            return
        table = make_table(self.columns, compact=False)
        width = Measurement.get(console, options.update(width=UNBOUNDED), table).maximum
        yield from console.render(table, options.update(width=max(width, options.max_width)))


def _explain_unknown(kernels: Sequence[KernelFacts]) -> Iterator[RenderableType]:
    """The reason for each unknown verdict of the table."""
    for kernel, digest in zip(kernels, short_hashes(kernels), strict=True):
        region = kernel.principal_region
        if region is not None and region.verdict is OrderVerdict.UNKNOWN:
            reason = "; ".join(describe_notes(region.region_notes)) or "no reason recorded"
            name = Text.assemble((f"{kernel.artifact.display_name} {digest}".rstrip(), "bold"), f" {region.id}")
            yield Padding(name.append(f": verdict unknown: {reason}"), (1, 0, 0, 0))


def _short_legend(kernels: Sequence[KernelFacts], headings: frozenset[str]) -> RenderableType:
    limits = "what limits it: worst finding (+ others); `inspect-kernel findings` has its line and remedy"
    verdict = "verdict: order of loads and computes in the main loop"
    has_verdicts = any(kernel.principal_region is not None for kernel in kernels)
    texts = [limits] * ("what limits it" in headings) + [verdict] * ("verdict" in headings and has_verdicts)
    texts += ["blk: blocks that fit on an SM or CU"] * ("blk" in headings and bool(texts))
    return (
        Padding(WrappedTexts([*texts, "--legend explains every word"]), (1, 0, 0, 0), style="dim") if texts else Text()
    )


def _legend(kernels: Sequence[KernelFacts], headings: frozenset[str]) -> RenderableType:
    regions = [region for region in (kernel.principal_region for kernel in kernels) if region is not None]
    if not regions:
        return Text()
    rows = [kernel_cells(kernel) for kernel in kernels]
    grid = Table.grid(text_column(), folded_column(), padding=(0, 2, 0, 0))
    meanings = {verdict: describe_verdict(verdict) for verdict in sorted({region.verdict for region in regions})}
    grid.add_row("verdict", "how the main loop orders its loads and computes:")
    for verdict, meaning in meanings.items():
        grid.add_row(f"  {verdict}", meaning)
    if any("round" in (meaning or "") for meaning in meanings.values()):
        grid.add_row("round", TERMS["round"])
    if any(region.unroll_factor > 1 for region in regions):
        grid.add_row("×u", "the compiler unrolled the loop u times; d counts iterations of the source")
    columns = dict(_COLUMN_KEYS)
    if any(str(row["MMA"]).startswith("0, FMA") for row in rows):
        columns["MMA"] += "; FMA: scalar instructions instead"
    if any(row["wait"] == "phase" for row in rows):
        columns["wait"] += '; "phase": waits on an mbarrier'
    for heading, meaning in columns.items():
        if heading in headings:
            grid.add_row(heading, meaning)
    return Padding(grid, (1, 0, 0, 0), style="dim")


_COLUMN_KEYS = {
    "variant": "tile, data type, w warps, s num_stages, other constants that differ",
    "stages": "num_stages",
    "smem": "shared memory per block, in bytes",
    "regs": "registers per thread (+ bytes spilled); empty: no binary in the cache",
    "blocks": "thread blocks that fit on one SM or CU",
    "blk": "thread blocks that fit on one SM or CU",
    "MMA": "matrix instructions in the main loop (of all in the file)",
    "wait": "loads or copy groups that the wait leaves in flight (0: the pipeline drains; –: no wait)",
    "changed at": "stage at which the compiler changed the order of loads and computes",
    "changed": "stage at which the compiler changed the order of loads and computes",
    "ms": "time that Triton's autotuner measured, over all keys; `inspect-kernel matrix` lists them",
    "what limits it": "findings, worst first; `inspect-kernel findings` explains them",
    "equal": "kernels that differ by their hash only",
}
"""Heading of a column → its explanation in the legend."""


def _other_files(cache: Cache) -> Text | None:
    if not cache.others:
        return None
    kinds = Counter(other_file.kind for other_file in cache.others)
    text = ", ".join(f"{kind} ×{count}" for kind, count in sorted(kinds.items()))
    links = [other_file.path for other_file in cache.others if other_file.kind == LINKED_DIRECTORY]
    named = f" (links: {', '.join(links[:MAX_LINKS])}{', …' if len(links) > MAX_LINKS else ''})" if links else ""
    return Text(f"\nOther files in the cache: {text}{named}", "dim")


def problems_block(kernels: Sequence[KernelFacts], problems: Sequence[Problem]) -> Iterator[RenderableType]:
    """Unclassified opcodes, then the files that could not be read."""
    unknown = describe_unknown(kernels)
    if unknown is not None:
        yield Text(f"\n{unknown}", "magenta")
    all_problems = list(dict.fromkeys([*problems, *(x for kernel in kernels for x in kernel.problems)]))
    if not all_problems:
        return
    yield Text(f"\n{len(all_problems)} problem{'s' if len(all_problems) != 1 else ''}", "bold red")
    for problem in all_problems[:MAX_PROBLEMS]:
        yield Padding(Text.assemble((problem.path, "bold"), ": ", problem.problem, overflow="fold"), (0, 0, 0, 2))
    if len(all_problems) > MAX_PROBLEMS:
        yield Text(f"  and {len(all_problems) - MAX_PROBLEMS} more; --json lists all", "dim")


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
    grid = Table.grid(Column(no_wrap=True, style="dim"), "", padding=(0, 2, 0, 0))
    artifacts = [kernel.artifact for kernel in kernels]
    grid.add_row("targets", WrappedTexts(_count_values(str(x.target or "unknown") for x in artifacts)))
    grid.add_row("Triton", WrappedTexts(_count_values(str(x.triton_version or "unknown") for x in artifacts)))
    grid.add_row("verdicts", WrappedTexts(_count_values(kernel.verdict or "none" for kernel in kernels)))
    names_by_kernel = [{(x.code, x.name): x.severity for x in reversed(find_findings(kernel))} for kernel in kernels]
    counts = Counter(name for names in names_by_kernel for name in names)
    warned = {name for names in names_by_kernel for name, severity in names.items() if severity is Severity.WARNING}
    if counts:
        ordered = sorted(counts, key=lambda name: (name not in warned, -counts[name]))
        texts = [Text(f"{' '.join(name)} {counts[name]}", "yellow" if name in warned else "") for name in ordered]
        grid.add_row("findings", WrappedTexts(texts))
    return grid


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
    table = plain_table(
        text_column("kernel"),
        number_column("variants"),
        Column("what limits it", no_wrap=True),
        text_column("targets"),
        text_column("verdicts"),
    )
    for name, kernels in groups:
        limits = [limit for x in kernels for limit in str(kernel_cells(x)["what limits it"]).split(LIMIT_GAP) if limit]
        values = (str(x.artifact.target or "unknown") for x in kernels), (x.verdict or "none" for x in kernels)
        targets, verdicts = (_most_frequent(texts, max_words) for texts in values)
        limited = ", ".join(list(dict.fromkeys(limits))[:max_words])
        table.add_row(shorten(name, name_width), str(len(kernels)), limited, targets, verdicts)
    return table


def _count_values(values: Iterable[str]) -> list[str]:
    return [f"{text} {count}" for text, count in Counter(values).most_common()]


def _most_frequent(values: Iterable[str], max_values: int) -> str:
    distinct_values = [text for text, _ in Counter(values).most_common()]
    ellipsis = f" +{len(distinct_values) - max_values}" if len(distinct_values) > max_values else ""
    return ", ".join(distinct_values[:max_values]) + ellipsis
