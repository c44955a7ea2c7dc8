"""A cache as a table: one row per kernel, or a summary of many, then everything else that was found."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

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
    card,
    columns_of,
    cut_words,
    digests,
    lines_of,
    rows_of,
    shorten,
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
"""Columns of a pipe that nothing cuts."""


@dataclass(frozen=True, slots=True)
class CacheReport:
    """The table of some kernels of a cache and what lies beside them."""

    cache: Cache
    kernels: Sequence[KernelFacts]
    narrowed: bool
    """True when a name was given that fits all of these."""
    others: Sequence[Target] = ()
    """Further targets to give the occupancy for."""
    limit: int | None = None
    """Rows to show at most, 0 for all; None for all in a pipe, and what two screens hold on a terminal."""
    is_sorted: bool = False
    """True where the order was asked for: the first of it are shown, and no groups."""
    timings: Callable[[KernelFacts], Sequence[Timed]] = lambda kernel: ()
    """What Triton's autotuner timed of one."""

    @staticmethod
    def view(kernel: KernelFacts) -> None:
        """Ask a kernel for what its row shows."""
        Row.of(kernel)
        _ = kernel.program  # for the label of its form

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        shown = self.kernels[: self._most(console)]
        if not self.kernels:
            yield Text(f"No kernels in {self.cache.root}.")
        elif len(shown) < len(self.kernels) and not (self.narrowed or self.is_sorted):
            from artifact_inspector.report.overview import Overview  # on a terminal alone

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
            fit = f"{len(self.kernels)} kernels fit"
            yield Text(f"\n{fit}: for a whole story give more of a name or a hash, or --target.", "dim")

    def _most(self, console: Console) -> int | None:
        """How many rows there is room for."""
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
        """The rows, and the headings above them."""
        labels = label_forms([Compiled(x.artifact, x.program) for x in kernels], vary_in(self.cache.entries))
        rows = rows_of(kernels, labels)
        title = self._title()
        further = [
            (f"on {target}", [blocks_text(kernel.occupancy_on(target)) for kernel in kernels])
            for target in self.others
        ]
        if any(times := [timing_cell(self.timings(kernel)) for kernel in kernels]):
            further.append(("ms", times))
        if not is_for_a_screen(console):
            columns, _ = columns_of(rows, further, compact=False)
            return Group(title, "", Uncut(columns)), _headings(columns)
        whole = [replace(row, name=shorten(row.name)) for row in rows]
        cut = ([cut_words(row, *most) for row in whole] for most in NARROWER)
        for compact, rows in ((False, whole), (True, whole), *((True, short) for short in cut)):
            columns, constants = columns_of(rows, further, compact=compact)
            table = table_of(columns, compact=compact)
            if Measurement.get(console, options.update(width=UNBOUNDED), table).maximum <= options.max_width:
                lead = Text(f" · {constants}" if constants else "").join([title, Text()])
                return Group(lead, "", table), _headings(columns)
        return Group(title, *(card(row) for row in whole)), frozenset(["blocks"])


def _headings(columns: Sequence[Shown]) -> frozenset[str]:
    return frozenset(column.heading for column in columns)


NARROWER = ((24, 22, 20), (18, 20, 14))
"""Characters of names, labels and verdicts where rows would not fit otherwise."""
LEAST_ROWS, ROUND_ABOUT = 20, 16
"""Rows that are always shown, and lines that stand round about them."""


@dataclass(frozen=True, slots=True)
class Uncut:
    """What stands in a pipe: every row on one line, however long."""

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
        yield Text(f"\n{count} more {plural('kernel', count)} left out; --limit 0 shows all", "bold")


def _unknowns(kernels: Sequence[KernelFacts]) -> Iterator[RenderableType]:
    """Why a verdict in the table is unknown."""
    for kernel, digest in zip(kernels, digests(kernels), strict=True):
        region = kernel.principal_region
        if region is not None and region.verdict is Verdict.UNKNOWN:
            why = "; ".join(describe_notes(region.noted)) or "no reason was noted"
            name = Text.assemble(
                (f"{kernel.artifact.display_name} {digest}".rstrip(), "bold"), f" {region.id}"
            )
            yield Padding(name.append(f" is unknown: {why}"), (1, 0, 0, 0))


def _key(kernels: Sequence[KernelFacts], headings: frozenset[str]) -> RenderableType:
    """What the verdicts and the bare numbers of the table mean."""
    regions = [region for region in (kernel.principal_region for kernel in kernels) if region is not None]
    if not regions:
        return Text()
    rows = [Row.of(kernel) for kernel in kernels]
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    said = {verdict: describe_verdict(verdict) for verdict in sorted({one.verdict for one in regions})}
    for verdict, meaning in said.items():
        grid.add_row(verdict, meaning)
    if any("round" in (meaning or "") for meaning in said.values()):
        grid.add_row("round", TERMS["round"])
    if "form" in headings:
        grid.add_row("form", "tile, type, w warps, s num_stages, and what else tells forms of one name apart")
    if "w" in headings:
        grid.add_row("w, st", "warps, num_stages")
    if any(region.unrolled_by > 1 for region in regions):
        grid.add_row(
            "×u", "the compiler unrolled the loop u times; distances are in iterations of the source"
        )
    floats = "; float: scalar instructions in their place" if any("float" in row.mma for row in rows) else ""
    grid.add_row("MMA", f"matrix instructions in the region of the verdict, of all in the file{floats}")
    grid.add_row("wait", _WAIT_KEY)
    if any(row.registers for row in rows):
        grid.add_row(
            "regs, bl" if "bl" in headings else "regs, blocks",
            "registers per thread (+ bytes spilled), blocks that fit on a multiprocessor",
        )
    if "ms" in headings:
        grid.add_row("ms", "what Triton's autotuner timed, of all keys; `inspect-kernel matrix` tells each")
    if any(row.findings for row in rows):
        grid.add_row("AI…", "findings (001 is AI001), as `inspect-kernel findings` lists them")
    return Padding(grid, (1, 0, 0, 0), style="dim")


_WAIT_KEY = (
    "how many younger loads, or groups of copies, the region's waits leave in flight; "
    "phase: they wait for a barrier"
)


def _beside(cache: Cache) -> Text | None:
    if not cache.others:
        return None
    kinds = Counter(other.kind for other in cache.others)
    said = ", ".join(f"{kind} ×{count}" for kind, count in sorted(kinds.items()))
    return Text(f"\nnot kernels: {said}", "dim")


def faults(kernels: Sequence[KernelFacts], problems: Sequence[Problem]) -> Iterator[RenderableType]:
    """Opcodes of no known kind, then what could not be read, each with its path."""
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
        yield Text(f"  and {len(found) - MOST_PROBLEMS} more; --json has them all", "dim")
