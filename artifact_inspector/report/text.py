"""A cache as a table: one row per kernel, or a summary of many, then unreadable and other files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.measure import Measurement
from rich.padding import Padding
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from artifact_inspector.facts.kernel import KernelFacts
from artifact_inspector.files.cache import Cache, Problem
from artifact_inspector.files.tuning import Timed
from artifact_inspector.hardware.targets import Target
from artifact_inspector.model import Verdict
from artifact_inspector.report.console import is_for_a_screen
from artifact_inspector.report.rows import (
    Row,
    Shown,
    blocks_text,
    columns_of,
    digests,
    fit_table,
    lines_of,
    rows_of,
    table_of,
)
from artifact_inspector.report.tuning import timing_cell
from artifact_inspector.report.words import (
    TERMS,
    describe_notes,
    describe_unknown,
    describe_verdict,
    plural,
)
from artifact_inspector.vocabulary.forms import Compiled, label_forms, vary_in

MOST_PROBLEMS = 20
UNBOUNDED = 10**5
"""A width at which no table is cut."""


@dataclass(frozen=True, slots=True)
class CacheReport:
    """The table of some kernels of a cache, its legend, and problems."""

    cache: Cache
    kernels: Sequence[KernelFacts]
    narrowed: bool
    """True if a name was given that all of these match."""
    others: Sequence[Target] = ()
    """Further targets to report the occupancy on."""
    limit: int | None = None
    """Most rows to show, 0 for all; None for all in a pipe and two screens on a terminal."""
    is_sorted: bool = False
    """True with --sort: the first rows are shown, not a summary by name."""
    timings: Callable[[KernelFacts], Sequence[Timed]] = lambda kernel: ()
    """The times that Triton's autotuner measured of a kernel."""

    @staticmethod
    def view(kernel: KernelFacts) -> None:
        """Compute the facts that the row of a kernel shows."""
        Row.of(kernel)
        _ = kernel.program  # for the label of its variant

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        shown = self.kernels[: self._most(console)]
        if not self.kernels:
            yield Text(f"No kernels in {self.cache.root}.")
        elif len(shown) < len(self.kernels) and not (self.narrowed or self.is_sorted):
            from artifact_inspector.report.overview import Overview  # on a terminal only

            yield self._title()
            yield Overview(self.kernels, len(shown))
            shown = self.kernels
        else:
            rows, headings = self._rows(console, options, shown)
            yield rows
            yield from _left_out(len(self.kernels) - len(shown))
            yield from _unknowns(shown)
            yield _key(shown, headings)
        beside = _beside(self.cache)
        if beside is not None and not self.narrowed:
            yield beside
        yield from faults(self.kernels, () if self.narrowed else self.cache.problems)
        if self.narrowed:
            match = f"{len(self.kernels)} kernels match."
            yield Text(f"\n{match} To see one in full, give a longer name, a hash or --target.", "dim")

    def _most(self, console: Console) -> int | None:
        """The number of rows to show; None for all."""
        if self.limit is not None:
            return self.limit or None
        return max(LEAST_ROWS, 2 * console.size.height - ROUND_ABOUT) if console.is_terminal else None

    def _title(self) -> Text:
        count, whole = len(self.kernels), len(self.cache.entries)
        said = f"{count} {plural('kernel', count)}" if count == whole else f"{count} of {whole} kernels"
        return Text(f"{said} in {self.cache.root}", "bold", no_wrap=True, overflow="ignore")

    def _rows(
        self, console: Console, options: ConsoleOptions, kernels: Sequence[KernelFacts]
    ) -> tuple[RenderableType, frozenset[str]]:
        """The table and its headings."""
        labels = label_forms([Compiled(x.artifact, x.program) for x in kernels], vary_in(self.cache.entries))
        rows, title = rows_of(kernels, labels), self._title()
        further = [
            (f"on {target}", [blocks_text(kernel.occupancy_on(target)) for kernel in kernels])
            for target in self.others
        ]
        if any(times := [timing_cell(self.timings(kernel)) for kernel in kernels]):
            further.append(("ms", times))
        if not is_for_a_screen(console):
            columns, _ = columns_of(rows, further, compact=False)
            return Group(title, "", Uncut(columns)), _headings(columns)
        fitted = fit_table(rows, further, options.max_width)
        lead = Text(f" · {fitted.constants}" if fitted.constants else "").join([title, Text()])
        parts: list[RenderableType] = [lead, "", fitted.table]
        if fitted.hidden:
            hidden = f"Hidden at this width: {', '.join(fitted.hidden)}. --json has every column."
            parts += [Text(f"\n{hidden}", "dim")]
        return Group(*parts), fitted.headings


