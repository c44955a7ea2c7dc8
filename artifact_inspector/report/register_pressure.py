"""Live registers of machine code, as text and tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, RenderResult
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from artifact_inspector.facts.pressure import KernelPressure
from artifact_inspector.report.phrases import join_words

MAX_LINES = 12
"""Most source lines of the table: those with most live registers."""
MAX_WRITERS = 10
MAX_NAMES = 8
"""Most registers that are named per row."""


@dataclass(frozen=True, slots=True)
class PressureReport:
    """The register pressure of some kernels."""

    kernels: Sequence[KernelPressure]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for index, kernel in enumerate(self.kernels):
            if index:
                yield Text()
            yield from _kernel(kernel)
        yield Padding(Text(_KEY), (1, 0, 0, 0), style="dim")


_KEY = (
    "live: registers of a thread that hold a value still needed (AMD: VGPRs and AccVGPRs together). "
    "The first table groups the registers live at the peak by the instruction that wrote them."
)


def _kernel(pressure: KernelPressure) -> Iterator[Text | Padding]:
    yield Text.assemble((pressure.kernel, "bold"), f"  {pressure.target or '?'}  {pressure.stage.value}")
    location = f"line {pressure.peak_line}" + (f" ({pressure.peak_source})" if pressure.peak_source else "")
    allocation = "" if pressure.allocated is None else f" of {pressure.allocated} allocated"
    yield Text(f"  peak: {pressure.peak} live registers{allocation}, at {location}")
    bank_counts = [f"{count} {bank}" for bank, count in pressure.by_bank.items()]
    yield Text(f"  peak per register file: {', '.join(bank_counts)}")
    yield Text(f"  {_occupancy(pressure)}")
    yield Padding(_writers_table(pressure), (1, 0, 0, 2))
    if pressure.by_source:
        yield Padding(_lines_table(pressure), (1, 0, 0, 2))


def _occupancy(pressure: KernelPressure) -> str:
    if pressure.blocks is None:
        return "occupancy unknown"
    limits = join_words(pressure.limited_by) or "nothing known"
    blocks = "1 block fits" if pressure.blocks == 1 else f"{pressure.blocks} blocks fit"
    text = f"{blocks}, limited by {limits}"
    if pressure.registers_to_free is not None:
        return f"{text}; {pressure.registers_to_free} fewer registers per thread allow one more block"
    return f"{text}; fewer registers do not allow more blocks by themselves"


def _writers_table(pressure: KernelPressure) -> Table:
    table = _table("live at the peak, written by", "registers", "names")
    for writer in pressure.live_at_peak[:MAX_WRITERS]:
        names = ", ".join(writer.registers[:MAX_NAMES])
        omitted = len(writer.registers) - MAX_NAMES
        writer_name = writer.kind.replace("_", " ") + (f" at {writer.source}" if writer.source else "")
        table.add_row(writer_name, str(len(writer.registers)), names + (f" and {omitted} more" if omitted > 0 else ""))
    return table


def _lines_table(pressure: KernelPressure) -> Table:
    table = _table("source line", "live", "assembly line")
    top_lines = sorted(pressure.by_source, key=lambda line: -line.registers)[:MAX_LINES]
    for line in (line for line in pressure.by_source if line in top_lines):
        table.add_row(line.source, str(line.registers), str(line.line))
    return table


def _table(first: str, second: str, third: str) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="bold")
    table.add_column(first)
    table.add_column(second, justify="right")
    table.add_column(third, overflow="fold")
    return table
