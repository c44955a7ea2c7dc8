"""Live registers of machine code, as text and tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, RenderResult
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from artifact_inspector.facts.pressure import KernelPressure
from artifact_inspector.report.words import join_words

MOST_LINES = 12
"""Most source lines of the table: those with most live registers."""
MOST_HELD = 10
MOST_NAMED = 8
"""Most registers that are named per row."""


@dataclass(frozen=True, slots=True)
class PressureReport:
    """The register pressure of some kernels."""

    found: Sequence[KernelPressure]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for at, kernel in enumerate(self.found):
            if at:
                yield Text()
            yield from _kernel(kernel)
        yield Padding(Text(_KEY), (1, 0, 0, 0), style="dim")


_KEY = (
    "live: registers of a thread that hold a value still needed (AMD: VGPRs and AccVGPRs together). "
    "The first table groups the registers live at the peak by the instruction that wrote them."
)


def _kernel(found: KernelPressure) -> Iterator[Text | Padding]:
    yield Text.assemble((found.kernel, "bold"), f"  {found.target or '?'}  {found.stage.value}")
    place = f"line {found.peak_line}" + (f" ({found.peak_source})" if found.peak_source else "")
    given = "" if found.allocated is None else f" of {found.allocated} allocated"
    yield Text(f"  peak: {found.peak} live registers{given}, at {place}")
    others = [f"{count} {bank}" for bank, count in found.by_bank.items()]
    yield Text(f"  peak per register file: {', '.join(others)}")
    yield Text(f"  {_occupancy(found)}")
    yield Padding(_held(found), (1, 0, 0, 2))
    if found.by_source:
        yield Padding(_lines(found), (1, 0, 0, 2))


def _occupancy(found: KernelPressure) -> str:
    if found.blocks is None:
        return "occupancy unknown"
    limits = join_words(found.limited_by) or "nothing known"
    blocks = "1 block fits" if found.blocks == 1 else f"{found.blocks} blocks fit"
    text = f"{blocks}, limited by {limits}"
    if found.shed is not None:
        return f"{text}; {found.shed} fewer registers per thread allow one more block"
    return f"{text}; fewer registers alone do not allow more blocks"


def _held(found: KernelPressure) -> Table:
    table = _table("live at the peak, written by", "registers", "names")
    for held in found.held[:MOST_HELD]:
        names = ", ".join(held.registers[:MOST_NAMED])
        more = len(held.registers) - MOST_NAMED
        place = held.kind.replace("_", " ") + (f" at {held.source}" if held.source else "")
        table.add_row(place, str(len(held.registers)), names + (f" and {more} more" if more > 0 else ""))
    return table


def _lines(found: KernelPressure) -> Table:
    table = _table("source line", "live", "assembly line")
    most = sorted(found.by_source, key=lambda line: -line.registers)[:MOST_LINES]
    for line in (line for line in found.by_source if line in most):
        table.add_row(line.source, str(line.registers), str(line.line))
    return table


def _table(first: str, second: str, third: str) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="bold")
    table.add_column(first)
    table.add_column(second, justify="right")
    table.add_column(third, overflow="fold")
    return table