def _headings(columns: Sequence[Shown]) -> frozenset[str]:
    return frozenset(column.heading for column in columns)


LEAST_ROWS, ROUND_ABOUT = 20, 16
"""Rows that are always shown, and lines of a screen that are not rows."""


@dataclass(frozen=True, slots=True)
class Uncut:
    """A table for a pipe: every row on one line of any length."""

    columns: Sequence[Shown]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        lines = lines_of(self.columns) if console.color_system is None and not console.record else None
        if lines is not None:
            yield Segment("\n".join([*lines, ""]))
            return
        table = table_of(self.columns, compact=False)
        width = Measurement.get(console, options.update(width=UNBOUNDED), table).maximum
        yield from console.render(table, options.update(width=max(width, options.max_width)))


def _left_out(count: int) -> Iterator[RenderableType]:
    if count:
        yield Text(f"\n{count} more {plural('kernel', count)} not shown; --limit 0 lists all", "bold")


def _unknowns(kernels: Sequence[KernelFacts]) -> Iterator[RenderableType]:
    """The reason for each unknown verdict of the table."""
    for kernel, digest in zip(kernels, digests(kernels), strict=True):
        region = kernel.principal_region
        if region is not None and region.verdict is Verdict.UNKNOWN:
            why = "; ".join(describe_notes(region.noted)) or "no reason recorded"
            name = Text.assemble(
                (f"{kernel.artifact.display_name} {digest}".rstrip(), "bold"), f" {region.id}"
            )
            yield Padding(name.append(f": verdict unknown: {why}"), (1, 0, 0, 0))


def _key(kernels: Sequence[KernelFacts], headings: frozenset[str]) -> RenderableType:
    """The legend: verdicts and columns of the table."""
    regions = [region for region in (kernel.principal_region for kernel in kernels) if region is not None]
    if not regions:
        return Text()
    rows = [Row.of(kernel) for kernel in kernels]
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    said = {verdict: describe_verdict(verdict) for verdict in sorted({one.verdict for one in regions})}
    grid.add_row("verdict", "how the main loop orders its loads and computes:")
    for verdict, meaning in said.items():
        grid.add_row(f"  {verdict}", meaning)
    if any("round" in (meaning or "") for meaning in said.values()):
        grid.add_row("round", TERMS["round"])
    if any(region.unrolled_by > 1 for region in regions):
        grid.add_row("×u", "the compiler unrolled the loop u times; d counts iterations of the source")
    columns = dict(_COLUMN_KEYS)
    if any(row.mma.startswith("0, FMA") for row in rows):
        columns["MMA"] += "; FMA: scalar instructions instead"
    if any(row.wait == "phase" for row in rows):
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
    "blocks/SM": "thread blocks that fit on one SM or CU",
    "blk": "thread blocks that fit on one SM or CU",
    "MMA": "matrix instructions in the main loop (of all in the file)",
    "wait": "loads or copy groups still in flight after the wait (0: the pipeline drains)",
    "changed at": "stage at which the compiler changed the order of loads and computes",
    "changed": "stage at which the compiler changed the order of loads and computes",
    "ms": "time that Triton's autotuner measured, over all keys; `inspect-kernel matrix` lists them",
    "findings": "codes (001 is AI001); `inspect-kernel findings` explains them",
}
"""Heading of a column → its explanation in the legend."""


def _beside(cache: Cache) -> Text | None:
    if not cache.others:
        return None
    kinds = Counter(other.kind for other in cache.others)
    said = ", ".join(f"{kind} ×{count}" for kind, count in sorted(kinds.items()))
    return Text(f"\nOther files in the cache: {said}", "dim")


def faults(kernels: Sequence[KernelFacts], problems: Sequence[Problem]) -> Iterator[RenderableType]:
    """Unclassified opcodes, then the files that could not be read."""
    unknown = describe_unknown(facts for kernel in kernels for facts in kernel.stages.values())
    if unknown is not None:
        yield Text(f"\n{unknown}", "magenta")
    found = list(dict.fromkeys([*problems, *(x for kernel in kernels for x in kernel.problems)]))
    if not found:
        return
    yield Text(f"\n{len(found)} problem{'s' if len(found) != 1 else ''}", "bold red")
    for problem in found[:MOST_PROBLEMS]:
        yield Padding(
            Text.assemble((problem.path, "bold"), ": ", problem.problem, overflow="fold"), (0, 0, 0, 2)
        )
    if len(found) > MOST_PROBLEMS:
        yield Text(f"  and {len(found) - MOST_PROBLEMS} more; --json lists all", "dim")
